package cpu

// What this package reads of a portable program.

import (
	"crypto/sha256"
	"fmt"
	"sync"

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

// renderIdentity names what a rendering has that its Unit does not determine: the
// prelude, by what an empty program becomes.
var renderIdentity = sync.OnceValues(func() (string, error) {
	u, err := source.Parse("", source.Options{})
	if err != nil {
		return "", err
	}
	text, err := u.Render(source.Host)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("rendering %x", sha256.Sum256([]byte(text))), nil
})
