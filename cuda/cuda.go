// Package cuda is the backend for NVIDIA GPUs, over the CUDA driver API and NVRTC.
//
//	Concord          CUDA
//	backend          driver API and NVRTC
//	device           CUdevice with its primary context
//	stream           CUstream
//	event            CUevent
//	buffer           CUdeviceptr
//	program          CUmodule
//	kernel           CUfunction
//	group / item     block / thread
//	local memory     shared memory
//	sub-group        warp
//
// # Basics
//
// Import the package for its effect (or runtime/all) and build with -tags cuda.
// Devices are named "cuda:N". Building needs neither NVIDIA's toolkit nor its driver: both
// libraries are opened when devices are first looked for, and on a machine without them the error
// says what is missing. Compiling for devices of other machines needs only NVRTC.
//
// "sim-cuda:N" are simulated devices: the same backend on simulated libraries, which make sim
// builds and which run kernels on the CPU. They are for tests, and are opened only by name.
//
// # Contexts
//
// A device is its primary context, which the runtime API and other libraries of the same process
// share. Calls leave it current on their thread. A fault in a kernel (an invalid address) destroys
// the context, and every stream of the device fails. Closing the device then resets the context,
// also for other parts of the process that use it.
//
// # Programs
//
// Every operation rounds once (--fmad=false, exact division and square root,
// denormals kept), as on every other device; options of OpenCL such as -cl-fast-relaxed-math are
// translated. For a device that NVRTC does not know yet, programs are compiled to the newest PTX
// that NVRTC supports, which the driver compiles to machine code when it loads the program.
//
// # cuBLAS
//
// If libcublas (of CUDA 11 to 13) is found, it computes the catalog's gemm of f32, f64 and f16 for
// matrices that are large enough for it to be faster; records then name "cublas". It is opened with
// the first gemm program, which can take a second.
//
// # NCCL
//
// If libnccl.so.2 (2.14 or later) is found, groups of devices exchange data by it (package cluster). It was
// tested on simulated devices alone.
//
// # Finding the libraries
//
// NVRTC, cuBLAS and NCCL are looked for by the loader's search, then in CUDA_HOME, CUDA_PATH and
// /usr/local/cuda, then among the packages of Python: of VIRTUAL_ENV, CONDA_PREFIX and the python3 of PATH. If
// there are several of NVRTC, one of the driver's own version or an older one is used, since a driver cannot read
// what a newer compiler makes. Probe.Libraries names those that are open.
//
// # Profilers
//
// Regions of a program (runtime.Region) are ranges of NVTX, which Nsight Systems shows, if libnvToolsExt is
// found (of CUDA 10 to 12; CUDA 13 does not have it). Kernels have their names there without that.
//
// # Caveats
//
// The backend was tested on simulated devices, and compiling with NVRTC 11.8. It supports Linux
// only.
package cuda

import (
	"github.com/concord-compute/concord/internal/cgo"
	"github.com/concord-compute/concord/runtime/driver"
)

func init() {
	driver.Register(cgo.NewBackend(vendor()))
	driver.Register(cgo.NewBackend(simulated()))
}
