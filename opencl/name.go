package opencl

// What the backend says of itself in every build.

import "github.com/concord-compute/concord/runtime/driver"

const name = "opencl"

var description = driver.Description{Title: "OpenCL", Preference: 1, Portable: true}
