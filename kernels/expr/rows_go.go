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
	a, size, lanes := &arithmetics[classOf(t)], t.Size(), 1
	if op.locates() {
		a.firsts(op, rows, n, n, 1, into, from)
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
			a.combine(op, lanes, part, row[at*size:])
		}
		a.combine(op, n-at, part, row[at*size:])
		for w := lanes / 2; w > 0; w /= 2 {
			a.combine(op, w, part, part[w*size:])
		}
		copy(into[i*size:], part[:size])
	}
	a.plusZero(op, t, rows, into)
}

// plusZero adds 0 to n sums, as other devices begin with it: the sum of numbers that are all -0 is 0.
func (a *arithmetic) plusZero(op Op, t Type, n int, sums []byte) {
	if op == Sum && t.IsFloat() {
		a.combine(Sum, n, sums, make([]byte, n*t.Size()))
	}
}

// Columns combines blocks of 128 rows, which keeps the errors of sums small.
func (g *goMachine) Columns(op Op, t Type, n, step, columns int, into, from []byte) {
	t, from = widenRows(t, (n-1)*step+columns, from)
	a, size := &arithmetics[classOf(t)], t.Size()
	if op.locates() {
		a.firsts(op, columns, n, 1, step, into, from)
		return
	}
	part := make([]byte, columns*size)
	for j := range n {
		row := from[j*step*size:]
		if j%128 == 0 {
			copy(part, row)
		} else {
			a.combine(op, columns, part, row)
		}
		if j == min(127, n-1) {
			copy(into, part)
		} else if j%128 == 127 || j == n-1 {
			a.combine(op, columns, into, part)
		}
	}
	a.plusZero(op, t, columns, into)
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

func firsts[N anyNumber](op Op, results, n, row, step int, into, from []byte) {
	to, all := slice[int64](into)[:results], slice[N](from)
	for i := range to {
		best, place := all[i*row], 0
		for j := 1; j < n && best == best; j++ {
			x := all[i*row+j*step]
			if x != x || op == ArgLargest && x > best || op == ArgSmallest && x < best {
				best, place = x, j
			}
		}
		to[i] = int64(place)
	}
}

func combineFloats[F floatNumber](op Op, n int, into, from []byte) {
	to, with := slice[F](into)[:n], slice[F](from)[:n]
	for i, x := range to {
		y := with[i]
		switch op {
		case Sum:
			to[i] = x + y
		case Product:
			to[i] = x * y
		case Smallest:
			if !(x < y || x != x) {
				to[i] = y
			}
		case Largest:
			if !(x > y || x != x) {
				to[i] = y
			}
		}
	}
}

func combineInts[I intNumber](op Op, n int, into, from []byte) {
	to, with := slice[I](into)[:n], slice[I](from)[:n]
	for i, x := range to {
		y := with[i]
		switch op {
		case Sum:
			to[i] = x + y
		case Product:
			to[i] = x * y
		case Smallest:
			to[i] = min(x, y)
		case Largest:
			to[i] = max(x, y)
		case All:
			to[i] = x & y
		case Any:
			to[i] = x | y
		}
	}
}
