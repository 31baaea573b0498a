//go:build !cgo || !cuda || !linux

package nvml

import "github.com/concord-compute/concord/runtime/driver"

func telemetry() driver.Telemetry { return driver.NoTelemetry("cuda", reason) }
