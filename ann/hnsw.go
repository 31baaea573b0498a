package ann

// HNSW: a graph of neighbours in layers (Malkov and Yashunin, 2018). Here are its vectors, ids and changes;
// graph.go has the graph.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"sync/atomic"

	"github.com/concord-compute/concord/runtime"
)

// HNSW is an index that finds most of the nearest neighbours by following the links of a graph, and compares a
// query with few vectors. Its vectors are floats in the memory of the host.
//
// Searches take no lock of a vector or a link, and go on while the index changes, each in the state that it began
// with. A vector is found from the end of its Add on. Calls that change the index wait for each other, and for
// searches only where these read what is replaced: when an Add needs more memory or other codes, in
// [HNSW.Compact], and in Close. A removed vector stays in the graph, where searches pass through it without
// returning it, until [HNSW.Compact], which Add and Update call when the removed vectors are more than the
// others. Copies of a vector do not keep other vectors from being found. A search looks at those of the vectors
// it finds until it has enough. With a filter, or while there are removed vectors, it may have to look at all
// copies of each vector it comes to, until one may be found. Vectors that are not at a distance from themselves,
// since they have components that are NaN or infinite, have no links; a search compares the query with them if it
// finds fewer than k others.
type HNSW struct {
	storage
	o        HNSWOptions
	graph    // which has a node for each row
	code     nodeCoding
	codes    *store // bytes for the vectors, with option Codes
	searches searchers
	all      *Filter // admits every vector, for exact searches

	now atomic.Pointer[view] // what searches see; mu's writer frees or changes memory that it reads
}

// HNSWOptions are what [NewHNSW] takes. The zero value has the defaults; a negative number is
// [runtime.ErrInvalidArgument].
//
// The bytes of Codes say how each component differs from its median; for cosine they say the direction. All are
// made anew each time there are four times as many different vectors, up to 4096, and by [HNSW.Compact]. They
// also are when many vectors were added whose components are more than twice as far from the median as a byte can
// say. Components that are too far for a byte get the largest one, so that fewer of the nearest are found among
// such vectors; distances stay exact.
type HNSWOptions struct {
	// links of a vector in each layer but the first, which has 2·M; 0 is 16
	M int `json:"m"`
	// vectors that are kept in view while one is added, at least M; 0 is 200, or M if that is more
	EfConstruction  int `json:"ef_construction"`
	EfSearch        int `json:"ef_search"`        // those of a search, which are never fewer than k; 0 is 50
	InitialCapacity int `json:"initial_capacity"` // vectors for which there is room at first; 0 is 10,000
	// of the layers; with one thread the same graph comes of the same seed; 0 is a seed like others
	Seed    uint64 `json:"seed"`
	Threads int    `json:"threads"` // of Add and SearchBatch, at most 1024; 0 is as many as the device has
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
	err := cmp.Or(within("EfConstruction", o.EfConstruction, 0, math.MaxInt),
		within("EfSearch", o.EfSearch, 0, math.MaxInt),
		within("InitialCapacity", o.InitialCapacity, 0, math.MaxInt), within("Threads", o.Threads, 0, mostThreads),
		within("MaxDim", o.MaxDim, 0, math.MaxInt), within("MaxRows", o.MaxRows, 0, math.MaxInt))
	o.M, o.InitialCapacity = cmp.Or(o.M, 16), cmp.Or(o.InitialCapacity, 10_000)
	o.EfConstruction = cmp.Or(o.EfConstruction, max(200, o.M))
	return o, cmp.Or(err, within("M", o.M, 2, mostLinks), within("EfConstruction", o.EfConstruction, o.M, math.MaxInt))
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
	return emptyGraph(e, o), nil
}

// emptyGraph makes an empty index with an engine.
func emptyGraph(e *engine, o HNSWOptions) *HNSW {
	h := &HNSW{storage: storage{kind: "hnsw", maxRows: o.MaxRows, e: e, stores: []*store{newStore(e)}}, o: o,
		graph: newGraph(o), all: And()}
	h.codes = newStore(&engine{dev: e.dev, dim: e.dim, code: coding{Precision: INT8Scaled}, host: true})
	h.kindPart = h
	h.publish(0)
	return h
}

// Close implements [Index]. It waits for searches and changes that run.
func (h *HNSW) Close() error { return h.close() }

// free implements contents.
func (h *HNSW) free() error {
	h.searches.close()
	h.codes.drop()
	return nil
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
	if err := within("EfSearch", ef, 0, math.MaxInt); err != nil {
		return err
	}
	return h.write(context.Background(), func() error {
		h.o.EfSearch = ef
		h.publish(len(h.ids))
		return nil
	})
}

// Len returns the number of vectors.
func (h *HNSW) Len() int { return h.now.Load().count }

// Get returns a vector. An id that the index does not have is [runtime.ErrInvalidArgument].
func (h *HNSW) Get(ctx context.Context, id int64) ([]float32, error) { return h.get(ctx, id) }

// Add implements [Index]. The vectors are linked on several threads. If ctx is done before they all are, none
// of them is in the index.
func (h *HNSW) Add(ctx context.Context, ids []int64, vectors []float32) error {
	return h.write(ctx, func() error {
		if _, err := h.checkAdd(ids, vectors); err != nil || len(ids) == 0 {
			return err
		}
		return h.metered(func() error { return h.add(ctx, ids, vectors) })
	})
}

// add adds vectors that were checked, and hides those that have had their ids. The caller holds writeLock.
func (h *HNSW) add(ctx context.Context, ids []int64, vectors []float32) error {
	if h.gone > h.table.len() {
		if err := h.compact(ctx); err != nil {
			return err
		}
	}
	if err := h.detach(); err != nil {
		return err
	}
	if err := h.roomFor(len(ids), math.MaxInt32); err != nil {
		return err
	}
	first := len(h.ids)
	if err := h.extend(ctx, ids, vectors); err != nil {
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

// checkUnread implements contents: it checks the links.
func (h *HNSW) checkUnread() error { return h.checkLinks(0, 0) }

// extend makes room for new vectors and stores them without links. No view shows them.
func (h *HNSW) extend(ctx context.Context, ids []int64, vectors []float32) error {
	have, n := len(h.ids), len(h.ids)+len(ids)
	room := n
	if have == 0 {
		room = max(n, min(h.o.InitialCapacity, (1<<28)/(4*h.e.dim)))
	}
	err := h.resize(ctx, room)
	if short(err) && room > n {
		err = h.resize(ctx, n)
	}
	if err != nil {
		return err
	}
	copy(h.stores[0].visible[have*4*h.e.dim:], bytesOf(vectors))
	if h.o.Codes {
		h.encode(have, n)
	}
	h.tableLock.Lock()
	defer h.tableLock.Unlock()
	h.grow(ids, nil)
	h.graph.extend(n)
	return nil
}

// resize makes room for n vectors. It waits for searches if it has to move those that there are.
func (h *HNSW) resize(ctx context.Context, n int) error {
	base, err := h.stores[0].larger(ctx, len(h.ids), n)
	if err != nil || base == nil {
		return err
	}
	var coded *runtime.Buffer
	if h.o.Codes {
		if coded, err = h.codes.larger(ctx, len(h.ids), base.Len()/h.e.dim); err != nil {
			return errors.Join(err, base.Close())
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if coded != nil { // else there was room
		h.codes.setBuffer(coded, false)
	}
	h.stores[0].setBuffer(base, false)
	h.publish(len(h.ids))
	return nil
}

// link links new vectors on several threads.
func (h *HNSW) link(ctx context.Context, first, n int) error {
	v := h.view(len(h.ids))
	h.work.expect(n)
	defer func() { h.arrived = nil }()
	return divided(ctx, h.threads(), n, func(next iter.Seq[int]) error {
		s, err := h.searches.take(v)
		if err != nil {
			return err
		}
		defer h.searches.give(s)
		for i := range next {
			v.insert(s, uint32(first+i))
			h.work.did(1)
		}
		return nil
	})
}

// threads returns the number of threads that add or search for many vectors.
func (h *HNSW) threads() int { return cmp.Or(h.o.Threads, h.e.threads()) }

// Remove implements [Index].
func (h *HNSW) Remove(ctx context.Context, ids []int64) error {
	return h.write(ctx, func() error {
		rows, err := h.checkRemove(ctx, ids)
		if err != nil {
			return err
		}
		h.tableLock.Lock()
		defer h.tableLock.Unlock()
		h.changed(rows)
		return nil
	})
}

// Update replaces the vector of an id: it removes the old one and adds the new one. An id that the index does
// not have is [runtime.ErrInvalidArgument].
func (h *HNSW) Update(ctx context.Context, id int64, vector []float32) error {
	return h.write(ctx, func() error {
		if _, _, err := h.checkUpdate(id, vector); err != nil {
			return err
		}
		return h.add(ctx, []int64{id}, vector)
	})
}

// ready implements contents: a change of the graph reads of a file what it needs itself.
func (h *HNSW) ready(ctx context.Context, check func() error) error { return h.write(ctx, check) }

// Compact builds the graph again from the vectors that are there, which frees the memory of removed ones. It does
// so if there are removed ones, if no search comes to some vectors of a file, as [Verify] tells, or if option
// Codes would now choose quite another scale. Until it is done searches use the old graph.
func (h *HNSW) Compact(ctx context.Context) error {
	return h.write(ctx, func() error { return h.compact(ctx) })
}

func (h *HNSW) compact(ctx context.Context) error {
	if err := h.verify(); err != nil { // damaged vectors would be those of a new graph
		return err
	}
	if h.gone == 0 && h.lost(nil) == 0 && !h.outgrown() {
		return nil
	}
	o, rows, v := h.o, h.kept(), h.now.Load()
	o.InitialCapacity = len(rows)
	vectors := make([]float32, 0, len(rows)*h.e.dim)
	for _, row := range rows {
		vectors = append(vectors, elements[float32](v.row(row))...)
	}
	anew := emptyGraph(h.e, o)
	var err error
	if len(rows) > 0 {
		err = anew.add(ctx, h.idsOf(rows), vectors)
	}
	anew.searches.close()
	if err != nil {
		anew.stores[0].drop()
		anew.codes.drop()
		return fmt.Errorf("ann: compact: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tableLock.Lock()
	defer h.tableLock.Unlock()
	h.codes.setBuffer(anew.codes.base, false)
	h.stores[0].setBuffer(anew.stores[0].base, false)
	h.code, h.graph, h.table, h.sums, h.mapped = anew.code, anew.graph, anew.table, nil, nil
	h.changed(nil)
	return nil
}
