package cpu

// Compares the vector kernels whose speed is limited by memory with the reference, on memory
// between guard pages.

import (
	"encoding/binary"
	"math"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/source"
)

// streamTrial describes calls of a kernel with n elements per buffer; out is the position of the
// result among the arguments.
type streamTrial struct {
	family, kernel string
	args           func(f *fence, typ string, n int) []any
	out            int
	ulps           float64 // allowed difference from the float64 result, in units in the last place of the largest result
}

func scalarArg(typ string, v float64) any {
	if typ == "f64" {
		return v
	}
	return float32(v)
}

// streamRows is the number of rows into which n elements are divided. It does not divide
// most sizes, so that the last elements are not used.
const streamRows = 3

var streamTrials = []streamTrial{
	{"arith", "add", binaryArgs, 2, 1}, {"arith", "sub", binaryArgs, 2, 1}, {"arith", "mul", binaryArgs, 2, 1},
	{"arith", "div", binaryArgs, 2, 1},
	{"arith", "mul_scalar", func(f *fence, typ string, n int) []any {
		return []any{f.numbers(typ, n), scalarArg(typ, 1.7), f.numbers(typ, n), uint64(n)}
	}, 2, 1},
	{"arith", "scalar_div", func(f *fence, typ string, n int) []any {
		return []any{scalarArg(typ, 1.7), f.numbers(typ, n), f.numbers(typ, n), uint64(n)}
	}, 2, 1},
	{"saxpy", "saxpy", func(f *fence, typ string, n int) []any {
		return []any{scalarArg(typ, -0.3), f.numbers(typ, n), f.numbers(typ, n), uint64(n)}
	}, 2, 2},
	{"reduce", "reduce_sum", rowArgs, 1, 24}, {"reduce", "reduce_mean", rowArgs, 1, 24},
	{"reduce", "reduce_sum_columns", columnArgs, 1, 24}, {"reduce", "reduce_mean_columns", columnArgs, 1, 24},
	{"activation", "sigmoid", mapArgs, 1, 8}, {"activation", "swish", mapArgs, 1, 8},
	{"activation", "gelu_tanh", mapArgs, 1, 8},
	{"activation", "tanh_act", mapArgs, 1, 8}, {"activation", "gelu", mapArgs, 1, 8},
	{"norm", "layer_norm", func(f *fence, typ string, n int) []any {
		rows, cols := split3(n)
		return []any{f.numbers(typ, rows*cols), f.numbers(typ, cols), f.numbers(typ, cols), f.numbers(typ, rows*cols),
			uint32(rows), uint32(cols), scalarArg(typ, 0.5)}
	}, 3, 256},
	{"norm", "rms_norm", func(f *fence, typ string, n int) []any {
		rows, cols := split3(n)
		return []any{f.numbers(typ, rows*cols), f.numbers(typ, cols), f.numbers(typ, rows*cols), uint32(rows), uint32(cols),
			scalarArg(typ, 0.5)}
	}, 2, 256},
	{"softmax", "softmax", func(f *fence, typ string, n int) []any {
		rows := min(streamRows, n)
		cols := n / max(rows, 1)
		return []any{f.numbers(typ, rows*cols), f.numbers(typ, rows*cols), uint32(rows), uint32(cols)}
	}, 1, 64},
}

func binaryArgs(f *fence, typ string, n int) []any {
	return []any{f.numbers(typ, n), f.numbers(typ, n), f.numbers(typ, n), uint64(n)}
}

func mapArgs(f *fence, typ string, n int) []any {
	return []any{f.numbers(typ, n), f.numbers(typ, n), uint64(n)}
}

func split3(n int) (rows, cols int) {
	rows = min(streamRows, n)
	return rows, n / max(rows, 1)
}

// columnArgs returns the arguments for an inner dimension that is no multiple of a register, and as many
// rows as n allows.
func columnArgs(f *fence, typ string, n int) []any {
	inner := min(n, 19+n/1000)
	axis := n / max(inner, 1)
	return []any{f.anything(typ, axis*inner), f.anything(typ, inner), uint32(1), uint32(axis), uint32(inner)}
}

func rowArgs(f *fence, typ string, n int) []any {
	rows := min(streamRows, n)
	cols := n / max(rows, 1)
	return []any{f.anything(typ, rows*cols), f.anything(typ, rows), uint32(rows), uint32(cols), uint32(1)}
}

// run calls the kernel on d and on the reference with copies of the same data.
func (s *streamTrial) run(t *testing.T, d, exact *device, f *fence, typ string, n int) {
	t.Helper()
	args := s.args(f, typ, n)
	same := make([]any, len(args))
	for i, a := range args {
		if b, ok := a.([]byte); ok {
			c := f.bytes(len(b))
			copy(c, b)
			a = c
		}
		same[i] = a
	}
	var defines []source.Define
	if family, _ := kernels.Find(s.family); len(family.Types) > 0 {
		defines = []source.Define{{Name: "T", Value: typ}}
	}
	require.NoError(t, invoke(t, d, s.family, s.kernel, defines, [3]int{1, 1, 1}, args...))
	require.NoError(t, invoke(t, exact, s.family, s.kernel, defines, [3]int{1, 1, 1}, same...))
	want, got := kernels.Decode(typ, same[s.out].([]byte)), kernels.Decode(typ, args[s.out].([]byte))
	computed, stored := 0x1p-23, map[string]float64{"f16": 0x1p-10, "bf16": 0x1p-7}[typ]
	if typ == "f64" {
		computed = 0x1p-51
	}
	for i := range want {
		bound := s.ulps * computed * max(math.Abs(want[i]), 1)
		switch {
		case s.ulps == 1:
			bound = computed * math.Abs(want[i])
		case strings.HasPrefix(s.kernel, "reduce_sum"): // of numbers up to 1
			bound *= float64(n)
		}
		if stored != 0 {
			bound += stored*math.Abs(want[i]) + 0x1p-24
		}
		if !(math.Abs(want[i]-got[i]) <= bound) && want[i] == want[i] {
			require.Equal(t, want[i], got[i], "%s %s n=%d at %d", s.kernel, typ, n, i)
		}
	}
	for i := range args { // inputs must not change
		if b, ok := args[i].([]byte); ok && i != s.out {
			require.Equal(t, same[i], b, "%s wrote argument %d", s.kernel, i)
		}
	}
	f.free()
}

func TestStreams(t *testing.T) {
	exact := openIndex(t, referenceIndex)
	eachSet(t, func(t *testing.T, d *device) {
		f := newFence(t, 8)
		for i := range streamTrials {
			s := &streamTrials[i]
			for _, typ := range []string{"f32", "f64", "f16", "bf16"} {
				for n := range 71 {
					s.run(t, d, exact, f, typ, n)
				}
				for range 2 {
					s.run(t, d, exact, f, typ, 1000+f.r.IntN(100000))
				}
			}
		}
	})
}

// TestPastCaches computes a result that is stored past the caches, at every alignment.
func TestPastCaches(t *testing.T) {
	if brief() {
		t.Skip("large buffers")
	}
	eachSet(t, func(t *testing.T, d *device) {
		_, l3 := cacheSizes()
		n := l3/4 + 1000
		a, b, c := f32s(n), f32s(n), f32s(n)
		for i := range a {
			a[i], b[i] = float32(i%1000), float32(i%77)
		}
		for skip := range 3 {
			clear(c)
			m := n - 3*skip
			require.NoError(t, invoke(t, d, "arith", "add", nil, [3]int{1, 1, 1}, bytesOf(a[skip:]), bytesOf(b),
				bytesOf(c[2*skip:]), uint64(m)))
			for i, v := range c {
				want := float32(0)
				if i >= 2*skip && i < 2*skip+m {
					want = a[i-skip] + b[i-2*skip]
				}
				if v != want {
					require.Equal(t, want, v, "skip %d at %d", skip, i)
				}
			}
		}
	})
}

func f32s(n int) []float32 { return make([]float32, n) }

// TestGelu checks gelu with a smaller bound than that of the catalog, also at the ends of its tables.
func TestGelu(t *testing.T) {
	x := []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
		math.MaxFloat32, -math.MaxFloat32, 1e-40, -1e-40, -14.9, -15.5, -16, -17}
	for i := -36; i <= 36; i++ { // ties between entries of a table
		tie := float32(i) / 2
		x = append(x, tie, math.Nextafter32(tie, 20), math.Nextafter32(tie, -20))
	}
	for i := range 1 << 16 {
		x = append(x, 20-float32(i)/(1<<16)*40, float32(math.Exp2(-float64(i)/2048)), -float32(math.Exp2(-float64(i)/2048)))
	}
	eachSet(t, func(t *testing.T, d *device) {
		wide := 1.0
		if d.simd != nil && goruntime.GOARCH == "arm64" { // NEON has another formula
			wide = 4
		}
		y := f32s(len(x))
		require.NoError(t, invoke(t, d, "activation", "gelu", nil, [3]int{1, 1, 1}, bytesOf(x), bytesOf(y), uint64(len(x))))
		for i := range x {
			v := float64(x[i])
			want := v * (0.5 * math.Erfc(-v/math.Sqrt2))
			if math.IsNaN(want) {
				require.True(t, math.IsNaN(float64(y[i])), "gelu(%g) = %g", v, y[i])
				continue
			} else if math.IsInf(want, 0) || want == 0 {
				require.Equal(t, float32(want), y[i], "gelu(%g)", v)
				continue
			}
			z := min(v, 0) / math.Sqrt2
			unit := max(math.Exp2(math.Floor(math.Log2(math.Abs(want)))-23), 0x1p-149)
			if off := math.Abs(float64(y[i])-want) / unit; !(off <= wide*(5+0.2*z*z)) {
				t.Errorf("gelu(%g) = %g, want %g: %.1f units in the last place", v, y[i], want, off)
			}
		}
	})
}

func TestDistances(t *testing.T) {
	exact := openIndex(t, referenceIndex)
	eachSet(t, func(t *testing.T, d *device) {
		f := newFence(t, 9)
		for kernel, typ := range map[string]string{"l2_distance_fp32": "f32", "l2_distance_fp16": "f16",
			"l2_distance_int8": "i8"} {
			for range 150 {
				nq, nv, dim := f.r.IntN(30), f.r.IntN(71), f.r.IntN(71)
				f.distances(d, exact, kernel, typ, nq, nv, dim)
			}
			f.distances(d, exact, kernel, typ, 16, 3000, 128)
			f.distances(d, exact, kernel, typ, 1, 20000, 100)
			f.distances(d, exact, kernel, typ, 257, 1031, 33)
			f.distances(d, exact, kernel, typ, 70, 70, 300)
		}
	})
}

// TestCastsPastCaches casts to types of less, equal and larger size, with results that are stored past the caches, at
// several alignments.
func TestCastsPastCaches(t *testing.T) {
	if brief() {
		t.Skip("large buffers")
	}
	eachSet(t, func(t *testing.T, d *device) {
		_, l3 := cacheSizes()
		n := l3/2 + 1000
		in := f32s(n)
		for i := range in {
			in[i] = float32(i%101-50) + 0.5
		}
		for to, size := range map[string]int{"bf16": 2, "i32": 4, "f64": 8} {
			for _, skip := range []int{0, 3, 64 / size} {
				out := make([]byte, (n+16)*size)
				defines := []source.Define{{Name: "FROM", Value: "f32"}, {Name: "TO", Value: to}}
				require.NoError(t, invoke(t, d, "cast", "cast", defines,
					[3]int{1, 1, 1}, bytesOf(in[skip:]), out[skip*size:], uint64(n-skip)))
				values := kernels.Decode(to, out)
				for i, v := range values {
					want := 0.0
					if i >= skip && i < n {
						want = float64(in[i])
					}
					if to == "i32" {
						want = math.Trunc(want)
					}
					if v != want {
						require.Equal(t, want, v, "%s, skip %d at %d", to, skip, i)
					}
				}
			}
		}
	})
}

// TestDistancesPastCaches computes distances that are stored past the caches.
func TestDistancesPastCaches(t *testing.T) {
	if brief() {
		t.Skip("large buffers")
	}
	eachSet(t, func(t *testing.T, d *device) {
		const nq, dim = 35, 2
		_, l3 := cacheSizes()
		nv := l3/4/nq/16*16 + 16
		f := newFence(t, 12)
		for kernel, size := range map[string]int{"l2_distance_fp32": 4, "l2_distance_int8": 1} {
			q, v, out := f.bytes(nq*dim*size), f.bytes(nv*dim*size), f.bytes(4*nq*nv)
			at := func(b []byte, i int) float32 {
				if size == 1 {
					return float32(int8(b[i])) / 127
				}
				return at32(b, i)
			}
			for _, b := range [][]byte{q, v} {
				for i := range len(b) / size {
					if x := int8(f.r.Uint32()); size == 1 {
						b[i] = byte(x)
					} else {
						binary.NativeEndian.PutUint32(b[4*i:], math.Float32bits(float32(x)))
					}
				}
			}
			require.NoError(t, invoke(t, d, "l2_distance", kernel, nil, [3]int{1, 1, 1}, q, v, out, uint32(nq), uint32(nv),
				uint32(dim)))
			for i := range nq * nv {
				x, y := at(q, i/nv*dim)-at(v, i%nv*dim), at(q, i/nv*dim+1)-at(v, i%nv*dim+1)
				if want, got := float64(x*x+y*y), float64(at32(out, i)); math.Abs(got-want) > 1e-5*(1+want) {
					require.Equal(t, want, got, "%s at %d", kernel, i)
				}
			}
			f.free()
		}
	})
}

func at32(b []byte, i int) float32 { return math.Float32frombits(binary.NativeEndian.Uint32(b[4*i:])) }

func (f *fence) distances(d, exact *device, kernel, typ string, nq, nv, dim int) {
	f.t.Helper()
	data := func(n int) []byte {
		if typ != "i8" {
			return f.numbers(typ, n)
		}
		b := f.bytes(n)
		for i := range b {
			b[i] = byte(f.r.Uint32())
		}
		return b
	}
	q, v, got, want := data(nq*dim), data(nv*dim), f.bytes(4*nq*nv), f.bytes(4*nq*nv)
	args := func(out []byte) []any { return []any{q, v, out, uint32(nq), uint32(nv), uint32(dim)} }
	require.NoError(f.t, invoke(f.t, d, "l2_distance", kernel, nil, [3]int{1, 1, 1}, args(got)...))
	require.NoError(f.t, invoke(f.t, exact, "l2_distance", kernel, nil, [3]int{1, 1, 1}, args(want)...))
	x, y := kernels.Decode("f32", want), kernels.Decode("f32", got)
	for i := range x {
		if !(math.Abs(x[i]-y[i]) <= float64(dim+4)*0x1p-24*x[i]) {
			require.Equal(f.t, x[i], y[i], "%s %d×%d×%d at %d", kernel, nq, nv, dim, i)
		}
	}
	f.free()
}
