package driver

// The registry of backends.

import (
	"cmp"
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
// driver. It panics when b is nil or the name is taken: both are mistakes of the program, not
// conditions of the machine.
func Register(b Backend) {
	if b == nil {
		panic("concord: Register of a nil backend")
	}
	registryMu.Lock()
	defer registryMu.Unlock()
	if _, taken := registry[b.Name()]; taken {
		panic("concord: Register called twice for backend " + b.Name())
	}
	registry[b.Name()] = b
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
