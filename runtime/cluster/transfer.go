package cluster

// Transfers between two devices that are no group's: by the best way, or a certain one.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// TransferOptions are how a [Pair] copies. The zero value takes the pair's path, and the host's memory where it fails.
type TransferOptions struct {
	// Direct refuses every way but that by which the receiving device reads the other one's memory: with
	// [runtime.ErrUnsupported] if the pair has none, and with the driver's error if it fails. False lets data take
	// others.
	Direct bool
	// Staging is the host's memory through which the data goes: Pinned or Unified memory of either device, of at least
	// 16 bytes, in halves that are used in turn. Nobody else may use it meanwhile. nil means the pair's path, and the
	// runtime's own memory where that is the host.
	Staging *runtime.Buffer
	// Timeout is how long a transfer may take. 0 means 30 s.
	Timeout time.Duration
}

// Copy copies the whole of src, a buffer of From, to the beginning of dst, a buffer of To, and waits until that is
// done. It comes after all work queued so far that uses either buffer. If the pair's path fails, other than by a lost
// device, the data goes through the host, which is counted as a fallback. When the time is over the error is
// [driver.ErrTimeout], and a context ends it, too; after any error dst may hold part of the data, and what is queued
// goes on.
func (p *Pair) Copy(ctx context.Context, dst, src *runtime.Buffer) error {
	return TransferOptions{}.Copy(ctx, p, dst, src)
}

// Copy is Pair.Copy with options.
func (o TransferOptions) Copy(ctx context.Context, p *Pair, dst, src *runtime.Buffer) error {
	switch {
	case ctx == nil || p == nil || p.traffic == nil || dst == nil || src == nil:
		return fmt.Errorf("cluster: transfer: an argument is nil: %w", runtime.ErrInvalidArgument)
	case o.Timeout < 0 || o.Direct && o.Staging != nil:
		return fmt.Errorf("cluster: transfer: options %+v: %w", o, runtime.ErrInvalidArgument)
	case !dst.LiesOn(p.To) || !src.LiesOn(p.From):
		return fmt.Errorf("cluster: transfer: a buffer is not one of %v or %v: %w", p.To, p.From,
			runtime.ErrInvalidArgument)
	case dst.Type() != src.Type():
		return fmt.Errorf("cluster: transfer: %v to %v: %w", src.Type(), dst.Type(), runtime.ErrInvalidArgument)
	case dst.Len() < src.Len():
		return fmt.Errorf("cluster: transfer: %d elements to %d: %w", src.Len(), dst.Len(), driver.ErrBufferOverflow)
	case o.Direct && p.Path < Peer:
		return fmt.Errorf("cluster: %v: no direct access: %w", p, runtime.ErrUnsupported)
	case o.Staging != nil && (overlapOn(p.From, dst, src) || overlapOn(p.To, dst, o.Staging) ||
		overlapOn(p.From, src, o.Staging)):
		return fmt.Errorf("cluster: transfer: buffers share memory: %w", runtime.ErrInvalidArgument)
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	limited, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	err := o.copy(limited, p, dst, src)
	if err != nil {
		p.traffic.failures.Add(1)
		if limited.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("cluster: %v: not done in %v: %w", p, o.Timeout, driver.ErrTimeout)
		}
	}
	return err
}

// copy tries the ways that are allowed, the fastest first.
func (o TransferOptions) copy(ctx context.Context, p *Pair, dst, src *runtime.Buffer) error {
	s, err := p.To.NewStream()
	if err != nil {
		return err
	}
	defer func() { leave(ctx, s) }()
	if o.Staging == nil {
		if err = s.CopyFrom(ctx, dst, src, nil); err == nil {
			err = s.Sync(ctx)
		}
		switch {
		case err == nil:
			p.count(p.Path, src.Bytes())
			return nil
		case ctx.Err() != nil || o.Direct || p.Path == ThroughHost || p.Path == OneDevice || harmless(err) ||
			errors.Is(err, runtime.ErrDeviceLost):
			return err
		}
		p.traffic.fallbacks.Add(1)
		next, failed := p.To.NewStream() // the first one may have failed
		if failed != nil {
			return errors.Join(err, failed)
		}
		_ = s.Close()
		s = next
		if o.Staging, err = p.To.AllocKind(driver.Pinned, runtime.U8, 2*linkPiece); err != nil {
			return err
		}
		defer o.Staging.Close()
	}
	if err := o.staged(ctx, p, s, dst, src); err != nil {
		return err
	}
	p.count(ThroughHost, src.Bytes())
	return nil
}

// leave closes a stream, and does not wait for its work when the time is over.
func leave(ctx context.Context, s *runtime.Stream) {
	if ctx.Err() != nil {
		go s.Close() // which ends with the work
		return
	}
	_ = s.Close() // its error is that of the copy
}

// staged copies by the halves of the staging memory: while the one is read into, the other one is stored.
func (o TransferOptions) staged(ctx context.Context, p *Pair, s *runtime.Stream, dst, src *runtime.Buffer) error {
	host, err := runtime.HostBytes(o.Staging)
	if err != nil {
		return fmt.Errorf("cluster: transfer: staging memory: %w", err)
	}
	piece := len(host) / 2 / 8 * 8
	if piece == 0 {
		return fmt.Errorf("cluster: transfer: %d bytes of staging memory: %w", len(host), runtime.ErrInvalidArgument)
	}
	from, err := p.From.NewStream()
	if err != nil {
		return err
	}
	defer leave(ctx, from)
	if err := errors.Join(from.WaitFor(ctx, src), s.WaitFor(ctx, dst)); err != nil {
		return err
	}
	var stored [2]runtime.Event
	defer func() { _ = errors.Join(stored[0].Close(), stored[1].Close()) }()
	size := int(src.Bytes())
	for i, off := 0, 0; off < size; i, off = i+1, off+piece {
		half, n := i%2, min(piece, size-off)
		if i > 1 {
			if err := stored[half].Wait(ctx); err != nil {
				return err
			}
		}
		data := host[half*piece : half*piece+n]
		if err := from.Read(ctx, src, int64(off), data); err != nil {
			return err
		}
		if err := o.store(ctx, p, s, dst, off, half*piece, data); err != nil {
			return err
		}
		if err := s.RecordIn(&stored[half]); err != nil {
			return err
		}
	}
	return s.Sync(ctx)
}

// store queues a copy of a half of the staging memory, if it is the receiving device's, or writes from it.
func (o TransferOptions) store(ctx context.Context, p *Pair, s *runtime.Stream, dst *runtime.Buffer, off, at int,
	data []byte) error {
	if !o.Staging.LiesOn(p.To) {
		return s.Write(ctx, dst, int64(off), data)
	}
	bytes := []*runtime.Buffer{dst, o.Staging}
	for i, part := range []Part{{off, len(data)}, {at, len(data)}} {
		all, err := bytes[i].As(runtime.U8)
		if err != nil {
			return err
		}
		defer all.Close()
		if bytes[i], err = all.Slice(part.First, part.Count); err != nil {
			return err
		}
		defer bytes[i].Close()
	}
	return s.Copy(bytes[0], bytes[1])
}

// count counts bytes that have taken a path.
func (p *Pair) count(path Path, bytes int64) {
	switch path {
	case OneDevice:
		p.traffic.shared.Add(bytes)
	case ThroughHost:
		p.traffic.host.Add(bytes)
	default:
		p.traffic.direct.Add(bytes)
	}
}

// Stats returns what the pair's transfers have moved, by the way, how many went another way than the pair's, and how
// many failed. Copies of a Pair count together.
func (p *Pair) Stats() Stats {
	if p.traffic == nil {
		return Stats{}
	}
	return p.traffic.get()
}
