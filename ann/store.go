package ann

// The rows of an index: in the memory of a device, or in the host's if the device has no room for them.

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/concord-compute/concord/runtime"
)

// store has the rows of an index. Its owner excludes searches from changes.
type store struct {
	e       *engine
	works   works
	base    *runtime.Buffer // nil if there are no rows on the device
	visible []byte          // base's memory, nil if the host does not see it
	mapped  bool            // the rows are a file's memory, which must not be written to

	streams bool          // the rows are in the host's memory:
	held    []byte        // these, of which the last may be unused
	release func()        // ends the use of held if it is mapped
	turn    chan struct{} // has an element while a search uses what follows
	chunk   int           // so many rows go to the device at a time
	most    int           // for so many queries
}

func newStore(e *engine) *store {
	return &store{e: e, turn: make(chan struct{}, 1)}
}

// short reports whether an error is that the device has no room.
func short(err error) bool {
	return errors.Is(err, runtime.ErrBudget) || errors.Is(err, runtime.ErrOutOfMemory) ||
		errors.Is(err, runtime.ErrTooLarge)
}

func (s *store) close() error {
	s.works.close()
	s.drop()
	return s.e.close()
}

// drop ends the use of the memory of the rows.
func (s *store) drop() {
	if s.base != nil {
		s.base.Close()
	}
	if s.release != nil {
		s.release()
	}
	s.base, s.visible, s.held, s.release = nil, nil, nil, nil
}

// setBuffer makes a buffer, which may be nil, the rows. It is one that alloc or checked returned.
func (s *store) setBuffer(base *runtime.Buffer, mapped bool) {
	s.works.forget()
	s.drop()
	s.base, s.mapped, s.streams = base, mapped, false
	if base != nil && s.e.host {
		s.visible, _ = runtime.HostBytes(base) // which checked has tried
	}
}

// setMemory makes memory of the host the rows. release is nil, or memory is a file's and release ends its use.
func (s *store) setMemory(memory []byte, release func()) {
	s.works.close() // their memory on the device makes room for chunks
	s.drop()
	s.streams, s.held, s.mapped, s.release = true, memory, release != nil, release
	choices := s.e.dev.Choices()
	// another chunk is copied meanwhile, while the device has room for both
	s.chunk, s.most = max(1, choices.Of(rowsStreamed)<<20/s.size(1)), choices.Of(queriesTogether)
}

// onDevice returns the number of bytes of rows in the device's memory.
func (s *store) onDevice() int64 {
	if s.base == nil {
		return 0
	}
	return s.base.Bytes()
}

// memory returns the rows where the host sees them.
func (s *store) memory() []byte {
	if s.streams {
		return s.held
	}
	return s.visible
}

// size returns the bytes of n rows.
func (s *store) size(n int) int { return n * s.e.dim * s.e.code.size() }

func (s *store) alloc(n int) (*runtime.Buffer, error) {
	base, err := s.e.dev.Alloc(s.e.code.typ(), n*s.e.dim)
	if err != nil {
		return nil, err
	}
	base.SetTag("vectors")
	return s.checked(base)
}

// checked returns a buffer for rows, or closes it if the host cannot see its memory, as it has to on this device.
func (s *store) checked(base *runtime.Buffer) (*runtime.Buffer, error) {
	if !s.e.host {
		return base, nil
	}
	if _, err := runtime.HostBytes(base); err != nil {
		return nil, errors.Join(err, base.Close())
	}
	return base, nil
}

// reserve makes room for n rows, of which the first ones are used: on the device, or else in the host's memory.
func (s *store) reserve(ctx context.Context, used, n int) error {
	if !s.streams {
		err := s.grow(ctx, used, n)
		if !short(err) {
			return err
		}
		if err := s.spill(ctx, used); err != nil {
			return err
		}
		c, err := s.bring(ctx, s.held, n)
		if err != nil {
			return err
		}
		if c.base != nil { // there is room without the old rows
			s.setBuffer(c.base, false)
			return nil
		}
	}
	if s.mapped {
		memory := make([]byte, s.size(n))
		copy(memory, s.held)
		s.setMemory(memory, nil)
	}
	if more := s.size(n) - len(s.held); more > 0 {
		s.held = append(s.held, make([]byte, more)...)
	}
	return nil
}

// grow makes room for n rows on the device.
func (s *store) grow(ctx context.Context, used, n int) error {
	base, err := s.larger(ctx, used, n)
	if base != nil {
		s.setBuffer(base, false)
	}
	return err
}

// larger returns a copy of the used rows with room for n, nil if there is room for that.
func (s *store) larger(ctx context.Context, used, n int) (*runtime.Buffer, error) {
	have := 0
	if s.base != nil {
		have = s.base.Len() / s.e.dim
	}
	if n <= have && !s.mapped {
		return nil, nil
	}
	size := n
	if used > 0 && n > have {
		size = max(n, have+have/2)
	}
	copied := func(base *runtime.Buffer) error {
		if used == 0 {
			return nil
		}
		return copyRows(ctx, s.e.dev.Stream(), base, s.base, used*s.e.dim)
	}
	base, err := s.filled(size, copied)
	if short(err) && size > n {
		base, err = s.filled(n, copied)
	}
	return base, err
}

// filled returns a buffer for n rows that fill was called for.
func (s *store) filled(n int, fill func(base *runtime.Buffer) error) (*runtime.Buffer, error) {
	base, err := s.alloc(n)
	if err != nil {
		return nil, err
	}
	if err := fill(base); err != nil {
		return nil, errors.Join(err, base.Close())
	}
	return base, nil
}

// upload writes data to a buffer, and waits for that.
func upload(ctx context.Context, s *runtime.Stream, to *runtime.Buffer, at int64, data []byte) error {
	if err := s.Write(ctx, to, at, data); err != nil {
		return err
	}
	return s.Sync(ctx)
}

// copyRows copies the first elements of a buffer to another one, and waits.
func copyRows(ctx context.Context, s *runtime.Stream, to, from *runtime.Buffer, elements int) error {
	view, err := from.Slice(0, elements)
	if err != nil {
		return err
	}
	defer view.Close()
	if err := s.Copy(to, view); err != nil {
		return err
	}
	return s.Sync(ctx)
}

// ifOnDevice returns the store if its rows are on the device, and else nil.
func (s *store) ifOnDevice() *store {
	if s == nil || s.streams {
		return nil
	}
	return s
}

// spill brings the used rows to the host's memory, if they are not there.
func (s *store) spill(ctx context.Context, used int) error {
	if s.streams {
		return nil
	}
	if base := s.base; s.mapped && s.visible != nil { // a file's memory, which takes no room: it stays where it is
		s.base = nil
		s.setMemory(s.visible[:s.size(used)], func() { base.Close() })
		return nil
	}
	memory := make([]byte, s.size(used))
	if used > 0 {
		if err := s.e.dev.Stream().Read(ctx, s.base, 0, memory); err != nil {
			return err
		}
	}
	s.setMemory(memory, nil)
	return nil
}

// change is what a store will have instead of its rows: a buffer, or memory of the host if the device has no
// room. The zero change is none.
type change struct {
	base   *runtime.Buffer
	memory []byte
	why    error // that the device has no room for memory
}

func (c change) cancel() {
	if c.base != nil {
		c.base.Close()
	}
}

// commit makes a change, after which the store has n rows.
func (s *store) commit(ctx context.Context, c change, n int) {
	streams := s.streams
	switch {
	case c.base != nil:
		s.setBuffer(c.base, false)
	case c.memory != nil:
		s.setMemory(c.memory, nil)
		if streams {
			return
		}
		if c, err := s.bring(ctx, c.memory, n); err == nil && c.base != nil { // without it nothing is lost
			s.setBuffer(c.base, false)
		}
	}
}

// bring returns the change to rows that are in memory, with room for n.
func (s *store) bring(ctx context.Context, memory []byte, n int) (change, error) {
	if n == 0 {
		return change{}, nil
	}
	base, err := s.filled(n, func(base *runtime.Buffer) error {
		return upload(ctx, s.e.dev.Stream(), base, 0, memory)
	})
	if short(err) {
		return change{memory: memory, why: err}, nil
	}
	return change{base: base}, err
}

// read reads stored bytes, from byte offset at on.
func (s *store) read(ctx context.Context, at int64, data []byte) error {
	if memory := s.memory(); memory != nil {
		copy(data, memory[at:])
		return ctx.Err()
	}
	return s.e.dev.Stream().Read(ctx, s.base, at, data)
}

// parts returns the first rows piece by piece.
func (s *store) parts(rows int) iter.Seq2[[]byte, error] {
	if memory := s.memory(); memory != nil {
		return pieces(memory[:s.size(rows)])
	}
	return func(yield func([]byte, error) bool) {
		piece := make([]byte, min(s.size(rows), pieceSize))
		for at := 0; at < s.size(rows); at += len(piece) {
			piece = piece[:min(len(piece), s.size(rows)-at)]
			err := s.e.dev.Stream().Read(context.Background(), s.base, int64(at), piece)
			if !yield(piece, err) || err != nil {
				return
			}
		}
	}
}

// load makes the vectors of a file the rows: where they are in the file if the device can use that, or else a
// copy. inPlace says that release ends the use of the file's memory, also after an error.
func (s *store) load(ctx context.Context, m *image, release func()) (inPlace bool, err error) {
	if release != nil {
		base, err := s.e.dev.Wrap(m.vectors, m.code.typ(), runtime.ForReading, release)
		switch {
		case err == nil:
			if base, err = s.checked(base); err == nil {
				s.setBuffer(base, true)
			}
			return true, err
		case short(err) && m.graph == nil: // then there is no room for a copy either
			s.setMemory(m.vectors, release)
			return true, nil
		case !errors.Is(err, runtime.ErrUnsupported):
			return false, err
		}
	}
	c, err := s.bring(ctx, m.vectors, m.Rows)
	switch {
	case err != nil:
		return false, err
	case c.base != nil:
		s.setBuffer(c.base, false)
		return false, nil
	case m.graph != nil:
		return false, c.why
	}
	s.setMemory(m.vectors, release) // then the file's memory is the host's
	return release != nil, nil
}

// put stores vectors from row first on, in an order unless it is nil.
func (s *store) put(ctx context.Context, code coding, first int, vectors []float32, order []int) error {
	dim, row, stream := s.e.dim, s.e.dim*code.size(), s.e.dev.Stream()
	if !s.streams && code.Precision == FP32 && order == nil {
		return upload(ctx, stream, s.base, int64(first*row), bytesOf(vectors))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	n, piece := len(vectors)/dim, []byte(nil)
	if order != nil {
		n = len(order)
	}
	each := min(n, max(1, pieceSize/row))
	if !s.streams {
		piece = make([]byte, each*row)
	}
	for lo := 0; lo < n; lo += each {
		part := min(each, n-lo) * row
		if s.streams {
			piece = s.held[(first+lo)*row:][:part]
		}
		for i := range part / row {
			v := lo + i
			if order != nil {
				v = order[v]
			}
			code.encode(piece[i*row:][:row], vectors[v*dim:][:dim])
		}
		if s.streams {
			continue
		}
		if err := stream.Write(ctx, s.base, int64((first+lo)*row), piece[:part]); err != nil {
			return err
		}
	}
	if s.streams {
		return nil
	}
	return stream.Sync(ctx)
}

// choose returns the change to some of the used rows, in another order.
func (s *store) choose(ctx context.Context, used int, rows []uint32) (change, error) {
	if len(rows) == 0 || len(rows) == used && slices.IsSorted(rows) {
		return change{}, nil
	}
	if !s.streams {
		c, err := s.chooseThere(ctx, used, rows)
		if !short(err) {
			return c, err
		}
	}
	old := s.held
	if !s.streams {
		old = make([]byte, s.size(used))
		if err := s.read(ctx, 0, old); err != nil {
			return change{}, err
		}
	}
	row := s.size(1)
	memory := make([]byte, 0, s.size(len(rows)))
	for _, r := range rows {
		memory = append(memory, old[int(r)*row:][:row]...)
	}
	return change{memory: memory}, ctx.Err()
}

// chooseThere is choose on the device.
func (s *store) chooseThere(ctx context.Context, used int, rows []uint32) (change, error) {
	places, err := runtime.Upload(ctx, s.e.dev, rows)
	if err != nil {
		return change{}, err
	}
	defer places.Close()
	base, err := s.filled(len(rows), func(base *runtime.Buffer) error {
		stream := s.e.dev.Stream()
		if err := s.e.gather(ctx, stream, s.base, used, places, base, len(rows)); err != nil {
			return err
		}
		return stream.Sync(ctx)
	})
	return change{base: base}, err
}

// compact frees memory that the used rows do not need, and brings them to the device if there is room.
func (s *store) compact(ctx context.Context, used int) error {
	switch {
	case used == 0:
		s.setBuffer(nil, false)
		return nil
	case s.streams:
		s.works.close()
		c, err := s.bring(ctx, s.held[:s.size(used)], used)
		switch {
		case err != nil:
			return err
		case c.base != nil:
			s.setBuffer(c.base, false)
		case len(s.held) > s.size(used) && !s.mapped:
			s.setMemory(slices.Clone(c.memory), nil)
		}
		return nil
	case s.base.Len() == used*s.e.dim:
		return nil
	}
	base, err := s.filled(used, func(base *runtime.Buffer) error {
		return copyRows(ctx, s.e.dev.Stream(), base, s.base, used*s.e.dim)
	})
	if short(err) { // for both copies; the rows go by way of the host's memory
		if err := s.spill(ctx, used); err != nil {
			return err
		}
		return s.compact(ctx, used)
	}
	if err == nil {
		s.setBuffer(base, false)
	}
	return err
}
