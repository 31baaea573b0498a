package runtime

// Copies of what a launch reads and stores, for a driver.Checker that repeats some launches elsewhere.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/concord-compute/concord/runtime/driver"
)

// Check makes c choose launches on all devices of the session, also those in graphs, until stop is called: see package
// runtime/validate. What c chose runs as it would otherwise, but for copies in front of and behind it on its stream; a
// graph with such a launch is queued launch by launch. There is one checker at a time: the next one, or nil, takes the
// place of the last, which is closed, so that Check waits for what that one judges. The session's Close closes it, too.
// stop closes nothing, and may be called twice.
func (s *Session) Check(c driver.Checker) (stop func()) {
	next, stop := (*driver.Checker)(nil), func() {}
	if c != nil {
		next = &c
		stop = func() { s.checker.CompareAndSwap(next, nil) }
	}
	if last := s.checker.Swap(next); last != nil && *last != c {
		if err := (*last).Close(); err != nil {
			slog.Warn("concord: closing the checker of launches failed", "reason", err)
		}
	}
	return stop
}

// toldNoChecker is for the warning that Config.Validate has no effect.
var toldNoChecker sync.Once

// validate starts the checker of Config.Validate.
func (s *Session) validate() error {
	if s.cfg.Validate <= 0 {
		return nil
	}
	c, err := driver.NewChecker(&s.cfg)
	if errors.Is(err, ErrUnsupported) && !s.cfg.Strict {
		toldNoChecker.Do(func() { slog.Warn("concord: launches are not validated", "reason", err) })
		return nil
	}
	if err != nil {
		return err
	}
	s.Check(c)
	return nil
}

// sample is one launch that is to be checked, while it is queued. A nil one is of a launch that is not.
type sample struct {
	checker driver.Checker
	core    *core
	kernel  *Kernel
	op      int // in a graph
	out     driver.Sample
	block   *Buffer         // the copies: of all regions, then of those that are written
	memory  []driver.Memory // of the regions
	event   *Event          // behind the copies
}

// samples are those of a graph's launch, in the order of its operations.
type samples []*sample

// regionAlign is the alignment of copies in their block, in bytes.
const regionAlign = 256

// room returns how many bytes of a block the copies of a buffer need, whatever it overlaps.
func room(bytes int64, written bool) int64 {
	n := (bytes+regionAlign-1)/regionAlign*regionAlign + regionAlign
	if written {
		n *= 2
	}
	return n
}

// sample returns the copies for a launch if it is to be checked, else nil. args must not escape: see pack.
func (s *Stream) sample(k *Kernel, args []any) *sample {
	if s.none() || s.capture != nil {
		return nil
	}
	checker := s.core.session.checker.Load()
	if checker == nil || !(*checker).Wants(&k.tally) {
		return nil
	}
	bytes := int64(0)
	for i := range min(len(args), len(k.decl.Params)) {
		if b, ok := args[i].(*Buffer); ok && !b.none() {
			bytes += room(b.mem.Size, !k.decl.Params[i].Const)
		}
	}
	return s.core.sample(*checker, k, bytes)
}

// samples returns the copies for those launches of a graph that are to be checked. The caller holds the graph.
func (g *Graph) samples() (list samples) {
	checker := g.core.session.checker.Load()
	if checker == nil {
		return nil
	}
	for i := range g.does.ops {
		o := &g.does.ops[i]
		if o.launch == nil || !(*checker).Wants(&o.kernel.tally) {
			continue
		}
		bytes := int64(0)
		for j := range o.launch.Args {
			if o.types[j] != driver.NoType {
				bytes += room(o.launch.Args[j].Memory.Size, !o.kernel.decl.Params[j].Const)
			}
		}
		if c := g.core.sample(*checker, o.kernel, bytes); c != nil {
			c.op = i
			list = append(list, c)
		}
	}
	return list
}

// sample allocates a block for copies, if the checker takes so many bytes.
func (c *core) sample(checker driver.Checker, k *Kernel, bytes int64) *sample {
	if !checker.Admit(bytes) {
		return nil
	}
	p := &sample{checker: checker, core: c, kernel: k}
	p.out = driver.Sample{Device: c.info.ID, Unit: k.Unit(), Kernel: k.decl.Name, Bytes: bytes}
	a, err := (*allocation)(nil), fmt.Errorf("no memory is left for copies: %w", ErrOutOfMemory)
	if c.hasRoom(bytes) {
		a, err = c.memory.alloc(bytes, OnDevice, nil)
	}
	if err != nil {
		p.out.Err = err
		return p
	}
	p.block = newBuffer(a, U8, part(a.mem, 0, bytes), int(bytes))
	p.block.SetTag("validation")
	return p
}

// hasRoom reports whether the device has so much memory that an allocation needs not wait for other memory.
func (c *core) hasRoom(bytes int64) bool {
	pool, info := c.memory.pool.Stats(), c.drv.Info()
	if limit := c.session.cfg.MemoryLimit; limit > 0 && pool.Requested+2*bytes > limit {
		return false
	}
	return !info.FreeMemoryKnown || info.FreeMemory >= 2*bytes || pool.Reserved-pool.Requested >= 2*bytes
}

// before queues the copies of the memory of a launch. The caller holds the stream.
func (p *sample) before(s *Stream, l *driver.Launch, types []Type) {
	if p.out.Err != nil {
		return
	}
	info := l.Kernel.Info()
	p.out.Implementation, p.out.Native = info.Implementation, info.Native
	p.out.Dim, p.out.Global, p.out.Local = l.Dim, l.Global, l.Local
	p.describe(l, types)
	if p.out.Err = s.hold(p.block); p.out.Err != nil {
		return
	}
	at := int64(0)
	for _, m := range p.memory {
		if p.out.Err = copyOn(s.drv, part(p.block.mem, at, m.Size), m); p.out.Err != nil {
			return
		}
		at += aligned(m.Size)
	}
}

func aligned(n int64) int64 { return (n + regionAlign - 1) / regionAlign * regionAlign }

// describe fills in the arguments and the regions of a launch.
func (p *sample) describe(l *driver.Launch, types []Type) {
	p.out.Args = make([]driver.SampleArg, len(l.Args))
	var order []int // arguments with memory
	for i := range l.Args {
		from, to := &l.Args[i], &p.out.Args[i]
		to.Kind = from.Kind
		switch from.Kind {
		case driver.ArgValue:
			to.Value = slices.Clone(l.Data[from.Offset:][:from.Size])
		case driver.ArgLocal:
			to.Local = from.Size
		default:
			to.Written = !p.kernel.decl.Params[i].Const
			if to.Type = types[i]; to.Type != driver.NoType {
				to.Bytes = int(from.Memory.Size)
				order = append(order, i)
			}
		}
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := l.Args[i].Memory, l.Args[j].Memory
		if a.Handle != b.Handle {
			return slices.Compare([]uint64{a.Handle}, []uint64{b.Handle})
		}
		return int(a.Offset - b.Offset)
	})
	for _, i := range order {
		m := l.Args[i].Memory
		n := len(p.memory)
		if n > 0 && p.memory[n-1].Handle == m.Handle && m.Offset < p.memory[n-1].Offset+p.memory[n-1].Size {
			last := &p.memory[n-1]
			last.Size = max(last.Size, m.Offset+m.Size-last.Offset)
		} else {
			p.memory = append(p.memory, m)
			p.out.Regions = append(p.out.Regions, driver.SampleRegion{})
			n++
		}
		arg, region := &p.out.Args[i], &p.out.Regions[n-1]
		arg.Region, arg.Offset = n-1, int(m.Offset-p.memory[n-1].Offset)
		region.Bytes = int(p.memory[n-1].Size)
	}
}

// written reports whether an argument in a region is written.
func (p *sample) written(region int) bool {
	return slices.ContainsFunc(p.out.Args, func(a driver.SampleArg) bool {
		return a.Kind == driver.ArgMemory && a.Bytes > 0 && a.Region == region && a.Written
	})
}

// each calls f for every copy in the block, of a region before the launch or after it.
func (p *sample) each(f func(region int, after bool, at, bytes int64)) {
	at := int64(0)
	for _, after := range []bool{false, true} {
		for i, m := range p.memory {
			if !after || p.written(i) {
				f(i, after, at, m.Size)
				at += aligned(m.Size)
			}
		}
	}
}

// after queues the copies of what the launch stored, unless it failed. The caller holds the stream.
func (p *sample) after(s *Stream, err error) {
	if p.failed(err); p.out.Err != nil {
		return
	}
	p.each(func(region int, after bool, at, bytes int64) {
		if after && p.out.Err == nil {
			p.out.Err = copyOn(s.drv, part(p.block.mem, at, bytes), p.memory[region])
		}
	})
	if p.out.Err != nil {
		return
	}
	drv, err := s.drv.Record(false)
	if err != nil {
		p.out.Err = err
		return
	}
	p.event = &Event{core: p.core, drv: drv, stream: s, after: s.queued.Load()}
}

// failed notes why the launch cannot be checked, and returns the reason.
func (p *sample) failed(err error) error {
	if p != nil && err != nil && p.out.Err == nil {
		p.out.Err = err
	}
	return err
}

// submit passes the launch to the checker. No stream is held.
func (p *sample) submit() {
	if p == nil {
		return
	}
	if p.event == nil && p.out.Err == nil { // the driver panicked
		p.out.Err = fmt.Errorf("the launch did not return: %w", ErrLaunch)
	}
	if p.out.Err != nil {
		p.close()
	}
	p.out.Read, p.out.Close = p.read, p.close
	p.checker.Check(&p.out)
}

// read waits for the launch and fetches the copies.
func (p *sample) read(ctx context.Context) error {
	defer p.close()
	if err := p.event.Wait(ctx); err != nil {
		return err
	}
	reader, err := p.core.streams.reading()
	if err != nil {
		return err
	}
	end := int64(0)
	p.each(func(_ int, _ bool, at, bytes int64) { end = at + bytes })
	all := make([]byte, end)
	if err := reader.Read(ctx, p.block, 0, all); err != nil {
		return err
	}
	p.each(func(region int, after bool, at, bytes int64) {
		if r := &p.out.Regions[region]; after {
			r.After = all[at : at+bytes : at+bytes]
		} else {
			r.Before = all[at : at+bytes : at+bytes]
		}
	})
	return nil
}

// close gives the copies back. It does nothing the second time, or after the device.
func (p *sample) close() {
	if !p.core.enter() {
		return
	}
	defer p.core.leave()
	if p.event != nil {
		_ = p.event.Close() // it is only waited for
	}
	_ = p.block.Close()
}

// queue queues the operations of a graph one by one, with the copies of those that are checked.
func (list samples) queue(s *Stream, ops []recorded) error {
	for i := range ops {
		var p *sample
		if len(list) > 0 && list[0].op == i {
			p, list = list[0], list[1:]
			p.before(s, ops[i].launch, ops[i].types)
		}
		err := ops[i].queue(s.drv)
		if p != nil {
			p.after(s, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (list samples) failed(err error) error {
	for _, p := range list {
		p.failed(err)
	}
	return err
}

func (list samples) submit() {
	for _, p := range list {
		p.submit()
	}
}
