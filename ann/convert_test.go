package ann

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// TestSetPrecision converts an index to every precision: its answers and its file are those of an index that was made
// with that precision, wherever the vectors are.
func TestSetPrecision(t *testing.T) {
	const n, dim = 700, 20
	for _, names := range [][]string{{"cpu:0"}, {"cpu:0", "cpu:0", "cpu:0"}, {"small"}, {"small", "cpu:0"},
		{"opencl:0"}} {
		for _, m := range []Metric{Euclidean, Cosine, Manhattan} {
			t.Run(fmt.Sprint(names, m), func(t *testing.T) {
				devs := several(t, names...)
				if len(devs) < len(names) {
					t.Skip("they are not here")
				}
				r := rand.New(rand.NewPCG(3, 4))
				vectors, queries, ids := random(r, n, dim), random(r, 8, dim), numbers(r, n)
				f := flat(t, devs[0], dim, m, FlatOptions{Devices: devs[1:]})
				require.NoError(t, f.Add(t.Context(), ids, vectors))
				require.NoError(t, f.Remove(t.Context(), ids[40:60]))
				left := append(append([]int64{}, ids[:40]...), ids[60:]...)
				stored := append(append([]float32{}, vectors[:40*dim]...), vectors[60*dim:]...)
				for _, p := range []Precision{FP32, FP16, FP32, INT8Scaled, FP16, INT8} {
					require.NoError(t, f.SetPrecision(t.Context(), p))
					assert.Equal(t, p.String(), f.Info().Precision)
					want := flat(t, open(t, devs[0].String()), dim, m, FlatOptions{Precision: p}) // with room
					require.NoError(t, want.Add(t.Context(), left, stored))
					sameAnswers(t, want, f, left, queries, p.String())
					var file bytes.Buffer
					_, err := f.WriteTo(&file)
					require.NoError(t, err)
					ix, err := Read(t.Context(), &file, Options{Device: devs[0].String()})
					require.NoError(t, err)
					sameAnswers(t, want, ix.(*Flat), left, queries, p.String()+", from a file")
					require.NoError(t, ix.Close())
					for i, id := range left { // the next index is made of what is left of the components
						v, err := f.Get(t.Context(), id)
						require.NoError(t, err)
						copy(stored[i*dim:], v)
					}
				}
				require.NoError(t, f.Add(t.Context(), []int64{5}, queries[:dim]), "in the new precision")
				got, err := f.Get(t.Context(), 5)
				require.NoError(t, err)
				for i, x := range got {
					assert.InDelta(t, queries[i], x, 1./127+max(0, float64(abs(queries[i]))-1))
				}
			})
		}
	}
}

func abs(x float32) float32 { return max(x, -x) }

// TestSetPrecisionRefuses: an error leaves the index as it was.
func TestSetPrecisionRefuses(t *testing.T) {
	dev := open(t, "cpu:0")
	f := flat(t, dev, 2, Euclidean, FlatOptions{})
	require.NoError(t, f.SetPrecision(t.Context(), INT8Scaled), "an empty one")
	require.NoError(t, f.SetPrecision(t.Context(), FP32))
	require.NoError(t, f.Add(t.Context(), []int64{9, 4}, []float32{1, 2, 3, 70000}))
	before := func() {
		t.Helper()
		assert.Equal(t, "fp32", f.Info().Precision)
		got, err := f.Search(t.Context(), nil, []float32{1, 2}, 2, nil)
		require.NoError(t, err)
		require.Len(t, got, 2)
		assert.Equal(t, Result{9, 0}, got[0])
	}
	err := f.SetPrecision(t.Context(), FP16)
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	assert.ErrorContains(t, err, "component 1 of the vector with the id 4 is 70000")
	before()
	assert.ErrorIs(t, f.SetPrecision(t.Context(), 9), driver.ErrUnsupportedPrecision)
	ended, end := context.WithCancel(t.Context())
	end()
	assert.ErrorIs(t, f.SetPrecision(ended, INT8), context.Canceled)
	before()
	live := dev.Stats().Live
	require.NoError(t, f.SetPrecision(t.Context(), INT8Scaled))
	assert.Less(t, dev.Stats().Live, live, "nothing is left of the larger ones")
	v, err := f.Get(t.Context(), 4)
	require.NoError(t, err)
	assert.Equal(t, []float32{0, 70000}, v, "the scale is that of the largest component")

	for kind, ok := range map[string]bool{"brute": false, "hnsw": false, "ivf": false, "flat": true} {
		ix, err := New(t.Context(), kind, 2, "euclidean", Options{})
		require.NoError(t, err)
		err = SetPrecision(t.Context(), ix, FP16)
		if ok {
			assert.NoError(t, err)
		} else {
			assert.ErrorIs(t, err, runtime.ErrUnsupported, kind)
		}
		require.NoError(t, ix.Close())
		assert.Error(t, SetPrecision(t.Context(), ix, FP16), "it is closed")
	}
}

// TestSetPrecisionMeanwhile searches while the precision changes between two in which the answers are the same.
func TestSetPrecisionMeanwhile(t *testing.T) {
	const n, dim = 300, 16
	r := rand.New(rand.NewPCG(1, 9))
	f := flat(t, open(t, "cpu:0"), dim, L2Squared, FlatOptions{})
	vectors, ids := make([]float32, n*dim), numbers(r, n)
	for i := range vectors {
		vectors[i] = float32(r.IntN(9)-4) / 4
	}
	require.NoError(t, f.Add(t.Context(), ids, vectors))
	queries := vectors[:4*dim]
	want, err := f.SearchBatch(t.Context(), queries, 5, nil)
	require.NoError(t, err)
	var over atomic.Bool
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for !over.Load() {
				got, err := f.SearchBatch(t.Context(), queries, 5, nil)
				if !assert.NoError(t, err) || !assert.Equal(t, want, got) {
					return
				}
			}
		})
	}
	for range 20 {
		for _, p := range []Precision{FP16, FP32} {
			assert.NoError(t, f.SetPrecision(t.Context(), p))
			assert.NoError(t, f.Update(t.Context(), ids[0], vectors[:dim]))
		}
	}
	over.Store(true)
	wg.Wait()
}

// TestSetPrecisionOfFile: an index of a file in place leaves the file, and can be saved over it.
func TestSetPrecisionOfFile(t *testing.T) {
	const n, dim = 200, 8
	r := rand.New(rand.NewPCG(2, 8))
	f := flat(t, open(t, "cpu:0"), dim, Euclidean, FlatOptions{})
	vectors, ids := random(r, n, dim), numbers(r, n)
	require.NoError(t, f.Add(t.Context(), ids, vectors))
	path := filepath.Join(t.TempDir(), "x.ann")
	require.NoError(t, Save(t.Context(), path, f))
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, f.SetPrecision(t.Context(), FP16))
	for range 2 { // the second one is of halves already
		ix, err := Open(t.Context(), path, Options{})
		require.NoError(t, err)
		require.NoError(t, SetPrecision(t.Context(), ix, FP16))
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, before, after)
		sameAnswers(t, f, ix.(*Flat), ids, vectors[:4*dim], "of a file")
		require.NoError(t, Save(t.Context(), path, ix))
		require.NoError(t, ix.Close())
		before, err = os.ReadFile(path)
		require.NoError(t, err)
		assert.Less(t, len(before), 4*len(vectors)+8*n)
	}
}
