package rates

// Products of matrices, by what the device prefers and by the portable text.

import (
	"context"
	"fmt"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/parity"
	"github.com/concord-compute/concord/source"
)

func products(s sizes) (list []job) {
	n := s.gemm
	for _, implementation := range []struct {
		name string
		is   runtime.Implementation
	}{{"", runtime.Fastest}, {" portable", runtime.Portable}} {
		for _, t := range []struct {
			runtime.Type
			roof roofKind
		}{{runtime.F32, fullRoof}, {runtime.F16, noRoof}, {runtime.BF16, noRoof}} { // of 16 bits, matrix units may multiply
			cube := float64(n) * float64(n) * float64(n)
			list = append(list, job{area: "products", name: fmt.Sprintf("gemm %s %d%s", t.Type, n, implementation.name),
				unit: gigaflops, flops: 2 * cube, bytes: 3 * float64(t.Size()) * float64(n) * float64(n), roof: t.roof,
				call: "gemm", args: map[string]any{"n": n, "type": t.Type.String()},
				setUp: func(ctx context.Context, p *place) (*work, error) { return p.gemm(ctx, t.Type, n, implementation.is) }})
		}
	}
	return list
}

// gemm multiplies two square matrices.
func (p *place) gemm(ctx context.Context, t runtime.Type, n int, which runtime.Implementation) (*work, error) {
	k, err := p.kernel(ctx, "gemm", "gemm", which, source.Define{Name: "T", Value: t.String()})
	if err != nil {
		return nil, err
	}
	grid, err := parity.Grid(k, n, n)
	if err != nil {
		return nil, err
	}
	m, err := p.buffers(ctx, t, n*n, n*n, n*n)
	stream, u := p.dev.Stream(), uint32(n)
	return &work{stream: stream, run: func(context.Context) error {
		return stream.Launch(k, grid, u, u, u, float32(1), m[0], u, m[1], u, float32(0), m[2], u)
	}}, err
}

// kernel returns a kernel of the catalog.
func (p *place) kernel(ctx context.Context, family, name string, which runtime.Implementation,
	defines ...source.Define) (*runtime.Kernel, error) {
	opt := runtime.ProgramOptions{Implementation: which}
	k, program, err := parity.Kernel(ctx, p.dev, family, name, opt, defines...)
	if err == nil {
		p.keep(program)
	}
	return k, err
}
