package main

// concord parity: the catalog on each device against the reference.

import (
	"context"
	"errors"
	"fmt"
	"sort"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/parity"
)

// parityResult is one verdict. An error that is not a finite number is null.
type parityResult struct {
	Device    string `json:"device"`
	Kernel    string `json:"kernel"`
	DType     string `json:"dtype"`
	Shape     string `json:"shape"`
	MaxError  number `json:"max_error"`
	Tolerance number `json:"tolerance"`
	Verdict   string `json:"verdict"`
	Reason    string `json:"reason,omitempty"`
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

func (a *app) parityCommand() *cobra.Command {
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
	a.jsonFlag(cmd)
	cmd.RunE = a.do(func(ctx context.Context, _ []string) error {
		if err := inCatalog("--kernel ", names); err != nil {
			return err
		}
		for _, name := range devices {
			if err := checkDevice(name); err != nil {
				return err
			}
		}
		s, err := a.open(exactly)
		if err != nil {
			return err
		}
		bar := a.progress(0)
		bar.doing("the first reference results")
		results, err := parity.Run(ctx, parity.Options{Session: s, Devices: devices, Kernels: names,
			Progress: func(done, total int, last parity.Result) {
				bar.doing(last.Device + " " + last.Kernel)
				bar.at(done, total)
			}})
		bar.end()
		if err != nil {
			return err
		}
		var probes []runtime.Probe
		if len(devices) == 0 {
			if probes, err = s.Discover(ctx); err != nil {
				return err
			}
		}
		return a.finishParity(results, probes)
	})
	return cmd
}

// finishParity prints the results, and the probed backends that have no device.
func (a *app) finishParity(results []parity.Result, probes []runtime.Probe) error {
	var sum paritySummary
	list := make([]parityResult, len(results))
	for i, r := range results {
		sum.count(r.Verdict)
		list[i] = parityResult{r.Device, r.Kernel, r.DType, r.Shape, number(r.MaxError), number(r.Tolerance), r.Verdict,
			r.Reason}
	}
	if a.json {
		if err := a.print(struct {
			Results []parityResult `json:"results"`
			Summary paritySummary  `json:"summary"`
		}{list, sum}); err != nil {
			return err
		}
	} else {
		a.writeParity(list, sum, probes)
	}
	switch {
	case sum.Fail > 0:
		return reported(exitFailed)
	case len(results) == 0:
		return errors.Join(errors.New("nothing was checked"), runtime.ErrNoDevice)
	}
	return nil
}

// writeParity prints one row per device and kernel, every failure, and the backends that are
// not in the build or have no device.
func (a *app) writeParity(list []parityResult, sum paritySummary, probes []runtime.Probe) {
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
	t := &table{}
	t.add("DEVICE", "KERNEL", "TYPE", "PASS", "FAIL", "SKIP", "WORST ERROR", "ALLOWED", "AT")
	for _, k := range order {
		c, w := counts[k], worst[k]
		failing := fmt.Sprint(c.Fail)
		if c.Fail > 0 {
			failing = a.paint(red, failing)
		}
		t.add(k.device, k.kernel, k.dtype, fmt.Sprint(c.Pass), failing, fmt.Sprint(c.Skip),
			fmt.Sprintf("%.3g", float64(w.MaxError)), fmt.Sprintf("%.3g", float64(w.Tolerance)), w.Shape)
	}
	t.write(a.stdout, "")
	a.writeReasons(list)
	for _, p := range probes {
		if len(p.Devices) == 0 {
			fmt.Fprintf(a.stdout, "%s all of %s: %s\n", a.paint(yellow, "skip"), p.Backend, oneLine(p.Reason))
		}
	}
	fmt.Fprintf(a.stdout, "\n%d pass, %d fail, %d skip\n", sum.Pass, sum.Fail, sum.Skip)
}

// share is the part of its bound that a result uses.
func share(r parityResult) float64 {
	if r.MaxError == 0 {
		return 0
	}
	return float64(r.MaxError / r.Tolerance)
}

// writeReasons prints every failure, and each reason of skips once.
func (a *app) writeReasons(list []parityResult) {
	skips := map[string]int{}
	var reasons []string
	for _, r := range list {
		switch r.Verdict {
		case parity.Pass:
		case parity.Skip:
			reason := r.Device + ": " + oneLine(r.Reason)
			if skips[reason] == 0 {
				reasons = append(reasons, reason)
			}
			skips[reason]++
		default:
			fmt.Fprintf(a.stdout, "%s %s: %s %s %s: %s\n", a.paint(red, "fail"), r.Device, r.Kernel, r.DType, r.Shape,
				oneLine(r.Reason))
		}
	}
	for _, reason := range reasons {
		fmt.Fprintf(a.stdout, "%s %d of %s\n", a.paint(yellow, "skip"), skips[reason], reason)
	}
}
