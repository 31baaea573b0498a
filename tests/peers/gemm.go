package main

// Matrix products, measured at the kernel function.

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"github.com/concord-compute/concord/runtime/driver"
)

// product is one shape, prepared for both implementations.
type product struct {
	*prepared
	theirs func() error // nil: not installed
	ops    float64
}

func (b *bench) product(f64 bool, m, n, k int) (*product, error) {
	t, size := "f32", 4
	if f64 {
		t, size = "f64", 8
	}
	c, err := b.prepare("gemm", defines("T", t), "gemm", gemmArgs(f64, m, n, k, size*m*k, size*k*n, size*m*n)...)
	if err != nil {
		return nil, err
	}
	for _, x := range c.buffers {
		randomize(x, f64)
	}
	p := &product{prepared: c, ops: 2 * float64(m) * float64(n) * float64(k)}
	if b.blas {
		p.theirs = func() error {
			blasGemm(f64, m, n, k, c.buffers[0], c.buffers[1], c.buffers[2])
			return nil
		}
	}
	return p, nil
}

// gemmArgs returns gemm's arguments for a product. a, b and c are existing memory, or numbers of
// bytes to allocate.
func gemmArgs(f64 bool, m, n, k int, a, b, c any, more ...any) []any {
	var one, zero any = float32(1), float32(0)
	if f64 {
		one, zero = 1.0, 0.0
	}
	m32, n32, k32 := uint32(m), uint32(n), uint32(k)
	return append([]any{m32, n32, k32, one, a, k32, b, n32, zero, c, n32}, more...)
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
			what := fmt.Sprintf("%s %d", kind(f64), n)
			if !b.wanted(what) {
				continue
			}
			p, err := b.product(f64, n, n, n)
			if err != nil {
				return err
			}
			err = b.compare(subject{what: what, series: kind(f64), size: float64(n), work: p.ops, unit: gflops,
				name: p.name, run: p.run}, b.openBLAS(p), b.peak(size))
			p.free()
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// openBLAS returns OpenBLAS's product as a contender.
func (b *bench) openBLAS(p *product) contender {
	c := inProcess("OpenBLAS", "OPENBLAS_CORETYPE="+b.core, p.theirs)
	if p.theirs == nil {
		c.sample, c.setting = nil, b.noBLAS
	}
	return c
}

func kind(f64 bool) string {
	if f64 {
		return "dgemm"
	}
	return "sgemm"
}

// odd measures shapes that are not multiples of the block sizes: the geometric mean and the
// quartiles.
func (b *bench) odd() error {
	for _, f64 := range []bool{false, true} {
		if err := b.oddShapes(f64, []int{1, 3, 17, 64, 255, 1000}); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) oddShapes(f64 bool, sizes []int) error {
	var shapes []row
	for _, m := range sizes {
		for _, n := range sizes {
			for _, k := range sizes {
				what := fmt.Sprintf("%s %d×%d×%d", kind(f64), m, n, k)
				if !b.wanted(what) {
					continue
				}
				p, err := b.product(f64, m, n, k)
				if err != nil {
					return err
				}
				r, err := b.measure(subject{what: what, work: p.ops, unit: gflops, name: p.name, run: p.run},
					b.budget/50, b.openBLAS(p))
				p.free()
				if err != nil {
					return err
				}
				b.say("%s: %v ms, OpenBLAS %v, ratio %v", r.What, r.Ours.Ms, r.Peers[0].Ms, r.Peers[0].Ratio)
				shapes = append(shapes, r)
			}
		}
	}
	if len(shapes) == 0 {
		return nil
	}
	b.add(together(fmt.Sprintf("%s, mean of %d shapes", kind(f64), len(shapes)), shapes))
	return nil
}

// batches measures batched and fused products, compared with many calls of gemm, or with other
// kernels after it.
func (b *bench) batches() error {
	for _, row := range []func() error{b.manySmall, b.biased, b.besideGonum} {
		if err := row(); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) manySmall() error {
	const n, count = 64, 64
	size, step := 4*n*n, uint64(n*n)
	p, err := b.prepare("gemm_batch", nil, "gemm_batch", gemmArgs(false, n, n, n, count*size, count*size, count*size,
		uint32(count), step, step, step)...)
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
		one, err := b.prepare("gemm", nil, "gemm", gemmArgs(false, n, n, n, part[0], part[1], part[2])...)
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
	return b.compare(subject{what: "64 times sgemm 64", work: count * 2 * n * n * n, unit: gflops, name: p.name,
		run: p.run}, others...)
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
	p, err := b.prepare("gemm_bias", defines("ACT", "relu"), "gemm_bias",
		gemmArgs(false, n, n, n, size, size, size, 4*n)...)
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
		{"gemm", "gemm", gemmArgs(false, n, n, n, m[0], m[1], m[2])},
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

// besideGonum compares with gonum, which is called only once, because a call takes seconds.
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
	return b.compare(subject{what: "sgemm 2048", work: p.ops, unit: gflops, name: p.name, run: p.run},
		contender{name: "gonum", sample: func(int, int) (float64, error) {
			if once == 0 {
				start := time.Now()
				gonum.Implementation{}.Sgemm(blas.NoTrans, blas.NoTrans, n, n, n, 1, x, n, x, n, 0, out, n)
				once = float64(time.Since(start).Nanoseconds())
			}
			return once, nil
		}})
}
