// Package smi reads the sensors of AMD devices through ROCm SMI (librocm_smi64):
// utilization, memory, temperature, power, clocks, fan, memory errors, processes,
// and what holds the clock back.
//
// # Basics
//
// Import the package for its effect and build with -tags rocm; telemetry.Readers
// then has a reader named "rocm". Without the tag, without cgo and elsewhere than on
// Linux it is listed and says why it has nothing. It does not need package rocm, and
// is apart from it as its counterpart for NVIDIA has to be (package cuda/nvml).
//
// # Caveats
//
// The library is opened at the first Sample, and only where the kernel's driver is
// loaded: without a device it writes a complaint of its own to standard error. It
// stays open. One that the configuration names is opened in any case.
//
// What AMD does not tell is unknown: which of several devices a process's memory is
// on (older libraries), and in words why a device is throttled (kernels and libraries
// that only have the bits of that kind of device).
package smi

import "github.com/concord-compute/concord/runtime/telemetry"

func init() { telemetry.Register(newReader()) }
