package driver

// The registry of backends.

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

var (
	registryMu sync.RWMutex
	registry   = map[string]Backend{}
)

// Register makes a backend available by its name. It is called from init functions and touches no
// driver. It panics if b is nil, or if its name is taken or is not valid (see ValidName): these are mistakes
// of the program, not conditions of the machine.
func Register(b Backend) {
	if b == nil {
		panic("concord: Register of a nil backend")
	}
	if !ValidName(b.Name()) {
		panic(fmt.Sprintf("concord: Register of backend %q: a name is a lower-case letter, and letters, digits, - and _ "+
			"after it", b.Name()))
	}
	registryMu.Lock()
	defer registryMu.Unlock()
	if _, taken := registry[b.Name()]; taken {
		panic("concord: Register called twice for backend " + b.Name())
	}
	registry[b.Name()] = b
}

// ValidName reports whether a name follows the rules for names of backends, which Backend.Name states.
func ValidName(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	return strings.Trim(name, letters+"0123456789-_") == "" && strings.IndexAny(name, letters) == 0
}

// Backends returns the registered backends in the order of preference: by
// Description.Preference, then by name, with simulated ones at the end.
func Backends() []Backend {
	registryMu.RLock()
	defer registryMu.RUnlock()
	return slices.SortedFunc(maps.Values(registry), compareBackends)
}

func compareBackends(a, b Backend) int {
	if sa, sb := IsSimulated(a.Name()), IsSimulated(b.Name()); sa != sb {
		if sb {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(Describe(b).Preference, Describe(a).Preference), strings.Compare(a.Name(), b.Name()))
}
