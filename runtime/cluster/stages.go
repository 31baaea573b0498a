package cluster

// Memory of the host through which data goes between a link and a device whose memory the host does not see.

import (
	"errors"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// stages are two pieces for each direction: while the link has one, the device has the other.
type stages struct {
	ready   bool
	out, in [2]stage
}

// stage is one piece.
type stage struct {
	pinned *runtime.Buffer // nil if the device has no such memory
	data   []byte
	event  runtime.Event // behind the work of the device that uses it
	busy   bool          // the event is recorded
}

// wait waits until the device does not use the stage.
func (s *stage) wait(c *call) error {
	if !s.busy {
		return nil
	}
	step, cancel := c.step()
	defer cancel()
	if err := s.event.Wait(step); err != nil {
		return c.late(c.rank, err)
	}
	s.busy = false
	return nil
}

// used notes that the work queued so far uses the stage.
func (s *stage) used(c *call) error {
	if c.err == nil {
		c.did(c.s.RecordIn(&s.event))
		s.busy = c.err == nil
	}
	return c.err
}

// prepare gets the memory at the first use.
func (s *stages) prepare(c *call) error {
	if s.ready {
		return nil
	}
	for _, side := range []*[2]stage{&s.out, &s.in} {
		for i := range side {
			st := &side[i]
			b, err := c.m.dev.AllocKind(driver.Pinned, runtime.U8, linkPiece)
			if err == nil {
				if st.data, err = runtime.HostBytes(b); err == nil {
					st.pinned = b
					continue
				}
				b.Close()
			}
			if !errors.Is(err, runtime.ErrUnsupported) && !errors.Is(err, runtime.ErrOutOfMemory) &&
				!errors.Is(err, driver.ErrNoHostMemory) {
				return err
			}
			st.data = make([]byte, linkPiece)
		}
	}
	s.ready = true
	return nil
}

// view returns the first elements of pinned memory.
func (s *stage) view(c *call, t runtime.Type, bytes int) *runtime.Buffer {
	if c.err != nil {
		return nil
	}
	if part := c.part(s.pinned, Part{0, bytes}); c.err == nil {
		return c.keep(part.As(t))
	}
	return nil
}

// fetch queues a copy of a part of a buffer to the stage.
func (s *stage) fetch(c *call, b *runtime.Buffer, at Part) error {
	if at.Count == 0 {
		return nil
	}
	if s.pinned == nil {
		step, cancel := c.step()
		defer cancel()
		return c.late(c.rank, c.s.Read(step, b, int64(at.First), s.data[:at.Count]))
	}
	if to, from := s.view(c, b.Type(), at.Count), c.elements(b, at); c.err == nil {
		c.did(c.s.Copy(to, from))
	}
	return s.used(c)
}

// store queues a copy of the stage to a buffer of so many bytes.
func (s *stage) store(c *call, b *runtime.Buffer, bytes int) error {
	if s.pinned == nil {
		step, cancel := c.step()
		defer cancel()
		return c.late(c.rank, c.s.Write(step, b, 0, s.data[:bytes]))
	}
	if from := s.view(c, b.Type(), bytes); c.err == nil {
		c.did(c.s.Copy(b, from))
	}
	return c.err
}

// staged makes a transfer by stages.
func (p *linkPort) staged(c *call, t transfer) error {
	s := &p.stages
	if err := s.prepare(c); err != nil {
		return err
	}
	if t.out != nil {
		if err := s.out[0].fetch(c, t.out, Part{0, min(linkPiece, int(t.out.Bytes()))}); err != nil {
			return err
		}
	}
	var scratch *runtime.Buffer // the stream's order keeps one piece from another
	if t.in == nil && t.from >= 0 {
		scratch = c.scratch(t.typ, min(t.n, linkPiece/t.typ.Size()))
	}
	if c.err != nil {
		return c.err
	}
	return t.pieces(func(i int, out, in Part) error {
		now, next, got := &s.out[i%2], &s.out[(i+1)%2], &s.in[i%2]
		if first := out.First + out.Count; t.out != nil && first < int(t.out.Bytes()) {
			if err := next.fetch(c, t.out, Part{first, min(linkPiece, int(t.out.Bytes())-first)}); err != nil {
				return err
			}
		}
		if err := errors.Join(now.wait(c), got.wait(c)); err != nil {
			return err
		}
		to, from := t.peers(out, in)
		if err := p.meet(c, to, now.data[:out.Count], from, got.data[:in.Count], false); err != nil || in.Count == 0 {
			return err
		}
		if t.in != nil {
			if err := got.store(c, c.elements(t.in, in), in.Count); err != nil {
				return err
			}
		} else {
			piece := c.part(scratch, Part{0, in.Count / t.typ.Size()})
			if err := got.store(c, piece, in.Count); err != nil {
				return err
			}
			t.use(piece, in.First/t.typ.Size())
		}
		return got.used(c)
	})
}

// close frees the memory.
func (s *stages) close() error {
	var errs []error
	for _, side := range []*[2]stage{&s.out, &s.in} {
		for i := range side {
			errs = append(errs, side[i].event.Close())
			if b := side[i].pinned; b != nil {
				errs = append(errs, b.Close())
			}
		}
	}
	return errors.Join(errs...)
}
