package runtime

// Collectives of a vendor's library on a stream.

import (
	"context"
	"fmt"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/profile"
)

// Collective queues a collective of the vendor's library with the whole of dst and src, one of which is nil where this
// rank has none: see driver.Collective, whose Dst and Src are set here. The communicator is one of this stream's
// device. It waits until the library has queued the collective, for which other ranks may have to call as well, or ctx
// is done. Meanwhile other calls on the stream wait, whatever their contexts say, and so do those of others that wait
// for what this stream does with a buffer. The memory of both buffers is kept until the work is done. Package cluster
// has collectives of any devices.
func (s *Stream) Collective(ctx context.Context, by driver.Communicator, c driver.Collective, dst, src *Buffer) error {
	op := c.Kind.String()
	if err := s.ready(ctx, op); err != nil {
		return err
	}
	if by == nil {
		return s.core.error(op, fmt.Errorf("communicator is nil: %w", ErrInvalidArgument))
	}
	return s.queue(op, func() error {
		e := profile.Event{Kind: profile.Copy, Name: op}
		if dst != nil {
			if err := s.holdToWrite(dst); err != nil {
				return err
			}
			c.Dst, e.Bytes = dst.mem, float64(dst.mem.Size)
		}
		if src != nil {
			if err := s.hold(src); err != nil {
				return err
			}
			c.Src = src.mem
		}
		watched := s.begin()
		err := by.Queue(ctx, s.drv, &c)
		if watched {
			s.done(e, err)
		}
		return err
	})
}
