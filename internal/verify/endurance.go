package verify

// The step of many launches, graphs, copies and short lives, and of what they leave behind.

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
)

// countText adds 1 to each number.
const countText = `kernel void count(global uint *x, uint n) {
	size_t i = get_global_id(0);
	if (i < n) x[i] += 1;
}`

// stepEndurance repeats what programs repeat. The numbers are those of a run of a card; others do a part.
func stepEndurance(ctx context.Context, e *Env, dev *runtime.Device) error {
	launches := 100_000
	if dev.Info().Simulated {
		launches = 2_000
	}
	t := toil{dev: dev, launches: launches, lives: 10_000}
	if e.Quick { // a processor fills the memory itself
		t.lives = 2_000
	}
	if err := t.begin(ctx); err != nil {
		return err
	}
	before := dev.Info()
	for _, c := range []struct {
		name string
		f    func(context.Context) error
	}{
		{fmt.Sprintf("%d launches", launches), t.many},
		{fmt.Sprintf("a graph of 100 launches, %d times", launches/100), t.graph},
		{fmt.Sprintf("%d launches from four streams", launches/10), t.streams},
		{fmt.Sprintf("%d buffers", t.lives), t.buffers},
		{"1,000 streams and events", t.streamsAndEvents},
		{"pinned and pageable copies of 1 byte to 32 MiB", t.copies},
		{"200 programs loaded and closed", t.programs},
	} {
		e.check(ctx, c.name, c.f)
	}
	if !e.over(ctx) {
		t.end()
	}
	e.check(ctx, "nothing is left on the device", func(context.Context) error { return left(dev, before) })
	return nil
}

// left returns what a device has not given back.
func left(dev *runtime.Device, before runtime.Info) error {
	if _, err := dev.Memory().Trim(0); err != nil {
		return err
	}
	st := dev.Stats()
	if st.Live != 0 || st.LiveBuffers != 0 || st.Deferred != 0 || st.Allocations != st.Frees {
		return fmt.Errorf("%d bytes in %d buffers are live, %d bytes deferred, %d allocations and %d frees", st.Live,
			st.LiveBuffers, st.Deferred, st.Allocations, st.Frees)
	}
	after := dev.Info()
	// Drivers keep some memory of their own: for loaded code, for stacks of kernels.
	const kept = 64 << 20
	if before.FreeMemoryKnown && after.FreeMemoryKnown && !after.UnifiedMemory && before.Kind == "discrete" &&
		after.FreeMemory < before.FreeMemory-kept {
		return fmt.Errorf("the driver has %d MiB less free than before", (before.FreeMemory-after.FreeMemory)>>20)
	}
	return nil
}

// toil repeats work on a buffer of counters.
type toil struct {
	dev      *runtime.Device
	launches int
	lives    int // of buffers
	unit     *source.Unit
	program  *runtime.Program
	kernel   *runtime.Kernel
	x        *runtime.Buffer
	done     uint32
}

// counters is the number of counters; a group is smaller.
const counters = 1000

var countGrid = runtime.Cover(counters, 64)

func (t *toil) begin(ctx context.Context) (err error) {
	if t.unit, err = source.Parse(countText, source.Options{Name: "count.cl", Features: t.dev.Features()}); err != nil {
		return err
	}
	if t.program, err = t.dev.Program(ctx, t.unit); err != nil {
		return err
	}
	if t.kernel, err = t.program.Kernel("count"); err != nil {
		return err
	}
	t.x, err = runtime.Upload(ctx, t.dev, make([]uint32, counters))
	return err
}

func (t *toil) end() {
	t.x.Close()
	_ = t.program.Close() // the check after it finds what stays
}

// launch queues a launch that adds 1 to each counter.
func (t *toil) launch(s *runtime.Stream) error {
	return s.Launch(t.kernel, countGrid, t.x, uint32(counters))
}

// repeat queues n pieces of work on a stream, and waits for each number of them, so that queues stay short.
func repeat(ctx context.Context, s *runtime.Stream, n, number int, queue func(i int) error) error {
	for i := range n {
		if err := queue(i); err != nil {
			return err
		}
		if i%number == number-1 {
			if err := s.Sync(ctx); err != nil {
				return err
			}
		}
	}
	return s.Sync(ctx)
}

// counted compares the counters with how often they were incremented.
func (t *toil) counted(ctx context.Context, more int) error {
	t.done += uint32(more)
	got := make([]uint32, counters)
	if err := runtime.Read(ctx, t.x, got); err != nil {
		return err
	}
	if i := slices.IndexFunc(got, func(v uint32) bool { return v != t.done }); i >= 0 {
		wrong := fmt.Errorf("counter %d is %d, not %d", i, got[i], t.done)
		t.done = got[i]
		return wrong
	}
	return nil
}

func (t *toil) many(ctx context.Context) error {
	s := t.dev.Stream()
	if err := repeat(ctx, s, t.launches, 1000, func(int) error { return t.launch(s) }); err != nil {
		return err
	}
	return t.counted(ctx, t.launches)
}

func (t *toil) graph(ctx context.Context) error {
	s := t.dev.Stream()
	g, err := s.Capture(func(s *runtime.Stream) error {
		for range 100 {
			if err := t.launch(s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	defer g.Close()
	if err := repeat(ctx, s, t.launches/100, 20, func(int) error { return g.Launch(s) }); err != nil {
		return err
	}
	return t.counted(ctx, t.launches/100*100)
}

// streams takes turns: a stream waits for the one before it, since all of them count in the same place.
func (t *toil) streams(ctx context.Context) error {
	var list []*runtime.Stream
	defer func() {
		for _, s := range list {
			_ = s.Close() // its error was that of a launch or a wait
		}
	}()
	for range 4 {
		s, err := t.dev.NewStream()
		if err != nil {
			return err
		}
		list = append(list, s)
	}
	n := t.launches / 10
	for i := range n {
		s := list[i%4]
		if i > 0 {
			e, err := list[(i-1)%4].Record()
			if err != nil {
				return err
			}
			if err := errors.Join(s.Wait(e), e.Close()); err != nil {
				return err
			}
		}
		if err := t.launch(s); err != nil {
			return err
		}
		if i%400 == 399 {
			if err := s.Sync(ctx); err != nil {
				return err
			}
		}
	}
	for _, s := range list {
		if err := s.Sync(ctx); err != nil {
			return err
		}
	}
	return t.counted(ctx, n)
}

// buffers allocates, writes, and closes while the write is under way.
func (t *toil) buffers(ctx context.Context) error {
	s := t.dev.Stream()
	return repeat(ctx, s, t.lives, 500, func(i int) error {
		b, err := t.dev.Alloc(runtime.U8, 1+i*7919%(256<<10))
		if err != nil {
			return err
		}
		defer b.Close()
		if err := s.Fill(b, uint8(i)); err != nil || i%500 != 499 {
			return err
		}
		return filled(ctx, b, uint8(i))
	})
}

// filled checks the contents of a buffer.
func filled(ctx context.Context, b *runtime.Buffer, value uint8) error {
	got := make([]uint8, b.Len())
	if err := runtime.Read(ctx, b, got); err != nil {
		return err
	}
	if i := slices.IndexFunc(got, func(v uint8) bool { return v != value }); i >= 0 {
		return fmt.Errorf("byte %d of %d is %d, not %d", i, len(got), got[i], value)
	}
	return nil
}

func (t *toil) streamsAndEvents(ctx context.Context) error {
	for range 1000 {
		s, err := t.dev.NewStream()
		if err != nil {
			return err
		}
		e, err := s.Record()
		if err == nil {
			err = e.Close()
		}
		if err := errors.Join(err, s.Close(), ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// copies goes to the device and back by every way that it has.
func (t *toil) copies(ctx context.Context) error {
	s := t.dev.Stream()
	for _, n := range []int{1, 4099, 1 << 20, 16<<20 + 1, 32 << 20} {
		data, back := make([]byte, n), make([]byte, n)
		for i := range data {
			data[i] = byte(i*31 + i>>11)
		}
		on, err := t.dev.Alloc(runtime.U8, n)
		if err != nil {
			return err
		}
		err = s.Write(ctx, on, 0, data)
		if err == nil {
			err = s.Read(ctx, on, 0, back)
		}
		if err == nil && !slices.Equal(data, back) {
			err = fmt.Errorf("%d bytes are not the same after a copy there and back", n)
		}
		if err == nil {
			err = t.pinned(ctx, on, data)
		}
		on.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// pinned copies the contents of a buffer through pinned memory, where there is any.
func (t *toil) pinned(ctx context.Context, on *runtime.Buffer, data []byte) error {
	host, err := t.dev.AllocKind(runtime.Pinned, runtime.U8, len(data))
	if errors.Is(err, runtime.ErrUnsupported) {
		return nil // the device has none
	}
	if err != nil {
		return err
	}
	defer host.Close()
	s := t.dev.Stream()
	if err := s.Copy(host, on); err != nil {
		return err
	}
	got := make([]byte, len(data))
	if err := s.Read(ctx, host, 0, got); err != nil {
		return err
	}
	if !slices.Equal(data, got) {
		return fmt.Errorf("%d bytes are not the same in pinned memory", len(data))
	}
	return nil
}

func (t *toil) programs(ctx context.Context) error {
	for range 200 {
		p, err := t.dev.Program(ctx, t.unit)
		if err != nil {
			return err
		}
		if err := p.Close(); err != nil {
			return err
		}
	}
	return nil
}
