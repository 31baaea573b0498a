package parity

// One case on one device: the data is rounded to its types, uploaded between guard bands, used by a
// launch, downloaded, and checked for stray writes.

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
)

// The guard bands: their size is a multiple of every device's alignment, and their pattern is not
// the result of any case.
const (
	band    = 4096
	pattern = 0xa5
)

// Kernel returns a kernel of the catalog, built for a device with definitions and the tile that was chosen for it (see
// kernels.Chosen), and its program, which the caller closes. It blocks while a compiler works. Errors are those of
// kernels.Unit and Device.Program.
func Kernel(ctx context.Context, dev *runtime.Device, family, name string, opt runtime.ProgramOptions,
	defines ...source.Define) (*runtime.Kernel, *runtime.Program, error) {
	unit, err := chosen(dev, family, defines)
	if err != nil {
		return nil, nil, err
	}
	p, err := dev.Program(ctx, unit, opt)
	if err != nil {
		return nil, nil, err
	}
	k, err := p.Kernel(name)
	if err != nil {
		return nil, nil, errors.Join(err, p.Close())
	}
	return k, p, nil
}

// chosen returns the unit of a family with the tile that was chosen for a device.
func chosen(dev *runtime.Device, family string, defines []source.Define) (*source.Unit, error) {
	set, _ := dev.Choices().InUse() // a tile has several numbers
	return kernels.Unit(family, dev.Features(), kernels.Chosen(family, defines, set.Of)...)
}

// Grid returns the grid with which a kernel of the catalog makes results of those sizes, see kernels.Geometry.
func Grid(k *runtime.Kernel, sizes ...int) (runtime.Grid, error) {
	items, group, err := kernels.Geometry(k.Unit(), k.Name(), sizes...)
	return runtime.Grid{Items: items, Group: group}, err
}

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
	k, p, err := Kernel(ctx, sub.dev, c.Family, c.Kernel, runtime.ProgramOptions{Implementation: impl}, c.Defines...)
	if err != nil {
		return nil, err
	}
	defer p.Close()
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
	grid, err := Grid(k, c.Sizes...)
	if err != nil {
		return nil, err
	}
	if err := s.Launch(k, grid, args...); err != nil {
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
		v, err := scalar(typ, kernels.Encode(a.Type, a.Data()))
		return v, nil, err
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

// values has a value of the Go type that a launch takes for each element type.
var values = map[runtime.Type]any{runtime.F32: float32(0), runtime.F64: float64(0), runtime.F16: runtime.Float16(0),
	runtime.BF16: runtime.BFloat16(0), runtime.I8: int8(0), runtime.I16: int16(0), runtime.I32: int32(0),
	runtime.I64: int64(0), runtime.U8: uint8(0), runtime.U16: uint16(0), runtime.U32: uint32(0), runtime.U64: uint64(0)}

// scalar returns a value argument with the Go type that a launch takes for it.
func scalar(typ runtime.Type, raw []byte) (any, error) {
	v := reflect.New(reflect.TypeOf(values[typ]))
	_, err := binary.Decode(raw, binary.LittleEndian, v.Interface())
	return v.Elem().Interface(), err
}
