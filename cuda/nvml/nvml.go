// Package nvml reads the sensors of NVIDIA devices through NVML, the library that
// comes with their driver: utilization, memory, temperature, power, clocks, fan,
// memory errors, processes, and the reasons for throttling.
//
// # Basics
//
// Import the package for its effect and build with -tags cuda; telemetry.Readers
// then has a reader named "cuda". Without the tag, without cgo, and on systems other than Linux,
// the reader is listed but returns an error with the reason. The package does not need package
// cuda.
//
// # Caveats
//
// The package is separate from package cuda, and runtime/all does not import it, because it changes
// how a program is linked: github.com/NVIDIA/go-nvml adds
//
//	-Wl,--export-dynamic -Wl,--unresolved-symbols=ignore-in-object-files
//
// to the linker flags of the whole binary. As a result, every C function of the program that is not
// hidden is exported, and a missing C function is not an error of the linker but ends the process
// when it is called. The same holds for NVML itself: calling a function that the installed driver
// does not have ends the process. The package therefore calls no function before Init has
// succeeded, and looks up every function before it calls it.
//
// The library is opened at the first Sample and stays open.
package nvml

import "github.com/concord-compute/concord/runtime/telemetry"

func init() { telemetry.Register(newReader()) }
