package ann

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestChangesBesideHeldUpSearch changes an index while the filter of a search is held up: no change waits for
// the search, which finds what was there when it began.
func TestChangesBesideHeldUpSearch(t *testing.T) {
	ctx := t.Context()
	h := hnsw(t, open(t, "cpu:0"), 2, L2Squared, HNSWOptions{M: 4, EfConstruction: 10})
	vectors := random(rand.New(rand.NewPCG(81, 82)), 300, 2)
	require.NoError(t, h.Add(ctx, counted(200), vectors[:400]))
	want := find(t, h, vectors[:2], IDRange(0, 199))
	begun, changed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	held := func(int64) bool {
		once.Do(func() {
			close(begun)
			select {
			case <-changed:
			case <-time.After(20 * time.Second): // instead of for ever
				t.Error("a change waits for a search")
			}
		})
		return true
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		got, err := h.Search(ctx, nil, vectors[:2], len(want), Predicate(held))
		assert.NoError(t, err)
		assert.Equal(t, want, got)
	})
	<-begun
	for i := range 100 {
		require.NoError(t, h.Add(ctx, []int64{int64(200 + i)}, vectors[2*(200+i):2*(201+i)]))
	}
	require.NoError(t, h.Add(ctx, []int64{300}, vectors[:2]), "a copy")
	require.NoError(t, h.Update(ctx, 1, []float32{9, 9}))
	require.NoError(t, h.Remove(ctx, []int64{want[0].ID, want[1].ID}))
	require.NoError(t, h.SetEfSearch(70))
	assert.Equal(t, 299, h.Len())
	close(changed)
	wg.Wait()
}

// TestUpdatesAreWhole moves vectors while others search: each id is found once, at one of its places, whatever
// the filter.
func TestUpdatesAreWhole(t *testing.T) {
	const n = 40
	ctx := t.Context()
	for _, codes := range []bool{false, true} {
		h := hnsw(t, open(t, "cpu:0"), 2, L2Squared, HNSWOptions{M: 4, EfConstruction: 20, EfSearch: 400, InitialCapacity: 16,
			Codes: codes})
		vectors := random(rand.New(rand.NewPCG(83, 84)), n, 2)
		require.NoError(t, h.Add(ctx, counted(n), vectors))
		var done atomic.Bool
		var wg sync.WaitGroup
		for g := range 3 {
			wg.Go(func() {
				filter := []*Filter{nil, IDSet(append(counted(n), 5*n)), Predicate(func(id int64) bool { return id < n })}[g]
				for !done.Load() {
					got, err := h.Search(ctx, nil, vectors[:2], n, filter)
					if !assert.NoError(t, err) {
						return
					}
					ids := make([]int64, len(got))
					for i, r := range got {
						ids[i] = r.ID
					}
					slices.Sort(ids)
					if !assert.Equal(t, counted(n), ids) {
						return
					}
				}
			})
		}
		for i := range 400 {
			id := int64(i % n)
			at := vectors[2*id:][:2]
			if i%3 == 0 { // which others have: copies
				at = vectors[2*((id+1)%n):][:2]
			}
			require.NoError(t, h.Update(ctx, id, at))
		}
		done.Store(true)
		wg.Wait()
	}
}

// BenchmarkHNSWAddBesideSearches adds vectors one by one, while so many goroutines search all the time.
func BenchmarkHNSWAddBesideSearches(b *testing.B) {
	vectors, queries, dim := digits(b, 9000, 1000)
	dev := open(b, "cpu:0")
	for _, searchers := range []int{0, 2, 4} {
		b.Run(fmt.Sprint(searchers, " searchers"), func(b *testing.B) {
			h := hnsw(b, dev, dim, L2Squared, HNSWOptions{InitialCapacity: 5000 + b.N})
			require.NoError(b, h.Add(b.Context(), counted(5000), vectors[:5000*dim]))
			var done atomic.Bool
			var searches atomic.Int64
			var wg sync.WaitGroup
			for g := range searchers {
				wg.Go(func() {
					dst := make([]Result, 0, 10)
					for q := g; !done.Load(); q++ {
						_, _ = h.Search(context.Background(), dst, queries[q%1000*dim:][:dim], 10, nil)
						searches.Add(1)
					}
				})
			}
			b.ResetTimer()
			for i := range b.N {
				require.NoError(b, h.Add(b.Context(), []int64{int64(5000 + i)}, vectors[(5000+i%4000)*dim:][:dim]))
			}
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "adds/s")
			b.ReportMetric(float64(searches.Load())/b.Elapsed().Seconds(), "searches/s")
			done.Store(true)
			wg.Wait()
		})
	}
}
