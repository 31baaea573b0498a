package runtime

// What is on the machine: one entry per backend, each with its devices or the
// reason why it has none.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
)

const defaultProbeTimeout = 5 * time.Second

// Discover returns one entry for every backend, in the order of preference, also
// for those that are missing. Simulated backends (sim-cuda, sim-rocm, sim-metal)
// are among them only with Config.SimDir. It opens nothing and fails only for
// CONCORD_STRICT=1 with fakes (ErrFakeDevice) or when ctx is done. The result is
// kept until Rediscover.
func (s *Session) Discover(ctx context.Context) ([]Probe, error) {
	s.mu.Lock()
	kept := s.probes
	s.mu.Unlock()
	if kept != nil && !s.cfg.NoProbeCache {
		return cloneProbes(kept), nil
	}
	return s.Rediscover(ctx)
}

// Rediscover looks again.
func (s *Session) Rediscover(ctx context.Context) ([]Probe, error) {
	probes, err := s.probeAll(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.probes = probes
	s.mu.Unlock()
	for _, p := range probes {
		s.debug(1, "probed", "backend", p.Backend, "state", p.State, "devices", len(p.Devices), "reason", p.Reason, "elapsed", p.Elapsed)
	}
	return cloneProbes(probes), nil
}

// cloneProbes copies what the caller may change without the session seeing it.
func cloneProbes(probes []Probe) []Probe {
	out := slices.Clone(probes)
	for i := range out {
		out[i].Devices = slices.Clone(out[i].Devices)
		out[i].Tried = slices.Clone(out[i].Tried)
	}
	return out
}

func (s *Session) probeAll(ctx context.Context) ([]Probe, error) {
	if s.cfg.FakeDevices != nil {
		if s.cfg.Strict {
			return nil, fmt.Errorf("CONCORD_FAKE_DEVICES=%s refused by CONCORD_STRICT=1: %w", *s.cfg.FakeDevices, ErrFakeDevice)
		}
		return number(s.fakeProbes(ctx, *s.cfg.FakeDevices)), ctx.Err()
	}
	backends := slices.Clone(s.backends())
	if s.cfg.SimDir == "" {
		backends = slices.DeleteFunc(backends, func(b driver.Backend) bool { return driver.IsSimulated(b.Name()) })
	}
	probes := make([]Probe, len(backends))
	var wg sync.WaitGroup
	for i, b := range backends {
		wg.Go(func() { probes[i] = s.probe(ctx, b) })
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for i, name := range driver.BackendNames {
		if !slices.ContainsFunc(probes, func(p Probe) bool { return p.Backend == name }) {
			missing := Probe{Backend: name, State: driver.Disabled, Reason: fmt.Sprintf(
				"not imported by this program: add a blank import of %s or of runtime/all", name)}
			probes = slices.Insert(probes, min(i, len(probes)), missing)
		}
	}
	return number(probes), nil
}

// withSimulated adds the backend that a name asks for if it is a simulated one,
// which discovery has not looked for. It comes after all that is listed.
func (s *Session) withSimulated(ctx context.Context, name string, probes []Probe) ([]Probe, error) {
	name, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(name)), ":")
	b := s.backend(name)
	if b == nil || !driver.IsSimulated(name) || slices.ContainsFunc(probes, func(p Probe) bool { return p.Backend == name }) {
		return probes, nil
	}
	return number(append(probes, s.probe(ctx, b))), ctx.Err()
}

// probe asks one backend, for no longer than the timeout. A probe that hangs in a
// driver is left behind; its result is thrown away.
func (s *Session) probe(ctx context.Context, b driver.Backend) Probe {
	timeout := s.cfg.ProbeTimeout
	if timeout == 0 {
		timeout = defaultProbeTimeout
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	result := make(chan Probe, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				result <- Probe{State: driver.Unavailable, Reason: fmt.Sprintf("probe panicked: %v", r)}
			}
		}()
		result <- b.Probe(ctx, &s.cfg)
	}()
	var p Probe
	select {
	case p = <-result:
	case <-ctx.Done():
		p = Probe{State: driver.Unavailable, Reason: fmt.Sprintf("probe timed out after %v (CONCORD_PROBE_TIMEOUT)", timeout)}
	}
	p.Backend, p.Elapsed = b.Name(), time.Since(start)
	if p.State == driver.Available && len(p.Devices) == 0 {
		p.State = driver.Unavailable
	}
	if p.State != driver.Available && p.Reason == "" {
		p.Reason = "no devices"
	}
	return p
}

// number gives every device its place in the merged list.
func number(probes []Probe) []Probe {
	n := 0
	for i := range probes {
		if probes[i].Devices = slices.Clone(probes[i].Devices); probes[i].Devices == nil {
			probes[i].Devices = []Info{}
		}
		for j := range probes[i].Devices {
			d := &probes[i].Devices[j]
			d.Index, d.Simulated = n, d.Simulated || driver.IsSimulated(probes[i].Backend)
			n++
		}
	}
	return probes
}

// Devices lists every device of every backend in the order of preference. The
// list is that of Discover.
func (s *Session) Devices(ctx context.Context) ([]Info, error) {
	probes, err := s.Discover(ctx)
	if err != nil {
		return nil, err
	}
	return devicesOf(probes), nil
}

func devicesOf(probes []Probe) []Info {
	var list []Info
	for _, p := range probes {
		list = append(list, p.Devices...)
	}
	return list
}

// GPUAvailable reports whether there is a GPU that is really there.
func (s *Session) GPUAvailable(ctx context.Context) bool {
	list, err := s.Devices(ctx)
	return err == nil && slices.ContainsFunc(list, func(i Info) bool { return i.IsGPU() })
}

// Summary is one line: "Available GPU backends: CUDA 12.0, Metal", or "No GPU
// backends available".
func (s *Session) Summary(ctx context.Context) (string, error) {
	probes, err := s.Discover(ctx)
	if err != nil {
		return "", err
	}
	var parts []string
	for _, row := range []struct{ backend, shown string }{
		{"cuda", "CUDA"}, {"metal", "Metal"}, {"rocm", "ROCm"}, {"opencl", "OpenCL"}, {"webgpu", "WebGPU"},
	} {
		for _, p := range probes {
			if p.Backend != row.backend || !hasGPU(p) {
				continue
			}
			part := row.shown
			if p.DriverVersion != "" {
				part += " " + p.DriverVersion
			}
			if p.State == driver.Fake {
				part += " (fake)"
			}
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return "No GPU backends available", nil
	}
	return "Available GPU backends: " + strings.Join(parts, ", "), nil
}

func hasGPU(p Probe) bool {
	return p.State == driver.Fake || slices.ContainsFunc(p.Devices, func(i Info) bool { return i.IsGPU() })
}

// Preflight returns nil if there is a GPU, and otherwise an error with a line per
// backend and what to do about each. It prints nothing.
func (s *Session) Preflight(ctx context.Context) error {
	probes, err := s.Discover(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(devicesOf(probes), func(i Info) bool { return i.IsGPU() }) {
		return nil
	}
	var b strings.Builder
	b.WriteString("No GPU backend detected.\n")
	for _, p := range probes {
		fmt.Fprintf(&b, "  %s: %s\n", p.Backend, reasonOf(p))
	}
	b.WriteString("What helps:\n")
	for _, p := range probes {
		if remedy := Remedy(p); remedy != "" {
			fmt.Fprintf(&b, "  %s: %s\n", p.Backend, remedy)
		}
	}
	return fmt.Errorf("%s%w", b.String(), ErrNoDevice)
}

func reasonOf(p Probe) string {
	if p.Reason != "" {
		return p.Reason
	}
	var names []string
	for _, d := range p.Devices {
		names = append(names, d.Name)
	}
	return "no GPU among its devices (" + strings.Join(names, ", ") + ")"
}
