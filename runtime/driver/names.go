package driver

// The names that Concord gives to backends. They stand here alone, for programs that do
// not import the package of a backend: a name that is reserved is listed with what is
// missing, and is no misspelling. Of a registered backend a name tells only that it is
// simulated, since that has to be known before it is asked; else it describes itself.

import (
	"iter"
	"strings"
)

// BackendNames returns the names of Concord's own backends, in order of preference,
// whether or not they are registered.
func BackendNames() []string { return []string{"cuda", "rocm", "metal", "opencl", "cpu"} }

// SimulatedNames returns the names of the backends over simulated vendor libraries. They
// execute, are no GPU, and are found only by name or with Config.SimDir.
func SimulatedNames() []string { return []string{"sim-cuda", "sim-rocm", "sim-metal"} }

// IsSimulated reports whether a backend's name is that of a simulated one.
func IsSimulated(name string) bool { return strings.HasPrefix(name, "sim-") }

// reserved says of each name what its backend says of itself. WebGPU has no backend: it
// is listed only as a fake.
var reserved = []struct {
	name string
	Description
}{
	{"cuda", Description{Title: "CUDA", Preference: 4}},
	{"rocm", Description{Title: "ROCm", Aliases: []string{"hip"}, Preference: 3}},
	{"metal", Description{Title: "Metal", Preference: 2}},
	{"opencl", Description{Title: "OpenCL", Preference: 1, Portable: true}},
	{"webgpu", Description{Title: "WebGPU", Aliases: []string{"wgpu"}, Portable: true}},
	{"cpu", Description{Title: "CPU", Preference: -1, Host: true}},
}

// Reserved iterates over the names that Concord gives to backends, with what is true of
// each on every machine, in order of preference.
func Reserved() iter.Seq2[string, Description] {
	return func(yield func(string, Description) bool) {
		for _, r := range reserved {
			if !yield(r.name, r.Description) {
				return
			}
		}
	}
}
