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

// outcome is the result of a launch, per argument.
type outcome struct {
	before  [][]float64 // data before the launch, rounded to its type
	numbers [][]float64 // results of Out and InOut arguments; nil for the others
	bytes   [][]byte    // the same as bytes in memory
}

// The guard bands: their size is a multiple of every device's alignment, and their pattern is not
// the result of any case.
const (
	band    = 4096
	pattern = 0xa5
)

// run launches a case and reads everything back.
func (sub *subject) run(ctx context.Context, c *kernels.Case) (*outcome, error) {
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
	out := &outcome{
		before:  make([][]float64, len(c.Args)),
		numbers: make([][]float64, len(c.Args)),
		bytes:   make([][]byte, len(c.Args)),
	}
	args := make([]any, len(c.Args))
	bufs := make([]*guarded, len(c.Args))
	defer func() {
		for _, b := range bufs {
			b.close()
		}
	}()
	for i := range c.Args {
		if args[i], bufs[i], err = sub.argument(ctx, s, &c.Args[i], out, i); err != nil {
			return nil, err
		}
	}
	if err := s.Launch(k, runtime.Grid{Items: c.Global, Group: c.Local}, args...); err != nil {
		return nil, err
	}
	for i, b := range bufs {
		if b == nil {
			continue
		}
		if err := b.collect(ctx, s, &c.Args[i], out, i); err != nil {
			return nil, fmt.Errorf("argument %d: %w", i, err)
		}
	}
	return out, nil
}

// argument returns the launch argument for one argument of a case.
func (sub *subject) argument(ctx context.Context, s *runtime.Stream, a *kernels.Arg, out *outcome, i int) (any, *guarded, error) {
	if a.Bytes != nil {
		return a.Bytes, nil, nil
	}
	typ, err := runtime.ParseType(a.Type)
	if err != nil {
		return nil, nil, err
	}
	data := a.Data()
	if a.Dir == kernels.Value {
		raw, back := encode(typ, data)
		out.before[i] = back
		return scalar(typ, raw), nil, nil
	}
	if a.Dir == kernels.Out {
		data = slices.Repeat([]float64{0}, a.Len)
	}
	raw, back := encode(typ, data)
	out.before[i] = back
	if a.Dir == kernels.Out {
		for j := range raw {
			raw[j] = pattern // reveals elements that are not written
		}
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
	typ                 runtime.Type
	raw                 []byte // the contents before the launch
}

func newGuarded(ctx context.Context, d *runtime.Device, s *runtime.Stream, typ runtime.Type, raw []byte) (*guarded, error) {
	g := &guarded{typ: typ, raw: raw}
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

// collect reads a buffer back and checks that the guard bands and inputs are unchanged.
func (g *guarded) collect(ctx context.Context, s *runtime.Stream, a *kernels.Arg, out *outcome, i int) error {
	all := make([]byte, g.whole.Len())
	if err := s.Read(ctx, g.whole, 0, all); err != nil {
		return err
	}
	for _, edge := range [][]byte{all[:band], all[len(all)-band:]} {
		if slices.ContainsFunc(edge, func(b byte) bool { return b != pattern }) {
			return errGuard
		}
	}
	got := all[band : len(all)-band]
	if a.Dir == kernels.In {
		if !slices.Equal(got, g.raw) {
			return fmt.Errorf("changed an input")
		}
		return nil
	}
	out.bytes[i], out.numbers[i] = got, decode(g.typ, got)
	return nil
}

// encode rounds numbers to a type and returns their bytes in memory, and the rounded numbers.
func encode(typ runtime.Type, data []float64) (raw []byte, rounded []float64) {
	size := typ.Size()
	raw = make([]byte, size*len(data))
	for i, x := range data {
		var bits uint64
		switch typ {
		case runtime.F32:
			bits = uint64(math.Float32bits(float32(x)))
		case runtime.F64:
			bits = math.Float64bits(x)
		case runtime.F16:
			bits = uint64(runtime.ToFloat16(x))
		case runtime.BF16:
			bits = uint64(runtime.ToBFloat16(x))
		case runtime.U64:
			bits = uint64(x)
		default:
			bits = uint64(int64(x))
		}
		putBits(raw[i*size:], size, bits)
	}
	return raw, decode(typ, raw)
}

func putBits(dst []byte, size int, bits uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], bits)
	copy(dst[:size], b[:])
}

func getBits(src []byte, size int) uint64 {
	var b [8]byte
	copy(b[:], src[:size])
	return binary.LittleEndian.Uint64(b[:])
}

// decode is the inverse of encode.
func decode(typ runtime.Type, raw []byte) []float64 {
	size := typ.Size()
	out := make([]float64, len(raw)/size)
	for i := range out {
		bits := getBits(raw[i*size:], size)
		switch typ {
		case runtime.F32:
			out[i] = float64(math.Float32frombits(uint32(bits)))
		case runtime.F64:
			out[i] = math.Float64frombits(bits)
		case runtime.F16:
			out[i] = runtime.Float16(bits).Float64()
		case runtime.BF16:
			out[i] = runtime.BFloat16(bits).Float64()
		case runtime.I8:
			out[i] = float64(int8(bits))
		case runtime.I16:
			out[i] = float64(int16(bits))
		case runtime.I32:
			out[i] = float64(int32(bits))
		case runtime.I64:
			out[i] = float64(int64(bits))
		default:
			out[i] = float64(bits)
		}
	}
	return out
}

// scalar returns a value argument with the Go type that a launch takes for it.
func scalar(typ runtime.Type, raw []byte) any {
	bits := getBits(raw, typ.Size())
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
