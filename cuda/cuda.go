// Package cuda is the backend for NVIDIA GPUs, over the CUDA driver API and NVRTC.
//
//	ours             CUDA
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
// Devices are named "cuda:N". Building takes neither NVIDIA's toolkit nor its
// driver: both libraries are opened when somebody asks for devices, and a machine
// without them is told what is missing. Programs compile with NVRTC alone for
// devices that are elsewhere.
//
// "sim-cuda:N" are simulated devices: the same code over the libraries that make
// sim builds, which run kernels on the processor. They are for tests, and are
// opened only by name.
//
// # Contexts
//
// A device is its primary context, which the runtime API and other libraries of the
// same process share. Calls leave it current on their thread. A fault in a kernel
// (an address that is not there) ends the context, and so every stream of the
// device; closing the device resets it, for whoever else uses it as well.
//
// # Programs
//
// Every operation rounds once (--fmad=false, exact division and square root,
// denormals kept), as on every other device; options of OpenCL such as
// -cl-fast-relaxed-math are translated. For a device newer than NVRTC the newest PTX
// it can write is built, and the driver compiles that further when it loads.
//
// # cuBLAS
//
// Where libcublas (of CUDA 11 to 13) is found, it computes the catalog's gemm of f32,
// f64 and f16 from a size on at which it is faster; records say "cublas" then. It is
// opened with the first program of gemm, which can take a second. Python's packages
// keep it where only LD_LIBRARY_PATH finds it.
//
// # Caveats
//
// The text was run on simulated devices; compiling was tried with NVRTC 11.8.
// CUDA runs on Linux here.
package cuda

import (
	"github.com/concord-compute/concord/internal/cgo"
	"github.com/concord-compute/concord/runtime/driver"
)

func init() {
	driver.Register(cgo.NewBackend(vendor()))
	driver.Register(cgo.NewBackend(simulated()))
}
