//go:build cgo && linux

package failover

// The work of the runs: searches, computations of tensors, trainings.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/ann"
	"github.com/concord-compute/concord/nn"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/tensor"
)

// until calls f, and once more after an error that the policy lets through, when the device works again: then it has to
// succeed. The first error is returned.
func (w *world) until(err *error, f func() error) error {
	w.step()
	now := f()
	if now == nil || !w.strict || !allowed(now) {
		return now
	}
	if *err == nil {
		*err = now
	}
	w.mends()
	return f()
}

// search changes and searches an index beside one on the CPU. Its numbers are whole, so that results are the same.
func search(ctx context.Context, t *testing.T, w *world) (first error) {
	const dim, n = 4, 90
	numbers := func(n int) []float32 {
		list := make([]float32, n*dim)
		for i := range list {
			list[i] = float32(w.rnd.IntN(30))
		}
		return list
	}
	vectors, ids := numbers(n), make([]int64, n)
	for i := range ids {
		ids[i] = int64(i)
	}
	kind, o := "flat", ann.Options{}
	if w.rnd.IntN(2) == 0 {
		kind, o.IVF = "ivf", ann.IVFOptions{Lists: 3, Probes: 3}
	}
	want, err := ann.New(ctx, kind, dim, "l2sq", o)
	if err != nil {
		return err
	}
	defer func() { assert.NoError(t, want.Close()) }()
	var got ann.Index
	o.Runner = w.r
	err = w.until(&first, func() (err error) {
		got, err = ann.New(ctx, kind, dim, "l2sq", o)
		return err
	})
	if err != nil {
		return err
	}
	defer func() { assert.NoError(t, got.Close()) }()
	both := func(f func(ix ann.Index) error) error {
		if err := f(want); err != nil {
			return err
		}
		return w.until(&first, func() error { return f(got) })
	}
	for i := range 6 {
		part, lo := n/6, i*n/6
		err := both(func(ix ann.Index) error { return ix.Add(ctx, ids[lo:lo+part], vectors[lo*dim:(lo+part)*dim]) })
		if err == nil && i%2 == 1 {
			err = both(func(ix ann.Index) error { return ix.Remove(ctx, []int64{ids[lo+i], ids[lo]}) })
		}
		if err != nil {
			return err
		}
		queries := numbers(3)
		expected, err := want.SearchBatch(ctx, queries, 5, nil)
		if err != nil {
			return err
		}
		err = w.until(&first, func() error {
			found, err := got.SearchBatch(ctx, queries, 5, nil)
			if err == nil && !assert.Equal(t, expected, found) {
				return fmt.Errorf("wrong results")
			}
			return err
		})
		if err != nil {
			return err
		}
		assert.Equal(t, want.Info().Len, got.Info().Len)
	}
	return first
}

// eval computes tensors and calls a compiled function, whose results are the arguments of its next call. Where these
// are lost it begins with them anew, from what it has read.
func eval(ctx context.Context, t *testing.T, w *world) (first error) {
	var s *tensor.Scope
	err := w.until(&first, func() (err error) { s, err = tensor.NewRunnerScope(ctx, w.r); return err })
	if err != nil {
		return err
	}
	defer func() { assert.NoError(t, s.Close()) }()
	list := make([]float32, 64)
	for i := range list {
		list[i] = float32(w.rnd.IntN(9) - 4)
	}
	x := tensor.From(s, list, 8, 8)
	sum := x.Add(1).Sum()
	f := tensor.Compile(s, func(a ...*tensor.Tensor) []*tensor.Tensor {
		return []*tensor.Tensor{a[0].Sub(x), a[0].Max()}
	})
	host := slices.Clone(list)
	state := tensor.From(s, host, 8, 8)
	for i := range 6 {
		var total float32
		for _, v := range list {
			total += v + 1
		}
		err := w.until(&first, func() error {
			got, err := tensor.Number(ctx, sum.Add(i))
			if err == nil && !assert.Equal(t, float64(total)+float64(i), got) {
				return fmt.Errorf("wrong sum")
			}
			return err
		})
		if err != nil {
			return err
		}
		call := func() error {
			out, err := f.Call(ctx, state)
			if err != nil {
				return err
			}
			state = out[0]
			return nil
		}
		err = w.until(&first, func() error {
			err := call()
			if lost := new(tensor.LostError); errors.As(err, &lost) {
				state = tensor.From(s, host, 8, 8)
				err = call()
			}
			return err
		})
		if err != nil {
			return err
		}
		for j := range host {
			host[j] -= list[j]
		}
		read := func() error {
			got, err := tensor.Read[float32](ctx, state)
			if err == nil && !assert.Equal(t, host, got, "call %d", i) {
				return fmt.Errorf("wrong state")
			}
			return err
		}
		err = w.until(&first, func() error {
			err := read()
			if lost := new(tensor.LostError); errors.As(err, &lost) {
				state = tensor.From(s, host, 8, 8)
				err = read()
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return first
}

// examples make the network and the data of trainings.
func examples(ctx context.Context, s *tensor.Scope) (*nn.Model, nn.Data, error) {
	const n = 24
	m, err := nn.Build(ctx, s, 5, nn.Spec{Type: tensor.F64, Shape: []int{3}}, nn.Dense{Out: 6, Act: nn.Tanh},
		nn.Dense{Out: 1})
	xs, ys := make([]float64, 3*n), make([]float64, n)
	for i := range n {
		for j := range 3 {
			xs[3*i+j] = math.Sin(float64(7*i+3*j) * 1.7)
		}
		ys[i] = xs[3*i] - 2*xs[3*i+1] + 0.5
	}
	return m, nn.Data{X: tensor.From(s, xs, n, 3), Y: tensor.From(s, ys, n, 1)}, err
}

func training() nn.Config {
	return nn.Config{Epochs: 5, BatchSize: 8, Split: new(0.0), Patience: new(0), LearningRate: 0.05}
}

// undisturbed are the values and the history of a training on the CPU.
var undisturbed = sync.OnceValues(func() (values []float64, losses []float64) {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu:0")
	if err != nil {
		panic(err)
	}
	defer dev.Close()
	s := tensor.NewScope(dev)
	defer s.Close()
	m, d, err := examples(ctx, s)
	if err != nil {
		panic(err)
	}
	trainer, err := nn.NewTrainer(m, training())
	if err != nil {
		panic(err)
	}
	h, err := trainer.Fit(ctx, d)
	if err != nil {
		panic(err)
	}
	values, err = parameters(ctx, m)
	if err != nil {
		panic(err)
	}
	return values, h.TrainLoss
})

func parameters(ctx context.Context, m *nn.Model) (values []float64, err error) {
	for _, p := range m.Params() {
		list, err := tensor.Read[float64](ctx, m.Value(p.Name).Flatten())
		if err != nil {
			return nil, err
		}
		values = append(values, list...)
	}
	return values, nil
}

// within is the bound of results beside an undisturbed run: that of trainings in f64 on groups.
const within = 1e-9

func train(ctx context.Context, t *testing.T, w *world) (first error) {
	c := training()
	c.Checkpoint, c.CheckpointEvery = filepath.Join(w.dir, "training"), 1+w.rnd.IntN(2)
	c.OnEpoch = func(*nn.History) error { w.step(); return nil }
	var h *nn.History
	err := w.until(&first, func() (err error) {
		h, err = nn.Train(ctx, w.r, cluster.Options{Timeout: attempt}, c, examples)
		return err
	})
	if err != nil {
		return err
	}
	values, losses := undisturbed()
	require.Len(t, h.TrainLoss, len(losses))
	for i, want := range losses {
		assert.InDelta(t, want, h.TrainLoss[i], within, "epoch %d", i)
	}
	dev, err := runtime.Open(ctx, "cpu:0")
	require.NoError(t, err)
	defer dev.Close()
	s := tensor.NewScope(dev)
	defer s.Close()
	m, _, err := examples(ctx, s)
	require.NoError(t, err)
	require.NoError(t, m.Load(ctx, c.Checkpoint))
	got, err := parameters(ctx, m)
	require.NoError(t, err)
	for i, want := range values {
		assert.InDelta(t, want, got[i], within, "value %d", i)
	}
	assert.EqualValues(t, 1, w.r.Stats().Units)
	return first
}
