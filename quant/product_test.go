package quant

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// ternaryRows returns rows of -s, 0 and s, with an s for each row.
func ternaryRows(r *rand.Rand, rows, cols int) []float32 {
	x := make([]float32, rows*cols)
	for i := range rows {
		s := r.Float32() + 0.5
		for j := range cols {
			x[i*cols+j] = s * float32(r.IntN(3)-1)
		}
	}
	return x
}

func devices(t *testing.T, f func(t *testing.T, dev *runtime.Device)) {
	for _, c := range []struct {
		id  string
		cfg runtime.Config
	}{{"cpu:0", runtime.Config{}}, {"cpu:0", runtime.Config{CPUKernels: "avx2"}},
		{"cpu:0", runtime.Config{CPUKernels: "go"}}, {"cpu:reference", runtime.Config{}}} {
		t.Run(c.id+" "+c.cfg.CPUKernels, func(t *testing.T) {
			session, err := runtime.New(c.cfg)
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, session.Close()) })
			dev, err := session.Open(t.Context(), c.id)
			if errors.Is(err, driver.ErrUnsupported) {
				t.Skip(err)
			}
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, dev.Close()) })
			f(t, dev)
		})
	}
}

// TestProductsExact compares the integers of products of random shapes with their definition.
func TestProductsExact(t *testing.T) {
	devices(t, func(t *testing.T, dev *runtime.Device) {
		ctx, r := t.Context(), rand.New(rand.NewPCG(1, 2))
		unit, err := kernels.Unit("w2a8", dev.Features(), source.Define{Name: "OUT", Value: "i32"})
		require.NoError(t, err)
		program, err := dev.Program(ctx, unit)
		require.NoError(t, err)
		defer program.Close()
		k, err := program.Kernel("w2a8")
		require.NoError(t, err)
		for range 60 {
			m, n, cols := 1+r.IntN(40), 1+r.IntN(300), 1+r.IntN(300)
			w, x := ternaryRows(r, n, cols), make([]float32, m*cols)
			for i := range x {
				x[i] = float32(r.NormFloat64())
			}
			q, scales, sums := make([]int8, m*cols), make([]float32, m), make([]int32, m)
			require.NoError(t, Activations(q, scales, sums, x, cols))
			p := prepared(t, dev, w, n, cols)
			wide := make([]uint32, m*p.k/4)
			for i := range m {
				for j := range cols {
					wide[i*p.k/4+j/4] |= uint32(uint8(q[i*cols+j])) << (8 * (j % 4))
				}
			}
			y, err := runtime.Alloc[int32](dev, m*n)
			require.NoError(t, err)
			items, group, err := kernels.Geometry(unit, "w2a8", m, n)
			require.NoError(t, err)
			buffers := []*runtime.Buffer{upload(t, dev, wide), upload(t, dev, scales), upload(t, dev, sums), y}
			require.NoError(t, dev.Stream().Launch(k, runtime.Grid{Items: items, Group: group}, buffers[0], buffers[1],
				buffers[2], p.codes, p.by, y, uint32(m), uint32(n), uint32(p.k)))
			got := make([]int32, m*n)
			require.NoError(t, runtime.Read(ctx, y, got))
			for i := range m {
				for j := range n {
					sum := int32(0)
					for c, v := range w[j*cols : (j+1)*cols] {
						switch {
						case v > 0:
							sum += int32(q[i*cols+c])
						case v < 0:
							sum -= int32(q[i*cols+c])
						}
					}
					require.Equal(t, sum, got[i*n+j], "m=%d n=%d k=%d: %d, %d", m, n, cols, i, j)
				}
			}
			for _, b := range buffers {
				require.NoError(t, b.Close())
			}
			require.NoError(t, p.Close())
		}
	})
}

func upload[T runtime.Element](t testing.TB, dev *runtime.Device, x []T) *runtime.Buffer {
	b, err := runtime.Upload(t.Context(), dev, x)
	require.NoError(t, err)
	return b
}

// prepared stores weights in a format with scales for rows, and prepares that.
func prepared(t testing.TB, dev *runtime.Device, w []float32, n, k int) *Prepared {
	m, err := Pack(Layout{Format: I2SB, Rows: n, Cols: k, Block: 32}, w)
	require.NoError(t, err)
	p, err := Prepare(t.Context(), dev, m)
	require.NoError(t, err)
	return p
}

// TestPreparedFormats multiplies with weights of each format that has ternary ones, and compares with products
// of decoded weights and activations.
func TestPreparedFormats(t *testing.T) {
	devices(t, func(t *testing.T, dev *runtime.Device) {
		r := rand.New(rand.NewPCG(3, 4))
		const m, n, k = 3, 64, 512
		one := ternaryRows(r, 1, n*k) // one scale for all
		x := make([]float32, m*k)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		q, scales := make([]int8, m*k), make([]float32, m)
		require.NoError(t, Activations(q, scales, nil, x, k))
		for _, l := range []Layout{{Format: I2SM1}, {Format: I2SM2}, {Format: I2SB}, {Format: TQ10}, {Format: TQ20},
			{Format: MTL1, Tile: Tile{32, 64, 32}}, {Format: MTL2, Tile: Tile{32, 96, 32}}, {Format: W2A8M4}, {Format: RB}} {
			l.Rows, l.Cols = n, k
			w, err := Pack(l, one)
			require.NoError(t, err, l.Format)
			numbers := make([]float32, n*k)
			require.NoError(t, Decode(numbers, w))
			p, err := Prepare(t.Context(), dev, w)
			require.NoError(t, err, l.Format)
			assert.Contains(t, p.String(), "w2a8 of 64 × 512 on cpu:")
			in, out := upload(t, dev, x), upload(t, dev, make([]float32, m*n))
			require.NoError(t, p.Mul(out, in, m))
			got := make([]float32, m*n)
			require.NoError(t, runtime.Read(t.Context(), out, got))
			for i := range m {
				for j := range n {
					want, size := 0.0, 0.0
					for c := range k {
						term := float64(numbers[j*k+c]) * float64(q[i*k+c]) / float64(scales[i])
						want, size = want+term, size+math.Abs(term)
					}
					require.InDelta(t, want, got[i*n+j], 1e-6*size, "%v: %d, %d", l.Format, i, j)
				}
			}
			require.NoError(t, p.Close())
			require.NoError(t, p.Close())
		}
	})
}

// TestBlockProducts compares the bits of products with their definition on all instruction sets, and the
// reference: odd sizes, padded rows, the largest sums.
func TestBlockProducts(t *testing.T) {
	devices(t, func(t *testing.T, dev *runtime.Device) {
		r := rand.New(rand.NewPCG(7, 8))
		var formats []Format
		for _, f := range Formats() {
			if f.ProductBlock() != 0 {
				formats = append(formats, f)
			}
		}
		for i := range 10 * len(formats) {
			m, n, k := 1+r.IntN(20), 1+r.IntN(100), 1+r.IntN(300)
			x, w := make([]float32, m*k), make([]float32, n*k)
			for i := range x {
				x[i] = float32(r.NormFloat64())
			}
			for i := range w {
				w[i] = float32(r.NormFloat64())
			}
			switch i {
			case 0:
				m, n, k = 3, 17, 256
				x, w = slices.Repeat([]float32{-5}, m*k), slices.Repeat([]float32{-1}, n*k)
			case 1:
				x[0] = float32(math.Inf(1))
			}
			matrix, err := Pack(Layout{Format: formats[i/2%len(formats)], Rows: n, Cols: k}, w)
			require.NoError(t, err)
			b := matrix.Format.products()
			if b.rule != kernels.GemmQOne || i/2/len(formats)%2 != 0 {
				// factors and codes that no encoder writes, also of columns that are not meant, and scales that are halves
				// between 2⁻⁷ and 2
				for data := matrix.Data; len(data) > 0; data = data[b.bytes:] {
					for j := range data[:b.bytes] {
						data[j] = byte(r.Uint32())
					}
					data[b.scale+1] = data[b.scale+1]&0x9f | 0x20
					if b.rule == kernels.GemmQLeast {
						data[b.scale+3] = data[b.scale+3]&0x9f | 0x20
					}
				}
			}
			p, err := Prepare(t.Context(), dev, matrix)
			require.NoError(t, err)
			in, out := upload(t, dev, x), upload(t, dev, make([]float32, m*n))
			require.NoError(t, p.Mul(out, in, m))
			got := make([]float32, m*n)
			require.NoError(t, runtime.Read(t.Context(), out, got))
			for j, want := range blockProducts(matrix, x, m) {
				if want == want {
					require.Equal(t, want, got[j], "%v m=%d n=%d k=%d: %d", matrix.Format, m, n, k, j)
				} else {
					require.True(t, got[j] != got[j])
				}
			}
			require.NoError(t, p.Close())
			require.NoError(t, in.Close())
			require.NoError(t, out.Close())
		}
	})
}

// blockProducts is the definition of products with blocks, from the bytes of the format.
func blockProducts(w Matrix, x []float32, m int) []float32 {
	k := w.meant()
	numbers, size, _ := w.Format.codec().group(w.Layout)
	description, coded := w.Format.products(), make([]byte, numbers)
	y := make([]float32, m*w.Rows)
	for i := range m {
		for j := range w.Rows {
			for b := range padded(k, numbers) / 32 {
				block, at := w.Data[(j*(w.Cols/numbers)+b*32/numbers)*size:], 32*b%numbers
				description.unpack(block, coded)
				near := x[i*k+min(32*b, k) : i*k+min(32*b+32, k)]
				most, finite := float32(1e-5), true
				for _, v := range near {
					most, finite = max(most, float32(math.Abs(float64(v)))), finite && v-v == 0
				}
				scale := most * (float32(1) / 127)
				if !finite {
					scale, near = float32(math.NaN()), nil
				}
				s, sum := 0, 0
				for e, v := range near {
					q := int(math.RoundToEven(float64(v * (127 / most))))
					sum += q
					switch i := at + e; w.Format {
					case Q80:
						s += q * int(int8(block[2+e]))
					case Q40:
						s += q * (int(block[2+e%16]>>(e/16*4)&15) - 8)
					case Q4K:
						s += q * int(block[16+i/64*32+i%32]>>(i/32%2*4)&15)
					case Q6K:
						low, high := block[i/128*64+i%64]>>(i%128/64*4)&15, block[128+i/128*32+i%32]>>(i%128/32*2)&3
						s += q * (int(high<<4|low) - 32) * int(int8(block[192+i/16]))
					default: // by the description, whose decoder ggml's numbers judge
						s += q * (int(coded[i]) - description.less)
					}
				}
				to := &y[i*w.Rows+j]
				switch w.Format {
				case Q6K:
					*to += float32(float32(s) * (getHalf(block[208:]) * scale))
				case Q4K:
					step, least := factorsAt6(block[4:16], at/32)
					v := float32(float32(s)*(getHalf(block)*float32(step))) - float32(float32(sum)*(getHalf(block[2:])*float32(least)))
					*to += float32(v * scale)
				case Q80, Q40:
					*to += float32(float32(s) * (getHalf(block) * scale))
				default:
					step, least := description.line(block, at/description.part())
					if description.rule == kernels.GemmQOne {
						*to += float32(float32(s) * (step * scale))
					} else {
						*to += float32(float32(float32(float32(s)*step)-float32(float32(sum)*least)) * scale)
					}
				}
			}
		}
	}
	return y
}

func TestPreparedRefuses(t *testing.T) {
	dev, err := runtime.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	defer dev.Close()
	m, err := Pack(Layout{Format: I8Rows, Rows: 2, Cols: 3}, []float32{1, 0, -1, 1, 0.5, 0})
	require.NoError(t, err)
	_, err = Prepare(t.Context(), dev, m)
	assert.ErrorIs(t, err, driver.ErrUnsupported)
	assert.ErrorContains(t, err, "row 1")
	for _, l := range []Layout{{Format: TQ20, Rows: 1, Cols: 256}, {Format: Q80, Rows: 1, Cols: 64}} {
		short, err := New(l)
		require.NoError(t, err)
		short.Data = short.Data[:65]
		_, err = Prepare(t.Context(), dev, short)
		assert.ErrorIs(t, err, driver.ErrCorrupt)
	}
	long, err := New(Layout{Format: TQ20, Rows: 1, Cols: mostCols + 256})
	require.NoError(t, err)
	_, err = Prepare(t.Context(), dev, long)
	assert.ErrorIs(t, err, driver.ErrTooLarge)
	p := prepared(t, dev, []float32{1, -1, 0, 0, 0, 0}, 2, 3)
	x, y := upload(t, dev, []float32{1, 2, 3, float32(math.NaN()), 0, 0}), upload(t, dev, make([]float32, 4))
	assert.ErrorIs(t, p.Mul(y, x, 3), driver.ErrDimension)
	// products with 2 and 3 that overflow
	for _, rows := range []int{math.MaxInt, 1 << (bits.UintSize - 2), 1 << (bits.UintSize - 3)} {
		assert.ErrorIs(t, p.Mul(y, x, rows), driver.ErrDimension, rows)
	}
	assert.ErrorIs(t, p.Mul(y, x, -1), driver.ErrInvalidArgument)
	assert.ErrorIs(t, p.Mul(nil, x, 1), driver.ErrInvalidArgument)
	assert.ErrorIs(t, p.Mul(y, nil, 1), driver.ErrInvalidArgument)
	assert.ErrorIs(t, p.Mul(x, x, 1), driver.ErrInvalidArgument)
	require.NoError(t, p.Mul(y, x, 0))
	require.NoError(t, p.Mul(y, x, 2))
	got := make([]float32, 4)
	require.NoError(t, runtime.Read(t.Context(), y, got))
	assert.InDelta(t, -1, got[0], 0.02) // activations have 8 bits
	assert.Equal(t, float32(0), got[1])
	assert.True(t, math.IsNaN(float64(got[2])) && math.IsNaN(float64(got[3])))
	holders := len(dev.Memory().Holders())
	require.NoError(t, p.Close())
	assert.Len(t, dev.Memory().Holders(), holders-2)
	err = p.Mul(y, x, 2)
	assert.ErrorIs(t, err, driver.ErrClosed)
	assert.ErrorContains(t, err, "weights of 2 × 3")
}

// BenchmarkProducts has the rates of products on cpu:0, and the bytes of weights that are read for one row of
// activations.
func BenchmarkProducts(b *testing.B) {
	for _, f := range []Format{I2SB, Q80, Q40, Q4K, Q6K} {
		for _, s := range [][3]int{{1, 2048, 2048}, {1, 4096, 4096}, {1, 16384, 16384}, {4, 4096, 4096}, {128, 2048, 2048},
			{512, 4096, 4096}} {
			b.Run(fmt.Sprintf("%v/%d×%d×%d", f, s[0], s[1], s[2]), func(b *testing.B) {
				dev, err := runtime.Open(b.Context(), "cpu:0")
				require.NoError(b, err)
				defer dev.Close()
				m, n, k := s[0], s[1], s[2]
				w, err := Pack(Layout{Format: f, Rows: n, Cols: k}, ternaryRows(rand.New(rand.NewPCG(5, 6)), n, k))
				require.NoError(b, err)
				p, err := Prepare(b.Context(), dev, w)
				require.NoError(b, err)
				x, y := upload(b, dev, make([]float32, m*k)), upload(b, dev, make([]float32, m*n))
				for b.Loop() {
					require.NoError(b, p.Mul(y, x, m))
					require.NoError(b, dev.Sync(b.Context()))
				}
				b.ReportMetric(2*float64(m)*float64(n)*float64(k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GOP/s")
				b.ReportMetric(float64(p.Bytes())*float64(b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
			})
		}
	}
}
