package nn

// What members of a group have in common: precision, configuration, statistics of batches, values.

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/tensor"
)

// normalized trains a network with batch norms, also of pictures and before a dropout.
func normalized(c Config, l BatchNorm) func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
	return func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
		m, err := Build(ctx, s, 5, Spec{Type: tensor.F64, Shape: []int{3}}, Dense{Out: 8}, l, Tanh, Dropout{Rate: 0.2},
			Reshape{Shape: []int{2, 2, 2}}, l, Flatten{}, Dense{Out: 2})
		if err != nil {
			return nil, nil, err
		}
		tr, err := NewTrainer(m, c)
		if err != nil {
			return nil, nil, err
		}
		h, err := tr.Fit(ctx, line(s, 40))
		return m, h, err
	}
}

// TestGroupBatchNorm normalizes the rows of all members: it fails if training is not that of one device, parameters and
// running averages, also where members have no rows.
func TestGroupBatchNorm(t *testing.T) {
	for _, c := range []Config{plain(3, 8), plain(2, 7), plain(1, 3), plain(1, 1)} {
		c.Optimizer, c.LearningRate = SGD{}, 0.01
		for _, accumulate := range []int{1, 2} {
			c.Accumulate = accumulate
			want, err := one(t.Context(), scopeOn(t, "cpu:0"), normalized(c, BatchNorm{}))
			require.NoError(t, err)
			for _, n := range []int{2, 4} {
				got, err := everyMember(t, virtual(t, n), normalized(c, BatchNorm{}))
				require.NoError(t, err)
				alike(t, want, got[n-1], 1e-9)
				assert.Equal(t, got[0].values, got[n-1].values)
			}
		}
	}
}

// TestGroupLocalBatchNorm has each member normalize its own rows. It fails if members have other running averages than
// those of their rows, weighted, or one with a single row counts a variance of 0.
func TestGroupLocalBatchNorm(t *testing.T) {
	for rows, of := range map[int][]int{40: {13, 13, 14}, 4: {1, 1, 2}} {
		mean, variance := make([]float64, 3), make([]float64, 3)
		got, err := everyMember(t, virtual(t, 3), func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
			m, err := Build(ctx, s, 5, Spec{Type: tensor.F64, Shape: []int{3}}, BatchNorm{Local: true}, Dense{Out: 2})
			if err != nil {
				return nil, nil, err
			}
			c := plain(1, rows)
			c.InOrder = true
			tr, err := NewTrainer(m, c)
			if err != nil {
				return nil, nil, err
			}
			d := line(s, rows)
			h, err := tr.Fit(ctx, d)
			if err != nil || s.Rank() != 0 {
				return m, h, err
			}
			x, err := tensor.Read[float64](ctx, d.X)
			first := 0
			for _, n := range of {
				for c := range 3 {
					sum, squares := 0.0, 0.0
					for i := first; i < first+n; i++ {
						sum += x[3*i+c]
						squares += x[3*i+c] * x[3*i+c]
					}
					m, v, w := sum/float64(n), 1.0, float64(n)/float64(rows)
					if n > 1 {
						v = (squares - m*sum) / float64(n-1)
					} else {
						m, v = 0, 1 // as they were
					}
					mean[c] += w * 0.1 * m
					variance[c] += w * (0.9 + 0.1*v)
				}
				first += n
			}
			return m, h, err
		})
		require.NoError(t, err)
		averages := got[2].values[len(got[2].values)-6:]
		assert.InDeltaSlice(t, mean, averages[:3], 1e-12)
		assert.InDeltaSlice(t, variance, averages[3:], 1e-12)
	}
}

// TestGroupPrecision has members whose devices stand for other modes, and members that want others. It fails if some
// scale their losses and others do not, whose gradients are added up.
func TestGroupPrecision(t *testing.T) {
	bf16 := runtime.Info{SupportsBF16: true}
	for _, row := range []struct {
		asked [2]Mode
		infos [2]runtime.Info
		want  Mode
	}{
		{[2]Mode{Auto, Auto}, [2]runtime.Info{bf16, bf16}, BF16},
		{[2]Mode{Auto, Auto}, [2]runtime.Info{{SupportsFP16: true, FastFP16: true}, bf16}, Full},
		{[2]Mode{Auto, Auto}, [2]runtime.Info{bf16, {}}, Full},
		{[2]Mode{F16, F16}, [2]runtime.Info{bf16, {}}, F16},
		{[2]Mode{Auto, BF16}, [2]runtime.Info{bf16, bf16}, "none"},
	} {
		_, err := everyMember(t, virtual(t, 2), func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
			m, err := Build(ctx, s, 5, Spec{Type: tensor.F32, Shape: []int{3}}, Dense{Out: 2})
			if err != nil {
				return nil, nil, err
			}
			c := plain(1, 8)
			c.MixedPrecision = row.asked[s.Rank()]
			tr, err := newTrainer(m, c, &row.infos[s.Rank()])
			if err != nil {
				return nil, nil, err
			}
			assert.Equal(t, row.want, tr.MixedPrecision())
			return m, &History{}, nil
		})
		if row.want == "none" {
			require.ErrorIs(t, err, ErrConfig)
			require.ErrorIs(t, err, cluster.ErrSync)
			continue
		}
		require.NoError(t, err)
	}
}

// TestGroupDiverges changes one bit, or one element by much, at one member. It fails if a training goes on with
// replicas that are not the same.
func TestGroupDiverges(t *testing.T) {
	for _, row := range []struct {
		alike bool
		by    float64
		ok    bool
	}{{true, 1.2e-16, false}, {true, 0, true}, {false, 1.2e-16, true}, {false, 1e-3, false}} {
		_, err := everyMember(t, virtual(t, 3), func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
			m, err := Build(ctx, s, 5, Spec{Type: tensor.F64, Shape: []int{3}}, Dense{Out: 2}, BatchNorm{})
			if err != nil {
				return nil, nil, err
			}
			tr, err := NewTrainer(m, plain(2, 8))
			if err != nil {
				return nil, nil, err
			}
			d := line(s, 20)
			if err := tr.begin(ctx, d, d.narrow(0, 0)); err != nil {
				return nil, nil, err
			}
			last := m.Count() - 1 // a bias of the batch norm, 0 at first; before it is a weight of 1
			if s.Rank() == 1 {
				at := tensor.Iota(s, tensor.I32, m.Count()).Eq(last - 2).Cast(tensor.F64)
				tr.vars[atParams] = tr.vars[atParams].Sub(at.Mul(row.by))
			}
			if row.alike {
				return m, &History{}, tr.align(ctx)
			}
			vars, err := tr.aligned(ctx, s.Scope())
			if err == nil {
				list, e := tensor.Read[float64](ctx, vars[atParams])
				assert.NoError(t, e)
				assert.Equal(t, 1.0, list[last-2], "the first member's")
			}
			return m, &History{}, err
		})
		if row.ok {
			require.NoError(t, err, "%v", row)
			continue
		}
		var named *cluster.MemberError
		require.ErrorAs(t, err, &named, "%v", row)
		require.ErrorIs(t, err, cluster.ErrSync)
		assert.Equal(t, 1, named.Rank)
		assert.ErrorContains(t, err, "other values of params than member 0")
	}
}

// TestGroupBeginsAlike has one member begin otherwise. It fails if the training begins, or the error does not say what
// differs.
func TestGroupBeginsAlike(t *testing.T) {
	path := filepath.Join(t.TempDir(), "checkpoint")
	const configuration = "another configuration"
	for _, row := range []struct {
		says   string
		config func(c *Config)
		model  func(ctx context.Context, m *Model) error
		data   int
		resume bool
	}{
		{}, // which writes the checkpoint
		{says: configuration, config: func(c *Config) { c.Seed = 9 }},
		{says: configuration, config: func(c *Config) { c.LearningRate = 9 }},
		{says: configuration, config: func(c *Config) { c.InOrder = true }},
		{says: configuration, config: func(c *Config) { c.ClipNorm = 1 }},
		{says: configuration, config: func(c *Config) { c.Epochs = 3 }},
		{says: "data of another shape", data: 41},
		{says: "another checkpoint or epoch", resume: true},
		{says: "other values of params", model: func(ctx context.Context, m *Model) error {
			return m.SetValues(ctx, map[string]*tensor.Tensor{"0.bias": tensor.Ones(m.scope, tensor.F64, 2)})
		}},
	} {
		_, err := everyMember(t, virtual(t, 3), func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
			m, err := Build(ctx, s, 5, Spec{Type: tensor.F64, Shape: []int{3}}, Dense{Out: 2})
			if err != nil {
				return nil, nil, err
			}
			c, n := plain(2, 8), 40
			if row.says == "" {
				c.Checkpoint = path
			}
			other := s.Rank() == 2
			if other && row.config != nil {
				row.config(&c)
			}
			tr, err := NewTrainer(m, c)
			if err == nil && other && row.model != nil {
				err = row.model(ctx, m)
			}
			if err == nil && other && row.resume {
				err = tr.Resume(ctx, path)
			}
			if err != nil {
				return nil, nil, err
			}
			if other && row.data != 0 {
				n = row.data
			}
			h, err := tr.Fit(ctx, line(s, n))
			return m, h, err
		})
		if row.says == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, cluster.ErrSync)
		require.ErrorContains(t, err, "member 2: ")
		require.ErrorContains(t, err, row.says)
	}
}

// refusing refuses batches of so many rows.
type refusing struct{ rows int }

func (l refusing) Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	if p.Training && x.Dim(0) == l.rows {
		return p.Fail(x, "%d rows", l.rows)
	}
	return x
}

func (l refusing) String() string { return "refusing" }

// TestLaterPartFails has the second batch of a step fail. It fails if what the first one has added is kept: a
// checkpoint would have the batch in its sums, and train with it again.
func TestLaterPartFails(t *testing.T) {
	m := build(t, scopeOn(t, "cpu:0"), BatchNorm{}, refusing{2}, Dense{Out: 2})
	c := plain(1, 4)
	c.Accumulate = 2
	tr, err := NewTrainer(m, c)
	require.NoError(t, err)
	_, err = tr.Fit(t.Context(), line(m.scope, 6))
	require.ErrorIs(t, err, ErrConfig)
	for _, i := range []int{atSums, atGrads} {
		list, err := tensor.Read[float64](t.Context(), tr.vars[i])
		require.NoError(t, err)
		for _, x := range list {
			assert.Zero(t, x, tr.names[i])
		}
	}
	states, err := tensor.Read[float64](t.Context(), tr.vars[atStates])
	require.NoError(t, err)
	assert.Equal(t, []float64{0, 0, 0, 1, 1, 1}, states)
}

// TestGroupRecommendedBatch has members of one device, which have its memory together. It fails if each plans with all
// of it: then half of the rows would be half of the memory for each, as in TestRecommendedBatch.
func TestGroupRecommendedBatch(t *testing.T) {
	g := virtual(t, 2)
	info := g.Members()[0].Device().Info()
	_, err := everyMember(t, g, func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
		m, err := Build(ctx, s, 5, Spec{Type: tensor.F64, Shape: []int{3}}, Dense{Out: 1},
			wide{int(info.FreeMemory / 512 / 8)}, Dense{Out: 1})
		if err != nil {
			return nil, nil, err
		}
		d := Data{X: tensor.Zeros(s, tensor.F64, 16384, 3), Y: tensor.Zeros(s, tensor.F64, 16384, 1)}
		if err := tensor.Eval(ctx, d.X, d.Y); err != nil {
			return nil, nil, err
		}
		got, err := RecommendedBatch(ctx, m, plain(1, 7), d)
		assert.LessOrEqual(t, got, 256)
		assert.Greater(t, got, 8)
		return m, &History{}, err
	})
	require.NoError(t, err)
}

// TestGroupWeights gives members other parts of batches: none, or more than others have. It fails if a row counts twice
// or not at all, or by another weight than all others, in training or in evaluation.
func TestGroupWeights(t *testing.T) {
	c := plain(3, 7)
	c.Optimizer, c.LearningRate, c.Split = SGD{}, 0.01, new(0.3)
	want, err := one(t.Context(), scopeOn(t, "cpu:0"), normalized(c, BatchNorm{}))
	require.NoError(t, err)
	for _, weights := range [][]float64{{3, 1, 1}, {0, 2, 0}, {1e-9, 1, 0.5}} {
		c.Weights = weights
		got, err := everyMember(t, virtual(t, 3), normalized(c, BatchNorm{}))
		require.NoError(t, err)
		for _, one := range got {
			alike(t, want, one, 1e-9)
		}
	}
	for _, weights := range [][]float64{{1, 1}, {0, 0, 0}, {1, -1, 1}, {}} {
		c.Weights = weights
		_, err := everyMember(t, virtual(t, 3), normalized(c, BatchNorm{}))
		require.ErrorIs(t, err, ErrConfig, "%v", weights)
	}
	tr := &Trainer{model: &Model{}, scope: scopeOn(t, "cpu:0"), config: Config{Weights: []float64{1, 2}}}
	assert.Equal(t, share{0, 5, 5}, tr.share(5), "without a group")
}

// counting adds up how many members compute it, which is 1 without a group, and passes on what it gets.
type counting struct{}

func (counting) Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	return x.Mul(tensor.Ones(p.scope, x.Type(), 1).AllReduce(cluster.Mean))
}

func (counting) String() string { return "counting" }

// TestGroupEvaluates has layers with collectives, and batches that have no rows for some members. It fails if those
// leave the others alone in a collective, or count the rows that they have computed instead.
func TestGroupEvaluates(t *testing.T) {
	f := func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
		m, err := Build(ctx, s, 5, Spec{Type: tensor.F64, Shape: []int{3}}, counting{}, Dense{Out: 2})
		if err != nil {
			return nil, nil, err
		}
		c := plain(1, 3)
		c.Split = new(0.5)
		tr, err := NewTrainer(m, c)
		if err != nil {
			return nil, nil, err
		}
		h, err := tr.Fit(ctx, line(s, 20))
		return m, h, err
	}
	want, err := one(t.Context(), scopeOn(t, "cpu:0"), f)
	require.NoError(t, err)
	got, err := everyMember(t, virtual(t, 4), f)
	require.NoError(t, err)
	for _, one := range got {
		alike(t, want, one, 1e-9)
	}
}
