package verify

// The step that trains networks on the device and on the CPU, and compares what they have learned.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/concord-compute/concord/internal/mnist"
	"github.com/concord-compute/concord/nn"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/tensor"
)

// lesson is a training of some steps on images of digits.
type lesson struct {
	name          string
	layers        []nn.Layer
	images, batch int
	precision     nn.Mode
	// The differences from the judge that rounding explains after all steps: of the parameters, as a part of how far they
	// have come (both are norms), and of a loss as a part of it.
	change, loss float64
}

// lessons returns the trainings. Where a device is simulated or the judge is the reference, networks are smaller and
// steps fewer.
func lessons(small bool) []lesson {
	images, wide, narrow, filters := 2560, 512, 256, 16
	if small {
		images, wide, narrow, filters = 640, 48, 24, 4
	}
	scale, flat := nn.Scale{Factor: 1. / 255}, nn.Flatten{}
	mlp := []nn.Layer{scale, flat, nn.Dense{Out: wide, Act: nn.ReLU}, nn.Dense{Out: narrow, Act: nn.ReLU},
		nn.Dense{Out: 10}}
	cnn := []nn.Layer{scale, nn.Reshape{Shape: []int{1, 28, 28}},
		nn.Conv{Filters: filters, Size: []int{3, 3}, Act: nn.ReLU},
		nn.Conv{Filters: 2 * filters, Size: []int{3, 3}, Act: nn.ReLU}, nn.MaxPool{Size: []int{2, 2}}, flat,
		nn.Dense{Out: 64, Act: nn.ReLU}, nn.Dense{Out: 10}}
	return []lesson{
		{fmt.Sprintf("an MLP of 784, %d, %d and 10", wide, narrow), mlp, images, 128, nn.Full, 1e-3, 1e-4},
		{"a CNN of two convolutions", cnn, images / 5, 32, nn.Full, 1e-3, 1e-4},
		// Products read bfloat16 or halves where the device is fast with them, of which the judge knows nothing.
		{"the MLP in the precision that the device chooses", mlp, images, 128, nn.Auto, 0.1, 1e-2},
	}
}

// Trained is a network after its training.
type Trained struct {
	Before, Params []float64 // of all layers
	History        *nn.History
}

// stepTraining compares with cpu:0, and cpu:0 with the reference.
func stepTraining(ctx context.Context, e *Env, dev *runtime.Device) error {
	judge := "cpu:0"
	if dev.Info().ID == judge {
		judge = "cpu:reference"
	}
	small := dev.Info().Simulated || judge == "cpu:reference"
	for _, l := range lessons(small) {
		if dev.Info().Simulated {
			l.images /= 2
		}
		e.check(ctx, l.name, func(ctx context.Context) error {
			want, err := l.train(ctx, e.session, judge)
			if err != nil {
				return fmt.Errorf("on %s: %w", judge, err)
			}
			got, err := l.train(ctx, e.session, e.Device)
			if err != nil {
				return err
			}
			return l.compare(got, want)
		})
	}
	return nil
}

func (l lesson) train(ctx context.Context, s *runtime.Session, device string) (Trained, error) {
	return Train(ctx, s, device, l.images, l.layers, nn.Config{BatchSize: l.batch, Epochs: 1, MixedPrecision: l.precision})
}

// Train trains a network on a device to read the first images of digits, by momentum and with the cross entropy. The
// same seed gives it the same first parameters and the same batches everywhere. c says the rest; nothing stays
// open unless ctx is done.
func Train(ctx context.Context, s *runtime.Session, device string, images int, layers []nn.Layer,
	c nn.Config) (n Trained, err error) {
	dev, err := s.Open(ctx, device)
	if err != nil {
		return n, err
	}
	scope := tensor.NewScope(dev)
	defer func() {
		if ctx.Err() == nil { // closing could wait for ever
			err = errors.Join(err, scope.Close(), dev.Close())
		}
	}()
	set, err := mnist.Images()
	if err != nil {
		return n, err
	}
	labels, err := mnist.Labels()
	if err != nil {
		return n, err
	}
	x := tensor.From(scope, set.Pixels[:images*set.Rows*set.Cols], images, set.Rows, set.Cols)
	m, err := nn.Build(ctx, scope, 1, nn.Spec{Type: tensor.U8, Shape: []int{set.Rows, set.Cols}}, layers...)
	if err != nil {
		return n, err
	}
	c.Loss, c.Optimizer, c.LearningRate, c.Patience = nn.CrossEntropy{}, nn.Momentum{}, 0.03, new(0)
	t, err := nn.NewTrainer(m, c)
	if err != nil {
		return n, err
	}
	if n.Before, err = parameters(ctx, m); err != nil {
		return n, err
	}
	if n.History, err = t.Fit(ctx, nn.Data{X: x, Y: tensor.From(scope, labels[:images], images)}); err != nil {
		return n, err
	}
	n.Params, err = parameters(ctx, m)
	return n, err
}

// parameters reads those of all layers.
func parameters(ctx context.Context, m *nn.Model) (all []float64, err error) {
	for _, p := range m.Params() {
		values, err := tensor.Read[float64](ctx, m.Value(p.Name).Cast(tensor.F64))
		if err != nil {
			return nil, err
		}
		all = append(all, values...)
	}
	return all, nil
}

// distance is the norm of the difference of two lists.
func distance(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += (a[i] - b[i]) * (a[i] - b[i])
	}
	return math.Sqrt(sum)
}

// compare returns what is further off than rounding explains.
func (l lesson) compare(got, want Trained) error {
	losses, wanted := slices.Concat(got.History.TrainLoss, got.History.ValLoss),
		slices.Concat(want.History.TrainLoss, want.History.ValLoss)
	if len(got.Params) != len(want.Params) || len(losses) != len(wanted) {
		return fmt.Errorf("%d parameters and %d losses, not %d and %d", len(got.Params), len(losses), len(want.Params),
			len(wanted))
	}
	for i, w := range wanted {
		if g := losses[i]; !(math.Abs(g-w) <= l.loss*math.Abs(w)) { // NaN is wrong, too
			return fmt.Errorf("loss %d is %v, not %v", i, g, w)
		}
	}
	came, off := distance(want.Params, want.Before), distance(got.Params, want.Params)
	switch {
	case !(came > 0):
		return errors.New("nothing was learned")
	case !(off <= l.change*came):
		return fmt.Errorf("the parameters came %.3g far, and are %.3g from those of the judge, more than %.2g of that", came,
			off, l.change)
	}
	return nil
}
