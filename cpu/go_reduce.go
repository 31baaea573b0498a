package cpu

// Reductions in Go, and the arguments of a launch.

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/concord-compute/concord/kernels"
)

// reduction has the arguments of one launch of a reduce kernel. The family has checked them.
type reduction struct {
	call                      *call
	typ, partial              string // types of the elements and of partial results
	op                        string
	stage                     int // 0: in one launch, 1: of parts, 2: of partial results
	places                    bool
	outer, axis, inner, parts int
	span                      int // elements of a part
}

func reductionOf(c *call) reduction {
	r := reduction{call: c, typ: c.Type("T"), op: strings.Split(c.Kernel, "_")[1]}
	if r.partial = r.typ; r.typ == "f16" || r.typ == "bf16" {
		r.partial = "f32"
	}
	if s, ok := c.Define("STAGE"); ok {
		r.stage = int(s[0] - '0')
	}
	at := 2
	if r.places = strings.HasPrefix(r.op, "arg"); r.places && r.stage > 0 {
		at = 3
	}
	r.outer, r.axis, r.inner, r.parts = int(c.Int(at)), int(c.Int(at+1)), int(c.Int(at+2)), 1
	if r.span = r.axis; r.stage > 0 {
		r.parts = int(c.Int(at + 3))
		r.span = (r.axis + r.parts - 1) / r.parts
	}
	return r
}

// part returns the number of the row in memory, the first element in it and the number of elements of the
// reduction i of outer × parts, or, in stage 2, of outer.
func (r *reduction) part(i int) (row, first, n int) {
	switch r.stage {
	case 1:
		first = min(i%r.parts*r.span, r.axis)
		return i / r.parts, first, min(r.span, r.axis-first)
	case 2:
		return i, 0, r.parts
	}
	return i, 0, r.axis
}

// indexBytes returns the size of an index in the result.
func (r *reduction) indexBytes() int {
	if t, ok := r.call.Define("INDEX"); ok {
		return kernels.SizeOf(t)
	}
	return 4
}

func init() {
	run := typedAll(goReduce[float32], goReduce[float64], goReduce[int8], goReduce[int16], goReduce[int32],
		goReduce[int64],
		goReduce[uint8], goReduce[uint16], goReduce[uint32], goReduce[uint64])
	for _, op := range append([]string{"mean"}, reductions...) {
		native("reduce", "reduce_"+op, run)
		native("reduce", "reduce_"+op+"_columns", run)
	}
}

// overAxis calls f, in parallel, with the elements that are reduced to each result o, the place in memory of the
// first of them, and its place in the axis. If the inner dimension is long, the elements for 16
// neighbouring results are gathered at a time.
func overAxis[F element](r *reduction, in view[F], f func(o, at, first int, row []F)) error {
	inner, length, rows := r.inner, r.axis, r.outer
	switch r.stage {
	case 1:
		rows *= r.parts
	case 2:
		length = r.parts
	}
	_, _, most := r.part(0)
	return r.call.Parallel(rows*inner, max(1, grain/max(most, 1)), func(lo, hi int) {
		const width = 16
		scratch, gathered := make([]F, max(most, width)), make([]F, 0)
		for o := lo; o < hi; {
			row, first, n := r.part(o / inner)
			begin := (row*length+first)*inner + o%inner
			if inner == 1 {
				f(o, begin, first, in.read(begin, begin+n, scratch))
				o++
				continue
			}
			w := min(width, hi-o, inner-o%inner)
			gathered = slices.Grow(gathered[:0], w*n)[:w*n]
			for j := range n {
				at := begin + j*inner
				for i, x := range in.read(at, at+w, scratch) {
					gathered[i*n+j] = x
				}
			}
			for i := range w {
				f(o+i, begin+i, first, gathered[i*n:(i+1)*n])
			}
			o += w
		}
	})
}

func goReduce[F element](c *call) error {
	r := reductionOf(c)
	from, to := r.typ, r.typ
	switch r.stage {
	case 1:
		to = r.partial
	case 2:
		from = r.partial
	}
	in := viewOf[F](c, 0, from)
	if r.places {
		return goPlaces(&r, in)
	}
	out := viewOf[F](c, 1, to)
	return overAxis(&r, in, func(o, _, _ int, row []F) {
		switch r.op {
		case "sum":
			out.set(o, sumOf(row))
		case "mean":
			x := sumOf(row)
			if r.stage != 1 {
				x /= F(r.axis)
			}
			out.set(o, x)
		case "prod":
			out.set(o, productOf(row))
		case "max":
			out.set(o, largest(row))
		case "min":
			out.set(o, smallest(row))
		}
	})
}

// extremes returns the smallest and the largest value of a type; of floating types, the infinities.
func extremes[F element]() (lo, hi F) {
	if F(1)/F(2) != 0 {
		return F(math.Inf(-1)), F(math.Inf(1))
	}
	for hi = 1; hi*2+1 > hi; { // until it wraps
		hi = hi*2 + 1
	}
	if lo--; lo > 0 {
		return 0, hi
	}
	return -hi - 1, hi
}

// largest returns the maximum of x: the smallest value of the type if x is empty, NaN if it contains a NaN.
func largest[F element](x []F) F {
	m, _ := extremes[F]()
	for _, v := range x {
		if !(v <= m) && m == m {
			m = v
		}
	}
	return m
}

func smallest[F element](x []F) F {
	_, m := extremes[F]()
	for _, v := range x {
		if !(v >= m) && m == m {
			m = v
		}
	}
	return m
}

func productOf[F element](x []F) F {
	p := F(1)
	for _, v := range x {
		p *= v
	}
	return p
}

// goPlaces computes argmax and argmin: a NaN comes first, then the best value, and of equal ones that with the smallest
// place.
func goPlaces[F element](r *reduction, in view[F]) error {
	c, lo, hi, greatest := r.call, F(0), F(0), r.op == "argmax"
	var places, outPlaces []uint32
	var values view[F]
	out, bytes := []byte(nil), 0
	switch lo, hi = extremes[F](); r.stage {
	case 1:
		values, outPlaces = viewOf[F](c, 1, r.partial), c.U32(2)
	case 2:
		places, out, bytes = c.U32(1), c.Bytes(2), r.indexBytes()
	default:
		out, bytes = c.Bytes(1), r.indexBytes()
	}
	return overAxis(r, in, func(o, at, first int, row []F) {
		best, place := lo, uint32(math.MaxUint32)
		if !greatest {
			best = hi
		}
		for i, v := range row {
			k := uint32(first + i)
			if places != nil {
				k = places[at+i*r.inner]
			}
			switch {
			case v == best || v != v && best != best:
				if k < place {
					place = k
				}
			case v != v || best == best && (v > best) == greatest:
				best, place = v, k
			}
		}
		switch {
		case r.stage == 1:
			values.set(o, best)
			outPlaces[o] = place
			return
		case r.axis == 0:
			place = 0
		}
		putIndex(out, o, bytes, place)
	})
}

// putIndex stores x as element i of an array of integers of size bytes.
func putIndex(b []byte, i, size int, x uint32) {
	switch b = b[i*size:]; size {
	case 1:
		b[0] = byte(x)
	case 2:
		binary.NativeEndian.PutUint16(b, uint16(x))
	case 4:
		binary.NativeEndian.PutUint32(b, x)
	default:
		binary.NativeEndian.PutUint64(b, uint64(x))
	}
}
