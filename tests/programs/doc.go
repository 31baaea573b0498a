// Package programs generates OpenCL C programs, runs each on several implementations and compares
// the results: the host executor built by several compilers, with and without fibers, OpenCL
// drivers, and the simulated devices. NVRTC and hipRTC only compile.
//
// # Basics
//
// A program is determined by its seed: [Generate] makes its text, and launches with their inputs.
// Its behaviour is defined by the OpenCL C specification (no data race, no overflow of signed
// integers, no access out of bounds, no read of uninitialized memory), so that implementations may
// differ only in the last places of inexact functions, for which [Compare] has the specification's
// limits, and in the payloads of NaNs.
//
// The last kernel of each program reads constants that a front end computes: initializers of program scope,
// enumerations, case labels, sizes of arrays. Some targets compute the same expressions in the kernel instead.
//
// Each implementation is a [Target] and runs in a separate process, since the compilers of some
// drivers crash in the same process, and since a crash or a hang is a finding, too. A program with
// a difference is reduced ([Reduce]) and written to a file. Concord's implementations share a front
// end, so the opinion of a foreign one matters: if a foreign implementation differs and another
// foreign one agrees with Concord's, the difference is only counted, and its program is kept
// without being reduced.
//
// # Caveats
//
// Every change of the generator changes the programs of all seeds: a program that found a mistake
// should be added to internal/verify/stress/programs.
package programs
