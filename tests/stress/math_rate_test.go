package stress

import (
	"testing"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/half"
	"github.com/concord-compute/concord/source"
	"github.com/stretchr/testify/require"
)

const mathText = `
#define EACH(NAME, VALUE) \
  kernel void NAME(global const float *in, global float *out, ulong n) { \
    size_t i = get_global_id(0); \
    if (i < n) { \
      float x = in[i]; \
      out[i] = VALUE; \
    } \
  }
EACH(user_copy, x)
EACH(user_exp, exp(x))
EACH(user_log, log(x))
EACH(user_erf, erf(x))
EACH(user_gelu_erf, 0.5f * x * (1 + erf(x * 0.70710678f)))
EACH(user_sin, sin(x))
EACH(user_pow, pow(x, 1.7f))
EACH(user_atan, atan(x))
EACH(user_cbrt, cbrt(x))
`

// halves returns a buffer of 16-bit numbers.
func halves(b testing.TB, d *runtime.Device, n int) *runtime.Buffer {
	x := make([]half.Float16, n)
	for i := range x {
		x[i] = half.ToFloat16(float64(i%17) / 16)
	}
	buf, err := runtime.Upload(b.Context(), d, x)
	require.NoError(b, err)
	b.Cleanup(func() { buf.Close() })
	return buf
}

// BenchmarkMath is the activations of the catalog as the text of a user beside the built-in ones, in turn,
// and other functions.
func BenchmarkMath(b *testing.B) {
	d := rateDevice(b)
	const n = 16 << 20
	in, out := floats(b, d, n), floats(b, d, n)
	built, err := kernels.Unit("activation", nil, source.Define{Name: "T", Value: "f32"})
	require.NoError(b, err)
	own, err := source.Parse(mathText, source.Options{Name: "math.cl"})
	require.NoError(b, err)
	text, native, more := build(b, d, catalog(b, "activation", "f32", false)), build(b, d, built), build(b, d, own)
	run := func(name string, p *runtime.Program, kernel string) {
		k, err := p.Kernel(kernel)
		require.NoError(b, err)
		b.Run(name, func(b *testing.B) {
			rate(b, d, k, runtime.Items(n), 8*n, "GB/s", in, out, uint64(n))
		})
	}
	for _, name := range []string{"sigmoid", "tanh_act", "gelu", "gelu_tanh", "swish", "relu"} {
		run(name+"/user", text, name)
		run(name+"/built-in", native, name)
	}
	in = out // in place
	for _, name := range []string{"sigmoid", "tanh_act"} {
		run(name+"/user/in_place", text, name)
		run(name+"/built-in/in_place", native, name)
	}
	in = floats(b, d, n)
	shorts, err := kernels.Unit("activation", nil, source.Define{Name: "T", Value: "f16"})
	require.NoError(b, err)
	text, native = build(b, d, catalog(b, "activation", "f16", false)), build(b, d, shorts)
	from, to := halves(b, d, n), halves(b, d, n)
	for _, name := range []string{"relu", "sigmoid", "gelu_tanh"} {
		for _, v := range []struct {
			name string
			p    *runtime.Program
		}{{"user", text}, {"built-in", native}} {
			k, err := v.p.Kernel(name)
			require.NoError(b, err)
			b.Run(name+"/half/"+v.name, func(b *testing.B) {
				rate(b, d, k, runtime.Items(n), 4*n, "GB/s", from, to, uint64(n))
			})
		}
	}
	for _, name := range []string{"copy", "exp", "log", "erf", "gelu_erf", "sin", "pow", "atan", "cbrt"} {
		run(name+"/user", more, "user_"+name)
	}
}
