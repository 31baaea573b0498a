package runtime

// What a graph does: checked and packed calls, and the arguments that a launch of the graph can replace.

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/profile"
)

// recording holds the operations of a graph, with the memory and the programs that they use. While
// Capture records, it is the driver's side of the recording stream.
type recording struct {
	ops      []recorded
	now      []recorded // ops as the last launch with bindings bound them; nil before the first one
	binding  binding
	bound    bool // now differs from ops, or may
	memory   map[*allocation]struct{}
	written  map[*allocation]struct{} // the part of memory that calls may write
	programs map[*programCore]struct{}
	kernels  int64 // launches

	flops, bytes float64 // the work of all operations
	unknown      bool    // the work of some

	nodes []profile.Event // what events returned
}

// recorded is one operation: a launch if launch is set, a fill if pattern is set, and otherwise a
// copy.
type recorded struct {
	launch   *driver.Launch
	kernel   *Kernel  // of the launch
	params   []uint64 // for each argument the id of its Param, emptyArgument, or 0; nil if all are 0
	types    []Type   // of the elements of the arguments; NoType for those without
	dst, src driver.Memory
	pattern  []byte

	flops, bytes float64 // the work of the launch, 0 and 0 if it is not known
}

// emptyArgument stands for a buffer without elements, which no call accesses.
const emptyArgument = math.MaxUint64

var (
	_ driver.Stream       = (*recording)(nil)
	_ driver.PinnedCopier = (*recording)(nil)
)

func newRecording() *recording {
	return &recording{memory: map[*allocation]struct{}{}, written: map[*allocation]struct{}{},
		programs: map[*programCore]struct{}{}}
}

// Launch keeps a copy of the launch, since l belongs to the caller.
func (r *recording) Launch(l *driver.Launch) error {
	r.ops = append(r.ops, (&recorded{launch: l}).clone())
	return nil
}

func (r *recording) Copy(dst, src driver.Memory) error {
	r.ops = append(r.ops, recorded{dst: dst, src: src})
	r.bytes += float64(dst.Size)
	return nil
}

// UploadPinned and DownloadPinned record copies; the kinds of memory decide when they run.
func (r *recording) UploadPinned(dst, src driver.Memory) error   { return r.Copy(dst, src) }
func (r *recording) DownloadPinned(dst, src driver.Memory) error { return r.Copy(dst, src) }

func (r *recording) Fill(dst driver.Memory, pattern []byte) error {
	r.ops = append(r.ops, recorded{dst: dst, pattern: slices.Clone(pattern)})
	r.bytes += float64(dst.Size)
	return nil
}

// Stream refuses the following calls before they reach the recording.

func (r *recording) Upload(context.Context, driver.Memory, []byte) error   { return ErrInvalidArgument }
func (r *recording) Download(context.Context, []byte, driver.Memory) error { return ErrInvalidArgument }
func (r *recording) Record(bool) (driver.Event, error)                     { return nil, ErrInvalidArgument }
func (r *recording) Wait(driver.Event) error                               { return ErrInvalidArgument }
func (r *recording) Sync(context.Context) error                            { return ErrInvalidArgument }
func (r *recording) Err() error                                            { return nil }
func (r *recording) Close() error                                          { return nil }

// launched adds to the launch that was recorded last what the driver does not know: the kernel, and
// the arguments that are Params or have no elements.
func (r *recording) launched(k *Kernel, types []Type, args []any) {
	o := &r.ops[len(r.ops)-1]
	o.kernel, o.types = k, slices.Clone(types)
	for i := range args {
		id := uint64(0) // not the Param itself, or every number in args would be allocated
		switch v := args[i].(type) {
		case *Param:
			id = v.id
		case *Buffer:
			if v.n == 0 {
				id = emptyArgument
			}
		}
		if id == 0 {
			continue
		}
		if o.params == nil {
			o.params = make([]uint64, len(args))
		}
		o.params[i] = id
	}
	r.kernels++
}

// worked adds the work of the launch that was recorded last.
func (r *recording) worked(flops, bytes float64) {
	o := &r.ops[len(r.ops)-1]
	o.flops, o.bytes = flops, bytes
	r.flops, r.bytes = r.flops+flops, r.bytes+bytes
	r.unknown = r.unknown || flops+bytes == 0
}

// events describes the operations for observers. Nobody changes the result.
func (r *recording) events() []profile.Event {
	for i := len(r.nodes); i < len(r.ops); i++ {
		var e profile.Event
		switch o := &r.ops[i]; {
		case o.launch != nil:
			e = profile.Event{Name: o.kernel.id, Items: o.launch.Global, Group: o.launch.Local, Flops: o.flops, Bytes: o.bytes,
				Detail: o.launch.Kernel.Info().Implementation}
		case o.pattern != nil:
			e = profile.Event{Name: "fill", Bytes: float64(o.dst.Size)}
		default:
			e = copyEvent(place(o.src), place(o.dst), o.dst.Size)
		}
		e.Kind = profile.Node
		r.nodes = append(r.nodes, e)
	}
	return r.nodes
}

// clone returns a copy whose arguments can be changed.
func (o *recorded) clone() recorded {
	c := *o
	if o.launch != nil {
		l := *o.launch
		l.Args, l.Data = slices.Clone(l.Args), slices.Clone(l.Data)
		c.launch = &l
	}
	return c
}

// bindings returns the operations with the arguments that were bound last.
func (r *recording) bindings() []recorded {
	if r.bound {
		return r.now
	}
	return r.ops
}

// queue queues the operations on a stream of the driver.
func (r *recording) queue(s driver.Stream) error {
	ops := r.bindings()
	for i := range ops {
		if err := ops[i].queue(s); err != nil {
			return err
		}
	}
	return nil
}

func (o *recorded) queue(s driver.Stream) error {
	switch {
	case o.launch != nil:
		return s.Launch(o.launch)
	case o.pattern != nil:
		return s.Fill(o.dst, o.pattern)
	}
	return copyOn(s, o.dst, o.src)
}

// bind replaces arguments of the operations, and reports whether they differ from those of the last
// call.
func (r *recording) bind(bindings []Binding) (changed bool, err error) {
	if r.now == nil {
		for i := range r.ops {
			r.now = append(r.now, r.ops[i].clone())
		}
	}
	b := &r.binding // not on the stack, or its error would take the caller's bindings to the heap
	b.changed, b.err = false, nil
	b.used = slices.Grow(b.used[:0], len(bindings))[:len(bindings)]
	for i := range bindings {
		b.used[i] = bindings[i].recorded != nil && bindings[i].recorded.n == 0 // no call accesses it
	}
	for i := range r.ops {
		b.operation(bindings, &r.ops[i], &r.now[i])
	}
	for i, used := range b.used {
		if !used && b.err == nil {
			b.err = fmt.Errorf("binding %d: the graph does not use what it replaces: %w", i, ErrInvalidArgument)
		}
	}
	r.bound = len(bindings) > 0 || b.err != nil
	return b.changed, b.err
}

// binding is what one call of bind has found out.
type binding struct {
	used    []bool // of each binding
	changed bool
	err     error
}

// operation makes to the operation from with its arguments replaced.
func (b *binding) operation(list []Binding, from, to *recorded) {
	if from.launch == nil {
		b.memory(list, from.dst, &to.dst)
		if from.pattern == nil {
			b.memory(list, from.src, &to.src)
			if d, s := to.dst, to.src; b.err == nil && d.Handle == s.Handle && d.Offset < s.Offset+s.Size && s.Offset < d.Offset+
				d.Size {
				b.err = fmt.Errorf("ranges of a copy overlap: %w", ErrInvalidArgument)
			}
		}
		return
	}
	before := b.changed
	b.changed = false
	for i := range from.launch.Args {
		arg := &from.launch.Args[i]
		if from.params != nil && from.params[i] == emptyArgument {
			continue
		}
		if arg.Kind == driver.ArgMemory {
			b.memory(list, arg.Memory, &to.launch.Args[i].Memory)
		} else if from.params != nil && from.params[i] != 0 {
			b.number(list, from.params[i], from.launch.Data[arg.Offset:][:8], to.launch.Data[arg.Offset:][:8])
		}
	}
	if k := from.kernel; b.changed && k.own != nil { // which implementation runs depends on the arguments
		to.launch.Kernel = k.drv
		if k.own.Takes(to.launch) {
			to.launch.Kernel = k.own
		}
	}
	b.changed = b.changed || before
}

// memory sets to to what stands for memory of the recording.
func (b *binding) memory(list []Binding, recorded driver.Memory, to *driver.Memory) {
	m := recorded
	for i := range list {
		from := list[i].recorded
		if from == nil || from.n == 0 || from.mem.Handle != m.Handle || m.Offset >= from.mem.Offset+from.mem.Size ||
			from.mem.Offset >= m.Offset+m.Size {
			continue
		}
		b.used[i] = true
		at := recorded.Offset - from.mem.Offset
		if at < 0 || at+recorded.Size > from.mem.Size {
			b.err = fmt.Errorf("binding %d: the graph also uses memory beside that of %v: %w", i, from, ErrInvalidArgument)
			continue
		}
		m = part(list[i].buffer.mem, at, recorded.Size)
		break
	}
	if *to != m {
		*to, b.changed = m, true
	}
}

// number sets to to the value that stands for that of a Param in the recording.
func (b *binding) number(list []Binding, param uint64, recorded, to []byte) {
	value := binary.LittleEndian.Uint64(recorded)
	for i := range list {
		if p := list[i].param; p != nil && p.id == param {
			value, b.used[i] = list[i].bits, true
		}
	}
	if binary.LittleEndian.Uint64(to) != value {
		binary.LittleEndian.PutUint64(to, value)
		b.changed = true
	}
}

// keep holds memory for as long as the recording is needed. The caller holds references to it.
func (r *recording) keep(memory []*allocation) {
	for _, a := range memory {
		if _, have := r.memory[a]; !have && a.ref() {
			r.memory[a] = struct{}{}
		}
	}
}

// keepProgram does the same for the program of a kernel.
func (r *recording) keepProgram(p *programCore) error {
	if _, have := r.programs[p]; have {
		return nil
	}
	if !p.retain() {
		return fmt.Errorf("program: %w", ErrClosed)
	}
	r.programs[p] = struct{}{}
	return nil
}

func (r *recording) release() {
	for a := range r.memory {
		a.unref()
	}
	for p := range r.programs {
		_ = p.release() // a graph has nowhere to report a module that does not unload
	}
}

// softGraph is a recording as a graph for drivers without graphs. Launching it allocates nothing.
type softGraph struct{ *recording }

func (g softGraph) Launch(s driver.Stream) error { return g.queue(s) }
func (g softGraph) Close() error                 { return nil }
