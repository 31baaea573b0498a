package runtime

// Which device a name means, and in which order others stand in for it.

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/concord-compute/concord/runtime/driver"
)

// SetActiveDevice makes the device with that merged index what "auto" opens, in
// this session. An explicit name always wins over it.
func (s *Session) SetActiveDevice(ctx context.Context, index int) error {
	list, err := s.Devices(ctx)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return ErrNoDevice
	}
	if index < 0 || index >= len(list) {
		return indexError(strconv.Itoa(index), len(list))
	}
	s.active.Store(int64(index))
	return nil
}

// ActiveDevice returns the index set by SetActiveDevice.
func (s *Session) ActiveDevice() (index int, ok bool) {
	i := int(s.active.Load())
	return i, i >= 0
}

// DefaultDevice returns what Open("auto") would try first.
func (s *Session) DefaultDevice(ctx context.Context) (Info, error) {
	probes, err := s.Discover(ctx)
	if err != nil {
		return Info{}, err
	}
	if probes, err = s.withSimulated(ctx, s.meant("auto"), probes); err != nil {
		return Info{}, err
	}
	list, err := s.candidates("auto", probes)
	if err != nil {
		return Info{}, err
	}
	return list[0], nil
}

// meant is the name that "auto" stands for, as far as one is configured.
func (s *Session) meant(name string) string {
	if name = strings.ToLower(strings.TrimSpace(name)); name != "" && name != "auto" || s.active.Load() >= 0 {
		return name
	}
	return s.cfg.Device
}

// candidates returns the devices to try for a name, best first: the one that is
// meant, then those that may stand in for it.
func (s *Session) candidates(name string, probes []Probe) ([]Info, error) {
	all := devicesOf(probes)
	name = strings.ToLower(strings.TrimSpace(name))
	configured := name == "" || name == "auto"
	if configured {
		if i := int(s.active.Load()); i >= 0 && i < len(all) {
			return append([]Info{all[i]}, below(all[i], all)...), nil
		}
		name = strings.ToLower(s.cfg.Device)
	}
	if name == "" || name == "auto" {
		return automatic(all)
	}
	first, err := find(name, probes)
	if err != nil && configured {
		err = fmt.Errorf("CONCORD_DEVICE or Config.Device: %w", err)
	}
	if err != nil {
		return nil, err
	}
	return append([]Info{first}, below(first, all)...), nil
}

// automatic lists the real GPUs in order, then the CPU.
func automatic(all []Info) ([]Info, error) {
	var list []Info
	for _, d := range all {
		if d.IsGPU() {
			list = append(list, d)
		}
	}
	list = append(list, cpuOf(all)...)
	if len(list) == 0 {
		return nil, fmt.Errorf("auto: neither a GPU nor the cpu backend is there; a blank import of runtime/all registers every backend: %w", ErrNoDevice)
	}
	return list, nil
}

func cpuOf(all []Info) []Info {
	for _, d := range all {
		if d.Backend == "cpu" {
			return []Info{d}
		}
	}
	return nil
}

// below lists what may stand in for a device that fails to open: the next real
// GPUs in the merged order, then the CPU.
func below(first Info, all []Info) []Info {
	var list []Info
	if first.Backend == "cpu" {
		return nil
	}
	for _, d := range all {
		if d.IsGPU() && d.Index > first.Index {
			list = append(list, d)
		}
	}
	return append(list, cpuOf(all)...)
}

// find resolves an explicit name.
func find(name string, probes []Probe) (Info, error) {
	all := devicesOf(probes)
	if i, err := strconv.Atoi(name); err == nil {
		if i < 0 || i >= len(all) {
			return Info{}, indexError(name, len(all))
		}
		return all[i], nil
	}
	backend, suffix, hasSuffix := strings.Cut(name, ":")
	if backend == "hip" {
		backend = "rocm"
	}
	i := slices.IndexFunc(probes, func(p Probe) bool { return p.Backend == backend })
	if i < 0 {
		return Info{}, fmt.Errorf("%q is none of %s, hip (which is rocm), auto, and, simulated, %s: %w",
			backend, strings.Join(knownBackends(probes), ", "), strings.Join(driver.SimulatedNames, ", "), ErrUnknownBackend)
	}
	p := probes[i]
	if len(p.Devices) == 0 {
		return Info{}, &OpError{Backend: backend, Op: "open " + name, Detail: p.Reason, Err: ErrNoDevice}
	}
	if !hasSuffix {
		return p.Devices[0], nil
	}
	var there []string
	for _, d := range p.Devices {
		if d.ID == backend+":"+suffix {
			return d, nil
		}
		there = append(there, d.ID)
	}
	return Info{}, &OpError{Backend: backend, Op: "open " + name, Detail: "there are " + strings.Join(there, ", "), Err: ErrDeviceIndex}
}

func indexError(index string, count int) error {
	return fmt.Errorf("index %s of %d devices: %w", index, count, ErrDeviceIndex)
}

func knownBackends(probes []Probe) []string {
	names := slices.Clone(driver.BackendNames)
	for _, p := range probes {
		if !slices.Contains(names, p.Backend) && p.Backend != "webgpu" {
			names = append(names, p.Backend)
		}
	}
	return names
}
