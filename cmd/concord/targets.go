package main

// The devices that results and rates are compared of, each in every way that it runs kernels.

import (
	"context"
	"fmt"
	"strings"

	"github.com/concord-compute/concord/runtime"
)

// demoTarget is one row to be made: a device and its implementation.
type demoTarget struct {
	device string // for Open; "" when there is nothing to open
	label  string
	name   string
	reason string // why no device is opened
	opt    runtime.ProgramOptions
}

// demoTargets lists the rows to make: the named devices, or all devices, and for missing ones the
// reasons.
func demoTargets(ctx context.Context, s *runtime.Session, names []string) ([]demoTarget, error) {
	var list []demoTarget
	for _, name := range names {
		if err := checkDevice(name); err != nil {
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
			list = append(list, demoTarget{label: p.Backend, reason: p.Reason})
		}
	}
	return list, nil
}

// targetsOf lists the rows of a device. The reference has a row in any case.
func targetsOf(info runtime.Info) []demoTarget {
	t := demoTarget{device: info.ID, label: info.ID, name: info.Name}
	switch {
	case info.ID == "cpu:reference":
		return nil
	case info.Fake:
		return []demoTarget{{label: info.ID, name: info.Name, reason: "a fake device"}}
	case info.Backend == "cpu":
		compiled := t
		compiled.label += " (compiled)"
		compiled.opt.Implementation = runtime.Portable
		return []demoTarget{t, compiled}
	}
	return []demoTarget{t}
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
