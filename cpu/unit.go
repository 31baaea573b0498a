package cpu

// What this package reads of a portable program.

import (
	"github.com/concord-compute/concord/source"
)

// unitDefine returns the value of the last definition of that name.
func unitDefine(u *source.Unit, name string) (value string, ok bool) {
	if u == nil {
		return "", false
	}
	for _, d := range u.Defines() {
		if d.Name == name {
			value, ok = d.Value, true
		}
	}
	return value, ok
}

// unitParams returns the parameters of a kernel, nil where the unit has no such
// kernel: a unit that was not parsed from text has none.
func unitParams(u *source.Unit, name string) []source.Param {
	k, ok := u.Kernel(name)
	if !ok {
		return nil
	}
	return k.Params
}
