package tensor

// Tensors in files: NumPy's .npy, Hugging Face's safetensors, and ggml's GGUF.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/concord-compute/concord/internal/npy"
	"github.com/concord-compute/concord/internal/safetensors"
	"github.com/concord-compute/concord/quant"
	"github.com/concord-compute/concord/quant/gguf"
	"github.com/concord-compute/concord/runtime"
)

// LoadNPY returns the array of an .npy file. A device that uses the memory of the host maps the file and copies
// nothing, so that nothing may change it before the scope is closed; to others the elements are copied.
func LoadNPY(s *Scope, path string) (*Tensor, error) {
	m, err := npy.Map(path)
	if errors.Is(err, runtime.ErrUnsupported) { // in another order of bytes, or where elements cannot be used in place
		a, err := npy.ReadFile(path)
		if err != nil {
			return nil, err
		}
		t := FromBytes(s, typeOf(a.Type.String()), a.Data, a.Shape...)
		return t, t.err
	}
	if err != nil {
		return nil, err
	}
	typ := typeOf(m.Type.String())
	if m.Bool {
		typ = Bool
	}
	shape := slices.Clone(m.Shape)
	if m.Fortran {
		slices.Reverse(shape)
	}
	t, err := s.mapped(typ, shape, m.Data, func() { m.Close() })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if m.Fortran {
		order := counts(0, len(shape))
		slices.Reverse(order)
		t = t.Permute(order...)
	}
	return t, t.err
}

// Load returns the tensors of a safetensors file by name, and its metadata. Files are mapped as LoadNPY does.
func Load(s *Scope, path string) (ts map[string]*Tensor, metadata map[string]string, err error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, nil, err
	}
	u := &users{close: f.Close} // the file stays mapped until the last tensor in it is freed
	u.n.Store(1)
	defer u.release()
	ts = map[string]*Tensor{}
	for _, name := range f.Names() {
		e, _ := f.Tensor(name)
		typ := Bool
		if e.Type != safetensors.Bool {
			elem, err := e.Type.Elem()
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %q: %w", path, name, err)
			}
			typ = typeOf(elem.String())
		}
		u.n.Add(1)
		if ts[name], err = s.mapped(typ, e.Shape, e.Data, u.release); err != nil {
			return nil, nil, fmt.Errorf("%s: %q: %w", path, name, err)
		}
	}
	return ts, f.Metadata(), nil
}

// LoadGGUF returns the tensors of a GGUF file by name, and its metadata, whose values have the types of gguf.Pair.
// Plain numbers are mapped as LoadNPY does, and keep their types. Quantized ones are F32 without padding, and are
// decoded when something is first computed from them, on the host and as a whole. Until then they take no memory of the
// device. The file has to stay as it is until the scope is closed. named says what the types with several meanings are,
// and 0 leaves that to the metadata. A tensor that cannot be decoded has the error of gguf.File.Matrix for its own; the
// others can be used.
func LoadGGUF(s *Scope, path string, named quant.Format) (ts map[string]*Tensor, metadata map[string]any, err error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, nil, err
	}
	u := &users{close: f.Close}
	u.n.Store(1)
	s.engine.mu.Lock()
	if err = s.ready(); err == nil {
		s.files = append(s.files, u)
	}
	s.engine.mu.Unlock()
	if err != nil {
		u.release()
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	ts, metadata = map[string]*Tensor{}, map[string]any{}
	for _, p := range f.Metadata() {
		metadata[p.Key] = p.Value
	}
	for _, e := range f.Tensors() {
		switch format, err := f.Format(e, named); {
		case err != nil:
			ts[e.Name] = fail(s, "load", fmt.Errorf("%s: %w", path, err))
		case format == 0:
			u.n.Add(1)
			if ts[e.Name], err = s.mapped(typeOf(strings.ToLower(e.Type.String())), e.Shape, e.Data, u.release); err != nil {
				return nil, nil, fmt.Errorf("%s: %q: %w", path, e.Name, err)
			}
		default:
			ts[e.Name] = s.encoded(f, e, named)
		}
	}
	return ts, metadata, nil
}

// encoded returns a tensor whose elements are decoded when they are needed.
func (s *Scope) encoded(f *gguf.File, e gguf.Tensor, named quant.Format) *Tensor {
	shape := f.Shape(e)
	if count(shape) == 0 {
		return Zeros(s, F32, shape...)
	}
	if _, err := f.Matrix(e, named); err != nil { // so that memory is taken only for what is there
		return fail(s, "load", err)
	}
	load := func(ctx context.Context) (*runtime.Buffer, error) {
		if err := errors.Join(ctx.Err(), s.ready()); err != nil {
			return nil, err
		}
		x := make([]float32, count(shape))
		if err := f.Floats(x, e, named); err != nil {
			return nil, err
		}
		return s.upload(ctx, F32, bytesOf(x))
	}
	if s.engine.standby != nil {
		return &Tensor{scope: s, typ: F32, shape: shape, data: s.fromHost(shape, load)}
	}
	return &Tensor{scope: s, typ: F32, shape: shape, data: &array{strides: rowMajor(shape), load: load}}
}

// users counts the tensors that use a mapped file, which is closed after the last one.
type users struct {
	n     atomic.Int64
	close func() error
}

func (u *users) release() {
	if u.n.Add(-1) == 0 {
		u.close()
	}
}

// typeOf returns the type of a name that is one.
func typeOf(name string) Type {
	t, _ := ParseType(name)
	return t
}

// mapped returns a tensor of mapped memory, which release unmaps: in place if the device can use it so, else as a copy.
func (s *Scope) mapped(t Type, shape []int, data []byte, release func()) (*Tensor, error) {
	if err := checkShape(shape); err != nil {
		release()
		return nil, err
	}
	if len(data) > 0 && s.engine.standby == nil {
		s.engine.mu.Lock()
		err := s.ready()
		var b *runtime.Buffer
		if err == nil {
			b, err = s.engine.device.Wrap(data, t.Stored(), runtime.ForReading, release)
		}
		if err == nil {
			s.buffers[b] = struct{}{}
			s.engine.mu.Unlock()
			return &Tensor{scope: s, typ: t, shape: slices.Clone(shape), data: dense(b, shape)}, nil
		}
		s.engine.mu.Unlock()
		// the latter if it is not aligned
		if !errors.Is(err, runtime.ErrUnsupported) && !errors.Is(err, runtime.ErrInvalidArgument) {
			release()
			return nil, err
		}
	}
	defer release()
	out := FromBytes(s, t, data, shape...)
	return out, out.err
}

// SaveNPY computes t and writes it to an .npy file, as a whole or not at all. Bool is written as U8 and BF16 as
// U16, since NumPy's format has no such types here.
func SaveNPY(ctx context.Context, path string, t *Tensor) error {
	raw, err := t.bytes(ctx)
	if err != nil {
		return err
	}
	return npy.WriteFile(path, npy.Array{Type: t.typ.Stored(), Shape: t.shape, Data: raw})
}

// Save computes tensors and writes them to a safetensors file, as a whole or not at all. Equal tensors give
// equal files. metadata may be nil.
func Save(ctx context.Context, path string, ts map[string]*Tensor, metadata map[string]string) error {
	var all []*Tensor
	for _, t := range ts {
		if t == nil || t.err != nil {
			return check("save", t).err
		}
		all = append(all, t.dense())
	}
	if err := Eval(ctx, all...); err != nil {
		return err
	}
	var entries []safetensors.Entry
	for name, t := range ts {
		raw, err := t.bytes(ctx)
		if err != nil {
			return fmt.Errorf("save %q: %w", name, err)
		}
		entries = append(entries, safetensors.Entry{Name: name, Type: safetensors.Type(t.typ.String()), Shape: t.shape,
			Data: raw})
	}
	return safetensors.Write(path, entries, metadata)
}

// bytes computes t and returns the bytes of its elements, in order.
func (t *Tensor) bytes(ctx context.Context) ([]byte, error) {
	if t.err != nil {
		return nil, t.err
	}
	raw := make([]byte, t.Len()*size(t.typ))
	return raw, t.readBytes(ctx, raw)
}
