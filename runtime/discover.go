package runtime

// Discovery: one entry per backend, with its devices or the reason why it has none.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/concord-compute/concord/runtime/driver"
)

// Discover returns one entry for every backend, also for missing ones, in the order of preference.
// Simulated backends (sim-cuda, sim-rocm, sim-metal) are included only with Config.SimDir. It opens
// no device, and fails only for CONCORD_STRICT=1 with fakes (ErrFakeDevice), for a nil context, or
// when ctx is done. The result is kept until Rediscover. Concurrent callers share one look at each
// backend, which goes on for the others when the context of one is done.
func (s *Session) Discover(ctx context.Context) ([]Probe, error) {
	return s.lookAll(ctx, "discover", s.cfg.NoProbeCache)
}

// Rediscover looks again, or shares a look that is under way.
func (s *Session) Rediscover(ctx context.Context) ([]Probe, error) {
	return s.lookAll(ctx, "rediscover", true)
}

// lookAll looks at every backend at once, and again even at those that are known.
func (s *Session) lookAll(ctx context.Context, op string, again bool) ([]Probe, error) {
	if err := checkContext(ctx, op); err != nil {
		return nil, err
	}
	if s.cfg.FakeDevices != nil {
		return s.lookFake(ctx, again)
	}
	backends := s.listed()
	probes, errs := make([]Probe, len(backends)), make([]error, len(backends))
	var wg sync.WaitGroup
	for i, b := range backends {
		wg.Go(func() {
			probes[i], errs[i] = s.look(ctx, b, again)
			probes[i] = s.unasked(probes[i])
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	for i, name := range driver.BackendNames() {
		if !slices.ContainsFunc(probes, func(p Probe) bool { return p.Backend == name }) {
			probes = slices.Insert(probes, min(i, len(probes)), notImported(name))
		}
	}
	return number(probes), nil
}

// unasked returns a probe without the devices that have to be named.
func (s *Session) unasked(p Probe) Probe {
	var others []Info
	var named []string
	for _, d := range p.Devices {
		if s.unlisted(&d) {
			named = append(named, d.ID+" ("+d.Name+")")
		} else {
			others = append(others, d)
		}
	}
	if len(named) == 0 {
		return p
	}
	p.Devices, p.Tried = others, append(slices.Clone(p.Tried), strings.Join(named, ", ")+": only by name")
	if len(others) == 0 {
		p.State, p.Reason = driver.Unavailable, "only devices that have to be named: "+strings.Join(named, ", ")
	}
	return p
}

// unlisted reports whether a device has no place in the merged list because nothing names it.
func (s *Session) unlisted(d *Info) bool {
	return d.ByName && !slices.Contains(s.cfg.Required, d.Backend)
}

// listed returns the backends whose devices have a place in the merged list.
func (s *Session) listed() []driver.Backend {
	backends := slices.Clone(s.backends())
	if s.cfg.SimDir == "" {
		backends = slices.DeleteFunc(backends, func(b driver.Backend) bool { return driver.IsSimulated(b.Name()) })
	}
	return backends
}

// notImported is the entry of a backend that the program does not contain.
func notImported(name string) Probe {
	reason := fmt.Sprintf("not imported by this program: add a blank import of %s or of runtime/all", name)
	return Probe{Backend: name, State: driver.Disabled, Reason: reason, Remedy: reason}
}

// lookFor looks at the backend of that name, which may be a simulated one that Discover does not
// list.
func (s *Session) lookFor(ctx context.Context, name string) ([]Probe, error) {
	b := s.backend(name)
	switch {
	case b != nil:
		p, err := s.look(ctx, b, s.cfg.NoProbeCache)
		if err != nil {
			return nil, err
		}
		return s.place(p), nil
	case slices.Contains(driver.BackendNames(), name):
		return []Probe{notImported(name)}, nil
	}
	return nil, nil
}

// place does the same as number for one backend. The indexes are -1 while a listed backend is not
// yet known. Devices of a simulated backend come after all listed ones.
func (s *Session) place(p Probe) []Probe {
	list := number([]Probe{p})
	for i := range list[0].Devices {
		d := &list[0].Devices[i]
		d.Index = s.indexOf(p.Backend, d.ID)
	}
	return list
}

// indexOf returns the index of a device in the merged list, or -1 if it is not yet known.
func (s *Session) indexOf(backend, id string) int {
	listed := s.listed()
	if b := s.backend(backend); b != nil && s.cfg.SimDir == "" && driver.IsSimulated(backend) {
		listed = append(listed, b)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, b := range listed {
		at := s.sights[b.Name()]
		if at == nil || at.found == nil {
			return -1
		}
		for _, d := range at.found.Devices {
			switch {
			case s.unlisted(&d):
			case d.ID == id:
				return n
			default:
				n++
			}
		}
	}
	return -1
}

// number gives every device its place in the merged list. The caller may change the result, except
// for what the devices point to.
func number(probes []Probe) []Probe {
	n := 0
	for i := range probes {
		probes[i].Tried = slices.Clone(probes[i].Tried)
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

// Devices lists every device of every backend in the order of preference, as Discover found them.
func (s *Session) Devices(ctx context.Context) ([]Info, error) {
	probes, err := s.lookAll(ctx, "devices", s.cfg.NoProbeCache)
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

// GPUAvailable reports whether there is a GPU that is neither fake nor simulated.
func (s *Session) GPUAvailable(ctx context.Context) bool {
	list, err := s.Devices(ctx)
	return err == nil && slices.ContainsFunc(list, func(i Info) bool { return i.IsGPU() })
}

// Summary returns one line: "Available GPU backends: CUDA 12.0, Metal", or "No GPU backends
// available". Vendors' own APIs come before portable ones, each group sorted by title.
func (s *Session) Summary(ctx context.Context) (string, error) {
	probes, err := s.lookAll(ctx, "summary", s.cfg.NoProbeCache)
	if err != nil {
		return "", err
	}
	var makers, portable []string
	for _, p := range probes {
		if !hasGPU(p) {
			continue
		}
		d := s.describe(p.Backend)
		part := d.Title
		if p.DriverVersion != "" {
			part += " " + p.DriverVersion
		}
		if p.State == driver.Fake {
			part += " (fake)"
		}
		if d.Portable {
			portable = append(portable, part)
		} else {
			makers = append(makers, part)
		}
	}
	slices.Sort(makers)
	slices.Sort(portable)
	if len(makers)+len(portable) == 0 {
		return "No GPU backends available", nil
	}
	return "Available GPU backends: " + strings.Join(append(makers, portable...), ", "), nil
}

func hasGPU(p Probe) bool {
	return p.State == driver.Fake || slices.ContainsFunc(p.Devices, func(i Info) bool { return i.IsGPU() })
}

// Preflight returns nil if there is a GPU, and otherwise an error with the state of every backend
// and a remedy for each. It prints nothing.
func (s *Session) Preflight(ctx context.Context) error {
	probes, err := s.lookAll(ctx, "preflight", s.cfg.NoProbeCache)
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
		if p.Remedy != "" {
			fmt.Fprintf(&b, "  %s: %s\n", p.Backend, p.Remedy)
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
