package ann

// Files of vectors: .fvecs, .bvecs and .ivecs of the TEXMEX corpora, and .npy.

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/internal/npy"
	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
)

// LoadVectors reads vectors, row after row, and their dimension. The end of the name tells the format: .fvecs,
// .bvecs and .ivecs have for each vector its dimension and then floats, bytes or integers, .npy is NumPy's, a
// matrix of real numbers. Those of float64 are rounded to float.
//
// Integers beyond ±2^24, of which floats have only some, and finite numbers that are too large for a float are
// [runtime.ErrUnsupported], as is another name. A file that is not what its name says is [runtime.ErrCorrupt]
// or [runtime.ErrFormat], and a matrix of other than two dimensions [runtime.ErrDimension].
func LoadVectors(path string) (vectors []float32, dim int, err error) {
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".fvecs":
		return readVecs(path, 4, func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) })
	case ".bvecs":
		return readVecs(path, 1, func(b []byte) float32 { return float32(b[0]) })
	case ".ivecs":
		places, dim, err := LoadPlaces(path)
		if err != nil {
			return nil, 0, err
		}
		vectors, err = floats(path, dim, len(places), func(i int) float64 { return float64(places[i]) }, true)
		return vectors, dim, err
	case ".npy":
		return readMatrix(path)
	default:
		return nil, 0, fmt.Errorf("ann: %s: files of vectors end in .fvecs, .bvecs, .ivecs or .npy: %w", path,
			runtime.ErrUnsupported)
	}
}

// LoadPlaces reads the integers of an .ivecs file, such as the true neighbours of queries, with the errors of
// [LoadVectors].
func LoadPlaces(path string) (places []int32, dim int, err error) {
	if !strings.EqualFold(filepath.Ext(path), ".ivecs") { // whose bytes cannot tell floats from integers
		return nil, 0, fmt.Errorf("ann: %s: files of integers end in .ivecs: %w", path, runtime.ErrUnsupported)
	}
	return readVecs(path, 4, func(b []byte) int32 { return int32(binary.LittleEndian.Uint32(b)) })
}

// readVecs reads rows of a dimension, an int32, and so many components of size bytes.
func readVecs[T any](path string, size int, number func(b []byte) T) (all []T, dim int, err error) {
	m, err := file.Map(path)
	if err != nil {
		return nil, 0, err
	}
	defer m.Close()
	data := m.Data
	if len(data) < 4 {
		return nil, 0, fmt.Errorf("ann: %s: a file of %d bytes has no vectors: %w", path, len(data), runtime.ErrCorrupt)
	}
	dim = int(int32(binary.LittleEndian.Uint32(data)))
	if dim < 1 || dim > 1<<24 {
		return nil, 0, fmt.Errorf("ann: %s: the dimension %d: %w", path, dim, runtime.ErrFormat)
	}
	row := 4 + dim*size
	if len(data)%row != 0 {
		return nil, 0, fmt.Errorf("ann: %s: %d bytes are no number of vectors of %d components: %w", path, len(data), dim,
			runtime.ErrCorrupt)
	}
	all = make([]T, 0, len(data)/row*dim)
	for ; len(data) > 0; data = data[row:] {
		if d := int(int32(binary.LittleEndian.Uint32(data))); d != dim {
			return nil, 0, fmt.Errorf("ann: %s: vectors of dimension %d and %d: %w", path, dim, d, runtime.ErrCorrupt)
		}
		for at := 4; at < row; at += size {
			all = append(all, number(data[at:]))
		}
	}
	return all, dim, nil
}

func readMatrix(path string) (vectors []float32, dim int, err error) {
	a, err := npy.ReadFile(path)
	if err != nil {
		return nil, 0, err
	}
	if len(a.Shape) != 2 || a.Shape[1] < 1 {
		return nil, 0, fmt.Errorf("ann: %s: an array of shape %v is no list of vectors: %w", path, a.Shape,
			runtime.ErrDimension)
	}
	vectors = make([]float32, a.Len())
	switch a.Type {
	case runtime.F32:
		coding{Precision: FP32}.decode(vectors, a.Data)
	case runtime.F16:
		coding{Precision: FP16}.decode(vectors, a.Data)
	default:
		all := kernels.Decode(a.Type.String(), a.Data)
		vectors, err = floats(path, a.Shape[1], len(all), func(i int) float64 { return all[i] }, a.Type != runtime.F64 &&
			a.Type != runtime.BF16)
	}
	return vectors, a.Shape[1], err
}

// mostWhole is the integer up to which floats have all.
const mostWhole = 1 << 24

// floats converts n components of vectors, which are integers or not.
func floats(path string, dim, n int, component func(i int) float64, integers bool) ([]float32, error) {
	all := make([]float32, n)
	for i := range all {
		x := component(i)
		switch all[i] = float32(x); {
		case integers && math.Abs(x) > mostWhole:
			return nil, fmt.Errorf("ann: %s: component %d of vector %d is %.0f, and floats do not have all integers beyond "+
				"2^24: %w", path, i%dim, i/dim, x, runtime.ErrUnsupported)
		case math.IsInf(float64(all[i]), 0) && !math.IsInf(x, 0):
			return nil, fmt.Errorf("ann: %s: component %d of vector %d is %v, which is too large for a float: %w", path, i%dim,
				i/dim, x, runtime.ErrUnsupported)
		}
	}
	return all, nil
}

// SaveVectors writes vectors to a file that is replaced as a whole: .fvecs or .npy, as its name says; others
// are [runtime.ErrUnsupported]. A length that is no multiple of the dimension is [runtime.ErrDimension].
func SaveVectors(path string, vectors []float32, dim int) error {
	if dim < 1 || len(vectors)%dim != 0 {
		return fmt.Errorf("ann: %d components are no number of vectors of %d: %w", len(vectors), dim, runtime.ErrDimension)
	}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".npy":
		return npy.WriteFile(path, npy.Array{Type: runtime.F32, Shape: []int{len(vectors) / dim, dim},
			Data: bytesOf(vectors)})
	case ".fvecs":
	default:
		return fmt.Errorf("ann: %s: vectors are written to .fvecs or .npy: %w", path, runtime.ErrUnsupported)
	}
	return file.Replace(path, func(w io.Writer) error {
		row := make([]byte, 4+4*dim)
		binary.LittleEndian.PutUint32(row, uint32(dim))
		for ; len(vectors) > 0; vectors = vectors[dim:] {
			copy(row[4:], bytesOf(vectors[:dim]))
			if _, err := w.Write(row); err != nil {
				return err
			}
		}
		return nil
	})
}
