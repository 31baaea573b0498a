// Package simd is the crossing into the vector functions of the CPU, csrc/cpu: their
// numbers, and the call. It imports nothing that changes often, so that the go command
// compiles the vector functions, which takes a minute, only when the C changes.
package simd

// Set is the number of an instruction set, Op that of a function of it. csrc/cpu/simd.h
// gives the numbers. Without cgo all are 0.
type (
	Set int32
	Op  int32
)
