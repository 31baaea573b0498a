//go:build !cgo || !cuda || !linux

package nvml

import (
	"github.com/concord-compute/concord/internal/cgo"
	"github.com/concord-compute/concord/runtime/telemetry"
)

func newReader() telemetry.Reader {
	return telemetry.Missing("cuda", cgo.NotBuilt("-tags cuda", "linux"))
}
