package devices

// Readings of the sensors of this machine's devices, for top and devices.

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/concord-compute/concord/cmd/concord/internal/files"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/telemetry"

	// Not in runtime/all, since they change how a whole program is linked.
	_ "github.com/concord-compute/concord/cuda/nvml"
	_ "github.com/concord-compute/concord/rocm/smi"
)

// reading is a sample with the name of its device, or "" if the device is not known.
type reading struct {
	Device string `json:"device,omitempty"`
	telemetry.Sample
}

// label returns a readable name of the device.
func (r *reading) label() string {
	switch {
	case r.Device != "":
		return r.Device
	case r.PCI != "":
		return r.Backend + " " + r.PCI
	}
	return fmt.Sprintf("%s sensors %d", r.Backend, r.Index)
}

// absence is the reason why a reader of sensors has no samples, or not all.
type absence struct {
	Backend string `json:"backend"`
	Reason  string `json:"reason"`
}

// meter reads all sensors.
type meter struct {
	cfg     driver.Config
	timeout time.Duration
	readers []telemetry.Reader
	devices []runtime.Info // the devices that samples may belong to
}

// newMeter returns a meter for the devices that the session has discovered.
func newMeter(cfg driver.Config, probes []runtime.Probe, readers []telemetry.Reader) *meter {
	m := &meter{cfg: cfg, timeout: cfg.ProbeTimeout, readers: slices.Clone(readers)}
	if m.timeout == 0 {
		m.timeout = 5 * time.Second
	}
	for _, p := range probes {
		m.devices = append(m.devices, p.Devices...)
	}
	return m
}

// read calls every reader once. A reader that does not answer in time is not called again.
func (m *meter) read(ctx context.Context) (list []reading, missing []absence) {
	list, missing = []reading{}, []absence{}
	var hung []string
	for _, t := range m.readers {
		samples, err := m.ask(ctx, t)
		for _, s := range samples {
			list = append(list, reading{m.device(&s, len(samples)), s})
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		reason := ui.OneLine(strings.TrimPrefix(err.Error(), t.Name()+": "))
		missing = append(missing, absence{t.Name(), reason})
		if err == errHung {
			hung = append(hung, t.Name())
		}
	}
	m.readers = slices.DeleteFunc(m.readers, func(t telemetry.Reader) bool { return slices.Contains(hung, t.Name()) })
	return list, missing
}

var errHung = fmt.Errorf("telemetry: no answer in time: %w", driver.ErrTimeout)

// ask calls one reader, for no longer than the timeout: drivers of lost devices can
// hang.
func (m *meter) ask(ctx context.Context, t telemetry.Reader) ([]telemetry.Sample, error) {
	limited, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	samples, err := files.Wait(limited, func() ([]telemetry.Sample, error) { return t.Sample(ctx, &m.cfg) })
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		err = errHung
	}
	return samples, err
}

// device returns the name of the device of a sample, or "". If a backend has a single device and a
// single sample, they belong together even without a common identifier.
func (m *meter) device(s *telemetry.Sample, samples int) string {
	var same []*runtime.Info
	for i := range m.devices {
		d := &m.devices[i]
		if s.Of(d) {
			return d.ID
		}
		if d.Backend == s.Backend && !d.Fake && !d.Simulated && d.ID != "cpu:reference" {
			same = append(same, d)
		}
	}
	if samples == 1 && len(same) == 1 && (same[0].UUID == "" || s.UUID == "") && (same[0].PCI == "" || s.PCI == "") {
		return same[0].ID
	}
	return ""
}

// processor reads the machine's own processor and memory. It implements
// telemetry.Reader.
type processor struct {
	info  func() runtime.Info // the present Info of cpu:0
	stat  string              // Linux's file of counters
	ticks ticks               // at the last sample
}

// ticks are counts since the machine was started.
type ticks struct{ busy, total uint64 }

// firstWindow is the duration of the first sample.
const firstWindow = 200 * time.Millisecond

// Name implements telemetry.Reader.
func (p *processor) Name() string { return "cpu" }

// Sample implements telemetry.Reader. Busy is that of all cores since the last call.
func (p *processor) Sample(ctx context.Context, _ *driver.Config) ([]telemetry.Sample, error) {
	before := p.ticks
	if before.total == 0 {
		before = readTicks(p.stat)
		if !sleep(ctx, firstWindow) {
			return nil, ctx.Err()
		}
	}
	p.ticks = readTicks(p.stat)
	info := p.info()
	s := telemetry.Sample{Backend: "cpu", Name: info.Name, Time: time.Now()}
	if n := p.ticks.total - before.total; before.total > 0 && p.ticks.total > before.total && p.ticks.busy >= before.busy {
		s.Busy = new(100 * float64(p.ticks.busy-before.busy) / float64(n))
	}
	if info.TotalMemory > 0 {
		s.MemoryTotal = new(info.TotalMemory)
	}
	if info.FreeMemoryKnown {
		s.MemoryFree = new(info.FreeMemory)
		if info.TotalMemory >= info.FreeMemory {
			s.MemoryUsed = new(info.TotalMemory - info.FreeMemory)
		}
	}
	return []telemetry.Sample{s}, nil
}

// readTicks reads the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq,
// steal, and two that are part of the first. It returns zero if the file cannot be read.
func readTicks(path string) (t ticks) {
	text, err := os.ReadFile(path)
	if err != nil {
		return ticks{}
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	if len(fields) < 5 || fields[0] != "cpu" {
		return ticks{}
	}
	const idle, wait, steal = 3, 4, 7
	for i, f := range fields[1:min(len(fields), steal+2)] {
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return ticks{}
		}
		t.total += n
		if i != idle && i != wait {
			t.busy += n
		}
	}
	return t
}

// sleep reports whether the time passed before ctx was done.
func sleep(ctx context.Context, d time.Duration) bool {
	limited, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-limited.Done()
	return ctx.Err() == nil
}
