package devices

// The devices that results and rates are compared of, each in every way that it runs kernels.

import (
	"context"
	"fmt"
	"strings"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/runtime"
)

// Target is one row to be made: a device and its implementation.
type Target struct {
	Device  string // for Open; "" when there is nothing to open
	Label   string
	Name    string
	Reason  string // why no device is opened
	Options runtime.ProgramOptions
}

// Targets lists the rows to make: the named devices, or all devices, and for missing ones the
// reasons.
func Targets(ctx context.Context, s *runtime.Session, names []string) ([]Target, error) {
	var list []Target
	for _, name := range names {
		if err := app.CheckDevice(name); err != nil {
			return nil, err
		}
		info, err := find(ctx, s, name)
		if err != nil {
			return nil, err
		}
		list = append(list, targetsOf(info)...)
	}
	switch {
	case len(names) > 0 && len(list) == 0:
		return nil, fmt.Errorf("--device %s: the reference is what other devices are compared with; name one of them: %w",
			strings.Join(names, ", "), runtime.ErrInvalidArgument)
	case len(names) > 0:
		return list, nil
	}
	probes, err := s.Discover(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range probes {
		for _, info := range p.Devices {
			list = append(list, targetsOf(info)...)
		}
		if len(p.Devices) == 0 {
			list = append(list, Target{Label: p.Backend, Reason: p.Reason})
		}
	}
	return list, nil
}

// targetsOf lists the rows of a device. The reference has a row in any case.
func targetsOf(info runtime.Info) []Target {
	t := Target{Device: info.ID, Label: info.ID, Name: info.Name}
	switch {
	case info.ID == "cpu:reference":
		return nil
	case info.Fake:
		return []Target{{Label: info.ID, Name: info.Name, Reason: "a fake device"}}
	case info.Backend == "cpu":
		compiled := t
		compiled.Label += " (compiled)"
		compiled.Options.Implementation = runtime.Portable
		return []Target{t, compiled}
	}
	return []Target{t}
}

// find returns the device that a name means.
func find(ctx context.Context, s *runtime.Session, name string) (runtime.Info, error) {
	dev, err := s.Open(ctx, name)
	if err != nil {
		return runtime.Info{}, fmt.Errorf("--device %s: %w", name, err)
	}
	defer dev.Close()
	return dev.Info(), nil
}
