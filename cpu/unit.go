package cpu

// What this package reads of a portable program.

import (
	"github.com/concord-compute/concord/source"
)

// unitParams returns the parameters of a kernel, nil where the unit has no such
// kernel: a unit that was not parsed from text has none.
func unitParams(u *source.Unit, name string) []source.Param {
	k, ok := u.Kernel(name)
	if !ok {
		return nil
	}
	return k.Params
}
