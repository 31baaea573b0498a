//go:build cgo && linux

package fault

// The work of every run: each kind of call a few times, with results that are checked.

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
)

const text = `
kernel void scale(global int *x, int a, uint n) {
  size_t i = get_global_id(0);
  if (i < n) x[i] *= a;
}
kernel void sums(global const int *x, global int *out, local int *tile) {
  size_t i = get_local_id(0);
  tile[i] = x[get_global_id(0)];
  for (size_t n = get_local_size(0) / 2; n > 0; n /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i < n) tile[i] += tile[i + n];
  }
  if (i == 0) out[get_group_id(0)] = tile[0];
}
`

// Sizes: below and above the size of a staging buffer.
const (
	count = 256
	group = 32
	large = 3<<20 + 12
)

// errWrong is the error for a wrong result, which no fault may cause.
var errWrong = errors.New("WRONG RESULT")

// closer collects Close functions in the order in which the objects were made, and the errors of
// closing.
type closer struct{ list []func() error }

func (c *closer) add(f func() error) { c.list = append(c.list, f) }

func (c *closer) close(err error) error {
	for _, f := range slices.Backward(c.list) {
		err = errors.Join(err, f())
	}
	return err
}

func exercise(ctx context.Context, s *runtime.Session, id string) (err error) {
	var c closer
	defer func() { err = c.close(err) }()
	d, err := s.Open(ctx, id)
	if err != nil {
		return err
	}
	c.add(d.Close)
	unit, err := source.Parse(text, source.Options{Name: "exercise.cl", Features: d.Features()})
	if err != nil {
		return err
	}
	p, err := d.Program(ctx, unit)
	if err != nil {
		return err
	}
	c.add(p.Close)
	for _, part := range []func(context.Context, *closer, *runtime.Device, *runtime.Program) error{
		launches, copies, pinned, graphs, steps, product, managed, scopes,
	} {
		if err := part(ctx, &c, d, p); err != nil {
			return err
		}
	}
	if err := peers(ctx, &c, s, d); err != nil {
		return err
	}
	return d.Sync(ctx)
}

func numbers(n int) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = int32(i%1000 - 500)
	}
	return list
}

// launches: two streams, events between them, local memory.
func launches(ctx context.Context, c *closer, d *runtime.Device, p *runtime.Program) error {
	scale, err := p.Kernel("scale")
	if err != nil {
		return err
	}
	sums, err := p.Kernel("sums")
	if err != nil {
		return err
	}
	x, err := runtime.Upload(ctx, d, numbers(count))
	if err != nil {
		return err
	}
	c.add(x.Close)
	out, err := runtime.Alloc[int32](d, count/group)
	if err != nil {
		return err
	}
	c.add(out.Close)
	other, err := d.NewPriorityStream(runtime.High)
	if err != nil {
		return err
	}
	c.add(other.Close)
	start, err := d.Stream().Record()
	if err != nil {
		return err
	}
	c.add(start.Close)
	if err := d.Stream().Launch(scale, runtime.Items(count).InGroups(group), x, int32(3), uint32(count)); err != nil {
		return err
	}
	end, err := d.Stream().Record()
	if err != nil {
		return err
	}
	c.add(end.Close)
	if err := other.Wait(end); err != nil {
		return err
	}
	if err := other.Launch(sums, runtime.Items(count).InGroups(group), x, out, runtime.Local(4*group)); err != nil {
		return err
	}
	if err := other.Sync(ctx); err != nil {
		return err
	}
	if _, err := end.Elapsed(start); err != nil {
		return err
	}
	want := make([]int32, count/group)
	for i, v := range numbers(count) {
		want[i/group] += 3 * v
	}
	return same(ctx, "sums", out, want)
}

// copies: staged uploads and downloads, fills, copies within the device.
func copies(ctx context.Context, c *closer, d *runtime.Device, _ *runtime.Program) error {
	data := numbers(large / 4)
	a, err := runtime.Upload(ctx, d, data)
	if err != nil {
		return err
	}
	c.add(a.Close)
	b, err := runtime.Alloc[int32](d, len(data))
	if err != nil {
		return err
	}
	c.add(b.Close)
	if err := d.Stream().Fill(b, int32(7)); err != nil {
		return err
	}
	tail, err := b.Slice(5, len(data)-5)
	if err != nil {
		return err
	}
	c.add(tail.Close)
	head, err := a.Slice(0, len(data)-5)
	if err != nil {
		return err
	}
	c.add(head.Close)
	if err := d.Stream().Copy(tail, head); err != nil {
		return err
	}
	want := append([]int32{7, 7, 7, 7, 7}, data[:len(data)-5]...)
	return same(ctx, "copies", b, want)
}

// pinned: copies that the host does not wait for, and unified memory.
func pinned(ctx context.Context, c *closer, d *runtime.Device, _ *runtime.Program) error {
	for _, kind := range []runtime.MemoryKind{runtime.Pinned, runtime.Unified} {
		h, err := d.AllocKind(kind, runtime.I32, count)
		if errors.Is(err, runtime.ErrUnsupported) {
			continue
		}
		if err != nil {
			return err
		}
		c.add(h.Close)
		b, err := runtime.Alloc[int32](d, count)
		if err != nil {
			return err
		}
		c.add(b.Close)
		view, err := runtime.Host[int32](h)
		if err != nil {
			return err
		}
		copy(view, numbers(count))
		if err := d.Stream().Copy(b, h); err != nil {
			return err
		}
		if kind == runtime.Unified {
			if err := d.Stream().Prefetch(h, false); err != nil && !errors.Is(err, runtime.ErrUnsupported) {
				return err
			}
		}
		if err := same(ctx, kind.String(), b, numbers(count)); err != nil {
			return err
		}
	}
	return nil
}

// graphs: recorded once, run twice, changed, run again.
func graphs(ctx context.Context, c *closer, d *runtime.Device, p *runtime.Program) error {
	scale, err := p.Kernel("scale")
	if err != nil {
		return err
	}
	x, err := runtime.Upload(ctx, d, numbers(count))
	if err != nil {
		return err
	}
	c.add(x.Close)
	times := func(a int32) func(*runtime.Stream) error {
		return func(s *runtime.Stream) error {
			return s.Launch(scale, runtime.Items(count).InGroups(group), x, a, uint32(count))
		}
	}
	g, err := d.Stream().Capture(times(2))
	if err != nil {
		return err
	}
	c.add(g.Close)
	for range 2 {
		if err := g.Launch(d.Stream()); err != nil {
			return err
		}
	}
	if err := g.Update(times(5)); err != nil {
		return err
	}
	if err := g.Launch(d.Stream()); err != nil {
		return err
	}
	want := numbers(count)
	for i := range want {
		want[i] *= 20
	}
	return same(ctx, "graph", x, want)
}

// steps: memory that is allocated in stream order, and groups of the size that the device suggests.
func steps(ctx context.Context, c *closer, d *runtime.Device, p *runtime.Program) error {
	scale, err := p.Kernel("scale")
	if err != nil {
		return err
	}
	// Old drivers support neither of these, nor prefetching memory (above).
	if _, err := scale.SuggestGroup(0); err != nil && !errors.Is(err, runtime.ErrUnsupported) {
		return err
	}
	n, err := scale.Occupancy(group, 0)
	if err != nil && !errors.Is(err, runtime.ErrUnsupported) {
		return err
	}
	if err == nil && n < 1 {
		return fmt.Errorf("%w: %d groups fit", errWrong, n)
	}
	for range 2 {
		x, err := d.Stream().Alloc(runtime.I32, count)
		if err != nil {
			return err
		}
		c.add(x.Close)
		if err := d.Stream().Fill(x, int32(3)); err != nil {
			return err
		}
		if err := d.Stream().Launch(scale, runtime.Items(count).InGroups(group), x, int32(5), uint32(count)); err != nil {
			return err
		}
		if err := same(ctx, "steps", x, slices.Repeat([]int32{15}, count)); err != nil {
			return err
		}
	}
	return nil
}

// product: the catalog's gemm, which the vendor's BLAS computes if it is installed.
func product(ctx context.Context, c *closer, d *runtime.Device, _ *runtime.Program) error {
	unit, err := kernels.Unit("gemm", d.Features())
	if err != nil {
		return err
	}
	p, err := d.Program(ctx, unit)
	if err != nil {
		return err
	}
	c.add(p.Close)
	gemm, err := p.Kernel("gemm")
	if err != nil {
		return err
	}
	const n = 64
	a, err := runtime.Upload(ctx, d, slices.Repeat([]float32{1, 2}, n*n/2))
	if err != nil {
		return err
	}
	c.add(a.Close)
	out, err := runtime.Alloc[float32](d, n*n)
	if err != nil {
		return err
	}
	c.add(out.Close)
	size := uint32(n)
	if err := d.Stream().Launch(gemm, runtime.Items(8, 8).InGroups(8, 8), size, size, size, float32(1), a, size, a, size,
		float32(0), out, size); err != nil {
		return err
	}
	got := make([]float32, n*n)
	if err := runtime.Read(ctx, out, got); err != nil {
		return err
	}
	// A row is 1, 2, 1, 2, ...; a column of ones sums to 96, a column of twos to 192.
	if !slices.Equal(got, slices.Repeat([]float32{96, 192}, n*n/2)) {
		return fmt.Errorf("%w: product", errWrong)
	}
	return nil
}

// managed: buffers with a host side and a device side, which the runtime copies.
func managed(ctx context.Context, c *closer, d *runtime.Device, p *runtime.Program) error {
	scale, err := p.Kernel("scale")
	if err != nil {
		return err
	}
	other, err := d.NewStream()
	if err != nil {
		return err
	}
	c.add(other.Close)
	for i, mode := range []runtime.Mode{runtime.AutomaticMode, runtime.ExplicitMode, runtime.UnifiedMode} {
		m, err := d.NewManaged(runtime.I32, count, runtime.ManagedOptions{Mode: mode, Location: runtime.Location(i % 2),
			AllowDowngrade: true})
		if err != nil {
			return err
		}
		c.add(m.Close)
		if err := runtime.Write(ctx, m, numbers(count)); err != nil {
			return err
		}
		if err := d.Stream().ToDevice(m); err != nil {
			return err
		}
		for _, s := range []*runtime.Stream{d.Stream(), other} {
			if err := s.Launch(scale, runtime.Items(count).InGroups(group), m, int32(3), uint32(count)); err != nil {
				return err
			}
		}
		if err := other.ToHost(m); err != nil {
			return err
		}
		window, err := runtime.Map[int32](ctx, m, runtime.ForWriting)
		if err != nil {
			return err
		}
		for i := range window {
			window[i]++
		}
		if err := m.Unmap(); err != nil {
			return err
		}
		if err := m.ToDevice(ctx); err != nil {
			return err
		}
		if err := other.Launch(scale, runtime.Items(count).InGroups(group), m, int32(2), uint32(count)); err != nil {
			return err
		}
		if err := m.ToHost(ctx); err != nil {
			return err
		}
		want := numbers(count)
		for i := range want {
			want[i] = (9*want[i] + 1) * 2
		}
		if err := same(ctx, "managed", m, want); err != nil {
			return err
		}
	}
	return nil
}

// scopes: an arena whose memory is freed in each step, and a batch.
func scopes(ctx context.Context, c *closer, d *runtime.Device, _ *runtime.Program) error {
	a, err := d.Stream().NewArena()
	if err != nil {
		return err
	}
	c.add(a.Close)
	for step := range int32(2) {
		for i := range int32(3) {
			x, err := a.Alloc(runtime.I32, count)
			if err != nil {
				return err
			}
			if err := d.Stream().Fill(x, 10*step+i); err != nil {
				return err
			}
			if err := same(ctx, "arena", x, slices.Repeat([]int32{10*step + i}, count)); err != nil {
				return err
			}
		}
		if err := a.Reset(); err != nil {
			return err
		}
	}
	b := d.NewBatch()
	c.add(b.Close)
	if _, err := b.Alloc(runtime.F64, count); err != nil {
		return err
	}
	x, err := b.AddHost(ctx, []byte{1, 0, 0, 0, 2, 0, 0, 0}, 2, runtime.I32)
	if err != nil {
		return err
	}
	return same(ctx, "batch", x, []int32{1, 2})
}

// staged: copies that are large enough for the runtime's staging buffers.
func staged(ctx context.Context, s *runtime.Session, id string) (err error) {
	var c closer
	defer func() { err = c.close(err) }()
	d, err := s.Open(ctx, id)
	if err != nil {
		return err
	}
	c.add(d.Close)
	data := numbers(33 << 18) // 33 MiB, so that a staging buffer is used twice
	b, err := runtime.Alloc[int32](d, len(data))
	if err != nil {
		return err
	}
	c.add(b.Close)
	if err := runtime.Write(ctx, b, data); err != nil {
		return err
	}
	if err := same(ctx, "staged", b, data); err != nil {
		return err
	}
	return d.Sync(ctx)
}

// peers: a copy from the next device, if there is one.
func peers(ctx context.Context, c *closer, s *runtime.Session, d *runtime.Device) error {
	other, err := s.Open(ctx, d.Info().Backend+":1")
	if errors.Is(err, runtime.ErrDeviceIndex) {
		return nil
	}
	if err != nil {
		return err
	}
	c.add(other.Close)
	from, err := runtime.Upload(ctx, other, numbers(count))
	if err != nil {
		return err
	}
	c.add(from.Close)
	to, err := runtime.Alloc[int32](d, count)
	if err != nil {
		return err
	}
	c.add(to.Close)
	if err := runtime.CopyAcross(ctx, to, from); err != nil {
		return err
	}
	return same(ctx, "peer", to, numbers(count))
}

// same reads a buffer and compares.
func same(ctx context.Context, what string, b runtime.Array, want []int32) error {
	got := make([]int32, b.Len())
	if err := runtime.Read(ctx, b, got); err != nil {
		return err
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("%w: %s", errWrong, what)
	}
	return nil
}
