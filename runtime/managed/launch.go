package managed

// A Buffer as an argument of a launch. Nothing here allocates while a buffer is used by one stream
// only.

import (
	"context"
	"errors"
	"fmt"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// taken is a Buffer's storage that a launch has locked, and the launch's use of it.
type taken struct {
	st     *sides
	arg    int  // the first argument that has the storage
	reads  bool // the contents have to be up to date
	writes bool
}

// mostArguments is the largest number of arguments that Launch takes.
const mostArguments = 64

// Launch is [runtime.Stream.Launch] that also takes a *Buffer for a pointer to global or constant memory: its
// device side, brought up to date first; or Overwrite(m) where the kernel replaces all of it. The stream waits for
// other streams' work with the same buffers, as their contents require. A launch that is refused may have copied
// what is newer on the host. A stream that records takes the result of [Buffer.DeviceSide] instead, and so does
// [runtime.Stream.Run]. A kernel with more than 64 parameters is ErrTooLarge.
func Launch(s *runtime.Stream, k *runtime.Kernel, g runtime.Grid, args ...any) error {
	params := k.Params()
	if s == nil || len(args) != len(params) {
		return s.Launch(k, g, args...) // which says what is wrong
	}
	if len(args) > mostArguments {
		return fmt.Errorf("launch %s: %d arguments, at most %d: %w", k.Name(), len(args), mostArguments, runtime.ErrTooLarge)
	}
	var few [8]taken
	list := few[:0]
	var plain [mostArguments]any // a slice would let the arguments escape, and each number would be allocated
	for i := range args {
		plain[i] = args[i]
		switch v := args[i].(type) {
		case *Buffer:
			list = v.take(list, i, params[i].Const, false)
		case Overwritten:
			list = v.m.take(list, i, params[i].Const, true)
		}
	}
	for i := range list { // each storage once, in an order that every launch uses
		list[i].st.mu.Lock()
	}
	defer letGo(list)
	at, err := prepare(s, list)
	for i := 0; i < len(args) && err == nil; i++ {
		var b *runtime.Buffer
		switch v := args[i].(type) {
		case *Buffer:
			b, err = v.argument(params[i].Const, false)
		case Overwritten:
			b, err = v.m.argument(params[i].Const, true)
		default:
			continue
		}
		plain[i], at = b, i
	}
	for i := 0; i < len(list) && err == nil; i++ {
		if at = list[i].arg; list[i].uploads() {
			err = list[i].st.move(context.Background(), s, true)
		}
	}
	if _, told := errors.AsType[*runtime.OpError](err); told {
		return err // of the device or a stream, not of the argument
	}
	if err != nil {
		err = fmt.Errorf("argument %d (%s %s): %w", at, params[at].Decl, params[at].Name, err)
		if len(list) == 0 {
			return fmt.Errorf("launch %s: %w", k.Name(), err)
		}
		return opError(list[0].st.device, "launch "+k.Name(), err)
	}
	if err := s.Launch(k, g, plain[:len(args)]...); err != nil {
		return err
	}
	for i := range list {
		list[i].launched(s)
	}
	return nil
}

// take adds the storage of an argument to the list, which is in the order of their numbers. An argument that is
// wrong is left for argument to report.
func (m *Buffer) take(list []taken, arg int, input, out bool) []taken {
	if m.none() || m.closed.Load() || !m.handle.st.ref() {
		return list
	}
	t := taken{m.handle.st, arg, !out || input || !m.whole(), !input}
	at := 0
	for at < len(list) && list[at].st.id < t.st.id {
		at++
	}
	if at < len(list) && list[at].st == t.st {
		list[at].reads = list[at].reads || t.reads
		list[at].writes = list[at].writes || t.writes
		t.st.unref()
		return list
	}
	list = append(list, taken{})
	copy(list[at+1:], list[at:])
	list[at] = t
	return list
}

// letGo releases what a launch has locked.
func letGo(list []taken) {
	for i := range list {
		list[i].st.mu.Unlock()
	}
	for i := range list {
		list[i].st.unref()
	}
}

// prepare allocates missing device sides, and makes the stream wait for other streams' work, unless one of the
// buffers may not be used. arg is the argument that an error is about.
func prepare(s *runtime.Stream, list []taken) (arg int, err error) {
	for i := range list {
		t := &list[i]
		if err = t.allowed(); !s.RunsOn(t.st.device) {
			err = t.st.belongs()
		}
		if err != nil {
			return t.arg, err
		}
	}
	for i := range list {
		t := &list[i]
		if err = t.st.makeDevice(); err == nil {
			err = t.st.after(context.Background(), s, t.writes || t.uploads())
		}
		if err != nil {
			return t.arg, err
		}
	}
	return 0, nil
}

// uploads reports whether the launch has to bring the device's side up to date.
func (t *taken) uploads() bool { return t.reads && t.st.dirty == hostDirty }

// allowed returns the reason why the device may not use the storage now, or nil.
func (t *taken) allowed() error {
	st := t.st
	switch {
	case st.opt.Location == HostOnly:
		return driver.ErrNoDeviceMemory
	case st.windows.Load() > 0:
		return errMapped
	case st.opt.Mode == ExplicitMode && t.uploads():
		return fmt.Errorf("the host's side is newer, and copies are explicit: %w", runtime.ErrInvalidArgument)
	}
	return nil
}

// launched notes the effect of the launch that was queued.
func (t *taken) launched(s *runtime.Stream) {
	if !t.writes {
		return
	}
	t.st.changed = s
	if t.st.opt.Mode != UnifiedMode {
		t.st.dirty = deviceDirty
	}
}

// argument returns the part of the device's side that a Buffer stands for, whose storage the launch has locked.
func (m *Buffer) argument(input, out bool) (*runtime.Buffer, error) {
	switch {
	case m.none():
		return nil, fmt.Errorf("buffer is nil: %w", runtime.ErrInvalidArgument)
	case m.closed.Load():
		return nil, fmt.Errorf("buffer: %w", runtime.ErrClosed)
	case out && input:
		return nil, fmt.Errorf("is an input, not an output: %w", runtime.ErrInvalidArgument)
	}
	if m.handle.view == nil {
		view, st := new(runtime.Buffer), m.handle.st
		if err := st.dev.Window(view, st.typ, int64(m.off)*int64(st.typ.Size()), m.n); err != nil {
			return nil, err
		}
		m.handle.view = view
	}
	return m.handle.view, nil
}
