package tensor

// Scopes on the devices of a Runner: what survives a device, and how it comes to the next one.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
)

// seat is what an engine has on one device.
type seat struct {
	device   *runtime.Device
	groups   bool // the device computes in groups of items, not in vector loops
	stream   *runtime.Stream
	programs *lru.Cache[programKey, *program]
	kept     int // bytes of programs
}

func newSeat(dev *runtime.Device) *seat {
	s := &seat{device: dev, groups: !dev.Info().VectorLoops}
	var err error
	s.programs, err = lru.NewWithEvict(keptPrograms, func(key programKey, p *program) {
		p.program.Close()
		s.kept -= key.bytes(p.unit)
	})
	if err != nil {
		panic(err)
	}
	return s
}

func (s *seat) close() error {
	s.programs.Purge()
	if s.stream == nil {
		return nil
	}
	return s.stream.Close()
}

// open makes the stream, if there is none.
func (s *seat) open() (err error) {
	if s.stream == nil {
		s.stream, err = s.device.NewStream()
	}
	return err
}

// leave closes a stream that has failed, so that open makes another one. Who met the error has returned it.
func (s *seat) leave() {
	if s.stream != nil && s.stream.Err() != nil {
		_ = s.stream.Close()
		s.stream = nil
	}
}

// standby is what an engine on a Runner has beside its seat.
type standby struct {
	runner *cluster.Runner
	turn   chan struct{} // has a value during a unit; a channel, since a wait for it ends with a context
	seats  map[*runtime.Device]*seat
	now    atomic.Pointer[seat] // the engine's, for those that do not hold its lock
	undo   []func()             // takes back what the unit under way has done, the last one first
}

// NewRunnerScope returns a scope for tensors on the first device of a Runner that can, which survives its devices.
// Close it before the Runner.
//
// Each [Eval], [Read], [Number], [Tensor.Sync], [Tensor.Keep] and call of a compiled function is a unit of work of the
// Runner, one at a time, which waits until its work is done. Where the device fails or is lost, it is done again, there
// or on the next device, as the policy allows: from data of the host. [From] and the functions that load files keep
// copies of their data there, and what was computed of them is computed again when it is needed; compiled functions are
// traced again. What a device has that still answers is copied through the host when it is needed on another one.
//
// What lived only on a device that is lost is lost: the results of a call of a compiled function, and of
// [Tensor.Keep]. What needs them returns a [*LostError], which matches [runtime.ErrDeviceLost]. Read them, or make them
// tensors of the host's data again, where they have to survive.
//
// Donated arguments of a [Func] are not overwritten, as they are needed if the call has to be done again. [Wrap],
// [Scope.Stream] and [Func.CallOwned], which are about one device, are [runtime.ErrUnsupported]. Memory that is of no
// use any more on a device that was left is freed with the scope.
func NewRunnerScope(ctx context.Context, r *cluster.Runner) (*Scope, error) {
	b := &standby{runner: r, turn: make(chan struct{}, 1), seats: map[*runtime.Device]*seat{}}
	var s *Scope
	err := r.Run(ctx, "tensor scope", func(_ context.Context, dev *runtime.Device) error {
		s = NewScope(dev)
		s.engine.standby, b.seats[dev] = b, s.engine.seat
		b.now.Store(s.engine.seat)
		return s.ready()
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// LostError is that a tensor lived only on a device that is lost. It matches [runtime.ErrDeviceLost].
type LostError struct {
	Tensor string // what it is: its type, its shape, and what computed it
	Err    error  // of the device
}

// Error implements error.
func (e *LostError) Error() string {
	return fmt.Sprintf("tensor: %s was on a device that is lost: %v", e.Tensor, e.Err)
}

// Unwrap returns the error of the device.
func (e *LostError) Unwrap() error { return e.Err }

// unitKey is that of the engine whose unit a context is of.
type unitKey struct{}

// unit calls f, as a unit of work of the engine's Runner if it has one, and f is not a part of such a unit already.
func (e *engine) unit(ctx context.Context, op string, f func(ctx context.Context) error) error {
	b := e.standby
	if b == nil || ctx == nil || ctx.Value(unitKey{}) == e {
		return f(ctx)
	}
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	var lost *LostError
	err := b.runner.Run(ctx, "tensor "+op, func(ctx context.Context, dev *runtime.Device) (err error) {
		done := false
		defer func() { // also if f panics
			e.mu.Lock()
			defer e.mu.Unlock()
			if !done {
				for _, f := range slices.Backward(b.undo) {
					f()
				}
			}
			b.undo = nil
		}()
		e.mu.Lock()
		e.sit(dev)
		e.mu.Unlock()
		if err = f(context.WithValue(ctx, unitKey{}, e)); err == nil {
			err = e.over(ctx)
		}
		if errors.As(err, &lost) { // another device has not got it either, and this one is not to blame
			return errGone
		}
		done = err == nil
		return err
	})
	if lost != nil {
		return lost
	}
	return err
}

// over waits for what is queued.
func (e *engine) over(ctx context.Context) error {
	e.mu.Lock()
	s := e.stream
	e.mu.Unlock()
	if s == nil {
		return nil
	}
	return s.Sync(ctx)
}

// inGroups reports whether the device computes in groups of items, for what describes tensors.
func (e *engine) inGroups() bool {
	if e.standby != nil {
		return e.standby.now.Load().groups
	}
	return e.groups
}

var errGone = errors.New("tensor: lost")

// sit makes a device that of the engine, which is locked. A stream that has failed is replaced.
func (e *engine) sit(dev *runtime.Device) {
	b := e.standby
	for at, s := range b.seats {
		if at != dev && lostDevice(at) != nil {
			_ = s.close() // what it says is why it was lost
			delete(b.seats, at)
		}
	}
	if b.seats[dev] == nil {
		b.seats[dev] = newSeat(dev)
	}
	e.seat = b.seats[dev]
	b.now.Store(e.seat)
	e.leave()
}

// traced calls f, the function of a Func, in a unit of work, whose turn ends meanwhile: f may compute something, which
// is a unit of its own. The engine is not locked.
func (e *engine) traced(f func() []*Tensor) []*Tensor {
	b := e.standby
	if b == nil {
		return f()
	}
	e.mu.Lock()
	at, undo := e.seat, b.undo
	b.undo = nil
	e.mu.Unlock()
	<-b.turn
	defer func() { // also if f panics; without a context, since the unit ends its turn once more
		b.turn <- struct{}{}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.sit(at.device) // another unit may have been on another device
		b.undo = undo
	}()
	return f()
}

// callAnew is Call on a scope of a Runner. Nothing is donated, as an argument that was overwritten could not be used
// again.
func (c *Func) callAnew(ctx context.Context, args []*Tensor) (set []*Tensor, err error) {
	err = c.scope.engine.unit(ctx, "call", func(ctx context.Context) (err error) {
		set, err = c.calling(ctx, nil, args)
		return err
	})
	if err != nil {
		return nil, err
	}
	set = slices.Clone(set)
	for i, t := range set { // since what a tensor has goes to another device with it, and what the function has does not
		a := *t.data
		set[i] = &Tensor{scope: t.scope, typ: t.typ, shape: t.shape, data: &a}
	}
	return set, nil
}

// lostDevice returns why a device cannot be read any more, or nil.
func lostDevice(dev *runtime.Device) error {
	err := dev.Enter("read")
	if err == nil {
		dev.Leave()
	}
	return err
}

// onUndo has f called if the unit under way fails. The engine is locked.
func (e *engine) onUndo(f func()) {
	if e.standby != nil {
		e.standby.undo = append(e.standby.undo, f)
	}
}

// refresh brings to the engine's device what tensors are made of, as far as that is data: it is marked to be uploaded
// or computed again, or copied from where it is.
func (e *engine) refresh(ctx context.Context, ts []*Tensor) (err error) {
	if e.standby == nil {
		return nil
	}
	walk(ts, func(t *Tensor) []*Tensor {
		if err == nil && t.stale() {
			err = t.renew(ctx)
		}
		if err != nil {
			return nil
		}
		return t.sources()
	})
	return err
}

// seatOf returns the device of what is computed now, on a scope of a Runner.
func (e *engine) seatOf() *runtime.Device {
	if e.standby == nil {
		return nil
	}
	return e.device
}

// fromHost returns the array of a tensor whose elements the host keeps: source makes a buffer of them on the engine's
// device.
func (s *Scope) fromHost(shape []int, source func(ctx context.Context) (*runtime.Buffer, error)) *array {
	a := &array{strides: rowMajor(shape)}
	a.source = func(ctx context.Context) (*runtime.Buffer, error) {
		b, err := source(ctx)
		if err == nil {
			a.on = s.engine.device
			s.engine.onUndo(func() {
				a.buf, a.on, a.load = nil, nil, a.source
				delete(s.buffers, b)
				b.Close()
			})
		}
		return b, err
	}
	a.load = a.source
	return a
}

// stale reports whether a tensor's data is on another device than the engine's.
func (t *Tensor) stale() bool {
	a := t.data
	return a != nil && a.on != nil && a.on != t.scope.engine.device
}

// renew is refresh for a tensor that is stale.
func (t *Tensor) renew(ctx context.Context) error {
	a, e := t.data, t.scope.engine
	switch {
	case a.source != nil:
		a.buf, a.on, a.load = nil, nil, a.source
		return nil
	case t.op != nil:
		t.data = nil
		if t.kind() == kindResult {
			t = t.args[0]
		}
		if o, ok := t.op.(*callOp); ok { // of whose results all are data, or none is
			for _, r := range append([]*Tensor{t}, o.parts...) {
				if r.stale() {
					r.data = nil
				}
			}
		}
		return nil
	}
	raw := make([]byte, a.buf.Bytes())
	if err := lostDevice(a.on); err != nil {
		return &LostError{fmt.Sprintf("a result of %v", Spec{t.typ, t.shape}), err}
	}
	from := e.standby.seats[a.on]
	from.leave() // what failed was later work: a unit waits until its own is done
	err := from.open()
	if err == nil {
		err = from.stream.Read(ctx, a.buf, 0, raw)
	}
	if errors.Is(err, runtime.ErrDeviceLost) {
		return &LostError{fmt.Sprintf("a result of %v", Spec{t.typ, t.shape}), err}
	}
	if err != nil {
		return err
	}
	b, err := t.scope.upload(ctx, t.typ, raw)
	if err != nil {
		return err
	}
	buf, on := a.buf, a.on
	a.buf, a.on = b, e.device
	e.onUndo(func() {
		a.buf, a.on = buf, on
		delete(t.scope.buffers, b)
		b.Close()
	})
	return nil
}
