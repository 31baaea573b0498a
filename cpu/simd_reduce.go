package cpu

// Reductions in vector instructions: of elements that are contiguous (rows), and of elements with a
// stride (columns).

import (
	"math"

	"github.com/concord-compute/concord/internal/simd"
	"github.com/concord-compute/concord/source"
)

func init() {
	for code, op := range reductions {
		for _, name := range []string{op, op + "_columns"} {
			vector("reduce", "reduce_"+name, func(u *source.Unit) goFunc { return bindReduce(u, uint64(code), 0) })
		}
	}
	for _, name := range []string{"mean", "mean_columns"} {
		vector("reduce", "reduce_"+name, func(u *source.Unit) goFunc { return bindReduce(u, 0, 1) })
	}
}

// reductions are the reductions in the order of their numbers in csrc/cpu/reduce.h.
var reductions = []string{"sum", "max", "min", "argmax", "argmin"}

const (
	firstPlace = 3 // the first of the reductions whose result is an index
	// columnsAcross is the number of columns for one call.
	columnsAcross = 512
	// longRow is the number of elements of a row, or bytes of a column, from which another thread saves time.
	longRow = 1 << 16
	// longColumn is the number of rows from which columns are divided among threads.
	longColumn = 1024
)

// reduction has the arguments of one launch of a reduce kernel.
type reduction struct {
	call               *call
	typ, code, by      uint64
	size, result       int // bytes of an element and of a result
	outer, axis, inner int
	in, out            uint64
}

func bindReduce(u *source.Unit, code, mean uint64) goFunc {
	typ := typeNumber(u, "T")
	return func(c *call) error {
		r := reduction{call: c, typ: typ, code: code, size: typeSize(typ), outer: int(c.Int(2)), axis: int(c.Int(3)), inner: int(c.Int(4))}
		if r.result = r.size; code >= firstPlace {
			r.result = 4
		}
		r.in, r.out, r.by = c.at(0), c.at(1), mean*uint64(r.axis)
		switch {
		case r.axis == 0:
			return natives[entry{"reduce", c.Kernel}].run(c)
		case r.inner == 1:
			return r.rows()
		}
		return r.columns()
	}
}

func (r *reduction) rows() error {
	c, set, bytes := r.call, r.call.device.simd, r.axis*r.size
	if r.outer < c.device.threads && r.axis >= 4*longRow && r.code < firstPlace {
		return r.long(1)
	}
	return c.spread(r.outer, bytes, func(lo, hi int) {
		set.run(simd.ReduceRows, r.typ, r.code, uint64(hi-lo), uint64(r.axis), r.in+uint64(lo*bytes), r.out+uint64(lo*r.result), r.by, 0)
	})
}

func (r *reduction) columns() error {
	c, set := r.call, r.call.device.simd
	bands, few := (r.inner+columnsAcross-1)/columnsAcross, r.outer < c.device.threads
	// Few results with many rows each: the rows are read in the order of memory, in parts.
	if few && (r.axis >= longColumn || r.outer*bands < c.device.threads) && r.axis*r.inner >= 4*longRow && r.code < firstPlace {
		return r.long(r.inner)
	}
	return c.spread(r.outer*bands, r.axis*min(r.inner, columnsAcross)*r.size, func(lo, hi int) {
		for b := lo; b < hi; {
			o, j := b/bands, b%bands*columnsAcross
			n := min(r.inner-j, (hi-b)*columnsAcross)
			set.run(simd.ReduceColumns, r.typ, r.code, uint64(r.axis), uint64(r.inner), uint64(n),
				r.in+uint64((o*r.axis*r.inner+j)*r.size), r.out+uint64((o*r.inner+j)*r.result), r.by, 0)
			b += (n + columnsAcross - 1) / columnsAcross
		}
	})
}

// long computes few results from many elements each: it reduces parts of the elements in parallel,
// to results in the type of the computation, and then reduces those.
func (r *reduction) long(inner int) error {
	c, set := r.call, r.call.device.simd
	threads, pieces := c.device.threads, 64
	if inner > 1 { // the intermediate results are read and written, too
		pieces = 8
	}
	length := max(longRow/inner, 16, r.axis/(pieces*threads))
	parts := (r.axis + length - 1) / length
	wide, size := wideType(r.typ)
	sums, err := c.device.scratch.take(int64((parts + 1) * inner * size))
	if err != nil {
		return err
	}
	defer c.device.scratch.give(sums)
	between := address(sums.data)
	last := between + uint64(parts*inner*size)
	reduce := func(typ uint64, rows int, from, to, by uint64) {
		if inner == 1 {
			set.run(simd.ReduceRows, typ, r.code, 1, uint64(rows), from, to, by, 1)
			return
		}
		set.run(simd.ReduceColumns, typ, r.code, uint64(rows), uint64(inner), uint64(inner), from, to, by, 1)
	}
	for o := range r.outer {
		from := r.in + uint64(o*r.axis*inner*r.size)
		if err := c.ranges(parts, 1, threads, func(p, _ int) {
			reduce(r.typ, min(length, r.axis-p*length), from+uint64(p*length*inner*r.size), between+uint64(p*inner*size), 0)
		}); err != nil {
			return err
		}
		reduce(wide, parts, between, last, r.by)
		set.run(simd.Cast, 0, wide, r.typ, uint64(inner), last, r.out+uint64(o*inner*r.size), 0)
	}
	return nil
}

func init() {
	vector("softmax", "softmax", bindSoftmax)
	vector("norm", "layer_norm", func(u *source.Unit) goFunc { return bindNorm(u, 3, 4) })
	vector("norm", "rms_norm", func(u *source.Unit) goFunc { return bindNorm(u, 2, 3) })
	vector("topk", "topk", bindTopK)
}

func bindSoftmax(u *source.Unit) goFunc {
	typ := typeNumber(u, "T")
	size := typeSize(typ)
	return func(c *call) error {
		rows, n := int(c.Int(2)), int(c.Int(3))
		all, in, out, set := rows*n, c.at(0), c.at(1), c.device.simd
		past := flag(overflows(all*size) && n*size >= 1024)
		return c.spread(rows, 4*size*n, func(lo, hi int) {
			at := uint64(lo * n * size)
			set.run(simd.Softmax, typ, uint64(hi-lo), uint64(n), in+at, out+at, past)
		})
	}
}

// bindNorm returns the function for layer_norm or rms_norm. o is the position of the argument out; the numbers of
// rows and columns and epsilon follow it.
func bindNorm(u *source.Unit, o, sizes int) goFunc {
	typ := typeNumber(u, "T")
	size := typeSize(typ)
	return func(c *call) error {
		rows, n := int(c.Int(sizes)), int(c.Int(sizes+1))
		all, in, gamma, out, beta := rows*n, c.at(0), c.at(1), c.at(o), uint64(0)
		if o == 3 {
			beta = c.at(2)
		}
		eps, past, set := math.Float64bits(c.Float(sizes+2)), flag(overflows(all*size) && n*size >= 1024), c.device.simd
		return c.spread(rows, 2*size*n, func(lo, hi int) {
			at := uint64(lo * n * size)
			set.run(simd.Norm, typ, uint64(hi-lo), uint64(n), in+at, gamma, beta, out+at, eps, past)
		})
	}
}
