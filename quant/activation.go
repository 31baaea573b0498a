package quant

// Activations, as the products with ternary weights take them.

import (
	"fmt"
	"math"

	"github.com/concord-compute/concord/runtime/driver"
)

// Activations stores each row of x, of cols numbers, as bytes: x times a scale of the row, rounded to the
// nearest, halves to even. The scale is 127 over the largest magnitude, which counts as 1e-5 at least. sums
// gets the sum of each row's bytes; it may be nil. Rows of more than 2^24 numbers, whose sums may need more
// than 32 bits, are driver.ErrTooLarge if there are sums.
func Activations(q []int8, scales []float32, sums []int32, x []float32, cols int) error {
	if cols < 1 || len(x) == 0 {
		return fmt.Errorf("quant: activations: rows of %d numbers, %d in all: %w", cols, len(x), driver.ErrInvalidArgument)
	}
	rows := len(x) / cols
	if len(x)%cols != 0 || len(q) < len(x) || len(scales) < rows || sums != nil && len(sums) < rows {
		return fmt.Errorf("quant: activations: %d numbers in rows of %d, %d bytes, %d scales and %d sums: %w",
			len(x), cols, len(q), len(scales), len(sums), driver.ErrDimension)
	}
	if sums != nil && cols > mostCols {
		return fmt.Errorf("quant: activations: sums of rows of %d numbers, more than %d: %w", cols, mostCols,
			driver.ErrTooLarge)
	}
	if _, err := fastest().largest(x); err != nil {
		return fmt.Errorf("quant: activations: %w", err)
	}
	return spread(rows, cols, func(lo, hi int) error {
		for r := lo; r < hi; r++ {
			row, to := x[r*cols:(r+1)*cols], q[r*cols:(r+1)*cols]
			most, _ := largest(row)
			s, sum := 127/max(most, leastMean), int32(0)
			for i, v := range row {
				to[i] = int8(max(-128, min(127, math.RoundToEven(float64(v*s)))))
				sum += int32(to[i])
			}
			if scales[r] = s; sums != nil {
				sums[r] = sum
			}
		}
		return nil
	})
}
