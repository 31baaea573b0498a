package runtime

// Operations that move data on a stream: from and to the host, within the device, and between the
// device and pinned memory.

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/profile"
)

// stagedBytes is the largest write for which every backend makes a copy of the data at once.
// Backends wait for earlier work before a larger write; Write waits itself, so that ctx can end the
// wait.
const stagedBytes = 256 << 10

// Write copies bytes to a buffer from byte offset off on, after the work queued
// so far, and waits until data may be changed.
func (s *Stream) Write(ctx context.Context, b *Buffer, off int64, data []byte) error {
	const op = "write"
	if err := s.ready(ctx, op); err != nil {
		return err
	}
	if len(data) > stagedBytes {
		if err := s.Sync(ctx); err != nil {
			return err
		}
	}
	return s.queue(op, func() error {
		if err := s.holdToWrite(b); err != nil {
			return err
		}
		if err := checkRange(b, off, int64(len(data))); err != nil || len(data) == 0 {
			return err
		}
		return s.upload(ctx, part(b.mem, off, int64(len(data))), data)
	})
}

// Read copies bytes from byte offset off of a buffer on, after the work queued so far, and waits
// for them. Other calls can queue work while it waits for the earlier work.
func (s *Stream) Read(ctx context.Context, b *Buffer, off int64, data []byte) error {
	const op = "read"
	if err := s.ready(ctx, op); err != nil {
		return err
	}
	if err := s.Sync(ctx); err != nil {
		return err
	}
	return s.queue(op, func() error {
		if err := s.hold(b); err != nil {
			return err
		}
		if err := checkRange(b, off, int64(len(data))); err != nil || len(data) == 0 {
			return err
		}
		err := s.download(ctx, data, part(b.mem, off, int64(len(data))))
		if err == nil {
			s.finish(s.queued.Load() + 1) // this call, and all before it
			if s.core.session.observed() {
				s.notes.fetch(s, nil, true)
			}
		}
		return err
	})
}

// Copy queues a copy of the whole of src to the beginning of dst, and returns at once, also with
// Pinned buffers on either side. The element types must agree. Views copy parts; overlapping ranges
// of one allocation are refused. For buffers of two devices see CopyAcross.
func (s *Stream) Copy(dst, src *Buffer) error {
	return s.queue("copy", func() error {
		if err := s.holdToWrite(dst); err != nil {
			return err
		}
		if err := s.hold(src); err != nil {
			return err
		}
		if err := checkCopy(dst, src); err != nil || src.n == 0 {
			return err
		}
		return s.copyMemory(part(dst.mem, 0, src.mem.Size), src.mem)
	})
}

// copyMemory queues a copy. The caller holds the stream.
func (s *Stream) copyMemory(dst, src driver.Memory) error {
	watched := s.begin()
	err := copyOn(s.drv, dst, src)
	if watched {
		s.done(copyEvent(place(src), place(dst), src.Size), err)
	}
	return err
}

// copyOn queues a copy in the way that the kinds of memory require. Streams without special copies
// for pinned memory use their ordinary copy for it.
func copyOn(s driver.Stream, dst, src driver.Memory) error {
	to, from := dst.Kind == driver.Pinned, src.Kind == driver.Pinned
	if p, ok := s.(driver.PinnedCopier); ok && to != from {
		if to {
			return p.DownloadPinned(dst, src)
		}
		return p.UploadPinned(dst, src)
	}
	return s.Copy(dst, src)
}

func checkCopy(dst, src *Buffer) error {
	if dst.typ != src.typ {
		return fmt.Errorf("%v to %v: %w", src.typ, dst.typ, ErrInvalidArgument)
	}
	if err := checkRange(dst, 0, src.mem.Size); err != nil {
		return err
	}
	d, f := dst.mem.Offset, src.mem.Offset
	if dst.a == src.a && d < f+src.mem.Size && f < d+src.mem.Size {
		return fmt.Errorf("ranges overlap: %w", ErrInvalidArgument)
	}
	return nil
}

// Fill queues setting every element of b to a value: a number of the Go type that the buffer
// holds, such as float32 or Float16, or the bytes of one element.
func (s *Stream) Fill(b *Buffer, value any) error {
	return s.queue("fill", func() error {
		if err := s.holdToWrite(b); err != nil {
			return err
		}
		if element, ok := value.([]byte); !ok {
			t, bits := elementOf(value)
			if t != b.typ {
				return fmt.Errorf("buffer holds %v, not %v: %w", b.typ, typeName(value), ErrInvalidArgument)
			}
			binary.LittleEndian.PutUint64(s.filler[:], bits)
		} else if n := copy(s.filler[:], element); n != b.typ.Size() || n != len(element) {
			return fmt.Errorf("pattern of %d bytes for elements of %v: %w", len(element), b.typ, ErrInvalidArgument)
		}
		if b.n == 0 {
			return nil
		}
		watched := s.begin()
		err := s.drv.Fill(b.mem, s.filler[:b.typ.Size()]) // of the stream, so that neither value nor pattern is allocated
		if watched {
			s.done(profile.Event{Kind: profile.Fill, Name: "fill", Bytes: float64(b.mem.Size)}, err)
		}
		return err
	})
}

// Prefetch queues moving a Unified buffer to the device, or to the host, ahead of its use there. It
// changes no contents, and does nothing on a device that shares its memory with the host.
func (s *Stream) Prefetch(b *Buffer, toHost bool) error {
	const op = "prefetch"
	if err := s.live(op); err != nil {
		return err
	}
	return s.queue(op, func() error {
		if err := s.hold(b); err != nil {
			return err
		}
		if b.mem.Kind != driver.Unified {
			return fmt.Errorf("buffer is not Unified: %w", ErrInvalidArgument)
		}
		if p, ok := s.drv.(driver.Prefetcher); ok && b.n > 0 {
			return p.Prefetch(b.mem, toHost)
		}
		return nil
	})
}

func checkRange(b *Buffer, off, n int64) error {
	if off < 0 || off > b.mem.Size || n > b.mem.Size-off {
		return fmt.Errorf("bytes %d to %d of %d: %w", off, off+n, b.mem.Size, ErrBufferOverflow)
	}
	return nil
}

// part returns n bytes of m from byte off on.
func part(m driver.Memory, off, n int64) driver.Memory {
	m.Offset += off
	m.Size = n
	return m
}
