// Package programs generates OpenCL C programs, runs each on several implementations and
// compares what they compute: the host executor built by several compilers, with and without
// fibers, OpenCL drivers, and the simulated devices. NVRTC and hipRTC only compile.
//
// # Basics
//
// A program is a function of its seed: [Generate] makes its text, and launches with their
// inputs. Its behaviour is defined by the OpenCL C specification (no data race, no overflow of signed
// integers, no access out of bounds, nothing read that was not written), so that
// implementations may differ only in the last places of inexact functions, for which [Compare]
// knows the specification's limits, and in the payloads of NaNs.
//
// Each implementation is a [Target] and runs in a process of its own, since drivers bring
// compilers that do not survive each other, and since a crash or a hang is a finding like
// any other. A difference is reduced ([Reduce]) and written down as text. Where a foreign
// implementation differs and another foreign one agrees with ours, which share a front end,
// it is counted and its program kept as it is.
//
// # Caveats
//
// What the seed means changes with every change of the generator: a program that found
// something belongs into source/internal/render/testdata/stress.
package programs
