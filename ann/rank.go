package ann

// Searches of listed rows on the host's processor, without a launch.

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
)

// ranking compares listed rows with one query on several threads. It is used again and again.
type ranking struct {
	ctx     context.Context
	ids     []int64 // by row
	list    []uint32
	k       int
	each    int // rows that are compared in one call
	next    atomic.Int64
	wait    sync.WaitGroup
	threads []*rankThread
}

// rankThread has the memory of one thread, which is the device's.
type rankThread struct {
	r               *ranking
	ranker          kernels.Ranker
	args            kernels.Ranking
	rows, distances array
	best            []near // a heap with the last one in front
	run             func()
}

// near is a row that was found. Of rows at equal distances the one with the smallest id comes first.
type near struct {
	candidate
	id int64
}

func (a near) compare(b near) int {
	if c := cmp.Compare(a.candidate>>32, b.candidate>>32); c != 0 {
		return c
	}
	return cmp.Compare(a.id, b.id)
}

// follows reports whether a comes after a candidate, whose id ids has by row.
func (a near) follows(c candidate, ids []int64) bool {
	return c>>32 < a.candidate>>32 || c>>32 == a.candidate>>32 && ids[c.row()] < a.id
}

// offerNear puts x into a heap of the k first, whose first element is the last of them.
func offerNear(heap []near, x near, k int) []near {
	i := len(heap)
	if i < k {
		heap = append(heap, x)
		for ; i > 0 && heap[(i-1)/2].compare(x) < 0; i = (i - 1) / 2 {
			heap[i] = heap[(i-1)/2]
		}
		heap[i] = x
		return heap
	}
	if x.compare(heap[0]) >= 0 {
		return heap
	}
	i = 0
	for child := 1; child < k; child = 2*i + 1 {
		if child+1 < k && heap[child+1].compare(heap[child]) > 0 {
			child++
		}
		if heap[child].compare(x) <= 0 {
			break
		}
		heap[i], i = heap[child], child
	}
	heap[i] = x
	return heap
}

// ranked returns the k nearest of listed rows for the query that ask brought, in the order of results, on at
// most so many threads. ids has the id of each row. What it returns is valid until the next call.
func (w *work) ranked(ctx context.Context, vectors []byte, ids []int64, list []uint32, k, threads int) ([]near, error) {
	r, choices := &w.ranking, w.e.dev.Choices()
	r.each = choices.Of(rankTogether)
	threads = max(1, min(threads, len(list)/choices.Of(rankAlone)))
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
		r.threads = append(r.threads, t)
	}
	for _, t := range r.threads[:threads] {
		if err := w.room(&t.distances, &t.rows, r.each); err != nil {
			return nil, err
		}
	}
	r.ctx, r.ids, r.list, r.k = ctx, ids, list, k
	r.next.Store(0)
	r.wait.Add(threads)
	for i, t := range r.threads[:threads] {
		t.args = kernels.Ranking{Metric: w.e.metric.onNearest(), Type: w.e.code.typ().String(), Dim: w.e.dim, Query: query,
			Vectors: vectors}
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
			all = offerNear(all, c, k)
		}
	}
	r.threads[0].best, r.ctx, r.ids, r.list = all, nil, nil, nil
	slices.SortFunc(all, near.compare)
	return all, ctx.Err()
}

// byRank appends the k nearest of the listed vectors that ranked finds.
func (w *work) byRank(ctx context.Context, dst []Result, query []float32, vectors []byte, ids []int64, list []uint32, k,
	threads int) ([]Result, error) {
	if err := w.ask(ctx, query); err != nil {
		return dst, err
	}
	best, err := w.ranked(ctx, vectors, ids, list, k, threads)
	if err != nil {
		return dst, err
	}
	for _, c := range best {
		dst = append(dst, Result{c.id, w.e.metric.finish(c.distance(), w.e.code.unit())})
	}
	return dst, nil
}

// work compares parts of the list until none is left.
func (t *rankThread) work() {
	defer t.r.wait.Done()
	for t.r.ctx.Err() == nil {
		lo := int(t.r.next.Add(1)-1) * t.r.each
		if lo >= len(t.r.list) {
			return
		}
		list := t.r.list[lo:min(lo+t.r.each, len(t.r.list))]
		n := copy(elements[uint32](t.rows.host), list)
		t.args.Rows, t.args.Distances = elements[uint32](t.rows.host)[:n], elements[float32](t.distances.host)[:n]
		t.ranker.Rank(&t.args)
		for i, d := range t.args.Distances {
			c := candidateOf(d, list[i])
			if len(t.best) == t.r.k && c>>32 > t.best[0].candidate>>32 { // most of them, whose ids need not be read
				continue
			}
			t.best = offerNear(t.best, near{c, t.r.ids[list[i]]}, t.r.k)
		}
	}
}

// byFunction appends the k nearest of n rows by the definition of the metric, which may be a function of the
// program, on at most so many threads. row returns the id of one of them and what is stored.
func (e *engine) byFunction(ctx context.Context, dst []Result, query []float32, n, k, threads int,
	row func(i int) (id int64, stored []byte)) ([]Result, error) {
	all, asked, code := make([]Result, n), make([]float32, e.dim), make([]byte, e.dim*e.code.size())
	e.code.encode(code, query)
	e.code.decode(asked, code)
	threads = max(1, min(threads, 1+n/e.dev.Choices().Of(rankFunction)))
	if err := sideBySide(threads, func(t int) error {
		vector := make([]float32, e.dim)
		for i := t * n / threads; i < (t+1)*n/threads && ctx.Err() == nil; i++ {
			id, stored := row(i)
			if e.code.Precision == FP32 {
				vector = elements[float32](stored)
			} else {
				e.code.decode(vector, stored)
			}
			all[i] = Result{id, e.metric.distance(asked, vector)}
		}
		return ctx.Err()
	}); err != nil {
		return dst, err
	}
	slices.SortFunc(all, Result.compare)
	return append(dst, all[:k]...), nil
}
