//go:build plantedfault

package parity

import "github.com/concord-compute/concord/kernels"

// plant changes the last element of the result of saxpy in f32, so that tests can show that a wrong result is found.
func plant(c *kernels.Case, got [][]byte) {
	if c.Kernel != "saxpy" || c.DType != "f32" {
		return
	}
	for _, b := range got {
		if len(b) > 0 {
			b[len(b)-2] ^= 0x10 // an eighth of the power of two in it
		}
	}
}
