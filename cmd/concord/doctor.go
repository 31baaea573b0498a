package main

// concord doctor: available backends, missing ones, failures, and remedies.

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

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

func (a *app) doctorCommand() *cobra.Command {
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
	a.jsonFlag(cmd)
	cmd.RunE = a.do(func(ctx context.Context, _ []string) error {
		d, err := a.diagnose(ctx, "")
		if err != nil {
			return err
		}
		if a.json {
			err = a.print(d)
		} else {
			a.writeDiagnosis(d)
		}
		if err == nil && !d.OK {
			err = reported(exitFailed)
		}
		return err
	})
	return cmd
}

// diagnose looks at the machine, and runs the kernels on one device, or on all of them if it is "".
func (a *app) diagnose(ctx context.Context, only string) (*diagnosis, error) {
	s, err := a.open(exactly)
	if err != nil {
		return nil, err
	}
	d := &diagnosis{Version: version(), Remedies: []remedy{}, Checks: []check{}, OK: true}
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
func (a *app) writeDiagnosis(d *diagnosis) {
	w := a.stdout
	section := func(title string) { fmt.Fprintf(w, "\n%s\n", a.paint(bold, title)) }
	fmt.Fprintf(w, "concord %s\n%s\n%s\n", d.Version, d.Summary, d.Auto)
	section("Backends")
	t := a.deviceTable(d.Backends)
	t.write(w, "  ")
	section("Looked for")
	a.writeTried(d.Backends)
	section("Tools (hints only)")
	t = &table{}
	for _, h := range d.Tools {
		t.add(h.Name, h.String())
	}
	t.write(w, "  ")
	section("Device nodes")
	if len(d.Nodes) == 0 {
		fmt.Fprintln(w, "  none of /dev/dri, /dev/nvidia*, /dev/kfd")
	}
	t = &table{}
	for _, n := range d.Nodes {
		t.add(n.Path, n.Mode, n.Owner, n.access(), n.Remedy)
	}
	t.write(w, "  ")
	section("Environment")
	a.writeSettings(d.Environment)
	section("Kernel cache")
	fmt.Fprintf(w, "  %s\n", d.Cache)
	section("Host compiler")
	fmt.Fprintf(w, "  %s\n", d.Compiler)
	section(fmt.Sprintf("Self-check (y = a·x + y over %d numbers)", smokeN))
	a.writeChecks(d.Checks)
	if len(d.Remedies) > 0 {
		section("What would make more available")
		t = &table{}
		for _, r := range d.Remedies {
			t.add(r.Backend, r.Remedy)
		}
		t.write(w, "  ")
	}
}

// writeSettings prints the variables that are set, and how many are not.
func (a *app) writeSettings(list []setting) {
	t, unset := &table{}, 0
	for _, v := range list {
		if v.Set {
			t.add(v.Name, cmp.Or(v.Value, "(empty)"), v.Doc)
		} else {
			unset++
		}
	}
	t.write(a.stdout, "  ")
	fmt.Fprintf(a.stdout, "  %d settings of Concord are unset; concord doctor --json lists them with their defaults\n",
		unset)
}

func (a *app) writeTried(probes []runtime.Probe) {
	t := &table{}
	for _, p := range probes {
		var versions []string
		for _, v := range []struct{ what, version string }{
			{"driver", p.DriverVersion}, {"runtime", p.RuntimeVersion}, {"compiler", p.CompilerVersion},
		} {
			if v.version != "" {
				versions = append(versions, v.what+" "+v.version)
			}
		}
		t.add(p.Backend, "in "+ms(p.Elapsed), strings.Join(versions, ", "))
		for _, tried := range p.Tried {
			t.add("", "", oneLine(tried))
		}
		for _, l := range p.Libraries {
			t.add("", "", strings.Join(strings.Fields("open: "+l.Name+" "+l.Version+" "+oneLine(l.Path)), " "))
		}
	}
	t.write(a.stdout, "  ")
}

func (a *app) writeChecks(checks []check) {
	for _, c := range checks {
		colour := map[string]string{pass: green, fail: red, skip: yellow}[c.Result]
		what := c.Name
		if c.Implementation != "" {
			what += " (" + c.Implementation + ")"
		}
		took := ms(time.Duration(c.MS * float64(time.Millisecond)))
		fmt.Fprintf(a.stdout, "  %s  %-13s  %-24s  %s\n", a.paint(colour, c.Result), c.Device, what, took)
		for line := range strings.Lines(c.Error) {
			fmt.Fprintf(a.stdout, "        %s\n", strings.TrimRight(line, "\n"))
		}
		if c.Remedy != "" {
			fmt.Fprintf(a.stdout, "        what helps: %s\n", c.Remedy)
		}
	}
}

// doctorFor writes what doctor finds of one device, and returns what is wrong with it. It runs nothing on others,
// whose drivers may crash.
func (a *app) doctorFor(ctx context.Context, device string, w io.Writer) error {
	d, err := a.diagnose(ctx, device)
	if err != nil {
		return err
	}
	text := newApp(w, w)
	text.writeDiagnosis(d)
	for _, c := range d.Checks {
		if c.Device == device && c.Result == fail {
			return fmt.Errorf("%s: %s", c.Name, c.Error)
		}
	}
	return nil
}
