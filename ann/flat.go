package ann

// Flat: every query is compared with all vectors. Here are its ids and changes; store.go has its vectors, search.go the search.
//
// A search needs the rows in ascending order of their ids, so that kernels, which prefer the first of equal rows, decide ties as the
// index has to. Rows that are added in order stay where they are. Otherwise they wait in their tail, and removed ones in their place, until
// the next search has the device copy all rows in order.

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/concord-compute/concord/runtime"
)

// Flat is an index that compares each query with all of its vectors, so that its results are exact. The vectors are in the memory of
// its device, which stays open while the index is; the session has to be closed after the index.
//
// Vectors that are added in ascending order of their ids are stored as they come. After ids in another order, and after a
// removal, the next search first copies the vectors in the device's memory, which then holds them twice for a moment.
//
// If the device, or its limit, has no room for the vectors, they lie in the host's memory, which Info tells. Each search then copies those that the filter
// admits through the device, a part while it searches the one before, one search at a time; the results are the same.
type Flat struct {
	e        *engine
	store    *store
	maxRows  int
	kind     string
	fallback string

	mu     sync.RWMutex
	closed bool
	state  uint64           // changes with the rows
	scaled bool             // the scale of INT8Scaled is fixed
	ids    []int64          // by row, also of removed ones
	sorted int              // so many rows, from the first on, are in ascending order of ids
	tail   map[int64]uint32 // the others
	dead   bitset           // the removed rows, nil if there are none
	gone   int              // their number
	order  []uint32         // how many rows were added before each; nil if these are the rows before it
}

// FlatOptions are what [NewFlat] takes. The zero value has the defaults.
type FlatOptions struct {
	Precision Precision
	MaxDim    int // the largest dimension, 4096 unless set
	MaxRows   int // the largest number of vectors; 0 is no limit
}

// NewFlat makes an empty index on a device. A dimension that is not from 1 to MaxDim is [runtime.ErrInvalidArgument]; a registered metric on a device
// whose memory the host does not see is [runtime.ErrUnsupported].
func NewFlat(dev *runtime.Device, dim int, m Metric, o FlatOptions) (*Flat, error) {
	if err := (Options{Precision: o.Precision, MaxDim: o.MaxDim, MaxRows: o.MaxRows}).check(dim); err != nil {
		return nil, err
	}
	e, err := newEngine(dev, dim, m, o.Precision)
	if err != nil {
		return nil, err
	}
	return &Flat{e: e, store: newStore(e), maxRows: o.MaxRows, kind: "flat"}, nil
}

func (f *Flat) check() error {
	if f.closed {
		return fmt.Errorf("ann: %w", runtime.ErrClosed)
	}
	return nil
}

// Close implements [Index]. It waits for searches that run.
func (f *Flat) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	return f.store.close()
}

// Info implements [Index].
func (f *Flat) Info() Info {
	f.mu.RLock()
	defer f.mu.RUnlock()
	i := Info{Kind: f.kind, Metric: f.e.metric.String(), Dim: f.e.dim, Len: len(f.ids) - f.gone, Precision: f.e.code.String(),
		Device: f.e.dev.String(), Fallback: f.fallback, DeviceMemory: -1, Streams: f.store.streams}
	if f.kind != "brute" && f.kind != "bruteforce" {
		i.DeviceMemory = f.store.onDevice()
	}
	return i
}

// Len returns the number of vectors.
func (f *Flat) Len() int {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return len(f.ids) - f.gone
}

// row returns the row of an id.
func (f *Flat) row(id int64) (int, bool) {
	if i, ok := slices.BinarySearch(f.ids[:f.sorted], id); ok && (f.dead == nil || !f.dead.has(i)) {
		return i, true
	}
	i, ok := f.tail[id]
	return int(i), ok
}

// Get returns a vector as it is stored, in numbers. An id that the index does not have is [runtime.ErrInvalidArgument].
func (f *Flat) Get(ctx context.Context, id int64) ([]float32, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if err := f.check(); err != nil {
		return nil, err
	}
	i, ok := f.row(id)
	if !ok {
		return nil, unknown(id)
	}
	stored := make([]byte, f.e.dim*f.e.code.size())
	if err := f.store.read(ctx, int64(i*len(stored)), stored); err != nil {
		return nil, err
	}
	vector := make([]float32, f.e.dim)
	f.e.code.decode(vector, stored)
	return vector, nil
}

func unknown(id int64) error {
	return fmt.Errorf("ann: there is no vector with the id %d: %w", id, runtime.ErrInvalidArgument)
}

// Add implements [Index]. With [INT8Scaled], a component above the scale of the first vectors is [runtime.ErrInvalidArgument], and with [FP16] one that is finite
// and too large for a half.
func (f *Flat) Add(ctx context.Context, ids []int64, vectors []float32) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.check(); err != nil {
		return err
	}
	if err := checkRows(len(ids), len(vectors), f.e.dim); err != nil || len(ids) == 0 {
		return err
	}
	order, err := inOrder(ids, f.has)
	if err != nil {
		return err
	}
	n, m := len(f.ids), len(ids)
	if total := n - f.gone + m; f.maxRows > 0 && total > f.maxRows {
		return fmt.Errorf("ann: %d vectors are more than MaxRows, which is %d: %w", total, f.maxRows, runtime.ErrBudget)
	}
	if n+m >= math.MaxUint32 || n+m > math.MaxInt/8/f.e.dim {
		return fmt.Errorf("ann: %d vectors are more than places: %w", n+m, runtime.ErrTooLarge)
	}
	code, err := f.e.codeFor(vectors, f.scaled)
	if err != nil {
		return err
	}
	if err := f.store.reserve(ctx, n, n+m); err != nil {
		return err
	}
	if err := f.store.put(ctx, code, n, vectors, order); err != nil {
		return err
	}
	f.e.code, f.scaled = code, true
	f.take(ids, order)
	f.state++
	return nil
}

// codeFor returns the coding for vectors that are added, where scaled says that the scale of bytes is fixed.
func (e *engine) codeFor(vectors []float32, scaled bool) (coding, error) {
	if e.code.Precision == FP16 {
		for i, x := range vectors {
			if a := math.Abs(float64(x)); a >= 65520 && !math.IsInf(a, 0) {
				return coding{}, fmt.Errorf("ann: component %d of vector %d is %v, and halves end at 65504: %w", i%e.dim, i/e.dim, x, runtime.ErrInvalidArgument)
			}
		}
	}
	if e.code.Precision != INT8Scaled {
		return e.code, nil
	}
	code := INT8Scaled.scaleOf(vectors)
	if !scaled {
		return code, nil
	}
	if largest := 127 * code.scale; largest > 127.5*e.code.scale && !allZero(vectors) {
		return coding{}, fmt.Errorf("ann: a component of size %v, and the scale of %v follows from the first vectors, whose largest one is %v: %w",
			largest, e.code, 127*e.code.scale, runtime.ErrInvalidArgument)
	}
	return e.code, nil
}

func allZero(x []float32) bool {
	return !slices.ContainsFunc(x, func(v float32) bool { return v != 0 })
}

func (f *Flat) has(id int64) bool {
	_, ok := f.row(id)
	return ok
}

// checkRows checks the sizes of a call of Add.
func checkRows(ids, components, dim int) error {
	if components%dim != 0 || components/dim != ids {
		return fmt.Errorf("ann: %d components for %d ids with %d each: %w", components, ids, dim, runtime.ErrDimension)
	}
	return nil
}

// inOrder checks the ids of a call of Add, and returns the order in which they ascend, nil if they do already.
func inOrder(ids []int64, has func(id int64) bool) (order []int, err error) {
	for _, id := range ids {
		if id < 0 {
			return nil, fmt.Errorf("ann: id %d is negative: %w", id, runtime.ErrInvalidArgument)
		}
		if has(id) {
			return nil, fmt.Errorf("ann: the index has a vector with the id %d: %w", id, runtime.ErrInvalidArgument)
		}
	}
	at := func(i int) int64 { return ids[i] }
	if !slices.IsSorted(ids) {
		order = make([]int, len(ids))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int { return cmp.Compare(ids[a], ids[b]) })
		at = func(i int) int64 { return ids[order[i]] }
	}
	for i := 1; i < len(ids); i++ {
		if at(i) == at(i-1) {
			return nil, fmt.Errorf("ann: the id %d is there twice: %w", at(i), runtime.ErrInvalidArgument)
		}
	}
	return order, nil
}

// take adds ids, whose rows have been stored.
func (f *Flat) take(ids []int64, order []int) {
	n := len(f.ids)
	if order != nil && f.order == nil {
		f.order = make([]uint32, n, n+len(ids))
		for i := range f.order {
			f.order[i] = uint32(i)
		}
	}
	for i, id := range ids {
		if order != nil {
			id = ids[order[i]]
		}
		if f.order != nil {
			at := i
			if order != nil {
				at = order[i]
			}
			f.order = append(f.order, uint32(n+at))
		}
		f.ids = append(f.ids, id)
	}
	if f.sorted == n && (n == 0 || f.ids[n] > f.ids[n-1]) {
		f.sorted = len(f.ids)
		f.grown(n)
		return
	}
	if f.tail == nil {
		f.tail = map[int64]uint32{}
	}
	for i := n; i < len(f.ids); i++ {
		f.tail[f.ids[i]] = uint32(i)
	}
	f.grown(n)
}

// grown extends the set of removed rows after rows from n on were added.
func (f *Flat) grown(n int) {
	if f.dead != nil {
		for len(f.dead) < (len(f.ids)+63)/64 {
			f.dead = append(f.dead, 0)
		}
	}
}

// Remove implements [Index].
func (f *Flat) Remove(ctx context.Context, ids []int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.check(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	rows := make([]int, len(ids))
	for i, id := range ids {
		var ok bool
		if rows[i], ok = f.row(id); !ok {
			return unknown(id)
		}
	}
	slices.Sort(rows)
	for i := 1; i < len(rows); i++ {
		if rows[i] == rows[i-1] {
			return fmt.Errorf("ann: the id %d is there twice: %w", f.ids[rows[i]], runtime.ErrInvalidArgument)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	f.state++
	for len(rows) > 0 && rows[len(rows)-1] == len(f.ids)-1 && f.order == nil && f.sorted == len(f.ids) { // the last rows just end
		f.ids = f.ids[:len(f.ids)-1]
		f.sorted--
		rows = rows[:len(rows)-1]
		for f.gone > 0 && len(f.ids) > 0 && f.dead.has(len(f.ids)-1) {
			f.dead.put(len(f.ids)-1, false)
			f.ids = f.ids[:len(f.ids)-1]
			f.sorted--
			f.gone--
		}
	}
	if len(rows) > 0 && f.dead == nil {
		f.dead = newBitset(len(f.ids))
	}
	for _, i := range rows {
		f.dead.put(i, true)
		if i >= f.sorted {
			delete(f.tail, f.ids[i])
		}
	}
	f.gone += len(rows)
	return nil
}

// Update replaces the vector of an id. An id that the index does not have is [runtime.ErrInvalidArgument].
func (f *Flat) Update(ctx context.Context, id int64, vector []float32) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.check(); err != nil {
		return err
	}
	if err := checkRows(1, len(vector), f.e.dim); err != nil {
		return err
	}
	i, ok := f.row(id)
	if !ok {
		return unknown(id)
	}
	code, err := f.e.codeFor(vector, f.scaled)
	if err != nil {
		return err
	}
	if err := f.store.reserve(ctx, len(f.ids), len(f.ids)); err != nil {
		return err
	}
	return f.store.put(ctx, code, i, vector, nil)
}

// Compact puts the rows in order, which otherwise the next search does, and frees the memory that they do not need. Vectors in the host's memory go
// back to the device if there is room now.
func (f *Flat) Compact(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.check(); err != nil {
		return err
	}
	if err := f.settle(ctx); err != nil {
		return err
	}
	return f.store.compact(ctx, len(f.ids))
}

// settled reports whether the rows are in order and all there.
func (f *Flat) settled() bool { return f.gone == 0 && f.sorted == len(f.ids) }

// settle puts the rows in order and drops the removed ones.
func (f *Flat) settle(ctx context.Context) error {
	if f.settled() {
		return nil
	}
	rows := make([]uint32, 0, len(f.ids)-f.gone) // in the new order
	for i := range f.ids {
		if f.dead == nil || !f.dead.has(i) {
			rows = append(rows, uint32(i))
		}
	}
	if f.sorted < len(f.ids) {
		slices.SortFunc(rows, func(a, b uint32) int { return cmp.Compare(f.ids[a], f.ids[b]) })
	}
	if err := f.store.choose(ctx, len(f.ids), rows); err != nil {
		return err
	}
	f.order = f.ranks(rows)
	ids := make([]int64, len(rows))
	for i, r := range rows {
		ids[i] = f.ids[r]
	}
	f.ids, f.sorted, f.tail, f.dead, f.gone = ids, len(ids), nil, nil, 0
	f.state++
	return nil
}

// ranks returns order for rows in a new order.
func (f *Flat) ranks(rows []uint32) []uint32 {
	added := func(i int) uint32 {
		if f.order != nil {
			return f.order[rows[i]]
		}
		return rows[i]
	}
	first := make([]int, len(rows)) // the rows in the order in which they were added
	for i := range first {
		first[i] = i
	}
	slices.SortFunc(first, func(a, b int) int { return cmp.Compare(added(a), added(b)) })
	if slices.IsSorted(first) {
		return nil
	}
	order := make([]uint32, len(rows))
	for rank, i := range first {
		order[i] = uint32(rank)
	}
	return order
}
