package program

// The forms of --arg of concord run.

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/files"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
)

// argumentForms is the help text for an argument of no known form.
const argumentForms = "@file.npy, zeros:f32:1024, local:f32:256, or a value such as f32:1.5 or i32:7"

// argument is one --arg: an array that becomes a buffer, local memory, or a value.
type argument struct {
	text  string
	file  string // of an array; "" is zeros
	array bool
	local runtime.Local
	typ   runtime.Type
	shape []int    // of zeros, or of the file once it was read
	data  []byte   // of the file
	value []any    // one Go number per lane
	out   []string // the file of --out
}

// parseArgument reads the text of an --arg. It opens no file.
func parseArgument(text string) (argument, error) {
	arg := argument{text: text}
	if file, ok := strings.CutPrefix(text, "@"); ok {
		if file == "" {
			return arg, fmt.Errorf("no file after @")
		}
		arg.file, arg.array = file, true
		return arg, nil
	}
	head, rest, ok := strings.Cut(text, ":")
	if !ok {
		return arg, fmt.Errorf("not one of %s", argumentForms)
	}
	if head != "zeros" && head != "local" {
		return arg, arg.parseValue(head, rest)
	}
	name, size, ok := strings.Cut(rest, ":")
	if !ok {
		return arg, fmt.Errorf("%s needs a type and a size: %s:f32:256", head, head)
	}
	typ, err := parseType(name)
	if err != nil {
		return arg, err
	}
	arg.typ = typ
	if head == "zeros" {
		arg.array = true
		arg.shape, err = parseShape(size, arg.typ.Size())
		return arg, err
	}
	shape, err := parseShape(size, arg.typ.Size())
	if err != nil {
		return arg, err
	}
	n := elements(shape) * arg.typ.Size()
	if n == 0 || n > math.MaxInt32 {
		return arg, fmt.Errorf("%s elements of local memory", size)
	}
	arg.local = runtime.Local(n)
	return arg, nil
}

// parseShape reads "32,32", of elements of that size.
func parseShape(text string, size int) ([]int, error) {
	var shape []int
	bytes := size
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q is not a size", part)
		}
		if n > 0 && bytes > math.MaxInt/n {
			return nil, fmt.Errorf("%s elements: %w", text, runtime.ErrTooLarge)
		}
		bytes *= max(n, 1)
		shape = append(shape, n)
	}
	return shape, nil
}

func elements(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// parseType is runtime.ParseType for types that values and buffers have.
func parseType(name string) (runtime.Type, error) {
	t, err := runtime.ParseType(name)
	if err == nil && t.Stored() != t {
		err = fmt.Errorf("no value or buffer has type %v: %w", t, runtime.ErrInvalidArgument)
	}
	return t, err
}

// parseValue parses the numbers of a value: one, or one per lane of a vector.
func (a *argument) parseValue(typ, text string) error {
	t, err := parseType(typ)
	if err != nil {
		return fmt.Errorf("%w; not one of %s", err, argumentForms)
	}
	a.typ = t
	for part := range strings.SplitSeq(text, ",") {
		v, err := parseNumber(a.typ, strings.TrimSpace(part))
		if err != nil {
			return err
		}
		a.value = append(a.value, v)
	}
	return nil
}

// goTypes has a value of the Go type that a launch takes for an element, but for those of 16 bits.
var goTypes = map[runtime.Type]any{runtime.F32: float32(0), runtime.F64: float64(0), runtime.I8: int8(0),
	runtime.I16: int16(0), runtime.I32: int32(0), runtime.I64: int64(0), runtime.U8: uint8(0), runtime.U16: uint16(0),
	runtime.U32: uint32(0), runtime.U64: uint64(0)}

// parseNumber reads a number as the Go type that a launch takes for an element.
func parseNumber(t runtime.Type, text string) (v any, err error) {
	switch bits := 8 * t.Size(); t {
	case runtime.F32, runtime.F64:
		v, err = strconv.ParseFloat(text, bits)
	case runtime.F16, runtime.BF16:
		f, err := strconv.ParseFloat(text, 64)
		switch {
		case err != nil:
			return nil, notNumber(t, text, err)
		case t == runtime.F16:
			return runtime.ToFloat16(f), nil
		}
		return runtime.ToBFloat16(f), nil
	case runtime.U8, runtime.U16, runtime.U32, runtime.U64:
		v, err = strconv.ParseUint(app.Decimal(text), 0, bits)
	default:
		v, err = strconv.ParseInt(app.Decimal(text), 0, bits)
	}
	if err != nil {
		return nil, notNumber(t, text, err)
	}
	return reflect.ValueOf(v).Convert(reflect.TypeOf(goTypes[t])).Interface(), nil
}

func notNumber(t runtime.Type, text string, err error) error {
	if numErr, ok := err.(*strconv.NumError); ok {
		err = numErr.Err
	}
	return fmt.Errorf("%q is not a number of type %v: %w", text, t, err)
}

// read gets the array of a file.
func (a *argument) read(ctx context.Context) error {
	if a.file == "" {
		return nil
	}
	array, err := files.ReadArray(ctx, a.file)
	if err != nil {
		return err
	}
	a.typ, a.shape, a.data = array.Type, array.Shape, array.Data
	return nil
}

// check compares the argument with the parameter it is for.
func (a *argument) check(p source.Param) error {
	switch {
	case p.Pointer && p.Space == source.Local:
		if a.local == 0 {
			return fmt.Errorf("takes local memory: write local:f32:256")
		}
	case p.Pointer:
		if !a.array {
			return fmt.Errorf("takes a buffer: write @file.npy or zeros:f32:1024")
		}
		if p.Kind != source.Void && p.Kind != source.Struct && p.Kind != a.typ.Kind() {
			return fmt.Errorf("takes elements of type %s, not %v", p.Kind, a.typ)
		}
	case a.value == nil:
		return fmt.Errorf("takes a value: write %s", example(p))
	case p.Kind == source.Struct:
		return fmt.Errorf("is a struct passed by value, which cannot be written here")
	case p.Kind != a.typ.Kind() || p.Width != len(a.value):
		return fmt.Errorf("takes a value such as %s", example(p))
	}
	return nil
}

// example returns an example of a value for a parameter.
func example(p source.Param) string {
	for _, t := range []runtime.Type{runtime.F32, runtime.F64, runtime.F16, runtime.I8, runtime.I16, runtime.I32,
		runtime.I64, runtime.U8, runtime.U16, runtime.U32, runtime.U64} {
		if t.Kind() == p.Kind {
			return t.String() + ":" + strings.TrimSuffix(strings.Repeat("1,", p.Width), ",")
		}
	}
	return "none: " + p.Kind.String() + " is no type of a parameter"
}

// launch returns the launch argument for a value or local memory.
func (a *argument) launch(p source.Param) any {
	if a.local != 0 {
		return a.local
	}
	if len(a.value) == 1 {
		return a.value[0]
	}
	var b []byte
	for _, v := range a.value {
		b, _ = binary.Append(b, binary.LittleEndian, v) // a fixed-size number: cannot fail
	}
	return append(b, make([]byte, max(p.Size-len(b), 0))...) // a vector of three has the size of four
}
