package ann

// One search on a device: its stream, its memory, and its launches.

import (
	"context"
	"math"
	"slices"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
)

var inf = math.Inf(1)

// work has what one search needs, for one at a time.
type work struct {
	e      *engine
	stream *runtime.Stream
	late   bool // a search was given up while its launches ran

	queries, list, at, best, bestAt array // lists of candidates for each part, and what remains of them
	rows, places                    array // copies of the rows that a filter admits, and which these are
	floats                          array // a query of halves for a kernels.Ranker
	encoded                         []byte
	wide                            []candidate
	probed, listedRows              []uint32 // lists of an IVF index, and their rows
	found                           []hit
	out                             []candidate   // what was found
	heaps                           [][]candidate // for each query, while rows are searched in several parts
	ranking                         ranking

	copier *runtime.Stream // brings rows that are in the host's memory to chunks
	chunks [2]array
	staged []byte

	// the rows of the index from viewFirst on that were searched last on their own, nil if there are none
	view      *runtime.Buffer
	viewFirst int

	lastQueries, lastRows int // the sizes of the launch of distances
	distances             kernel
	grid                  runtime.Grid
	layout                any
}

// array is a buffer that grows, and its contents on the host.
type array struct {
	buf  *runtime.Buffer
	host []byte // the buffer's memory if seen, else a copy
	seen bool
}

// grow makes an array hold n elements. Its contents are lost if it grows.
func (w *work) grow(a *array, t runtime.Type, n int) error {
	if a.buf != nil && a.buf.Len() >= n {
		return nil
	}
	buf, err := w.e.dev.Alloc(t, max(n, 16))
	if err != nil {
		return err
	}
	a.close()
	a.buf = buf
	if a.host, err = runtime.HostBytes(buf); err != nil {
		a.host, a.seen = make([]byte, buf.Bytes()), false
		return nil
	}
	a.seen = true
	return nil
}

func (a *array) close() {
	if a.buf != nil {
		a.buf.Close()
	}
	*a = array{}
}

// put copies bytes to the beginning of an array. No launch uses it at the time.
func (w *work) put(ctx context.Context, a *array, data []byte) error {
	if a.seen {
		copy(a.host, data)
		return nil
	}
	return w.stream.Write(ctx, a.buf, 0, data)
}

// get makes the first n bytes of an array visible in its host memory, after the launches queued so far.
func (w *work) get(ctx context.Context, a *array, n int) error {
	if a.seen {
		return w.stream.Sync(ctx)
	}
	return w.stream.Read(ctx, a.buf, 0, a.host[:n])
}

func newWork(e *engine) (*work, error) {
	stream, err := e.dev.NewStream()
	if err != nil {
		return nil, err
	}
	return &work{e: e, stream: stream}, nil
}

// slice returns a view of n rows of base. It is valid until the next call, or until the index gets another base
// and calls forget.
func (w *work) slice(base *runtime.Buffer, first, n int) (*runtime.Buffer, error) {
	if w.view != nil && w.viewFirst == first && w.view.Len() == n*w.e.dim {
		return w.view, nil
	}
	view, err := base.Slice(first*w.e.dim, n*w.e.dim)
	if err != nil {
		return nil, err
	}
	w.forget()
	w.view, w.viewFirst = view, first
	return view, nil
}

// forget closes the view of an index's rows.
func (w *work) forget() {
	if w.view != nil {
		w.view.Close()
		w.view = nil
	}
}

func (w *work) close() error {
	w.forget()
	w.shrink()
	for _, t := range w.ranking.threads {
		t.rows.close()
		t.distances.close()
	}
	if w.copier != nil {
		_ = w.copier.Close() // a failure was that of a search
	}
	return w.stream.Close()
}

// shrink frees the memory on the device. Nothing uses it.
func (w *work) shrink() {
	for _, a := range []*array{&w.queries, &w.list, &w.at, &w.best, &w.bestAt, &w.rows, &w.places, &w.floats, &w.chunks[0],
		&w.chunks[1]} {
		a.close()
	}
}

// candidates returns how many candidates a search of n rows lists for each query, about.
func (w *work) candidates(n, k int) int {
	if k > mostK || w.e.metric.onNearest() == "" {
		return n
	}
	return k * max(1, kernels.NearestParts(n, w.e.units))
}

// together returns how many queries are searched for in one round over n rows.
func (w *work) together(n, k int) int {
	return max(1, min(w.e.dev.Choices().Of(queriesTogether), (1<<24)/max(w.candidates(n, k), 1)))
}

// ask brings queries to the device.
func (w *work) ask(ctx context.Context, queries []float32) error {
	if err := w.grow(&w.queries, w.e.code.typ(), len(queries)); err != nil {
		return err
	}
	n := len(queries) * w.e.code.size()
	if w.queries.seen {
		w.e.code.encode(w.queries.host[:n], queries)
		return nil
	}
	w.encoded = slices.Grow(w.encoded[:0], n)[:n]
	w.e.code.encode(w.encoded, queries)
	return w.put(ctx, &w.queries, w.encoded)
}

// search finds the k nearest of n rows of base, at least k, for each of nq queries that ask brought. The
// results are in the host memory of the two arrays that it returns, k for each query: distances, as the kernels
// have them, and places.
func (w *work) search(ctx context.Context, base *runtime.Buffer, n, nq,
	k int) (distances []float32, places []uint32, err error) {
	var list, at *array
	switch {
	case w.e.metric.onNearest() == "":
		list, at, err = w.byExpression(ctx, base, n, nq, k)
	case k > mostK:
		return w.wideSearch(ctx, base, n, nq, k)
	default:
		list, at, err = w.byNearest(ctx, base, n, nq, k)
	}
	if err == nil {
		err = w.get(ctx, list, 4*nq*k)
	}
	if err == nil && !at.seen {
		err = w.get(ctx, at, 4*nq*k)
	}
	if err != nil {
		return nil, nil, err
	}
	return elements[float32](list.host)[:nq*k], elements[uint32](at.host)[:nq*k], nil
}

// byNearest queues the kernel nearest and, if it has several parts, nearest_merge.
func (w *work) byNearest(ctx context.Context, base *runtime.Buffer, n, nq, k int) (list, at *array, err error) {
	find, merge, err := w.e.nearest(ctx, k)
	if err != nil {
		return nil, nil, err
	}
	parts := 1
	if !find.itself {
		parts = kernels.NearestParts(n, w.e.units)
	}
	if err := w.parts(find, base, n, nq, k, parts); err != nil || parts == 1 {
		return &w.list, &w.at, err
	}
	if err := w.room(&w.best, &w.bestAt, nq*k); err != nil {
		return nil, nil, err
	}
	grid, err := merge.grid(nq)
	if err != nil {
		return nil, nil, err
	}
	err = w.stream.Launch(merge.Kernel, grid, w.list.buf, w.at.buf, w.best.buf, w.bestAt.buf, uint32(nq), uint32(parts),
		uint32(k))
	return &w.best, &w.bestAt, err
}

// room makes two arrays hold n distances and places.
func (w *work) room(list, at *array, n int) error {
	if err := w.grow(list, runtime.F32, n); err != nil {
		return err
	}
	return w.grow(at, runtime.U32, n)
}

// parts queues the kernel nearest.
func (w *work) parts(find kernel, base *runtime.Buffer, n, nq, k, parts int) error {
	if err := w.room(&w.list, &w.at, nq*parts*k); err != nil {
		return err
	}
	grid, err := find.grid(parts, nq)
	if err != nil {
		return err
	}
	return w.stream.Launch(find.Kernel, grid, w.queries.buf, base, w.list.buf, w.at.buf,
		uint32(nq), uint32(n), uint32(w.e.dim), uint32(k), uint32(parts))
}

// wideSearch finds more than the kernel nearest selects: it lists all rows, in parts that the kernel sorts, and
// selects on the host.
func (w *work) wideSearch(ctx context.Context, base *runtime.Buffer, n, nq,
	k int) (distances []float32, places []uint32, err error) {
	find, _, err := w.e.nearest(ctx, mostK)
	if err != nil {
		return nil, nil, err
	}
	parts := (n + mostK - 1) / mostK
	if err := w.parts(find, base, n, nq, mostK, parts); err != nil {
		return nil, nil, err
	}
	for _, a := range []*array{&w.list, &w.at} {
		if err := w.get(ctx, a, 4*nq*parts*mostK); err != nil {
			return nil, nil, err
		}
	}
	all, at := elements[float32](w.list.host), elements[uint32](w.at.host)
	for q := range nq {
		w.wide = w.wide[:0]
		for i := q * parts * mostK; i < (q+1)*parts*mostK; i++ {
			if at[i] != kernels.NearestMissing {
				w.wide = append(w.wide, candidateOf(all[i], at[i]))
			}
		}
		slices.Sort(w.wide)
		for _, c := range w.wide[:k] {
			distances, places = append(distances, c.distance()), append(places, c.row())
		}
	}
	return distances, places, nil
}

// byExpression queues the metric's expression, for every distance, and then the kernel topk.
func (w *work) byExpression(ctx context.Context, base *runtime.Buffer, n, nq, k int) (list, at *array, err error) {
	if nq != w.lastQueries || n != w.lastRows {
		w.lastQueries = 0
		if w.distances, w.grid, w.layout, err = w.e.distances(ctx, nq, n); err != nil {
			return nil, nil, err
		}
		w.lastQueries, w.lastRows = nq, n
	}
	topk, err := w.e.catalog(ctx, "topk")
	if err != nil {
		return nil, nil, err
	}
	if err := w.grow(&w.list, runtime.F32, nq*n); err != nil {
		return nil, nil, err
	}
	if err := w.room(&w.best, &w.bestAt, nq*k); err != nil {
		return nil, nil, err
	}
	if err := w.stream.Launch(w.distances.Kernel, w.grid, w.queries.buf, base, w.list.buf, w.layout); err != nil {
		return nil, nil, err
	}
	grid, err := topk.grid(nq)
	if err != nil {
		return nil, nil, err
	}
	err = w.stream.Launch(topk.Kernel, grid, w.list.buf, w.best.buf, w.bestAt.buf, uint32(nq), uint32(n), uint32(k))
	return &w.best, &w.bestAt, err
}

// gather queues a copy of the rows of base at count places, which the array of places has, to another buffer.
func (e *engine) gather(ctx context.Context, s *runtime.Stream, base *runtime.Buffer, rows int, places *runtime.Buffer,
	to *runtime.Buffer, count int) error {
	k, err := e.catalog(ctx, "gather", e.typeDefine())
	if err != nil {
		return err
	}
	grid, err := k.grid(count * e.dim)
	if err != nil {
		return err
	}
	return s.Launch(k.Kernel, grid, base, places, to, uint32(rows), uint32(count), uint32(e.dim))
}

// works keeps the works of searches that are over.
type works struct{ idle[*work] }

func (ws *works) take(ctx context.Context, e *engine) (*work, error) {
	w, ok := ws.idle.take()
	if !ok {
		return newWork(e)
	}
	if w.late {
		err := w.stream.Sync(ctx)
		if err == nil && w.copier != nil {
			err = w.copier.Sync(ctx)
		}
		if err != nil {
			if ctx.Err() != nil {
				ws.give(w)
				return nil, err
			}
			w.close() // its stream has failed
			return newWork(e)
		}
		w.late = false
	}
	return w, nil
}

// forget closes the views of an index's rows, which change. No search runs.
func (ws *works) forget() { ws.each((*work).forget) }

// close closes all. A failure of a stream was that of a search.
func (ws *works) close() { ws.drain(func(w *work) { _ = w.close() }) }
