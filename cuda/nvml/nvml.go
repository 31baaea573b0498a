// Package nvml reads the sensors of NVIDIA devices through NVML, the library that
// comes with their driver: utilization, memory, temperature, power, clocks, fan,
// memory errors, processes, and what holds the clock back.
//
// # Basics
//
// Import the package for its effect and build with -tags cuda; telemetry.Readers
// then has a reader named "cuda". Without the tag, without cgo and elsewhere than on
// Linux it is listed and says why it has nothing. It does not need package cuda.
//
// # Caveats
//
// The package stands apart from package cuda, and runtime/all does not import it,
// because of what it does to a program: github.com/NVIDIA/go-nvml adds
//
//	-Wl,--export-dynamic -Wl,--unresolved-symbols=ignore-in-object-files
//
// to the link of the whole binary. Every C function of the program that is not
// hidden is exported then, and one that is missing is no error of the linker any
// more but ends the process when it is called. The same holds for NVML itself: a
// call of a function that the installed driver does not have ends the process. So
// nothing is called unless Init has succeeded, and no function that was not looked
// up first.
//
// The library is opened at the first Sample and stays open.
package nvml

import "github.com/concord-compute/concord/runtime/telemetry"

func init() { telemetry.Register(newReader()) }
