package program

// concord run --repeat: a launch whose result was wrong, once more.

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/runtime/validate"
)

// repeated is the document of run --repeat.
type repeated struct {
	Device    string     `json:"device"`
	Form      string     `json:"implementation"` // that ran
	Found     string     `json:"found_on"`       // the device and the implementation whose result was wrong
	Kernel    string     `json:"kernel"`
	Defines   []string   `json:"defines"`
	Args      []string   `json:"args"`
	Reference string     `json:"reference"`
	Rows      int        `json:"rows,omitempty"` // that were judged; none: all
	Arg       int        `json:"arg"`
	First     int        `json:"first"` // wrong element of it, or -1
	Worst     int        `json:"worst"`
	Got       app.Number `json:"got"`
	Want      app.Number `json:"want"`
	Tolerance app.Number `json:"tolerance"`
	Verdict   string     `json:"verdict"`
}

// repeatFile repeats the launch of a file.
func (f *runFlags) repeatFile(ctx context.Context, a *app.App, cmd *cobra.Command, file string) error {
	for _, other := range []string{"kernel", "global", "local", "arg", "out", "define", "include"} {
		if cmd.Flags().Changed(other) {
			return app.Usagef("--%s: with --repeat FILE has it", other)
		}
	}
	if !cmd.Flags().Changed("device") {
		var err error
		if f.device, err = validate.Device(file); err != nil {
			return err
		}
	}
	if err := app.CheckDevice(f.device); err != nil {
		return err
	}
	if f.timeout < 0 {
		return app.Usagef("--timeout %v: negative", f.timeout)
	}
	work := func(ctx context.Context) error { return repeat(ctx, a, f.device, file) }
	switch {
	case app.IsChild():
		return app.WithLimit(ctx, f.timeout, work)
	case f.timeout > 0 || !onCPU(f.device):
		args := []string{"run", "--repeat", "--device=" + f.device}
		if f.timeout > 0 {
			args = append(args, "--timeout="+f.timeout.String())
		}
		if a.JSON {
			args = append(args, "--json")
		}
		return a.RunInChild(ctx, f.timeout, f.device, "repeat "+file, append(args, "--", file)...)
	}
	return work(ctx)
}

// repeat repeats a launch in this process and prints the verdict.
func repeat(ctx context.Context, a *app.App, device, file string) error {
	s, err := a.Open(app.Exactly)
	if err != nil {
		return err
	}
	dev, err := s.Open(ctx, device)
	if err != nil {
		return fmt.Errorf("--device %s: %w", device, err)
	}
	d, err := validate.Repeat(ctx, dev, file)
	if err != nil {
		return err
	}
	v := d.Verdict
	doc := &repeated{Device: d.Device, Form: d.Implementation, Found: d.Found, Kernel: d.Kernel, Defines: d.Defines,
		Args: d.Args, Reference: d.Reference, Rows: len(d.Rows), Arg: d.Arg, First: d.First, Worst: v.At,
		Got: app.Number(v.Got), Want: app.Number(v.Want),
		Tolerance: app.Number(v.Tolerance), Verdict: "ok"}
	if !v.OK {
		doc.Verdict = "wrong"
	}
	if err := a.Show(doc, func() {
		a.Printf("Wrong when the file was written, on %s. Now, on %s (%s):\n%v\n", d.Found, d.Device, d.Implementation, d)
	}); err != nil {
		return err
	}
	if !v.OK {
		return app.Reported(app.ExitFailed)
	}
	return nil
}
