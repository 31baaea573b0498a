package runtime

// Large copies between pageable memory and a device, through pinned memory: while the device copies
// one piece, the host copies the next. So drivers do not hold Go memory, and a context can end the
// copy between two pieces.

import (
	"context"
	"errors"
	goruntime "runtime"
	"slices"
	"sync"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/mempool"
)

// Sizes of staging buffers, and their number per device: a copy takes two. If there are not two,
// the driver copies in its own way.
const (
	stageLinux = 16 << 20
	stageElse  = 8 << 20
	stagesMost = 4
	stagesKept = 2 // while nothing is copied
)

// stageBytes is the size of a staging buffer, and of the smallest copy that uses them: drivers
// handle smaller copies well.
func (g *staging) stageBytes() int64 {
	switch {
	case g.chunk > 0:
		return g.chunk
	case goruntime.GOOS == "linux":
		return stageLinux
	}
	return stageElse
}

// staging is a device's pool of staging buffers.
type staging struct {
	chunk  int64 // set by tests; 0 means the system's size
	mu     sync.Mutex
	free   []*stage
	closed bool
	n      mempool.Staging
}

// stage is one staging buffer.
type stage struct {
	mem  driver.Memory
	data []byte
	last usage // the copy that uses it; no stream if none does. See aside
}

func (g *staging) stats() mempool.Staging {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.n
}

// take returns two staging buffers, or none if two cannot be had.
func (g *staging) take(c *core) (pair [2]*stage, ok bool) {
	for i := range pair {
		if pair[i] = g.one(c); pair[i] == nil {
			g.put(c, pair[:i])
			return pair, false
		}
	}
	return pair, true
}

func (g *staging) one(c *core) *stage {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, st := range slices.Backward(g.free) {
		if !st.aside() {
			g.free = slices.Delete(g.free, i, i+1)
			return st
		}
	}
	if g.closed || g.n.Buffers == stagesMost {
		return nil
	}
	mem, err := observedSource{c}.Alloc(g.stageBytes(), driver.Pinned)
	if err != nil {
		_ = c.noticed(err) // any other failure leaves the copy to the driver
		return nil
	}
	data, ok := c.hostBytes(mem)
	if !ok {
		c.memory.freed(c.drv.Free(mem))
		return nil
	}
	g.n.Buffers++
	g.n.Bytes += mem.Size
	return &stage{mem: mem, data: data}
}

// put takes staging buffers back, which the last copies may still use, and frees those that exceed
// stagesKept.
func (g *staging) put(c *core, list []*stage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free = append(g.free, list...)
	if c.streams.capturing.Load() > 0 {
		return // not every driver answers, or can free, while it records
	}
	usable := 0
	for _, st := range g.free {
		if st.last.stream != nil && st.last.done() {
			st.rest()
		}
		if !st.aside() {
			usable++
		}
	}
	for i, st := range slices.Backward(g.free) {
		if usable > stagesKept && st.last.stream == nil {
			usable--
			g.free = slices.Delete(g.free, i, i+1)
			g.drop(st)
			if err := c.drv.Free(st.mem); err != nil {
				c.session.debug(1, "free failed", "device", c.info.ID, "error", err)
			}
		}
	}
}

func (g *staging) drop(st *stage) {
	g.n.Buffers--
	g.n.Bytes -= st.mem.Size
}

// close frees everything, after the device's streams are closed.
func (g *staging) close(drv driver.Device) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	var errs []error
	for _, st := range g.free {
		st.rest()
		g.drop(st)
		errs = append(errs, drv.Free(st.mem))
	}
	g.free = nil
	return errors.Join(errs...)
}

// wait waits until the buffer is not in use. An error that is not the context's is that of the
// stream which used it last: the end of its copy cannot be known then, and the buffer is set aside
// until the stream is closed.
func (st *stage) wait(ctx context.Context) error {
	if st.last.stream == nil {
		return nil
	}
	if !st.last.done() {
		if err := st.last.event.Wait(ctx); err != nil && !st.last.done() {
			if ctx.Err() == nil {
				closeEvents([]usage{st.last})
				st.last.event = nil
			}
			return err
		}
	}
	st.rest()
	return nil
}

// waitForOthers waits until no other stream than s uses the buffers, and reports whether they are usable:
// the failure of another stream must not fail this copy.
func waitForOthers(ctx context.Context, s *Stream, pair *[2]*stage) (ok bool, err error) {
	for _, st := range pair {
		if st.last.stream == s { // it waits when it comes to this buffer
			continue
		}
		if err := st.wait(ctx); err != nil {
			return false, ctx.Err()
		}
	}
	return true, nil
}

// aside reports whether the buffer is set aside because the end of its last copy cannot be known.
func (st *stage) aside() bool {
	return st.last.stream != nil && st.last.event == nil && !st.last.done()
}

func (st *stage) rest() {
	closeEvents([]usage{st.last})
	st.last = usage{}
}

// staged runs a large copy through staging buffers, if the stream can use them and two are
// available. The caller holds the stream.
func (s *Stream) staged(ctx context.Context, n int64, copy func(p driver.PinnedCopier, pair *[2]*stage) error) (
	done bool, err error) {
	p, can := s.drv.(driver.PinnedCopier)
	if !can || n < s.core.memory.staging.stageBytes() {
		return false, nil
	}
	g := &s.core.memory.staging
	pair, ok := g.take(s.core)
	if !ok {
		return false, nil
	}
	defer func() { g.put(s.core, pair[:]) }()
	if ok, err = waitForOthers(ctx, s, &pair); !ok {
		return err != nil, err
	}
	if err = copy(p, &pair); err != nil {
		return true, err
	}
	g.mu.Lock()
	g.n.Copies++
	g.n.Moved += n
	g.mu.Unlock()
	return true, nil
}

// upload copies the host's memory to the device. The caller holds the stream.
func (s *Stream) upload(ctx context.Context, dst driver.Memory, src []byte) error {
	watched := s.begin()
	err := s.uploadPieces(ctx, dst, src)
	if watched {
		s.done(copyEvent("host", "device", int64(len(src))), err)
	}
	return err
}

func (s *Stream) uploadPieces(ctx context.Context, dst driver.Memory, src []byte) error {
	done, err := s.staged(ctx, int64(len(src)), func(p driver.PinnedCopier, pair *[2]*stage) error {
		for i, off := 0, int64(0); off < int64(len(src)); i++ {
			st := pair[i%2]
			if err := st.waitFree(ctx); err != nil {
				return err
			}
			n := int64(copy(st.data, src[off:]))
			if err := p.UploadPinned(part(dst, off, n), part(st.mem, 0, n)); err != nil {
				return err
			}
			if err := st.usedIn(s); err != nil {
				return err
			}
			off += n
		}
		return nil
	})
	if done || err != nil {
		return err
	}
	return s.drv.Upload(ctx, dst, src)
}

// download copies the device's memory to the host's and waits. The caller holds the
// stream.
func (s *Stream) download(ctx context.Context, dst []byte, src driver.Memory) error {
	watched := s.begin()
	err := s.downloadPieces(ctx, dst, src)
	if watched {
		s.done(copyEvent("device", "host", int64(len(dst))), err)
	}
	return err
}

func (s *Stream) downloadPieces(ctx context.Context, dst []byte, src driver.Memory) error {
	done, err := s.staged(ctx, int64(len(dst)), func(p driver.PinnedCopier, pair *[2]*stage) error {
		size, piece := int64(len(dst)), s.core.memory.staging.stageBytes()
		for i, off := 0, int64(0); off < size+piece; i, off = i+1, off+piece {
			if off < size { // this piece is fetched while the one before is copied to dst
				if err := pair[i%2].fetch(ctx, s, p, part(src, off, min(piece, size-off))); err != nil {
					return err
				}
			}
			if off == 0 {
				continue
			}
			st := pair[(i+1)%2]
			if err := st.wait(ctx); err != nil {
				return err
			}
			copy(dst[off-piece:], st.data)
		}
		return nil
	})
	if done || err != nil {
		return err
	}
	return s.drv.Download(ctx, dst, src)
}

// waitFree is wait, but fails if ctx is already done.
func (st *stage) waitFree(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return st.wait(ctx)
}

// fetch queues the copy of a piece to the buffer.
func (st *stage) fetch(ctx context.Context, s *Stream, p driver.PinnedCopier, src driver.Memory) error {
	if err := st.waitFree(ctx); err != nil {
		return err
	}
	if err := p.DownloadPinned(part(st.mem, 0, src.Size), src); err != nil {
		return err
	}
	return st.usedIn(s)
}

// usedIn notes the copy that was just queued on the stream.
func (st *stage) usedIn(s *Stream) (err error) {
	st.last, err = s.noteUse()
	return err
}

// noteUse returns a usage that covers the work queued so far. The caller holds the stream. If
// no event can be recorded it waits for that work; if that fails as well, the use lasts until
// the stream is closed.
func (s *Stream) noteUse() (usage, error) {
	e, err := s.drv.Record(false)
	if err == nil {
		return usage{s, s.queued.Load() + 1, e}, nil
	}
	if s.drv.Sync(context.Background()) != nil {
		return usage{s, s.queued.Load() + 1, nil}, err
	}
	if errors.Is(err, ErrOutOfMemory) {
		err = nil
	}
	return usage{}, err
}
