package nn

// Training on groups, beside the same training on one device.

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/tensor"
)

// virtual is a group of members of cpu:0.
func virtual(t testing.TB, n int) *cluster.Group {
	dev, err := runtime.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	g, err := cluster.Virtual(dev, n)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, g.Close())
		assert.NoError(t, dev.Close())
	})
	return g
}

// of is a group of devices, without which the test is skipped.
func of(t testing.TB, names ...string) *cluster.Group {
	var devs []*runtime.Device
	for _, name := range names {
		dev, err := runtime.Open(t.Context(), name)
		if err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() { assert.NoError(t, dev.Close()) })
		devs = append(devs, dev)
	}
	g, err := cluster.Options{Timeout: 5 * time.Minute}.Of(devs...) // one of them compiles
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	return g
}

// trained is what a training leaves.
type trained struct {
	values  []float64 // parameters and statistics
	history History
}

// everyMember runs a training at each member, and returns what each has.
func everyMember(t testing.TB, g *cluster.Group,
	f func(ctx context.Context, s *tensor.Scope) (*Model, *History, error)) ([]trained, error) {
	var mu sync.Mutex
	list := make([]trained, g.Size())
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	err := g.Do(ctx, func(ctx context.Context, m *cluster.Member) (err error) {
		s := tensor.NewMemberScope(m)
		defer func() { err = errors.Join(err, s.Close()) }()
		one, err := one(ctx, s, f)
		mu.Lock()
		defer mu.Unlock()
		list[m.Rank()] = one
		return err
	})
	return list, err
}

// one runs a training on a scope.
func one(ctx context.Context, s *tensor.Scope,
	f func(ctx context.Context, s *tensor.Scope) (*Model, *History, error)) (out trained, err error) {
	m, h, err := f(ctx, s)
	if err != nil {
		return out, err
	}
	out.history = *h
	for i, x := range []*tensor.Tensor{m.values.params, m.values.states} {
		data, err := contents(ctx, m.scope, [][]Param{m.params, m.states}[i], x)
		if err != nil {
			return out, err
		}
		work := m.scope.Scope()
		list, err := tensor.Read[float64](ctx, tensor.FromBytes(work, m.typ, data, len(data)/m.typ.Size()).Cast(tensor.F64))
		if err != nil {
			return out, err
		}
		out.values = append(out.values, list...)
		if err := work.Close(); err != nil {
			return out, err
		}
	}
	return out, nil
}

// alike compares trainings: the histories too.
func alike(t testing.TB, want, got trained, within float64) {
	t.Helper()
	require.Len(t, got.values, len(want.values))
	most := 0.0
	for i, x := range want.values {
		most = max(most, math.Abs(got.values[i]-x))
	}
	t.Logf("parameters differ by %.3g", most)
	assert.LessOrEqual(t, most, within)
	h, o := want.history, got.history
	assert.InDeltaSlice(t, h.TrainLoss, o.TrainLoss, within)
	assert.InDeltaSlice(t, h.ValLoss, o.ValLoss, within)
	assert.Equal(t, h.LearningRate, o.LearningRate)
	assert.Equal(t, h.BestEpoch, o.BestEpoch)
	assert.Equal(t, h.Stopped, o.Stopped)
	assert.Equal(t, h.TrainMetrics, o.TrainMetrics)
	assert.Equal(t, h.ValMetrics, o.ValMetrics)
}

// TestGroupEqualsOneDevice trains with each setting that the division of batches could break: batches that members
// cannot divide evenly, batches with fewer rows than members, masks, gradients of several batches, decisions. It fails
// if a member counts otherwise than by its rows, has other masks or decides otherwise.
func TestGroupEqualsOneDevice(t *testing.T) {
	layers := []Layer{Dense{Out: 8, Act: Tanh}, LayerNorm{}, Dropout{Rate: 0.3}, Dense{Out: 2}}
	for name, set := range map[string]func(c *Config){
		"plain":          func(*Config) {},
		"few rows":       func(c *Config) { c.BatchSize = 3 },
		"one row":        func(c *Config) { c.BatchSize = 1 },
		"accumulated":    func(c *Config) { c.Accumulate = 3 },
		"regularized":    func(c *Config) { c.L1, c.L2, c.ClipNorm, c.WeightDecay = 1e-3, 1e-3, 0.5, 1e-2 },
		"early stopping": func(c *Config) { c.Patience, c.MinDelta, c.Split, c.Epochs = new(1), new(0.05), new(0.3), 12 },
		"schedule": func(c *Config) {
			c.Schedule, c.Split, c.Epochs = Plateau{Patience: 1}, new(0.25), 8
		},
		"momentum": func(c *Config) { c.Optimizer, c.InOrder = Nesterov{}, true },
	} {
		t.Run(name, func(t *testing.T) {
			c := plain(3, 7)
			c.Optimizer, c.Metrics = SGD{}, []Metric{}
			set(&c)
			f := func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
				m, err := Build(ctx, s, 5, Spec{Type: tensor.F64, Shape: []int{3}}, layers...)
				if err != nil {
					return nil, nil, err
				}
				tr, err := NewTrainer(m, c)
				if err != nil {
					return nil, nil, err
				}
				tr.bucket = 150 // several
				h, err := tr.Fit(ctx, line(s, 40))
				return m, h, err
			}
			want, err := one(t.Context(), scopeOn(t, "cpu:0"), f)
			require.NoError(t, err)
			if name == "early stopping" {
				assert.NotEmpty(t, want.history.Stopped)
			}
			for _, n := range []int{2, 3, 4} {
				got, err := everyMember(t, virtual(t, n), f)
				require.NoError(t, err)
				alike(t, want, got[0], 1e-9)
				for _, other := range got[1:] {
					assert.Equal(t, got[0].values, other.values, "the same bits at all members")
					assert.Equal(t, got[0].history.TrainLoss, other.history.TrainLoss)
				}
				again, err := everyMember(t, virtual(t, n), f)
				require.NoError(t, err)
				assert.Equal(t, got[n-1].values, again[n-1].values, "the same bits in each run")
			}
		})
	}
}

// TestGroupHalf trains with products of half, whose loss is scaled: one member's rows are so large that their gradients
// overflow until the scale is small. It fails if members skip other steps, or scale otherwise.
func TestGroupHalf(t *testing.T) {
	f := func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
		m, err := Build(ctx, s, 5, Spec{Type: tensor.F32, Shape: []int{3}}, Dense{Out: 8, Act: Tanh}, Dense{Out: 2})
		if err != nil {
			return nil, nil, err
		}
		c := plain(3, 20)
		c.MixedPrecision, c.InOrder, c.Optimizer = F16, true, SGD{}
		tr, err := NewTrainer(m, c)
		if err != nil {
			return nil, nil, err
		}
		d := line(s, 40)
		large := tensor.Iota(s, tensor.F64, 40).Rem(20).Ge(10).Cast(tensor.F64).Mul(29).Add(1).Unsqueeze(1)
		h, err := tr.Fit(ctx, Data{X: d.X.Cast(tensor.F32), Y: d.Y.Mul(large).Cast(tensor.F32)})
		return m, h, err
	}
	want, err := one(t.Context(), scopeOn(t, "cpu:0"), f)
	require.NoError(t, err)
	assert.NotZero(t, want.history.Skipped[0])
	got, err := everyMember(t, virtual(t, 2), f)
	require.NoError(t, err)
	assert.Equal(t, got[0].values, got[1].values)
	assert.Equal(t, want.history.Skipped, got[0].history.Skipped)
	assert.Equal(t, want.history.Skipped, got[1].history.Skipped)
	assert.InDeltaSlice(t, want.values, got[1].values, 1e-2)
}

// TestGroupResumes interrupts a training of 2 members, and goes on with 3, with 1, and without a group. It fails if a
// checkpoint has what belongs to a member, or a member has other values than the file.
func TestGroupResumes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "checkpoint")
	layers := []Layer{Dense{Out: 8, Act: Tanh}, Dropout{Rate: 0.3}, Dense{Out: 2}}
	train := func(epochs int, file, from string) func(context.Context, *tensor.Scope) (*Model, *History, error) {
		return func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
			m, err := Build(ctx, s, 5, Spec{Type: tensor.F64, Shape: []int{3}}, layers...)
			if err != nil {
				return nil, nil, err
			}
			c := plain(epochs, 7)
			c.Checkpoint, c.Accumulate, c.Split = file, 2, new(0.2)
			c.OnEpoch = func(h *History) error { // between two epochs rank 0 has written what all will read
				if _, err := LoadHistory(path); s.Rank() == 0 && file != "" {
					return err
				}
				return nil
			}
			tr, err := NewTrainer(m, c)
			if err != nil {
				return nil, nil, err
			}
			if from != "" {
				if err := tr.Resume(ctx, from); err != nil {
					return nil, nil, err
				}
			}
			h, err := tr.Fit(ctx, line(s, 40))
			return m, h, err
		}
	}
	want, err := one(t.Context(), scopeOn(t, "cpu:0"), train(5, "", ""))
	require.NoError(t, err)
	_, err = everyMember(t, virtual(t, 2), train(2, path, ""))
	require.NoError(t, err)
	for _, n := range []int{3, 1} {
		got, err := everyMember(t, virtual(t, n), train(5, "", path))
		require.NoError(t, err)
		alike(t, want, got[n-1], 1e-9)
	}
	got, err := one(t.Context(), scopeOn(t, "cpu:0"), train(5, "", path))
	require.NoError(t, err)
	alike(t, want, got, 1e-9)
}

// TestGroupBegins has each member build a network from another seed, and write to files of its own. It fails if members
// do not begin with the parameters of rank 0, or others write too.
func TestGroupBegins(t *testing.T) {
	build := func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
		m, err := Build(ctx, s, uint64(s.Rank()), Spec{Type: tensor.F64, Shape: []int{3}}, Dense{Out: 8}, Dense{Out: 2})
		return m, &History{}, err
	}
	want, err := one(t.Context(), scopeOn(t, "cpu:0"), build)
	require.NoError(t, err)
	var logs [3]strings.Builder
	dir := t.TempDir()
	file := func(rank int) string { return filepath.Join(dir, strconv.Itoa(rank)) }
	_, err = everyMember(t, virtual(t, 3), func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
		m, _, err := build(ctx, s)
		if err != nil {
			return nil, nil, err
		}
		values, err := tensor.Read[float64](ctx, m.values.params)
		if err != nil {
			return nil, nil, err
		}
		assert.Equal(t, want.values, values)
		c := plain(2, 8)
		c.Log, c.Checkpoint, c.MaxTime = &logs[s.Rank()], file(s.Rank()), time.Hour
		if s.Rank() > 0 {
			c.MaxTime = 1 // by its own clock it would end
		}
		tr, err := NewTrainer(m, c)
		if err != nil {
			return nil, nil, err
		}
		h, err := tr.Fit(ctx, line(s, 42))
		assert.Equal(t, 2, h.Epochs())
		return m, h, err
	})
	require.NoError(t, err)
	assert.Equal(t, 2, strings.Count(logs[0].String(), "\n"))
	assert.Empty(t, logs[1].String()+logs[2].String())
	assert.FileExists(t, file(0))
	assert.NoFileExists(t, file(1))
}

// TestGroupFails ends a training at one member. It fails if others wait, go on, or return another error.
func TestGroupFails(t *testing.T) {
	stop := errors.New("stop")
	for name, set := range map[string]func(s *tensor.Scope, c *Config, cancel func()) error{
		"an epoch's function": func(_ *tensor.Scope, c *Config, _ func()) error {
			c.OnEpoch = func(*History) error { return stop }
			return stop
		},
		"its context": func(_ *tensor.Scope, c *Config, cancel func()) error {
			c.Progress = func(Progress) { cancel() }
			return context.Canceled
		},
		"its checkpoint": func(s *tensor.Scope, c *Config, _ func()) error {
			c.Checkpoint = filepath.Join(t.TempDir(), "none", "file")
			return nil
		},
		"another batch size": func(_ *tensor.Scope, c *Config, _ func()) error {
			c.Accumulate = 3
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			var want error
			_, err := everyMember(t, virtual(t, 3), func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				m, err := Build(ctx, s, 5, Spec{Type: tensor.F64, Shape: []int{3}}, Dense{Out: 2})
				if err != nil {
					return nil, nil, err
				}
				c := plain(100, 7)
				if s.Rank() == 0 { // which writes
					want = set(s, &c, cancel)
				}
				tr, err := NewTrainer(m, c)
				if err != nil {
					return nil, nil, err
				}
				h, err := tr.Fit(ctx, line(s, 40))
				if s.Rank() != 0 {
					var named *cluster.MemberError
					if assert.ErrorAs(t, err, &named) && name != "another batch size" {
						assert.Zero(t, named.Rank)
					}
				}
				return m, h, err
			})
			require.ErrorIs(t, err, cluster.ErrSync)
			if want != nil {
				require.ErrorIs(t, err, want)
			}
			assert.Less(t, time.Since(begin), 20*time.Second)
		})
	}
}

// TestGroupOverlap looks at the plan of a step with several buckets. It fails if the exchange of the last layer's
// gradient begins only when all gradients are computed, or the first call comes before they are queued.
func TestGroupOverlap(t *testing.T) {
	_, err := everyMember(t, virtual(t, 2), func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
		m, err := Build(ctx, s, 5, Spec{Type: tensor.F32, Shape: []int{64}}, Dense{Out: 64, Act: ReLU},
			Dense{Out: 64, Act: ReLU}, Dense{Out: 64, Act: ReLU}, Dense{Out: 64})
		if err != nil {
			return nil, nil, err
		}
		tr, err := NewTrainer(m, plain(1, 32))
		if err != nil {
			return nil, nil, err
		}
		tr.bucket = 64 * 64 * 4
		x := tensor.Normal(s, tensor.F32, 1, 0, 1, 64, 64)
		d := Data{X: x, Y: x.Mul(2)}
		if err := tr.begin(ctx, d, d.narrow(0, 0)); err != nil {
			return nil, nil, err
		}
		p, err := tr.step.Plan(ctx, append(append(tr.list(), tensor.Zeros(s, m.typ, 1), tensor.Zeros(s, tensor.U64, 1)),
			d.args(tensor.Iota(s, tensor.U32, 32))...)...)
		if err != nil {
			return nil, nil, err
		}
		var starts, calls, products []int
		for i, task := range p.Tasks {
			switch name := task.Operations[0]; {
			case name == "all-reduce sum start":
				starts = append(starts, i)
			case name == "all-reduce sum":
				calls = append(calls, i)
			case strings.HasPrefix(name, "matmul"):
				products = append(products, i)
			}
		}
		assert.Len(t, starts, 4, "%v", p)
		assert.Len(t, calls, 4)
		if assert.Len(t, products, 4+3+4) {
			assert.Less(t, starts[0], products[8], "three layers' gradients are left: %v", p)
			assert.Greater(t, calls[0], products[10])
			assert.Greater(t, calls[0], starts[3])
		}
		h, err := tr.Fit(ctx, d)
		return m, h, err
	})
	require.NoError(t, err)
}

// TestBuckets divides parameters as the specification says.
func TestBuckets(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		mib  []int
		want []cluster.Part
	}{
		{nil, nil},
		{[]int{1, 2, 3}, []cluster.Part{{First: 0, Count: 3}}},
		{[]int{20, 20, 20}, []cluster.Part{{First: 2, Count: 1}, {First: 1, Count: 1}, {First: 0, Count: 1}}},
		{[]int{5, 10, 15}, []cluster.Part{{First: 1, Count: 2}, {First: 0, Count: 1}}},
		{[]int{1, 100, 1}, []cluster.Part{{First: 2, Count: 1}, {First: 1, Count: 1}, {First: 0, Count: 1}}},
		{[]int{3, 15, 15}, []cluster.Part{{First: 1, Count: 2}, {First: 0, Count: 1}}}, // a bucket that is not 75 % full
	} {
		bytes := make([]int, len(c.mib))
		for i, n := range c.mib {
			bytes[i] = n * mib
		}
		assert.Equal(t, c.want, buckets(bytes, bucketBytes), "%v", c.mib)
	}
}

// network builds one of the networks of the specification for digits of a type.
func network(ctx context.Context, s *tensor.Scope, convolutions bool, typ tensor.Type) (*Model, error) {
	if !convolutions {
		return Build(ctx, s, 1, Spec{Type: typ, Shape: []int{784}}, Scale{Factor: 1.0 / 255},
			Dense{Out: 512, Act: ReLU}, Dense{Out: 256, Act: ReLU}, Dense{Out: 10})
	}
	three := []int{3, 3}
	return Build(ctx, s, 1, Spec{Type: typ, Shape: []int{1, 28, 28}}, Scale{Factor: 1.0 / 255},
		Conv{Filters: 32, Size: three, Act: ReLU}, Conv{Filters: 64, Size: three, Act: ReLU},
		MaxPool{Size: []int{2, 2}}, Flatten{}, Dense{Out: 128, Act: ReLU}, Dense{Out: 10})
}

// TestGroupDigits trains the networks of the specification on groups, and on one device with the same batches: in F64
// for 3 epochs, in F32 for 20 steps, and for the accuracy after 3 epochs.
func TestGroupDigits(t *testing.T) {
	groups := map[string]func(t *testing.T) *cluster.Group{
		"2 virtual":   func(t *testing.T) *cluster.Group { return virtual(t, 2) },
		"4 virtual":   func(t *testing.T) *cluster.Group { return virtual(t, 4) },
		"cpu, opencl": func(t *testing.T) *cluster.Group { return of(t, "cpu:0", "opencl:0") },
		"2 simulated": func(t *testing.T) *cluster.Group { return of(t, "sim-cuda:0", "sim-cuda:1") },
	}
	for _, row := range []struct {
		name         string
		convolutions bool
		typ          tensor.Type
		examples     int
		config       Config
		within       float64 // of parameters
	}{
		{"MLP f64", false, tensor.F64, 1000, Config{Epochs: 3, BatchSize: 128}, 1e-9},
		{"MLP f32, 20 steps", false, tensor.F32, 20 * 64, Config{Epochs: 1, BatchSize: 64, Split: new(0.0)}, 1e-5},
		{"MLP f32, accuracy", false, tensor.F32, 10000, Config{Epochs: 3, BatchSize: 128}, math.Inf(1)},
		{"CNN f64", true, tensor.F64, 100, Config{Epochs: 3, BatchSize: 24}, 1e-9},
		{"CNN f32, 20 steps", true, tensor.F32, 20 * 16, Config{Epochs: 1, BatchSize: 16, Split: new(0.0),
			Optimizer: Momentum{}, LearningRate: 0.01}, 1e-5}, // of Adam a gradient near 0 that rounds otherwise is a step
		{"CNN f32, accuracy", true, tensor.F32, 2000, Config{Epochs: 3, BatchSize: 64, Split: new(0.5)}, math.Inf(1)},
	} {
		t.Run(row.name, func(t *testing.T) {
			if testing.Short() && row.name != "MLP f32, 20 steps" {
				t.Skip("several trainings take long")
			}
			f := func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
				m, err := network(ctx, s, row.convolutions, row.typ)
				if err != nil {
					return nil, nil, err
				}
				d := digits(t, s, row.examples, m.In.Shape...)
				d.X = d.X.Cast(row.typ)
				c := row.config
				c.Loss, c.Seed = CrossEntropy{}, 1
				tr, err := NewTrainer(m, c)
				if err != nil {
					return nil, nil, err
				}
				h, err := tr.Fit(ctx, d)
				return m, h, err
			}
			wants := map[string]trained{} // of one device, by the first member's
			for name, make := range groups {
				t.Run(name, func(t *testing.T) {
					g := make(t)
					first := g.Members()[0].Device().String()
					if _, ok := wants[first]; !ok {
						one, err := one(t.Context(), scopeOn(t, first), f)
						require.NoError(t, err)
						wants[first] = one
					}
					want, begin := wants[first], time.Now()
					got, err := everyMember(t, g, f)
					require.NoError(t, err)
					most := 0.0
					for _, one := range got {
						for i, x := range want.values {
							most = max(most, math.Abs(one.values[i]-x))
						}
						for i, a := range want.history.ValMetrics["accuracy"] {
							assert.InDelta(t, a, one.history.ValMetrics["accuracy"][i], 0.003, "epoch %d", i)
						}
						assert.Equal(t, got[0].values, one.values)
						assert.Equal(t, got[0].history.TrainLoss, one.history.TrainLoss)
					}
					t.Logf("parameters differ by %.3g; %v", most, time.Since(begin))
					assert.LessOrEqual(t, most, row.within)
				})
			}
		})
	}
}
