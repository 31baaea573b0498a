// Package rocm is the backend for AMD GPUs, over HIP and hipRTC.
//
//	Concord          HIP
//	backend          HIP and hipRTC
//	device           hipDevice_t
//	stream           hipStream_t
//	event            hipEvent_t
//	buffer           device pointer
//	pinned memory    hipHostMalloc
//	unified memory   hipMallocManaged
//	program          hipModule_t, a code object
//	kernel           hipFunction_t
//	graph            hipGraphExec_t
//	group / item     block / thread
//	sub-group        wavefront: 64 items on GCN and CDNA, 32 on RDNA
//
// # Basics
//
// Import the package for its effect (or runtime/all) and build with -tags rocm.
// Devices are named "rocm:N"; "hip:N" means the same. No library is linked: HIP (libamdhip64 of
// ROCm 5 to 7), hipRTC and comgr are opened when devices are first looked for or a program is first
// compiled. CONCORD_HIP_LIBRARY names another libamdhip64.
//
// hipRTC needs no device: the backend compiles for every architecture that comgr lists, and reports
// the registers and the spilled bytes of each kernel.
//
// "sim-rocm:N" are the devices of a simulated libamdhip64, which make sim builds for tests.
//
// If librocblas is found and has kernels for the device, it computes the catalog's gemm of f32, f64
// and f16 for matrices that are large enough for it to be faster; records then name "rocblas". If
// librccl.so.1 (of ROCm 5.5 or later) is found, groups of devices exchange data by it (package cluster).
//
// # Profilers
//
// Regions of a program (runtime.Region) are ranges of rocTX, which rocprofv3 and rocprof show, if the library
// of rocprofiler-sdk or of roctracer is found.
//
// # Caveats
//
// This version has not run on an AMD GPU: it was tested by compiling and on simulated devices.
//
// HIP has one context for each device and process. Closing a lost device resets it
// for every part of the program that uses it. With some versions of ROCm, a kernel that accesses an
// invalid address ends the process; HIP has no way to prevent that.
//
// HIP of Debian 12 loads an LLVM that ends the process if the LLVM of PoCL or of Mesa's OpenCL is
// loaded in the same process. HIP is therefore opened only if /dev/kfd exists, if
// CONCORD_HIP_LIBRARY is set, or to compile for an AMD architecture. Such a process must not use
// the OpenCL of PoCL or Mesa. WSL has no /dev/kfd: set CONCORD_HIP_LIBRARY there.
//
// hipRTC ends the process when it gets an architecture that it does not know. Architectures are
// therefore checked with comgr first, and without comgr nothing is compiled.
package rocm

import (
	"github.com/concord-compute/concord/internal/cgo"
	"github.com/concord-compute/concord/runtime/driver"
)

func init() {
	driver.Register(cgo.NewBackend(vendor()))
	driver.Register(cgo.NewBackend(simulated()))
}
