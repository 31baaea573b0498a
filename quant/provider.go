package quant

// The implementations on this machine: vector instructions for most formats, and Go.

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
	for _, v := range []*provider{{name: "avx512", set: simd.AVX512}, {name: "avx2", set: simd.AVX2},
		{name: "neon", set: simd.NEON}} {
		if simd.Supports(v.name) && v.set.Here() {
			list = append(list, v)
		}
	}
	return append(list, plain)
})

func fastest() *provider { return providers()[0] }

// words are the arguments of a vector function, and its results.
type words struct {
	in  [8]uint64
	out [2]float64
}

var spare = sync.Pool{New: func() any { return new(words) }}

// run calls a vector function with numbers, codes, the number of groups and further words, and returns its
// results. A word of the address of scales is that of c.scales.
func (v *provider) run(op simd.Op, x []float32, c codes, groups int, more ...uint64) [2]float64 {
	w := spare.Get().(*words)
	defer spare.Put(w)
	var pins goruntime.Pinner
	defer pins.Unpin()
	first, data := unsafe.Pointer(unsafe.SliceData(x)), unsafe.Pointer(unsafe.SliceData(c.data))
	pins.Pin(first)
	pins.Pin(w)
	if data != nil {
		pins.Pin(data)
	}
	if c.scales != nil {
		pins.Pin(unsafe.SliceData(c.scales))
	}
	w.in = [8]uint64{uint64(uintptr(first)), uint64(uintptr(data)), uint64(groups),
		uint64(uintptr(unsafe.Pointer(&w.out)))}
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
		out := v.run(simd.QuantLargest, part, codes{}, len(part))
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

// encode encodes groups by a vector function, and a last one that is shorter by Go. It is false if there is no
// such function or no whole group, and if something is odd about the numbers, which Go then finds.
func (v *provider) encode(p *plan, to codes, x []float32) bool {
	op := p.vector.encode
	if op == 0 || v == plain {
		return false
	}
	groups := len(x) / p.numbers
	if groups == 0 || v.run(op, x, to, groups, p.words(to)...)[0] != 0 {
		return false
	}
	rest, x := p.after(groups, to, x)
	return len(x) == 0 || p.codec.encode(p.Layout, rest, x) == nil
}

// decode is the reverse of encode. It is false if there is no such function or no whole group.
func (v *provider) decode(p *plan, x []float32, from codes) bool {
	op := p.vector.decode
	if op == 0 || v == plain {
		return false
	}
	groups := len(x) / p.numbers
	if groups == 0 {
		return false
	}
	v.run(op, x, from, groups, p.words(from)...)
	if rest, x := p.after(groups, from, x); len(x) > 0 {
		p.codec.decode(p.Layout, x, rest)
	}
	return true
}

// words are the further words of vector functions for codes.
func (p *plan) words(c codes) []uint64 {
	scales := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(c.scales))))
	switch {
	case p.block != nil:
		return []uint64{uint64(uintptr(unsafe.Pointer(unsafe.SliceData(p.form))))}
	case p.quarter != nil:
		return []uint64{uint64(p.numbers), scales, uint64(uintptr(unsafe.Pointer(&p.quarter.levels))),
			uint64(p.quarter.kind) | uint64(p.scales-1)<<8}
	case p.scales > 0:
		return []uint64{uint64(p.numbers), scales}
	case p.tail:
		return []uint64{uint64(p.bytes), word(c.scale), word(exactZero), word(exactOne(c.scale))}
	}
	return nil
}

// after returns what is behind some groups.
func (p *plan) after(groups int, c codes, x []float32) (codes, []float32) {
	c.data, x = c.data[groups*p.bytes:], x[groups*p.numbers:]
	if p.scales > 0 {
		c.scales = c.scales[groups*p.scales:]
	}
	return c, x
}

// word is a float as an argument: the bits of a double.
func word(x float32) uint64 { return math.Float64bits(float64(x)) }
