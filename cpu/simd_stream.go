package cpu

// What runs at the speed of memory in vector instructions: arithmetic by element,
// saxpy, sums and means of rows, softmax.

import (
	"math"
	"strings"
	"unsafe"

	"github.com/concord-compute/concord/source"
)

func init() {
	for code, op := range []string{"add", "sub", "mul", "div"} {
		names := []string{op, op + "_scalar"}
		if op == "sub" || op == "div" { // the others commute
			names = append(names, "scalar_"+op)
		}
		for _, name := range names {
			vector("arith", name, func(u *source.Unit) Func { return bindArith(u, name, uint64(code)) })
		}
	}
	vector("saxpy", "saxpy", bindSaxpy)
	for _, name := range []string{"sum", "mean", "sum_columns", "mean_columns"} {
		vector("reduce", "reduce_"+name, func(u *source.Unit) Func { return bindSum(u, "reduce_"+name) })
	}
	vector("softmax", "softmax", bindSoftmax)
}

// simdFloat returns the size of a program's elements if they are floats or doubles,
// and otherwise 0.
func simdFloat(u *source.Unit) int {
	switch t, ok := unitDefine(u, "T"); {
	case !ok || t == "f32":
		return 4
	case t == "f64":
		return 8
	}
	return 0
}

// elements returns the address of buffer argument i, of n elements at least.
func (c *Call) elements(i, n, size int) uint64 {
	data := c.Bytes(i)
	if n < 0 || n > len(data)/size {
		c.fail(i, "%d elements where %d are used", len(data)/size, n)
	}
	at := address(data)
	if at%uint64(size) != 0 {
		c.fail(i, "offset %d is not a multiple of the element's %d bytes", c.args[i].Memory.Offset, size)
	}
	return at
}

// spread calls f for ranges of [0, n), on one thread where bytes per index make more
// not worth it.
func (c *Call) spread(n, bytes int, f func(lo, hi int)) error {
	if c.device.threads == 1 || !threadsPay(0, float64(n)*float64(bytes)) {
		if n > 0 {
			f(0, n)
		}
		return nil
	}
	return c.Parallel(n, 1<<14/max(bytes, 1)+1, f)
}

// overflows says whether a result of n bytes is better stored past the caches.
func overflows(n int) bool {
	_, l3 := cacheSizes()
	return n > l3
}

const opAxpy = 4

func bindArith(u *source.Unit, name string, code uint64) Func {
	size := simdFloat(u)
	if size == 0 {
		return nil
	}
	op := arith32
	if size == 8 {
		op = arith64
	}
	var scalar [2]bool
	scalar[0], scalar[1] = strings.HasPrefix(name, "scalar_"), strings.HasSuffix(name, "_scalar")
	return func(c *Call) error {
		n := int(c.Int(3))
		out := c.elements(2, n, size)
		var at [2]uint64
		var value [2]float64
		for k := range at {
			if scalar[k] {
				value[k] = c.Float(k)
			} else {
				at[k] = c.elements(k, n, size)
			}
		}
		past, set := flag(overflows(n*size)), c.device.simd
		part := func(lo, hi int) {
			a, b := at[0], at[1]
			if !scalar[0] {
				a += uint64(lo * size)
			}
			if !scalar[1] {
				b += uint64(lo * size)
			}
			set.run(op, code, uint64(hi-lo), out+uint64(lo*size), a, b, math.Float64bits(value[0]), math.Float64bits(value[1]), past)
		}
		return c.spread(n, 3*size, part)
	}
}

// bindSaxpy: y = a·x + y.
func bindSaxpy(u *source.Unit) Func {
	size := simdFloat(u)
	if size == 0 {
		return nil
	}
	op := arith32
	if size == 8 {
		op = arith64
	}
	return func(c *Call) error {
		n := int(c.Int(3))
		by, x, y, set := math.Float64bits(c.Float(0)), c.elements(1, n, size), c.elements(2, n, size), c.device.simd
		return c.spread(n, 3*size, func(lo, hi int) {
			set.run(op, opAxpy, uint64(hi-lo), y+uint64(lo*size), x+uint64(lo*size), 0, by, 0, 0)
		})
	}
}

// bindSum serves rows that are contiguous; the others are Go's.
func bindSum(u *source.Unit, name string) Func {
	size, inGo := simdFloat(u), natives[entry{"reduce", name}].run
	if size == 0 {
		return nil
	}
	op := sumRows32
	if size == 8 {
		op = sumRows64
	}
	return func(c *Call) error {
		outer, axis, inner := int(c.Int(2)), int(c.Int(3)), int(c.Int(4))
		if inner != 1 || axis == 0 || outer == 0 || axis > math.MaxInt/8/outer {
			return inGo(c)
		}
		in, out, set := c.elements(0, outer*axis, size), c.elements(1, outer, size), c.device.simd
		by := uint64(0)
		if strings.Contains(name, "mean") {
			by = uint64(axis)
		}
		if outer >= c.device.threads || by != 0 || !threadsPay(0, float64(axis*size)) {
			return c.spread(outer, axis*size, func(lo, hi int) {
				set.run(op, uint64(hi-lo), uint64(axis), in+uint64(lo*axis*size), out+uint64(lo*size), by)
			})
		}
		return c.sumLong(op, size, outer, axis, in, out)
	}
}

// sumLong sums few long rows: parts of them in parallel, then their sums.
func (c *Call) sumLong(op simdOp, size, outer, axis int, in, out uint64) error {
	const length = 1 << 16
	parts, set := (axis+length-1)/length, c.device.simd
	sums, err := c.device.scratch.take(int64(parts * size))
	if err != nil {
		return err
	}
	defer c.device.scratch.give(sums)
	for row := range outer {
		from, to := in+uint64(row*axis*size), address(sums.data)
		if err := c.Parallel(parts, 1, func(lo, hi int) {
			for p := lo; p < hi; p++ {
				set.run(op, 1, uint64(min(length, axis-p*length)), from+uint64(p*length*size), to+uint64(p*size), 0)
			}
		}); err != nil {
			return err
		}
		set.run(op, 1, uint64(parts), to, out+uint64(row*size), 0)
	}
	return nil
}

// bindSoftmax leaves rows with a NaN or an infinity to Go.
func bindSoftmax(u *source.Unit) Func {
	if simdFloat(u) != 4 {
		return nil
	}
	return func(c *Call) error {
		rows, n := int(c.Int(2)), int(c.Int(3))
		if rows == 0 || n == 0 {
			return nil
		}
		if n > math.MaxInt/8/rows {
			c.fail(3, "%d rows of %d are more than there can be", rows, n)
		}
		in, out, set := c.elements(0, rows*n, 4), c.elements(1, rows*n, 4), c.device.simd
		odd, err := c.device.scratch.take(int64(rows+1) * 16)
		if err != nil {
			return err
		}
		defer c.device.scratch.give(odd)
		list := unsafe.Slice((*int64)(unsafe.Pointer(&odd.data[0])), 2*(rows+1))
		x, y := c.F32(0), c.F32(1)
		return c.spread(rows, 16*n, func(lo, hi int) {
			at := address(odd.data) + uint64(lo)*16
			set.run(softmaxRows32, uint64(hi-lo), uint64(n), in+uint64(lo*n*4), out+uint64(lo*n*4), at+8, at)
			for _, row := range list[2*lo+1:][:list[2*lo]] {
				r := (lo + int(row)) * n
				softmaxRow(x[r:r+n], y[r:r+n])
			}
		})
	}
}
