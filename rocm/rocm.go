// Package rocm is the backend for AMD GPUs, over HIP and hipRTC.
//
//	ours             HIP
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
// Devices are named "rocm:N"; "hip:N" means the same. Nothing is linked: HIP
// (libamdhip64, of ROCm 5 to 7), hipRTC and comgr are opened when somebody asks for
// devices or compiles. CONCORD_HIP_LIBRARY names another libamdhip64.
//
// hipRTC needs no device: the backend compiles for every architecture that comgr
// lists, and says how many registers kernels take and what they spill.
//
// "sim-rocm:N" are the devices of a simulated libamdhip64 (make sim), for tests.
//
// Where librocblas is found and has kernels for the device, it computes the catalog's
// gemm of f32, f64 and f16 from a size on at which it is faster; records say "rocblas"
// then.
//
// # Caveats
//
// Compiled and simulated only: this version has not run on an AMD GPU.
//
// HIP has one context for each device and process. Closing a lost device resets it
// for every part of the program that uses it. Depending on ROCm's version, a kernel
// that touches memory it does not have ends the process; HIP leaves no way to prevent
// that.
//
// HIP of Debian 12 brings an LLVM that ends the process if PoCL's or Mesa's is in it
// too. HIP is therefore opened only where /dev/kfd or CONCORD_HIP_LIBRARY says that
// there can be a GPU, and by those who compile for one; in such a process use no
// OpenCL of these. Under WSL, which has no /dev/kfd, name the library.
//
// hipRTC ends the process when it is asked for an architecture that it does not
// know. Architectures are therefore checked with comgr first, and where comgr is not
// found nothing is compiled.
package rocm

import (
	"github.com/concord-compute/concord/internal/cgo"
	"github.com/concord-compute/concord/runtime/driver"
)

func init() {
	driver.Register(cgo.NewBackend(vendor()))
	driver.Register(cgo.NewBackend(simulated()))
}
