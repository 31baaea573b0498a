package checks

// concord parity: the catalog on each device against the reference.

import (
	"context"
	"errors"
	"fmt"
	"sort"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/program"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/parity"
)

// parityResult is one verdict. An error that is not a finite number is null.
type parityResult struct {
	Device    string     `json:"device"`
	Kernel    string     `json:"kernel"`
	DType     string     `json:"dtype"`
	Shape     string     `json:"shape"`
	MaxError  app.Number `json:"max_error"`
	Tolerance app.Number `json:"tolerance"`
	Verdict   string     `json:"verdict"`
	Reason    string     `json:"reason,omitempty"`
}

// paritySummary counts verdicts.
type paritySummary struct {
	Pass int `json:"pass"`
	Fail int `json:"fail"`
	Skip int `json:"skip"`
}

func (s *paritySummary) count(verdict string) {
	switch verdict {
	case parity.Pass:
		s.Pass++
	case parity.Skip:
		s.Skip++
	default:
		s.Fail++
	}
}

// Parity returns the command parity.
func Parity(a *app.App) *cobra.Command {
	var devices, names []string
	cmd := &cobra.Command{
		Use:   "parity",
		Short: "Check every kernel of the catalog on each device against the reference",
		Long: `Parity runs the kernel catalog on devices and compares every element with
cpu:reference, which computes in float64, within the bound that the kernel states.
It fails if any result does. A skip names the requirement that is missing.

The whole catalog is over 2,000 launches on each device. The first run also compiles some
hundred programs, which takes about a minute; afterwards they come from the kernel cache,
in seconds. --kernel and --device narrow it.`,
		Example: `  concord parity --device cpu:0 --kernel saxpy
  concord parity --kernel gemm --kernel softmax --json`,
		Args: cobra.ExactArgs(0),
	}
	cmd.Flags().StringArrayVar(&devices, "device", nil, "`device` to check (repeat); all when absent")
	cmd.Flags().StringArrayVar(&names, "kernel", nil, "`kernel` or family to check (repeat); all when absent")
	return a.RunnableJSON(cmd, func(ctx context.Context, _ []string) error {
		if err := program.InCatalog("--kernel ", names); err != nil {
			return err
		}
		for _, name := range devices {
			if err := app.CheckDevice(name); err != nil {
				return err
			}
		}
		a.Untuned()
		s, err := a.Open(app.Exactly)
		if err != nil {
			return err
		}
		bar := a.Progress(0)
		bar.Doing("the first reference results")
		results, err := parity.Run(ctx, parity.Options{Session: s, Devices: devices, Kernels: names,
			Progress: func(done, total int, last parity.Result) {
				bar.Doing(last.Device + " " + last.Kernel)
				bar.At(done, total)
			}})
		bar.End()
		if err != nil {
			return err
		}
		var probes []runtime.Probe
		if len(devices) == 0 {
			if probes, err = s.Discover(ctx); err != nil {
				return err
			}
		}
		return finishParity(a, results, probes)
	})
}

// finishParity prints the results, and the probed backends that have no device.
func finishParity(a *app.App, results []parity.Result, probes []runtime.Probe) error {
	var sum paritySummary
	list := make([]parityResult, len(results))
	for i, r := range results {
		sum.count(r.Verdict)
		list[i] = parityResult{r.Device, r.Kernel, r.DType, r.Shape, app.Number(r.MaxError), app.Number(r.Tolerance),
			r.Verdict,
			r.Reason}
	}
	err := a.Verdict(struct {
		Results []parityResult `json:"results"`
		Summary paritySummary  `json:"summary"`
	}{list, sum}, func() { writeParity(a, list, sum, probes) }, sum.Fail == 0)
	if err == nil && len(results) == 0 {
		err = errors.Join(errors.New("nothing was checked"), runtime.ErrNoDevice)
	}
	return err
}

// writeParity prints one row per device and kernel, every failure, and the backends that are
// not in the build or have no device.
func writeParity(a *app.App, list []parityResult, sum paritySummary, probes []runtime.Probe) {
	type key struct{ device, kernel, dtype string }
	counts := map[key]*paritySummary{}
	worst := map[key]parityResult{}
	var order []key
	for _, r := range list {
		k := key{r.Device, r.Kernel, r.DType}
		if counts[k] == nil {
			counts[k] = &paritySummary{}
			order = append(order, k)
		}
		counts[k].count(r.Verdict)
		if share(r) >= share(worst[k]) {
			worst[k] = r
		}
	}
	sort.SliceStable(order, func(i, j int) bool { return order[i].device < order[j].device })
	t := ui.NewTable("DEVICE", "KERNEL", "TYPE", "PASS", "FAIL", "SKIP", "WORST ERROR", "ALLOWED", "AT")
	for _, k := range order {
		c, w := counts[k], worst[k]
		failing := fmt.Sprint(c.Fail)
		if c.Fail > 0 {
			failing = a.Paint(ui.Red, failing)
		}
		t.Add(k.device, k.kernel, k.dtype, fmt.Sprint(c.Pass), failing, fmt.Sprint(c.Skip),
			fmt.Sprintf("%.3g", float64(w.MaxError)), fmt.Sprintf("%.3g", float64(w.Tolerance)), w.Shape)
	}
	t.Write(a.Stdout, "")
	writeReasons(a, list)
	for _, p := range probes {
		if len(p.Devices) == 0 {
			a.Printf("%s all of %s: %s\n", a.Paint(ui.Yellow, "skip"), p.Backend, ui.OneLine(p.Reason))
		}
	}
	a.Printf("\n%d pass, %d fail, %d skip\n", sum.Pass, sum.Fail, sum.Skip)
}

// share is the part of its bound that a result uses.
func share(r parityResult) float64 {
	if r.MaxError == 0 {
		return 0
	}
	return float64(r.MaxError / r.Tolerance)
}

// writeReasons prints every failure, and each reason of skips once.
func writeReasons(a *app.App, list []parityResult) {
	skips := map[string]int{}
	var reasons []string
	for _, r := range list {
		switch r.Verdict {
		case parity.Pass:
		case parity.Skip:
			reason := r.Device + ": " + ui.OneLine(r.Reason)
			if skips[reason] == 0 {
				reasons = append(reasons, reason)
			}
			skips[reason]++
		default:
			a.Printf("%s %s: %s %s %s: %s\n", a.Paint(ui.Red, "fail"), r.Device, r.Kernel, r.DType, r.Shape,
				ui.OneLine(r.Reason))
		}
	}
	for _, reason := range reasons {
		a.Printf("%s %d of %s\n", a.Paint(ui.Yellow, "skip"), skips[reason], reason)
	}
}
