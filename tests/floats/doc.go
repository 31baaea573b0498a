// Package floats compares floating-point expressions that devices compute with an exact evaluation
// in Go, bit for bit, so that it finds optimizations that change the sign of a zero or the number
// of roundings.
package floats
