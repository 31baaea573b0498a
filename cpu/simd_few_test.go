package cpu

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// anyFew returns a random product of few rows or columns with a matrix that counts as large.
func (f *fence) anyFew(i int) gemmTrial {
	g := gemmTrial{typ: []string{"f32", "f64", "f16", "bf16"}[i%4], k: 16 + f.r.IntN(300), transA: f.r.IntN(2) == 0,
		transB: f.r.IntN(2) == 0,
		alpha:  []float64{1, 0.5}[f.r.IntN(2)], beta: []float64{0, 0, -2}[f.r.IntN(3)], pad: f.r.IntN(2) * f.r.IntN(9)}
	many := 1 + f.r.IntN(700)
	switch i % 5 {
	case 0: // few rows of the matrix, which are divided
		many = 1 + f.r.IntN(30)
		g.k = 1<<16/many + f.r.IntN(3000)
	case 1: // beyond the second-level cache
		many, g.k = 512+f.r.IntN(700), 300+f.r.IntN(900)
	}
	g.m, g.n = 1+f.r.IntN(fewMost.Default+2), many
	if f.r.IntN(3) == 0 {
		g.m, g.n = g.n, g.m
	}
	if g.typ == "f32" {
		for j := range g.types {
			g.types[j] = []string{"", "f16", "bf16"}[f.r.IntN(3)]
		}
	}
	return g
}

func TestGemmFew(t *testing.T) {
	eachSet(t, func(t *testing.T, d *device) {
		f := newFence(t, 12)
		count := 240
		if brief() || d.simd == nil {
			count = 40
		}
		for i := range count {
			g := f.anyFew(i)
			switch i % 7 {
			case 5:
				g.count, g.gap, g.woven = 1+f.r.IntN(3), f.r.IntN(9), f.r.IntN(2) == 0
			case 6:
				g.act = kernels.Activations[f.r.IntN(len(kernels.Activations))].Act
			}
			require.NoError(t, g.run(t, d, f), "%+v", g)
		}
	})
}

// A number that is not finite reaches the results that it is a part of, and no other one.
func TestGemmFewNaN(t *testing.T) {
	const n, k, row, column, place = 1003, 70, 2, 997, 69
	eachSet(t, func(t *testing.T, d *device) {
		for _, typ := range []string{"f32", "f16", "bf16", "f64"} {
			for _, across := range []bool{false, true} {
				for _, bad := range []float64{math.NaN(), math.Inf(1)} {
					f := newFence(t, 13)
					a, b, c := f.numbers(typ, 5*k), make([]float64, k*n), f.numbers(typ, 5*n)
					if at := place*n + column; across {
						b[column*k+place] = bad
					} else {
						b[at] = bad
					}
					var one, zero any = float32(1), float32(0)
					if typ == "f64" {
						one, zero = 1.0, 0.0
					}
					ldb := n
					if across {
						ldb = k
					}
					defines := []source.Define{{Name: "T", Value: typ}, {Name: "TRANS_B", Value: zeroOne(across)}}
					require.NoError(t, invoke(t, d, "gemm", "gemm", defines, [3]int{1, 1, 1}, uint32(5), uint32(n), uint32(k), one, a,
						uint32(k),
						kernels.Encode(typ, b), uint32(ldb), zero, c, uint32(n)))
					for i, v := range kernels.Decode(typ, c) {
						if i%n == column {
							assert.False(t, math.Abs(v) <= math.MaxFloat64, "%s %v: %d is %v", typ, bad, i, v)
						} else {
							require.Zero(t, v, "%s %v: %d", typ, bad, i)
						}
					}
					f.free()
				}
			}
		}
	})
}

// Results do not depend on the number of threads.
func TestGemmFewThreads(t *testing.T) {
	f := newFence(t, 14)
	const m, n, k = 3, 700, 1100
	for _, typ := range []string{"f32", "bf16"} {
		for _, across := range []string{"0", "1"} {
			for _, n := range []int{n, 40} {
				a, b := f.numbers(typ, m*k), f.numbers(typ, n*k)
				var results [][]byte
				for _, threads := range []int{1, 2, 16} {
					d, err := backend{}.Open(context.Background(), fastIndex, &driver.Config{CPUThreads: threads})
					require.NoError(t, err)
					c := f.numbers(typ, m*n)
					ldb := n
					if across == "1" {
						ldb = k
					}
					err = invoke(t, d.(*device), "gemm", "gemm",
						[]source.Define{{Name: "T", Value: typ}, {Name: "TRANS_B", Value: across}}, [3]int{1, 1, 1},
						uint32(m), uint32(n), uint32(k), float32(1), a, uint32(k), b, uint32(ldb), float32(0), c, uint32(n))
					require.NoError(t, err)
					results = append(results, c)
					require.NoError(t, d.Close())
				}
				assert.Equal(t, results[0], results[1])
				assert.Equal(t, results[0], results[2])
			}
		}
	}
	f.free()
}

// The number of rows is the benchmark's name; the rate is that of reading the matrix.
func BenchmarkGemmFew(b *testing.B) {
	d, err := backend{}.Open(context.Background(), fastIndex, &driver.Config{})
	require.NoError(b, err)
	defer d.Close()
	f := newFence(b, 15)
	for _, size := range [][2]int{{8000, 3200}, {512, 512}, {128, 1024}, {4096, 64}} {
		n, k := size[0], size[1]
		for _, typ := range [][2]string{{"f32", "f32"}, {"bf16", "bf16"}, {"f16", "f16"}, {"f32", "bf16"}} {
			a, w := f.numbers(typ[0], 32*k), f.numbers(typ[1], n*k)
			c := f.numbers(typ[0], 32*n)
			for _, across := range []string{"0", "1"} {
				for _, m := range []int{1, 2, 4, 8, 16, 32} {
					ldb := n
					if across == "1" {
						ldb = k
					}
					defines := []source.Define{{Name: "T", Value: typ[0]}, {Name: "TRANS_B", Value: across}}
					if typ[0] != typ[1] {
						defines = append(defines, source.Define{Name: "TYPE_B", Value: typ[1]})
					}
					u, err := kernels.Unit("gemm", &source.Features{FP64: true}, defines...)
					require.NoError(b, err)
					b.Run(fmt.Sprintf("%dx%d/%s_by_%s/across=%s/rows=%d", n, k, typ[0], typ[1], across, m), func(b *testing.B) {
						b.SetBytes(int64(len(w)))
						for range b.N {
							require.NoError(b, invokeUnit(b, d.(*device), u, "gemm", [3]int{1, 1, 1}, uint32(m), uint32(n), uint32(k),
								float32(1),
								a, uint32(k), w, uint32(ldb), float32(0), c, uint32(n)))
						}
					})
				}
			}
		}
	}
}
