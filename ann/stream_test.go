package ann

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

// narrow opens a device of a session with a limit on its memory.
func narrow(t *testing.T, name string, limit int64) *runtime.Device {
	t.Helper()
	s, err := runtime.New(runtime.Config{MemoryLimit: limit})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	dev, err := s.Open(t.Context(), name)
	if err != nil {
		t.Skipf("%s is not here: %v", name, err)
	}
	return dev
}

// sameAnswers searches two indexes in several ways, and finds the same.
func sameAnswers(t *testing.T, want, got *Flat, ids []int64, queries []float32, what string) {
	t.Helper()
	r := rand.New(rand.NewPCG(8, uint64(len(ids))))
	mask := make([]bool, len(ids))
	for i := range mask {
		mask[i] = r.IntN(3) == 0
	}
	for name, filter := range map[string]*Filter{"all": nil, "mask": Mask(mask),
		"a range": IDRange(ids[len(ids)/2]/2, ids[len(ids)/2]),
		"few":     IDSet(ids[:5]), "most": Not(IDSet(ids[3:9])), "none": Or()} {
		for _, k := range []int{1, 7, 200, 1500} {
			for _, nq := range []int{1, len(queries) / want.e.dim} {
				if (nq > 1) != (k == 7) {
					continue
				}
				some := queries[:nq*want.e.dim]
				x, err := want.SearchBatch(t.Context(), some, k, filter)
				require.NoError(t, err)
				y, err := got.SearchBatch(t.Context(), some, k, filter)
				require.NoError(t, err)
				require.Equal(t, x, y, "%s, %s: k=%d of %d queries", what, name, k, nq)
			}
		}
	}
}

// TestStreams has more vectors than the device's limit on memory admits: the answers are those of an index that
// is in its memory, through changes and a file.
func TestStreams(t *testing.T) {
	const limit, dim, n = 250_000, 64, 1500
	for _, name := range []string{"cpu:0", "opencl:0"} {
		t.Run(name, func(t *testing.T) {
			dev, wide := narrow(t, name, limit), open(t, name)
			for _, c := range []struct {
				m Metric
				p Precision
			}{{Euclidean, FP32}, {Cosine, FP16}, {L2Squared, INT8Scaled}, {Manhattan, FP32}} {
				if name != "cpu:0" && c.m.kind != euclidean { // a second is enough
					continue
				}
				rows := n * 4 / c.p.scaleOf(nil).size()
				r := rand.New(rand.NewPCG(7, 7))
				vectors, ids, queries := random(r, rows, dim), numbers(r, rows), random(r, 40, dim)
				vectors[0] = 9 // the largest, for the scale
				here, there := flat(t, wide, dim, c.m, FlatOptions{Precision: c.p}),
					flat(t, dev, dim, c.m, FlatOptions{Precision: c.p})
				both := func(do func(f *Flat) error) {
					t.Helper()
					require.NoError(t, do(here))
					require.NoError(t, do(there))
				}
				add := func(lo, hi int) {
					t.Helper()
					both(func(f *Flat) error { return f.Add(t.Context(), ids[lo:hi], vectors[lo*dim:hi*dim]) })
				}
				add(0, rows/8)
				sameAnswers(t, here, there, ids[:rows/8], queries, "an eighth")
				assert.False(t, there.Info().Streams)
				add(rows/8, rows)
				info := there.Info()
				assert.True(t, info.Streams)
				assert.Zero(t, info.DeviceMemory)
				sameAnswers(t, here, there, ids, queries, fmt.Sprint(c, " all"))

				both(func(f *Flat) error { return f.Remove(t.Context(), ids[100:400]) })
				both(func(f *Flat) error { return f.Update(t.Context(), ids[5], queries[:dim]) })
				ids, vectors = append(ids[:100:100], ids[400:]...), append(vectors[:100*dim:100*dim], vectors[400*dim:]...)
				sameAnswers(t, here, there, ids, queries, fmt.Sprint(c, " changed"))
				require.NoError(t, there.Compact(t.Context()))
				assert.True(t, there.Info().Streams)
				v, err := there.Get(t.Context(), ids[77])
				require.NoError(t, err)
				w, err := here.Get(t.Context(), ids[77])
				require.NoError(t, err)
				assert.Equal(t, w, v)

				var x, y bytes.Buffer
				both(func(f *Flat) error {
					_, err := f.WriteTo(map[bool]*bytes.Buffer{true: &x, false: &y}[f == here])
					return err
				})
				assert.True(t, bytes.Equal(x.Bytes(), y.Bytes()), "the files")
				path := filepath.Join(t.TempDir(), "x.ann")
				require.NoError(t, Save(t.Context(), path, there))
				again, err := Open(t.Context(), path, Options{Device: name, Session: dev.Session()})
				require.NoError(t, err)
				sameAnswers(t, here, again.(*Flat), ids, queries, fmt.Sprint(c, " opened"))
				require.NoError(t, again.Remove(t.Context(), ids[:1]))
				require.NoError(t, again.Add(t.Context(), ids[:1], vectors[:dim])) // not into the file
				require.NoError(t, again.Close())

				stats := dev.Stats().Memory
				assert.LessOrEqual(t, stats.PeakReserved, int64(limit))
				both(func(f *Flat) error { return f.Remove(t.Context(), ids[200:]) })
				both(func(f *Flat) error { return f.Compact(t.Context()) })
				assert.False(t, there.Info().Streams, "there is room again")
				sameAnswers(t, here, there, ids[:200], queries, "200")
				require.NoError(t, there.Close())
			}
		})
	}
}

// TestStreamsCustom searches by a function of the program what the device has no room for.
func TestStreamsCustom(t *testing.T) {
	_ = Register("offset", func(a, b []float32) float64 { return 7 + float64(a[0]-b[0])*float64(a[0]-b[0]) })
	m, err := ParseMetric("custom:offset")
	require.NoError(t, err)
	here, there := flat(t, open(t, "cpu:0"), 32, m, FlatOptions{}),
		flat(t, narrow(t, "cpu:0", 100_000), 32, m, FlatOptions{})
	vectors := random(rand.New(rand.NewPCG(9, 9)), 3000, 32)
	for _, f := range []*Flat{here, there} {
		require.NoError(t, f.Add(t.Context(), counted(3000), vectors))
	}
	require.True(t, there.Info().Streams)
	sameAnswers(t, here, there, counted(3000), vectors[:128], "a function")
}

// countdown is canceled when it has been looked at a number of times.
type countdown struct {
	context.Context
	cancel func()
	left   atomic.Int64
}

func (c *countdown) Err() error {
	if c.left.Add(-1) < 0 {
		c.cancel()
	}
	return c.Context.Err()
}

// TestStreamsCanceled gives searches up while chunks are on their way: the next one is right, and the device's
// memory is that of one search.
func TestStreamsCanceled(t *testing.T) {
	for _, name := range []string{"cpu:0", "opencl:0"} {
		t.Run(name, func(t *testing.T) {
			const dim, n = 64, 6000
			dev := narrow(t, name, 1<<20)
			here, there := flat(t, open(t, name), dim, Euclidean, FlatOptions{}), flat(t, dev, dim, Euclidean, FlatOptions{})
			vectors := random(rand.New(rand.NewPCG(10, 10)), n, dim)
			for _, f := range []*Flat{here, there} {
				require.NoError(t, f.Add(t.Context(), counted(n), vectors))
			}
			want, err := here.SearchBatch(t.Context(), vectors[:8*dim], 9, nil)
			require.NoError(t, err)
			got, err := there.SearchBatch(t.Context(), vectors[:8*dim], 9, nil)
			require.NoError(t, err)
			require.Equal(t, want, got)
			live := dev.Stats().Live
			for after := range 30 {
				ctx := &countdown{}
				ctx.Context, ctx.cancel = context.WithCancel(t.Context())
				ctx.left.Store(int64(after))
				got, err := there.SearchBatch(ctx, vectors[:8*dim], 9, nil)
				ctx.cancel()
				if err == nil {
					require.Equal(t, want, got)
				} else {
					require.ErrorIs(t, err, context.Canceled)
				}
				got, err = there.SearchBatch(t.Context(), vectors[:8*dim], 9, nil)
				require.NoError(t, err)
				require.Equal(t, want, got)
			}
			assert.Equal(t, live, dev.Stats().Live)
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			assert.ErrorIs(t, there.Add(gone, []int64{n}, vectors[:dim]), context.Canceled)
			assert.ErrorIs(t, there.Update(gone, 3, vectors[:dim]), context.Canceled)
			sameAnswers(t, here, there, counted(n), vectors[:3*dim], "after the canceled changes")
		})
	}
}

// TestMakesRoom searches an index whose rows leave the device no room for a search, while calls of Compact
// bring the rows back to the device again and again.
func TestMakesRoom(t *testing.T) {
	const dim, n = 8, 200
	f := flat(t, narrow(t, "cpu:0", 4*dim*n), dim, L2Squared, FlatOptions{})
	vectors := random(rand.New(rand.NewPCG(37, 37)), n, dim)
	require.NoError(t, f.Add(t.Context(), counted(n), vectors))
	require.False(t, f.Info().Streams)
	var searches, compacts sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range 4 {
		compacts.Go(func() {
			for ctx.Err() == nil {
				assert.NoError(t, f.Compact(t.Context()))
			}
		})
		searches.Go(func() {
			for q := range 15 {
				query := vectors[q%n*dim:][:dim]
				found, err := f.Search(t.Context(), nil, query, 9, nil)
				if assert.NoError(t, err) {
					judge(t, L2Squared, dim, 9, scan(L2Squared, dim, query, counted(n), vectors, nil), found,
						"while the rows come and go")
				}
			}
		})
	}
	searches.Wait()
	cancel()
	compacts.Wait()
}

// TestListsMakeRoom searches lists whose vectors leave the device no room for a search.
func TestListsMakeRoom(t *testing.T) {
	const dim, n = 8, 200
	vectors := random(rand.New(rand.NewPCG(38, 38)), n, dim)
	for _, o := range []IVFOptions{{}, {Lists: 4, Probes: 4}} {
		for _, batch := range []bool{false, true} {
			full := ivf(t, narrow(t, "cpu:0", 1<<30), dim, L2Squared, o)
			require.NoError(t, full.Add(t.Context(), counted(n), vectors))
			limit := full.e.dev.Stats().Live
			require.NoError(t, full.Close())
			x := ivf(t, narrow(t, "cpu:0", limit), dim, L2Squared, o)
			require.NoError(t, x.Add(t.Context(), counted(n), vectors))
			assert.False(t, x.Info().Streams)
			if batch {
				_, err := x.SearchBatch(t.Context(), vectors[:5*dim], 9, nil)
				require.NoError(t, err)
			}
			for q := range 5 {
				query := vectors[q*dim:][:dim]
				found, err := x.Search(t.Context(), nil, query, 9, nil)
				require.NoError(t, err)
				judge(t, L2Squared, dim, 9, scan(L2Squared, dim, query, counted(n), vectors, nil), found, "streams")
			}
			assert.True(t, x.Info().Streams)
		}
	}
}

// TestShardsMakeRoom has two parts of an index on one device, which has room for one of them and no search.
func TestShardsMakeRoom(t *testing.T) {
	const dim, n = 8, 64
	for limit := int64(4 * dim * n / 2); limit < 4*dim*n; limit += 128 {
		dev := narrow(t, "cpu:0", limit)
		f := flat(t, dev, dim, L2Squared, FlatOptions{Devices: []*runtime.Device{dev}})
		vectors := random(rand.New(rand.NewPCG(39, 39)), n, dim)
		require.NoError(t, f.Add(t.Context(), counted(n), vectors))
		found, err := f.Search(t.Context(), nil, vectors[:dim], 9, nil)
		if !assert.NoError(t, err, limit) {
			continue
		}
		judge(t, L2Squared, dim, 9, scan(L2Squared, dim, vectors[:dim], counted(n), vectors, nil), found, "one device twice")
	}
}

// TestNoRoom has what does not stream fail without a trace where the device has no room: a graph, the centres
// of lists, and distances of all pairs.
func TestNoRoom(t *testing.T) {
	const dim, n = 8, 200
	vectors := random(rand.New(rand.NewPCG(40, 40)), 2*n, dim)
	h := hnsw(t, narrow(t, "cpu:0", 4*dim*n+4096), dim, L2Squared, HNSWOptions{InitialCapacity: n, Threads: 1})
	require.NoError(t, h.Add(t.Context(), counted(n), vectors[:n*dim]))
	before := find(t, h, vectors[:dim], nil)
	assert.ErrorIs(t, h.Add(t.Context(), []int64{n + 1}, vectors[n*dim:][:dim]), runtime.ErrBudget)
	assert.Equal(t, n, h.Len())
	assert.Equal(t, before, find(t, h, vectors[:dim], nil))
	assert.ErrorIs(t, Update(t.Context(), h, 3, vectors[:dim]), runtime.ErrBudget, "which adds the new vector")
	require.NoError(t, h.Remove(t.Context(), []int64{3}))
	assert.NotContains(t, find(t, h, vectors[3*dim:4*dim], nil), Result{3, 0})

	x := ivf(t, narrow(t, "cpu:0", 1000), dim, L2Squared, IVFOptions{Lists: 4})
	err := x.Add(t.Context(), counted(n), vectors[:n*dim])
	assert.ErrorIs(t, err, runtime.ErrBudget)
	assert.ErrorContains(t, err, "fewer lists")
	assert.Zero(t, x.Info().Len)

	dev := narrow(t, "cpu:0", 4*dim*n)
	_, err = UploadCorpus(t.Context(), dev, vectors, dim, FP32)
	assert.ErrorIs(t, err, runtime.ErrBudget)
	assert.Zero(t, dev.Stats().Live)
	c, err := UploadCorpus(t.Context(), dev, vectors[:n/2*dim], dim, FP32)
	require.NoError(t, err)
	defer c.Close()
	live := dev.Stats().Live
	_, err = c.L2Batch(t.Context(), vectors)
	assert.ErrorIs(t, err, runtime.ErrBudget)
	assert.Equal(t, live, dev.Stats().Live)
	out, err := c.L2Batch(t.Context(), vectors[:dim])
	require.NoError(t, err)
	assert.Zero(t, out[0])
}
