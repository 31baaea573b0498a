package expr

// The machine in Go for maps with reductions.

import "unsafe"

// goMachine runs steps in Go.
type goMachine struct{ steps []Step }

func (g *goMachine) Compute(step int, l *Layout, memory [][]byte, params []uint64, lo, hi int) {
	g.steps[step].Block.Run(l, memory, params, lo, hi)
}

func (g *goMachine) Memory(bytes int) ([]byte, error) {
	words := make([]uint64, (bytes+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), bytes), nil
}

func (g *goMachine) Free() {}

func (g *goMachine) Rows(op Op, t Type, rows, n int, into, from []byte) {
	t, from = widenRows(t, rows*n, from)
	c, size, lanes := classOf(t), t.Size(), 1
	if op.locates() {
		firstBytes(op, c, rows, n, n, 1, into, from)
		return
	}
	for lanes < Tile && 4*lanes <= n {
		lanes *= 2
	}
	part := make([]byte, lanes*size)
	for i := range rows {
		row := from[i*n*size : (i+1)*n*size]
		copy(part, row)
		at := lanes
		for ; at+lanes <= n; at += lanes {
			combineBytes(op, c, lanes, part, row[at*size:])
		}
		combineBytes(op, c, n-at, part, row[at*size:])
		for w := lanes / 2; w > 0; w /= 2 {
			combineBytes(op, c, w, part, part[w*size:])
		}
		copy(into[i*size:], part[:size])
	}
	plusZero(op, c, rows, into)
}

// plusZero adds 0 to n sums of floating numbers, as other devices begin with it: the sum of numbers that are
// all -0 is 0.
func plusZero(op Op, c Class, n int, sums []byte) {
	switch {
	case op == Sum && c == ClassF32:
		for i := range slice[float32](sums)[:n] {
			slice[float32](sums)[i] += 0
		}
	case op == Sum && c == ClassF64:
		for i := range slice[float64](sums)[:n] {
			slice[float64](sums)[i] += 0
		}
	}
}

// Columns combines blocks of 128 rows, which keeps the errors of sums small.
func (g *goMachine) Columns(op Op, t Type, n, step, columns int, into, from []byte) {
	t, from = widenRows(t, (n-1)*step+columns, from)
	c, size := classOf(t), t.Size()
	if op.locates() {
		firstBytes(op, c, columns, n, 1, step, into, from)
		return
	}
	part := make([]byte, columns*size)
	for j := range n {
		row := from[j*step*size:]
		if j%128 == 0 {
			copy(part, row)
		} else {
			combineBytes(op, c, columns, part, row)
		}
		if j == min(127, n-1) {
			copy(into, part)
		} else if j%128 == 127 || j == n-1 {
			combineBytes(op, c, columns, into, part)
		}
	}
	plusZero(op, c, columns, into)
}

// widenRows returns n elements as registers have them, and their type there.
func widenRows(t Type, n int, from []byte) (Type, []byte) {
	wide := widened(t.Computed())
	if wide == t {
		return t, from
	}
	to := make([]byte, n*wide.Size())
	widen(t, n, to, from)
	return wide, to
}

// firstBytes sets into[i] to the place of the first extreme of n numbers of a class, from[i·row], from[i·row+step] and
// so on.
func firstBytes(op Op, c Class, results, n, row, step int, into, from []byte) {
	to := slice[int64](into)[:results]
	switch c {
	case ClassF32:
		firsts(op, n, row, step, to, slice[float32](from))
	case ClassF64:
		firsts(op, n, row, step, to, slice[float64](from))
	case ClassI32:
		firsts(op, n, row, step, to, slice[int32](from))
	case ClassI64:
		firsts(op, n, row, step, to, slice[int64](from))
	case ClassU32:
		firsts(op, n, row, step, to, slice[uint32](from))
	case ClassU64:
		firsts(op, n, row, step, to, slice[uint64](from))
	}
}

func firsts[N anyNumber](op Op, n, row, step int, to []int64, from []N) {
	for i := range to {
		best, place := from[i*row], 0
		for j := 1; j < n && best == best; j++ {
			x := from[i*row+j*step]
			if x != x || op == ArgLargest && x > best || op == ArgSmallest && x < best {
				best, place = x, j
			}
		}
		to[i] = int64(place)
	}
}

// combineBytes combines n numbers of a class.
func combineBytes(op Op, c Class, n int, into, from []byte) {
	switch c {
	case ClassF32:
		combineFloats(op, slice[float32](into)[:n], slice[float32](from))
	case ClassF64:
		combineFloats(op, slice[float64](into)[:n], slice[float64](from))
	case ClassI32:
		combineInts(op, slice[int32](into)[:n], slice[int32](from))
	case ClassI64:
		combineInts(op, slice[int64](into)[:n], slice[int64](from))
	case ClassU32:
		combineInts(op, slice[uint32](into)[:n], slice[uint32](from))
	case ClassU64:
		combineInts(op, slice[uint64](into)[:n], slice[uint64](from))
	}
}

func combineFloats[F floatNumber](op Op, into, from []F) {
	for i, x := range into {
		y := from[i]
		switch op {
		case Sum:
			into[i] = x + y
		case Product:
			into[i] = x * y
		case Smallest:
			if !(x < y || x != x) {
				into[i] = y
			}
		case Largest:
			if !(x > y || x != x) {
				into[i] = y
			}
		}
	}
}

func combineInts[I intNumber](op Op, into, from []I) {
	for i, x := range into {
		y := from[i]
		switch op {
		case Sum:
			into[i] = x + y
		case Product:
			into[i] = x * y
		case Smallest:
			into[i] = min(x, y)
		case Largest:
			into[i] = max(x, y)
		case All:
			into[i] = x & y
		case Any:
			into[i] = x | y
		}
	}
}
