package ann

// Flat: every query is compared with all vectors. Here are its ids and changes; store.go has its vectors,
// search.go the search.
//
// A search needs the rows in ascending order of their ids, so that kernels, which prefer the first of equal
// rows, decide ties as the index has to. Rows that are added in order stay where they are. Otherwise they wait
// in their tail, and removed ones in their place, until the next search has the device copy all rows in order.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
)

// Flat is an index that compares each query with all of its vectors, so that its results are exact. The vectors
// are in the memory of its device, which stays open while the index is; the session has to be closed after the
// index.
//
// Vectors that are added in ascending order of their ids are stored as they come. After ids in another order,
// and after a removal, the next search first copies the vectors in the device's memory, which then holds them
// twice for a moment.
//
// If the device, or its limit, has no room for the vectors, they lie in the host's memory, which Info tells.
// Each search then copies those that the filter admits through the device, a part while it searches the one
// before, one search at a time; the results are the same.
//
// With several devices each has a part of the vectors, in the order of ids, and searches it while the others
// search theirs. The results are those of one device. A search that fails on one device fails as a whole, with an
// [ErrSync] that names the device. Vectors that are added go to the last device, until it has half as many again
// as its share. Then, and after ids in no order, the next search divides the vectors anew, by way of the host's
// memory.
type Flat struct {
	storage
	weights []float64 // of the stores; nil is equal shares
}

// FlatOptions are what [NewFlat] takes. The zero value has the defaults.
type FlatOptions struct {
	Precision Precision // of the stored vectors, until SetPrecision; 0 is FP32
	MaxDim    int       // the largest dimension; 0 is 4096
	MaxRows   int       // the largest number of vectors; 0 is no limit

	Devices []*runtime.Device // more devices, to divide the vectors among all; nil is none
	Weights []float64         // of the device and these, positive: for shares in proportion to them; nil is equal ones
}

// NewFlat makes an empty index on a device. A dimension that is not from 1 to MaxDim is
// [runtime.ErrInvalidArgument]; a registered metric on a device whose memory the host does not see is
// [runtime.ErrUnsupported]. Weights that are not one positive number for each device are
// [runtime.ErrInvalidArgument].
func NewFlat(dev *runtime.Device, dim int, m Metric, o FlatOptions) (*Flat, error) {
	if err := (Options{Precision: o.Precision, MaxDim: o.MaxDim, MaxRows: o.MaxRows}).check(dim); err != nil {
		return nil, err
	}
	if o.Weights != nil && (len(o.Weights) != 1+len(o.Devices) || slices.ContainsFunc(o.Weights, func(w float64) bool {
		return !(w > 0) || math.IsInf(w, 0)
	})) {
		return nil, fmt.Errorf("ann: weights %v for %d devices: %w", o.Weights, 1+len(o.Devices), runtime.ErrInvalidArgument)
	}
	f := &Flat{weights: slices.Clone(o.Weights), storage: storage{maxRows: o.MaxRows, kind: "flat"}}
	f.kindPart = f
	for _, dev := range append([]*runtime.Device{dev}, o.Devices...) {
		e, err := newEngine(dev, dim, m, o.Precision)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		f.stores = append(f.stores, newStore(e))
	}
	f.e, f.place = f.stores[0].e, make(cluster.Placement, len(f.stores))
	return f, nil
}

// Close implements [Index]. It waits for searches that run.
func (f *Flat) Close() error { return f.close() }

// Info implements [Index].
func (f *Flat) Info() Info {
	f.mu.RLock()
	defer f.mu.RUnlock()
	i := f.info()
	if f.kind == "brute" || f.kind == "bruteforce" {
		i.DeviceMemory = -1
	}
	return i
}

// Len returns the number of vectors.
func (f *Flat) Len() int { return f.count() }

// Get returns a vector as it is stored, in numbers. An id that the index does not have is [runtime.ErrInvalidArgument].
func (f *Flat) Get(ctx context.Context, id int64) ([]float32, error) { return f.get(ctx, id) }

// Add implements [Index]. With [INT8Scaled], a component above the scale of the first vectors is
// [runtime.ErrInvalidArgument], and with [FP16] one that is finite and too large for a half.
func (f *Flat) Add(ctx context.Context, ids []int64, vectors []float32) error {
	return f.changeExclusive(ctx, func() error { return f.metered(func() error { return f.add(ctx, ids, vectors) }) })
}

func (f *Flat) add(ctx context.Context, ids []int64, vectors []float32) error {
	order, err := f.checkAdd(ids, vectors)
	if err != nil || len(ids) == 0 {
		return err
	}
	n, m := len(f.ids), len(ids)
	if err := f.roomFor(m, math.MaxUint32-1); err != nil {
		return err
	}
	code, err := f.e.codeFor(vectors, f.scaled)
	if err != nil {
		return err
	}
	f.work.expect(m)
	place := slices.Clone(f.place)
	if n == 0 {
		place = f.shares(m)
	} else {
		place[len(place)-1].Count += m
	}
	for i, s := range f.stores {
		if place[i].Count > f.place[i].Count {
			if err := s.reserve(ctx, f.place[i].Count, place[i].Count); err != nil {
				return err
			}
		}
	}
	for i, s := range f.stores {
		have, want := f.place[i].Count, place[i].Count
		if want == have {
			continue
		}
		some, those, first := vectors, order, place[i].First+have-n
		if last := place[i].End() - n; order != nil {
			those = order[first:last]
		} else {
			some = vectors[first*f.e.dim : last*f.e.dim]
		}
		if err := s.put(ctx, code, have, some, those); err != nil {
			return err
		}
		f.work.did(want - have)
	}
	f.setCode(code)
	f.scaled, f.place = true, place
	if f.grow(ids, order); f.sorted == n && (n == 0 || f.ids[n] > f.ids[n-1]) {
		f.sorted = len(f.ids)
	} else {
		f.index(n)
	}
	f.state++
	return nil
}

// shares divides rows among the stores.
func (f *Flat) shares(rows int) cluster.Placement {
	var p cluster.Placement
	if f.weights != nil {
		p, _ = cluster.Weighted(rows, f.weights) // which NewFlat has checked
	} else {
		p, _ = cluster.Even(rows, len(f.stores))
	}
	return p
}

// codeFor returns the coding for vectors that are added, where scaled says that the scale of bytes is fixed.
func (e *engine) codeFor(vectors []float32, scaled bool) (coding, error) {
	if e.code.Precision == FP16 {
		if i := overHalf(vectors); i >= 0 {
			return coding{}, fmt.Errorf("ann: component %d of vector %d is %v, and halves end at 65504: %w", i%e.dim, i/e.dim,
				vectors[i], runtime.ErrInvalidArgument)
		}
	}
	if e.code.Precision != INT8Scaled {
		return e.code, nil
	}
	code := INT8Scaled.scaleOf(vectors)
	if !scaled {
		return code, nil
	}
	zeros := !slices.ContainsFunc(vectors, func(v float32) bool { return v != 0 })
	if largest := 127 * code.scale; largest > 127.5*e.code.scale && !zeros {
		return coding{}, fmt.Errorf("ann: a component of size %v, and the scale of %v follows from the first vectors, "+
			"whose largest one is %v: %w",
			largest, e.code, 127*e.code.scale, runtime.ErrInvalidArgument)
	}
	return e.code, nil
}

// Remove implements [Index].
func (f *Flat) Remove(ctx context.Context, ids []int64) error {
	return f.changeExclusive(ctx, func() error {
		rows, err := f.checkRemove(ctx, ids)
		if err != nil || len(rows) == 0 {
			return err
		}
		f.state++
		// the last rows just end
		for n := len(rows); n > 0 && rows[n-1] == len(f.ids)-1 && f.added == nil && f.ascending(); n = len(rows) {
			f.cut()
			rows = rows[:n-1]
			for f.gone > 0 && len(f.ids) > 0 && !f.live.has(len(f.ids)-1) {
				f.live.put(len(f.ids)-1, true)
				f.cut()
				f.gone--
			}
		}
		for i, p := range f.place {
			first := min(p.First, len(f.ids))
			f.place[i] = cluster.Part{First: first, Count: min(p.End(), len(f.ids)) - first}
		}
		f.remove(rows)
		return nil
	})
}

// cut drops the last row.
func (f *Flat) cut() {
	f.ids = f.ids[:len(f.ids)-1]
	f.sorted--
}

// Update replaces the vector of an id. An id that the index does not have is [runtime.ErrInvalidArgument].
func (f *Flat) Update(ctx context.Context, id int64, vector []float32) error {
	return f.changeExclusive(ctx, func() error {
		i, code, err := f.checkUpdate(id, vector)
		if err != nil {
			return err
		}
		s, n := f.stores[0], len(f.ids)
		if len(f.stores) > 1 {
			n = f.place[f.place.Of(i)].Count
			s, i = f.at(i)
		}
		if err := s.reserve(ctx, n, n); err != nil {
			return err
		}
		return s.put(ctx, code, i, vector, nil)
	})
}

// Compact puts the rows in order, which otherwise the next search does, and frees the memory that they do not
// need. Vectors in the host's memory go back to the device if there is room now.
func (f *Flat) Compact(ctx context.Context) error {
	return f.changeExclusive(ctx, func() error {
		err := f.settle(ctx)
		for i, s := range f.stores {
			if err == nil {
				err = s.compact(ctx, f.place[i].Count)
			}
		}
		return err
	})
}

// settled reports whether the rows are in order, all there, and well divided.
func (f *Flat) settled() bool {
	return f.gone == 0 && f.ascending() && (len(f.stores) == 1 || f.balanced())
}

// balanced reports whether no store has far more than its share.
func (f *Flat) balanced() bool {
	for i, p := range f.shares(len(f.ids)) {
		if f.place[i].Count > p.Count+max(p.Count/2, 64) {
			return false
		}
	}
	return true
}

// settle puts the rows in order, drops the removed ones, and divides them.
func (f *Flat) settle(ctx context.Context) error {
	for !f.settled() {
		if err := f.arrange(ctx); err != nil {
			return err
		}
	}
	return nil
}

// arrange does a part of what settle does: if rows are only removed, each store drops its own.
func (f *Flat) arrange(ctx context.Context) error {
	rows := f.byID()
	var changes []change
	var err error
	place := cluster.Placement{{Count: len(rows)}}
	switch {
	case len(f.stores) == 1:
		var c change
		c, err = f.stores[0].choose(ctx, len(f.ids), rows)
		changes = []change{c}
	case f.gone > 0 && f.ascending():
		place, changes, err = f.chooseEach(ctx, rows)
	default:
		place = f.shares(len(rows))
		changes, err = f.divide(ctx, rows, place)
	}
	if err != nil {
		for _, c := range changes {
			c.cancel()
		}
		return err
	}
	for i, c := range changes {
		f.stores[i].commit(ctx, c, place[i].Count)
	}
	f.pick(rows)
	f.place, f.sorted, f.tail = place, len(rows), nil
	f.state++
	return nil
}

// chooseEach has each store keep its own of the given rows.
func (f *Flat) chooseEach(ctx context.Context, rows []uint32) (cluster.Placement, []change, error) {
	place, changes := make(cluster.Placement, len(f.stores)), make([]change, len(f.stores))
	lo := 0
	for i, s := range f.stores {
		p := f.place[i]
		hi := lo
		for hi < len(rows) && int(rows[hi]) < p.End() {
			hi++
		}
		place[i] = cluster.Part{First: lo, Count: hi - lo}
		part, err := slices.Clone(rows[lo:hi]), error(nil)
		for j := range part {
			part[j] -= uint32(p.First)
		}
		if changes[i], err = s.choose(ctx, p.Count, part); err != nil {
			return nil, changes, err
		}
		lo = hi
	}
	return place, changes, nil
}

// divide gives the stores the given rows anew.
func (f *Flat) divide(ctx context.Context, rows []uint32, place cluster.Placement) (changes []change, err error) {
	old := make([][]byte, len(f.stores))
	for i, s := range f.stores {
		old[i] = s.held
		if n := f.place[i].Count; !s.streams && n > 0 {
			old[i] = make([]byte, s.size(n))
			if err := s.read(ctx, 0, old[i]); err != nil {
				return nil, err
			}
		}
	}
	row := f.stores[0].size(1)
	for i, s := range f.stores {
		memory := make([]byte, 0, s.size(place[i].Count))
		for _, r := range rows[place[i].First:place[i].End()] {
			from := f.place.Of(int(r))
			memory = append(memory, old[from][(int(r)-f.place[from].First)*row:][:row]...)
		}
		c, err := s.bring(ctx, memory, place[i].Count)
		if err != nil {
			return changes, err
		}
		changes = append(changes, c)
	}
	return changes, nil
}
