package cpu

// Access to the kernels of a portable program.

import (
	"github.com/concord-compute/concord/source"
)

// unitParams returns the parameters of a kernel, or nil if the unit has no such kernel, as
// one that was not parsed from text.
func unitParams(u *source.Unit, name string) []source.Param {
	k, ok := u.Kernel(name)
	if !ok {
		return nil
	}
	return k.Params
}
