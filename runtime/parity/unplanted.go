//go:build !plantedfault

package parity

import "github.com/concord-compute/concord/kernels"

// plant changes what a device computed, in builds with the tag plantedfault.
func plant(*kernels.Case, [][]byte) {}
