package kernels

// The family transpose and its cases.

import "fmt"

var transposeFamily = &Family{
	ID: "transpose", Doc: "rows become columns, for each matrix of a batch",
	Kernels: []string{"transpose"}, Types: allTypes, Defines: []string{"T", "TILE"},
	cases: func(f *Family) (list []Case) {
		for _, t := range f.Types {
			for i, s := range [][3]int{{1, 1, 1}, {0, 3, 1}, {31, 33, 1}, {1, 257, 1}, {16, 16, 2}, {17, 15, 3}, {127, 1, 2}, {255, 257, 1}} {
				if t != "f32" && i != 2 && i != 5 {
					continue
				}
				rows, cols, batch := s[0], s[1], s[2]
				n := rows * cols * batch
				global, local := TransposeGrid(rows, cols, batch)
				list = append(list, f.newCase("transpose", t, fmt.Sprintf("%d×%d×%d", batch, rows, cols)).
					with(global, local, in(t, n, uniform(t, n, 4, -1e4, 1e4)), out(t, n), uintArg(rows), uintArg(cols)).
					exact("bits are moved"))
			}
		}
		return list
	},
}
