package nn

// Networks whose layers are on several members, beside the same networks on one device.

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/runtime/profile"
	"github.com/concord-compute/concord/tensor"
)

// staged are seven layers with several shapes and one without parameters.
func staged() []Layer {
	return []Layer{Dense{Out: 32, Act: Tanh}, Reshape{Shape: []int{4, 8}}, Transformer{Heads: 2}, BatchNorm{},
		Residual{Body: Attention{Heads: 4}}, Flatten{}, Dense{Out: 2}}
}

// TestStagesPredict compares predictions with those of one device, which has trained the network. It fails if a member
// has parameters of others' layers, or a part of the examples gets another one's results.
func TestStagesPredict(t *testing.T) {
	in := Spec{Type: tensor.F64, Shape: []int{3}}
	path := filepath.Join(t.TempDir(), "model")
	alone := scopeOn(t, "cpu:0")
	m, err := Build(t.Context(), alone, 5, in, staged()...)
	require.NoError(t, err)
	fit(t, m, plain(2, 7), line(alone, 20))
	require.NoError(t, m.Save(t.Context(), path))
	want := func(rows, parts int) (all []float64) {
		x := line(alone, rows).X
		for _, part := range partsOf(rows, min(parts, rows)) {
			y, err := m.Predict(t.Context(), x.Narrow(0, part.First, part.Count), nil)
			require.NoError(t, err)
			list, err := tensor.Read[float64](t.Context(), y)
			require.NoError(t, err)
			all = append(all, list...)
		}
		return all
	}
	counts := map[int][]int{1: {7}, 2: {4, 3}, 3: {3, 3, 1}, 4: {2, 2, 2, 1}, 5: {2, 2, 2, 1, 0}}
	groups := map[string]func(t *testing.T) *cluster.Group{
		"5 virtual": func(t *testing.T) *cluster.Group { return virtual(t, 5) }} // one has no layers
	for name, group := range divisions {
		groups[name] = group
	}
	for name, group := range groups {
		t.Run(name, func(t *testing.T) {
			g := group(t)
			_, err := everyMember(t, g, func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
				first := 0
				for _, n := range counts[s.Size()][:s.Rank()] {
					first += n
				}
				end := first + counts[s.Size()][s.Rank()]
				for _, parts := range []int{1, 3} {
					m, err := BuildStages(ctx, s, 9, parts, in, staged()...)
					if err != nil {
						return nil, nil, err
					}
					for _, v := range m.Params() {
						own := int(v.Name[0]-'0') >= first && int(v.Name[0]-'0') < end
						assert.Equal(t, own, v.Len() > 0, "%s at %d", v.Name, s.Rank())
					}
					if err := m.Load(ctx, path); err != nil {
						return nil, nil, err
					}
					for _, rows := range []int{9, 2, 9} {
						y, err := m.Predict(ctx, line(s, rows).X, nil)
						if err != nil {
							return nil, nil, err
						}
						got, err := tensor.Read[float64](ctx, y)
						if err != nil {
							return nil, nil, err
						}
						if name == "cpu, opencl" {
							assert.InDeltaSlice(t, want(rows, parts), got, 1e-12)
						} else {
							assert.Equal(t, want(rows, parts), got, "the same bits, %d rows in %d parts", rows, parts)
						}
					}
				}
				m, err := BuildStages(ctx, s, 9, 1, in, staged()...)
				if err != nil {
					return nil, nil, err
				}
				if err = m.Load(ctx, path); err == nil {
					err = m.Save(ctx, path+" "+name)
				}
				return m, &History{}, err
			})
			require.NoError(t, err)
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			got, err := os.ReadFile(path + " " + name)
			require.NoError(t, err)
			assert.Equal(t, want, got, "the file of the members is that of one device")
		})
	}
}

// TestStagesLengths gives sequences lengths, which a part of the examples has to take along.
func TestStagesLengths(t *testing.T) {
	in := Spec{Type: tensor.I32, Shape: []int{6}}
	layers := []Layer{Embedding{Count: 9, Width: 4}, Attention{Heads: 2}, LSTM{Units: 3}, Dense{Out: 1}}
	data := func(s *tensor.Scope) (x, lengths *tensor.Tensor) {
		return tensor.Iota(s, tensor.I32, 30).Rem(9).Reshape(5, 6), tensor.From(s, []int32{1, 6, 3, 4, 2})
	}
	s := scopeOn(t, "cpu:0")
	m, err := Build(t.Context(), s, 5, in, layers...)
	require.NoError(t, err)
	x, lengths := data(s)
	var want []float32
	for i := range 5 { // each of the parts
		y, err := m.Predict(t.Context(), x.Narrow(0, i, 1), lengths.Narrow(0, i, 1))
		require.NoError(t, err)
		one, err := tensor.Read[float32](t.Context(), y)
		require.NoError(t, err)
		want = append(want, one...)
	}
	for _, n := range []int{1, 3} {
		_, err = everyMember(t, virtual(t, n), func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
			m, err := BuildStages(ctx, s, 5, 5, in, layers...)
			if err != nil {
				return nil, nil, err
			}
			x, lengths := data(s)
			y, err := m.Predict(ctx, x, lengths)
			if err != nil {
				return nil, nil, err
			}
			got, err := tensor.Read[float32](ctx, y)
			assert.Equal(t, want, got)
			return m, &History{}, err
		})
		require.NoError(t, err)
	}
}

// TestStagesOverlap looks at when members compute: with several parts at the same time, with one never. It fails if a
// member waits for the results of a part before it begins the next one.
func TestStagesOverlap(t *testing.T) {
	for _, parts := range []int{1, 4} {
		recording := new(profile.Recording)
		require.NoError(t, of(t, "cpu:0", "opencl:0").Do(t.Context(), func(ctx context.Context, m *cluster.Member) error {
			s := tensor.NewMemberScope(m)
			defer s.Close()
			wide := Dense{Out: 1024, Act: Tanh} // so that products take longer than members wait for a turn
			model, err := BuildStages(ctx, s, 5, parts, Spec{Type: tensor.F32, Shape: []int{1024}}, wide, wide, wide, wide)
			if err != nil {
				return err
			}
			x := tensor.Normal(s, tensor.F32, 1, 0, 1, 1200, 1024)
			for i := range 2 {
				if i == 1 && s.Rank() == 0 { // once all is compiled
					defer m.Device().Session().Observe(recording)()
				}
				if err := m.Barrier(ctx, nil); err != nil {
					return err
				}
				y, err := model.Predict(ctx, x, nil)
				if err != nil {
					return err
				}
				if _, err := tensor.Read[float32](ctx, y); err != nil {
					return err
				}
			}
			return m.Barrier(ctx, nil)
		}))
		events, _ := recording.Events()
		graphs := map[string][]profile.Event{}
		for _, e := range events {
			if e.Kind == profile.Graph {
				graphs[e.Device] = append(graphs[e.Device], e)
			}
		}
		require.Len(t, graphs["cpu:0"], parts)
		require.Len(t, graphs["opencl:0"], parts)
		beside := 0
		for _, e := range graphs["cpu:0"] {
			for _, f := range graphs["opencl:0"] {
				if e.Start < f.End && f.Start < e.End {
					beside++
				}
			}
		}
		t.Logf("%d parts: %d times at the same time", parts, beside)
		assert.Equal(t, parts > 1, beside > 0, "%v", graphs)
	}
}

// TestStagesMistakes has what a network of stages cannot do.
func TestStagesMistakes(t *testing.T) {
	in := Spec{Type: tensor.F64, Shape: []int{3}}
	s := scopeOn(t, "cpu:0")
	_, err := BuildStages(t.Context(), s, 1, 0, in, Dense{Out: 2})
	assert.ErrorIs(t, err, ErrConfig)
	_, err = BuildStages(t.Context(), s, 1, 1, in)
	assert.ErrorIs(t, err, ErrConfig)
	m, err := BuildStages(t.Context(), s, 1, 1, in, Dense{Out: 2})
	require.NoError(t, err)
	_, err = NewTrainer(m, Config{})
	assert.ErrorIs(t, err, ErrConfig)
	_, err = everyMember(t, virtual(t, 2), func(ctx context.Context, s *tensor.Scope) (*Model, *History, error) {
		m, err := BuildStages(ctx, s, 1, 1, in, Dense{Out: 4, Divided: Columns}, Dense{Out: 2, Divided: Rows})
		return m, &History{}, err
	})
	assert.ErrorIs(t, err, ErrConfig)
	assert.ErrorContains(t, err, "do not divide them, too")
}
