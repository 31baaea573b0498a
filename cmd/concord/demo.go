package main

// concord demo: handwritten digits are recognized by their nearest neighbours, and by a network, on
// every device. All devices must have the same results.

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/runtime"
)

// demoRow is the outcome of one device. If nothing ran, the numbers are null.
type demoRow struct {
	Device        string `json:"device"`
	Name          string `json:"name,omitempty"`
	Built         string `json:"built,omitempty"` // compiled, disk, memory or native
	CompileMS     number `json:"compile_ms"`
	UploadMS      number `json:"upload_ms"`
	KernelMS      number `json:"kernel_ms"`
	Accuracy      number `json:"accuracy"`
	MaxDifference number `json:"max_difference"`
	Verdict       string `json:"verdict"`
	Reason        string `json:"reason,omitempty"`
}

// The verdicts of a row.
const (
	judge    = "reference"
	concords = "concords"
	differs  = "differs"
	failed   = "failed"
	absent   = "not here"
)

func (a *app) demoCommand() *cobra.Command {
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
	a.jsonFlag(cmd)
	cmd.RunE = a.do(func(ctx context.Context, _ []string) error {
		data, err := loadDigits()
		if err != nil {
			return err
		}
		s, err := a.open(exactly)
		if err != nil {
			return err
		}
		targets, err := demoTargets(ctx, s, names)
		if err != nil {
			return err
		}
		if !a.json {
			fmt.Fprintf(a.stdout, "Handwritten digits: the nearest of %d images for each of %d others (%d pixels, k = %d).\n",
				data.vectors(), data.queries(), data.dim, data.k)
		}
		rows, networks, err := a.demoRows(ctx, s, data, targets)
		if err != nil {
			return err
		}
		return a.finishDemo(data, rows, networks)
	})
	return cmd
}

// referenceBatch is how many queries the reference does between two steps of the
// progress bar.
const referenceBatch = 50

// demoRows runs the reference and then every target, and after that the networks.
func (a *app) demoRows(ctx context.Context, s *runtime.Session, data *digits,
	targets []demoTarget) ([]demoRow, []demoNetwork, error) {
	bar := a.progress(data.batches(referenceBatch) + 2*len(targets) + 1)
	defer bar.end()
	bar.doing("cpu:reference, in float64")
	ref, err := runNeighbours(ctx, s, demoTarget{device: "cpu:reference"}, data, referenceBatch, bar.step)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the reference, without which nothing can be judged: %w", err)
	}
	rows := []demoRow{ref.row(demoTarget{label: "cpu:reference", name: "float64"}, data)}
	rows[0].Verdict = judge
	if r := &rows[0]; !a.json {
		fmt.Fprintf(a.stdout, "Reference: %s, %s, accuracy %.3f\n", r.Device, ms(duration(float64(r.KernelMS))),
			float64(r.Accuracy))
	}
	for _, t := range targets {
		bar.doing(t.label)
		row := t.nothing(absent, t.reason)
		if t.device != "" {
			row = demoTargetRow(ctx, s, t, data, ref)
		}
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		rows = append(rows, row)
		bar.step()
	}
	networks, err := a.demoNetworks(ctx, s, targets, bar)
	return rows, networks, err
}

func demoTargetRow(ctx context.Context, s *runtime.Session, t demoTarget, data *digits, ref *neighbours) demoRow {
	got, err := runNeighbours(ctx, s, t, data, data.queries(), func() {})
	if err != nil {
		row := t.nothing(failed, err.Error())
		if notHere(err) {
			row.Verdict = absent
		}
		if b, ok := errors.AsType[*runtime.BuildError](err); ok {
			row.Reason += "\n" + b.Log
		}
		return row
	}
	row := got.row(t, data)
	diff, reason := got.compare(ref, data)
	row.MaxDifference, row.Reason, row.Verdict = number(diff), reason, concords
	if reason != "" {
		row.Verdict = differs
	}
	return row
}

// finishDemo prints the rows and fails if an available device has wrong results.
func (a *app) finishDemo(data *digits, rows []demoRow, networks []demoNetwork) error {
	counts := map[string]int{}
	for _, r := range rows {
		counts[r.Verdict]++
	}
	for _, r := range networks {
		counts[r.Verdict]++
	}
	bad := counts[differs] + counts[failed]
	if a.json {
		if err := a.print(struct {
			Queries  int            `json:"queries"`
			Base     int            `json:"base"`
			Dim      int            `json:"dim"`
			K        int            `json:"k"`
			Results  []demoRow      `json:"results"`
			Networks []demoNetwork  `json:"networks"`
			Summary  map[string]int `json:"summary"` // of both
		}{data.queries(), data.vectors(), data.dim, data.k, rows, networks, counts}); err != nil {
			return err
		}
	} else {
		a.writeDemo(rows, networks, counts[concords], bad)
	}
	switch {
	case bad > 0:
		return reported(exitFailed)
	case counts[concords] == 0:
		return fmt.Errorf("nothing was compared with the reference: %w", runtime.ErrNoDevice)
	}
	return nil
}

// writeDemo prints a row for each available device, and below the table the missing ones; the
// reference was printed before.
func (a *app) writeDemo(rows []demoRow, networks []demoNetwork, good, bad int) {
	rest := &strings.Builder{}
	t := &table{}
	t.add("DEVICE", "COMPILE", "UPLOAD", "KERNELS", "ACCURACY", "LARGEST DIFF", "VERDICT")
	for _, r := range rows {
		switch {
		case r.Verdict == judge:
			continue
		case r.Verdict == absent:
			fmt.Fprintf(rest, "%s %s: %s\n", a.paint(yellow, "Not run:"), r.Device, oneLine(firstLine(r.Reason)))
			continue
		case r.Built == "":
			t.add(r.Device, a.paintVerdict(r.Verdict)+": "+oneLine(firstLine(r.Reason)))
			continue
		}
		compile := r.Built
		if r.Built != driverNative {
			compile = fmt.Sprintf("%s (%s)", ms(duration(float64(r.CompileMS))), r.Built)
		}
		verdict := a.paintVerdict(r.Verdict)
		if r.Reason != "" {
			verdict += ": " + oneLine(r.Reason)
		}
		t.add(r.Device, compile, ms(duration(float64(r.UploadMS))), ms(duration(float64(r.KernelMS))),
			fmt.Sprintf("%.3f", float64(r.Accuracy)), fmt.Sprint(float64(r.MaxDifference)), verdict)
	}
	fmt.Fprintln(a.stdout)
	if len(t.rows) > 1 {
		t.write(a.stdout, "")
		fmt.Fprintln(a.stdout)
	}
	if len(networks) > 1 {
		a.writeNetworks(networks)
	}
	fmt.Fprint(a.stdout, rest)
	for _, r := range rows {
		if _, log, more := strings.Cut(r.Reason, "\n"); more && r.Verdict == failed {
			fmt.Fprintf(a.stdout, "\n%s:\n%s\n", r.Device, log)
		}
	}
	fmt.Fprintf(a.stdout, "%d results concord with the reference's, %d do not.\n", good, bad)
}

// driverNative is the value of Built.From for kernels that need no compiler.
const driverNative = "native"

func (a *app) paintVerdict(v string) string {
	switch v {
	case concords:
		return a.paint(green, v)
	case differs, failed:
		return a.paint(red, v)
	}
	return v
}

// row starts the row of a device that computed.
func (n *neighbours) row(t demoTarget, data *digits) demoRow {
	return demoRow{Device: t.label, Name: t.name, Built: n.built, CompileMS: number(milliseconds(n.compile)),
		UploadMS: number(milliseconds(n.upload)), KernelMS: number(milliseconds(n.kernels)),
		Accuracy: number(data.accuracy(n.indices))}
}

// nothing returns the row of a device that did not run.
func (t *demoTarget) nothing(verdict, reason string) demoRow {
	return demoRow{Device: t.label, Name: t.name, Verdict: verdict, Reason: reason,
		CompileMS: unknown, UploadMS: unknown, KernelMS: unknown, Accuracy: unknown, MaxDifference: unknown}
}
