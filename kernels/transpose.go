package kernels

// The family transpose and its cases.

import (
	"fmt"

	"github.com/concord-compute/concord/source"
)

func init() {
	Register(Family{
		ID: "transpose", Doc: "each matrix of a batch transposed",
		Kernels: []string{"transpose"}, Types: allTypes, Defines: []string{"T", "TILE"},
		Source: sources, Tile: transposeTile, Arguments: transposeArguments, Reference: refTranspose, Bound: exactly,
		Rows: transposeRows,
		Cases: func(f *Family) (list []Case) {
			for _, t := range f.Types {
				for i, s := range [][3]int{{1, 1, 1}, {0, 3, 1}, {31, 33, 1}, {1, 257, 1}, {16, 16, 2}, {17, 15, 3}, {127, 1, 2},
					{255, 257, 1}} {
					if t != "f32" && i != 2 && i != 5 {
						continue
					}
					rows, cols, batch := s[0], s[1], s[2]
					n := rows * cols * batch
					list = append(list, f.Case("transpose", t, fmt.Sprintf("%d×%d×%d", batch, rows, cols), batch, rows, cols).
						with(in(t, n, Uniform(t, n, 4, -1e4, 1e4)), out(t, n), uintArg(rows), uintArg(cols)).
						exact("bits are moved"))
				}
			}
			n := 2 * 65 * 257
			return append(list, f.Case("transpose", "f32", "2×65×257 TILE=8", 2, 65, 257).
				with(in("f32", n, Uniform("f32", n, 4, -1e4, 1e4)), out("f32", n), uintArg(65), uintArg(257)).
				exact("bits are moved").define("TILE", "8"))
		},
	})
}

func transposeTile(u *source.Unit, kernel string) (rows, cols int) {
	k, _ := u.Kernel(kernel)
	return k.ReqdLocal[1], k.ReqdLocal[0]
}

// transposeArguments checks a launch, whose number of matrices is the third dimension of the grid.
func transposeArguments(c *Call) bool {
	all := c.Product(int(c.Int(2)), int(c.Int(3)), c.Global[2])
	needAll(c, c.Type("T"), all, 0, 1)
	return all > 0
}

// refTranspose computes out[c·rows + r] = in[r·cols + c] for each matrix, bit for bit.
func refTranspose(c *Call) error {
	t, rows, cols := c.Type("T"), int(c.Int(2)), int(c.Int(3))
	get, set := refGetBits(c, 0, SizeOf(t)), refSetBits(c, 1, SizeOf(t))
	for m := range c.Global[2] {
		for i := range rows {
			for j := range cols {
				set((m*cols+j)*rows+i, get((m*rows+i)*cols+j))
			}
		}
	}
	return nil
}
