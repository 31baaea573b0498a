// Package gguf reads and writes files of ggml's format GGUF: metadata and named tensors, of which many are quantized.
//
// # Basics
//
// [Open] maps a file and checks its header; [File.Tensors] and [File.Value] give what is in it, in place.
// [File.Matrix] and [File.Floats] read a tensor as package quant has it. [Write] writes a file as a whole or not at
// all, and [NewEntry] makes an entry of a matrix. Versions 2 and 3 are read and written, in little-endian order.
//
// # Type numbers with several meanings
//
// A tensor's type is a number. The numbers 36 to 39 mean one thing in ggml and another in Microsoft's fork for ternary
// weights, which moreover stores its I2_S in an order that depends on the processor. Such a tensor is listed, and read
// only if a format is named: by the caller, or by the file's metadata, where Write keeps it under "concord.type.36".
// Otherwise the error is driver.ErrFormat and names all meanings.
//
// # Caveats
//
// Files are not trusted: a malformed header is driver.ErrFormat, missing data is driver.ErrCorrupt, and reading takes
// memory in proportion to the bytes that are present. An alignment that is no power of two from 8 to 2^20 is
// malformed, too. Big-endian files and other versions are driver.ErrUnsupported. Texts are any bytes, since
// tokens are. If another process shortens a mapped file, an access to the missing part ends the process.
package gguf

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/quant"
	"github.com/concord-compute/concord/runtime/driver"
)

// Type is ggml's number of a tensor's type.
type Type uint32

// The types that package quant or Go has. Numbers in 36 to 39 are those of Microsoft's fork.
const (
	F32  Type = 0
	F16  Type = 1
	Q40  Type = 2
	Q80  Type = 8
	Q4K  Type = 12
	Q6K  Type = 14
	I8   Type = 24
	I16  Type = 25
	I32  Type = 26
	I64  Type = 27
	F64  Type = 28
	BF16 Type = 30
	TQ10 Type = 34
	TQ20 Type = 35
	I2S  Type = 36
	TL1  Type = 38
	TL2  Type = 39
)

// kinds are ggml's types: a block of numbers and its bytes; 0 where that depends on whose type it is. A type whose name
// package quant has is of that format.
var kinds = func() map[Type]kind {
	all := map[Type]kind{
		F32: {"F32", 1, 4, 0}, F16: {"F16", 1, 2, 0}, Q40: {"Q4_0", 32, 18, 0}, 3: {"Q4_1", 32, 20, 0},
		6: {"Q5_0", 32, 22, 0}, 7: {"Q5_1", 32, 24, 0}, Q80: {"Q8_0", 32, 34, 0}, 9: {"Q8_1", 32, 36, 0},
		10: {"Q2_K", 256, 84, 0}, 11: {"Q3_K", 256, 110, 0}, Q4K: {"Q4_K", 256, 144, 0}, 13: {"Q5_K", 256, 176, 0},
		Q6K: {"Q6_K", 256, 210, 0}, 15: {"Q8_K", 256, 292, 0}, 16: {"IQ2_XXS", 256, 66, 0}, 17: {"IQ2_XS", 256, 74, 0},
		18: {"IQ3_XXS", 256, 98, 0}, 19: {"IQ1_S", 256, 50, 0}, 20: {"IQ4_NL", 32, 18, 0}, 21: {"IQ3_S", 256, 110, 0},
		22: {"IQ2_S", 256, 82, 0}, 23: {"IQ4_XS", 256, 136, 0}, I8: {"I8", 1, 1, 0}, I16: {"I16", 1, 2, 0},
		I32: {"I32", 1, 4, 0}, I64: {"I64", 1, 8, 0}, F64: {"F64", 1, 8, 0}, 29: {"IQ1_M", 256, 56, 0},
		BF16: {"BF16", 1, 2, 0}, TQ10: {"TQ1_0", 256, 54, 0}, TQ20: {"TQ2_0", 256, 66, 0},
		I2S: {"I2_S|IQ4_NL_4_4", 0, 0, 0}, 37: {"I8_S|IQ4_NL_4_8", 0, 0, 0}, TL1: {"TL1|IQ4_NL_8_8", 0, 0, 0},
		TL2: {"TL2|MXFP4", 0, 0, 0},
	}
	for t, k := range all {
		k.format, _ = quant.ParseFormat(k.name)
		all[t] = k
	}
	return all
}()

// kind is one of them.
type kind struct {
	name           string
	numbers, bytes int
	format         quant.Format // 0: none
}

// meanings are what the ambiguous numbers mean, and the formats that may be named for them.
var meanings = map[Type]struct {
	text    string
	formats []quant.Format
}{
	I2S: {"I2_S of Microsoft's fork, in the order of x86 (I2S_M1) or of ARM (I2S_M2), or the retired IQ4_NL_4_4 of ggml",
		[]quant.Format{quant.I2SM1, quant.I2SM2, quant.I2SM3}},
	37:  {"I8_S of Microsoft's fork or the retired IQ4_NL_4_8 of ggml", nil},
	TL1: {"TL1 of Microsoft's fork (MTL1) or the retired IQ4_NL_8_8 of ggml", []quant.Format{quant.MTL1}},
	TL2: {"TL2 of Microsoft's fork (MTL2) or MXFP4 of ggml", []quant.Format{quant.MTL2}},
}

// String returns ggml's name, both names of a number with several meanings, or "type 99" for a number that is not
// known.
func (t Type) String() string {
	if k, ok := kinds[t]; ok {
		return k.name
	}
	return "type " + strconv.FormatUint(uint64(t), 10)
}

// TypeOf returns the number under which a file has a format. It is false for formats that no file has.
func TypeOf(f quant.Format) (Type, bool) {
	for t, k := range kinds {
		if k.format == f && f != 0 {
			return t, true
		}
	}
	for t, m := range meanings {
		if slices.Contains(m.formats, f) {
			return t, true
		}
	}
	return 0, false
}

// Several reports whether forks give the number different meanings, so that a format has to be named for it.
func (t Type) Several() bool { _, ok := meanings[t]; return ok }

// Pair is one entry of the metadata. Value is a uint8, int8, uint16, int16, uint32, int32, uint64, int64,
// float32, float64, bool or string, a slice of these, or a []any of slices, which ggml itself does not read.
type Pair struct {
	Key   string
	Value any
}

// Tensor is one tensor of a file.
type Tensor struct {
	Name  string
	Type  Type
	Shape []int  // the numbers that are next to each other come last
	Data  []byte // of a type without a known size, up to the next tensor
}

// Len returns the number of elements.
func (t Tensor) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// matrix returns the shape as rows and columns.
func (t Tensor) matrix() (rows, cols int) {
	if len(t.Shape) == 0 {
		return 1, 1
	}
	if cols = t.Shape[len(t.Shape)-1]; cols > 0 {
		rows = t.Len() / cols
	}
	return rows, cols
}

// size returns the bytes of a shape, or false for a type without a known size.
func (t Type) size(shape []int) (int, bool, error) {
	n, err := count(shape)
	k := kinds[t]
	if err != nil || k.numbers == 0 {
		return 0, false, err
	}
	cols := 1
	if len(shape) > 0 {
		cols = shape[len(shape)-1]
	}
	if cols%k.numbers != 0 {
		return 0, false, fmt.Errorf("rows of %d are not whole blocks of %d: %w", cols, k.numbers, driver.ErrDimension)
	}
	return n / k.numbers * k.bytes, true, nil
}

// count returns the number of elements of a shape, if they may fit into memory.
func count(shape []int) (int, error) {
	n, zero := uint(1), false
	for _, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("shape %v: %w", shape, driver.ErrInvalidArgument)
		}
		if d == 0 {
			zero = true
			continue
		}
		high, low := bits.Mul(n, uint(d))
		if high != 0 || low > 1<<(bits.UintSize-6) {
			return 0, fmt.Errorf("shape %v: %w", shape, driver.ErrTooLarge)
		}
		n = low
	}
	if zero {
		return 0, nil
	}
	return int(n), nil
}

// File is a mapped file. Its methods may be called from any goroutine, except Close.
type File struct {
	Version uint32
	Align   int // of tensors, in bytes

	tensors  []Tensor
	index    map[string]int
	metadata []Pair
	keys     map[string]int
	mapping  *file.Mapping
}

// Open maps a file and reads its header. The caller owns the File and must close it.
func Open(path string) (*File, error) {
	f, mapping, err := file.Parse(path, parse)
	if err != nil {
		return nil, err
	}
	f.mapping = mapping
	return f, nil
}

// Close unmaps the file. Nothing may access the data of its tensors at the time or later. Closing again does nothing.
func (f *File) Close() error {
	f.tensors, f.index = nil, nil
	if f.mapping == nil {
		return nil
	}
	return f.mapping.Close()
}

// Tensors returns all tensors in the order of the header. The slice belongs to the file, and Data is its memory, which
// must not be written to.
func (f *File) Tensors() []Tensor { return f.tensors }

// Tensor returns the tensor of that name.
func (f *File) Tensor(name string) (Tensor, bool) {
	i, ok := f.index[name]
	if !ok {
		return Tensor{}, false
	}
	return f.tensors[i], true
}

// Metadata returns all entries of the metadata in the order of the file, to which the slice belongs.
func (f *File) Metadata() []Pair { return f.metadata }

// Value returns the value of a key of the metadata, or nil.
func (f *File) Value(key string) any {
	if i, ok := f.keys[key]; ok {
		return f.metadata[i].Value
	}
	return nil
}

// The keys under which Write keeps what the type number does not say.
const (
	keyType    = "concord.type."    // and the number: the name of the format
	keyTile    = "concord.tile"     // the three sizes of quant.Tile
	keyColumns = "concord.columns." // and the name of the tensor: the columns without padding
)

// Format returns the format of a tensor's codes, or 0 for tensors of plain numbers. named says what the numbers with
// several meanings are where the metadata does not; 0 leaves it to the metadata. It is driver.ErrFormat if
// neither says so, or if both do and contradict each other, and driver.ErrUnsupported for types that package
// quant lacks.
func (f *File) Format(t Tensor, named quant.Format) (quant.Format, error) {
	k, known := kinds[t.Type]
	m, several := meanings[t.Type]
	switch {
	case !known || k.numbers > 1 && k.format == 0:
		return 0, fmt.Errorf("gguf: tensor %.40q: %v is not implemented: %w", t.Name, t.Type, driver.ErrUnsupported)
	case !several:
		return k.format, nil
	}
	if name, ok := f.Value(keyType + strconv.Itoa(int(t.Type))).(string); ok {
		written, err := quant.ParseFormat(name)
		switch {
		case err != nil:
			return 0, fmt.Errorf("gguf: metadata: %w", err)
		case named != 0 && named != written:
			return 0, fmt.Errorf("gguf: tensor %.40q: the file's metadata says that type %d is %v, and not %v: %w", t.Name,
				uint32(t.Type), written, named, driver.ErrFormat)
		}
		named = written
	}
	if !slices.Contains(m.formats, named) {
		said := "nothing says which"
		if named != 0 {
			said = named.String() + " is none of these"
		}
		return 0, fmt.Errorf("gguf: tensor %.40q: type %d is %s, and %s: %w", t.Name, uint32(t.Type), m.text, said,
			driver.ErrFormat)
	}
	return named, nil
}

// Matrix returns a quantized tensor in place. A tensor of more than two dimensions is one matrix of all its rows.
// Format has the meaning of named and the errors; tensors of plain numbers are driver.ErrUnsupported.
func (f *File) Matrix(t Tensor, named quant.Format) (quant.Matrix, error) {
	format, err := f.Format(t, named)
	if err == nil && format == 0 {
		err = fmt.Errorf("gguf: tensor %.40q: %v is no quantized type: %w", t.Name, t.Type, driver.ErrUnsupported)
	}
	if err != nil {
		return quant.Matrix{}, err
	}
	rows, cols := t.matrix()
	m := quant.Matrix{Layout: quant.Layout{Format: format, Rows: rows, Cols: cols}, Data: t.Data}
	if tile, ok := f.Value(keyTile).([]uint32); ok && len(tile) == 3 && (format == quant.MTL1 || format == quant.MTL2) {
		m.Tile = quant.Tile{BM: int(tile[0]), BY: int(tile[1]), Sub: int(tile[2])}
	}
	if v := f.Value(keyColumns + t.Name); v != nil {
		k, ok := v.(uint64)
		if !ok || k < 1 || k > uint64(cols) {
			return quant.Matrix{}, fmt.Errorf("gguf: tensor %.40q: %v (%T) columns of %d are meant: %w", t.Name, v, v, cols,
				driver.ErrFormat)
		}
		m.K = int(k)
	}
	bytes, _, err := m.Sizes()
	if err == nil && bytes > len(t.Data) {
		err = fmt.Errorf("%d bytes needed, %d present: %w", bytes, len(t.Data), driver.ErrCorrupt)
	}
	if err != nil {
		return quant.Matrix{}, fmt.Errorf("gguf: tensor %.40q: %w", t.Name, err)
	}
	return m, nil
}
