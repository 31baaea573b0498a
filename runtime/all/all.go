// Package all registers every backend. A program that imports it for its effect
// finds every kind of device that it was built for; which of them are in the build
// is decided by tags (cuda, rocm, metal, opencl).
package all

import (
	_ "github.com/concord-compute/concord/cpu"    // registers "cpu"
	_ "github.com/concord-compute/concord/cuda"   // registers "cuda"
	_ "github.com/concord-compute/concord/metal"  // registers "metal"
	_ "github.com/concord-compute/concord/opencl" // registers "opencl"
	_ "github.com/concord-compute/concord/rocm"   // registers "rocm"
)
