package ann

import (
	"bytes"
	"context"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

// soak returns how much a test does: what the environment says, or else little. See the target soak of the Makefile.
func soak(t *testing.T, name string, little int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return little
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	return n
}

// TestMixed has four goroutines add, remove, update, search, read, write, train and compact at once. Each
// changes vectors of its own, so that it knows what has to be found of them at any time, and that nothing else
// is. From time to time all wait, and the index is compared with what they know together.
func TestMixed(t *testing.T) {
	const dim, goroutines = 8, 4
	indexes := map[string]Index{
		"flat":    flat(t, open(t, "cpu:0"), dim, L2Squared, FlatOptions{}),
		"streams": flat(t, narrow(t, "cpu:0", 6_000), dim, L2Squared, FlatOptions{}),
		"shards":  flat(t, open(t, "cpu:0"), dim, L2Squared, FlatOptions{Devices: several(t, "cpu:0")}),
		"hnsw":    hnsw(t, open(t, "cpu:0"), dim, L2Squared, HNSWOptions{M: 6, EfConstruction: 20}),
		"ivf":     ivf(t, open(t, "cpu:0"), dim, L2Squared, IVFOptions{Lists: 4, Probes: 4}),
		"pq":      ivf(t, open(t, "cpu:0"), dim, L2Squared, IVFOptions{Lists: 4, Probes: 4, Codes: 4, Refine: 2}),
	}
	operations := soak(t, "ANN_OPERATIONS", 2400)
	for name, ix := range indexes {
		t.Run(name, func(t *testing.T) {
			mixers := make([]mixer, goroutines)
			for g := range mixers {
				mixers[g] = mixer{t: t, ix: ix, r: rand.New(rand.NewPCG(13, uint64(g))), g: int64(g),
					vectors: map[int64][]float32{}}
			}
			var done atomic.Int64
			for rest := int64(operations / len(indexes)); rest > 0 && !t.Failed(); rest -= 100 {
				var left atomic.Int64
				left.Store(min(rest, 100))
				var wg sync.WaitGroup
				for g := range mixers {
					wg.Go(func() {
						for left.Add(-1) >= 0 && !t.Failed() {
							mixers[g].one()
							done.Add(1)
						}
					})
				}
				wg.Wait()
				atRest(t, ix, mixers)
			}
			t.Logf("%d operations", done.Load())
		})
	}
}

// atRest compares an index with all vectors of the goroutines, which do not change it meanwhile.
func atRest(t *testing.T, ix Index, mixers []mixer) {
	all := mixer{t: t, ix: ix, vectors: map[int64][]float32{}}
	for _, m := range mixers {
		maps.Copy(all.vectors, m.vectors)
	}
	ids := slices.Sorted(maps.Keys(all.vectors))
	assert.Equal(t, len(ids), ix.Info().Len)
	for _, id := range ids {
		v, err := ix.(interface {
			Get(ctx context.Context, id int64) ([]float32, error)
		}).Get(t.Context(), id)
		assert.NoError(t, err)
		assert.Equal(t, all.vectors[id], v)
	}
	indexes := []Index{ix}
	if mixers[0].r.IntN(20) == 0 {
		var b bytes.Buffer
		_, err := ix.WriteTo(&b)
		require.NoError(t, err)
		again, err := Read(t.Context(), &b, Options{})
		require.NoError(t, err)
		defer again.Close()
		indexes = append(indexes, again)
	}
	for _, ix := range indexes {
		query := mixers[0].vector()
		want := all.nearest(query, ids)
		found, err := Exact(t.Context(), ix, query, len(ids)+1, nil)
		assert.NoError(t, err)
		assert.Equal(t, want, found)
		few := min(10, len(ids))
		found, err = ix.Search(t.Context(), nil, query, few, nil)
		assert.NoError(t, err)
		switch i := ix.Info(); {
		case i.HNSW != nil || i.Kind == "pq": // which need not find all
			assert.Len(t, found, few)
			for _, r := range found {
				assert.Contains(t, want, r)
			}
		default:
			assert.Equal(t, want[:few], found)
		}
	}
}

// mixer makes the operations of one goroutine: the ids of its vectors leave g when they are divided by 4.
type mixer struct {
	t       *testing.T
	ix      Index
	r       *rand.Rand
	g, next int64
	vectors map[int64][]float32
}

func (m *mixer) one() {
	ctx := m.t.Context()
	ids := slices.Sorted(maps.Keys(m.vectors))
	switch what := m.r.IntN(20); {
	case what < 5 && len(ids) < 60 || len(ids) < 5:
		var some []int64
		var rows []float32
		for range 1 + m.r.IntN(6) {
			some = append(some, 4*m.next+m.g)
			m.next++
			m.vectors[some[len(some)-1]] = m.vector()
		}
		m.r.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		for _, id := range some {
			rows = append(rows, m.vectors[id]...)
		}
		assert.NoError(m.t, m.ix.Add(ctx, some, rows))
	case what < 8:
		m.r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		some := ids[:1+m.r.IntN(4)]
		assert.NoError(m.t, m.ix.Remove(ctx, some))
		for _, id := range some {
			delete(m.vectors, id)
		}
	case what < 10:
		id := ids[m.r.IntN(len(ids))]
		m.vectors[id] = m.vector()
		assert.NoError(m.t, Update(ctx, m.ix, id, m.vectors[id]))
	case what == 10:
		switch c, ok := m.ix.(interface{ Train(context.Context) error }); m.r.IntN(20) {
		case 0, 1:
			assert.NoError(m.t, m.ix.(interface{ Compact(context.Context) error }).Compact(ctx))
		case 2:
			if ok {
				assert.NoError(m.t, c.Train(ctx))
			}
		}
	case what == 11:
		if m.r.IntN(10) == 0 {
			_, err := m.ix.WriteTo(discard{})
			assert.NoError(m.t, err)
		}
	case what == 12:
		gone, cancel := context.WithCancel(ctx)
		cancel()
		assert.ErrorIs(m.t, m.ix.Add(gone, []int64{4*m.next + m.g}, m.vector()), context.Canceled)
	case what < 16: // its own vectors, exactly
		query, k := m.vector(), 1+m.r.IntN(12)
		want := m.nearest(query, ids)
		found, err := Exact(ctx, m.ix, query, k, IDSet(ids))
		assert.NoError(m.t, err)
		assert.Equal(m.t, want[:min(k, len(want))], found)
	default: // anybody's: those of its own that are found are there, and the results are in order
		query := m.vector()
		lists, err := m.ix.SearchBatch(ctx, append(query, query...), 9, nil)
		if !assert.NoError(m.t, err) {
			return
		}
		for _, found := range lists {
			for i, r := range found {
				if r.ID%4 == m.g {
					assert.Contains(m.t, m.vectors, r.ID)
					assert.Equal(m.t, m.distance(query, r.ID), r.Distance)
				}
				assert.True(m.t, i == 0 || found[i-1].compare(r) < 0)
			}
		}
	}
}

// vector returns a vector of whole numbers, so that distances are exact.
func (m *mixer) vector() []float32 {
	x := make([]float32, m.ix.Info().Dim)
	for i := range x {
		x[i] = float32(m.r.IntN(9) - 4)
	}
	return x
}

// nearest returns the vectors of ids in the order of their distances.
func (m *mixer) nearest(query []float32, ids []int64) []Result {
	var list []Result
	for _, id := range ids {
		list = append(list, Result{id, m.distance(query, id)})
	}
	slices.SortFunc(list, Result.compare)
	return list
}

func (m *mixer) distance(query []float32, id int64) float64 {
	if m.vectors[id] == nil {
		return -1
	}
	return L2Squared.distance(query, m.vectors[id])
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// TestKilledSave kills processes while they save an index again and again: the file is always one that was saved.
func TestKilledSave(t *testing.T) {
	const dim = 64
	if path := os.Getenv("ANN_SAVE"); path != "" { // in such a process
		saveForEver(t, path, dim)
	}
	path := filepath.Join(t.TempDir(), "x.ann")
	r := rand.New(rand.NewPCG(14, 14))
	for range soak(t, "ANN_KILLS", 3) {
		child := exec.Command(os.Args[0], "-test.run=^TestKilledSave$")
		child.Env = append(os.Environ(), "ANN_SAVE="+path)
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		_, err = out.Read(make([]byte, 1)) // it has saved once
		time.Sleep(time.Duration(r.IntN(30_000)) * time.Microsecond)
		require.NoError(t, child.Process.Kill())
		_ = child.Wait()
		require.NoError(t, err)
		info, err := Verify(t.Context(), path)
		require.NoError(t, err)
		ix, err := Open(t.Context(), path, Options{})
		require.NoError(t, err)
		v, err := ix.(*Flat).Get(t.Context(), int64(info.Len-1))
		require.NoError(t, err)
		assert.Equal(t, float32(info.Len), v[dim-1])
		require.NoError(t, ix.Close())
	}
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.LessOrEqual(t, len(left), 3, "what the killed ones left is removed by the next: %v", left)
}

// saveForEver saves an index of more and more vectors, and writes a byte when the first is there.
func saveForEver(t *testing.T, path string, dim int) {
	dev, err := runtime.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	f := flat(t, dev, dim, L2Squared, FlatOptions{})
	for n := 1; ; n++ {
		vector := make([]float32, dim)
		vector[dim-1] = float32(n)
		require.NoError(t, f.Add(t.Context(), []int64{int64(n - 1)}, vector))
		if n >= 500 {
			require.NoError(t, Save(t.Context(), path, f))
		}
		if n == 500 {
			_, _ = os.Stdout.Write([]byte{'\n'})
		}
	}
}
