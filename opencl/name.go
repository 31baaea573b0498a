package opencl

// The name and the description of the backend, the same in every build.

import "github.com/concord-compute/concord/runtime/driver"

const name = "opencl"

var description = driver.Description{Title: "OpenCL", Preference: 1, Portable: true}
