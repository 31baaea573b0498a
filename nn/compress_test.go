package nn

// Gradients of which members exchange some entries.

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/tensor"
)

// straight is a loss whose gradient does not depend on parameters: the mean of products with the targets.
type straight struct{}

func (straight) Of(p, t *tensor.Tensor) (*tensor.Tensor, error) { return p.Mul(t).Sum(1).Mean(), nil }
func (straight) String() string                                 { return "straight" }

// straightened trains a matrix with the straight loss by SGD with a rate of 1, so that its change is what was sent.
func straightened(c Config, d func(s *tensor.Scope) Data, set func(tr *Trainer),
	after func(ctx context.Context, tr *Trainer) error) func(context.Context, *tensor.Scope) (*Model, *History, error) {
	return func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
		data := d(s)
		m, err := Build(ctx, s, 5, Spec{Type: data.X.Type(), Shape: data.X.Shape()[1:]},
			Dense{Out: data.Y.Dim(1), NoBias: true, Init: Zeros})
		if err != nil {
			return nil, nil, err
		}
		c.Loss, c.Optimizer, c.LearningRate = straight{}, SGD{}, 1
		tr, err := NewTrainer(m, c)
		if err != nil {
			return nil, nil, err
		}
		if set != nil {
			set(tr)
		}
		h, err := tr.Fit(ctx, data)
		if after != nil && (err == nil || tr.vars != nil) {
			if e := after(ctx, tr); err == nil {
				err = e
			}
		}
		return m, h, err
	}
}

// residualSums adds up what members have kept.
func residualSums(ctx context.Context, tr *Trainer) ([]float64, error) {
	work := tr.scope.Scope()
	defer work.Close()
	own := tr.vars[atResidual].Cast(tensor.F64).Mul(tensor.Ones(work, tensor.F64, 1))
	return tensor.Read[float64](ctx, own.AllReduce(cluster.Sum))
}

// TestCompressionLosesNothing adds what was sent in many steps to what is left: the sum of all gradients. It fails if
// an entry is sent and kept, or neither, or if what F32 cuts off is lost.
func TestCompressionLosesNothing(t *testing.T) {
	many := func(s *tensor.Scope) Data { return line(s, 60) }
	c := plain(5, 7)
	want, err := one(t.Context(), scopeOn(t, "cpu:0"), straightened(c, many, nil, nil)) // minus the sum of all
	require.NoError(t, err)
	for name, group := range divisions {
		for _, accumulate := range []int{1, 2} {
			if testing.Short() && accumulate == 2 && name != "3 virtual" {
				continue
			}
			c := c
			c.Accumulate, c.Compression = accumulate, &TopK{Ratio: 0.4} // 2 of 6
			want := want.values
			if accumulate == 2 {
				c := plain(5, 7)
				c.Accumulate = 2
				one, err := one(t.Context(), scopeOn(t, "cpu:0"), straightened(c, many, nil, nil))
				require.NoError(t, err)
				want = one.values
			}
			t.Run(name, func(t *testing.T) {
				g := group(t)
				got, err := everyMember(t, g, straightened(c, many, nil, func(ctx context.Context, tr *Trainer) error {
					sums, err := residualSums(ctx, tr)
					if err != nil {
						return err
					}
					sent, err := tensor.Read[float64](ctx, tr.vars[atParams])
					for i := range sent {
						assert.InDelta(t, want[i], sent[i]-sums[i], 1e-12)
					}
					s, e := tr.Compression(ctx)
					if e != nil {
						return e
					}
					steps := (45 + 5*(accumulate-1)) / accumulate // 9 batches of an epoch
					if tr.scope.Size() == 1 {
						assert.Zero(t, s, "nothing was exchanged")
						return err
					}
					assert.Equal(t, CompressionStats{Exchanges: steps, Entries: 2, Of: 6, OriginalBytes: int64(steps * 48),
						CompressedBytes: int64(steps * 24), Ratio: 0.5, ResidualNorm: s.ResidualNorm}, s)
					assert.Positive(t, s.ResidualNorm)
					return err
				}))
				require.NoError(t, err)
				for _, other := range got[1:] {
					assert.Equal(t, got[0].values, other.values)
				}
			})
		}
	}
}

// TestCompressionEntries has gradients of equal magnitudes: exactly as many entries are sent as the ratio says, the
// first ones first. It fails with one entry more or less, or another order.
func TestCompressionEntries(t *testing.T) {
	ties := func(s *tensor.Scope) Data { // of each parameter 1 or -1
		signs := tensor.Iota(s, tensor.F64, 10).Rem(2).Mul(-2).Add(1)
		return Data{X: tensor.Ones(s, tensor.F64, 2, 1), Y: signs.Expand(2, 10)}
	}
	for _, row := range []struct {
		ratio float64
		steps int
		want  []float64 // magnitudes
	}{
		{0.3, 1, []float64{1, 1, 1, 0, 0, 0, 0, 0, 0, 0}},
		{0.3, 2, []float64{1, 1, 1, 2, 2, 2, 0, 0, 0, 0}},
		{0.39, 1, []float64{1, 1, 1, 0, 0, 0, 0, 0, 0, 0}},
		{0.05, 1, []float64{1, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
		{0, 2, []float64{1, 2, 0, 0, 0, 0, 0, 0, 0, 0}},
		{0.9, 1, []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 0}},
		{1, 1, []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
		{2, 1, []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
	} {
		c := plain(row.steps, 2)
		c.Compression = &TopK{Ratio: row.ratio}
		got, err := everyMember(t, virtual(t, 2), straightened(c, ties, nil, nil))
		require.NoError(t, err)
		for i, x := range got[0].values {
			assert.Equal(t, row.want[i]*float64(2*(i%2)-1), x, "ratio %v, entry %d", row.ratio, i)
		}
	}
	for n, want := range map[int]int{1: 1, 999: 1, 1000: 1, 1999: 1, 2000: 2, 0: 0} {
		assert.Equal(t, want, (&TopK{}).of(n))
	}
	assert.Equal(t, 10, (&TopK{Ratio: 1e-9}).of(100000), "not less than 1e-4")
	assert.Zero(t, (&TopK{Ratio: 1}).of(5))
	for _, ratio := range []float64{-1, math.NaN(), math.Inf(1)} {
		m := small(t, scopeOn(t, "cpu:0"))
		_, err := NewTrainer(m, Config{Compression: &TopK{Ratio: ratio}})
		assert.ErrorIs(t, err, ErrConfig)
	}
}

// TestCompressionFails has a gradient that is not finite at one member, and a message whose indices are not those of a
// gradient. It fails if another error comes, or the residual or the parameters change.
func TestCompressionFails(t *testing.T) {
	data := func(bad float64) func(s *tensor.Scope) Data {
		return func(s *tensor.Scope) Data {
			d := line(s, 24)
			at := tensor.Iota(s, tensor.I32, 24, 1).Eq(23) // in the last of 3 steps, a row of the last member
			d.X = tensor.Where(at, bad, d.X)
			return d
		}
	}
	c := plain(1, 8)
	c.InOrder, c.Compression = true, &TopK{Ratio: 0.4}
	var before [][]float64
	keep := func(list *[][]float64) func(ctx context.Context, tr *Trainer) error {
		return func(ctx context.Context, tr *Trainer) error {
			work := tr.scope.Scope()
			defer work.Close()
			rows := tr.vars[atResidual].Mul(tensor.Ones(work, tensor.F64, 1)).AllGather()
			all, err := tensor.Read[float64](ctx, rows)
			params, e := tensor.Read[float64](ctx, tr.vars[atParams])
			if err == nil && e == nil && tr.scope.Rank() == 0 {
				*list = append(*list, append(all, params...))
			}
			return err
		}
	}
	two := func(s *tensor.Scope) Data { return data(1)(s).narrow(0, 16) } // without the last step
	_, err := everyMember(t, virtual(t, 2), straightened(c, two, nil, keep(&before)))
	require.NoError(t, err)
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		var after [][]float64
		_, err := everyMember(t, virtual(t, 2), straightened(c, data(bad), nil, keep(&after)))
		require.ErrorIs(t, err, ErrNumerical)
		assert.Equal(t, before, after)
	}
	large := func(s *tensor.Scope) Data { // the loss is 0 at first, but the gradient of one member's row is infinite
		d := data(1)(s)
		at := tensor.Iota(s, tensor.I32, 24, 1).Eq(7)
		return Data{X: tensor.Where(at, 1e200, d.X), Y: tensor.Where(at, 1e200, d.Y)}
	}
	var first [][]float64
	_, err = everyMember(t, virtual(t, 2), straightened(c, large, nil, keep(&first)))
	require.ErrorIs(t, err, ErrNumerical)
	assert.Equal(t, make([]float64, 6+6+6), first[0])
	for name, wrong := range map[string]func(m *tensor.Tensor) []uint32{
		"count":     func(*tensor.Tensor) []uint32 { return []uint32{3, 6, 0, 1} },
		"length":    func(*tensor.Tensor) []uint32 { return []uint32{2, 7, 0, 1} },
		"twice":     func(*tensor.Tensor) []uint32 { return []uint32{2, 6, 4, 4} },
		"descends":  func(*tensor.Tensor) []uint32 { return []uint32{2, 6, 3, 1} },
		"too large": func(*tensor.Tensor) []uint32 { return []uint32{2, 6, 3, 6} },
	} {
		var after [][]float64
		_, err := everyMember(t, virtual(t, 2), straightened(c, data(1), func(tr *Trainer) {
			if tr.scope.Rank() == 1 {
				tr.tamper = func(m *tensor.Tensor) *tensor.Tensor { return tensor.From(m.Scope(), wrong(m)) }
			}
		}, keep(&after)))
		require.ErrorIs(t, err, cluster.ErrSync, name)
		require.Len(t, after, 1)
		assert.Equal(t, make([]float64, 6+6+6), after[0], "%s: nothing was changed", name)
	}
}

// TestCompressionResumes interrupts a training, and goes on with as many members, whose result is that of a training
// that was not interrupted, and with others, which must not lose what was kept. A file without a residual is refused.
func TestCompressionResumes(t *testing.T) {
	dir := t.TempDir()
	train := func(epochs int, file, from string) func(context.Context, *tensor.Scope) (*Model, *History, error) {
		c := plain(epochs, 7)
		c.Checkpoint, c.Compression = file, &TopK{Ratio: 0.4}
		return func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
			var sums []float64
			return straightened(c, func(s *tensor.Scope) Data { return line(s, 40) }, func(tr *Trainer) {
				if from != "" {
					assert.NoError(t, tr.Resume(ctx, from))
				}
			}, func(ctx context.Context, tr *Trainer) (err error) {
				sums, err = residualSums(ctx, tr)
				tr.history.TrainMetrics["kept"] = sums
				return err
			})(ctx, s)
		}
	}
	want, err := everyMember(t, virtual(t, 2), train(5, "", ""))
	require.NoError(t, err)
	path := filepath.Join(dir, "checkpoint")
	_, err = everyMember(t, virtual(t, 2), train(2, path, ""))
	require.NoError(t, err)
	got, err := everyMember(t, virtual(t, 2), train(5, "", path))
	require.NoError(t, err)
	assert.Equal(t, want[0].values, got[0].values, "the same bits")
	assert.Equal(t, want[0].history.TrainMetrics["kept"], got[0].history.TrainMetrics["kept"])
	total := func(one trained) (sum []float64) {
		for i, x := range one.history.TrainMetrics["kept"] {
			sum = append(sum, one.values[i]-x)
		}
		return sum
	}
	for _, n := range []int{1, 3} {
		got, err := everyMember(t, virtual(t, n), train(5, "", path))
		require.NoError(t, err)
		assert.InDeltaSlice(t, total(want[0]), total(got[0]), 1e-12)
	}
}

// TestCompressionLearnsDigits trains a network with a fiftieth of its gradients.
func TestCompressionLearnsDigits(t *testing.T) {
	got, err := everyMember(t, virtual(t, 2), func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
		m, err := Build(ctx, s, 1, Spec{Type: tensor.F32, Shape: []int{784}}, Scale{Factor: 1.0 / 255},
			Dense{Out: 64, Act: ReLU}, Dense{Out: 10})
		if err != nil {
			return nil, nil, err
		}
		c := Config{Epochs: 3, BatchSize: 64, Loss: CrossEntropy{}, Seed: 1, Optimizer: Momentum{}, LearningRate: 0.02,
			Compression: &TopK{Ratio: 0.02}}
		tr, err := NewTrainer(m, c)
		if err != nil {
			return nil, nil, err
		}
		d := digits(t, s, 2000, 784)
		d.X = d.X.Cast(tensor.F32)
		h, err := tr.Fit(ctx, d)
		return m, h, err
	})
	require.NoError(t, err)
	h := got[0].history
	t.Log(h.TrainLoss, h.ValMetrics["accuracy"], h.EpochTimes)
	assert.True(t, slices.IsSortedFunc(h.TrainLoss, func(a, b float64) int { return int(math.Copysign(1, b-a)) }))
	assert.Greater(t, h.ValMetrics["accuracy"][2], 0.8)
	assert.Equal(t, got[0].values, got[1].values)
}
