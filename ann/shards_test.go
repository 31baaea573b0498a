package ann

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

// several opens those of some devices that are here: "small" is the CPU with a limit on its memory.
func several(t *testing.T, names ...string) (list []*runtime.Device) {
	t.Helper()
	for _, name := range names {
		if name == "small" {
			list = append(list, narrow(t, "cpu:0", 30_000))
		} else if dev, err := runtime.Open(t.Context(), name); err == nil {
			t.Cleanup(func() { assert.NoError(t, dev.Close()) })
			list = append(list, dev)
		}
	}
	return list
}

// TestShards divides vectors among devices: what is found is what one device finds, to the last bit, through
// changes and a file. The components are small integers, so that all devices compute the same, and many
// distances are equal.
func TestShards(t *testing.T) {
	const n, dim = 1500, 20
	for _, names := range [][]string{{"cpu:0", "cpu:0", "cpu:0"}, {"small", "cpu:0", "small"}, {"cpu:0", "opencl:0"},
		{"cpu:0", "sim-cuda:0", "sim-rocm:0"}} {
		t.Run(fmt.Sprint(names), func(t *testing.T) {
			devs := several(t, names...)
			if len(devs) < 2 {
				t.Skip("there is one")
			}
			for _, c := range []struct {
				m       Metric
				p       Precision
				weights []float64
			}{{Euclidean, FP32, nil}, {L2Squared, INT8Scaled, []float64{3, 1, 0.5}[:len(devs)]}, {Manhattan, FP32, nil}} {
				if names[1] == "sim-cuda:0" && c.m.kind != euclidean { // which take their time
					continue
				}
				r := rand.New(rand.NewPCG(11, 11))
				vectors, queries := make([]float32, n*dim), make([]float32, 12*dim)
				for _, x := range [][]float32{vectors, queries} {
					for i := range x {
						x[i] = float32(r.IntN(5) - 2)
					}
				}
				vectors[0] = 127 // a scale of 1
				ids := numbers(r, n)
				one := flat(t, open(t, "cpu:0"), dim, c.m, FlatOptions{Precision: c.p})
				all := flat(t, devs[0], dim, c.m, FlatOptions{Precision: c.p, Devices: devs[1:], Weights: c.weights})
				both := func(do func(f *Flat) error) {
					t.Helper()
					require.NoError(t, do(one))
					require.NoError(t, do(all))
				}
				same := func(ids []int64, what string) {
					t.Helper()
					sameAnswers(t, one, all, ids, queries, fmt.Sprint(c, what))
					require.True(t, all.balanced())
					require.NoError(t, all.place.Check())
					require.Equal(t, len(ids), all.place.Rows())
				}
				both(func(f *Flat) error { return f.Add(t.Context(), ids[:n/3], vectors[:n/3*dim]) })
				same(ids[:n/3], " a third")
				both(func(f *Flat) error { return f.Add(t.Context(), ids[n/3:], vectors[n/3*dim:]) })
				same(ids, " all")
				both(func(f *Flat) error { return f.Remove(t.Context(), ids[100:700]) })
				both(func(f *Flat) error { return f.Update(t.Context(), ids[900], queries[:dim]) })
				both(func(f *Flat) error { return f.Update(t.Context(), ids[7], queries[dim:2*dim]) })
				ids = append(ids[:100:100], ids[700:]...)
				same(ids, " changed")
				both(func(f *Flat) error { return f.Compact(t.Context()) })
				same(ids, " compact")
				for _, id := range ids[:40] {
					x, err := one.Get(t.Context(), id)
					require.NoError(t, err)
					y, err := all.Get(t.Context(), id)
					require.NoError(t, err)
					require.Equal(t, x, y)
				}
				var x, y bytes.Buffer
				_, err := one.WriteTo(&x)
				require.NoError(t, err)
				_, err = all.WriteTo(&y)
				require.NoError(t, err)
				assert.True(t, bytes.Equal(x.Bytes(), y.Bytes()), "the files")
				assert.Len(t, bytes.Split([]byte(all.Info().Device), []byte(",")), len(devs))
				require.NoError(t, all.Close()) // what it keeps for searches would take the next one's room
			}
		})
	}
}

// TestShardsOpen opens a file on several devices.
func TestShardsOpen(t *testing.T) {
	ctx := t.Context()
	one, err := New(ctx, "flat", 3, "l2sq", Options{})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "x.ann")
	vectors := random(rand.New(rand.NewPCG(12, 12)), 100, 3)
	require.NoError(t, one.Add(ctx, counted(100), vectors))
	require.NoError(t, Save(t.Context(), path, one))
	again, err := Open(ctx, path, Options{Device: "cpu:0, cpu:0"})
	require.NoError(t, err)
	assert.Equal(t, "cpu:0,cpu:0", again.Info().Device)
	sameAnswers(t, one.(*Flat), again.(*Flat), counted(100), vectors[:30], "opened")
	require.NoError(t, again.Close())
	require.NoError(t, one.Close())
	_, err = New(ctx, "flat", 3, "l2sq", Options{Device: "cpu:0,"})
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	_, err = New(ctx, "flat", 3, "l2sq", Options{Device: "cpu:0,cpu:9"})
	assert.ErrorIs(t, err, runtime.ErrDeviceIndex)
	dev := open(t, "cpu:0")
	for _, weights := range [][]float64{{1}, {1, 0}, {1, -1}, {1, inf}, {1, 2, 3}} {
		_, err = NewFlat(dev, 3, Euclidean, FlatOptions{Devices: []*runtime.Device{dev}, Weights: weights})
		assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	}
}

// TestShardsFail has one of two devices without room for even one row and query: nothing is found, and the
// error tells which it is.
func TestShardsFail(t *testing.T) {
	f := flat(t, open(t, "cpu:0"), 2, Euclidean, FlatOptions{Devices: []*runtime.Device{narrow(t, "cpu:reference", 100)}})
	require.NoError(t, f.Add(t.Context(), []int64{1, 2}, []float32{0, 0, 1, 1}))
	dst := []Result{{7, 7}}
	found, err := f.Search(t.Context(), dst, []float32{0, 0}, 2, nil)
	assert.ErrorIs(t, err, runtime.ErrBudget)
	assert.ErrorIs(t, err, ErrSync)
	assert.ErrorContains(t, err, "cpu:reference: ")
	assert.Equal(t, dst, found)
	found, err = f.Search(t.Context(), nil, []float32{0, 0}, 2, IDRange(0, 1))
	assert.NoError(t, err, "the other device has what is admitted")
	assert.Equal(t, []Result{{1, 0}}, found)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = f.Search(gone, nil, []float32{0, 0}, 2, nil)
	assert.ErrorIs(t, err, context.Canceled)
	assert.NotErrorIs(t, err, ErrSync)
	require.NoError(t, f.Close())
}
