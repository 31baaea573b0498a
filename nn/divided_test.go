package nn

// Networks that the members of a group divide, beside the same networks on one device.

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/tensor"
)

// parted is a network of which members divide all that they can: 4 heads, 2 or 4 of keys, 10 columns in between and 7
// of another pair of matrices. BatchNorm has running statistics.
func parted(keyHeads int) []Layer {
	return []Layer{Dense{Out: 32, Act: Tanh}, scalarFactor{}, BatchNorm{}, Reshape{Shape: []int{4, 8}}, Position{Max: 4},
		Transformer{Heads: 4, Hidden: 10, Dropout: 0.2, Causal: true, Divided: true},
		Residual{Body: Attention{Heads: 4, KeyHeads: keyHeads, Divided: true}}, LayerNorm{}, Flatten{},
		Dense{Out: 7, Act: GELU, Divided: Columns}, Dropout{Rate: 0.3}, Tanh, Dense{Out: 2, Divided: Rows}}
}

// scalarFactor has a parameter without dimensions.
type scalarFactor struct{}

// Apply returns a multiple of x.
func (scalarFactor) Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	return x.Mul(p.Param("scale", Constant(1.5)))
}

// String names it.
func (scalarFactor) String() string { return "scalar factor" }

// buildParted builds the network.
func buildParted(ctx context.Context, s *tensor.Scope, keyHeads int) (*Model, error) {
	return Build(ctx, s, 5+uint64(s.Rank()), Spec{Type: tensor.F64, Shape: []int{3}}, parted(keyHeads)...)
}

// divisions are the groups that divide networks: their members have as many heads as others, or one more.
var divisions = map[string]func(t *testing.T) *cluster.Group{
	"1 virtual":   func(t *testing.T) *cluster.Group { return virtual(t, 1) },
	"2 virtual":   func(t *testing.T) *cluster.Group { return virtual(t, 2) },
	"3 virtual":   func(t *testing.T) *cluster.Group { return virtual(t, 3) },
	"4 virtual":   func(t *testing.T) *cluster.Group { return virtual(t, 4) },
	"cpu, opencl": func(t *testing.T) *cluster.Group { return of(t, "cpu:0", "opencl:0") },
}

// TestDividedPredicts compares predictions. It fails if a part is not that of the one draw, or members' products are
// not added up once.
func TestDividedPredicts(t *testing.T) {
	predict := func(ctx context.Context, s *tensor.Scope) ([]float64, error) {
		m, err := buildParted(ctx, s, 4)
		if err != nil {
			return nil, err
		}
		y, err := m.Predict(ctx, line(s, 9).X, nil)
		if err != nil {
			return nil, err
		}
		return tensor.Read[float64](ctx, y)
	}
	want, err := predict(t.Context(), scopeOn(t, "cpu:0"))
	require.NoError(t, err)
	for name, group := range divisions {
		t.Run(name, func(t *testing.T) {
			_, err := everyMember(t, group(t), func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
				got, err := predict(ctx, s)
				assert.InDeltaSlice(t, want, got, 1e-12)
				if err != nil {
					return nil, nil, err
				}
				m, err := buildParted(ctx, s, 4)
				return m, &History{}, err
			})
			require.NoError(t, err)
		})
	}
}

// TestDividedTrains compares a step of SGD, which is the gradient, and trainings of 20 steps and more with all that
// looks at gradients as a whole. It fails if a gradient counts as often as there are members, or not at all, or if a
// norm is one of a part.
func TestDividedTrains(t *testing.T) {
	for name, set := range map[string]func(c *Config){
		"one step": func(c *Config) { c.Epochs, c.BatchSize, c.LearningRate = 1, 20, 1 },
		"20 steps": func(*Config) {},
		"regularized": func(c *Config) {
			// not L1: keys have biases whose gradient is rounding alone, of which it would take the sign
			c.L2, c.ClipNorm, c.WeightDecay, c.Accumulate = 1e-3, 0.5, 1e-2, 2
		},
		"early stopping": func(c *Config) {
			c.Optimizer, c.Patience, c.MinDelta, c.Split, c.Epochs = Momentum{}, new(1), new(0.05), new(0.3), 12
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := plain(7, 7)
			c.Optimizer = SGD{}
			set(&c)
			f := func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
				m, err := buildParted(ctx, s, 4)
				if err != nil {
					return nil, nil, err
				}
				tr, err := NewTrainer(m, c)
				if err != nil {
					return nil, nil, err
				}
				h, err := tr.Fit(ctx, line(s, 20))
				return m, h, err
			}
			want, err := one(t.Context(), scopeOn(t, "cpu:0"), f)
			require.NoError(t, err)
			for of, group := range divisions {
				if testing.Short() && (of == "1 virtual" || of == "4 virtual" || of == "cpu, opencl" && name != "20 steps") {
					continue
				}
				t.Run(of, func(t *testing.T) {
					g := group(t)
					got, err := everyMember(t, g, f)
					require.NoError(t, err)
					alike(t, want, got[0], 1e-9)
					for _, other := range got[1:] {
						assert.Equal(t, got[0].history.TrainLoss, other.history.TrainLoss)
						assert.Equal(t, want.history.ParameterCount, other.history.ParameterCount)
					}
					if of != "cpu, opencl" {
						again, err := everyMember(t, virtual(t, g.Size()), f)
						require.NoError(t, err)
						assert.Equal(t, got[0].values, again[0].values, "the same bits in each run")
					}
				})
			}
		})
	}
}

// TestDividedHalf trains with products of half, whose loss is scaled and overflows at first, with and without
// compression of what members of another group exchange. It fails if members skip other steps than one device.
func TestDividedHalf(t *testing.T) {
	f := func(divided Division, compression *TopK) func(context.Context, *tensor.Scope) (*Model, *History, error) {
		return func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
			wide, narrow := Dense{Out: 9, Act: Tanh}, Dense{Out: 2}
			if divided != Whole {
				wide.Divided, narrow.Divided = Columns, Rows
			}
			m, err := Build(ctx, s, 5, Spec{Type: tensor.F32, Shape: []int{3}}, wide, narrow)
			if err != nil {
				return nil, nil, err
			}
			c := plain(10, 8)
			c.MixedPrecision, c.InOrder, c.Optimizer, c.Compression = F16, true, SGD{}, compression
			c.LearningRate = 0.01
			tr, err := NewTrainer(m, c)
			if err != nil {
				return nil, nil, err
			}
			d := line(s, 40)
			h, err := tr.Fit(ctx, Data{X: d.X.Mul(3).Cast(tensor.F32), Y: d.Y.Mul(20).Cast(tensor.F32)})
			return m, h, err
		}
	}
	want, err := one(t.Context(), scopeOn(t, "cpu:0"), f(Whole, nil))
	require.NoError(t, err)
	assert.NotZero(t, want.history.Skipped[0])
	got, err := everyMember(t, virtual(t, 2), f(Columns, nil))
	require.NoError(t, err)
	assert.Equal(t, want.history.Skipped, got[0].history.Skipped)
	assert.InDeltaSlice(t, want.values, got[0].values, 1e-2)
	less, err := everyMember(t, virtual(t, 2), f(Whole, &TopK{Ratio: 0.5}))
	require.NoError(t, err)
	assert.Equal(t, want.history.Skipped[0], less[0].history.Skipped[0])
	assert.Less(t, less[0].history.TrainLoss[9], less[0].history.TrainLoss[0]/2)
}

// TestDividedResumes interrupts a training of 2 members, and goes on with 4, with 1, and without a group, and a network
// that nobody divides reads the file. It fails if a file has parts, or a member reads another part than its own.
func TestDividedResumes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "checkpoint")
	train := func(epochs int, file, from string) func(context.Context, *tensor.Scope) (*Model, *History, error) {
		return func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
			m, err := buildParted(ctx, s, 4)
			if err != nil {
				return nil, nil, err
			}
			c := plain(epochs, 7)
			c.Optimizer, c.LearningRate = Adam{}, 0.001
			c.Checkpoint, c.Accumulate, c.Split, c.Patience = file, 2, new(0.2), new(50)
			c.Compression = new(TopK) // of which neither one device nor members that divide a network make use
			tr, err := NewTrainer(m, c)
			if err != nil {
				return nil, nil, err
			}
			if from != "" {
				if err := tr.Resume(ctx, from); err != nil {
					return nil, nil, err
				}
			}
			h, err := tr.Fit(ctx, line(s, 20))
			return m, h, err
		}
	}
	want, err := one(t.Context(), scopeOn(t, "cpu:0"), train(5, "", ""))
	require.NoError(t, err)
	half, err := everyMember(t, virtual(t, 2), train(2, path, ""))
	require.NoError(t, err)
	for _, n := range []int{4, 2, 1} {
		got, err := everyMember(t, virtual(t, n), train(5, "", path))
		require.NoError(t, err)
		alike(t, want, got[0], 1e-9)
	}
	got, err := one(t.Context(), scopeOn(t, "cpu:0"), train(5, "", path))
	require.NoError(t, err)
	alike(t, want, got, 1e-9)
	lone := filepath.Join(t.TempDir(), "lone")
	_, err = one(t.Context(), scopeOn(t, "cpu:0"), train(2, lone, ""))
	require.NoError(t, err)
	members, err := everyMember(t, virtual(t, 2), train(5, "", lone))
	require.NoError(t, err)
	alike(t, want, members[0], 1e-9)

	for _, n := range []int{1, 3} {
		saved := filepath.Join(t.TempDir(), "model")
		got, err := everyMember(t, virtual(t, n), func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
			m, err := buildParted(ctx, s, 4)
			if err != nil {
				return nil, nil, err
			}
			if err = m.Load(ctx, path); err == nil {
				err = m.Save(ctx, saved)
			}
			return m, &History{}, err
		})
		require.NoError(t, err)
		assert.Equal(t, half[0].values, got[0].values, "the same bits")
		alone, err := buildParted(t.Context(), scopeOn(t, "cpu:0"), 4)
		require.NoError(t, err)
		require.NoError(t, alone.Load(t.Context(), saved))
		assert.Equal(t, half[0].values, all(t, alone))
	}
}

// TestDividedEmbedding looks up rows of a table that members divide unevenly, also from its end and behind it.
func TestDividedEmbedding(t *testing.T) {
	run := func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
		m, err := Build(ctx, s, 3, Spec{Type: tensor.I32, Shape: []int{4}}, Embedding{Count: 7, Width: 3, Divided: true},
			Flatten{}, Dense{Out: 1})
		if err != nil {
			return nil, nil, err
		}
		c := plain(3, 2)
		c.Optimizer = SGD{}
		tr, err := NewTrainer(m, c)
		if err != nil {
			return nil, nil, err
		}
		x := tensor.From(s, []int32{0, 1, 2, 3, 4, 5, 6, 0, -1, -7, 7, 2, 100, -8, 3, 3}, 4, 4)
		h, err := tr.Fit(ctx, Data{X: x, Y: tensor.Ones(s, tensor.F32, 4, 1)})
		return m, h, err
	}
	want, err := one(t.Context(), scopeOn(t, "cpu:0"), run)
	require.NoError(t, err)
	for _, n := range []int{2, 3, 4} {
		got, err := everyMember(t, virtual(t, n), run)
		require.NoError(t, err)
		alike(t, want, got[0], 1e-6)
	}
}

// biased attends to what a dense layer makes of x, with numbers that are learned in front of softmax: of each head, or
// of all heads together.
type biased struct{ heads bool }

// Apply returns a tensor of x's shape.
func (l biased) Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	y := p.Layer("seen", Dense{Out: x.Dim(2)}, x)
	shape := []int{4, x.Dim(1), x.Dim(1)}
	if !l.heads {
		shape = shape[1:]
	}
	return Attention{Heads: 4, KeyHeads: 2, Divided: true}.Attend(p, x, y, p.Param("bias", XavierNormal, shape...))
}

// String names it.
func (biased) String() string { return "biased attention" }

// TestDividedMask trains attention to other sequences with a mask that learns. It fails if the gradient of the mask, or
// of what it attends to, is that of one member's heads.
func TestDividedMask(t *testing.T) {
	for _, heads := range []bool{true, false} {
		run := func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
			m, err := Build(ctx, s, 3, Spec{Type: tensor.F64, Shape: []int{3}}, Dense{Out: 24}, Reshape{Shape: []int{3, 8}},
				biased{heads}, Flatten{}, Dense{Out: 2})
			if err != nil {
				return nil, nil, err
			}
			c := plain(3, 8)
			c.Optimizer = SGD{}
			tr, err := NewTrainer(m, c)
			if err != nil {
				return nil, nil, err
			}
			h, err := tr.Fit(ctx, line(s, 20))
			return m, h, err
		}
		want, err := one(t.Context(), scopeOn(t, "cpu:0"), run)
		require.NoError(t, err)
		got, err := everyMember(t, virtual(t, 2), run)
		require.NoError(t, err, "a mask of each head: %v", heads)
		alike(t, want, got[0], 1e-9)
	}
}

// TestDividedExchanges counts the exchanges of a step: one forward and one backward for each pair of matrices, and what
// the step has to know of all members: the loss, and the norm of the gradient. Of layers that nothing comes before that
// learns, there is none backward.
func TestDividedExchanges(t *testing.T) {
	for want, layers := range map[int][]Layer{
		3: {Dense{Out: 8, Divided: Columns}, Dense{Out: 2, Divided: Rows}},
		6: {Dense{Out: 8}, Reshape{Shape: []int{2, 4}}, Transformer{Heads: 2, Divided: true}, Flatten{}, Dense{Out: 2}},
	} {
		_, err := everyMember(t, virtual(t, 2), func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
			m, err := Build(ctx, s, 5, Spec{Type: tensor.F64, Shape: []int{3}}, layers...)
			if err != nil {
				return nil, nil, err
			}
			tr, err := NewTrainer(m, plain(1, 8))
			if err != nil {
				return nil, nil, err
			}
			d := line(s, 8)
			if err := tr.begin(ctx, d, d.narrow(0, 0)); err != nil {
				return nil, nil, err
			}
			p, err := tr.step.Plan(ctx, append(append(tr.list(), tensor.Zeros(s, m.typ, 1), tensor.Zeros(s, tensor.U64, 1)),
				d.args(tensor.Iota(s, tensor.U32, 8))...)...)
			if err != nil {
				return nil, nil, err
			}
			n := 0
			for _, task := range p.Tasks {
				if strings.HasSuffix(task.Operations[0], " start") {
					n++
				}
			}
			assert.Equal(t, want, n, "%v", p)
			return m, &History{}, nil
		})
		require.NoError(t, err)
	}
}

// TestDividedMistakes has networks that members cannot divide.
func TestDividedMistakes(t *testing.T) {
	columns, rows := Dense{Out: 8, Divided: Columns}, Dense{Out: 2, Divided: Rows}
	for want, layers := range map[string][]Layer{
		"without rows behind":             {columns},
		"rows without columns":            {Dense{Out: 8}, rows},
		"columns behind columns":          {columns, columns, rows},
		"softmax of columns":              {Dense{Out: 8, Act: Softmax, Divided: Columns}, rows},
		"layer norm between columns":      {columns, LayerNorm{}, rows},
		"swiglu between columns":          {columns, SwiGLU, rows},
		"dense 3 between columns":         {columns, Dense{Out: 3}, rows},
		"residual ends between columns":   {Dense{Out: 4}, Residual{Body: columns}, rows},
		"ternary weights have one":        {Dense{Out: 8, Ternary: true, Divided: Columns}, rows},
		`no division "both"`:              {Dense{Out: 8, Divided: "both"}},
		"2 members cannot divide columns": {Dense{Out: 1, Divided: Columns}, rows},
		"in 1 units of 16": {Reshape{Shape: []int{1, 3}}, Dense{Out: 16},
			Attention{Heads: 2, KeyHeads: 1, Divided: true}},
	} {
		_, err := everyMember(t, virtual(t, 2), func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
			m, err := Build(ctx, s, 5, Spec{Type: tensor.F64, Shape: []int{3}}, layers...)
			return m, &History{}, err
		})
		assert.ErrorIs(t, err, ErrConfig, want)
		assert.ErrorContains(t, err, want)
	}
	_, err := everyMember(t, virtual(t, 3), func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
		m, err := buildParted(ctx, s, 2)
		return m, &History{}, err
	})
	assert.ErrorIs(t, err, ErrConfig, "3 members and 2 heads of keys")
	_, err = everyMember(t, virtual(t, 2), func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
		m, err := buildParted(ctx, s, 2)
		if err == nil {
			c := plain(1, 7)
			c.Weights = []float64{1, 2}
			_, err = NewTrainer(m, c)
		}
		return m, &History{}, err
	})
	assert.ErrorIs(t, err, ErrConfig, "weights of members that divide the network")
	_, err = everyMember(t, virtual(t, 2), func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
		m, err := buildParted(ctx, s, 2)
		if err == nil {
			_, err = LBFGS{}.Minimize(ctx, m, MSE{}, line(s, 3), 1)
		}
		return m, &History{}, err
	})
	assert.ErrorIs(t, err, ErrConfig, "steps of second order")
}
