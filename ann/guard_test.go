package ann

import (
	"bytes"
	"context"
	"errors"
	"math"
	goruntime "runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

// TestPanics has functions of the program panic in every kind of index: the call returns an error that
// says so, and the index answers as before and can be changed.
func TestPanics(t *testing.T) {
	ctx, boom := t.Context(), errors.New("boom")
	var left atomic.Int64 // comparisons until the metric panics
	left.Store(math.MaxInt64)
	require.NoError(t, Register("panics", func(a, b []float32) float64 {
		if left.Add(-1) < 0 {
			panic(boom)
		}
		return math.Abs(float64(a[0]) - float64(b[0]))
	}))
	const n = 200
	vectors := make([]float32, n)
	for i := range vectors {
		vectors[i] = float32(i)
	}
	for _, kind := range []string{"flat", "brute", "hnsw", "ivf"} {
		ix, err := New(ctx, kind, 1, "custom:panics", Options{IVF: IVFOptions{Lists: 4, Probes: 2}})
		require.NoError(t, err)
		require.NoError(t, ix.Add(ctx, counted(n), vectors))
		query, have := []float32{7.2}, []Result{{9, 1}}
		want, err := ix.Search(ctx, slices.Clone(have), query, 3, nil)
		require.NoError(t, err)
		broken := func(filter *Filter) {
			t.Helper()
			got, err := ix.Search(ctx, slices.Clone(have), query, 3, filter)
			var failed *PanicError
			require.ErrorAs(t, err, &failed, kind)
			assert.ErrorIs(t, err, boom)
			assert.Equal(t, have, got, "dst as it was")
			_, err = ix.SearchBatch(ctx, slices.Concat(query, query, query), 3, filter)
			assert.ErrorIs(t, err, boom, kind)
			_, err = Exact(ctx, ix, query, 3, filter)
			assert.ErrorIs(t, err, boom, kind)
		}
		works := func(id int64) {
			t.Helper()
			require.NoError(t, ix.Add(ctx, []int64{id}, []float32{1e6}), kind)
			require.NoError(t, Update(ctx, ix, id, []float32{2e6}), kind)
			got, err := ix.Search(ctx, slices.Clone(have), query, 3, nil)
			require.NoError(t, err)
			assert.Equal(t, want, got, kind)
		}
		for i, f := range []func(int64) bool{
			func(int64) bool { panic(boom) },
			func(id int64) bool { return id < 150 || id == 1000 || func() bool { panic(boom) }() },
		} {
			for _, filter := range []*Filter{Predicate(f), Not(Predicate(f)), And(IDRange(0, 99), Predicate(f))} {
				broken(filter)
			}
			works(int64(1000 + i))
		}
		for _, after := range []int64{0, 1, 9} {
			left.Store(after)
			broken(nil)
			if kind == "hnsw" {
				have := ix.Info().Len
				left.Store(after)
				assert.ErrorIs(t, ix.Add(ctx, []int64{5000}, []float32{3}), boom)
				assert.ErrorIs(t, Update(ctx, ix, 3, []float32{3}), boom)
				assert.Equal(t, have, ix.Info().Len)
			}
			left.Store(math.MaxInt64)
			works(2000 + after)
		}
		for _, filter := range []*Filter{Predicate(nil), And(Predicate(nil)), Or(IDRange(0, 3), Predicate(nil)),
			Not(Predicate(nil)), {}} {
			_, err := ix.Search(ctx, nil, query, 3, filter)
			assert.ErrorIs(t, err, runtime.ErrInvalidArgument, kind)
		}
		ended := make(chan struct{})
		go func() { // which a function of the program ends
			defer close(ended)
			_, _ = ix.Search(ctx, nil, query, 3, Predicate(func(int64) bool { goruntime.Goexit(); return true }))
		}()
		<-ended
		works(3000)
		require.NoError(t, ix.Close())
	}
	m, err := ParseMetric("custom:panics")
	require.NoError(t, err)
	left.Store(0)
	_, err = m.Distance([]float32{1}, []float32{2})
	assert.ErrorIs(t, err, boom)
	assert.ErrorContains(t, err, "metric panics panicked: boom")
}

// TestNoMetric refuses the zero Metric wherever one is taken.
func TestNoMetric(t *testing.T) {
	dev := open(t, "cpu:0")
	_, err := NewFlat(dev, 2, Metric{}, FlatOptions{})
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	_, err = NewHNSW(dev, 2, Metric{}, HNSWOptions{})
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	_, err = NewIVF(dev, 2, Metric{}, IVFOptions{})
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	_, err = Metric{}.Distance([]float32{1}, []float32{2})
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	_, err = ParseMetric(Metric{}.String())
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
}

// TestNilContexts calls every function that takes a context with none: an error, and the index goes on.
func TestNilContexts(t *testing.T) {
	dev, ctx := open(t, "cpu:0"), context.Context(nil)
	vector, path := []float32{1, 2}, t.TempDir()+"/index.bin"
	refused := func(what string, err error) {
		t.Helper()
		assert.ErrorIs(t, err, runtime.ErrInvalidArgument, what)
		assert.ErrorContains(t, err, "context is nil", what)
	}
	for _, kind := range []string{"flat", "hnsw", "ivf"} {
		ix, err := New(t.Context(), kind, 2, "euclidean", Options{})
		require.NoError(t, err)
		require.NoError(t, ix.Add(t.Context(), []int64{1}, vector))
		require.NoError(t, Save(t.Context(), path, ix))
		refused("add", ix.Add(ctx, []int64{2}, vector))
		refused("remove", ix.Remove(ctx, []int64{1}))
		refused("update", Update(ctx, ix, 1, vector))
		refused("compact", ix.(interface{ Compact(context.Context) error }).Compact(ctx))
		_, err = ix.Search(ctx, nil, vector, 1, nil)
		refused("search", err)
		_, err = ix.SearchBatch(ctx, vector, 1, IDRange(0, 3))
		refused("search batch", err)
		_, err = Exact(ctx, ix, vector, 1, nil)
		refused("exact", err)
		_, err = ix.(interface {
			Get(context.Context, int64) ([]float32, error)
		}).Get(ctx, 1)
		refused("get", err)
		if x, ok := ix.(*IVF); ok {
			refused("train", x.Train(ctx))
		}
		assert.Equal(t, []Result{{1, 0}}, find(t, ix, vector, nil))
		require.NoError(t, ix.Close())
	}
	_, err := New(ctx, "flat", 2, "euclidean", Options{})
	refused("new", err)
	_, err = Open(ctx, path, Options{})
	refused("open", err)
	_, err = Read(ctx, &bytes.Buffer{}, Options{})
	refused("load", err)
	_, err = LoadIn(ctx, t.TempDir(), "index", Options{})
	refused("load file", err)
	_, err = Verify(ctx, path)
	refused("verify", err)
	_, err = L2(ctx, vector, vector, 2, 1, 1)
	refused("L2", err)
	_, err = L2Batch(ctx, vector, vector, 2, 1, 1, 0, FP32)
	refused("L2Batch", err)
	_, err = L2SqrtBatch(ctx, vector, vector, 2, 1, 1, 0, FP32)
	refused("L2SqrtBatch", err)
	_, err = UploadCorpus(ctx, dev, vector, 2, FP32)
	refused("UploadCorpus", err)
	c, err := UploadCorpus(t.Context(), dev, vector, 2, FP32)
	require.NoError(t, err)
	_, err = c.L2Batch(ctx, vector)
	refused("Corpus.L2Batch", err)
	_, err = c.L2SqrtBatch(ctx, vector)
	refused("Corpus.L2SqrtBatch", err)
	require.NoError(t, c.Close())
}
