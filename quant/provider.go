package quant

// The implementations on this machine: vector instructions for the formats that are used most, and Go.

import (
	"math"
	goruntime "runtime"
	"sync"
	"unsafe"

	"github.com/concord-compute/concord/internal/simd"
)

// provider is one implementation.
type provider struct {
	name string
	set  simd.Set
}

var plain = &provider{name: "go"}

// providers returns those that this processor and this build have, the fastest first. The last is Go.
var providers = sync.OnceValue(func() (list []*provider) {
	for _, v := range []*provider{{name: "avx512", set: simd.AVX512}, {name: "avx2", set: simd.AVX2}, {name: "neon", set: simd.NEON}} {
		if simd.Supports(v.name) && v.set.Here() {
			list = append(list, v)
		}
	}
	return append(list, plain)
})

func fastest() *provider { return providers()[0] }

// vectors are the vector functions of formats.
var vectors = map[Format]struct{ encode, decode simd.Op }{
	I2SM1: {simd.QuantInterleavedEncode, simd.QuantInterleavedDecode},
	I2SM2: {simd.QuantInterleavedEncode, simd.QuantInterleavedDecode},
	TQ10:  {simd.QuantTQ1Encode, simd.QuantTQ1Decode},
	TQ20:  {simd.QuantTQ2Encode, simd.QuantTQ2Decode},
	Q40:   {simd.QuantQ4Encode, simd.QuantQ4Decode},
	Q80:   {simd.QuantQ8Encode, simd.QuantQ8Decode},
}

// words are the arguments of a vector function, and its results.
type words struct {
	in  [8]uint64
	out [2]float64
}

var spare = sync.Pool{New: func() any { return new(words) }}

// run calls a vector function with numbers, bytes, the number of groups and further words, and returns its results.
func (v *provider) run(op simd.Op, x []float32, bytes []byte, groups int, more ...uint64) [2]float64 {
	w := spare.Get().(*words)
	defer spare.Put(w)
	var pins goruntime.Pinner
	defer pins.Unpin()
	first, data := unsafe.Pointer(unsafe.SliceData(x)), unsafe.Pointer(unsafe.SliceData(bytes))
	pins.Pin(first)
	pins.Pin(w)
	if data != nil {
		pins.Pin(data)
	}
	w.in = [8]uint64{uint64(uintptr(first)), uint64(uintptr(data)), uint64(groups), uint64(uintptr(unsafe.Pointer(&w.out)))}
	copy(w.in[4:], more)
	v.set.Run(op, &w.in[0])
	return w.out
}

// largest is the function of that name.
func (v *provider) largest(x []float32) (float32, error) {
	if v == plain || len(x) == 0 {
		return largest(x)
	}
	pieces := (len(x) + pieceNumbers - 1) / pieceNumbers
	most := make([]float32, pieces)
	err := spread(pieces, pieceNumbers, func(lo, hi int) error {
		part := x[lo*pieceNumbers : min(hi*pieceNumbers, len(x))]
		out := v.run(simd.QuantLargest, part, nil, len(part))
		if out[1] != 0 {
			_, err := largest(part)
			return at(err, lo*pieceNumbers)
		}
		most[lo] = float32(out[0])
		return nil
	})
	if err != nil {
		return 0, err
	}
	for _, m := range most {
		most[0] = max(most[0], m)
	}
	return most[0], nil
}

// encode encodes whole groups by a vector function. It is false if there is none, and if something is odd about the
// numbers, which Go then finds.
func (v *provider) encode(f Format, to codes, x []float32) bool {
	op, ok := vectors[f]
	if !ok || v == plain {
		return false
	}
	n, one := 0, float32(0)
	switch f {
	case I2SM1, I2SM2:
		n, one = interleaved(Layout{Format: f}), exactOne(to.scale)
	}
	group, _, _ := f.codec().group(Layout{})
	out := v.run(op.encode, x, to.data, len(x)/group, uint64(n), word(to.scale), word(exactZero), word(one))
	return out[0] == 0
}

// decode is the reverse of encode. It is false if there is no such function.
func (v *provider) decode(f Format, x []float32, from codes) bool {
	op, ok := vectors[f]
	if !ok || v == plain {
		return false
	}
	group, _, _ := f.codec().group(Layout{})
	v.run(op.decode, x, from.data, len(x)/group, uint64(interleaved(Layout{Format: f})), word(from.scale))
	return true
}

// word is a float as an argument: the bits of a double.
func word(x float32) uint64 { return math.Float64bits(float64(x)) }
