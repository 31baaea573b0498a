package quant

// MTL1 and MTL2, the table formats of Microsoft's engine: codes are indices of sums of pairs or triples of
// activations, in the order in which its kernels read them.

import (
	"fmt"

	"github.com/concord-compute/concord/runtime/driver"
)

// order is the order of 8 rows within sub-blocks of 32 rows in MTL2.
var order = [4]int{0, 2, 1, 3}

func position(row int) int { return 8*order[row%32/8] + row%8 }

func checkTile(l Layout, unit int) error {
	t := l.Tile
	switch {
	case l.Block != 0 || l.Asymmetric:
		return fmt.Errorf("the format has no Block or Asymmetric: %w", driver.ErrInvalidArgument)
	case t.BM < 1 || t.BY < 1 || t.BM%t.Sub != 0 || t.BY%unit != 0:
		return fmt.Errorf("tile of %d × %d: a multiple of %d rows and of %d columns is needed: %w", t.BM, t.BY, t.Sub, unit,
			driver.ErrInvalidArgument)
	case l.Rows%t.BM != 0:
		return fmt.Errorf("the number of rows is not a multiple of the tile's %d: %w", t.BM, driver.ErrDimension)
	}
	return nil
}

func groupMTL1(l Layout) (int, int, int) { return l.Rows * l.Cols, l.Rows * l.Cols / 4, 0 }

func checkMTL1(l Layout) error {
	if l.Tile.Sub != 32 && l.Tile.Sub != 64 {
		return fmt.Errorf("a tile's sub-blocks have 32 or 64 rows, not %d: %w", l.Tile.Sub, driver.ErrInvalidArgument)
	}
	if err := checkTile(l, 256/l.Tile.Sub); err != nil {
		return err
	}
	if l.Cols%l.Tile.BY != 0 {
		return fmt.Errorf("the number of columns is not a multiple of the tile's %d: %w", l.Tile.BY, driver.ErrDimension)
	}
	return nil
}

// eachPair calls f for every pair of columns with the place of its first number, its byte and the shift in it.
func eachPair(l Layout, f func(at, b, shift int)) {
	t := l.Tile
	by := 256 / t.Sub
	for r := range l.Rows {
		block, sub, g, i := r/t.BM, r%t.BM/t.Sub, r%t.Sub/16, r%16
		for p := range l.Cols / 2 {
			c, tile, h := p/(t.BY/2), p%(t.BY/2)/(by/2), p%(by/2)/2
			b := (((((block*(l.Cols/t.BY)+c)*(t.BM/t.Sub)+sub)*(t.BY/by)+tile)*(t.Sub/16)+g)*(by/4)+h)*16 + i
			f(r*l.Cols+2*p, b, 4-p%2*4)
		}
	}
}

// pairOf returns the index of a pair.
func pairOf(x []float32) byte { return 3*trit(x[0], exactZero) + trit(x[1], exactZero) }

// putPair stores the numbers of an index; one that does not exist is of zeros.
func putPair(x []float32, index byte, value [4]float32) {
	if index > 8 {
		index = 4
	}
	x[0], x[1] = value[index/3], value[index%3]
}

func encodeMTL1(l Layout, to codes, x []float32) error {
	if err := checkExact(x, to.scale); err != nil {
		return err
	}
	clear(to.data)
	eachPair(l, func(at, b, shift int) { to.data[b] |= pairOf(x[at:]) << shift })
	return nil
}

func decodeMTL1(l Layout, x []float32, from codes) {
	value := values(from.scale)
	eachPair(l, func(at, b, shift int) { putPair(x[at:], from.data[b]>>shift&15, value) })
}

func badMTL1(_ Layout, from codes) (int, bool) { return findAbove(from.data, 8) }

// findAbove finds a byte with a nibble above most.
func findAbove(data []byte, most byte) (int, bool) {
	for i, b := range data {
		if b>>4 > most || b&15 > most {
			return i, true
		}
	}
	return 0, false
}

// parts returns the columns that are triples and the bytes of the three parts of MTL2.
func parts(l Layout) (triples, indices, signs, pairs int) {
	cols := l.Cols / l.Tile.BY * l.Tile.BY
	return cols, l.Rows * cols / 6, l.Rows * cols / 24, l.Rows * (l.Cols - cols) / 4
}

func groupMTL2(l Layout) (int, int, int) {
	_, indices, signs, pairs := parts(l)
	// The producer reserves room by a formula for 256 columns of pairs.
	reserved := (l.Cols-256)*l.Rows/3*5/8 + 256*l.Rows/2*4/8
	return l.Rows * l.Cols, (max(indices+signs+pairs, reserved) + 31) / 32 * 32, 0
}

func checkMTL2(l Layout) error {
	if l.Tile.Sub != 32 && l.Tile.Sub != 0 {
		return fmt.Errorf("a tile's sub-blocks have 32 rows, not %d: %w", l.Tile.Sub, driver.ErrInvalidArgument)
	}
	l.Tile.Sub = 32
	if err := checkTile(l, 24); err != nil {
		return err
	}
	if l.Cols%l.Tile.BY%32 != 0 {
		return fmt.Errorf("the %d columns after the last tile of %d are not a multiple of 32: %w", l.Cols%l.Tile.BY,
			l.Tile.BY, driver.ErrDimension)
	}
	return nil
}

// eachTriple calls f for every triple of columns with the place of its first number, its byte, the shift in it, and the
// byte and the bit of its sign.
func eachTriple(l Layout, f func(at, b, shift, sign int, bit byte)) {
	t := l.Tile
	cols, indices, _, _ := parts(l)
	for r := range l.Rows {
		block, sub := r/t.BM, r%t.BM/32
		for u := range cols / 3 {
			c, v := u/(t.BY/3), u%(t.BY/3)
			tile := (block*(cols/t.BY)+c)*(t.BM/32) + sub
			b := (tile*(t.BY/6)+v/2)*32 + position(r)
			bit := 15 - (2*(v%8) + r%32/16)
			sign := indices + (tile*(t.BY/24)+v/8)*32 + 2*(r%16) + bit/8
			f(r*l.Cols+3*u, b, 4-u%2*4, sign, 1<<(bit%8))
		}
	}
}

// eachLast calls f for every pair of the last columns, like eachPair.
func eachLast(l Layout, f func(at, b, shift int)) {
	t := l.Tile
	cols, indices, signs, _ := parts(l)
	last := l.Cols - cols
	for r := range l.Rows {
		block, sub := r/t.BM, r%t.BM/32
		for p := range last / 2 {
			b := (((block*(last/32)+p/16)*(t.BM/32)+sub)*8+p%16/2)*32 + position(r)
			f(r*l.Cols+cols+2*p, indices+signs+b, 4-p%2*4)
		}
	}
}

func encodeMTL2(l Layout, to codes, x []float32) error {
	if err := checkExact(x, to.scale); err != nil {
		return err
	}
	clear(to.data)
	eachTriple(l, func(at, b, shift, sign int, bit byte) {
		v := 9*int(trit(x[at], exactZero)) + 3*int(trit(x[at+1], exactZero)) + int(trit(x[at+2], exactZero)) - 13
		if v < 0 {
			v = -v
			to.data[sign] |= bit
		}
		to.data[b] |= byte(v) << shift
	})
	eachLast(l, func(at, b, shift int) { to.data[b] |= pairOf(x[at:]) << shift })
	return nil
}

func decodeMTL2(l Layout, x []float32, from codes) {
	value := values(from.scale)
	eachTriple(l, func(at, b, shift, sign int, bit byte) {
		v := int(from.data[b] >> shift & 15)
		if v > 13 {
			v = 0
		}
		if from.data[sign]&bit != 0 {
			v = -v
		}
		v += 13
		x[at], x[at+1], x[at+2] = value[v/9], value[v/3%3], value[v%3]
	})
	eachLast(l, func(at, b, shift int) { putPair(x[at:], from.data[b]>>shift&15, value) })
}

func badMTL2(l Layout, from codes) (int, bool) {
	_, indices, signs, pairs := parts(l)
	if i, ok := findAbove(from.data[:indices], 13); ok {
		return i, true
	}
	i, ok := findAbove(from.data[indices+signs:indices+signs+pairs], 8)
	return indices + signs + i, ok
}
