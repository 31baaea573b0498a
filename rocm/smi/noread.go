//go:build !cgo || !rocm || !linux

package smi

import (
	"github.com/concord-compute/concord/internal/cgo"
	"github.com/concord-compute/concord/runtime/telemetry"
)

func newReader() telemetry.Reader {
	return telemetry.Missing("rocm", cgo.NotBuilt("-tags rocm", "linux"))
}
