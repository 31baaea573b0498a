// Package checks has the commands that judge devices by their results: demo, parity and verify.
package checks

// concord demo: handwritten digits are recognized by their nearest neighbours, and by a network, on
// every device. All devices must have the same results.

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/devices"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/runtime"
)

// demoRow is the outcome of one device. If nothing ran, the numbers are null.
type demoRow struct {
	Device        string     `json:"device"`
	Name          string     `json:"name,omitempty"`
	Built         string     `json:"built,omitempty"` // compiled, disk, memory or native
	CompileMS     app.Number `json:"compile_ms"`
	UploadMS      app.Number `json:"upload_ms"`
	KernelMS      app.Number `json:"kernel_ms"`
	Accuracy      app.Number `json:"accuracy"`
	MaxDifference app.Number `json:"max_difference"`
	Verdict       string     `json:"verdict"`
	Reason        string     `json:"reason,omitempty"`
}

// The verdicts of a row.
const (
	judge    = "reference"
	concords = "concords"
	differs  = "differs"
	failed   = "failed"
	absent   = "not here"
)

// Demo returns the command demo.
func Demo(a *app.App) *cobra.Command {
	var names []string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Recognize handwritten digits on every device and compare with the reference",
		Long: `Demo takes 10,000 images of handwritten digits (the test set of MNIST). For each of
1,000 it finds the nearest of the other 9,000, by distance and top-k kernels, and
takes over their label. Results are compared with the float64 reference on the CPU: a device
concords if it finds the same neighbours at the same distances. After that a small network learns to read
the digits on each device, with the same first parameters and batches; its parameters and losses have to be
those of the reference but for rounding.

cpu:0 runs its own kernels of the catalog (vector instructions, or Go in a build without cgo),
cpu:0 (compiled) the portable text that GPUs get too. Compiled programs are kept: a second run takes them from disk.`,
		Example: `  concord demo
  concord demo --device opencl:0 --json`,
		Args: cobra.ExactArgs(0),
	}
	cmd.Flags().StringArrayVar(&names, "device", nil, "`device` to run on besides the reference (repeat); all "+
		"when absent")
	return a.RunnableJSON(cmd, func(ctx context.Context, _ []string) error {
		data, err := loadDigits()
		if err != nil {
			return err
		}
		s, err := a.Open(app.Exactly)
		if err != nil {
			return err
		}
		targets, err := devices.Targets(ctx, s, names)
		if err != nil {
			return err
		}
		if !a.JSON {
			a.Printf("Handwritten digits: the nearest of %d images for each of %d others (%d pixels, k = %d).\n",
				data.vectors(), data.queries(), data.dim, data.k)
		}
		rows, networks, err := demoRows(ctx, a, s, data, targets)
		if err != nil {
			return err
		}
		return finishDemo(a, data, rows, networks)
	})
}

// referenceBatch is how many queries the reference does between two steps of the
// progress bar.
const referenceBatch = 50

// demoRows runs the reference and then every target, and after that the networks.
func demoRows(ctx context.Context, a *app.App, s *runtime.Session, data *digits,
	targets []devices.Target) ([]demoRow, []demoNetwork, error) {
	bar := a.Progress(data.batches(referenceBatch) + 2*len(targets) + 1)
	defer bar.End()
	bar.Doing("cpu:reference, in float64")
	ref, err := runNeighbours(ctx, s, devices.Target{Device: "cpu:reference"}, data, referenceBatch, bar.Step)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the reference, without which nothing can be judged: %w", err)
	}
	rows := []demoRow{ref.row(devices.Target{Label: "cpu:reference", Name: "float64"}, data)}
	rows[0].Verdict = judge
	if r := &rows[0]; !a.JSON {
		a.Printf("Reference: %s, %s, accuracy %.3f\n", r.Device, ui.DurationText(ui.Duration(float64(r.KernelMS))),
			float64(r.Accuracy))
	}
	for _, t := range targets {
		bar.Doing(t.Label)
		row := notRun(t, absent, t.Reason)
		if t.Device != "" {
			row = demoTargetRow(ctx, s, t, data, ref)
		}
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		rows = append(rows, row)
		bar.Step()
	}
	networks, err := demoNetworks(ctx, a, s, targets, bar)
	return rows, networks, err
}

func demoTargetRow(ctx context.Context, s *runtime.Session, t devices.Target, data *digits, ref *neighbours) demoRow {
	got, err := runNeighbours(ctx, s, t, data, data.queries(), func() {})
	if err != nil {
		row := notRun(t, failed, err.Error())
		if app.NotHere(err) {
			row.Verdict = absent
		}
		if b, ok := errors.AsType[*runtime.BuildError](err); ok {
			row.Reason += "\n" + b.Log
		}
		return row
	}
	row := got.row(t, data)
	diff, reason := got.compare(ref, data)
	row.MaxDifference, row.Reason, row.Verdict = app.Number(diff), reason, concords
	if reason != "" {
		row.Verdict = differs
	}
	return row
}

// finishDemo prints the rows and fails if an available device has wrong results.
func finishDemo(a *app.App, data *digits, rows []demoRow, networks []demoNetwork) error {
	counts := map[string]int{}
	for _, r := range rows {
		counts[r.Verdict]++
	}
	for _, r := range networks {
		counts[r.Verdict]++
	}
	bad := counts[differs] + counts[failed]
	err := a.Verdict(struct {
		Queries  int            `json:"queries"`
		Base     int            `json:"base"`
		Dim      int            `json:"dim"`
		K        int            `json:"k"`
		Results  []demoRow      `json:"results"`
		Networks []demoNetwork  `json:"networks"`
		Summary  map[string]int `json:"summary"` // of both
	}{data.queries(), data.vectors(), data.dim, data.k, rows, networks, counts},
		func() { writeDemo(a, rows, networks, counts[concords], bad) }, bad == 0)
	if err == nil && counts[concords] == 0 {
		err = fmt.Errorf("nothing was compared with the reference: %w", runtime.ErrNoDevice)
	}
	return err
}

// writeDemo prints a row for each available device, and below the table the missing ones; the
// reference was printed before.
func writeDemo(a *app.App, rows []demoRow, networks []demoNetwork, good, bad int) {
	rest := &strings.Builder{}
	t := ui.NewTable("DEVICE", "COMPILE", "UPLOAD", "KERNELS", "ACCURACY", "LARGEST DIFF", "VERDICT")
	for _, r := range rows {
		switch {
		case r.Verdict == judge:
			continue
		case r.Verdict == absent:
			fmt.Fprintf(rest, "%s %s: %s\n", a.Paint(ui.Yellow, "Not run:"), r.Device, ui.OneLine(ui.FirstLine(r.Reason)))
			continue
		case r.Built == "":
			t.Add(r.Device, paintVerdict(a, r.Verdict)+": "+ui.OneLine(ui.FirstLine(r.Reason)))
			continue
		}
		compile := r.Built
		if r.Built != driverNative {
			compile = fmt.Sprintf("%s (%s)", ui.DurationText(ui.Duration(float64(r.CompileMS))), r.Built)
		}
		verdict := paintVerdict(a, r.Verdict)
		if r.Reason != "" {
			verdict += ": " + ui.OneLine(r.Reason)
		}
		t.Add(r.Device, compile, ui.DurationText(ui.Duration(float64(r.UploadMS))),
			ui.DurationText(ui.Duration(float64(r.KernelMS))),
			fmt.Sprintf("%.3f", float64(r.Accuracy)), fmt.Sprint(float64(r.MaxDifference)), verdict)
	}
	a.Println()
	if len(t.Rows) > 1 {
		t.Write(a.Stdout, "")
		a.Println()
	}
	if len(networks) > 1 {
		writeNetworks(a, networks)
	}
	fmt.Fprint(a.Stdout, rest)
	for _, r := range rows {
		if _, log, more := strings.Cut(r.Reason, "\n"); more && r.Verdict == failed {
			a.Printf("\n%s:\n%s\n", r.Device, log)
		}
	}
	a.Printf("%d results concord with the reference's, %d do not.\n", good, bad)
}

// driverNative is the value of Built.From for kernels that need no compiler.
const driverNative = "native"

func paintVerdict(a *app.App, v string) string {
	switch v {
	case concords:
		return a.Paint(ui.Green, v)
	case differs, failed:
		return a.Paint(ui.Red, v)
	}
	return v
}

// row starts the row of a device that computed.
func (n *neighbours) row(t devices.Target, data *digits) demoRow {
	return demoRow{Device: t.Label, Name: t.Name, Built: n.built, CompileMS: app.Number(ui.Milliseconds(n.compile)),
		UploadMS: app.Number(ui.Milliseconds(n.upload)), KernelMS: app.Number(ui.Milliseconds(n.kernels)),
		Accuracy: app.Number(data.accuracy(n.indices))}
}

// notRun returns the row of a device that did not run.
func notRun(t devices.Target, verdict, reason string) demoRow {
	return demoRow{Device: t.Label, Name: t.Name, Verdict: verdict, Reason: reason,
		CompileMS: app.Null, UploadMS: app.Null, KernelMS: app.Null, Accuracy: app.Null,
		MaxDifference: app.Null}
}
