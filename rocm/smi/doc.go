// Package smi reads the sensors of AMD devices through ROCm SMI (librocm_smi64):
// utilization, memory, temperature, power, clocks, fan, memory errors, processes, and the reasons
// for throttling.
//
// # Basics
//
// Import the package for its effect and build with -tags rocm; telemetry.Readers
// then has a reader named "rocm". Without the tag, without cgo, and on systems other than Linux,
// the reader is listed but returns an error with the reason. The package does not need package
// rocm; it is separate from it in the same way as its counterpart for NVIDIA, cuda/nvml.
//
// # Caveats
//
// The library is opened at the first Sample and stays open. It is opened only if the kernel's
// driver is loaded, because without a device it writes a message to standard error; a library that
// the configuration names is opened in any case.
//
// Some values are unknown because ROCm SMI does not report them: which of several devices holds a
// process's memory (older libraries), and the reason for throttling (kernels and libraries that
// report it only in bits that are specific to a model of device).
package smi

import "github.com/concord-compute/concord/runtime/telemetry"

func init() { telemetry.Register(newReader()) }
