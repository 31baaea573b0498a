package ann

import (
	"bytes"
	"context"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
)

// mover returns a Runner for opencl:0, and a function that gives that device up.
func mover(t *testing.T, o runtime.Config) (r *cluster.Runner, lose func()) {
	session, err := runtime.New(o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, session.Close()) })
	dev, err := session.Open(t.Context(), "opencl:0")
	if err != nil {
		t.Skip(err)
	}
	require.NoError(t, dev.Close())
	r, err = cluster.Failover{Session: session}.NewRunner(t.Context(), "opencl:0")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Close()) })
	return r, func() {
		dev, err := session.Open(t.Context(), "opencl:0")
		require.NoError(t, err)
		_ = dev.Abandon(runtime.ErrDeviceLost)
		_ = dev.Close()
		require.NoError(t, r.Resume("opencl:0")) // which tries it, after it has failed
	}
}

// TestMoving gives the device up between and during changes: an index of each kind has what one has that was not
// disturbed, made empty, of a file and of a reader, and so does the file that it writes.
func TestMoving(t *testing.T) {
	const dim, n = 8, 300
	ctx := t.Context()
	r, lose := mover(t, runtime.Config{})
	rnd := rand.New(rand.NewPCG(1, 2))
	vectors, queries := make([]float32, n*dim), make([]float32, 5*dim)
	for _, list := range [][]float32{vectors, queries} { // whole numbers, with which no device rounds
		for i := range list {
			list[i] = float32(rnd.IntN(40))
		}
	}
	for _, c := range []struct {
		kind string
		o    Options
	}{{"flat", Options{}}, {"flat", Options{Precision: FP16}},
		{"ivf", Options{IVF: IVFOptions{Lists: 4, Probes: 4}}}} {
		want, err := New(ctx, c.kind, dim, "l2sq", c.o)
		require.NoError(t, err)
		c.o.Runner = r
		got, err := New(ctx, c.kind, dim, "l2sq", c.o)
		require.NoError(t, err)
		both := func(f func(ix Index) error) {
			t.Helper()
			require.NoError(t, f(want))
			require.NoError(t, f(got))
		}
		same := func(got Index) {
			t.Helper()
			assert.Equal(t, want.Info().Len, got.Info().Len)
			for k := range 3 {
				a, err := want.SearchBatch(ctx, queries, 1+10*k, nil)
				require.NoError(t, err)
				b, err := got.SearchBatch(ctx, queries, 1+10*k, nil)
				require.NoError(t, err)
				require.Equal(t, a, b)
			}
		}
		both(func(ix Index) error { return ix.Add(ctx, counted(200), vectors[:200*dim]) })
		same(got)
		lose()
		same(got)
		both(func(ix Index) error { return ix.Remove(ctx, []int64{3, 150}) })
		lose()
		both(func(ix Index) error { return ix.Add(ctx, counted(n)[200:], vectors[200*dim:]) })
		both(func(ix Index) error { return Update(ctx, ix, 7, vectors[:dim]) })
		lose()
		same(got)
		assert.ErrorIs(t, got.Add(ctx, []int64{7}, vectors[:dim]), runtime.ErrInvalidArgument)
		assert.Error(t, got.Remove(ctx, []int64{3}))
		path := filepath.Join(t.TempDir(), "index")
		require.NoError(t, Save(ctx, path, got))
		opened, err := Open(ctx, path, Options{Runner: r})
		require.NoError(t, err)
		lose()
		same(opened)
		var file bytes.Buffer
		_, err = opened.WriteTo(&file)
		require.NoError(t, err)
		read, err := Read(ctx, &file, Options{Runner: r})
		require.NoError(t, err)
		lose()
		same(read)
		both(func(ix Index) error { return ix.Remove(ctx, []int64{7}) })
		require.NoError(t, opened.Remove(ctx, []int64{7}))
		lose()
		same(opened)
		for _, ix := range []Index{want, got, opened, read} {
			require.NoError(t, ix.Close())
			assert.ErrorIs(t, ix.Remove(ctx, []int64{1}), runtime.ErrClosed)
		}
	}
	assert.Positive(t, r.Stats().Fallbacks)
	assert.Zero(t, r.Stats().Exhausted)
}

// TestMovingCopy adds and removes the same vectors for ever: the host's copy does not grow.
func TestMovingCopy(t *testing.T) {
	const dim = 4
	r, err := cluster.NewRunner(t.Context(), "cpu:0")
	require.NoError(t, err)
	defer func() { assert.NoError(t, r.Close()) }()
	ix, err := New(t.Context(), "flat", dim, "l2sq", Options{Runner: r})
	require.NoError(t, err)
	x := ix.(*Moving)
	vectors := make([]float32, 100*dim)
	require.NoError(t, ix.Add(t.Context(), counted(100), vectors))
	for range 500 {
		require.NoError(t, ix.Remove(t.Context(), counted(50)))
		require.NoError(t, ix.Add(t.Context(), counted(50), vectors[:50*dim]))
		require.LessOrEqual(t, x.bytes, x.kept)
		require.Less(t, x.kept, 20_000)
	}
	require.NoError(t, ix.Close())
}

// TestMovingWaits has several changes at once that take longer together than an attempt may: the device is not given up
// for what a change waits for another one.
func TestMovingWaits(t *testing.T) {
	const dim, each = 4, 600 * time.Millisecond
	session, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, session.Close()) })
	r, err := cluster.Failover{Session: session, Timeout: 3 * each}.NewRunner(t.Context(), "cpu:0")
	require.NoError(t, err)
	defer func() { assert.NoError(t, r.Close()) }()
	ix, err := New(t.Context(), "flat", dim, "l2sq", Options{Runner: r, Progress: func(p Progress) {
		if p.Done == p.Of {
			time.Sleep(each)
		}
	}})
	require.NoError(t, err)
	defer func() { assert.NoError(t, ix.Close()) }()
	const changes = 6
	errs := make([]error, changes)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = ix.Add(t.Context(), []int64{int64(i)}, make([]float32, dim)) })
	}
	wg.Wait()
	assert.Equal(t, make([]error, changes), errs)
	assert.Equal(t, changes, ix.Info().Len)
	assert.Zero(t, r.Devices()[0].Failures)
}

// TestMovingProgress is told of the program's Adds, on the first device and the next, and of no other work.
func TestMovingProgress(t *testing.T) {
	const dim = 4
	ctx := t.Context()
	r, lose := mover(t, runtime.Config{})
	told := 0
	o := Options{Runner: r, Progress: func(Progress) { told++ }}
	ix, err := New(ctx, "flat", dim, "l2sq", o)
	require.NoError(t, err)
	add := func(ix Index, first int64) {
		t.Helper()
		told = 0
		require.NoError(t, ix.Add(ctx, []int64{first, first + 1}, make([]float32, 2*dim)))
		assert.Positive(t, told)
		told = 0
	}
	moved := func(ix Index) {
		t.Helper()
		lose()
		_, err := ix.Search(ctx, nil, make([]float32, dim), 1, nil)
		require.NoError(t, err)
		assert.Zero(t, told, "a search is no Add")
	}
	add(ix, 0)
	moved(ix)
	add(ix, 2)
	var file bytes.Buffer
	_, err = ix.WriteTo(&file)
	require.NoError(t, err)
	read, err := Read(ctx, &file, o)
	require.NoError(t, err)
	add(read, 4)
	moved(read)
	add(read, 6)
	require.NoError(t, ix.Close())
	require.NoError(t, read.Close())
}

// TestMovingRefuses has what makes no sense, the policy "require", and an Info after a failure.
func TestMovingRefuses(t *testing.T) {
	ctx := t.Context()
	r, lose := mover(t, runtime.Config{Fallback: runtime.Require})
	for kind, o := range map[string]Options{"hnsw": {}, "brute": {}, "flat": {Device: "cpu:0"}, "ivf": {Session: nil,
		Weights: []float64{1}}} {
		o.Runner = r
		_, err := New(ctx, kind, 4, "l2sq", o)
		assert.Error(t, err, kind)
	}
	ix, err := New(ctx, "flat", 4, "l2sq", Options{Runner: r})
	require.NoError(t, err)
	require.NoError(t, ix.Add(ctx, counted(3), make([]float32, 12)))
	lose()
	short, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	dst := make([]Result, 1)
	got, err := ix.Search(short, dst, make([]float32, 4), 1, nil)
	assert.ErrorIs(t, err, runtime.ErrDeviceLost)
	assert.Len(t, got, 1)
	assert.Equal(t, 3, ix.Info().Len)
	assert.Empty(t, ix.Info().Device)
	assert.Zero(t, r.Stats().Fallbacks)
	require.NoError(t, r.Resume("opencl:0")) // it works again
	_, err = ix.Search(short, nil, make([]float32, 4), 1, nil)
	assert.NoError(t, err)
	assert.Equal(t, "opencl:0", ix.Info().Device)
	require.NoError(t, ix.Close())
}
