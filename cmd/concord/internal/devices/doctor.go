package devices

// concord doctor: available backends, missing ones, failures, and remedies.

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// diagnosis is the document of doctor.
type diagnosis struct {
	Version     string          `json:"version"`
	Summary     string          `json:"summary"`
	Auto        opened          `json:"auto"`
	Backends    []runtime.Probe `json:"backends"`
	Remedies    []remedy        `json:"remedies"`
	Tools       []tool          `json:"tools"`
	Nodes       []node          `json:"device_nodes"`
	Environment []setting       `json:"environment"`
	Cache       cacheState      `json:"cache"`
	Compiler    string          `json:"host_compiler"`
	Checks      []check         `json:"checks"`
	OK          bool            `json:"ok"`
}

// opened is the device that a program gets if it names none.
type opened struct {
	Setting string `json:"setting"` // CONCORD_DEVICE, or auto
	Device  string `json:"device,omitempty"`
	Error   string `json:"error,omitempty"`
}

func (o opened) String() string {
	if o.Error != "" {
		return fmt.Sprintf("%s does not open: %s", o.Setting, o.Error)
	}
	return fmt.Sprintf("%s opens %s", o.Setting, o.Device)
}

// remedy is an instruction that would make a backend available.
type remedy struct {
	Backend string `json:"backend"`
	Reason  string `json:"reason"`
	Remedy  string `json:"remedy"`
}

// Doctor returns the command doctor.
func Doctor(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the machine: libraries, permissions, settings, a kernel on every device",
		Long: `Doctor shows the libraries and tools that it looked for, and runs a small kernel on
every device. It succeeds if every available device passes; a missing backend is no
failure, but a CONCORD_DEVICE that does not open is one.`,
		Example: `  concord doctor
  concord doctor --json`,
		Args: cobra.ExactArgs(0),
	}
	return a.RunnableJSON(cmd, func(ctx context.Context, _ []string) error {
		d, err := diagnose(ctx, a, "")
		if err != nil {
			return err
		}
		return a.Verdict(d, func() { writeDiagnosis(a, d) }, d.OK)
	})
}

// diagnose looks at the machine, and runs the kernels on one device, or on all of them if it is "".
func diagnose(ctx context.Context, a *app.App, only string) (*diagnosis, error) {
	s, err := a.Open(app.Exactly)
	if err != nil {
		return nil, err
	}
	d := &diagnosis{Version: app.Version(), Remedies: []remedy{}, Checks: []check{}, OK: true}
	if d.Backends, err = s.Discover(ctx); err != nil {
		return nil, err
	}
	if d.Summary, err = s.Summary(ctx); err != nil {
		return nil, err
	}
	if d.Cache, err = stateOf(s); err != nil {
		d.Cache.Off = err.Error()
	}
	d.Auto.Setting = cmp.Or(s.Config().Device, "auto")
	if dev, err := s.Open(ctx, "auto"); err != nil {
		d.Auto.Error, d.OK = err.Error(), false
	} else {
		d.Auto.Device = dev.Info().ID
		if err := dev.Close(); err != nil {
			d.Auto.Error, d.OK = err.Error(), false
		}
	}
	d.Environment = settings()
	d.Nodes = deviceNodes()
	d.Tools = hints(ctx, s.Config().ProbeTimeout)
	d.Compiler = "none"
	for _, p := range d.Backends {
		if p.Remedy != "" {
			d.Remedies = append(d.Remedies, remedy{p.Backend, p.Reason, p.Remedy})
		}
		if p.Backend == "cpu" && p.CompilerVersion != "" {
			d.Compiler = p.CompilerVersion
		}
		if p.State != driver.Available { // a fake cannot be opened
			continue
		}
		for _, info := range p.Devices {
			if only == "" || only == info.ID {
				d.Checks = append(d.Checks, smoke(ctx, s, info.ID)...)
			}
		}
	}
	for _, c := range d.Checks {
		d.OK = d.OK && c.Result != fail
	}
	return d, ctx.Err()
}

// writeDiagnosis prints the document as text.
func writeDiagnosis(a *app.App, d *diagnosis) {
	w := a.Stdout
	section := func(title string) { fmt.Fprintf(w, "\n%s\n", a.Paint(ui.Bold, title)) }
	fmt.Fprintf(w, "concord %s\n%s\n%s\n", d.Version, d.Summary, d.Auto)
	section("Backends")
	t := deviceTable(a, d.Backends)
	t.Write(w, "  ")
	section("Looked for")
	writeTried(a, d.Backends)
	section("Tools (hints only)")
	t = &ui.Table{}
	for _, h := range d.Tools {
		t.Add(h.Name, h.String())
	}
	t.Write(w, "  ")
	section("Device nodes")
	if len(d.Nodes) == 0 {
		fmt.Fprintln(w, "  none of /dev/dri, /dev/nvidia*, /dev/kfd")
	}
	t = &ui.Table{}
	for _, n := range d.Nodes {
		t.Add(n.Path, n.Mode, n.Owner, n.access(), n.Remedy)
	}
	t.Write(w, "  ")
	section("Environment")
	writeSettings(a, d.Environment)
	section("Kernel cache")
	fmt.Fprintf(w, "  %s\n", d.Cache)
	section("Host compiler")
	fmt.Fprintf(w, "  %s\n", d.Compiler)
	section(fmt.Sprintf("Self-check (y = a·x + y over %d numbers)", smokeN))
	writeChecks(a, d.Checks)
	if len(d.Remedies) > 0 {
		section("What would make more available")
		t = &ui.Table{}
		for _, r := range d.Remedies {
			t.Add(r.Backend, r.Remedy)
		}
		t.Write(w, "  ")
	}
}

// writeSettings prints the variables that are set, and how many are not.
func writeSettings(a *app.App, list []setting) {
	t, unset := &ui.Table{}, 0
	for _, v := range list {
		if v.Set {
			t.Add(v.Name, cmp.Or(v.Value, "(empty)"), v.Doc)
		} else {
			unset++
		}
	}
	t.Write(a.Stdout, "  ")
	a.Printf("  %d settings of Concord are unset; concord doctor --json lists them with their defaults\n", unset)
}

func writeTried(a *app.App, probes []runtime.Probe) {
	t := &ui.Table{}
	for _, p := range probes {
		var versions []string
		for _, v := range []struct{ what, version string }{
			{"driver", p.DriverVersion}, {"runtime", p.RuntimeVersion}, {"compiler", p.CompilerVersion},
		} {
			if v.version != "" {
				versions = append(versions, v.what+" "+v.version)
			}
		}
		t.Add(p.Backend, "in "+ui.DurationText(p.Elapsed), strings.Join(versions, ", "))
		for _, tried := range p.Tried {
			t.Add("", "", ui.OneLine(tried))
		}
		for _, l := range p.Libraries {
			t.Add("", "", strings.Join(strings.Fields("open: "+l.Name+" "+l.Version+" "+ui.OneLine(l.Path)), " "))
		}
	}
	t.Write(a.Stdout, "  ")
}

func writeChecks(a *app.App, checks []check) {
	for _, c := range checks {
		colour := map[string]string{pass: ui.Green, fail: ui.Red, skip: ui.Yellow}[c.Result]
		what := c.Name
		if c.Implementation != "" {
			what += " (" + c.Implementation + ")"
		}
		took := ui.DurationText(time.Duration(c.MS * float64(time.Millisecond)))
		a.Printf("  %s  %-13s  %-24s  %s\n", a.Paint(colour, c.Result), c.Device, what, took)
		for line := range strings.Lines(c.Error) {
			a.Printf("        %s\n", strings.TrimRight(line, "\n"))
		}
		if c.Remedy != "" {
			a.Printf("        what helps: %s\n", c.Remedy)
		}
	}
}

// DoctorFor writes what doctor finds of one device, and returns what is wrong with it. It runs nothing on others,
// whose drivers may crash.
func DoctorFor(ctx context.Context, a *app.App, device string, w io.Writer) error {
	d, err := diagnose(ctx, a, device)
	if err != nil {
		return err
	}
	text := app.New(w, w)
	writeDiagnosis(text, d)
	for _, c := range d.Checks {
		if c.Device == device && c.Result == fail {
			return fmt.Errorf("%s: %s", c.Name, c.Error)
		}
	}
	return nil
}
