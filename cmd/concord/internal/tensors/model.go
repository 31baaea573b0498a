package tensors

// Models: files of tensors in the formats .gguf and .safetensors, as quantize and gguf convert read them.

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/internal/safetensors"
	"github.com/concord-compute/concord/quant"
	"github.com/concord-compute/concord/quant/gguf"
	"github.com/concord-compute/concord/runtime/driver"
)

// model is such a file.
type model struct {
	weights  []*weight
	metadata []gguf.Pair
	close    func() error
}

// weight is a tensor of a model.
type weight struct {
	name, typ string
	shape     []int
	bytes     int
	floats    func() ([]float32, error) // of floats and of quantized numbers
	plain     gguf.Entry                // of other numbers
}

func (w *weight) len() int {
	n := 1
	for _, d := range w.shape {
		n *= d
	}
	return n
}

// entry is the tensor in a file without further quantization. Its data is not waited for when ctx is done.
func (w *weight) entry(ctx context.Context) gguf.Entry {
	e, data := w.plain, w.plain.Data
	if w.floats != nil {
		e = gguf.Entry{Name: w.name, Type: gguf.F32, Shape: w.shape, Size: 4 * w.len()}
		data = func() ([]byte, error) {
			x, err := w.floats()
			if err != nil {
				return nil, err
			}
			b := make([]byte, 4*len(x)) // binary.Append clears it at once, while all goroutines may have to wait
			for i, v := range x {
				binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v))
			}
			return b, nil
		}
	}
	e.Data = func() ([]byte, error) { return apart(ctx, data) }
	return e
}

// openModel opens a file. named says what ambiguous types of a GGUF file are.
func openModel(name string, named quant.Format) (*model, error) {
	var m *model
	var err error
	switch strings.ToLower(filepath.Ext(name)) {
	case ".gguf":
		err = survive(name, func() (err error) { m, err = openGGUF(name, named); return err })
	case ".safetensors":
		if named != 0 {
			return nil, app.Usagef("--as %v: it is for types of .gguf files, and those of %s have one meaning", named, name)
		}
		err = survive(name, func() (err error) { m, err = openSafetensors(name); return err })
	default:
		return nil, app.Usagef("%s: the name of a model ends in .gguf or .safetensors", name)
	}
	return m, err
}

// aboutStorage reports whether a key of the metadata describes how the tensors of a file were stored, which
// another file does otherwise.
func aboutStorage(key string) bool {
	return strings.HasPrefix(key, "concord.") || key == "general.file_type" || key == "general.quantization_version"
}

func openGGUF(name string, named quant.Format) (*model, error) {
	f, err := gguf.Open(name)
	if err != nil {
		return nil, err
	}
	m := &model{close: f.Close}
	for _, p := range f.Metadata() {
		if !aboutStorage(p.Key) {
			m.metadata = append(m.metadata, p)
		}
	}
	for _, t := range f.Tensors() {
		w := &weight{name: t.Name, typ: t.Type.String(), shape: t.Shape, bytes: len(t.Data)}
		format, err := f.Format(t, named)
		if format != 0 && t.Len() > 0 {
			_, err = f.Matrix(t, named) // the data is as long as the shape says, for which memory is taken later
		}
		if err != nil && !errors.Is(err, driver.ErrUnsupported) {
			f.Close()
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		switch {
		case err == nil && (format != 0 || slices.Contains([]gguf.Type{gguf.F32, gguf.F16, gguf.BF16, gguf.F64}, t.Type)):
			if format != 0 {
				w.typ, w.shape = format.String(), f.Shape(t)
			}
			w.floats = func() ([]float32, error) {
				x := make([]float32, f.Numbers(t))
				return x, f.Floats(x, inMemory(t), named)
			}
		default:
			w.plain = gguf.Entry{Name: t.Name, Type: t.Type, Shape: t.Shape, Size: len(t.Data), Data: func() ([]byte, error) {
				return inMemory(t).Data, nil
			}}
		}
		m.weights = append(m.weights, w)
	}
	return m, nil
}

// inMemory returns a tensor with a copy of its mapped data: survive protects only its own goroutine, and
// package quant has more.
func inMemory(t gguf.Tensor) gguf.Tensor {
	t.Data = copied(t.Data)
	return t
}

// copied returns a copy of mapped data, made in pieces: one that reads from a disk for seconds would stop all
// goroutines when memory is collected.
func copied(from []byte) []byte {
	data := make([]byte, len(from))
	for at := 0; at < len(data); {
		at += copy(data[at:], from[at:min(len(from), at+1<<20)])
	}
	return data
}

// plainTypes are types of safetensors that GGUF has, too.
var plainTypes = map[safetensors.Type]gguf.Type{"f32": gguf.F32, "f16": gguf.F16, "bf16": gguf.BF16, "f64": gguf.F64,
	"i8": gguf.I8, "i16": gguf.I16, "i32": gguf.I32, "i64": gguf.I64}

// widerTypes are, for types that GGUF lacks, the narrowest that have the same numbers, or for u64 those below 2^63.
var widerTypes = map[safetensors.Type]struct {
	typ   gguf.Type
	bytes int
}{"bool": {gguf.I8, 1}, "u8": {gguf.I16, 2}, "u16": {gguf.I32, 4}, "u32": {gguf.I64, 8}, "u64": {gguf.I64, 8}}

// widened returns the n unsigned numbers of a tensor as signed ones of so many bytes. Those of 64 bits may be
// too large.
func widened(name string, from []byte, n, bytes int) ([]byte, error) {
	to := make([]byte, n*bytes)
	for i := range n {
		copy(to[i*bytes:], from[len(from)/n*i:len(from)/n*(i+1)])
		if to[(i+1)*bytes-1] > math.MaxInt8 {
			return nil, fmt.Errorf("tensor %s: number %d is too large for GGUF's integers of %d bits: %w", ui.Readable(name), i,
				8*bytes, driver.ErrUnsupported)
		}
	}
	return to, nil
}

func openSafetensors(path string) (*model, error) {
	in, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	m := &model{close: in.Close}
	for key, text := range in.Metadata() {
		if key != "general.alignment" && !aboutStorage(key) { // which is no text
			m.metadata = append(m.metadata, gguf.Pair{Key: key, Value: text})
		}
	}
	slices.SortFunc(m.metadata, func(x, y gguf.Pair) int { return strings.Compare(x.Key, y.Key) })
	for _, name := range in.Names() {
		e, _ := in.Tensor(name) // it is there
		t, ok := plainTypes[e.Type]
		wider, grows := widerTypes[e.Type]
		if !ok && !grows {
			in.Close()
			return nil, fmt.Errorf("%s: tensor %s: files of GGUF have no type %s: %w", path, ui.Readable(name), e.Type,
				driver.ErrUnsupported)
		}
		if len(e.Shape) > 4 {
			in.Close()
			return nil, fmt.Errorf("%s: tensor %s: files of GGUF have no more than 4 dimensions, not %d: %w", path,
				ui.Readable(name), len(e.Shape), driver.ErrUnsupported)
		}
		w := &weight{name: name, typ: strings.ToUpper(string(e.Type)), shape: e.Shape, bytes: len(e.Data)}
		w.plain = gguf.Entry{Name: name, Type: t, Shape: e.Shape, Size: len(e.Data), Data: func() ([]byte, error) {
			return copied(e.Data), nil
		}}
		if grows {
			w.plain.Type, w.plain.Size = wider.typ, wider.bytes*e.Len()
			w.plain.Data = func() ([]byte, error) { return widened(name, e.Data, e.Len(), wider.bytes) }
		}
		if strings.Contains(string(e.Type), "f") {
			w.floats = func() ([]float32, error) {
				x := make([]float32, e.Len())
				return x, new(gguf.File).Floats(x, gguf.Tensor{Name: name, Type: t, Shape: e.Shape, Data: e.Data}, 0)
			}
		}
		m.weights = append(m.weights, w)
	}
	return m, nil
}
