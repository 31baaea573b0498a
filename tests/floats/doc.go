// Package floats compares floating-point expressions, as devices compute them, with an
// exact evaluation in Go, bit for bit: an optimization that changes the sign of a
// zero or rounds once more or once less shows.
package floats
