package runtime

// The path of a launch: check everything, pack the arguments into one flat block, pass it to the
// driver. A launch without errors allocates nothing here.

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// Local is an argument for a parameter in local memory: its size in bytes.
type Local int

// Launch queues a kernel. The arguments are, in the order of the parameters:
//
//   - *Buffer for a pointer to global or constant memory, of the same element
//     type (or any, for pointers to void and structs)
//   - Local for a pointer to local memory
//   - for a value, the Go type of the same kind and width: float32 for float, uint32 for uint, Float16 for half. An
//     integer may also have any other integer type of Go, if its value fits
//   - *Param for a value that a graph's launches can replace
//   - []byte for a vector or struct passed by value: exactly its bytes
//
// Before the driver is called, Launch checks the number and types of the arguments, the sizes of
// values, lifetimes, and the grid against the kernel and its device. It cannot check whether a
// buffer has as many elements as the kernel accesses. Launch does not wait. A later failure is an
// error of the stream.
func (s *Stream) Launch(k *Kernel, g Grid, args ...any) error {
	_, err := s.launch(k, g, args)
	return err
}

// launch is Launch, and returns the kernel that the driver ran.
func (s *Stream) launch(k *Kernel, g Grid, args []any) (driver.Kernel, error) {
	if k == nil || k.program == nil {
		return nil, fmt.Errorf("launch: kernel is nil: %w", ErrInvalidArgument)
	}
	check := s.sample(k, args)
	defer check.submit() // after the stream is given back
	if err := s.lock("launch"); err != nil {
		return nil, check.failed(err)
	}
	queued := false
	defer func() { s.unlock(queued) }()
	err := s.pack(k, g, args)
	if err == nil && s.capture != nil {
		err = s.capture.keepProgram(k.program)
	}
	if err != nil {
		return nil, check.failed(s.core.error("launch "+k.decl.Name, err))
	}
	if check != nil {
		queued = true // the copies are, whatever the driver says of the launch
		check.before(s, &s.spec, s.types)
	}
	watched := s.begin()
	err = s.drv.Launch(&s.spec)
	if watched {
		s.done(s.launchEvent(k, &g), err)
	}
	if check != nil {
		check.after(s, err)
	}
	err = s.core.noticed(err)
	if err == nil {
		queued = true
		if s.capture != nil {
			s.capture.launched(k, s.types, args)
			s.capture.worked(s.workOf(k, &g))
		} else {
			s.launches.Add(1)
		}
		s.offer(k)
		if s.core.session.cfg.Debug >= 2 { // checked here, so that the message's arguments cost nothing when it is not logged
			s.core.session.debug(2, "launched", "device", s.core.info.ID, "kernel", k.decl.Name, "grid", g.String())
		}
	}
	return s.spec.Kernel, err
}

// pack checks a launch and writes it to s.spec.
//
// The arguments must not escape, or every int and float in args would be allocated: one switch over
// exact types takes them apart, nothing keeps them, and error messages get their types by
// reflection, which does not let them escape either. A method called through an interface would let them
// escape, so a room above that has arguments of its own replaces them by Buffers first: see managed.Launch.
func (s *Stream) pack(k *Kernel, g Grid, args []any) error {
	if k.program.device != s.core {
		return fmt.Errorf("kernel belongs to %s: %w", k.program.device.info.ID, ErrInvalidArgument)
	}
	if k.program.gone.Load() {
		return fmt.Errorf("program: %w", ErrClosed)
	}
	spec := &s.spec
	var err error
	if spec.Dim, spec.Global, spec.Local, err = g.resolve(k); err != nil {
		return err
	}
	params := k.decl.Params
	if len(args) != len(params) {
		return fmt.Errorf("%d arguments for the %d parameters of %s: %w", len(args), len(params), k, ErrInvalidArgument)
	}
	spec.Kernel, spec.Data = k.drv, spec.Data[:0]
	if cap(spec.Args) < len(params) {
		spec.Args, s.types = make([]driver.Arg, len(params)), make([]Type, len(params))
	}
	spec.Args, s.types = spec.Args[:len(params)], s.types[:len(params)]
	local := k.info.LocalBytes
	for i := range args {
		p, arg := &params[i], &spec.Args[i]
		s.types[i] = driver.NoType
		switch v := args[i].(type) {
		case *Buffer:
			if err = s.packBuffer(arg, p, v); err == nil && v.n > 0 {
				s.types[i] = v.typ
			}
		case Local:
			err = packLocal(arg, p, v)
			local += min(int64(v), math.MaxInt64-local)
		case *Param:
			err = s.packParam(arg, p, v)
		default:
			err = s.packValue(arg, p, args[i])
		}
		if err != nil {
			return fmt.Errorf("argument %d (%s %s): %w", i, p.Decl, p.Name, err)
		}
	}
	// Above LocalMemory a kernel has to opt in, which its driver does.
	most := max(s.core.info.LocalMemory, s.core.info.LocalMemoryOptIn)
	if most <= 0 {
		most = math.MaxInt32 // unknown; drivers count in 32 bits
	}
	if local > most {
		return fmt.Errorf("%s asks for %d bytes of local memory, the device has %d for a group: %w", k.decl.Name, local, most,
			driver.ErrLocalMemory)
	}
	if k.own != nil && k.own.Takes(spec) {
		spec.Kernel = k.own
	}
	return nil
}

func (s *Stream) packBuffer(arg *driver.Arg, p *source.Param, b *Buffer) error {
	if err := s.hold(b); err != nil {
		return err
	}
	if err := checkElement(p, b.typ, b.mem.Size); err != nil {
		return err
	}
	if !p.Const {
		if err := s.toWrite(b); err != nil {
			return err
		}
	}
	*arg = driver.Arg{Kind: driver.ArgMemory, Memory: b.a.address(b.mem)}
	return nil
}

// checkElement checks a buffer's elements and size against a parameter.
func checkElement(p *source.Param, t Type, size int64) error {
	switch {
	case !p.Pointer || p.Space == source.Local:
		return fmt.Errorf("is no buffer: %w", ErrInvalidArgument)
	case p.Kind != source.Void && p.Kind != source.Struct && p.Kind != t.Kind():
		return fmt.Errorf("buffer holds %v: %w", t, ErrInvalidArgument)
	case size > 0 && size < int64(p.Size):
		return fmt.Errorf("buffer of %d bytes is smaller than one element of %d: %w", size, p.Size, ErrInvalidArgument)
	}
	return nil
}

func packLocal(arg *driver.Arg, p *source.Param, n Local) error {
	if !p.Pointer || p.Space != source.Local {
		return fmt.Errorf("is not local memory: %w", ErrInvalidArgument)
	}
	if n <= 0 || int(n) < p.Size {
		return fmt.Errorf("%d bytes of local memory, one element has %d: %w", int(n), p.Size, ErrInvalidArgument)
	}
	*arg = driver.Arg{Kind: driver.ArgLocal, Size: int(n)}
	return nil
}

// packValue appends a value to the flat block.
func (s *Stream) packValue(out *driver.Arg, p *source.Param, arg any) error {
	if p.Pointer {
		want := "*runtime.Buffer"
		if p.Space == source.Local {
			want = "runtime.Local"
		}
		return fmt.Errorf("takes a %s, not %v: %w", want, typeName(arg), ErrInvalidArgument)
	}
	size := p.Size
	if v, ok := arg.([]byte); ok {
		if len(v) != size || size == 0 {
			return fmt.Errorf("%d bytes for a value of %d: %w", len(v), size, ErrInvalidArgument)
		}
		off := s.reserve(size)
		copy(s.spec.Data[off:], v)
		*out = driver.Arg{Kind: driver.ArgValue, Offset: off, Size: size}
		return nil
	}
	if p.Width != 1 || p.Kind == source.Struct {
		return fmt.Errorf("takes its %d bytes as []byte, not %v: %w", size, typeName(arg), ErrInvalidArgument)
	}
	t, bits := elementOf(arg)
	if t.Kind() != p.Kind {
		v, negative, ok := integerOf(arg)
		switch {
		case !ok || values[p.Kind].most == 0:
			return fmt.Errorf("takes a %s, not %v: %w", values[p.Kind].goType, typeName(arg), ErrInvalidArgument)
		case negative && !fits(p.Kind, v, negative):
			return fmt.Errorf("the %v %d does not fit: %w", typeName(arg), int64(v), ErrInvalidArgument)
		case !fits(p.Kind, v, negative):
			return fmt.Errorf("the %v %d does not fit: %w", typeName(arg), v, ErrInvalidArgument)
		}
		bits = v
	}
	off := s.reserve(8)
	binary.LittleEndian.PutUint64(s.spec.Data[off:], bits)
	*out = driver.Arg{Kind: driver.ArgValue, Offset: off, Size: size}
	return nil
}

// packParam appends the value of a Param, which has to be of the parameter's type.
func (s *Stream) packParam(out *driver.Arg, p *source.Param, v *Param) error {
	switch {
	case v == nil:
		return fmt.Errorf("param is nil: %w", ErrInvalidArgument)
	case p.Pointer:
		return fmt.Errorf("takes no Param: %w", ErrInvalidArgument)
	case p.Width != 1 || p.Kind == source.Struct:
		return fmt.Errorf("takes its %d bytes as []byte, not a Param: %w", p.Size, ErrInvalidArgument)
	case p.Kind != v.typ.Kind():
		return fmt.Errorf("takes a %s, not a Param of %v: %w", values[p.Kind].goType, v.typ, ErrInvalidArgument)
	}
	off := s.reserve(8)
	binary.LittleEndian.PutUint64(s.spec.Data[off:], v.bits)
	*out = driver.Arg{Kind: driver.ArgValue, Offset: off, Size: p.Size}
	return nil
}

// typeName names the type of an argument without letting it escape.
func typeName(arg any) string {
	if arg == nil {
		return "nil"
	}
	return reflect.TypeOf(arg).String()
}

// reserve makes room for n bytes at the end of the flat block, aligned as a value
// of that size has to be.
func (s *Stream) reserve(n int) int {
	align := 8
	if n > 8 {
		align = 16
	}
	off := (len(s.spec.Data) + align - 1) / align * align
	s.spec.Data = append(s.spec.Data, make([]byte, off+n-len(s.spec.Data))...)
	return off
}

// elementOf returns the element type of a number, or NoType, and its bits, in the low bytes.
func elementOf(value any) (Type, uint64) {
	switch v := value.(type) {
	case float32:
		return F32, uint64(math.Float32bits(v))
	case float64:
		return F64, math.Float64bits(v)
	case Float16:
		return F16, uint64(v)
	case BFloat16:
		return BF16, uint64(v)
	case int8:
		return I8, uint64(v)
	case int16:
		return I16, uint64(v)
	case int32:
		return I32, uint64(v)
	case int64:
		return I64, uint64(v)
	case uint8:
		return U8, uint64(v)
	case uint16:
		return U16, uint64(v)
	case uint32:
		return U32, uint64(v)
	case uint64:
		return U64, v
	}
	return driver.NoType, 0
}

// values has the Go type of each kind of value, and the largest number of those that are integers.
var values = [...]struct {
	goType string
	most   uint64
	signed bool
}{
	source.Char: {"int8", math.MaxInt8, true}, source.UChar: {"uint8", math.MaxUint8, false},
	source.Short: {"int16", math.MaxInt16, true}, source.UShort: {"uint16", math.MaxUint16, false},
	source.Int: {"int32", math.MaxInt32, true}, source.UInt: {"uint32", math.MaxUint32, false},
	source.Long: {"int64", math.MaxInt64, true}, source.ULong: {"uint64", math.MaxUint64, false},
	source.Half: {goType: "runtime.Float16"}, source.Float: {goType: "float32"}, source.Double: {goType: "float64"},
	source.Bool: {goType: "nothing: bool is no type of a kernel's parameter"}, source.Struct: {},
}

// integerOf returns the value of an integer in two's complement, and whether it is negative.
func integerOf(arg any) (v uint64, negative, ok bool) {
	switch i := arg.(type) {
	case int:
		return uint64(i), i < 0, true
	case uint:
		return uint64(i), false, true
	case uintptr:
		return uint64(i), false, true
	}
	t, v := elementOf(arg)
	return v, t.IsSigned() && int64(v) < 0, t.IsInteger()
}

// fits reports whether an integer parameter can hold a value of integerOf.
func fits(kind source.Kind, v uint64, negative bool) bool {
	if negative {
		return values[kind].signed && ^v <= values[kind].most
	}
	return v <= values[kind].most
}
