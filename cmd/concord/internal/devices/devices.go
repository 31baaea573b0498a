// Package devices has the commands about this machine: its devices, their sensors, what is missing, and the cache of
// compiled kernels.
package devices

// concord devices: every backend with its devices, or why it has none.

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/telemetry"
)

// List returns the command devices.
func List(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "List every backend: its devices, or why it has none",
		Long: `Devices lists every backend with its devices, and for NVIDIA and AMD devices also the
readings of their sensors; concord top shows them live.

CACHES are the sizes of one data cache of each level, from the first on, such as 48K 2M 260M; compute units may
share a cache. Where the driver tells only one size and not of which level it is, as OpenCL's do, that one is
shown; ? is a size that nobody tells.`,
		Example: `  concord devices
  concord devices --json`,
		Args: cobra.ExactArgs(0),
	}
	return a.RunnableJSON(cmd, func(ctx context.Context, _ []string) error {
		s, err := a.Open(app.Exactly)
		if err != nil {
			return err
		}
		probes, err := s.Discover(ctx)
		if err != nil {
			return err
		}
		list := sensorsOf(ctx, s, probes)
		return a.Show(map[string]any{"devices": withTelemetry(probes, list)}, func() {
			t := deviceTable(a, probes)
			t.Write(a.Stdout, "")
			if len(list) > 0 {
				a.Println()
				writeReadings(a, a.Stdout, list)
			}
		})
	})
}

// listed is a backend with its devices, in the JSON document.
type listed struct {
	runtime.Probe
	Devices []sensed `json:"devices"`
}

// sensed is a device with the readings of its sensors, if they are known.
type sensed struct {
	runtime.Info
	Telemetry *telemetry.Sample `json:"telemetry,omitempty"`
}

// sensorsOf reads the sensors of the available devices. In a list of devices a missing sensor is no
// error: concord top reports the reason.
func sensorsOf(ctx context.Context, s *runtime.Session, probes []runtime.Probe) []reading {
	readers := slices.DeleteFunc(telemetry.Readers(), func(t telemetry.Reader) bool {
		return !slices.ContainsFunc(probes, func(p runtime.Probe) bool {
			return p.Backend == t.Name() && p.State == driver.Available &&
				slices.ContainsFunc(p.Devices, func(i runtime.Info) bool { return i.IsGPU() })
		})
	})
	list, _ := newMeter(s.Config(), probes, readers).read(ctx)
	return list
}

// withTelemetry adds readings to their devices.
func withTelemetry(probes []runtime.Probe, list []reading) []listed {
	out := []listed{}
	for _, p := range probes {
		l := listed{Probe: p, Devices: []sensed{}}
		for _, info := range p.Devices {
			d := sensed{Info: info}
			if i := slices.IndexFunc(list, func(r reading) bool { return r.Device == info.ID }); i >= 0 {
				d.Telemetry = &list[i].Sample
			}
			l.Devices = append(l.Devices, d)
		}
		out = append(out, l)
	}
	return out
}

// deviceTable has a row for every device, and one for every backend without.
func deviceTable(a *app.App, probes []runtime.Probe) *ui.Table {
	t := ui.NewTable("DEVICE", "STATE", "KIND", "MEMORY", "CACHES", "UNITS", "NAME")
	for _, p := range probes {
		for _, d := range p.Devices {
			t.Add(a.Paint(ui.Bold, d.ID), paintState(a, p.State), string(d.Kind), known(d.TotalMemory),
				cachesOf(&d), ui.CountText(d.ComputeUnits), d.Name)
		}
		if len(p.Devices) == 0 {
			t.Add(p.Backend, paintState(a, p.State), "", "", "", "", ui.OneLine(p.Reason))
		}
	}
	return t
}

func paintState(a *app.App, s driver.State) string {
	switch s {
	case driver.Available:
		return a.Paint(ui.Green, string(s))
	case driver.Fake:
		return a.Paint(ui.Yellow, string(s))
	}
	return string(s)
}

// cachesOf returns the sizes of the caches by level, such as "48K 2M 260M", with "?" for a level that is unknown, or
// the size of the one whose level is; "?" if nothing is known.
func cachesOf(d *runtime.Info) string {
	short := func(n int64) string {
		switch {
		case n > 0 && n%(1<<20) == 0:
			return fmt.Sprintf("%dM", n>>20)
		case n > 0:
			return fmt.Sprintf("%dK", n>>10)
		}
		return "?"
	}
	levels := []int64{d.L1Cache, d.L2Cache, d.L3Cache}
	for n := len(levels); n > 0 && levels[n-1] == 0; n = len(levels) {
		levels = levels[:n-1]
	}
	if len(levels) == 0 {
		levels = []int64{d.MemoryCache}
	}
	var words []string
	for _, n := range levels {
		words = append(words, short(n))
	}
	return strings.Join(words, " ")
}

// known returns a size as text, or "" if it is unknown.
func known(bytes int64) string {
	if bytes == 0 {
		return "?"
	}
	return driver.FormatBytes(bytes)
}
