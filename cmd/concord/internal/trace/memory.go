package trace

// concord trace memory: the figures.

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/files"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/mempool"
)

// traceReport is the document of concord trace memory.
type traceReport struct {
	File    string         `json:"file"`
	Devices []*deviceTrace `json:"devices"`
	Picture string         `json:"picture,omitempty"`
}

type deviceTrace struct {
	Device   string            `json:"device"`
	Pool     *mempool.PoolInfo `json:"pool,omitempty"`
	Analysis *mempool.Analysis `json:"analysis"`
	Replays  []replayed        `json:"replays"`
	trace    *mempool.Trace
}

// replayed is the outcome of one pool.
type replayed struct {
	Mode         mempool.Mode     `json:"mode"`
	SoftLimit    int64            `json:"soft_limit"`
	HardLimit    int64            `json:"hard_limit,omitempty"`
	PeakLive     int64            `json:"peak_live"`
	PeakReserved int64            `json:"peak_reserved"`
	Efficiency   float64          `json:"efficiency"` // gets without the driver / gets
	DriverAllocs int64            `json:"driver_allocations"`
	Refused      int64            `json:"refused"`
	Internal     float64          `json:"worst_internal"` // of Samples
	Samples      []mempool.Sample `json:"samples"`
}

func traceMemory(ctx context.Context, a *app.App, file string, f *traceFlags, settings []mempool.Options) error {
	if err := files.Picture.MayReplace(f.picture); err != nil {
		return err
	}
	t, err := files.Read(ctx, file, files.MostTrace, mempool.ReadTrace)
	if err != nil {
		return err
	}
	devices := t.Devices()
	if f.device != "" {
		if !slices.Contains(devices, f.device) {
			return fmt.Errorf("%s has nothing of %s, only of %s: %w", file, f.device, strings.Join(devices, ", "),
				driver.ErrInvalidArgument)
		}
		devices = []string{f.device}
	}
	if len(devices) == 0 {
		return fmt.Errorf("%s: no device did anything with memory: %w", file, driver.ErrInvalidArgument)
	}
	report := &traceReport{File: file, Picture: f.picture}
	for _, name := range devices {
		d, err := analyze(t.Of(name), name, settings)
		if err != nil {
			return err
		}
		report.Devices = append(report.Devices, d)
	}
	if f.picture != "" {
		busiest := slices.MaxFunc(report.Devices, func(x, y *deviceTrace) int {
			return x.Analysis.Events - y.Analysis.Events
		})
		if err := a.Save(ctx, f.picture, func(w io.Writer) error { return busiest.draw(w, f, settings) }); err != nil {
			return fmt.Errorf("--picture %s: %w", f.picture, files.WithoutPath(err))
		}
	}
	return a.Show(report, func() {
		for i, d := range report.Devices {
			if i > 0 {
				a.Println()
			}
			writeTrace(a, d)
		}
		if f.picture != "" {
			a.Printf("\npicture: %s\n", f.picture)
		}
	})
}

func analyze(t *mempool.Trace, name string, settings []mempool.Options) (*deviceTrace, error) {
	d := &deviceTrace{Device: name, Analysis: mempool.AnalyzeFragmentation(t), Replays: []replayed{}, trace: t}
	if len(t.Pools) > 0 {
		d.Pool = &t.Pools[0]
	}
	for _, o := range settings {
		o = d.like(o)
		out, err := t.Replay(o, nil)
		if err != nil {
			return nil, fmt.Errorf("replay of %s: %w", name, err)
		}
		r := replayed{
			Mode: o.Mode, SoftLimit: out.Stats.SoftLimit, HardLimit: out.Stats.HardLimit,
			PeakLive: out.Stats.PeakLive, PeakReserved: out.Stats.PeakReserved, Efficiency: out.Stats.Efficiency(),
			DriverAllocs: out.Stats.DriverAllocs, Refused: out.Refused, Samples: out.Samples,
		}
		for _, s := range out.Samples {
			if s.Live > 0 {
				r.Internal = max(r.Internal, 1-float64(s.Requested)/float64(s.Live))
			}
		}
		d.Replays = append(d.Replays, r)
	}
	return d, nil
}

// like takes options that the flags do not set from the recorded pool.
func (d *deviceTrace) like(o mempool.Options) mempool.Options {
	if d.Pool != nil {
		if o.SoftLimit == 0 {
			o.SoftLimit = d.Pool.SoftLimit
		}
		o.Align = d.Pool.Align
	}
	return o
}

func writeTrace(a *app.App, d *deviceTrace) {
	n := d.Analysis
	a.Printf("%s: %d events", d.Device, n.Events)
	if n.Dropped > 0 {
		a.Printf(", %d before them lost", n.Dropped)
	}
	a.Printf("; when most was reserved: internal fragmentation %.3f, type diversity %.3f, largest free "+
		"range %s of %s\n\n",
		n.Worst.Internal, n.Worst.TypeDiversity, driver.FormatBytes(n.Worst.LargestFree),
		driver.FormatBytes(n.Worst.Reserved-n.Worst.Live))
	t := ui.NewTable("POOL", "LARGEST LIVE", "LARGEST RESERVED", "OF LIVE", "WITHOUT THE DRIVER", "DRIVER ALLOCATIONS",
		"REFUSED")
	row := func(name string, live, reserved int64, hits float64, allocs, refused int64) {
		t.Add(name, driver.FormatBytes(live), driver.FormatBytes(reserved),
			fmt.Sprintf("%.2f", float64(reserved)/float64(max(1, live))),
			fmt.Sprintf("%.2f %%", 100*hits), fmt.Sprint(allocs), fmt.Sprint(refused))
	}
	name := "recorded"
	if d.Pool != nil {
		name += " (" + d.Pool.Mode.String() + ")"
	}
	row(name, n.PeakLive, n.PeakReserved, float64(n.Hits)/float64(max(1, n.Gets)), n.Gets-n.Hits, 0)
	for _, r := range d.Replays {
		row(r.Mode.String(), r.PeakLive, r.PeakReserved, r.Efficiency, r.DriverAllocs, r.Refused)
	}
	t.Write(a.Stdout, "")
	a.Println()
	t = &ui.Table{}
	t.Add("BLOCK", "GETS", "BY THE DRIVER", "LIVE AT ONCE", "NOT ASKED FOR")
	for _, k := range n.Keys {
		t.Add(driver.FormatBytes(k.Size), fmt.Sprint(k.Gets), fmt.Sprint(k.Misses), fmt.Sprint(k.Most),
			driver.FormatBytes(k.Wasted))
	}
	t.Write(a.Stdout, "")
	a.Println()
	for _, advice := range n.Advice {
		a.Println(advice)
	}
}
