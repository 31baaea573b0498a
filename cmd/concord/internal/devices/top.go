package devices

// concord top: the activity of the devices, live.

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/telemetry"
)

// topOptions are the flags of top.
type topOptions struct {
	interval time.Duration
	count    int // 0: until interrupted
	device   string
}

// Top returns the command top.
func Top(a *app.App) *cobra.Command {
	var o topOptions
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show the activity of the devices live: use, memory, temperature, power, clocks, processes",
		Long: `Top reads the sensors of NVIDIA devices through NVML, of AMD devices through ROCm
SMI, and the processor's, and shows them until Ctrl-C. A dash is a value that the device
does not report. On a narrow terminal lines are cut and end with …; a pipe gets whole lines.
Top runs nothing on any device.

With --json it takes one sample unless --count asks for more.`,
		Example: `  concord top
  concord top --interval 200ms --device cuda:0
  concord top --json --count 10`,
		Args: cobra.ExactArgs(0),
	}
	cmd.Flags().DurationVar(&o.interval, "interval", time.Second, "`time` between samples")
	cmd.Flags().IntVar(&o.count, "count", 0, "`number` of samples; 0: until Ctrl-C, or one with --json")
	cmd.Flags().StringVar(&o.device, "device", "", "show only this `device`, or those of this backend")
	return a.RunnableJSON(cmd, func(ctx context.Context, _ []string) error {
		if o.interval <= 0 {
			return app.Usagef("--interval %v: not positive", o.interval)
		}
		if o.count < 0 {
			return app.Usagef("--count %d: negative", o.count)
		}
		if a.JSON && o.count == 0 {
			o.count = 1
		}
		m, err := openMeter(ctx, a, o.device)
		if err != nil {
			return orInterrupted(ctx, err)
		}
		return orInterrupted(ctx, top(ctx, a, m, o))
	})
}

// orInterrupted returns err, or nil for an interrupt, which is the usual end of top.
func orInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// openMeter returns a meter for a device or backend, or for everything.
func openMeter(ctx context.Context, a *app.App, device string) (*meter, error) {
	s, err := a.Open(app.Exactly)
	if err != nil {
		return nil, err
	}
	readers := append(telemetry.Readers(), &processor{info: processorInfo(ctx, s), stat: "/proc/stat"})
	if device != "" {
		if err := app.CheckDevice(device); err != nil {
			return nil, err
		}
		backend, _, _ := strings.Cut(device, ":")
		var names []string
		for _, t := range readers {
			names = append(names, t.Name())
		}
		if !slices.Contains(names, backend) {
			return nil, app.Usagef("--device %s: top knows the sensors of %s", device, strings.Join(names, ", "))
		}
		readers = slices.DeleteFunc(readers, func(t telemetry.Reader) bool { return t.Name() != backend })
	}
	probes, err := s.Discover(ctx)
	if err != nil {
		return nil, err
	}
	return newMeter(s.Config(), probes, readers), nil
}

// processorInfo returns a function that returns the present Info of cpu:0. The session closes the
// device that it opens.
func processorInfo(ctx context.Context, s *runtime.Session) func() runtime.Info {
	open := sync.OnceValues(func() (*runtime.Device, error) { return s.Open(ctx, "cpu:0") })
	return func() runtime.Info {
		dev, err := open()
		if err != nil {
			return runtime.Info{} // its numbers are unknown
		}
		return dev.Info()
	}
}

// top takes samples and shows them. With --json the samples are collected and printed at the end or
// after an interrupt.
func top(ctx context.Context, a *app.App, m *meter, o topOptions) error {
	var kept []reading
	var missing []absence
	screen := newScreen(a.Stdout)
	for n := 0; ; {
		var list []reading
		list, missing = m.read(ctx)
		if ctx.Err() != nil {
			break
		}
		list = slices.DeleteFunc(list, func(r reading) bool { return !r.matches(o.device) })
		if len(list) == 0 {
			return nothing(o.device, missing)
		}
		if a.JSON {
			kept = append(kept, list...)
		} else {
			var block bytes.Buffer
			writeReadings(a, &block, list)
			if n == 0 || screen.redraws {
				writeAbsences(a, &block, missing)
			}
			if err := screen.show(block.String(), n > 0); err != nil {
				return err
			}
		}
		if n++; n == o.count || !sleep(ctx, o.interval) {
			break
		}
	}
	if !a.JSON {
		return nil
	}
	return a.Document(struct {
		Samples []reading `json:"samples"`
		Missing []absence `json:"missing"`
	}{slices.Concat([]reading{}, kept), missing})
}

// matches reports whether the reading belongs to a device or backend; "" matches all.
func (r *reading) matches(device string) bool {
	return device == "" || device == r.Backend || device == r.Device
}

// nothing returns the error for the case without any reading.
func nothing(device string, missing []absence) error {
	reasons := []string{"no sensors of such a device"}
	for i, m := range missing {
		reasons = append(reasons[:i], m.Backend+": "+strings.TrimSuffix(m.Reason, ": "+driver.ErrNoDevice.Error()))
	}
	if device == "" {
		return fmt.Errorf("nothing to show: %s: %w", strings.Join(reasons, "; "), driver.ErrNoDevice)
	}
	return fmt.Errorf("--device %s: %s: %w", device, strings.Join(reasons, "; "), driver.ErrNoDevice)
}

// writeReadings prints a row for each device, and below them their processes.
func writeReadings(a *app.App, w io.Writer, list []reading) {
	t := ui.NewTable("DEVICE", "BUSY", "MEM BUSY", "MEMORY", "TEMP", "POWER", "CLOCK", "MEM CLOCK", "FAN", "ECC",
		"HELD BACK BY", "NAME")
	processes := &ui.Table{}
	for i := range list {
		r := &list[i]
		t.Add(a.Paint(ui.Bold, r.label()), shown(r.Busy, "%.0f %%"), shown(r.MemoryBusy, "%.0f %%"),
			ofBytes(r.MemoryUsed, r.MemoryTotal),
			shown(r.Temperature, "%.0f °C"), of(r.Power, r.PowerLimit, "W"), of(r.Clock, r.MaxClock, "MHz"),
			of(r.MemoryClock, r.MaxMemoryClock, "MHz"), shown(r.Fan, "%.0f %%"), eccText(&r.Sample), throttleText(r.Throttle),
			r.Name)
		for _, p := range r.Processes {
			if len(processes.Rows) == 0 {
				processes.Add("PROCESS", "DEVICE", "MEMORY", "NAME")
			}
			processes.Add(strconv.Itoa(p.PID), r.label(), ofBytes(p.MemoryUsed, nil), ui.OneLine(p.Name))
		}
	}
	t.Write(w, "")
	if len(processes.Rows) > 0 {
		fmt.Fprintln(w)
		processes.Write(w, "")
	}
}

func writeAbsences(a *app.App, w io.Writer, missing []absence) {
	if len(missing) == 0 {
		return
	}
	fmt.Fprintln(w)
	for _, m := range missing {
		fmt.Fprintf(w, "%s: %s\n", m.Backend, m.Reason)
	}
}

// dash stands for an unknown value.
const dash = "-"

// shown is a number, or a dash.
func shown(n *float64, format string) string {
	if n == nil {
		return dash
	}
	return fmt.Sprintf(format, *n)
}

// of returns a text such as "210 of 400 W".
func of(n, limit *float64, unit string) string {
	switch {
	case n == nil && limit == nil:
		return dash
	case limit == nil:
		return fmt.Sprintf("%.0f %s", *n, unit)
	}
	return shown(n, "%.0f") + fmt.Sprintf(" of %.0f %s", *limit, unit)
}

// ofBytes returns a text such as "1.0 GiB of 40.0 GiB".
func ofBytes(n, total *int64) string {
	size := func(n *int64) string {
		if n == nil {
			return dash
		}
		return driver.FormatBytes(*n)
	}
	if total == nil {
		return size(n)
	}
	return size(n) + " of " + size(total)
}

// eccText returns "on", with the number of errors if there were any.
func eccText(s *telemetry.Sample) string {
	text := dash
	if s.ECC != nil {
		text = map[bool]string{true: "on", false: "off"}[*s.ECC]
	}
	for _, n := range []struct {
		count *int64
		what  string
	}{{s.ECCCorrected, "corrected"}, {s.ECCUncorrected, "uncorrected"}} {
		if n.count != nil && *n.count > 0 {
			text += fmt.Sprintf(", %d %s", *n.count, n.what)
		}
	}
	return text
}

func throttleText(words []string) string {
	switch {
	case words == nil:
		return dash
	case len(words) == 0:
		return "nothing"
	}
	return strings.Join(words, ", ")
}

// screen is the output of top: a terminal is redrawn in place, any other output gets one block
// after the other.
type screen struct {
	w       io.Writer
	redraws bool
	size    func() (width, height int)
}

func newScreen(w io.Writer) *screen {
	s := &screen{w: w}
	if f := ui.FileOf(w); ui.IsTerminal(w) && os.Getenv("TERM") != "dumb" {
		s.redraws = true
		s.size = func() (int, int) {
			width, height, err := term.GetSize(int(f.Fd()))
			if err != nil || width <= 0 || height <= 0 { // a terminal without a set size reports 0
				return 80, 24
			}
			return width, height
		}
	}
	return s
}

// show prints a block, in the place of the one before on a terminal.
func (s *screen) show(block string, after bool) error {
	if !s.redraws {
		if after {
			block = "\n" + block
		}
		_, err := io.WriteString(s.w, block)
		return err
	}
	width, height := s.size()
	lines := strings.Split(strings.TrimRight(block, "\n"), "\n")
	lines = lines[:min(len(lines), max(height-1, 1))]
	var b strings.Builder
	if !after {
		b.WriteString("\x1b[2J") // clear once: clearing each time flickers
	}
	b.WriteString("\x1b[H")
	for _, line := range lines {
		b.WriteString(cut(line, width) + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	_, err := io.WriteString(s.w, b.String())
	return err
}

// cut shortens a line to the width of the terminal. A line that was cut loses its colours and ends
// with an ellipsis: a wrapped line would shift all others.
func cut(line string, columns int) string {
	if ui.Width(line) <= columns {
		return line
	}
	runes := []rune(ui.Escapes.ReplaceAllString(line, ""))
	return string(runes[:max(columns-1, 0)]) + "…"
}
