package runtime

// Resolving names of devices, and the order of their stand-ins.

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/concord-compute/concord/runtime/driver"
)

// SetActiveDevice makes "auto" mean the device with that merged index, in this session. An explicit
// name always has priority.
func (s *Session) SetActiveDevice(ctx context.Context, index int) error {
	if err := checkContext(ctx, "set active device"); err != nil {
		return err
	}
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

// DefaultDevice returns the device that Open("auto") would try first.
func (s *Session) DefaultDevice(ctx context.Context) (Info, error) {
	if err := checkContext(ctx, "default device"); err != nil {
		return Info{}, err
	}
	list, err := s.candidates(ctx, "auto")
	if err != nil {
		return Info{}, err
	}
	return list[0], nil
}

// meant resolves "auto": the active device if one was set, else the configured one. Other names are
// returned in lower case.
func (s *Session) meant(name string) (what string, configured bool) {
	if name = strings.ToLower(strings.TrimSpace(name)); name != "" && name != "auto" {
		return name, false
	}
	if i := s.active.Load(); i >= 0 {
		return strconv.FormatInt(i, 10), false
	}
	what = strings.ToLower(strings.TrimSpace(s.cfg.Device))
	return what, what != "" && what != "auto"
}

// probesFor probes the backends that decide which device a name means: one if the name is that of a
// backend or of one of its devices, else all. Other drivers are not touched.
func (s *Session) probesFor(ctx context.Context, name string) ([]Probe, error) {
	backend, _, _ := s.cutName(name)
	_, err := strconv.Atoi(backend)
	if s.cfg.FakeDevices != nil || err == nil || backend == "" || backend == "auto" {
		return s.Discover(ctx)
	}
	return s.lookFor(ctx, backend)
}

// cutName splits the name of a device: "hip:0" is the backend rocm, of which hip is an alias, and
// "0". A backend's own name has priority over aliases.
func (s *Session) cutName(name string) (backend, suffix string, hasSuffix bool) {
	backend, suffix, hasSuffix = strings.Cut(name, ":")
	if s.backend(backend) != nil {
		return backend, suffix, hasSuffix
	}
	for known, d := range s.descriptions() {
		if slices.Contains(d.Aliases, backend) {
			return known, suffix, hasSuffix
		}
	}
	return backend, suffix, hasSuffix
}

// candidates returns the devices that a name means, in the order of preference: one device, or for
// "auto" all eligible ones.
func (s *Session) candidates(ctx context.Context, name string) ([]Info, error) {
	name, configured := s.meant(name)
	probes, err := s.probesFor(ctx, name)
	if err != nil {
		return nil, err
	}
	if name == "" || name == "auto" {
		return s.automatic(devicesOf(probes))
	}
	first, err := s.find(name, probes)
	if err != nil && configured {
		err = fmt.Errorf("CONCORD_DEVICE or Config.Device: %w", err)
	}
	if err != nil {
		return nil, err
	}
	return []Info{first}, nil
}

// automatic lists the real GPUs in order, then the host's processor.
func (s *Session) automatic(all []Info) ([]Info, error) {
	var list []Info
	for _, d := range all {
		if d.IsGPU() {
			list = append(list, d)
		}
	}
	list = append(list, s.hostOf(all)...)
	if len(list) == 0 {
		return nil, fmt.Errorf("auto: neither a GPU nor the cpu backend is there; a blank import of runtime/all registers "+
			"every backend: %w", ErrNoDevice)
	}
	return list, nil
}

// hostOf returns the device that can always be opened, if there is one. Description.Host identifies
// it: a name could be another backend's, and a device of Kind CPU may belong to OpenCL, whose
// driver can fail like any other.
func (s *Session) hostOf(all []Info) []Info {
	for _, d := range all {
		if s.describe(d.Backend).Host {
			return []Info{d}
		}
	}
	return nil
}

// below lists the stand-ins for a device that fails to open: the next real GPUs in the merged
// order, then the host's processor. A device that is not in the list has only the latter.
func (s *Session) below(first Info, all []Info) []Info {
	var list []Info
	at := slices.IndexFunc(all, func(d Info) bool { return d.ID == first.ID })
	for i, d := range all {
		if d.IsGPU() && i > at && at >= 0 {
			list = append(list, d)
		}
	}
	return append(list, s.hostOf(all)...)
}

// find resolves an explicit name.
func (s *Session) find(name string, probes []Probe) (Info, error) {
	all := devicesOf(probes)
	if i, err := strconv.Atoi(name); err == nil {
		if i < 0 || i >= len(all) {
			return Info{}, indexError(name, len(all))
		}
		return all[i], nil
	}
	backend, suffix, hasSuffix := s.cutName(name)
	i := slices.IndexFunc(probes, func(p Probe) bool { return p.Backend == backend })
	if i < 0 {
		return Info{}, fmt.Errorf("%q is none of auto, %s; simulated: %s: %w",
			backend, strings.Join(s.knownBackends(), ", "), strings.Join(driver.SimulatedNames(), ", "),
			driver.ErrUnknownBackend)
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
	return Info{}, &OpError{Backend: backend, Op: "open " + name, Detail: "there are " + strings.Join(there, ", "),
		Err: ErrDeviceIndex}
}

func indexError(index string, count int) error {
	return fmt.Errorf("index %s of %d devices: %w", index, count, ErrDeviceIndex)
}

// knownBackends lists the names of backends that are not simulated, then their aliases.
func (s *Session) knownBackends() []string {
	names := driver.BackendNames()
	for _, b := range s.listed() {
		if !slices.Contains(names, b.Name()) {
			names = append(names, b.Name())
		}
	}
	for _, name := range slices.Clone(names) {
		for _, alias := range s.describe(name).Aliases {
			names = append(names, alias+" (which is "+name+")")
		}
	}
	return names
}
