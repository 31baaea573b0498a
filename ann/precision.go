package ann

// How vectors are stored: the conversion of components, and back.

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"unsafe"

	"github.com/concord-compute/concord/runtime"

	"github.com/concord-compute/concord/runtime/driver"
)

// Precision says how an index stores the components of its vectors.
type Precision uint8

// The precisions. A query is converted like the vectors that it is compared with.
const (
	// FP32 stores float, 4 bytes.
	FP32 Precision = iota
	// FP16 stores half, 2 bytes, rounded to nearest even; distances are computed in float. An index refuses finite
	// components that would become infinite, 65520 and more; those of a query do.
	FP16
	// INT8 stores 127·x in one byte, cut to [-128, 127] and truncated toward zero; what is not finite becomes 0.
	// It is for components in [-1, 1]: larger ones saturate. Sums are exact.
	INT8
	// INT8Scaled stores x/s in one byte, rounded to nearest even and cut to [-127, 127], where 127·s is the
	// largest finite |x| of the vectors that the index got first. What is not finite becomes 0. One very large
	// component so leaves little of the others.
	INT8Scaled
)

var precisionNames = [...]string{"fp32", "fp16", "int8", "int8scaled"}

// String returns the name of a precision: fp32, fp16, int8, int8scaled.
func (p Precision) String() string {
	if int(p) < len(precisionNames) {
		return precisionNames[p]
	}
	return fmt.Sprintf("Precision(%d)", uint8(p))
}

// ParsePrecision returns the precision of a name, in any case; "" is [FP32]. Any other name is
// [driver.ErrUnsupportedPrecision].
func ParsePrecision(name string) (Precision, error) {
	if name == "" {
		return FP32, nil
	}
	for i, n := range precisionNames {
		if strings.EqualFold(name, n) {
			return Precision(i), nil
		}
	}
	return 0, fmt.Errorf("ann: precision %q is none of %s: %w", name, strings.Join(precisionNames[:], ", "),
		driver.ErrUnsupportedPrecision)
}

func (p Precision) check() error {
	if int(p) >= len(precisionNames) {
		return fmt.Errorf("ann: %v: %w", p, driver.ErrUnsupportedPrecision)
	}
	return nil
}

// typ returns the type of stored components.
func (p Precision) typ() runtime.Type {
	switch p {
	case FP16:
		return runtime.F16
	case INT8, INT8Scaled:
		return runtime.I8
	}
	return runtime.F32
}

func (p Precision) size() int { return [...]int{4, 2, 1, 1}[p] }

// coding converts components: a precision and, for bytes, the number that a stored 1 stands for.
type coding struct {
	Precision
	scale float64
}

// scaleOf returns the coding for vectors: INT8Scaled depends on their largest component.
func (p Precision) scaleOf(vectors []float32) coding {
	switch p {
	case INT8:
		return coding{p, 1. / 127}
	case INT8Scaled:
		return coding{p, cmp.Or(reachOf(vectors), 127) / 127}
	}
	return coding{p, 1}
}

// unit returns the factor of squared distances.
func (c coding) unit() float64 {
	switch c.Precision {
	case INT8:
		return 1. / 16129
	case INT8Scaled:
		return c.scale * c.scale
	}
	return 1
}

// encode stores the components of vectors in to, which has room for them.
func (c coding) encode(to []byte, vectors []float32) {
	switch c.Precision {
	case FP32:
		copy(to, bytesOf(vectors))
	case FP16:
		for i, h := 0, elements[runtime.Float16](to); i < len(vectors); i++ {
			h[i] = runtime.ToFloat16(float64(vectors[i]))
		}
	default:
		for i, b := 0, elements[int8](to); i < len(vectors); i++ {
			b[i] = c.code(vectors[i])
		}
	}
}

// code returns the byte for a component.
func (c coding) code(x float32) int8 {
	v := float64(x)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return 0
	case c.Precision == INT8:
		return int8(min(max(127*v, -128), 127))
	}
	return int8(min(max(math.RoundToEven(v/c.scale), -127), 127))
}

// decode returns stored components as numbers.
func (c coding) decode(to []float32, stored []byte) {
	switch c.Precision {
	case FP32:
		copy(to, elements[float32](stored))
	case FP16:
		for i, h := range elements[runtime.Float16](stored) {
			to[i] = h.Float32()
		}
	default:
		for i, b := range elements[int8](stored) {
			to[i] = float32(float64(b) * c.scale)
		}
	}
}

// PrecisionError returns the largest difference that storing makes in a component of a corpus, infinity if a
// component overflows, and 0 for [FP32]. Components that are not finite are left out. Anything but a precision
// of this package is [driver.ErrUnsupportedPrecision].
func PrecisionError(corpus []float32, p Precision) (float64, error) {
	if err := p.check(); err != nil {
		return 0, err
	}
	c, worst := p.scaleOf(corpus), 0.0
	var stored [4]byte
	var back [1]float32
	for i, x := range corpus {
		if v := float64(x); !math.IsNaN(v) && !math.IsInf(v, 0) {
			c.encode(stored[:c.size()], corpus[i:i+1])
			c.decode(back[:], stored[:c.size()])
			worst = max(worst, math.Abs(float64(back[0])-v))
		}
	}
	return worst, nil
}

// bytesOf returns the memory of a slice.
func bytesOf[T runtime.Element](x []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(*new(T))))
}

// elements returns memory, which is aligned for T, as its elements.
func elements[T runtime.Element](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(*new(T))))
}
