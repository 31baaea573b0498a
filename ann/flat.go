package ann

// Flat: every query is compared with all vectors. Here are its ids and changes; store.go has its vectors,
// search.go the search.
//
// A search needs the rows in ascending order of their ids, so that kernels, which prefer the first of equal
// rows, decide ties as the index has to. Rows that are added in order stay where they are. Otherwise they wait
// in their tail, and removed ones in their place, until the next search has the device copy all rows in order.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

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
// search theirs. The results are those of one device. A search that fails on one device fails as a whole, with
// an [ErrSync] that names the device. Vectors that are added go to the last device, until it has half as many
// again as its share: then the next search divides the vectors anew, by way of the host's memory, and so it
// does after ids in no order.
type Flat struct {
	e        *engine // of the first device
	stores   []*store
	weights  []float64 // of the stores; nil if these are equal
	maxRows  int
	kind     string
	fallback string

	mu sync.RWMutex
	backing
	mapped bool              // ids and order are the memory of a file
	state  uint64            // changes with the rows
	scaled bool              // the scale of INT8Scaled is fixed
	place  cluster.Placement // which rows each store has
	ids    []int64           // by row, also of removed ones
	sorted int               // so many rows, from the first on, are in ascending order of ids
	tail   map[int64]uint32  // the others
	dead   bitset            // the removed rows, nil if there are none
	gone   int               // their number
	order  []uint32          // how many rows were added before each; nil if these are the rows before it
}

// FlatOptions are what [NewFlat] takes. The zero value has the defaults.
type FlatOptions struct {
	Precision Precision // of the stored vectors; 0 is FP32
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
	f := &Flat{weights: slices.Clone(o.Weights), maxRows: o.MaxRows, kind: "flat"}
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

// change is check before a change, which compares all that is as it was in a file with the file's checksums.
// The caller has locked mu.
func (f *Flat) change(ctx context.Context) error {
	if err := f.check(ctx); err != nil {
		return err
	}
	if err := f.unchanged(f.sections); err != nil {
		return err
	}
	f.own()
	return nil
}

// own copies what is the memory of a file, which is not to be changed and is released with the rows.
func (f *Flat) own() {
	if f.mapped {
		f.ids, f.order, f.mapped = slices.Clone(f.ids), slices.Clone(f.order), false
	}
}

// Close implements [Index]. It waits for searches that run.
func (f *Flat) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	var errs []error
	for _, s := range f.stores {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}

// Info implements [Index].
func (f *Flat) Info() Info {
	f.mu.RLock()
	defer f.mu.RUnlock()
	i := Info{Kind: f.kind, Metric: f.e.metric.String(), Dim: f.e.dim, Len: len(f.ids) - f.gone,
		Precision: f.e.code.String(),
		Device:    f.e.dev.String(), Fallback: f.fallback}
	for n, s := range f.stores {
		if n > 0 {
			i.Device += "," + s.e.dev.String()
		}
		i.DeviceMemory += s.onDevice()
		i.Streams = i.Streams || s.streams
	}
	if f.kind == "brute" || f.kind == "bruteforce" {
		i.DeviceMemory = -1
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
	if err := f.check(ctx); err != nil {
		return nil, err
	}
	i, ok := f.row(id)
	if !ok {
		return nil, unknown(id)
	}
	stored := make([]byte, f.e.dim*f.e.code.size())
	s, i := f.at(i)
	if err := s.read(ctx, int64(i*len(stored)), stored); err != nil {
		return nil, err
	}
	vector := make([]float32, f.e.dim)
	f.e.code.decode(vector, stored)
	return vector, nil
}

// at returns the store of a row, and its number there.
func (f *Flat) at(row int) (*store, int) {
	if len(f.stores) == 1 {
		return f.stores[0], row
	}
	i := f.place.Of(row)
	return f.stores[i], row - f.place[i].First
}

func unknown(id int64) error {
	return fmt.Errorf("ann: there is no vector with the id %d: %w", id, runtime.ErrInvalidArgument)
}

// Add implements [Index]. With [INT8Scaled], a component above the scale of the first vectors is
// [runtime.ErrInvalidArgument], and with [FP16] one that is finite and too large for a half.
func (f *Flat) Add(ctx context.Context, ids []int64, vectors []float32) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.change(ctx); err != nil {
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
	}
	f.setCode(code)
	f.scaled, f.place = true, place
	f.take(ids, order)
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

func (f *Flat) setCode(code coding) {
	for _, s := range f.stores {
		s.e.code = code
	}
}

// codeFor returns the coding for vectors that are added, where scaled says that the scale of bytes is fixed.
func (e *engine) codeFor(vectors []float32, scaled bool) (coding, error) {
	if e.code.Precision == FP16 {
		for i, x := range vectors {
			if a := math.Abs(float64(x)); a >= 65520 && !math.IsInf(a, 0) {
				return coding{}, fmt.Errorf("ann: component %d of vector %d is %v, and halves end at 65504: %w", i%e.dim, i/e.dim,
					x, runtime.ErrInvalidArgument)
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
		return coding{}, fmt.Errorf("ann: a component of size %v, and the scale of %v follows from the first vectors, "+
			"whose largest one is %v: %w",
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
	if err := f.change(ctx); err != nil {
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
	// the last rows just end
	for len(rows) > 0 && rows[len(rows)-1] == len(f.ids)-1 && f.order == nil && f.sorted == len(f.ids) {
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
	for i, p := range f.place {
		first := min(p.First, len(f.ids))
		f.place[i] = cluster.Part{First: first, Count: min(p.End(), len(f.ids)) - first}
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
	if err := f.change(ctx); err != nil {
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
	s, n := f.stores[0], len(f.ids)
	if len(f.stores) > 1 {
		n = f.place[f.place.Of(i)].Count
		s, i = f.at(i)
	}
	if err := s.reserve(ctx, n, n); err != nil {
		return err
	}
	return s.put(ctx, code, i, vector, nil)
}

// Compact puts the rows in order, which otherwise the next search does, and frees the memory that they do not
// need. Vectors in the host's memory go back to the device if there is room now.
func (f *Flat) Compact(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.change(ctx); err != nil {
		return err
	}
	if err := f.settle(ctx); err != nil {
		return err
	}
	for i, s := range f.stores {
		if err := s.compact(ctx, f.place[i].Count); err != nil {
			return err
		}
	}
	return nil
}

// settled reports whether the rows are in order, all there, and well divided.
func (f *Flat) settled() bool {
	return f.gone == 0 && f.sorted == len(f.ids) && (len(f.stores) == 1 || f.balanced())
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
	rows := make([]uint32, 0, len(f.ids)-f.gone) // in the new order
	for i := range f.ids {
		if f.dead == nil || !f.dead.has(i) {
			rows = append(rows, uint32(i))
		}
	}
	if f.sorted < len(f.ids) {
		slices.SortFunc(rows, func(a, b uint32) int { return cmp.Compare(f.ids[a], f.ids[b]) })
	}
	var changes []change
	var err error
	place := cluster.Placement{{Count: len(rows)}}
	switch {
	case len(f.stores) == 1:
		var c change
		c, err = f.stores[0].choose(ctx, len(f.ids), rows)
		changes = []change{c}
	case f.gone > 0 && f.sorted == len(f.ids):
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
	f.order = f.ranks(rows)
	ids := make([]int64, len(rows))
	for i, r := range rows {
		ids[i] = f.ids[r]
	}
	f.place, f.ids, f.sorted, f.tail, f.dead, f.gone = place, ids, len(ids), nil, nil, 0
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
		var err error
		if changes[i], err = s.choose(ctx, p.Count, less(rows[lo:hi], p.First)); err != nil {
			return nil, changes, err
		}
		lo = hi
	}
	return place, changes, nil
}

// less returns the rows with numbers from first on.
func less(rows []uint32, first int) []uint32 {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i] -= uint32(first)
	}
	return rows
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
