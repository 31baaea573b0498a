package bench

// The suites of concord bench.

import (
	"context"
	"fmt"
	"time"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/parity"
	"github.com/concord-compute/concord/source"
)

const (
	l2Dim       = 128
	launchBatch = 200
)

// benchSizes are large enough not to fit the caches of a device, and small enough
// to take milliseconds there.
type benchSizes struct {
	copyBytes, saxpyN int
	gemmN             []int
	l2                [][2]int // queries and vectors
	convImages        int
}

func sizesFor(info runtime.Info) benchSizes {
	if info.IsGPU() {
		return benchSizes{copyBytes: 256 << 20, saxpyN: 1 << 27, gemmN: []int{512, 1024, 4096},
			l2: [][2]int{{1, 1 << 20}, {1024, 1 << 16}}, convImages: 64}
	}
	return benchSizes{copyBytes: 64 << 20, saxpyN: 1 << 25, gemmN: []int{128, 512, 1024},
		l2: [][2]int{{1, 1 << 18}, {16, 1 << 16}, {256, 2048}}, convImages: 8}
}

func (b *bencher) kernel(ctx context.Context, family, name string, defs ...source.Define) (*runtime.Kernel, error) {
	k, _, err := parity.Kernel(ctx, b.dev, family, name, b.target.Options, defs...)
	return k, err
}

// floats allocates buffers of numbers that are neither zero nor denormal.
func (b *bencher) floats(ctx context.Context, sizes ...int) ([]*runtime.Buffer, func(), error) {
	var list []*runtime.Buffer
	free := func() {
		for _, buf := range list {
			buf.Close()
		}
	}
	for _, n := range sizes {
		data := make([]float32, n)
		for i := range data {
			data[i] = float32(i%251)/251 + 0.5
		}
		buf, err := runtime.Upload(ctx, b.dev, data)
		if err != nil {
			free()
			return nil, nil, err
		}
		list = append(list, buf)
	}
	return list, free, nil
}

// sampleKernel measures a launch with results of the given sizes, in units of work per nanosecond.
func (b *bencher) sampleKernel(ctx context.Context, k *runtime.Kernel, sizes []int, work float64,
	args ...any) (measured, error) {
	grid, err := parity.Grid(k, sizes...)
	if err != nil {
		return measured{}, err
	}
	var ran string
	m, err := b.measure(ctx, func() (float64, error) {
		rec, err := b.dev.Stream().Run(ctx, k, grid, args...)
		if err != nil {
			return 0, err
		}
		ran = rec.Implementation
		return rate(work, rec)
	})
	m.implementation = ran
	return m, err
}

// rateKernel measures a launch of a kernel with results of the given sizes, beside its roof: in bytes beside the rate
// of the memory, or in operations.
func (b *bencher) rateKernel(ctx context.Context, name string, k *runtime.Kernel, sizes []int, flops, bytes float64,
	inBytes bool, args ...any) error {
	limits, err := b.limits(ctx)
	if err != nil {
		return err
	}
	peak, width := rateOrUnknown(limits.GFLOPS), rateOrUnknown(limits.MemoryGBs)
	roof := float64(width) * flops / bytes
	unit, work, limit := "GB/s", bytes, width
	if !inBytes {
		roof = min(float64(peak), roof)
		unit, work, limit = "GFLOP/s", flops, app.Number(roof)
	}
	m, err := b.sampleKernel(ctx, k, sizes, work, args...)
	if err != nil {
		return err
	}
	b.note(name, unit, m, limit)
	r := &b.results[len(b.results)-1]
	r.flops, r.bytes, r.ns, r.roof = flops, bytes, work/m.median, roof
	return nil
}

func (b *bencher) launch(ctx context.Context) error {
	k, err := b.kernel(ctx, "saxpy", "saxpy")
	if err != nil {
		return err
	}
	bufs, free, err := b.floats(ctx, 1, 1)
	if err != nil {
		return err
	}
	defer free()
	grid, err := parity.Grid(k, 1)
	if err != nil {
		return err
	}
	stream := b.dev.Stream()
	queue := func(n int) error {
		for range n {
			if err := stream.Launch(k, grid, float32(1), bufs[0], bufs[1], uint64(1)); err != nil {
				return err
			}
		}
		return nil
	}
	queued, err := b.measure(ctx, func() (float64, error) {
		start := time.Now()
		err := queue(launchBatch)
		took := time.Since(start)
		if err == nil {
			err = stream.Sync(ctx)
		}
		return float64(took.Nanoseconds()) / 1e3 / launchBatch, err
	})
	if err != nil {
		return err
	}
	queued.implementation = k.Info().Implementation
	b.note("queue", "µs", queued, app.Null)
	waited, err := b.measure(ctx, func() (float64, error) {
		start := time.Now()
		if err := queue(1); err != nil {
			return 0, err
		}
		err := stream.Sync(ctx)
		return float64(time.Since(start).Nanoseconds()) / 1e3, err
	})
	if err != nil {
		return err
	}
	waited.implementation = queued.implementation
	b.note("launch and wait", "µs", waited, app.Null)
	return nil
}

func (b *bencher) copies(ctx context.Context) error {
	copyBytes := b.sizes.copyBytes
	host, other := make([]byte, copyBytes), make([]byte, copyBytes)
	for i := range host {
		host[i] = byte(i)
	}
	timed := func(f func() error) func() (float64, error) {
		return func() (float64, error) {
			start := time.Now()
			err := f()
			return float64(copyBytes) / float64(time.Since(start).Nanoseconds()), err
		}
	}
	limit, err := b.measure(ctx, timed(func() error { copy(other, host); return nil }))
	if err != nil {
		return err
	}
	buf, err := b.dev.Alloc(runtime.U8, copyBytes)
	if err != nil {
		return err
	}
	defer buf.Close()
	stream := b.dev.Stream()
	up, err := b.measure(ctx, timed(func() error {
		if err := stream.Write(ctx, buf, 0, host); err != nil {
			return err
		}
		return stream.Sync(ctx) // a write may return before the device has it
	}))
	if err != nil {
		return err
	}
	b.note("upload", "GB/s", up, app.Number(limit.median))
	down, err := b.measure(ctx, timed(func() error { return stream.Read(ctx, buf, 0, other) }))
	if err != nil {
		return err
	}
	b.note("download", "GB/s", down, app.Number(limit.median))
	return nil
}

func (b *bencher) saxpy(ctx context.Context) error {
	n := b.sizes.saxpyN
	bufs, free, err := b.floats(ctx, n, n)
	if err != nil {
		return err
	}
	defer free()
	// With a = 0 y does not change; otherwise it would grow from sample to sample, up to infinity.
	return b.element(ctx, elementwise{name: fmt.Sprintf("n=%d", n), family: "saxpy", kernel: "saxpy", flops: 2, bytes: 12,
		size: n, args: []any{float32(0), bufs[0], bufs[1], uint64(n)}})
}

// rowLength is the length of rows of softmax, layer_norm and reduce_sum.
const rowLength = 1024

// memory counts every comparison and every elementary function as one operation.
func (b *bencher) memory(ctx context.Context) error {
	n := b.sizes.saxpyN
	x, free, err := b.floats(ctx, n, n, rowLength, rowLength)
	if err != nil {
		return err
	}
	defer free()
	halves, err := x[1].As(runtime.F16)
	if err != nil {
		return err
	}
	defer halves.Close()
	rows, each := uint32(n/rowLength), uint32(rowLength)
	toHalf := []source.Define{{Name: "FROM", Value: "f32"}, {Name: "TO", Value: "f16"}}
	for _, e := range []elementwise{
		{"sum of rows", "reduce", "reduce_sum", nil, 1, 4, n / rowLength, []any{x[0], x[1], rows, each, uint32(1)}},
		{"softmax", "softmax", "softmax", nil, 5, 8, n / rowLength, []any{x[0], x[1], rows, each}},
		{"layer norm", "norm", "layer_norm", nil, 8, 8, n / rowLength,
			[]any{x[0], x[2], x[3], x[1], rows, each, float32(1e-5)}},
		{"cast to f16", "cast", "cast", toHalf, 1, 6, n, []any{x[0], halves, uint64(n)}},
	} {
		if err := b.element(ctx, e); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	return nil
}

// elementwise is a memory-bound launch on as many elements as saxpy's.
type elementwise struct {
	name, family, kernel string
	defs                 []source.Define
	flops, bytes         int // per element
	size                 int // elements, or rows
	args                 []any
}

func (b *bencher) element(ctx context.Context, e elementwise) error {
	k, err := b.kernel(ctx, e.family, e.kernel, e.defs...)
	if err != nil {
		return err
	}
	n := b.sizes.saxpyN
	return b.rateKernel(ctx, e.name, k, []int{e.size}, float64(e.flops*n), float64(e.bytes*n), true, e.args...)
}

// product measures a launch of a kernel beside the roof for its operations and bytes. x has buffers of floats of those
// sizes.
func (b *bencher) product(ctx context.Context, family, kernel, name string, buffers, sizes []int, flops, bytes float64,
	args func(x []*runtime.Buffer) []any) error {
	k, err := b.kernel(ctx, family, kernel)
	if err != nil {
		return err
	}
	x, free, err := b.floats(ctx, buffers...)
	if err != nil {
		return err
	}
	defer free()
	return b.rateKernel(ctx, name, k, sizes, flops, bytes, false, args(x)...)
}

func (b *bencher) gemm(ctx context.Context) error {
	for _, n := range b.sizes.gemmN {
		side, square := uint32(n), n*n
		err := b.product(ctx, "gemm", "gemm", fmt.Sprintf("f32 %d×%d×%d", n, n, n), []int{square, square, square},
			[]int{n, n}, 2*float64(square)*float64(n), 3*4*float64(square), func(x []*runtime.Buffer) []any {
				return []any{side, side, side, float32(1), x[0], side, x[1], side, float32(0), x[2], side}
			})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bencher) l2(ctx context.Context) error {
	for _, s := range b.sizes.l2 {
		queries, vectors := s[0], s[1]
		buffers := []int{queries * l2Dim, vectors * l2Dim, queries * vectors}
		err := b.product(ctx, "l2_distance", "l2_distance_fp32", fmt.Sprintf("f32 %d×%d×%d", queries, vectors, l2Dim),
			buffers, []int{queries, vectors}, float64(3*queries*vectors*l2Dim), 4*float64(buffers[0]+buffers[1]+buffers[2]),
			func(x []*runtime.Buffer) []any {
				return []any{x[0], x[1], x[2], uint32(queries), uint32(vectors), uint32(l2Dim)}
			})
		if err != nil {
			return err
		}
	}
	return nil
}

// conv2d is a layer of 64 channels of 56×56 by filters of 3×3.
func (b *bencher) conv2d(ctx context.Context) error {
	const channels, side, filter = 64, 56, 3
	n := b.sizes.convImages
	image, weights := n*channels*side*side, channels*channels*filter*filter
	c, s, f, one := uint32(channels), uint32(side), uint32(filter), uint32(1)
	return b.product(ctx, "conv2d", "conv2d",
		fmt.Sprintf("f32 %d×%d×%d×%d by %d×%d", n, channels, side, side, filter, filter),
		[]int{image, weights, 1, image}, []int{n, 1, channels, side * side}, 2*float64(n*side*side)*float64(weights),
		4*float64(2*image+weights), func(x []*runtime.Buffer) []any {
			return []any{uint32(n), c, s, s, c, f, f, one, one, one, one, one, one, one, s, s, x[0], x[1], x[2], x[3]}
		})
}
