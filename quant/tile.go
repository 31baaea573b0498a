package quant

// W2A8_M4, the format for GPUs: tiles of 16 rows and 32 columns in the order in which their threads read them.

import (
	"fmt"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/half"
)

const (
	tileRows, tileCols = 16, 32
	tileNumbers        = tileRows * tileCols
)

// tilePlaces has the place in a tile, row by row, of the number with the code of two bits at a place of its bytes.
var tilePlaces = func() (places [tileNumbers]int) {
	for stored := range places {
		i, j := stored/tileCols, stored%tileCols
		t := 2*i + j/16
		row, col := t/16*8+t%8, j%16+16*(t%16/8)
		word, o := stored/16, stored%16
		places[word*16+4*(o%4)+o/4] = row*tileCols + col // bits 8·(o mod 4) + 2·(o/4) of a word
	}
	return places
}()

func groupTiles(l Layout) (int, int, int) {
	return l.Rows * l.Cols, l.Rows * l.Cols / 4, (l.Rows-1)/segment(l) + 1
}

// segment returns the rows that share a scale.
func segment(l Layout) int {
	if l.Block == 0 || l.Block > l.Rows {
		return l.Rows
	}
	return min(l.Block, l.Rows)
}

func checkTiles(l Layout) error {
	switch {
	case l.Tile != (Tile{}) || l.Asymmetric || l.Block < 0:
		return fmt.Errorf("the format has no Tile or Asymmetric, and no negative Block: %w", driver.ErrInvalidArgument)
	case l.Rows%tileRows != 0 || l.Cols%tileCols != 0:
		return fmt.Errorf("rows have to be a multiple of %d, columns of %d: %w", tileRows, tileCols, driver.ErrDimension)
	}
	return nil
}

// eachTile calls f with every number's place in the matrix, byte and shift.
func eachTile(l Layout, f func(at, b, shift int)) {
	for r := 0; r < l.Rows; r += tileRows {
		for c := 0; c < l.Cols; c += tileCols {
			base := (r*l.Cols + c*tileRows) / 4
			for i, place := range tilePlaces {
				f((r+place/tileCols)*l.Cols+c+place%tileCols, base+i/4, 2*(i%4))
			}
		}
	}
}

func encodeTiles(l Layout, to codes, x []float32) error {
	most, err := largest(x)
	if err != nil {
		return err
	}
	if bf := half.ToBFloat16(float64(most)).Float32(); bf-bf != 0 {
		return tooLarge(x, " for a bfloat16")
	}
	for i := range to.scales {
		lo := i * segment(l) * l.Cols
		rows := x[lo:min(lo+segment(l)*l.Cols, len(x))]
		s, _ := largest(rows)
		if err := checkExact(rows, s); err != nil {
			return at(err, lo)
		}
		to.scales[i] = half.ToBFloat16(float64(s)).Float32()
	}
	clear(to.data)
	eachTile(l, func(at, b, shift int) { to.data[b] |= (trit(x[at], exactZero) + 1) << shift })
	return nil
}

func decodeTiles(l Layout, x []float32, from codes) {
	value := make([][4]float32, len(from.scales))
	for i, s := range from.scales {
		value[i] = [4]float32{0 * s, -1 * s, 0 * s, s}
	}
	n := segment(l) * l.Cols
	eachTile(l, func(at, b, shift int) { x[at] = value[at/n][from.data[b]>>shift&3] })
}

// badTiles finds a byte with a code 0.
func badTiles(_ Layout, from codes) (int, bool) {
	for i, c := range from.data {
		if (c|c>>1)&0x55 != 0x55 {
			return i, true
		}
	}
	return 0, false
}
