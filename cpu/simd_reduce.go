package cpu

// Reductions in vector instructions: of elements that are contiguous (rows), and of elements with a
// stride (columns).

import (
	"encoding/binary"

	"github.com/concord-compute/concord/internal/simd"
	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/source"
)

func init() {
	for code, op := range reductions {
		for _, name := range []string{op, op + "_columns"} {
			vector("reduce", "reduce_"+name, func(u *source.Unit) goFunc { return bindReduce(u, uint64(code), false) })
		}
	}
	for _, name := range []string{"mean", "mean_columns"} {
		vector("reduce", "reduce_"+name, func(u *source.Unit) goFunc { return bindReduce(u, 0, true) })
	}
}

// reductions are the reductions in the order of their numbers in csrc/cpu/reduce.h.
var reductions = []string{"sum", "max", "min", "prod", "argmax", "argmin"}

const (
	// columnsAcross is the number of columns for one call.
	columnsAcross = 512
	// longRow is the number of elements of a row, or bytes of a column, from which another thread saves time.
	longRow = 1 << 16
	// longColumn is the number of rows from which columns are divided among threads.
	longColumn = 1024
)

// vectorReduction is one launch of a reduce kernel in vector instructions.
type vectorReduction struct {
	reduction
	number, code, by uint64
	size, result     int // bytes of an element and of a result
	in, out          uint64
	overRows, across simd.Op
}

// bindReduce returns the function for all reductions but those of partial results, which are few.
func bindReduce(u *source.Unit, code uint64, mean bool) goFunc {
	if s, _ := u.Define("STAGE"); s == "2" {
		return nil
	}
	number := typeNumber(u, "T")
	return func(c *call) error {
		r := vectorReduction{reduction: reductionOf(c), number: number, code: code, size: typeSize(number),
			overRows: simd.ReduceRows, across: simd.ReduceColumns}
		if !kernels.IsFloat(r.typ) {
			r.overRows, r.across = simd.ReduceIntRows, simd.ReduceIntCols
		}
		if r.result = r.size; r.places {
			r.result = r.indexBytes()
		}
		r.in, r.out = c.at(0), c.at(1)
		switch {
		case (r.parts-1)*r.span >= r.axis: // nothing to reduce, or in some of the parts
			return natives[entry{"reduce", c.Kernel}].run(c)
		case r.stage == 1:
			return r.split()
		}
		if mean {
			r.by = uint64(r.axis)
		}
		if r.inner == 1 {
			return r.rows()
		}
		return r.columns()
	}
}

// last returns the last word of a call: the size of indices, or whether results are stored in the type of the
// computation.
func (r *vectorReduction) last(wide bool) uint64 {
	if r.places {
		return uint64(r.result)
	}
	return flag(wide)
}

func (r *vectorReduction) rows() error {
	c, set, bytes := r.call, r.call.device.simd, r.axis*r.size
	if r.outer < c.device.threads && r.axis >= 4*longRow {
		if r.places {
			return r.longPlaces()
		}
		return r.long(1)
	}
	return c.spread(r.outer, bytes, func(_ *call, lo, hi int) {
		set.run(r.overRows, r.number, r.code, uint64(hi-lo), uint64(r.axis), r.in+uint64(lo*bytes), r.out+uint64(lo*r.result),
			r.by, r.last(false))
	})
}

func (r *vectorReduction) columns() error {
	c, set := r.call, r.call.device.simd
	bands, few := (r.inner+columnsAcross-1)/columnsAcross, r.outer < c.device.threads
	// Few results with many rows each: the rows are read in the order of memory, in parts.
	if few && (r.axis >= longColumn || r.outer*bands < c.device.threads) && r.axis*r.inner >= 4*longRow && !r.places {
		return r.long(r.inner)
	}
	return c.spread(r.outer*bands, r.axis*min(r.inner, columnsAcross)*r.size, func(_ *call, lo, hi int) {
		for b := lo; b < hi; {
			o, j := b/bands, b%bands*columnsAcross
			n := min(r.inner-j, (hi-b)*columnsAcross)
			set.run(r.across, r.number, r.code, uint64(r.axis), uint64(r.inner), uint64(n),
				r.in+uint64((o*r.axis*r.inner+j)*r.size), r.out+uint64((o*r.inner+j)*r.result), r.by, r.last(false))
			b += (n + columnsAcross - 1) / columnsAcross
		}
	})
}

// whole reduces rows of inner elements each to one row, in the type of the computation.
func (r *vectorReduction) whole(number uint64, rows, inner int, from, to, by uint64) {
	set := r.call.device.simd
	if inner == 1 {
		set.run(r.overRows, number, r.code, 1, uint64(rows), from, to, by, r.last(true))
		return
	}
	set.run(r.across, number, r.code, uint64(rows), uint64(inner), uint64(inner), from, to, by, r.last(true))
}

// split computes the partial results of parts; for indices, first the places in the parts.
func (r *vectorReduction) split() error {
	size := kernels.SizeOf(r.partial)
	if r.places {
		r.out, r.result, size = r.call.at(2), 4, 4
	}
	err := r.call.spread(r.outer*r.parts, r.span*r.inner*r.size, func(_ *call, lo, hi int) {
		for i := lo; i < hi; i++ {
			row, first, n := r.part(i)
			r.whole(r.number, n, r.inner, r.in+uint64((row*r.axis+first)*r.inner*r.size), r.out+uint64(i*r.inner*size), 0)
		}
	})
	if err != nil || !r.places {
		return err
	}
	return valuesOfPlaces(r.call)
}

// valuesOfPlaces stores the values at places of parts, and makes them places in the whole axis.
var valuesOfPlaces = typedAll(valuesAt[float32], valuesAt[float64], valuesAt[int8], valuesAt[int16], valuesAt[int32],
	valuesAt[int64],
	valuesAt[uint8], valuesAt[uint16], valuesAt[uint32], valuesAt[uint64])

func valuesAt[F element](c *call) error {
	r := reductionOf(c)
	in, values, places := viewOf[F](c, 0, r.typ), viewOf[F](c, 1, r.partial), c.U32(2)
	return c.Parallel(r.outer*r.parts*r.inner, grain, func(lo, hi int) {
		for o := lo; o < hi; o++ {
			row, first, _ := r.part(o / r.inner)
			places[o] += uint32(first)
			values.set(o, in.at((row*r.axis+int(places[o]))*r.inner+o%r.inner))
		}
	})
}

// long computes few results from many elements each: it reduces parts of the elements in parallel,
// to results in the type of the computation, and then reduces those.
func (r *vectorReduction) long(inner int) error {
	c, set := r.call, r.call.device.simd
	threads, pieces := c.device.threads, 64
	if inner > 1 { // the intermediate results are read and written, too
		pieces = 8
	}
	length := max(longRow/inner, 16, r.axis/(pieces*threads))
	parts := (r.axis + length - 1) / length
	wide, size := r.number, r.size
	if kernels.IsFloat(r.typ) {
		wide, size = wideType(r.number)
	}
	sums, err := c.device.scratch.take(int64((parts + 1) * inner * size))
	if err != nil {
		return err
	}
	defer c.device.scratch.give(sums)
	between := address(sums.data)
	last := between + uint64(parts*inner*size)
	for o := range r.outer {
		from, to := r.in+uint64(o*r.axis*inner*r.size), r.out+uint64(o*inner*r.size)
		if err := c.ranges(parts, 1, threads, func(_ *call, p, _ int) {
			r.whole(r.number, min(length, r.axis-p*length), inner, from+uint64(p*length*inner*r.size),
				between+uint64(p*inner*size), 0)
		}); err != nil {
			return err
		}
		if wide == r.number {
			r.whole(wide, parts, inner, between, to, r.by)
			continue
		}
		r.whole(wide, parts, inner, between, last, r.by)
		set.run(simd.Narrow, r.number-2, 1, uint64(inner), last, uint64(inner), to, uint64(inner), 0, 0, 0) // of f16 or bf16
	}
	return nil
}

// longPlaces computes few places in rows of many elements each: those in parts of a row in parallel, and then which
// part has the element at the place in the row.
func (r *vectorReduction) longPlaces() error {
	c := r.call
	parts := 4 * c.device.threads
	length := (r.axis + parts - 1) / parts
	parts = (r.axis + length - 1) / length
	block, err := c.device.scratch.take(int64(parts*(8+r.size) + 8))
	if err != nil {
		return err
	}
	defer c.device.scratch.give(block)
	places, part, values := block.data[:8*parts], block.data[8*parts:][:8], block.data[8*parts+8:]
	in, out := c.Bytes(0), c.Bytes(1)
	place := func(n int, from []byte, to []byte) {
		c.device.simd.run(r.overRows, r.number, r.code, 1, uint64(n), address(from), address(to), 0, 8)
	}
	// Processors with vector instructions that are used here are little-endian.
	for o := range r.outer {
		row := in[o*r.axis*r.size:]
		if err := c.ranges(parts, 1, c.device.threads, func(_ *call, p, _ int) {
			place(min(length, r.axis-p*length), row[p*length*r.size:], places[8*p:])
		}); err != nil {
			return err
		}
		for p := range parts {
			at := p*length + int(binary.LittleEndian.Uint64(places[8*p:]))
			copy(values[p*r.size:][:r.size], row[at*r.size:])
		}
		place(parts, values, part)
		p := int(binary.LittleEndian.Uint64(part))
		at := uint64(p*length) + binary.LittleEndian.Uint64(places[8*p:])
		copy(out[o*r.result:][:r.result], binary.LittleEndian.AppendUint64(nil, at))
	}
	return nil
}

func init() { vector("topk", "topk", bindTopK) }
