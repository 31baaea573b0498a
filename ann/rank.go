package ann

// Searches of listed rows on the host's processor, without a launch.

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

const (
	rankedTogether = 2048  // rows that are compared in one call
	rankedAlone    = 16384 // rows for which another thread pays
)

// ranking compares listed rows with one query on several threads. It is used again and again.
type ranking struct {
	ctx     context.Context
	list    []uint32
	k       int
	next    atomic.Int64
	wait    sync.WaitGroup
	threads []*rankThread
}

// rankThread has the memory of one thread, which is the device's.
type rankThread struct {
	r               *ranking
	ranker          driver.Ranker
	args            driver.Ranking
	rows, distances array
	best            []candidate // a heap, with places in the list instead of rows
	run             func()
}

// ranked returns the k nearest of listed rows for the query that ask brought, in order; of rows at equal distances the first in the list come first.
// They are valid until the next call.
func (w *work) ranked(ctx context.Context, vectors []byte, list []uint32, k int) ([]candidate, error) {
	r := &w.ranking
	threads := max(1, min(w.e.units, len(list)/rankedAlone))
	query := w.queries.host
	if w.e.code.Precision == FP16 {
		if err := w.grow(&w.floats, runtime.F32, w.e.dim); err != nil {
			return nil, err
		}
		w.e.code.decode(elements[float32](w.floats.host), query[:2*w.e.dim])
		query = w.floats.host
	}
	for len(r.threads) < threads {
		t := &rankThread{r: r, ranker: w.e.ranker}
		t.run = t.work
		if err := w.room(&t.distances, &t.rows, rankedTogether); err != nil {
			t.distances.close()
			return nil, err
		}
		r.threads = append(r.threads, t)
	}
	r.ctx, r.list, r.k = ctx, list, k
	r.next.Store(0)
	r.wait.Add(threads)
	for i, t := range r.threads[:threads] {
		t.args = driver.Ranking{Metric: w.e.metric.onNearest(), Type: w.e.code.typ(), Dim: w.e.dim, Query: query, Vectors: vectors}
		t.best = t.best[:0]
		if i > 0 {
			go t.run()
		}
	}
	r.threads[0].run()
	r.wait.Wait()
	all := r.threads[0].best
	for _, t := range r.threads[1:threads] {
		for _, c := range t.best {
			all = offer(all, c, k)
		}
	}
	r.threads[0].best, r.ctx, r.list = all, nil, nil
	slices.Sort(all)
	for i, c := range all {
		all[i] = candidateOf(c.distance(), list[c.row()])
	}
	return all, ctx.Err()
}

// work compares parts of the list until none is left.
func (t *rankThread) work() {
	defer t.r.wait.Done()
	for t.r.ctx.Err() == nil {
		lo := int(t.r.next.Add(1)-1) * rankedTogether
		if lo >= len(t.r.list) {
			return
		}
		n := copy(elements[uint32](t.rows.host), t.r.list[lo:min(lo+rankedTogether, len(t.r.list))])
		t.args.Rows, t.args.Distances = elements[uint32](t.rows.host)[:n], elements[float32](t.distances.host)[:n]
		t.ranker.Rank(&t.args)
		for i, d := range t.args.Distances {
			t.best = offer(t.best, candidateOf(d, uint32(lo+i)), t.r.k)
		}
	}
}
