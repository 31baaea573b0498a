package parity

// One case on one device: the data is rounded to its types, uploaded between guard bands, used by a
// launch, downloaded, and checked for stray writes.

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
)

// The guard bands: their size is a multiple of every device's alignment, and their pattern is not
// the result of any case.
const (
	band    = 4096
	pattern = 0xa5
)

// run launches a case and reads everything back. It returns the bytes of each Out or InOut argument after the
// launch, and nil for the others.
func (sub *subject) run(ctx context.Context, c *kernels.Case) ([][]byte, error) {
	u, err := sub.unit(c)
	if err != nil {
		return nil, err
	}
	impl, _ := sub.how(c)
	if err := sub.broken[u]; err != nil && impl == runtime.Portable {
		return nil, err
	}
	p, err := sub.dev.Program(ctx, u, runtime.ProgramOptions{Implementation: impl})
	if err != nil {
		return nil, err
	}
	defer p.Close()
	k, err := p.Kernel(c.Kernel)
	if err != nil {
		return nil, err
	}
	// Each case has a separate stream, so that a failing case does not fail the next one.
	s, err := sub.dev.NewStream()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	out := make([][]byte, len(c.Args))
	args := make([]any, len(c.Args))
	bufs := make([]*guarded, len(c.Args))
	defer func() {
		for _, b := range bufs {
			b.close()
		}
	}()
	for i := range c.Args {
		if args[i], bufs[i], err = sub.argument(ctx, s, &c.Args[i]); err != nil {
			return nil, err
		}
	}
	items, group, err := kernels.Geometry(u, c.Kernel, c.Sizes...)
	if err != nil {
		return nil, err
	}
	if err := s.Launch(k, runtime.Grid{Items: items, Group: group}, args...); err != nil {
		return nil, err
	}
	for i, b := range bufs {
		if b == nil {
			continue
		}
		if out[i], err = b.collect(ctx, s, c.Args[i].Dir); err != nil {
			return nil, fmt.Errorf("argument %d: %w", i, err)
		}
	}
	return out, nil
}

// argument returns the launch argument for one argument of a case.
func (sub *subject) argument(ctx context.Context, s *runtime.Stream, a *kernels.Arg) (any, *guarded, error) {
	if a.Bytes != nil {
		return a.Bytes, nil, nil
	}
	typ, err := runtime.ParseType(a.Type)
	if err != nil {
		return nil, nil, err
	}
	if a.Dir == kernels.Value {
		return scalar(typ, kernels.Encode(a.Type, a.Data())), nil, nil
	}
	var raw []byte
	if a.Dir == kernels.Out { // the pattern reveals elements that are not written
		raw = slices.Repeat([]byte{pattern}, a.Len*typ.Size())
	} else {
		raw = kernels.Encode(a.Type, a.Data())
	}
	b, err := newGuarded(ctx, sub.dev, s, typ, raw)
	if err != nil {
		return nil, b, err
	}
	return b.view, b, nil
}

// guarded is a buffer between guard bands.
type guarded struct {
	whole, middle, view *runtime.Buffer
	raw                 []byte // the contents before the launch
}

func newGuarded(ctx context.Context, d *runtime.Device, s *runtime.Stream, typ runtime.Type,
	raw []byte) (*guarded, error) {
	g := &guarded{raw: raw}
	edge := slices.Repeat([]byte{pattern}, band)
	all := slices.Concat(edge, raw, edge)
	var err error
	if g.whole, err = d.Alloc(runtime.U8, len(all)); err != nil {
		return g, err
	}
	if err = s.Write(ctx, g.whole, 0, all); err != nil {
		return g, err
	}
	if g.middle, err = g.whole.Slice(band, len(raw)); err != nil {
		return g, err
	}
	g.view, err = g.middle.As(typ)
	return g, err
}

func (g *guarded) close() {
	if g == nil {
		return
	}
	for _, b := range []*runtime.Buffer{g.view, g.middle, g.whole} {
		_ = b.Close() // Close of a buffer reports nothing
	}
}

// collect reads a buffer back and checks that the guard bands and inputs are unchanged. It returns the bytes of
// an output, and nil for an input.
func (g *guarded) collect(ctx context.Context, s *runtime.Stream, dir kernels.Dir) ([]byte, error) {
	all := make([]byte, g.whole.Len())
	if err := s.Read(ctx, g.whole, 0, all); err != nil {
		return nil, err
	}
	for _, edge := range [][]byte{all[:band], all[len(all)-band:]} {
		if slices.ContainsFunc(edge, func(b byte) bool { return b != pattern }) {
			return nil, errGuard
		}
	}
	got := all[band : len(all)-band]
	if dir != kernels.In {
		return got, nil
	}
	if !slices.Equal(got, g.raw) {
		return nil, fmt.Errorf("changed an input")
	}
	return nil, nil
}

// scalar returns a value argument with the Go type that a launch takes for it.
func scalar(typ runtime.Type, raw []byte) any {
	var whole [8]byte
	copy(whole[:], raw)
	bits := binary.LittleEndian.Uint64(whole[:])
	switch typ {
	case runtime.F32:
		return math.Float32frombits(uint32(bits))
	case runtime.F64:
		return math.Float64frombits(bits)
	case runtime.F16:
		return runtime.Float16(bits)
	case runtime.BF16:
		return runtime.BFloat16(bits)
	case runtime.I8:
		return int8(bits)
	case runtime.I16:
		return int16(bits)
	case runtime.I32:
		return int32(bits)
	case runtime.I64:
		return int64(bits)
	case runtime.U8:
		return uint8(bits)
	case runtime.U16:
		return uint16(bits)
	case runtime.U32:
		return uint32(bits)
	}
	return bits
}
