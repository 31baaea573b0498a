// Package all registers every backend. Import it for its side effect. Build tags (cuda, rocm,
// metal, opencl, vulkan) decide which backends are in the build.
package all

import (
	_ "github.com/concord-compute/concord/cpu"    // registers "cpu"
	_ "github.com/concord-compute/concord/cuda"   // registers "cuda"
	_ "github.com/concord-compute/concord/metal"  // registers "metal"
	_ "github.com/concord-compute/concord/opencl" // registers "opencl"
	_ "github.com/concord-compute/concord/rocm"   // registers "rocm"
	_ "github.com/concord-compute/concord/vulkan" // registers "vulkan"
)
