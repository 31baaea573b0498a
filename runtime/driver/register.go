package driver

// The registry of backends: a mutex and a map.

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

var (
	registryMu sync.RWMutex
	registry   = map[string]Backend{}
)

// Register makes a backend available by its name. It is called from init
// functions and touches no driver. It panics when b is nil or the name is taken,
// as both are mistakes of the program, not of the machine.
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

// Backends returns the registered backends in the order of preference: cuda,
// rocm, metal, opencl, then others by name, cpu, then simulated ones.
func Backends() []Backend {
	registryMu.RLock()
	defer registryMu.RUnlock()
	names := slices.SortedFunc(maps.Keys(registry), compareBackends)
	list := make([]Backend, len(names))
	for i, name := range names {
		list[i] = registry[name]
	}
	return list
}

// BackendNames lists the backends that Concord knows, in order of preference,
// whether or not they are registered.
var BackendNames = []string{"cuda", "rocm", "metal", "opencl", "cpu"}

// SimulatedNames lists the backends over simulated vendor libraries. They execute,
// are no GPU, and are found only by name or with Config.SimDir.
var SimulatedNames = []string{"sim-cuda", "sim-rocm", "sim-metal"}

// IsSimulated reports whether a backend's name is that of a simulated one.
func IsSimulated(name string) bool { return strings.HasPrefix(name, "sim-") }

func compareBackends(a, b string) int {
	rank := func(name string) int {
		i := slices.Index(BackendNames, name)
		switch {
		case IsSimulated(name):
			return len(BackendNames) + 2
		case name == "cpu":
			return len(BackendNames) + 1
		case i < 0:
			return len(BackendNames)
		}
		return i
	}
	if ra, rb := rank(a), rank(b); ra != rb {
		return ra - rb
	}
	if a < b {
		return -1
	}
	return 1
}
