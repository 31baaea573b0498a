package ann

// What every kind of index has: vectors in stores, the table of their ids, and its life from a file or empty to
// its end. A kind keeps what only it has, such as lists or a graph.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
)

// storage has the vectors of an index. It belongs to one index, which changes it within change or write.
//
// An index of a file reads the vectors, ids and links where they are in the file, until its first change, before
// which these are compared with the file's checksums and copied; only HNSW.Remove, which changes none of them, does
// neither. The file's other contents are checked when they are first needed.
type storage struct {
	kind     string
	fallback string
	maxRows  int
	kindPart contents // what the kind has beside this
	e        *engine  // of the first store
	stores   []*store
	place    cluster.Placement // which rows each of several stores has

	progress  func(Progress)
	work      *meter       // of the Add that runs, guarded by writeLock; nil if nobody wants to know
	writeLock sync.Mutex   // held during a change
	mu        sync.RWMutex // searches are readers; its writer changes what they read
	tableLock sync.Mutex   // guards table where searches go on during a change; held for a moment only
	table
	state  uint64 // changes with the rows
	scaled bool   // the scale of INT8Scaled is fixed
	closed bool
	// checks the contents of a file and takes what is to be computed from them, once; nil if it is of none
	checkFile func() error
	sums      sums            // what the file's sections have to be until the first change; nil if there is no file
	mapped    []func() func() // copies a slice that is the memory of a file, and returns what puts the copy in its place
}

// contents is what a kind of index has beside its storage.
type contents interface {
	Index
	// open takes from a file what an index has from the beginning. inPlace says that its vectors keep the file.
	open(ctx context.Context, m *image, inPlace bool) error
	// fill takes what the first call needs that uses the index. The file was checked.
	fill(m *image) error
	// checkUnread checks what neither open nor fill does, before it is changed or written.
	checkUnread() error
	// sections returns what a file has besides the configuration and what WriteTo computes.
	sections() []section
	// ready makes an index of a file ready for a change, and calls check, which reads the index, while there is none.
	ready(ctx context.Context, check func() error) error
	// Compact frees memory that the vectors do not need.
	Compact(ctx context.Context) error
	// free frees what the storage does not have.
	free() error
	base() *storage
}

func (s *storage) base() *storage { return s }

// What a kind need not have.
func (s *storage) checkUnread() error { return nil }
func (s *storage) free() error        { return nil }

// copied is an element of storage.mapped.
func copied[T any](slice *[]T) func() func() {
	return func() func() {
		c := slices.Clone(*slice)
		return func() { *slice = c }
	}
}

// check returns why the index cannot be used, or nil. The caller holds one of the locks.
func (s *storage) check(ctx context.Context) error {
	if err := checkContext(ctx); err != nil {
		return err
	}
	if s.closed {
		return fmt.Errorf("ann: %w", runtime.ErrClosed)
	}
	if s.checkFile != nil {
		return s.checkFile()
	}
	return nil
}

// write calls f, during which there is no change of the index but by f. It waits for other changes until ctx is done.
func (s *storage) write(ctx context.Context, f func() error) error {
	if err := locked(ctx, &s.writeLock, s.writeLock.TryLock); err != nil {
		return err
	}
	defer s.writeLock.Unlock()
	if err := s.check(ctx); err != nil {
		return err
	}
	return f()
}

// change is write for a change of what may be as it was in a file.
func (s *storage) change(ctx context.Context, f func() error) error {
	return s.write(ctx, func() error {
		if err := s.detach(); err != nil {
			return err
		}
		return f()
	})
}

// ready implements contents.
func (s *storage) ready(ctx context.Context, check func() error) error { return s.change(ctx, check) }

// changeExclusive is change without searches meanwhile.
func (s *storage) changeExclusive(ctx context.Context, f func() error) error {
	return s.change(ctx, func() error {
		if err := locked(ctx, &s.mu, s.mu.TryLock); err != nil {
			return err
		}
		defer s.mu.Unlock()
		return f()
	})
}

// verify compares what is as it was in a file with the file's checksums, and checks it.
func (s *storage) verify() error {
	if s.sums == nil && s.mapped == nil {
		return nil
	}
	return cmp.Or(s.sums.check(s.kindPart.sections()...), s.kindPart.checkUnread())
}

// detach makes what is of a file the index's own: a change follows. The caller holds writeLock.
func (s *storage) detach() error {
	err := s.verify()
	if err != nil || s.sums == nil && s.mapped == nil {
		return err
	}
	s.unmap()
	s.mu.Lock() // as WriteTo may read it
	defer s.mu.Unlock()
	s.sums = nil
	return nil
}

// unmap copies what is the memory of a file, but for vectors, which is not to be changed and is released with
// the vectors. The caller holds writeLock, or nobody else uses the index.
func (s *storage) unmap() {
	if s.mapped == nil {
		return
	}
	var puts []func()
	for _, clone := range s.mapped {
		puts = append(puts, clone())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tableLock.Lock()
	defer s.tableLock.Unlock()
	for _, put := range puts {
		put()
	}
	s.mapped = nil
}

// close closes the index after searches and changes that run.
func (s *storage) close() error {
	s.writeLock.Lock()
	defer s.writeLock.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	var err error
	if s.kindPart != nil {
		err = s.kindPart.free()
	}
	for _, st := range s.stores {
		err = errors.Join(err, st.close())
	}
	return err
}

// count returns the number of vectors.
func (s *storage) count() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.table.len()
}

// info describes the index. The caller holds mu.
func (s *storage) info() Info {
	i := Info{Kind: s.kind, Metric: s.e.metric.String(), Dim: s.e.dim, Len: s.table.len(), Precision: s.e.code.String(),
		Device: s.e.dev.String(), Fallback: s.fallback}
	for n, st := range s.stores {
		if n > 0 {
			i.Device += "," + st.e.dev.String()
		}
		i.DeviceMemory += st.onDevice()
		i.Streams = i.Streams || st.streams
	}
	return i
}

// at returns the store of a row, and its number there.
func (s *storage) at(row int) (*store, int) {
	if len(s.stores) == 1 {
		return s.stores[0], row
	}
	i := s.place.Of(row)
	return s.stores[i], row - s.place[i].First
}

// setCode sets how all stores convert components.
func (s *storage) setCode(code coding) {
	for _, st := range s.stores {
		st.e.code = code
	}
}

// fixScale sets the scale of bytes, which the first vectors of all shards have.
func (s *storage) fixScale(code coding) {
	s.writeLock.Lock()
	defer s.writeLock.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if code.Precision == INT8Scaled && !s.closed {
		s.setCode(code)
		s.scaled = true
	}
}

// get returns the vector of an id as it is stored, in numbers.
func (s *storage) get(ctx context.Context, id int64) ([]float32, error) {
	if err := reading(ctx, &s.mu); err != nil {
		return nil, err
	}
	defer s.mu.RUnlock()
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	s.tableLock.Lock()
	row, ok := s.row(id)
	s.tableLock.Unlock()
	if !ok {
		return nil, unknown(id)
	}
	st, row := s.at(row)
	vector, stored := make([]float32, s.e.dim), st.memory()
	if stored == nil {
		stored = make([]byte, st.size(1))
		if err := st.read(ctx, int64(st.size(row)), stored); err != nil {
			return nil, err
		}
		row = 0
	}
	s.e.code.decode(vector, stored[st.size(row):][:st.size(1)])
	return vector, nil
}

func unknown(id int64) error {
	return fmt.Errorf("ann: there is no vector with the id %d: %w", id, runtime.ErrInvalidArgument)
}

// checkAdd checks the arguments of Add, and returns the order in which the ids ascend, nil if they do already.
func (s *storage) checkAdd(ids []int64, vectors []float32) (order []int, err error) {
	if err := checkRows(len(ids), len(vectors), s.e.dim); err != nil {
		return nil, err
	}
	if order, err = s.inOrder(ids); err != nil {
		return nil, err
	}
	if total := s.table.len() + len(ids); s.maxRows > 0 && total > s.maxRows {
		return nil, fmt.Errorf("ann: %d vectors are more than MaxRows, which is %d: %w", total, s.maxRows, runtime.ErrBudget)
	}
	return order, nil
}

// checkRows checks the sizes of a call of Add.
func checkRows(ids, components, dim int) error {
	if components%dim != 0 || components/dim != ids {
		return fmt.Errorf("ann: %d components for %d ids with %d each: %w", components, ids, dim, runtime.ErrDimension)
	}
	return nil
}

// inOrder checks ids that are to be added, and returns the order in which they ascend, nil if they do already.
func (t *table) inOrder(ids []int64) (order []int, err error) {
	for _, id := range ids {
		if id < 0 {
			return nil, fmt.Errorf("ann: id %d is negative: %w", id, runtime.ErrInvalidArgument)
		}
		if _, ok := t.row(id); ok {
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

// roomFor checks that there are places for more rows.
func (s *storage) roomFor(more, most int) error {
	if n := len(s.ids) + more; n > most || n > math.MaxInt/8/s.e.dim {
		return fmt.Errorf("ann: %d vectors are more than places: %w", n, runtime.ErrTooLarge)
	}
	return nil
}

// checkRemove checks the ids of a call of Remove, and returns their rows, which ascend.
func (s *storage) checkRemove(ctx context.Context, ids []int64) ([]int, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	rows := make([]int, len(ids))
	for i, id := range ids {
		var ok bool
		if rows[i], ok = s.row(id); !ok {
			return nil, unknown(id)
		}
	}
	slices.Sort(rows)
	for i := 1; i < len(rows); i++ {
		if rows[i] == rows[i-1] {
			return nil, fmt.Errorf("ann: the id %d is there twice: %w", s.ids[rows[i]], runtime.ErrInvalidArgument)
		}
	}
	return rows, nil
}

// checkUpdate checks the arguments of Update, and returns the row of the id and the coding for the vector.
func (s *storage) checkUpdate(id int64, vector []float32) (row int, code coding, err error) {
	if err := checkRows(1, len(vector), s.e.dim); err != nil {
		return 0, code, err
	}
	row, ok := s.row(id)
	if !ok {
		return 0, code, unknown(id)
	}
	code, err = s.e.codeFor(vector, s.scaled)
	return row, code, err
}

// asked checks the arguments of a search for one query or several. The caller holds mu.
func (s *storage) asked(ctx context.Context, components, k int, one bool) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	if err := checkSearch(s.e.dim, components, k, one); err != nil {
		return err
	}
	return ctx.Err()
}

// results appends what was found to dst.
func (s *storage) results(dst []Result, found []candidate) []Result {
	dst = slices.Grow(dst, len(found))
	for _, c := range found {
		dst = append(dst, Result{s.ids[c.row()], s.e.metric.finish(c.distance(), s.e.code.unit())})
	}
	return dst
}

// withRoom searches. If the device of a store, which search returns then, has no room for that beside the rows,
// these go to the host's memory and the search begins again: as often as that happens, since a change may bring
// them back before.
func (s *storage) withRoom(ctx context.Context, search func() (in *store, err error)) error {
	for {
		in, err := search()
		if in == nil || !short(err) || errors.Is(err, runtime.ErrTooLarge) || ctx.Err() != nil {
			return err
		}
		if s.write(ctx, func() error { // as a change may read the vectors
			s.unmap() // the file's checksums are for changes of what the index has, and not for where it has it
			s.mu.Lock()
			defer s.mu.Unlock()
			rows, i := len(s.ids), slices.Index(s.stores, in)
			switch {
			case i < 0: // the vectors are elsewhere by now
				return nil
			case len(s.stores) > 1:
				rows = s.place[i].Count
			}
			return in.spill(ctx, rows)
		}) != nil {
			return err
		}
	}
}

// writeTo writes a file with the kind's configuration, and what is computed for it and what is not.
func (s *storage) writeTo(to io.Writer, c saved, computed ...section) (int64, error) {
	if s.sums != nil || s.mapped != nil {
		if err := s.kindPart.checkUnread(); err != nil {
			return 0, err
		}
	}
	c.Kind, c.Metric, c.Dim, c.Rows = s.kind, s.e.metric.String(), s.e.dim, len(s.ids)
	c.Precision, c.MaxRows = s.e.code.String(), s.maxRows
	if s.scaled && s.e.code.Precision == INT8Scaled {
		c.Scale = s.e.code.scale
	}
	sections := append(computed, s.kindPart.sections()...)
	text, err := json.Marshal(c)
	if err != nil {
		return 0, err
	}
	w, err := newWriter(to, c.version(sections))
	if err != nil {
		return w.at, err
	}
	w.want = s.sums
	for _, x := range append([]section{data("config", text)}, sections...) {
		if err := w.add(x); err != nil {
			return w.at, err
		}
	}
	err = w.end()
	return w.at, err
}

// load gives an empty index what is in a file. inPlace says that it has the file's memory, also after an error,
// and calls release.
func (s *storage) load(ctx context.Context, m *image, release func()) (inPlace bool, err error) {
	s.setCode(m.code)
	s.scaled = m.Scale != 0
	if m.Rows > 0 && len(s.stores) == 1 {
		if inPlace, err = s.stores[0].load(ctx, m, release); err != nil {
			return inPlace, err
		}
	}
	s.ids, s.order, s.mapped = m.ids, m.byID, []func() func(){copied(&s.ids), copied(&s.order)}
	if release != nil {
		s.sums = sums{}
		for _, x := range m.list {
			if slices.Contains([]string{"ids", "level", "first", "upper", "codes", "vectors"}, x.name) {
				s.sums[x.name] = x.sum
			}
		}
	}
	s.checkFile = sync.OnceValue(func() (err error) {
		if release != nil {
			err = m.check()
		}
		if err == nil {
			err = s.kindPart.fill(m)
		}
		return err
	})
	if err = s.kindPart.open(ctx, m, inPlace); err == nil && !inPlace { // then nothing has to keep the file
		if err = s.check(ctx); err == nil {
			s.unmap()
		}
	}
	return inPlace, err
}
