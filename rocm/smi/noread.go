//go:build !cgo || !rocm || !linux

package smi

import "github.com/concord-compute/concord/runtime/driver"

func telemetry() driver.Telemetry { return driver.NoTelemetry("rocm", reason) }
