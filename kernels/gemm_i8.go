package kernels

// The family gemm_i8 and its cases: the smallest and largest elements, sums that wrap.

func init() {
	Register(Family{
		ID: "gemm_i8", Doc: "gemm of 8-bit integers with a result of 32 bits, exact",
		Kernels: []string{"gemm_i8"}, Defines: []string{"TRANS_A", "TRANS_B"},
		Source: sources, Tile: productTile, Arguments: gemmArguments, Work: gemmWork, Reference: refGemm,
		Bound: exactly, Rows: gemmRows,
		Cases: func(f *Family) (list []Case) {
			for _, s := range []gemmShape{
				{m: 1, n: 1, k: 1, alpha: 1}, {m: 0, n: 3, k: 2, alpha: 1}, {m: 3, n: 5, k: 0, alpha: 1, beta: 2},
				{m: 2, n: 3, k: 5, alpha: 1},
				{m: 31, n: 33, k: 32, alpha: -3, beta: 7}, {m: 64, n: 64, k: 16, alpha: 1},
				{m: 65, n: 63, k: 17, alpha: 1, beta: 1},
				{m: 1, n: 257, k: 1000, alpha: 1}, {m: 257, n: 1, k: 31, alpha: 1},
				{m: 17, n: 19, k: 23, alpha: 2, beta: 1, pad: 3},
				{m: 13, n: 40, k: 1031, alpha: 1 << 20, beta: 1<<31 - 1, note: " wraps"},
				{m: 12, n: 32, k: 520, alpha: 1, note: " all -128"},
			} {
				for trans := range 4 {
					s.transA, s.transB = trans&1 != 0, trans&2 != 0
					if trans == 0 || s.m == 65 || s.m == 17 || s.m == 13 {
						list = append(list, s.begin(f, "gemm_i8", "i8", "i32", s.place(1, 0)).exact("integers wrap modulo 2^32"))
					}
				}
			}
			return list
		},
	})
}
