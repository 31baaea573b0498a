package checks

// The second part of the demo: a network learns to read the digits, on every device.

import (
	"context"
	"fmt"
	"math"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/devices"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/internal/verify"
	"github.com/concord-compute/concord/nn"
	"github.com/concord-compute/concord/runtime"
)

// What the network learns from: the first images, and how often.
const (
	trainImages = 3000 // of which a fifth is for the test
	trainEpochs = 3
	heldOut     = 0.2 // the part of the images that is for validation
)

// demoNetwork is the outcome of one device. If nothing was learned, the numbers are null.
type demoNetwork struct {
	Device        string     `json:"device"`
	TrainMS       app.Number `json:"train_ms"`
	Rate          app.Number `json:"images_per_second"` // in the last epoch
	Loss          app.Number `json:"loss"`              // of the images for the test
	Accuracy      app.Number `json:"accuracy"`
	MaxDifference app.Number `json:"max_difference"` // of a parameter from the reference's
	Verdict       string     `json:"verdict"`
	Reason        string     `json:"reason,omitempty"`
}

// trainedNetwork is a network after its training.
type trainedNetwork struct{ verify.Trained }

// trainOnDigits trains the network on one device.
func trainOnDigits(ctx context.Context, s *runtime.Session, device string) (*trainedNetwork, error) {
	layers := []nn.Layer{nn.Scale{Factor: 1. / 255}, nn.Flatten{}, nn.Dense{Out: 64, Act: nn.ReLU}, nn.Dense{Out: 10}}
	n, err := verify.Train(ctx, s, device, trainImages, layers, nn.Config{BatchSize: 50, Epochs: trainEpochs,
		Split: new(heldOut)})
	return &trainedNetwork{n}, err
}

// The differences from the reference that rounding explains, after all steps: of a parameter, and of a loss as
// a part of it.
const (
	demoParameter = 1e-4
	demoLoss      = 1e-4
)

// compare returns the largest difference of a parameter, and the reason why the result is wrong, or "".
func (n *trainedNetwork) compare(ref *trainedNetwork) (largest float64, reason string) {
	for i, want := range ref.Params {
		diff := math.Abs(n.Params[i] - want)
		if !(diff <= demoParameter) && reason == "" { // NaN is wrong too
			reason = fmt.Sprintf("parameter %d is %v, not %v", i, n.Params[i], want)
		}
		if !(diff <= largest) {
			largest = diff
		}
	}
	for epoch := range trainEpochs {
		got, want := n.History.ValLoss[epoch], ref.History.ValLoss[epoch]
		if !(math.Abs(got-want) <= demoLoss*want) && reason == "" {
			reason = fmt.Sprintf("the loss after epoch %d is %v, not %v", epoch+1, got, want)
		}
	}
	return largest, reason
}

// row begins the row of a network.
func (n *trainedNetwork) row(device string) demoNetwork {
	h, last := n.History, trainEpochs-1
	seen := trainImages - int(math.Round(trainImages*heldOut))
	return demoNetwork{Device: device, TrainMS: app.Number(ui.Milliseconds(h.TotalTime)),
		Rate: app.Number(float64(seen) / h.EpochTimes[last].Seconds()),
		Loss: app.Number(h.ValLoss[last]), Accuracy: app.Number(h.ValMetrics["accuracy"][last])}
}

// demoNetworks trains the network on the reference, and on each device once.
func demoNetworks(ctx context.Context, a *app.App, s *runtime.Session, targets []devices.Target,
	bar *ui.Progress) ([]demoNetwork, error) {
	bar.Doing("a network on cpu:reference")
	ref, err := trainOnDigits(ctx, s, "cpu:reference")
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("the network of the reference: %w", err)
	}
	bar.Step()
	rows := []demoNetwork{ref.row("cpu:reference")}
	rows[0].Verdict = judge
	for _, t := range targets {
		if t.Device == "" || t.Options.Implementation == runtime.Portable {
			continue // the tensors of cpu:0 choose their kernels themselves
		}
		bar.Doing("a network on " + t.Label)
		row := demoNetwork{Device: t.Label, TrainMS: app.Null, Rate: app.Null, Loss: app.Null, Accuracy: app.Null,
			MaxDifference: app.Null, Verdict: failed}
		n, err := trainOnDigits(ctx, s, t.Device)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case app.NotHere(err):
			row.Verdict, row.Reason = absent, err.Error()
		case err != nil:
			row.Reason = err.Error()
		default:
			row = n.row(t.Label)
			diff, reason := n.compare(ref)
			row.MaxDifference, row.Reason, row.Verdict = app.Number(diff), reason, concords
			if reason != "" {
				row.Verdict = differs
			}
		}
		rows = append(rows, row)
		bar.Step()
	}
	return rows, nil
}

// writeNetworks prints a row for each device, the reference's first.
func writeNetworks(a *app.App, rows []demoNetwork) {
	a.Printf("A network with a layer of 64 learns to read them: %d times %d images, accuracy of %d "+
		"others.\n\n",
		trainEpochs, trainImages-trainImages/5, trainImages/5)
	t := ui.NewTable("DEVICE", "TRAINING", "IMAGES/S", "ACCURACY", "LARGEST DIFF", "VERDICT")
	for _, r := range rows {
		verdict := paintVerdict(a, r.Verdict)
		if r.Reason != "" {
			verdict += ": " + ui.OneLine(ui.FirstLine(r.Reason))
		}
		if math.IsNaN(float64(r.TrainMS)) {
			t.Add(r.Device, verdict)
			continue
		}
		diff := "-"
		if r.Verdict != judge {
			diff = fmt.Sprintf("%.2g", float64(r.MaxDifference))
		}
		t.Add(r.Device, ui.DurationText(ui.Duration(float64(r.TrainMS))), fmt.Sprintf("%.0f", float64(r.Rate)),
			fmt.Sprintf("%.3f", float64(r.Accuracy)), diff, verdict)
	}
	t.Write(a.Stdout, "")
	a.Println()
}
