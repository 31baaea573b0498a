package driver

// The names that Concord reserves for backends, for programs that do not import the package of a
// backend: a reserved name without a backend is listed with the reason why it is missing, and is
// not treated as a misspelling. A registered backend describes itself; only that it is simulated
// follows from its name, because that is needed before the backend is called.

import (
	"iter"
	"strings"
)

// BackendNames returns the names of Concord's own backends, in order of preference,
// whether or not they are registered.
func BackendNames() []string { return []string{"cuda", "rocm", "metal", "opencl", "vulkan", "cpu"} }

// SimulatedNames returns the names of the backends on top of simulated vendor libraries. They
// execute kernels, are not GPUs, and are found only by name or with Config.SimDir.
func SimulatedNames() []string { return []string{"sim-cuda", "sim-rocm", "sim-metal"} }

// IsSimulated reports whether a backend's name is that of a simulated one.
func IsSimulated(name string) bool { return strings.HasPrefix(name, "sim-") }

// reserved has the description of each reserved name. WebGPU has no backend: it is listed only
// as a fake.
var reserved = []struct {
	name string
	Description
}{
	{"cuda", Description{Title: "CUDA", Preference: 4}},
	{"rocm", Description{Title: "ROCm", Aliases: []string{"hip"}, Preference: 3}},
	{"metal", Description{Title: "Metal", Preference: 2}},
	{"opencl", Description{Title: "OpenCL", Preference: 1, Portable: true}},
	{"vulkan", Description{Title: "Vulkan", Portable: true}},
	{"webgpu", Description{Title: "WebGPU", Aliases: []string{"wgpu"}, Portable: true}},
	{"cpu", Description{Title: "CPU", Preference: -1, Host: true}},
}

// Reserved iterates over the names that Concord reserves for backends, with the description of
// each, in the order of preference.
func Reserved() iter.Seq2[string, Description] {
	return func(yield func(string, Description) bool) {
		for _, r := range reserved {
			if !yield(r.name, r.Description) {
				return
			}
		}
	}
}
