package main

// Products of matrices, at the kernel function.

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// product is one shape, ready to be computed by either.
type product struct {
	ours, theirs func() error
	ops          float64
	free         func()
	name         string // of the implementation
}

func (b *bench) product(f64 bool, m, n, k int) (*product, error) {
	t, size := "f32", 4
	if f64 {
		t, size = "f64", 8
	}
	u, err := kernels.Unit("gemm", nil, source.Define{Name: "T", Value: t})
	if f64 {
		u, err = kernels.Unit("gemm", &source.Features{FP64: true}, source.Define{Name: "T", Value: t})
	}
	if err != nil {
		return nil, err
	}
	kernel, ok := b.device.(driver.Natives).Native(u, "gemm")
	if !ok {
		return nil, fmt.Errorf("the device has no gemm of its own")
	}
	var held []driver.Memory
	p := &product{ops: 2 * float64(m) * float64(n) * float64(k), name: kernel.Info().Implementation,
		free: func() {
			for _, h := range held {
				_ = b.device.Free(h) // the process ends soon
			}
		}}
	var bytes [3][]byte
	for i, count := range []int{m * k, k * n, m * n} {
		h, err := b.device.Alloc(int64(count*size), driver.OnDevice)
		if err != nil {
			p.free()
			return nil, err
		}
		held = append(held, h)
		bytes[i], _ = b.device.(driver.HostVisible).HostBytes(h)
		randomize(bytes[i], f64)
	}
	global, local := kernels.GemmGrid(m, n)
	l := &driver.Launch{Kernel: kernel, Dim: 3, Global: global, Local: local}
	whole := func(v int) { value(l, binary.NativeEndian.AppendUint32(nil, uint32(v))) }
	scalar := func(v float64) {
		if f64 {
			value(l, binary.NativeEndian.AppendUint64(nil, math.Float64bits(v)))
		} else {
			value(l, binary.NativeEndian.AppendUint32(nil, math.Float32bits(float32(v))))
		}
	}
	memory := func(i int) { l.Args = append(l.Args, driver.Arg{Kind: driver.ArgMemory, Memory: held[i]}) }
	whole(m)
	whole(n)
	whole(k)
	scalar(1)
	memory(0)
	whole(k)
	memory(1)
	whole(n)
	scalar(0)
	memory(2)
	whole(n)
	run, release, err := cpu.Prepare(b.device, l)
	if err != nil {
		p.free()
		return nil, err
	}
	free := p.free
	p.ours, p.free = run, func() { release(); free() }
	if b.blas {
		p.theirs = func() error {
			blasGemm(f64, m, n, k, bytes[0], bytes[1], bytes[2])
			return nil
		}
	}
	return p, nil
}

// value appends a value argument at a multiple of its size.
func value(l *driver.Launch, bits []byte) {
	for len(l.Data)%len(bits) != 0 {
		l.Data = append(l.Data, 0)
	}
	l.Args = append(l.Args, driver.Arg{Kind: driver.ArgValue, Offset: len(l.Data), Size: len(bits)})
	l.Data = append(l.Data, bits...)
}

func randomize(b []byte, f64 bool) {
	r := rand.New(rand.NewPCG(1, 2))
	if f64 {
		for i := 0; i+8 <= len(b); i += 8 {
			binary.NativeEndian.PutUint64(b[i:], math.Float64bits(r.Float64()-0.5))
		}
		return
	}
	for i := 0; i+4 <= len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], math.Float32bits(r.Float32()-0.5))
	}
}

func (b *bench) squares() error {
	for _, f64 := range []bool{false, true} {
		size := 4
		if f64 {
			size = 8
		}
		for _, n := range []int{64, 128, 256, 512, 1024, 2048, 4096} {
			p, err := b.product(f64, n, n, n)
			if err != nil {
				return err
			}
			err = b.compare(subject{what: fmt.Sprintf("%s %d", kind(f64), n), series: kind(f64), size: float64(n), work: p.ops, unit: gflops,
				name: p.name, run: p.ours}, b.openBLAS(p), b.peak(size))
			p.free()
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// openBLAS is its product as a contender.
func (b *bench) openBLAS(p *product) contender {
	c := inProcess("OpenBLAS", "OPENBLAS_CORETYPE="+b.core, p.theirs)
	if p.theirs == nil {
		c.sample, c.setting = nil, "apt-get install libopenblas0-pthread"
	}
	return c
}

func kind(f64 bool) string {
	if f64 {
		return "dgemm"
	}
	return "sgemm"
}

// odd is the shapes that blocks do not fit, with the geometric mean of the ratios.
func (b *bench) odd() error {
	sizes := []int{1, 3, 17, 64, 255, 1000}
	for _, f64 := range []bool{false, true} {
		sum, count := 0.0, 0
		for _, m := range sizes {
			for _, n := range sizes {
				for _, k := range sizes {
					p, err := b.product(f64, m, n, k)
					if err != nil {
						return err
					}
					c, err := inTurn(60*time.Millisecond, p.ours, p.theirs)
					p.free()
					if err != nil {
						return err
					}
					fmt.Printf("%s %4d × %4d × %4d: %9.2f µs, OpenBLAS %9.2f, ratio %.2f\n", kind(f64), m, n, k, c.ours/1e3, c.theirs/1e3, c.ratio)
					sum, count = sum+math.Log(c.ratio), count+1
				}
			}
		}
		fmt.Printf("%s odd shapes: geometric mean %.3f of %d\n", kind(f64), math.Exp(sum/float64(count)), count)
	}
	return nil
}

// batches is what a program would otherwise do by calling gemm many times, or other
// kernels after it.
func (b *bench) batches() error {
	for _, row := range []func() error{b.manySmall, b.biased, b.besideGonum} {
		if err := row(); err != nil {
			return err
		}
	}
	return nil
}

// gemmArgs are gemm's arguments for a square product of memory that is there, or of so
// many bytes.
func gemmArgs(n int, a, b, c any, more ...any) []any {
	u := uint32(n)
	return append([]any{u, u, u, float32(1), a, u, b, u, float32(0), c, u}, more...)
}

func (b *bench) manySmall() error {
	const n, count = 64, 64
	size, step := 4*n*n, uint64(n*n)
	p, err := b.prepare("gemm_batch", nil, "gemm_batch", gemmArgs(n, count*size, count*size, count*size, uint32(count), step, step, step)...)
	if err != nil {
		return err
	}
	defer p.free()
	var calls []*prepared
	for i := range count {
		var part [3]driver.Memory
		for j, m := range p.memory {
			part[j] = driver.Memory{Handle: m.Handle, Offset: int64(i * size), Size: int64(size)}
		}
		one, err := b.prepare("gemm", nil, "gemm", gemmArgs(n, part[0], part[1], part[2])...)
		if err != nil {
			return err
		}
		defer one.free()
		calls = append(calls, one)
	}
	for _, x := range p.buffers {
		randomize(x, false)
	}
	others := []contender{inProcess("gemm, 64 times", "", func() error { return inOrder(calls) })}
	if b.blas {
		others = append(others, inProcess("OpenBLAS, 64 times", "OPENBLAS_CORETYPE="+b.core, func() error {
			for at := 0; at < count*size; at += size {
				blasGemm(false, n, n, n, p.buffers[0][at:], p.buffers[1][at:], p.buffers[2][at:])
			}
			return nil
		}))
	}
	return b.compare(subject{what: "64 times sgemm 64", work: count * 2 * n * n * n, unit: gflops, name: p.name, run: p.run}, others...)
}

func inOrder(calls []*prepared) error {
	for _, c := range calls {
		if err := c.run(); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) biased() error {
	const n, size = 1024, 4 * 1024 * 1024
	p, err := b.prepare("gemm_bias", defines("ACT", "relu"), "gemm_bias", gemmArgs(n, size, size, size, 4*n)...)
	if err != nil {
		return err
	}
	defer p.free()
	m, none := p.memory, uint32(0)
	var calls []*prepared
	for _, k := range []struct {
		family, kernel string
		args           []any
	}{
		{"gemm", "gemm", gemmArgs(n, m[0], m[1], m[2])},
		{"arith", "add_broadcast", []any{m[2], m[3], m[2], uint32(1), uint32(1), uint32(n), uint32(n),
			none, none, uint32(n), uint32(1), none, none, none, uint32(1)}},
		{"activation", "relu", []any{m[2], m[2], uint64(n * n)}},
	} {
		one, err := b.prepare(k.family, nil, k.kernel, k.args...)
		if err != nil {
			return err
		}
		defer one.free()
		calls = append(calls, one)
	}
	for _, x := range p.buffers {
		randomize(x, false)
	}
	return b.compare(subject{what: "sgemm 1024, bias, relu", work: 2 * n * n * n, unit: gflops, name: p.name, run: p.run},
		inProcess("three kernels", "", func() error { return inOrder(calls) }), inProcess("gemm alone", "", calls[0].run))
}

// besideGonum calls gonum once: it takes seconds.
func (b *bench) besideGonum() error {
	const n = 2048
	p, err := b.product(false, n, n, n)
	if err != nil {
		return err
	}
	defer p.free()
	x, out := make([]float32, n*n), make([]float32, n*n)
	for i := range x {
		x[i] = rand.Float32() - 0.5
	}
	once := 0.0
	return b.compare(subject{what: "sgemm 2048", work: p.ops, unit: gflops, name: p.name, run: p.ours}, contender{name: "gonum", sample: func(int) (float64, error) {
		if once == 0 {
			start := time.Now()
			gonum.Implementation{}.Sgemm(blas.NoTrans, blas.NoTrans, n, n, n, 1, x, n, x, n, 0, out, n)
			once = float64(time.Since(start).Nanoseconds())
		}
		return once, nil
	}})
}
