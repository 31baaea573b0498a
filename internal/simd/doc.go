// Package simd calls the vector functions of csrc/cpu, and has the numbers by which they are
// called. It imports nothing that changes often, so that the go command compiles the vector
// functions, which takes a minute, only when the C code changes.
package simd

// Set is the number of an instruction set and Op that of a function; csrc/cpu/simd.h defines
// them. Without cgo all are 0.
type (
	Set int32
	Op  int32
)
