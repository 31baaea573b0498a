package main

// The second part of the demo: a network learns to read the digits, on every device.

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/concord-compute/concord/nn"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/tensor"
)

// What the network learns from: the first images, and how often.
const (
	learnImages = 3000 // of which a fifth is for the test
	learnEpochs = 3
	heldOut     = 0.2 // the part of the images that is for validation
)

// demoNetwork is the outcome of one device. If nothing was learned, the numbers are null.
type demoNetwork struct {
	Device        string `json:"device"`
	TrainMS       number `json:"train_ms"`
	Rate          number `json:"images_per_second"` // in the last epoch
	Loss          number `json:"loss"`              // of the images for the test
	Accuracy      number `json:"accuracy"`
	MaxDifference number `json:"max_difference"` // of a parameter from the reference's
	Verdict       string `json:"verdict"`
	Reason        string `json:"reason,omitempty"`
}

// learned is a network after its training.
type learned struct {
	params  []float64
	history *nn.History
}

// learnDigits trains the network on one device. The same seeds give it the same first parameters and the same
// batches everywhere.
func learnDigits(ctx context.Context, s *runtime.Session, device string) (n *learned, err error) {
	dev, err := s.Open(ctx, device)
	if err != nil {
		return nil, err
	}
	scope := tensor.NewScope(dev)
	defer func() {
		if ctx.Err() == nil { // otherwise closing could wait for ever
			err = errors.Join(err, scope.Close(), dev.Close())
		}
	}()
	d, err := (&learning{data: "mnist"}).lesson(ctx, scope, true)
	if err != nil {
		return nil, err
	}
	m, err := nn.Build(ctx, scope, 1, d.in, nn.Scale{Factor: 1. / 255}, nn.Flatten{}, nn.Dense{Out: 64, Act: nn.ReLU},
		nn.Dense{Out: 10})
	if err != nil {
		return nil, err
	}
	c := nn.Config{Loss: nn.CrossEntropy{}, Optimizer: nn.Momentum{}, LearningRate: 0.03, BatchSize: 50,
		Epochs: learnEpochs,
		Split:  new(heldOut), Patience: new(0)}
	t, err := nn.NewTrainer(m, c)
	if err != nil {
		return nil, err
	}
	n = &learned{}
	data := nn.Data{X: d.X.Narrow(0, 0, learnImages), Y: d.Y.Narrow(0, 0, learnImages)}
	if n.history, err = t.Fit(ctx, data); err != nil {
		return nil, err
	}
	for _, p := range m.Params() {
		values, err := tensor.Read[float64](ctx, m.Value(p.Name).Cast(tensor.F64))
		if err != nil {
			return nil, err
		}
		n.params = append(n.params, values...)
	}
	return n, nil
}

// The differences from the reference that rounding explains, after all steps: of a parameter, and of a loss as
// a part of it.
const (
	demoParameter = 1e-4
	demoLoss      = 1e-4
)

// compare returns the largest difference of a parameter, and the reason why the result is wrong, or "".
func (n *learned) compare(ref *learned) (largest float64, reason string) {
	for i, want := range ref.params {
		diff := math.Abs(n.params[i] - want)
		if !(diff <= demoParameter) && reason == "" { // NaN is wrong too
			reason = fmt.Sprintf("parameter %d is %v, not %v", i, n.params[i], want)
		}
		if !(diff <= largest) {
			largest = diff
		}
	}
	for epoch := range learnEpochs {
		got, want := n.history.ValLoss[epoch], ref.history.ValLoss[epoch]
		if !(math.Abs(got-want) <= demoLoss*want) && reason == "" {
			reason = fmt.Sprintf("the loss after epoch %d is %v, not %v", epoch+1, got, want)
		}
	}
	return largest, reason
}

// row begins the row of a network.
func (n *learned) row(device string) demoNetwork {
	h, last := n.history, learnEpochs-1
	seen := learnImages - int(math.Round(learnImages*heldOut))
	return demoNetwork{Device: device, TrainMS: number(milliseconds(h.TotalTime)),
		Rate: number(float64(seen) / h.EpochTimes[last].Seconds()),
		Loss: number(h.ValLoss[last]), Accuracy: number(h.ValMetrics["accuracy"][last])}
}

// demoNetworks trains the network on the reference, and on each device once.
func (a *app) demoNetworks(ctx context.Context, s *runtime.Session, targets []demoTarget,
	bar *progress) ([]demoNetwork, error) {
	bar.doing("a network on cpu:reference")
	ref, err := learnDigits(ctx, s, "cpu:reference")
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("the network of the reference: %w", err)
	}
	bar.step()
	rows := []demoNetwork{ref.row("cpu:reference")}
	rows[0].Verdict = judge
	for _, t := range targets {
		if t.device == "" || t.opt.Implementation == runtime.Portable {
			continue // the tensors of cpu:0 choose their kernels themselves
		}
		bar.doing("a network on " + t.label)
		row := demoNetwork{Device: t.label, TrainMS: unknown, Rate: unknown, Loss: unknown, Accuracy: unknown,
			MaxDifference: unknown, Verdict: failed}
		n, err := learnDigits(ctx, s, t.device)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case notHere(err):
			row.Verdict, row.Reason = absent, err.Error()
		case err != nil:
			row.Reason = err.Error()
		default:
			row = n.row(t.label)
			diff, reason := n.compare(ref)
			row.MaxDifference, row.Reason, row.Verdict = number(diff), reason, concords
			if reason != "" {
				row.Verdict = differs
			}
		}
		rows = append(rows, row)
		bar.step()
	}
	return rows, nil
}

// writeNetworks prints a row for each device, the reference's first.
func (a *app) writeNetworks(rows []demoNetwork) {
	fmt.Fprintf(a.stdout, "A network with a layer of 64 learns to read them: %d times %d images, accuracy of %d "+
		"others.\n\n",
		learnEpochs, learnImages-learnImages/5, learnImages/5)
	t := &table{}
	t.add("DEVICE", "TRAINING", "IMAGES/S", "ACCURACY", "LARGEST DIFF", "VERDICT")
	for _, r := range rows {
		verdict := a.paintVerdict(r.Verdict)
		if r.Reason != "" {
			verdict += ": " + oneLine(firstLine(r.Reason))
		}
		if math.IsNaN(float64(r.TrainMS)) {
			t.add(r.Device, verdict)
			continue
		}
		diff := "-"
		if r.Verdict != judge {
			diff = fmt.Sprintf("%.2g", float64(r.MaxDifference))
		}
		t.add(r.Device, ms(duration(float64(r.TrainMS))), fmt.Sprintf("%.0f", float64(r.Rate)),
			fmt.Sprintf("%.3f", float64(r.Accuracy)), diff, verdict)
	}
	t.write(a.stdout, "")
	fmt.Fprintln(a.stdout)
}
