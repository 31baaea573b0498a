package ann

// HNSW: a graph of neighbours in layers (Malkov and Yashunin, 2018). Here are its vectors, ids and changes;
// graph.go has the graph.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/concord-compute/concord/runtime"
)

// HNSW is an index that finds most of the nearest neighbours by following the links of a graph, and compares a
// query with few vectors. Its vectors are floats in the memory of the host.
//
// Searches take no lock of a vector or a link, and go on while the index changes, each in the state that it
// began with; a vector is found from the end of its Add on. Calls that change the index wait for each other,
// and for searches only where these read what is replaced: when an Add needs more memory or other codes, in
// [HNSW.Compact], and in Close. A removed vector stays in the graph, where searches pass through it without
// returning it, until [HNSW.Compact], which Add and Update call when the removed vectors are more than the
// others. Copies of a vector do not keep other vectors from being found. A search looks at those of the vectors
// it finds until it has enough; with a filter, or while there are removed vectors, it may have to look at all
// copies of each vector it comes to, until one may be found. Vectors that are not at a distance from
// themselves, since they have components that are NaN or infinite, have no links; a search compares the query
// with them if it finds fewer than k others.
type HNSW struct {
	kind     string
	searches searchers
	works    works
	all      *Filter // admits every vector, for exact searches

	writing sync.Mutex // guards what follows, and view
	base    *runtime.Buffer
	coded   *runtime.Buffer // bytes for the vectors, with option Codes
	view

	now atomic.Pointer[view] // what searches see
	mu  sync.RWMutex         // its writer frees or changes memory that searches read; they are readers
	backing
	knowing sync.Mutex // guards nodes and gone, which changes replace while searches go on; held for a moment only
	nodes   places
}

// HNSWOptions are what [NewHNSW] takes. The zero value has the defaults; a negative number is
// [runtime.ErrInvalidArgument].
//
// The bytes of Codes say how each component differs from its median; for cosine they say the direction. All are
// made anew each time there are four times as many different vectors, up to 4096, when many vectors were added
// whose components are more than twice as far from the median as a byte can say, and by [HNSW.Compact].
// Components that are too far for a byte get the largest one, so that fewer of the nearest are found among such
// vectors; distances stay exact.
type HNSWOptions struct {
	// links of a vector in each layer but the first, which has 2·M; 0 is 16
	M int `json:"m"`
	// vectors that are kept in view while one is added, at least M; 0 is 200, or M if that is more
	EfConstruction  int `json:"ef_construction"`
	EfSearch        int `json:"ef_search"`        // those of a search, which are never fewer than k; 0 is 50
	InitialCapacity int `json:"initial_capacity"` // vectors for which there is room at first; 0 is 10,000
	// of the layers; with one thread the same graph comes of the same seed; 0 is a seed like others
	Seed    uint64 `json:"seed"`
	Threads int    `json:"threads"` // of Add and SearchBatch, at most 1024; 0 is as many as Go uses
	// keep a byte for each component too, follow the graph by these, and compare what was found by floats
	Codes   bool `json:"codes,omitempty"`
	MaxDim  int  `json:"-"` // the largest dimension; 0 is 4096
	MaxRows int  `json:"-"` // the largest number of vectors; 0 is no limit
}

// Check returns what [NewHNSW] would say of the options, without a device.
func (o HNSWOptions) Check() error {
	_, err := o.withDefaults()
	return err
}

// withDefaults checks options and fills in what is not set.
func (o HNSWOptions) withDefaults() (HNSWOptions, error) {
	for _, n := range []struct {
		name  string
		value int
	}{{"M", o.M}, {"EfConstruction", o.EfConstruction}, {"EfSearch", o.EfSearch}, {"InitialCapacity", o.InitialCapacity},
		{"Threads", o.Threads},
		{"MaxRows", o.MaxRows}, {"MaxDim", o.MaxDim}} {
		if n.value < 0 {
			return o, fmt.Errorf("ann: %s is %d, which has to be positive, or 0 for the default: %w", n.name, n.value,
				runtime.ErrInvalidArgument)
		}
	}
	o.M, o.InitialCapacity = cmp.Or(o.M, 16), cmp.Or(o.InitialCapacity, 10_000)
	o.EfConstruction = cmp.Or(o.EfConstruction, max(200, o.M))
	switch {
	case o.M < 2 || o.M > mostLinks:
		return o, fmt.Errorf("ann: M is %d, which has to be from 2 to %d: %w", o.M, mostLinks, runtime.ErrInvalidArgument)
	case o.EfConstruction < o.M:
		return o, fmt.Errorf("ann: EfConstruction is %d, which has to be at least M, %d: %w", o.EfConstruction, o.M,
			runtime.ErrInvalidArgument)
	case o.Threads > mostThreads:
		return o, fmt.Errorf("ann: %d threads are more than %d: %w", o.Threads, mostThreads, runtime.ErrInvalidArgument)
	}
	return o, nil
}

const mostLinks, mostThreads = 1024, 1024

// NewHNSW makes an empty index. dev is a device whose memory the host sees, such as cpu:0, and any other
// [runtime.ErrUnsupported]; it stays open while the index is.
func NewHNSW(dev *runtime.Device, dim int, m Metric, o HNSWOptions) (*HNSW, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := (Options{MaxDim: o.MaxDim, MaxRows: o.MaxRows}).check(dim); err != nil {
		return nil, err
	}
	o.MaxDim = 0 // which has been checked
	e, err := newEngine(dev, dim, m, FP32)
	if err != nil {
		return nil, err
	}
	switch {
	case !e.host:
		err = fmt.Errorf("ann: hnsw on %v, whose memory the host does not see: %w", dev, runtime.ErrUnsupported)
	case o.Codes && e.ranker == nil:
		err = fmt.Errorf("ann: codes of vectors for %v on %v: %w", m, dev, runtime.ErrUnsupported)
	}
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	h := &HNSW{kind: "hnsw", all: And(), view: view{e: e, o: o, graph: newGraph(o)}}
	h.publish(0)
	return h, nil
}

// Close implements [Index]. It waits for searches and changes that run.
func (h *HNSW) Close() error {
	h.writing.Lock()
	defer h.writing.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil
	}
	h.closed = true
	h.searches.close()
	h.works.close()
	h.free()
	return h.e.close()
}

// free frees the memory of the vectors.
func (h *HNSW) free() {
	if h.base != nil {
		h.base.Close()
	}
	if h.coded != nil {
		h.coded.Close()
	}
}

// Info implements [Index].
func (h *HNSW) Info() Info {
	v := h.now.Load()
	o := v.o
	return Info{Kind: h.kind, Metric: h.e.metric.String(), Dim: h.e.dim, Len: v.count, Precision: h.e.code.String(),
		Device:       h.e.dev.String(),
		DeviceMemory: -1, HNSW: &o}
}

// SetEfSearch changes the number of vectors that searches keep in view, as HNSWOptions.EfSearch sets it: more
// find more of the nearest, and take longer. One below 0 is [runtime.ErrInvalidArgument]. It waits for changes
// that run.
func (h *HNSW) SetEfSearch(ef int) error {
	if ef < 0 {
		return fmt.Errorf("ann: EfSearch is %d: %w", ef, runtime.ErrInvalidArgument)
	}
	h.writing.Lock()
	defer h.writing.Unlock()
	if err := h.check(context.Background()); err != nil {
		return err
	}
	h.o.EfSearch = ef
	h.publish(len(h.ids))
	return nil
}

// Len returns the number of vectors.
func (h *HNSW) Len() int { return h.now.Load().count }

// Get returns a vector. An id that the index does not have is [runtime.ErrInvalidArgument].
func (h *HNSW) Get(ctx context.Context, id int64) ([]float32, error) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if err := h.check(ctx); err != nil {
		return nil, err
	}
	h.knowing.Lock()
	node, ok := h.nodes.row(id)
	h.knowing.Unlock()
	if !ok {
		return nil, unknown(id)
	}
	return append([]float32(nil), elements[float32](h.now.Load().row(node))...), nil
}

// Add implements [Index]. The vectors are linked on several threads. If ctx is done before they all are, none
// of them is in the index.
func (h *HNSW) Add(ctx context.Context, ids []int64, vectors []float32) error {
	h.writing.Lock()
	defer h.writing.Unlock()
	if err := h.check(ctx); err != nil {
		return err
	}
	if err := checkRows(len(ids), len(vectors), h.e.dim); err != nil || len(ids) == 0 {
		return err
	}
	has := func(id int64) bool { _, ok := h.nodes.row(id); return ok }
	if _, err := inOrder(ids, has); err != nil {
		return err
	}
	if total := h.nodes.len() + len(ids); h.o.MaxRows > 0 && total > h.o.MaxRows {
		return fmt.Errorf("ann: %d vectors are more than MaxRows, which is %d: %w", total, h.o.MaxRows, runtime.ErrBudget)
	}
	return h.add(ctx, ids, vectors)
}

// add adds vectors that were checked, and hides those that have had their ids. The caller holds writing.
func (h *HNSW) add(ctx context.Context, ids []int64, vectors []float32) error {
	if h.gone > h.nodes.len() {
		if err := h.compact(ctx); err != nil {
			return err
		}
	}
	if err := h.own(); err != nil {
		return err
	}
	first := len(h.ids)
	if n := first + len(ids); n > math.MaxInt32 || n > math.MaxInt/8/h.e.dim {
		return fmt.Errorf("ann: %d vectors are more than places: %w", n, runtime.ErrTooLarge)
	}
	h.withMap()
	if err := h.extend(ids, vectors); err != nil {
		return err
	}
	h.publish(first) // so that searches go through the new vectors from here on, without finding them
	linked := false
	defer func() { h.show(first, linked) }() // also if a metric of the program ends the goroutine
	if err := h.link(ctx, first, len(ids)); err != nil {
		return err
	}
	linked = true
	return nil
}

// withMap makes the map of ids that changes need. The caller holds writing.
func (h *HNSW) withMap() {
	nodes := h.nodes.withMap()
	h.knowing.Lock()
	defer h.knowing.Unlock()
	h.nodes = nodes
}

// sound checks what is the memory of a file: its checksums, and the links. The caller holds writing, or nobody
// else uses h.
func (h *HNSW) sound() error {
	if !h.mapped {
		return nil
	}
	if err := h.kept.check(h.sections()...); err != nil {
		return err
	}
	return h.checkLinks(0, 0)
}

// own checks and copies what is the memory of a file, before that changes or is released. The vectors and codes
// are copied by resize. The caller holds writing, or nobody else uses h.
func (h *HNSW) own() error {
	if !h.mapped {
		return nil
	}
	if err := h.sound(); err != nil {
		return err
	}
	first, level, upper, ids, nodes := slices.Clone(h.first), slices.Clone(h.level), slices.Clone(h.upper),
		slices.Clone(h.ids), h.nodes
	if nodes.rows == nil {
		nodes.ids, nodes.order = ids, slices.Clone(nodes.order)
	}
	h.knowing.Lock()
	defer h.knowing.Unlock()
	h.first, h.level, h.upper, h.ids, h.nodes, h.mapped, h.kept = first, level, upper, ids, nodes, false, nil
	return nil
}

// extend makes room for new vectors and stores them without links. No view shows them.
func (h *HNSW) extend(ids []int64, vectors []float32) error {
	have := len(h.ids)
	n, capacity := have+len(ids), len(h.rows)/(4*h.e.dim)
	if n > capacity {
		size := max(n, capacity+capacity/2)
		if capacity == 0 {
			size = max(n, min(h.o.InitialCapacity, (1<<28)/(4*h.e.dim)))
		}
		if err := h.resize(size); err != nil && size > n {
			err = h.resize(n)
			if err != nil {
				return err
			}
		} else if err != nil {
			return err
		}
	}
	copy(h.rows[have*4*h.e.dim:], bytesOf(vectors))
	if h.o.Codes {
		h.encode(have, n)
	}
	h.ids = append(h.ids, ids...)
	h.graph.extend(n)
	return nil
}

// resize moves the vectors to memory for a number of them. It waits for searches.
func (h *HNSW) resize(n int) error {
	base, rows, err := h.alloc(runtime.F32, n)
	if err != nil {
		return err
	}
	var coded *runtime.Buffer
	var codes []byte
	if h.o.Codes {
		if coded, codes, err = h.alloc(runtime.I8, n); err != nil {
			return errors.Join(err, base.Close())
		}
	}
	copy(rows, h.rows[:len(h.ids)*4*h.e.dim])
	if codes != nil {
		copy(codes, h.codes[:len(h.ids)*h.e.dim])
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.free()
	h.base, h.rows, h.coded, h.codes = base, rows, coded, codes
	h.publish(len(h.ids))
	return nil
}

// alloc returns the device's memory for vectors, as a buffer and as the host sees it.
func (h *HNSW) alloc(t runtime.Type, n int) (*runtime.Buffer, []byte, error) {
	b, err := h.e.dev.Alloc(t, n*h.e.dim)
	if err != nil {
		return nil, nil, err
	}
	b.SetTag("vectors")
	memory, err := runtime.HostBytes(b)
	if err != nil {
		return nil, nil, errors.Join(err, b.Close())
	}
	return b, memory, nil
}

// link links new vectors on several threads.
func (h *HNSW) link(ctx context.Context, first, n int) error {
	var next atomic.Int64
	return sideBySide(min(h.threads(), n), func(int) error {
		s, err := h.searches.take(&h.view)
		if err != nil {
			return err
		}
		defer h.searches.give(s)
		for ctx.Err() == nil {
			i := int(next.Add(1)) - 1
			if i >= n {
				return nil
			}
			h.insert(s, uint32(first+i))
		}
		return ctx.Err()
	})
}

// threads returns the number of threads that add or search for many vectors.
func (h *HNSW) threads() int { return cmp.Or(h.o.Threads, goruntime.GOMAXPROCS(0)) }

// Remove implements [Index].
func (h *HNSW) Remove(ctx context.Context, ids []int64) error {
	h.writing.Lock()
	defer h.writing.Unlock()
	if err := h.check(ctx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	seen := make(map[int64]bool, len(ids))
	for _, id := range ids {
		if _, ok := h.nodes.row(id); !ok {
			return unknown(id)
		}
		if seen[id] {
			return fmt.Errorf("ann: the id %d is there twice: %w", id, runtime.ErrInvalidArgument)
		}
		seen[id] = true
	}
	h.withMap()
	h.knowing.Lock()
	defer h.knowing.Unlock()
	hide := make([]uint32, len(ids))
	for i, id := range ids {
		hide[i] = h.nodes.rows[id]
		delete(h.nodes.rows, id)
	}
	h.changed(hide)
	return nil
}

// Update replaces the vector of an id: it removes the old one and adds the new one. An id that the index does
// not have is [runtime.ErrInvalidArgument].
func (h *HNSW) Update(ctx context.Context, id int64, vector []float32) error {
	h.writing.Lock()
	defer h.writing.Unlock()
	if err := h.check(ctx); err != nil {
		return err
	}
	if err := checkRows(1, len(vector), h.e.dim); err != nil {
		return err
	}
	if _, ok := h.nodes.row(id); !ok {
		return unknown(id)
	}
	return h.add(ctx, []int64{id}, vector)
}

// Compact builds the graph again from the vectors that are there, which frees the memory of removed ones, if
// there are some, or if the index is of a file that has vectors to which no search comes, as [Verify] tells, or
// if option Codes would now choose quite another scale. Until it is done searches use the old graph.
func (h *HNSW) Compact(ctx context.Context) error {
	h.writing.Lock()
	defer h.writing.Unlock()
	if err := h.check(ctx); err != nil {
		return err
	}
	return h.compact(ctx)
}

func (h *HNSW) compact(ctx context.Context) error {
	if err := h.sound(); err != nil { // damaged vectors would be those of a new graph
		return err
	}
	if h.gone == 0 && h.lost() == 0 && !h.outgrown() {
		return nil
	}
	o := h.o
	o.InitialCapacity = h.nodes.len()
	anew := &HNSW{view: view{e: h.e, o: o, graph: newGraph(o)}}
	var ids []int64
	var vectors []float32
	for i, id := range h.ids {
		if !h.hidden(uint32(i)) {
			ids = append(ids, id)
			vectors = append(vectors, elements[float32](h.row(uint32(i)))...)
		}
	}
	var err error
	if len(ids) > 0 {
		err = anew.add(ctx, ids, vectors)
	}
	anew.searches.close()
	if err != nil {
		anew.free()
		return fmt.Errorf("ann: compact: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.free()
	h.base, h.rows, h.coded, h.codes, h.code = anew.base, anew.rows, anew.coded, anew.codes, anew.code
	h.ids, h.nodes, h.gone, h.kept, h.graph = anew.ids, anew.nodes, 0, nil, anew.graph
	h.changed(nil)
	return nil
}
