//go:build !cgo || !opencl || !(linux || darwin)

package opencl

// The backend of a build without OpenCL: it is listed, with the reason why it is missing.

import (
	"github.com/concord-compute/concord/internal/cgo"
	"github.com/concord-compute/concord/runtime/driver"
)

var missing = cgo.NotBuilt("-tags opencl and the CGO_CFLAGS that `make env` prints", "linux", "darwin")

func init() { driver.Register(cgo.Disabled(name, description, missing)) }
