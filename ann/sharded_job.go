package ann

// What the processes of an index in shards tell each other: how their work went, and what they have found.

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"slices"
	"time"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/runtime/driver"
)

// lock begins a change, which the caller ends by mu.Unlock. In a job the others wait for this process, also if its
// context is done, of which it tells them then.
func (s *Sharded) lock(ctx context.Context) error {
	if ctx != nil && s.job {
		ctx = context.WithoutCancel(ctx)
	}
	if err := locked(ctx, &s.mu, s.mu.TryLock); err != nil {
		return err
	}
	if s.closed {
		s.mu.Unlock()
		return fmt.Errorf("ann: %w", runtime.ErrClosed)
	}
	return nil
}

// reading begins a call that changes nothing. In a job such calls wait for each other, since all processes have them in
// one order.
func (s *Sharded) reading(ctx context.Context) (unlock func(), err error) {
	if s.job {
		return s.mu.Unlock, s.lock(ctx)
	}
	if err := reading(ctx, &s.mu); err != nil {
		return nil, err
	}
	if s.closed {
		s.mu.RUnlock()
		return nil, fmt.Errorf("ann: %w", runtime.ErrClosed)
	}
	return s.mu.RUnlock, nil
}

// fingerprint is that of a call in a job.
func (s *Sharded) fingerprint(op string, args ...[]byte) uint64 {
	if !s.job {
		return 0
	}
	return fingerprint(op, args...)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// fingerprint says what is called, and with what.
func fingerprint(op string, args ...[]byte) uint64 {
	sum, n := crc32.Checksum([]byte(op), castagnoli), 0
	for _, a := range args {
		sum = crc32.Update(sum, castagnoli, binary.LittleEndian.AppendUint64(nil, uint64(len(a))))
		sum, n = crc32.Update(sum, castagnoli, a), n+len(a)
	}
	return uint64(n)<<32 | uint64(sum)
}

// longestBeat is how often a process that works tells the others, or more often if they do not wait so long for it.
const longestBeat = 50 * time.Millisecond

func (s *Sharded) beat() time.Duration { return min(longestBeat, s.group.Timeout()/4) }

// gathered is how many bytes of each process go at a time, in memory of the device that the index keeps, so that a call
// does not fail for lack of it, which would end the group.
const gathered = 64 << 10

// agree runs a step of a call, and in a job waits until that of every process is done. If one has failed, or they call
// different things, all return the same error, and the other steps are ended.
func (s *Sharded) agree(ctx context.Context, call uint64, f func(ctx context.Context) error) error {
	step := func(ctx context.Context) error {
		if err := cmp.Or(ctx.Err(), s.group.Err(), s.failed); err != nil {
			return err
		}
		return f(ctx)
	}
	if !s.job {
		return step(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		var err error
		defer func() { done <- err }() // also if a function of the program ends the goroutine
		attempt(&err, func() error { return step(ctx) })
	}()
	own, verdict := report{call: call, busy: true}, error(nil)
	for {
		if own.busy {
			select {
			case own.err = <-done:
				own.busy = false
			case <-time.After(s.beat()):
			}
		}
		all, err := s.gather(ctx, own.encode())
		if err != nil { // a process is lost
			if cancel(); own.busy {
				<-done
			}
			return err
		}
		now, busy := outcome(all, s.group.Members()[0].Rank(), own.err)
		if verdict = cmp.Or(verdict, now); verdict != nil { // the first, and not what comes of ending the other steps
			cancel()
		}
		if !busy {
			return verdict
		}
	}
}

// gather returns what all processes have, one after the other, which is as long in all of them. It does not end with
// ctx, since the others would wait; a process that is lost ends it.
func (s *Sharded) gather(ctx context.Context, own []byte) (all []byte, err error) {
	ctx = context.WithoutCancel(ctx)
	m, at := s.group.Members()[0], 0
	all = make([]byte, len(own)*m.Size())
	for part := range slices.Chunk(own, gathered) {
		src, err := s.sent.Slice(0, len(part))
		if err != nil {
			return nil, m.Fail(err)
		}
		defer src.Close()
		dst, err := s.got.Slice(0, len(part)*m.Size())
		if err != nil {
			return nil, m.Fail(err)
		}
		defer dst.Close()
		if err := upload(ctx, m.Stream(), src, 0, part); err != nil {
			return nil, m.Fail(err)
		}
		if err := m.AllGather(ctx, nil, dst, src); err != nil {
			return nil, err
		}
		bytes := make([]byte, dst.Len())
		if err := m.Stream().Read(ctx, dst, 0, bytes); err != nil {
			return nil, m.Fail(err)
		}
		for rank := range m.Size() {
			copy(all[rank*len(own)+at:], bytes[rank*len(part):][:len(part)])
		}
		at += len(part)
	}
	return all, nil
}

// report is what a process says of its step.
type report struct {
	call uint64
	busy bool
	err  error
}

const reportBytes = 256

// kept are the errors that keep their kind between processes.
var kept = []error{driver.ErrDeviceLost, driver.ErrTimeout, driver.ErrOutOfMemory, driver.ErrTooLarge, driver.ErrBudget,
	driver.ErrDimension, driver.ErrUnsupported, driver.ErrUnknownBackend, driver.ErrCompile, driver.ErrLaunch,
	runtime.ErrCorrupt, runtime.ErrFormat, driver.ErrClosed, driver.ErrInvalidArgument, context.Canceled,
	context.DeadlineExceeded, fs.ErrNotExist, fs.ErrPermission}

// otherError is an error of another process.
type otherError struct {
	text string
	kind error // one of kept, or nil
}

func (e *otherError) Error() string { return e.text }
func (e *otherError) Unwrap() error { return e.kind }

// encode returns 8 bytes of the call, then whether it is busy, the number of the error's kind, the length of its text
// plus 1, or 0 if there is none, and the text.
func (r report) encode() []byte {
	b := make([]byte, reportBytes)
	binary.LittleEndian.PutUint64(b, r.call)
	if r.busy {
		b[8] = 1
	}
	if r.err == nil {
		return b
	}
	for i := len(kept) - 1; i >= 0; i-- {
		if errors.Is(r.err, kept[i]) {
			b[9] = byte(i + 1)
		}
	}
	b[10] = byte(copy(b[11:len(b)-1], unnamed(r.err).Error()) + 1)
	return b
}

// unnamed returns an error without the member that it names.
func unnamed(err error) error {
	if named, ok := errors.AsType[*cluster.MemberError](err); ok {
		return named.Err
	}
	return err
}

// decode reads what encode wrote.
func decode(b []byte) report {
	r := report{call: binary.LittleEndian.Uint64(b), busy: b[8] != 0}
	if n := int(b[10]); n > 0 {
		e := &otherError{text: string(b[11:][:min(n-1, len(b)-11)])}
		if i := int(b[9]); i > 0 && i <= len(kept) {
			e.kind = kept[i-1]
		}
		r.err = e
	}
	return r
}

// outcome returns the first error of all reports, the same in all processes but that one's own has all that it wraps,
// and whether a process is busy.
func outcome(all []byte, member int, own error) (verdict error, busy bool) {
	first := decode(all)
	differs := -1
	for rank := range len(all) / reportBytes {
		r := decode(all[rank*reportBytes:])
		busy = busy || r.busy
		if r.err != nil && verdict == nil {
			if rank == member {
				r.err = unnamed(own)
			}
			verdict = &cluster.MemberError{Rank: rank, Err: r.err}
		}
		if differs < 0 && r.call != first.call {
			differs = rank
		}
	}
	if verdict == nil && differs > 0 {
		verdict = &cluster.MemberError{Rank: differs, Err: fmt.Errorf(
			"it calls something else than member 0, or with other arguments: %w", runtime.ErrInvalidArgument)}
	}
	return verdict, busy
}
