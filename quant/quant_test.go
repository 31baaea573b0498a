package quant

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/internal/safetensors"
	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/driver"
)

// blockFormats are those that a description of blocks has.
func blockFormats() (list []Format) {
	for _, f := range Formats() {
		if f.codec().block != nil {
			list = append(list, f)
		}
	}
	return list
}

// searched reports whether an encoder searches for scales.
func searched(f Format) bool {
	b := f.codec().block
	return b != nil && b.rule != kernels.GemmQOne
}

// layouts are one or more of each format that can be written.
var layouts = func() []Layout {
	list := otherLayouts
	for _, f := range blockFormats() {
		n := f.codec().block.numbers
		list = append(list, Layout{Format: f, Rows: 1, Cols: n}, Layout{Format: f, Rows: 3, Cols: 2 * n})
	}
	return list
}()

var otherLayouts = []Layout{
	{Format: I2SM1, Rows: 1, Cols: 128}, {Format: I2SM1, Rows: 6, Cols: 320}, {Format: I2SM2, Rows: 1, Cols: 64},
	{Format: I2SM2, Rows: 3, Cols: 192},
	{Format: W2A8M4, Rows: 16, Cols: 32}, {Format: W2A8M4, Rows: 48, Cols: 96},
	{Format: W2A8M4, Rows: 48, Cols: 64, Block: 16}, {Format: W2A8M4, Rows: 32, Cols: 32, Block: 20},
	{Format: W2A8M4, Rows: 16, Cols: 32, Block: math.MaxInt},
	{Format: TQ10, Rows: 1, Cols: 256}, {Format: TQ10, Rows: 3, Cols: 512},
	{Format: I2SB, Rows: 1, Cols: 129}, {Format: I2SB, Rows: 2, Cols: 256}, {Format: I2SB, Rows: 1, Cols: 70, Block: 32},
	{Format: RA, Rows: 1, Cols: 33}, {Format: RB, Rows: 1, Cols: 95}, {Format: RTL1K, Rows: 1, Cols: 130},
	{Format: RTL2K, Rows: 2, Cols: 128},
	{Format: RTL1Q, Rows: 1, Cols: 66}, {Format: RTL1Q, Rows: 1, Cols: 66, Asymmetric: true},
	{Format: RTL2Q, Rows: 1, Cols: 257, Block: 256}, {Format: RTL2Q, Rows: 2, Cols: 128, Block: 64, Asymmetric: true},
	{Format: MTL1, Rows: 64, Cols: 32, Tile: Tile{64, 16, 32}},
	{Format: MTL1, Rows: 256, Cols: 96, Tile: Tile{128, 32, 64}},
	{Format: MTL2, Rows: 64, Cols: 96, Tile: Tile{32, 48, 32}},
	{Format: MTL2, Rows: 128, Cols: 32 + 192, Tile: Tile{64, 96, 32}},
	{Format: MTL2, Rows: 32, Cols: 320, Tile: Tile{32, 96, 0}},
	{Format: I8Rows, Rows: 3, Cols: 7}, {Format: I8All, Rows: 3, Cols: 7},
}

func (l Layout) test() string { return strings.ReplaceAll(fmt.Sprintf("%v %v", l.Format, l), " ", "_") }

// ternaryOnly reports whether a format stores only numbers that are ternary already.
func ternaryOnly(f Format) bool {
	return slices.Contains([]Format{I2SM1, I2SM2, W2A8M4, MTL1, MTL2}, f)
}

// inputs are matrices of edge values and random ones, for a layout.
func inputs(l Layout) map[string][]float32 {
	n := l.Rows * l.Cols
	rnd := rand.New(rand.NewPCG(1, uint64(l.Format)))
	fill := func(f func(i int) float32) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = f(i)
		}
		return x
	}
	pick := func(list ...float32) func(int) float32 {
		return func(int) float32 { return list[rnd.IntN(len(list))] }
	}
	negative := float32(math.Copysign(0, -1))
	all := map[string][]float32{
		"ones": fill(pick(1)), "zeros": fill(pick(0)), "negative zeros": fill(pick(negative)), "minus ones": fill(pick(-1)),
		"trits": fill(pick(-0.7, 0, 0.7)), "with negative zeros": fill(pick(-3, negative, 3, 0)),
		"nearly":      fill(pick(-1, 1, 0.9995, -0.9992, 0, 5e-7)),
		"small scale": fill(pick(-1e-5, 0, 1e-5)), "no scale": fill(pick(-1e-7, 0, 5e-7)),
	}
	if ternaryOnly(l.Format) {
		return all
	}
	all["random"] = fill(func(int) float32 { return float32(rnd.NormFloat64()) })
	all["blocks of other sizes"] = fill(func(i int) float32 { return float32(math.Ldexp(rnd.NormFloat64(), i/32%9-4)) })
	all["ties"] = fill(func(i int) float32 { return float32(i%9-4) / 4 })
	all["ties of 127"] = fill(func(i int) float32 { return []float32{127, float32(rnd.IntN(255)-127) / 2}[min(1, i%32)] })
	all["equal magnitudes"] = fill(pick(-2, 2))
	all["large"] = fill(func(int) float32 { return float32(rnd.NormFloat64() * 1e4) })
	all["tiny"] = fill(func(int) float32 { return float32(rnd.NormFloat64() * 1e-9) })
	all["ramp"] = fill(func(i int) float32 { return float32(i) / float32(n) })
	all["subnormal"] = fill(pick(1e-42, -1e-43, 0))
	return all
}

// guarded returns memory with a zone before and after it, and a function that checks these.
func guarded[E comparable](t *testing.T, n int, mark E) ([]E, func()) {
	const zone = 64
	all := make([]E, n+2*zone)
	for i := range all {
		all[i] = mark
	}
	return all[zone : zone+n : zone+n], func() {
		t.Helper()
		for i := range zone {
			if all[i] != mark || all[zone+n+i] != mark {
				t.Fatalf("written outside, %d from the ends", i)
			}
		}
	}
}

// guardedMatrix is New with zones.
func guardedMatrix(t *testing.T, l Layout) (Matrix, func()) {
	bytes, scales, err := l.Sizes()
	require.NoError(t, err)
	m := Matrix{Layout: l}
	var a, b func()
	m.Data, a = guarded(t, bytes, byte(0x5a))
	m.Scales, b = guarded(t, scales, float32(-12345))
	return m, func() { a(); b() }
}

// everyProvider runs a test with each implementation of this machine.
func everyProvider(t *testing.T, f func(t *testing.T, v *provider)) {
	for _, v := range providers() {
		t.Run(v.name, func(t *testing.T) { f(t, v) })
	}
}

// Every format has the bytes of the descriptions, in every implementation.
func TestEncode(t *testing.T) {
	judged := golden(t)
	everyProvider(t, func(t *testing.T, v *provider) {
		for _, l := range layouts {
			for name, x := range inputs(l) {
				m, check := guardedMatrix(t, l)
				require.NoError(t, encodeBy(v, m, x), "%s %s", l.test(), name)
				check()
				// a reciprocal that does not exist
				if !slices.Contains([]Format{TQ10, TQ20, Q40, Q80, I8Rows, I8All}, l.Format) || name != "subnormal" {
					if data, scales := reference(l, x); data != nil {
						require.Equal(t, data, m.Data, "%s %s", l.test(), name)
						require.Equal(t, bitsOf(scales), bitsOf(m.Scales), "%s %s", l.test(), name)
					} else {
						require.Contains(t, judged, l.Format.String())
					}
				}
				require.NoError(t, Validate(m), "%s %s", l.test(), name)
			}
		}
	})
}

func bitsOf(x []float32) []uint32 {
	b := make([]uint32, len(x))
	for i, v := range x {
		b[i] = math.Float32bits(v)
	}
	return b
}

// What is decoded is what was encoded, as near as the format allows; ternary numbers exactly.
func TestRoundTrip(t *testing.T) {
	everyProvider(t, func(t *testing.T, v *provider) {
		for _, l := range layouts {
			for name, x := range inputs(l) {
				m, err := New(l)
				require.NoError(t, err)
				require.NoError(t, encodeBy(v, m, x), "%s %s", l.test(), name)
				y, check := guarded[float32](t, len(x), 77)
				require.NoError(t, decodeBy(v, y, m))
				check()
				step := map[Format]float64{Q40: 1. / 8, Q80: 1. / 240, Q4K: 1. / 6, Q6K: 1. / 25, I8Rows: 1. / 250,
					I8All: 1. / 250}[l.Format]
				if b := l.Format.codec().block; step == 0 && b != nil && !b.ternary {
					step = 2.7 / float64(int(1)<<b.bits())
				}
				if step == 0 {
					step = 0.67
				}
				if name == "trits" || name == "ones" || name == "with negative zeros" {
					switch l.Format {
					case RB, RTL1K, RTL2K, RTL1Q, RTL2Q: // no such levels
					case I8Rows, I8All:
						step = 1. / 7
					default:
						if b := l.Format.codec().block; b == nil || b.ternary {
							step = 1. / 256 // the scale is rounded
						} else if !searched(l.Format) {
							step = 1. / 7
						}
					}
				}
				limit := float64(most(x))*step + 4e-6 // the least scale of 16 bits is 6e-8,
				if searched(l.Format) {
					limit += 3e-5 // of which these have multiples up to 63 and 127
				}
				if (l.Format == RTL1K || l.Format == RTL2K) && most(x) <= 1e-8 {
					limit = 0.41 // the scale is 1, and no level is zero
				}
				for i := range x {
					require.InDelta(t, x[i], y[i], limit, "%s %s: number %d", l.test(), name, i)
				}
			}
		}
	})
}

// golden reads the file of ggml's results.
func golden(t testing.TB) map[string][]byte {
	f, err := safetensors.Open("testdata/ggml.safetensors")
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	all := map[string][]byte{}
	for _, name := range f.Names() {
		e, _ := f.Tensor(name)
		all[name] = e.Data
	}
	return all
}

func floats(data []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(data))), len(data)/4)
}

// ggml's formats have ggml's bytes, and decode to its numbers.
func TestGGML(t *testing.T) {
	all := golden(t)
	x := floats(all["x"])
	everyProvider(t, func(t *testing.T, v *provider) {
		for _, f := range append(blockFormats(), TQ10) {
			m, err := New(Layout{Format: f, Rows: 1, Cols: len(x)})
			require.NoError(t, err)
			require.NoError(t, encodeBy(v, m, x))
			require.Equal(t, all[f.String()], m.Data, f)
			y := make([]float32, len(x))
			require.NoError(t, decodeBy(v, y, m))
			require.Equal(t, bitsOf(floats(all[f.String()+".decoded"])), bitsOf(y), f)
		}
	})
}

// So have blocks whose parts alone are zero, all equal, of one sign, denormal, or too small for a scale.
func TestGGMLEdges(t *testing.T) {
	all := golden(t)
	x := floats(all["edges.x"])
	everyProvider(t, func(t *testing.T, v *provider) {
		for _, f := range append(blockFormats(), TQ10) {
			want := all["edges."+f.String()]
			for i, size := 0, len(want)*256/len(x); i < len(x)/256; i++ {
				m, err := New(Layout{Format: f, Rows: 1, Cols: 256})
				require.NoError(t, err)
				require.NoError(t, encodeBy(v, m, x[256*i:256*i+256]))
				assert.Equal(t, want[i*size:(i+1)*size], m.Data, "%v block %d", f, i)
			}
		}
	})
}

// The worked example: 1,024 ones.
func TestOnes(t *testing.T) {
	x := slices.Repeat([]float32{1}, 1024)
	repeat := func(n int, parts ...[]byte) []byte { return slices.Repeat(slices.Concat(parts...), n) }
	of := func(n int, b byte) []byte { return slices.Repeat([]byte{b}, n) }
	m1 := append(append(of(256, 0xaa), 0, 0, 0x80, 0x3f), make([]byte, 28)...)
	for f, want := range map[Format][]byte{
		I2SM1: m1, I2SM2: m1, TQ10: repeat(4, of(48, 0xff), of(4, 0xfd), []byte{0, 0x3c}),
		TQ20: repeat(4, of(64, 0xaa), []byte{0, 0x3c}),
		Q40:  repeat(32, []byte{0, 0xb0}, of(16, 0)), Q80: repeat(32, []byte{0x08, 0x20}, of(32, 0x7f)),
		I2SB: of(256, 0xaa), RA: of(256, 0xff), RB: of(256, 0x55),
	} {
		m, err := New(Layout{Format: f, Rows: 1, Cols: 1024})
		require.NoError(t, err)
		require.NoError(t, Encode(m, x))
		assert.Equal(t, want, m.Data, f)
		switch f {
		case I2SB:
			assert.Equal(t, slices.Repeat([]float32{1}, 8), m.Scales)
		case RA:
			assert.Equal(t, slices.Repeat([]float32{1}, 32), m.Scales)
		case RB:
			third := float32(1) / 1.5
			assert.Equal(t, slices.Repeat([]float32{third}, 32), m.Scales)
			y := make([]float32, 1024)
			require.NoError(t, Decode(y, m))
			assert.Equal(t, slices.Repeat([]float32{third}, 1024), y)
		}
	}
	err := Encode(Matrix{Layout: Layout{Format: I2SB, Rows: 1, Cols: 1024, Block: 32}, Data: make([]byte, 256),
		Scales: make([]float32, 8)}, x)
	assert.ErrorIs(t, err, driver.ErrDimension)
	assert.ErrorContains(t, err, "32 scales needed, 8 given")
}

// Every code in every position decodes to its value, also those that do not exist, which are zero.
func TestCodes(t *testing.T) {
	everyProvider(t, func(t *testing.T, v *provider) {
		for _, l := range []Layout{
			{Format: I2SM1, Rows: 1, Cols: 256}, {Format: I2SM2, Rows: 1, Cols: 256}, {Format: TQ20, Rows: 1, Cols: 512},
			{Format: I2SB, Rows: 1, Cols: 256}, {Format: RA, Rows: 1, Cols: 64}, {Format: RB, Rows: 1, Cols: 64},
			{Format: I2SM3, Rows: 8, Cols: 16},
		} {
			m, err := New(l)
			require.NoError(t, err)
			for code := range byte(4) {
				for i := range m.Data {
					m.Data[i] = code * 0x55
				}
				for i := range m.Scales {
					m.Scales[i] = 0.5
				}
				switch {
				case l.Format == TQ20:
					copy(m.Data[64:], halfOf(0.5))
					copy(m.Data[130:], halfOf(0.5))
				case m.Scales == nil:
					copy(m.Data[len(m.Data)-32:], tailOf(0.5))
				}
				want := map[Format][]float32{RA: {-1, -0.5, 0, 0.5}, RB: {0, 0.5, 0, -0.5}}[l.Format]
				if want == nil {
					want = []float32{-0.5, 0, 0.5, 0}
				}
				x := make([]float32, l.Rows*l.Cols)
				require.NoError(t, decodeBy(v, x, m))
				assert.Equal(t, slices.Repeat(want[code:code+1], len(x)), x, "%v code %d", l.Format, code)
				bad := code == 3 && l.Format != RA && l.Format != RB || code == 2 && l.Format == RB
				assert.Equal(t, bad, Validate(m) != nil, "%v code %d", l.Format, code)
			}
		}
		// A byte of TQ1_0 that no five digits have decodes by the same multiplications.
		m, err := New(Layout{Format: TQ10, Rows: 1, Cols: 256})
		require.NoError(t, err)
		copy(m.Data[52:], halfOf(1))
		for b := range 256 {
			for i := range 52 {
				m.Data[i] = byte(b)
			}
			x := make([]float32, 256)
			require.NoError(t, decodeBy(v, x, m))
			for i := range 256 {
				k := i / 32
				if i >= 240 {
					k = (i - 240) / 4
				} else if i >= 160 {
					k = (i - 160) / 16
				}
				p := b
				for range k {
					p = p * 3 % 256
				}
				want := float32(p*3/256 - 1)
				require.Equal(t, want, x[i], "byte %#x number %d", b, i)
			}
		}
	})
}

// Rows of four in a byte, which are only read.
func TestFourRows(t *testing.T) {
	l := Layout{Format: I2SM3, Rows: 8, Cols: 5}
	m, err := New(l)
	require.NoError(t, err)
	rnd := rand.New(rand.NewPCG(1, 2))
	want := make([]float32, 40)
	for r := range 8 {
		for c := range 5 {
			code := rnd.IntN(3)
			want[r*5+c] = float32(code-1) * 0.25
			m.Data[r/4*5+c] |= byte(code << (6 - 2*(r%4)))
		}
	}
	copy(m.Data[10:], tailOf(0.25))
	got := make([]float32, 40)
	require.NoError(t, Decode(got, m))
	assert.Equal(t, want, got)
	assert.NoError(t, Validate(m))
	assert.ErrorIs(t, Encode(m, got), driver.ErrUnsupported)
	assert.True(t, I2SM3.ReadOnly())
	_, err = New(Layout{Format: I2SM3, Rows: 6, Cols: 5})
	assert.ErrorIs(t, err, driver.ErrDimension)
}

// NaN and infinities are refused everywhere, with their places.
func TestNotFinite(t *testing.T) {
	everyProvider(t, func(t *testing.T, v *provider) {
		for _, l := range layouts {
			n := l.Rows * l.Cols
			for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				for _, at := range []int{0, n / 2, n - 1} {
					x := make([]float32, n)
					x[at] = float32(bad)
					m, check := guardedMatrix(t, l)
					err := encodeBy(v, m, x)
					require.ErrorIs(t, err, driver.ErrNumerical, "%s", l.test())
					require.ErrorContains(t, err, fmt.Sprintf("number %d is %v", at, float32(bad)), "%s", l.test())
					check()
				}
			}
		}
	})
}

// Scales that their format cannot hold.
func TestScaleTooLarge(t *testing.T) {
	everyProvider(t, func(t *testing.T, v *provider) {
		for f, limit := range map[Format]float32{TQ10: 65520, TQ20: 65520, Q40: 65520 * 8, Q80: 65520 * 127} {
			n, _, _ := f.codec().group(Layout{})
			for _, size := range []float32{limit, math.MaxFloat32, -limit} {
				x := make([]float32, 5*n)
				x[3*n+1] = size
				m, err := New(Layout{Format: f, Rows: 1, Cols: len(x)})
				require.NoError(t, err)
				err = encodeBy(v, m, x)
				assert.ErrorIs(t, err, driver.ErrNumerical, f)
				assert.ErrorContains(t, err, fmt.Sprintf("number %d is %v, which needs a scale that is too large for a float16",
					3*n+1, size))
				x[3*n+1] = math.Nextafter32(limit, 0)
				assert.NoError(t, encodeBy(v, m, x), f)
			}
		}
	})
	for _, l := range []Layout{{Format: Q4K, Rows: 1, Cols: 256}, {Format: Q6K, Rows: 1, Cols: 256},
		{Format: RTL1Q, Rows: 1, Cols: 64, Asymmetric: true}, {Format: W2A8M4, Rows: 16, Cols: 32}} {
		x := slices.Repeat([]float32{-math.MaxFloat32, math.MaxFloat32}, l.Rows*l.Cols/2)
		m, err := New(l)
		require.NoError(t, err)
		assert.ErrorIs(t, Encode(m, x), driver.ErrNumerical, l.Format)
	}
}

// Formats of the file writer's rule refuse what is not ternary.
func TestExact(t *testing.T) {
	everyProvider(t, func(t *testing.T, v *provider) {
		for _, l := range layouts {
			if !ternaryOnly(l.Format) {
				continue
			}
			for _, odd := range []float32{0.5, -0.998, 1e-5} {
				x := make([]float32, l.Rows*l.Cols)
				x[0], x[len(x)-1] = 1, odd
				if l.Format == W2A8M4 && l.Block != 0 {
					x[len(x)-2] = -1
				}
				m, err := New(l)
				require.NoError(t, err)
				err = encodeBy(v, m, x)
				require.ErrorIs(t, err, driver.ErrInvalidArgument, l.test())
				require.ErrorContains(t, err, fmt.Sprintf("number %d is", len(x)-1), l.test())
				// By a method they take it.
				s, err := Scale(AbsMean, x)
				require.NoError(t, err)
				require.NoError(t, Ternary(x, x, s))
				require.NoError(t, encodeBy(v, m, x))
			}
		}
	})
}

func TestScale(t *testing.T) {
	x := []float32{0.5, -1.5, 0, 2}
	for m, want := range map[Method]float32{AbsMean: 1, AbsMax: 2} {
		s, err := Scale(m, x)
		require.NoError(t, err)
		assert.Equal(t, want, s)
	}
	_, err := Scale(Exact, x)
	assert.ErrorIs(t, err, driver.ErrInvalidArgument)
	s, err := Scale(Exact, []float32{-3, 0, 2.998, 3})
	require.NoError(t, err)
	assert.EqualValues(t, 3, s)
	zeros := make([]float32, 3)
	for m, want := range map[Method]float32{AbsMean: 1e-5, AbsMax: 1, Exact: 0} {
		s, err := Scale(m, zeros)
		require.NoError(t, err)
		assert.Equal(t, want, s)
	}
	for _, m := range []Method{0, 4} {
		_, err := Scale(m, x)
		assert.ErrorIs(t, err, driver.ErrInvalidArgument)
	}
	_, err = Scale(AbsMean, nil)
	assert.ErrorIs(t, err, driver.ErrInvalidArgument)
	_, err = Scale(AbsMean, []float32{1, float32(math.NaN())})
	assert.ErrorIs(t, err, driver.ErrNumerical)
	assert.ErrorContains(t, err, "number 1")

	// The mean of many, beside one sum in float64.
	rnd := rand.New(rand.NewPCG(3, 4))
	many, sum := make([]float32, 3*pieceNumbers+17), 0.0
	for i := range many {
		many[i] = float32(rnd.NormFloat64())
		sum += math.Abs(float64(many[i]))
	}
	s, err = Scale(AbsMean, many)
	require.NoError(t, err)
	assert.InEpsilon(t, sum/float64(len(many)), s, 1e-6)

	// Halves go away from zero, also where a half is no number.
	y := make([]float32, 6)
	require.NoError(t, Ternary(y, []float32{0.5, -0.5, math.Nextafter32(0.5, 0), 3, -7, float32(math.Copysign(0, -1))}, 1))
	assert.Equal(t, []float32{1, -1, 0, 1, -1, 0}, y)
	least := float32(math.SmallestNonzeroFloat32)
	require.NoError(t, Ternary(y, []float32{least, 2 * least, -least, 0, 3 * least, math.MaxFloat32}, 3*least))
	assert.Equal(t, []float32{0, 3 * least, 0, 0, 3 * least, 3 * least}, y)
	for _, s := range []float32{0, -1, float32(math.Inf(1)), float32(math.NaN())} {
		assert.ErrorIs(t, Ternary(y, y, s), driver.ErrInvalidArgument)
	}
	assert.ErrorIs(t, Ternary(y, y[1:], 1), driver.ErrDimension)
	assert.ErrorIs(t, Ternary(y[:1], []float32{float32(math.Inf(-1))}, 1), driver.ErrNumerical)
}

// Rows of any length are padded, and the length is kept.
func TestPack(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, l := range layouts {
		for cols := 1; cols < 300; cols += 1 + cols/20*7 {
			l := l
			l.Cols = cols
			x := make([]float32, l.Rows*cols)
			for i := range x {
				x[i] = float32(rnd.IntN(3)-1) * 0.5
			}
			m, err := Pack(l, x)
			require.NoError(t, err, l.test())
			require.Equal(t, cols, m.K)
			require.NoError(t, Validate(m), l.test())
			y := make([]float32, len(x))
			require.NoError(t, Decode(y, m))
			whole := m
			whole.K = 0
			all := make([]float32, m.Rows*m.Cols)
			require.NoError(t, Decode(all, whole))
			for r := range m.Rows {
				require.Equal(t, all[r*m.Cols:r*m.Cols+cols], y[r*cols:(r+1)*cols], l.test())
				if ternaryOnly(l.Format) || l.Format == TQ10 || l.Format == TQ20 || l.Format == I2SB {
					require.Equal(t, x[r*cols:(r+1)*cols], y[r*cols:(r+1)*cols], l.test())
					require.Equal(t, make([]float32, m.Cols-cols), all[r*m.Cols+cols:(r+1)*m.Cols], l.test())
				}
			}
		}
	}
	// A fault is where the caller has it.
	x := make([]float32, 3*5)
	x[2*5+4] = float32(math.NaN())
	_, err := Pack(Layout{Format: TQ20, Rows: 3, Cols: 5}, x)
	assert.ErrorContains(t, err, "number 14 is NaN")
	_, err = Pack(Layout{Format: TQ20, Rows: 3, Cols: 5}, x[:14])
	assert.ErrorIs(t, err, driver.ErrDimension)
	assert.ErrorContains(t, err, "TQ2_0 of 3 × 5, padded to 256 columns: 15 numbers needed, 14 given")
}

// Vector instructions write the bytes of Go and decode any bytes, also codes that do not exist, to its bits,
// for rows of any length and with ties, zeros of both signs and blocks far from zero.
func TestLikeGo(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 18))
	most := float32(1)
	values := []func(i int) float32{
		func(int) float32 { return float32(r.NormFloat64()) },
		func(int) float32 { return float32(r.IntN(17)-8) / 4 },
		func(i int) float32 { return float32(math.Copysign(max(0, r.NormFloat64()), float64(i%3-1))) },
		func(i int) float32 { return float32(1000*(i/64%5)) + float32(r.IntN(4)) },
		func(i int) float32 { return 1e9 + float32(i%7)*64 },
		func(int) float32 { return float32(math.Ldexp(r.NormFloat64(), r.IntN(200)-140)) },
		func(i int) float32 { // beside what is between two codes, in units of a scale
			if i%64 == 0 {
				most = float32(math.Exp(10 * r.NormFloat64()))
				return most
			}
			x := most * []float32{0.5, 0.665, 0.8, 1.0 / (1 << 26), 1.0 / (1 << 27), 1.0 / (1 << 28), 0.1}[r.IntN(7)]
			if r.IntN(2) > 0 {
				x /= 1.5
			}
			for range r.IntN(4) {
				x = math.Nextafter32(x, most*float32(r.IntN(2)))
			}
			return x * float32(2*r.IntN(2)-1)
		},
	}
	everyProvider(t, func(t *testing.T, v *provider) {
		for _, l := range append(slices.Clone(layouts), Layout{Format: I2SM3, Rows: 8, Cols: 1}) {
			for _, cols := range []int{1, 17, 64, 127, 300} {
				l.Cols = cols
				l, err := l.Padded()
				require.NoError(t, err)
				for i, value := range values {
					x := make([]float32, l.Rows*l.Cols)
					for i := range x {
						if x[i] = value(i); ternaryOnly(l.Format) {
							x[i] = float32(r.IntN(3)-1) / 2
						}
					}
					got, check := guardedMatrix(t, l)
					want, err := New(l)
					require.NoError(t, err)
					if !l.Format.ReadOnly() {
						if searched(l.Format) && cols > 1 {
							continue // Go encodes them
						}
						was, is := encodeBy(plain, want, x), encodeBy(v, got, x)
						check()
						require.Equal(t, was, is, "%s %d", l.test(), i)
						if was == nil {
							require.Equal(t, want.Data, got.Data, "%s %d", l.test(), i)
							require.Equal(t, bitsOf(want.Scales), bitsOf(got.Scales), "%s %d", l.test(), i)
						}
					}
					for i := range got.Data {
						got.Data[i] = byte(r.Uint32())
					}
					for i := range got.Scales {
						got.Scales[i] = float32(r.NormFloat64())
					}
					if l.Format.codec().tail {
						copy(got.Data[len(got.Data)-tailBytes:], tailOf(-0.75))
					}
					y, z := make([]float32, len(x)), make([]float32, len(x))
					require.NoError(t, decodeBy(v, y, got))
					require.NoError(t, decodeBy(plain, z, got))
					for i := range y {
						if y[i] != y[i] && z[i] != z[i] { // a scale of 16 random bits; which NaN is the processor's choice
							y[i], z[i] = 0, 0
						}
					}
					require.Equal(t, bitsOf(z), bitsOf(y), "%s", l.test())
				}
			}
		}
	})
}

// Many numbers are encoded by several goroutines, with the same bytes and the error that comes first.
func TestManyPieces(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	const n = 5*pieceNumbers + 1024
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rnd.NormFloat64())
	}
	everyProvider(t, func(t *testing.T, v *provider) {
		for _, f := range []Format{TQ10, TQ20, Q40, Q80, I2SB, RB, RTL1Q, I8All} {
			l := Layout{Format: f, Rows: 1, Cols: n}
			m, err := New(l)
			require.NoError(t, err)
			require.NoError(t, encodeBy(v, m, x))
			data, scales := reference(l, x)
			require.True(t, slices.Equal(data, m.Data), f)
			require.True(t, slices.Equal(scales, m.Scales), f)
			y := make([]float32, n)
			require.NoError(t, decodeBy(v, y, m))
			z := make([]float32, n)
			require.NoError(t, decodeBy(plain, z, m))
			require.True(t, slices.Equal(bitsOf(z), bitsOf(y)), f)
		}
		y := slices.Clone(x)
		y[n-1], y[3*pieceNumbers+5] = float32(math.NaN()), float32(math.Inf(1))
		m, err := New(Layout{Format: TQ20, Rows: 1, Cols: n})
		require.NoError(t, err)
		assert.ErrorContains(t, encodeBy(v, m, y), fmt.Sprintf("number %d is +Inf", 3*pieceNumbers+5))
	})
}

func TestRefusals(t *testing.T) {
	for want, list := range map[error][]Layout{
		driver.ErrInvalidArgument: {
			{}, {Format: 99, Rows: 1, Cols: 32}, {Format: Q40}, {Format: Q40, Rows: -1, Cols: 32},
			{Format: Q40, Rows: 1, Cols: 0},
			{Format: Q40, Rows: 1, Cols: 32, Block: 32}, {Format: Q40, Rows: 1, Cols: 32, Tile: Tile{1, 1, 1}},
			{Format: RA, Rows: 1, Cols: 32, Asymmetric: true},
			{Format: I2SB, Rows: 1, Cols: 32, Block: 64}, {Format: RTL2Q, Rows: 1, Cols: 64},
			{Format: RTL2Q, Rows: 1, Cols: 64, Block: 32}, {Format: RTL1Q, Rows: 1, Cols: 64, Tile: Tile{1, 1, 1}},
			{Format: MTL1, Rows: 32, Cols: 32}, {Format: MTL1, Rows: 32, Cols: 32, Tile: Tile{32, 32, 16}},
			{Format: MTL1, Rows: 32, Cols: 32, Tile: Tile{48, 32, 32}},
			{Format: MTL1, Rows: 32, Cols: 32, Tile: Tile{32, 12, 32}},
			{Format: MTL2, Rows: 32, Cols: 96, Tile: Tile{32, 32, 32}},
			{Format: MTL2, Rows: 32, Cols: 96, Tile: Tile{32, 96, 64}},
			{Format: MTL2, Rows: 32, Cols: 96, Tile: Tile{0, 96, 32}}, {Format: W2A8M4, Rows: 16, Cols: 32, Block: -1},
			{Format: I2SM3, Rows: 4, Cols: 1, Block: 1},
		},
		driver.ErrDimension: {
			{Format: I2SM1, Rows: 1, Cols: 64}, {Format: I2SM2, Rows: 1, Cols: 65}, {Format: TQ10, Rows: 2, Cols: 128},
			{Format: Q80, Rows: 1, Cols: 33}, {Format: Q40, Rows: 2, Cols: 16},
			{Format: I2SB, Rows: 2, Cols: 64}, {Format: W2A8M4, Rows: 8, Cols: 32}, {Format: W2A8M4, Rows: 16, Cols: 48},
			{Format: MTL1, Rows: 32, Cols: 40, Tile: Tile{32, 32, 32}},
			{Format: MTL1, Rows: 48, Cols: 32, Tile: Tile{32, 32, 32}},
			{Format: MTL2, Rows: 32, Cols: 100, Tile: Tile{32, 96, 32}},
		},
		driver.ErrTooLarge: {{Format: Q40, Rows: math.MaxInt / 32, Cols: 64},
			{Format: I8All, Rows: math.MaxInt, Cols: math.MaxInt}},
	} {
		for _, l := range list {
			_, _, err := l.Sizes()
			assert.ErrorIs(t, err, want, "%+v", l)
			_, err = New(l)
			assert.ErrorIs(t, err, want)
			assert.ErrorIs(t, Encode(Matrix{Layout: l}, nil), want)
			assert.ErrorIs(t, Decode(nil, Matrix{Layout: l}), want)
			assert.ErrorIs(t, Validate(Matrix{Layout: l}), want)
		}
	}
	m, err := New(Layout{Format: I2SB, Rows: 1, Cols: 256})
	require.NoError(t, err)
	x := make([]float32, 256)
	assert.ErrorIs(t, Encode(m, x[1:]), driver.ErrDimension)
	assert.ErrorIs(t, Decode(x[1:], m), driver.ErrDimension)
	short := m
	short.Data = m.Data[1:]
	assert.ErrorIs(t, Encode(short, x), driver.ErrDimension)
	for _, err := range []error{Decode(x, short), Validate(short)} {
		assert.ErrorIs(t, err, driver.ErrCorrupt)
		assert.ErrorContains(t, err, "64 bytes needed, 63 given")
	}
	few := m
	few.Scales = m.Scales[1:]
	assert.ErrorIs(t, Encode(few, x), driver.ErrDimension)
	assert.ErrorIs(t, Decode(x, few), driver.ErrDimension)
	for _, k := range []int{-1, 257} {
		odd := m
		odd.K = k
		assert.ErrorIs(t, Decode(x, odd), driver.ErrInvalidArgument)
	}
	m.Scales[1] = float32(math.Inf(1))
	assert.ErrorIs(t, Validate(m), driver.ErrCorrupt)
}

// A scale for more rows than a matrix has is one scale.
func TestOneScale(t *testing.T) {
	x := slices.Repeat([]float32{-0.5, 0, 0.5, 0.5}, 16*32/4)
	for _, block := range []int{17, 1 << (bits.UintSize - 6), math.MaxInt} { // the second has 0 numbers modulo 2^64
		l := Layout{Format: W2A8M4, Rows: 16, Cols: 32, Block: block}
		m, err := Pack(l, x)
		require.NoError(t, err)
		assert.Equal(t, []float32{0.5}, m.Scales)
		y := make([]float32, len(x))
		require.NoError(t, Decode(y, m))
		assert.Equal(t, x, y)
	}
}

// Validate finds one bad code or scale anywhere.
func TestValidate(t *testing.T) {
	for _, c := range []struct {
		l    Layout
		bad  byte
		at   []int
		good byte
	}{
		{Layout{Format: I2SM1, Rows: 2, Cols: 128}, 0x0c, []int{0, 31, 63}, 0x55},
		{Layout{Format: W2A8M4, Rows: 16, Cols: 32}, 0x95, []int{}, 0x55}, {Layout{Format: W2A8M4, Rows: 16, Cols: 32}, 0x54,
			[]int{0, 127}, 0x55},
		{Layout{Format: TQ10, Rows: 1, Cols: 512}, fraction(121) + 1, []int{}, 0},
		{Layout{Format: TQ10, Rows: 1, Cols: 512}, 1, []int{0, 47, 51, 54}, 0},
		{Layout{Format: TQ10, Rows: 1, Cols: 512}, fraction(1), []int{48, 51}, 0},
		{Layout{Format: MTL1, Rows: 32, Cols: 8, Tile: Tile{32, 8, 32}}, 0x90, []int{0, 63}, 0x44},
		{Layout{Format: MTL2, Rows: 32, Cols: 96 + 32, Tile: Tile{32, 96, 32}}, 0xe0, []int{0, 511, 640, 895}, 0},
		{Layout{Format: Q40, Rows: 1, Cols: 64}, 0x7c, []int{1, 19}, 0},
		{Layout{Format: Q80, Rows: 1, Cols: 64}, 0xfc, []int{1, 35}, 0},
		{Layout{Format: Q4K, Rows: 1, Cols: 256}, 0x7d, []int{1, 3}, 0},
		{Layout{Format: Q6K, Rows: 1, Cols: 512}, 0x7e, []int{209, 419}, 0},
		{Layout{Format: TQ20, Rows: 1, Cols: 256}, 0x7c, []int{65}, 0},
		{Layout{Format: TQ20, Rows: 1, Cols: 256}, 0xc0, []int{0, 63}, 0},
	} {
		m, err := New(c.l)
		require.NoError(t, err)
		for i := range m.Data {
			m.Data[i] = c.good
		}
		if c.l.Format.codec().tail {
			copy(m.Data[len(m.Data)-32:], tailOf(1))
		}
		require.NoError(t, Validate(m), c.l.test())
		for _, i := range c.at {
			m.Data[i] = c.bad
			assert.ErrorIs(t, Validate(m), driver.ErrCorrupt, "%s byte %d", c.l.test(), i)
			m.Data[i] = c.good
		}
		if c.l.Format.codec().tail {
			copy(m.Data[len(m.Data)-32:], tailOf(float32(math.NaN())))
			assert.ErrorIs(t, Validate(m), driver.ErrCorrupt)
			copy(m.Data[len(m.Data)-32:], tailOf(1))
			m.Data[len(m.Data)-1] = 1
			assert.NoError(t, Validate(m), "padding is ignored")
		}
	}
}

func TestParseFormat(t *testing.T) {
	for _, f := range Formats() {
		got, err := ParseFormat(strings.ToLower(f.String()))
		require.NoError(t, err)
		assert.Equal(t, f, got)
		assert.NotEmpty(t, f.About())
	}
	f, err := ParseFormat("i2s")
	require.NoError(t, err)
	assert.Equal(t, I2SB, f)
	for name, want := range map[string]error{"I2_S": driver.ErrFormat, "tl1": driver.ErrFormat, "TL2": driver.ErrFormat,
		"R_E": driver.ErrUnsupported, "": driver.ErrInvalidArgument, "Q9": driver.ErrInvalidArgument} {
		_, err := ParseFormat(name)
		assert.ErrorIs(t, err, want, name)
	}
	assert.Equal(t, "Format(0)", Format(0).String())
	assert.Empty(t, Format(200).About())
	assert.False(t, Format(200).ReadOnly())
}

// Rounding has the same results on every processor, and so have blocks of numbers that are too small for their
// reciprocals.
func TestNear(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		x    float32
		want int
	}{{0.5, 0}, {1.5, 2}, {-2.5, -2}, {63.49, 63}, {1<<22 - 1, 1<<22 - 1}, {1 << 23, -1 << 21}, {inf, -1 << 22},
		{-inf, -1 << 22}, {nan, 0}} {
		assert.Equal(t, c.want, near(c.x), "%v", c.x)
	}
	for _, f := range []Format{Q4K, Q6K} {
		x := make([]float32, 256)
		for i := range x {
			x[i] = float32(i%5-1) * math.SmallestNonzeroFloat32
		}
		m, err := Pack(Layout{Format: f, Rows: 1, Cols: 256}, x)
		require.NoError(t, err)
		require.NoError(t, Decode(x, m))
		assert.Equal(t, make([]float32, 256), x, "%v", f)
		if f == Q4K { // the steps are infinite, and the codes of all numbers what ggml makes of that
			assert.Equal(t, make([]byte, 128), m.Data[16:])
		}
	}
}

func TestActivations(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 10))
	for _, cols := range []int{1, 3, 16, 33, 300} {
		const rows = 7
		x := make([]float32, rows*cols)
		for i := range x {
			x[i] = float32(rnd.NormFloat64() * math.Pow(10, float64(i/cols-4)))
		}
		clear(x[2*cols : 3*cols])
		x[3*cols] = 127 // ties
		for i := 1; i < cols; i++ {
			x[3*cols+i] = float32(rnd.IntN(253)-126) + 0.5
		}
		q, check := guarded[int8](t, len(x), 99)
		scales, sums := make([]float32, rows), make([]int32, rows)
		require.NoError(t, Activations(q, scales, sums, x, cols))
		check()
		for r := range rows {
			row := x[r*cols : (r+1)*cols]
			s := 127 / max(most(row), 1e-5)
			require.Equal(t, s, scales[r])
			sum := int32(0)
			for i, v := range row {
				want := max(-128, min(127, math.RoundToEven(float64(v*s))))
				require.EqualValues(t, want, q[r*cols+i], "row %d", r)
				sum += int32(want)
			}
			require.Equal(t, sum, sums[r])
		}
		require.NoError(t, Activations(q, scales, nil, x, cols))
	}
	wide := make([]float32, mostCols+1)
	assert.ErrorIs(t, Activations(make([]int8, len(wide)), make([]float32, 1), make([]int32, 1), wide, len(wide)),
		driver.ErrTooLarge)
	x := []float32{1, 2, float32(math.NaN()), 4}
	q, scales := make([]int8, 4), make([]float32, 2)
	assert.ErrorIs(t, Activations(q, scales, nil, x, 2), driver.ErrNumerical)
	assert.ErrorIs(t, Activations(q, scales, nil, x, 3), driver.ErrDimension)
	assert.ErrorIs(t, Activations(q[:3], scales, nil, x, 2), driver.ErrDimension)
	assert.ErrorIs(t, Activations(q, scales[:1], nil, x, 2), driver.ErrDimension)
	assert.ErrorIs(t, Activations(q, scales, make([]int32, 1), x, 2), driver.ErrDimension)
	assert.ErrorIs(t, Activations(q, scales, nil, nil, 2), driver.ErrInvalidArgument)
	assert.ErrorIs(t, Activations(q, scales, nil, x, 0), driver.ErrInvalidArgument)
}

func TestMeasure(t *testing.T) {
	q, err := Measure([]float32{3, 4, 0}, []float32{3, 3.5, -0.25})
	require.NoError(t, err)
	assert.InDelta(t, 10*math.Log10(25/0.3125), q.SNR, 1e-12)
	assert.Equal(t, 0.5, q.MaxError)
	assert.Equal(t, 1, q.At)
	same, err := Measure([]float32{1}, []float32{1})
	require.NoError(t, err)
	assert.True(t, math.IsInf(same.SNR, 1))
	q.Add(same)
	assert.InDelta(t, 10*math.Log10(26/0.3125), q.SNR, 1e-12)
	_, err = Measure([]float32{1}, nil)
	assert.ErrorIs(t, err, driver.ErrDimension)
	_, err = Measure([]float32{float32(math.NaN())}, []float32{1})
	assert.ErrorIs(t, err, driver.ErrNumerical)
	_, err = Measure([]float32{1}, []float32{float32(math.Inf(1))})
	assert.ErrorIs(t, err, driver.ErrNumerical)
}

// FuzzDecode decodes any bytes of any format: it never reads or writes outside, and all implementations agree;
// what Validate accepts has no NaN.
func FuzzDecode(f *testing.F) {
	for i, l := range layouts {
		m, err := New(l)
		require.NoError(f, err)
		f.Add(uint8(i), m.Data)
		f.Add(uint8(i), m.Data[:len(m.Data)-1])
	}
	f.Fuzz(func(t *testing.T, i uint8, data []byte) {
		l := layouts[int(i)%len(layouts)]
		_, scales, err := l.Sizes()
		require.NoError(t, err)
		m := Matrix{Layout: l, Data: append(make([]byte, 0, len(data)), data...), Scales: make([]float32, scales)}
		for i := range m.Scales {
			if 4*i+4 <= len(data) {
				m.Scales[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
			}
		}
		x, check := guarded[float32](t, l.Rows*l.Cols, 77)
		err = decodeBy(plain, x, m)
		check()
		valid := Validate(m)
		if err != nil {
			require.ErrorIs(t, err, driver.ErrCorrupt)
			require.ErrorIs(t, valid, driver.ErrCorrupt)
			return
		}
		for _, v := range providers() {
			y, check := guarded[float32](t, len(x), 77)
			require.NoError(t, decodeBy(v, y, m))
			check()
			for i := range x {
				if x[i] == x[i] || y[i] == y[i] {
					require.Equal(t, math.Float32bits(x[i]), math.Float32bits(y[i]), "%s %s: number %d", v.name, l.test(), i)
				}
			}
		}
		if valid == nil {
			for i, v := range x {
				require.False(t, math.IsNaN(float64(v)), "%s: number %d is %v", l.test(), i, v)
			}
		}
	})
}

// FuzzEncode encodes any numbers in any format, equally in all implementations.
func FuzzEncode(f *testing.F) {
	for i := range layouts {
		f.Add(uint8(i), uint64(i), []byte("\x00\x00\x80\x3f\x00\x00\x00\xbf"))
	}
	f.Fuzz(func(t *testing.T, i uint8, seed uint64, data []byte) {
		l := layouts[int(i)%len(layouts)]
		rnd := rand.New(rand.NewPCG(seed, 1))
		x := make([]float32, l.Rows*l.Cols)
		for i := range x {
			if n := len(data) / 4; n > 0 {
				x[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*rnd.IntN(n):]))
			}
		}
		want, err := New(l)
		require.NoError(t, err)
		err = encodeBy(plain, want, x)
		for _, v := range providers() {
			m, check := guardedMatrix(t, l)
			got := encodeBy(v, m, x)
			check()
			if err != nil {
				require.EqualError(t, got, err.Error())
				continue
			}
			require.NoError(t, got)
			require.Equal(t, want.Data, m.Data)
			require.Equal(t, bitsOf(want.Scales), bitsOf(m.Scales))
		}
	})
}
