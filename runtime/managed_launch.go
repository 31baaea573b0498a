package runtime

// A Managed as an argument of a launch. Nothing here allocates while a buffer is used by one stream
// only.

import (
	"context"
	"fmt"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// taken is a Managed's storage that a launch has locked, and the launch's use of it.
type taken struct {
	st     *sides
	reads  bool // the contents have to be up to date
	writes bool
}

// twoSided reports whether there is a Managed among the arguments.
func twoSided(args []any) bool {
	for i := range args {
		switch args[i].(type) {
		case *Managed, Overwritten:
			return true
		}
	}
	return false
}

func (s *Stream) launchManaged(k *Kernel, g Grid, args []any) (driver.Kernel, error) {
	if s.none() {
		return nil, s.lock("launch")
	}
	var few [8]taken
	managed := gather(few[:0], k, args)
	defer letGo(managed)
	uses, err := s.sidesFor(managed)
	if err != nil {
		return nil, s.core.named("launch "+k.decl.Name, err)
	}
	defer closeEvents(uses)
	return s.launchWith(k, g, args, managed, uses)
}

// gather finds the Managed among the arguments and locks each storage once, in the order that every
// launch uses. Wrong arguments are left for pack to report.
func gather(list []taken, k *Kernel, args []any) []taken {
	params := k.decl.Params
	for i := range args {
		input := i >= len(params) || params[i].Const
		switch v := args[i].(type) {
		case *Managed:
			if !v.none() && !v.closed.Load() && v.handle.st.ref() {
				list = insert(list, taken{v.handle.st, true, !input})
			}
		case Overwritten:
			if !v.m.none() && !v.m.closed.Load() && v.m.handle.st.ref() {
				list = insert(list, taken{v.m.handle.st, input || !v.m.whole(), !input})
			}
		}
	}
	for i := range list {
		list[i].st.mu.Lock()
	}
	return list
}

func insert(list []taken, t taken) []taken {
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

// letGo releases what gather has locked.
func letGo(list []taken) {
	for i := range list {
		list[i].st.mu.Unlock()
	}
	for i := range list {
		list[i].st.unref()
	}
}

// sidesFor allocates missing device sides, and returns the work that the stream has to wait for. It
// runs before the stream is locked, since it locks other streams.
func (s *Stream) sidesFor(list []taken) (uses []usage, err error) {
	for i := range list {
		t := &list[i]
		if t.st.core != s.core || t.st.opt.Location == HostOnly {
			continue // pack refuses it
		}
		if err = t.st.makeDevice(); err != nil {
			break
		}
		more, err2 := t.st.after(context.Background(), s, t.writes || t.uploads())
		if err = err2; err != nil {
			break
		}
		uses = append(uses, more...)
	}
	if err != nil {
		closeEvents(uses)
		return nil, err
	}
	return uses, nil
}

// uploads reports whether the launch has to bring the device's side up to date.
func (t *taken) uploads() bool { return t.reads && t.st.dirty == hostDirty }

// allowed returns the reason why the device may not use the storage now, or nil.
func (t *taken) allowed() error {
	st := t.st
	switch {
	case st.opt.Location == HostOnly:
		return ErrNoDeviceMemory
	case st.windows.Load() > 0:
		return errMapped
	case st.opt.Mode == ExplicitMode && t.uploads():
		return fmt.Errorf("the host's side is newer, and copies are explicit: %w", ErrInvalidArgument)
	}
	return nil
}

// refresh brings the device's side up to date. The caller holds the stream.
func (t *taken) refresh(ctx context.Context, s *Stream) error {
	if t.uploads() {
		return t.st.upload(ctx, s)
	}
	return nil
}

// launched notes the effect of the launch that was queued. The caller holds the stream.
func (t *taken) launched(s *Stream) {
	if !t.writes {
		return
	}
	t.st.changedBy(s)
	if t.st.opt.Mode != UnifiedMode {
		t.st.dirty = deviceDirty
	}
}

// packManaged packs the device's side of a Managed that gather has taken.
func (s *Stream) packManaged(arg *driver.Arg, p *source.Param, m *Managed, out bool) error {
	switch {
	case m.none():
		return fmt.Errorf("buffer is nil: %w", ErrInvalidArgument)
	case m.handle.st.core != s.core:
		return fmt.Errorf("buffer belongs to %s: %w", m.handle.st.core.info.ID, ErrInvalidArgument)
	case m.closed.Load():
		return fmt.Errorf("buffer: %w", ErrClosed)
	case s.capture != nil:
		return fmt.Errorf("a graph takes the Buffer of Managed.DeviceSide: %w", ErrInvalidArgument)
	case out && p.Const:
		return fmt.Errorf("is an input, not an output: %w", ErrInvalidArgument)
	}
	st := m.handle.st
	t := taken{st: st, reads: !out || !m.whole(), writes: !p.Const}
	if err := t.allowed(); err != nil {
		return err
	}
	if err := checkElement(p, m.typ, m.Bytes()); err != nil {
		return err
	}
	if err := s.holdMemory(st.dev); err != nil {
		return err
	}
	*arg = driver.Arg{Kind: driver.ArgMemory, Memory: st.dev.address(part(st.dev.mem, m.off, m.Bytes()))}
	return nil
}

// refresh makes the stream, which the caller holds, wait for other streams' work, and brings the
// device sides up to date.
func (s *Stream) refresh(list []taken, uses []usage) error {
	if err := s.waitFor(uses); err != nil {
		return err
	}
	for i := range list {
		if err := list[i].refresh(context.Background(), s); err != nil {
			return s.core.named("launch", err)
		}
	}
	return nil
}
