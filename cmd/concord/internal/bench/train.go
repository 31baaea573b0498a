package bench

// concord bench train: training of networks of four sizes, on the CPU and beside it on other devices.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/devices"
	"github.com/concord-compute/concord/cmd/concord/internal/files"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/nn"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/tune"
	"github.com/concord-compute/concord/tensor"
)

// network is a size of network: dense layers of these widths with ReLU, for the pixels of an image and ten classes. An
// epoch has so many steps.
type network struct {
	name   string
	widths []int
	steps  int
}

// pixels and digits are the sizes of an example and of a result.
const pixels, digits = 784, 10

// networks have less than one, some, some ten and more than a hundred million parameters.
var networks = []network{
	{"S", []int{512, 256}, 32},
	{"M", []int{2048, 1024}, 16},
	{"L", []int{4096, 4096, 1024}, 4},
	{"XL", []int{8192, 8192, 4096}, 2},
}

// parameters returns the number of weights and biases.
func (n network) parameters() (count int) {
	in := pixels
	for _, out := range append(slices.Clone(n.widths), digits) {
		count += (in + 1) * out
		in = out
	}
	return count
}

func (n network) layers() (list []nn.Layer) {
	for _, out := range n.widths {
		list = append(list, nn.Dense{Out: out, Act: nn.ReLU})
	}
	return append(list, nn.Dense{Out: digits})
}

// trained is the rate of one network on one device.
type trained struct {
	Network    string     `json:"network"`
	Parameters int        `json:"parameters"`
	Batch      int        `json:"batch"`
	Device     string     `json:"device"`
	Name       string     `json:"name"`
	Rate       app.Number `json:"examples_per_second"` // the median of epochs
	Spread     app.Number `json:"spread"`              // from the 10th to the 90th percentile
	StepMS     app.Number `json:"step_ms"`
	GFLOPS     app.Number `json:"gflops"` // of the products
	VsCPU      app.Number `json:"vs_cpu"` // of its rate
	Reason     string     `json:"reason,omitempty"`

	// With --compare. Change is that of the time, 0.1 is a tenth slower, and Noise the change that counts.
	Baseline app.Number `json:"baseline,omitzero"`
	Change   app.Number `json:"change,omitzero"`
	Noise    app.Number `json:"noise,omitzero"`
	Slower   bool       `json:"slower,omitempty"`

	failed bool
	rates  []float64 // of epochs
	again  func() ([]float64, error)
}

// sum fills in what follows from the rates of epochs.
func (t *trained) sum() {
	m := summed(slices.Clone(t.rates))
	t.Rate, t.Spread = app.Number(m.median), app.Number(m.spread)
	t.StepMS = app.Number(1000 * float64(t.Batch) / m.median)
	t.GFLOPS = app.Number(6e-9 * float64(t.Parameters) * m.median) // each weight, forward and twice backward
}

// operation is the name of the rate in a baseline.
func (t *trained) operation() string { return fmt.Sprintf("train %s, batch %d", t.Network, t.Batch) }

// trainFlags are the flags of bench train.
type trainFlags struct {
	devices, sizes    []string
	batch             int
	each              time.Duration
	baseline, compare string
}

// fewestEpochs are measured of each network after the first one, in which programs are built.
const fewestEpochs = 3

// fewest is as many, or those that a comparison takes.
func (f *trainFlags) fewest() int {
	if f.baseline != "" || f.compare != "" {
		return fewestRounds
	}
	return fewestEpochs
}

func trainCommand(a *app.App) *cobra.Command {
	var f trainFlags
	cmd := &cobra.Command{
		Use:   "train",
		Short: "Measure how fast networks of four sizes train on the CPU and on devices beside it",
		Long: `Train measures examples per second of training: Adam, cross entropy, dense layers with ReLU for
images of 784 pixels and ten classes, in float. Examples are random and on the device before. The
networks of --size:

` + aboutNetworks() + `
The CPU is measured first and the others beside it; without --device these are what auto opens. A rate is the
median of epochs of a few steps, after one in which programs are built. A network that does not fit in what a
device has free is left out.

--baseline writes the rates to a file, with those of each epoch and the names of the devices. --compare
compares what it measures with such a file, and fails if something has become slower by more than the noise,
as concord bench --compare does; with a file that has no epochs, if a rate is less than nine tenths of the one
there. What seems slower is measured up to three times more before it counts. Rates of the file that
were not measured are named, and do not fail.`,
		Example: `  concord bench train
  concord bench train --size S,M --device opencl:0 --batch 128
  concord bench train --size S --device cpu:0 --baseline rates.json
  concord bench train --size S --device cpu:0 --compare rates.json --json`,
		Args: cobra.ExactArgs(0),
	}
	cmd.Flags().StringArrayVar(&f.devices, "device", nil, "`device` to measure beside the CPU (repeat); auto when absent")
	cmd.Flags().StringSliceVar(&f.sizes, "size", nil, "`sizes` of networks, separated by commas; all when absent")
	cmd.Flags().IntVar(&f.batch, "batch", 64, "examples in a batch")
	cmd.Flags().DurationVar(&f.each, "time", 3*time.Second, "`time` of training for each rate; large networks take longer")
	cmd.Flags().StringVar(&f.baseline, "baseline", "", "write the rates to this `file`")
	cmd.Flags().StringVar(&f.compare, "compare", "", "compare the rates with those of this `file`")
	cmd.MarkFlagsMutuallyExclusive("baseline", "compare")
	return a.RunnableJSON(cmd, func(ctx context.Context, _ []string) error { return benchTrain(ctx, a, &f) })
}

func aboutNetworks() string {
	var b strings.Builder
	for _, n := range networks {
		fmt.Fprintf(&b, "  %-2s  %11s parameters, layers of %s\n", n.name, thousands(n.parameters()),
			strings.Trim(fmt.Sprint(n.widths), "[]"))
	}
	return b.String()
}

// thousands writes a number with commas.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// chosen returns the networks of --size.
func (f *trainFlags) chosen() ([]network, error) {
	if len(f.sizes) == 0 {
		return networks, nil
	}
	var list []network
	for _, n := range networks {
		if slices.ContainsFunc(f.sizes, func(s string) bool { return strings.EqualFold(strings.TrimSpace(s), n.name) }) {
			list = append(list, n)
		}
	}
	for _, s := range f.sizes {
		if !slices.ContainsFunc(list, func(n network) bool { return strings.EqualFold(strings.TrimSpace(s), n.name) }) {
			return nil, app.Usagef("--size %s: there are S, M, L and XL", s)
		}
	}
	return list, nil
}

func benchTrain(ctx context.Context, a *app.App, f *trainFlags) error {
	list, err := f.chosen()
	switch {
	case err != nil:
		return err
	case f.batch < 1:
		return app.Usagef("--batch %d: a batch has at least one example", f.batch)
	case f.each < 0:
		return app.Usagef("--time %v: it cannot be negative", f.each)
	}
	var before []tune.Baseline
	if f.compare != "" {
		if before, err = readRates(ctx, f.compare); err != nil {
			return fmt.Errorf("--compare %s: %w", f.compare, files.WithoutPath(err))
		}
	}
	if err := a.Claim(files.Document, f.baseline); err != nil {
		return fmt.Errorf("--baseline %w", err)
	}
	a.Untuned()
	s, err := a.Open(app.Exactly)
	if err != nil {
		return err
	}
	targets, err := f.targets(ctx, s)
	if err != nil {
		return err
	}
	rows, err := f.measure(ctx, a, s, list, targets)
	if err != nil {
		return err
	}
	document := map[string]any{"results": rows}
	var left []tune.Baseline
	if f.compare != "" {
		if left, err = confirmRates(rows, before); err != nil {
			return fmt.Errorf("--compare %s: %w", f.compare, err)
		}
		document["not_measured"] = left
	}
	besideCPU(rows)
	bad := slices.ContainsFunc(rows, func(t trained) bool { return t.failed || t.Slower })
	err = a.Verdict(document, func() {
		writeTrained(a, rows, f.compare != "")
		for _, b := range left {
			a.Printf("not measured: %s\n", b)
		}
	}, !bad)
	if f.baseline != "" { // if this fails, the rates have been printed
		if saveErr := a.Save(ctx, f.baseline, func(w io.Writer) error {
			return tune.WriteBaselines(w, baselinesOf(rows))
		}); saveErr != nil {
			return fmt.Errorf("--baseline %s: %w", f.baseline, files.WithoutPath(saveErr))
		}
	}
	return err
}

// targets returns the CPU, and then the devices that are named, or what auto opens.
func (f *trainFlags) targets(ctx context.Context, s *runtime.Session) ([]devices.Target, error) {
	names := f.devices
	if len(names) == 0 {
		names = []string{"auto"}
	}
	found, err := devices.Targets(ctx, s, append([]string{"cpu:0"}, names...))
	var list []devices.Target
	for _, t := range found { // the tensors of cpu:0 choose their kernels themselves
		if t.Options.Implementation != runtime.Portable &&
			!slices.ContainsFunc(list, func(o devices.Target) bool { return o.Label == t.Label }) {
			list = append(list, t)
		}
	}
	return list, err
}

// measure trains every network on every device.
func (f *trainFlags) measure(ctx context.Context, a *app.App, s *runtime.Session, list []network,
	targets []devices.Target) ([]trained, error) {
	bar := a.Progress(len(list) * len(targets))
	defer bar.End()
	rows := []trained{}
	for _, n := range list {
		for _, t := range targets {
			bar.Doing(fmt.Sprintf("%s on %s", n.name, t.Label))
			row := trained{Network: n.name, Parameters: n.parameters(), Batch: f.batch, Device: t.Label, Name: t.Name,
				Rate: app.Null, Spread: app.Null, StepMS: app.Null, GFLOPS: app.Null, VsCPU: app.Null, Reason: t.Reason}
			if t.Device != "" {
				row.again = func() ([]float64, error) { return f.rate(ctx, s, t.Device, n) }
				var err error
				row.rates, err = row.again()
				switch {
				case ctx.Err() != nil:
					return nil, ctx.Err()
				case err != nil:
					row.Reason, row.failed = err.Error(), !app.NotHere(err) && !errors.Is(err, errNoRoom)
				default:
					row.sum()
				}
			}
			rows = append(rows, row)
			bar.Step()
		}
	}
	return rows, nil
}

// besideCPU compares the rates of each network with the first one, which is that of the CPU.
func besideCPU(rows []trained) {
	cpu := map[string]app.Number{}
	for i := range rows {
		t := &rows[i]
		if _, ok := cpu[t.Network]; !ok {
			cpu[t.Network] = t.Rate
		}
		t.VsCPU = t.Rate / cpu[t.Network]
	}
}

// errNoRoom is that a network does not fit in the free memory of a device.
var errNoRoom = errors.New("does not fit")

// perParameter is the memory that a training takes at most for each parameter, in numbers of 4 bytes: the parameter,
// two states and the best value of it, its gradient, and the results of a second call.
const perParameter = 8

// errEnough ends a training of which enough epochs were measured.
var errEnough = errors.New("enough")

// rate trains a network on a device and returns the examples per second of each epoch.
func (f *trainFlags) rate(ctx context.Context, s *runtime.Session, device string, n network) ([]float64, error) {
	dev, err := s.Open(ctx, device)
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	need := int64(n.parameters()) * perParameter * 4
	if info := dev.Info(); info.FreeMemoryKnown && need > info.FreeMemory {
		return nil, fmt.Errorf("a training of it takes up to %s, and %s are free: it %w", driver.FormatBytes(need),
			driver.FormatBytes(info.FreeMemory), errNoRoom)
	}
	scope := tensor.NewScope(dev)
	defer scope.Close()
	m, err := nn.Build(ctx, scope, 1, nn.Spec{Type: tensor.F32, Shape: []int{pixels}}, n.layers()...)
	if err != nil {
		return nil, err
	}
	var rates []float64
	start := time.Now()
	examples := f.batch * n.steps
	t, err := nn.NewTrainer(m, nn.Config{Loss: nn.CrossEntropy{}, BatchSize: f.batch, Epochs: 1 << 20, Split: new(0.0),
		Patience: new(0), OnEpoch: func(h *nn.History) error {
			if h.Epochs() == 1 {
				start = time.Now()
				return nil
			}
			rates = append(rates, float64(examples)/h.EpochTimes[h.Epochs()-1].Seconds())
			if len(rates) >= f.fewest() && time.Since(start) >= f.each {
				return errEnough
			}
			return nil
		}})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	r := rand.New(rand.NewPCG(1, 2))
	x, y := make([]float32, examples*pixels), make([]int32, examples)
	for i := range x {
		x[i] = r.Float32()
	}
	for i := range y {
		y[i] = int32(r.IntN(digits))
	}
	_, err = t.Fit(ctx, nn.Data{X: tensor.From(scope, x, examples, pixels), Y: tensor.From(scope, y)})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	return rates, nil
}

// readRates reads the file of --baseline.
func readRates(ctx context.Context, path string) ([]tune.Baseline, error) {
	text, err := files.Contents(ctx, path, files.MostBaseline)
	if err != nil {
		return nil, err
	}
	return tune.ReadBaselines(bytes.NewReader(text))
}

// baselinesOf returns what was measured as baselines.
func baselinesOf(rows []trained) []tune.Baseline {
	list := []tune.Baseline{}
	for _, t := range rows {
		if t.Rate > 0 {
			list = append(list, tune.Baseline{Operation: t.operation(), TargetThroughput: float64(t.Rate), Device: t.Name,
				Rates: t.rates, Date: time.Now().UTC().Round(time.Second)})
		}
	}
	return list
}

// confirmRates is compareRates, and measures what seems slower up to three times more. A row that cannot be measured
// again keeps its rate and has failed.
func confirmRates(rows []trained, before []tune.Baseline) (left []tune.Baseline, err error) {
	left, err = compareRates(rows, before)
	for range 3 {
		suspects := 0
		for i := range rows {
			if t := &rows[i]; err == nil && t.Slower && !t.failed {
				more, again := t.again()
				if again != nil {
					t.Reason, t.failed = again.Error(), true
					continue
				}
				t.rates = append(t.rates, more...)
				t.sum()
				suspects++
			}
		}
		if err != nil || suspects == 0 {
			break
		}
		left, err = compareRates(rows, before)
	}
	return left, err
}

// judge says how the rates of epochs differ from those of a baseline, if both have enough of them.
func (t *trained) judge(before []float64) (j judged, ok bool) {
	if len(before) < fewestRounds || len(t.rates) < fewestRounds {
		return judged{}, false
	}
	was, now := series{Rounds: before}, series{Rounds: t.rates}
	return compareCosts(was.costs(), now.costs()), true
}

// compareRates notes in each row whether it became slower, and returns those before that were not measured. A file that
// has nothing of what was measured is an error.
func compareRates(rows []trained, before []tune.Baseline) (left []tune.Baseline, err error) {
	seen := make([]bool, len(before))
	for i := range rows {
		t := &rows[i]
		at := slices.IndexFunc(before, func(b tune.Baseline) bool {
			return b.Operation == t.operation() && b.Device == t.Name
		})
		if at < 0 || !(t.Rate > 0) {
			continue
		}
		slower, err := before[at].CheckRegression(t.Name, float64(t.Rate))
		if err != nil {
			return nil, err
		}
		t.Baseline, t.Slower, seen[at] = app.Number(before[at].TargetThroughput), slower, true
		t.Change, t.Noise = app.Number(before[at].TargetThroughput/float64(t.Rate)-1), app.Null
		if j, ok := t.judge(before[at].Rates); ok {
			t.Change, t.Noise, t.Slower = app.Number(j.change), app.Number(j.noise), j.slower()
		}
	}
	if !slices.Contains(seen, true) {
		return nil, fmt.Errorf("it has no rate of what was measured on these devices: %w", runtime.ErrInvalidArgument)
	}
	left = []tune.Baseline{}
	for i, b := range before {
		if !seen[i] {
			left = append(left, b)
		}
	}
	return left, nil
}

func writeTrained(a *app.App, rows []trained, compared bool) {
	titles := []string{"NETWORK", "PARAMETERS", "DEVICE", "EXAMPLES/S", "SPREAD", "STEP", "GFLOP/S", "VS CPU"}
	if compared {
		titles = append(titles, "BASELINE", "TIME", "NOISE", "VERDICT")
	}
	t := ui.NewTable(titles...)
	for _, r := range rows {
		if r.Reason != "" {
			t.Add(r.Network, thousands(r.Parameters), r.Device, ui.OneLine(r.Reason))
			continue
		}
		cells := []string{r.Network, thousands(r.Parameters), r.Device, fmt.Sprintf("%.0f", float64(r.Rate)),
			digits3(r.Spread), ui.DurationText(ui.Duration(float64(r.StepMS))), digits3(r.GFLOPS), digits3(r.VsCPU)}
		if compared {
			verdict := asBefore
			switch {
			case r.Baseline == 0:
				verdict = "not in the file"
			case r.Slower:
				verdict = nowSlower
			}
			noise := "-"
			if r.Noise > 0 {
				noise = "±" + percent(float64(r.Noise))
			}
			cells = append(cells, fmt.Sprintf("%.0f", float64(r.Baseline)), fmt.Sprintf("%+.1f %%", 100*float64(r.Change)),
				noise, verdict)
		}
		t.Add(cells...)
	}
	t.Write(a.Stdout, "")
}
