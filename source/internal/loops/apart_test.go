package loops_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/source/internal/loops"
	"github.com/concord-compute/concord/source/internal/token"
)

// TestVectors: compilers are told that items are independent only where nothing is in memory of their own,
// and to use the longest vectors only where those need no permutation.
func TestVectors(t *testing.T) {
	const helpers = "float f(global const float *p, ulong j) { return p[j]; }\nfloat g(float v) { return v * exp(v); }\n" +
		"float h(float v) { for (int j = 0; j < 3; j++) v += v; return v; }\nstruct pair { float a, b; };\n" +
		"float own(int j) { float p[4]; p[j & 3] = j; return p[2]; }\nvoid put(global float *p, int j) { p[j] = 1; }\n"
	for body, want := range map[string]loops.Vectors{
		"out[i] = g(in[i]);":                                          loops.Even,
		"out[i] = as_float(as_int(in[i]) | n);":                       loops.Even,
		"out[i] = in[i] > 1 ? 2.0f : in[i];":                          loops.Even,
		"out[i] = select(in[i], 2.0f, in[i] > 1);":                    loops.Even,
		"float v = in[i + 1]; if (v > 0) { v *= in[n]; } out[i] = v;": loops.Even,
		"int j = i; if (j >= n) return; out[j] = tanh(in[j]);":        loops.Even,

		"out[i] = in[2 * i];":              loops.Careful, // every other element
		"out[i] = in[i]; out[i] *= in[0];": loops.Careful, // if in is out, the item of place 0 has changed it
		"out[n - i] = in[i];":              loops.Apart,   // in reverse
		"out[i] = in[(int)in[i]];":         loops.Careful, // a gather
		"out[i] = i;":                      loops.Apart,   // a count of 64 bits in a vector
		"if (i & 1) out[i] = in[i];":       loops.Apart,   // likewise
		"wide[i] = in[i];":                 loops.Apart,
		"out[i] = bytes[i];":               loops.Apart,
		"out[i] = sin(in[i]);":             loops.Apart,   // computed in double
		"out[i] = h(in[i]);":               loops.Apart,   // a loop
		"out[i] = f(in, 3 * i);":           loops.Careful, // an index of which nothing is known

		// a write of one round comes before the read of the next
		"for (int j = 0; j < n; j++) out[i] = in[j];":                              loops.Careful,
		"for (int j = 0; j < n; j++) { float v = in[0]; out[i] = v; }":             loops.Careful,
		"for (int j = 0; j < n; j++) for (int k = in[0]; k < n; k++) out[i] += 1;": loops.Careful,
		"float v = 0; for (int j = 0; j < n; j++) v += in[0]; out[i] = v;":         loops.Apart,

		"out[0] = in[i];":                              loops.Careful, // several items write it
		"out[(int)in[i]] = 1;":                         loops.Careful, // perhaps
		"put(out, i);":                                 loops.Careful,
		"in += i; out[i] = in[i];":                     loops.Careful,
		"out -= i; out[i] = in[i];":                    loops.Careful,
		"out[i] = *in;":                                loops.Careful,
		"out[i] = both[i].x;":                          loops.Careful, // vectors are arrays of lanes in C++
		"float p[4]; p[i & 3] = in[i]; out[i] = p[2];": loops.Careful,
		"out[i] = own(i);":                             loops.Careful,
		"float v = in[i]; float *p = &v; *p += 1; out[i] = v;":      loops.Careful,
		"float v, w = fract(in[i], &v); out[i] = v + w;":            loops.Careful,
		"struct pair p = {in[i], 1}; out[i] = p.a;":                 loops.Careful,
		`printf("%f", in[i]);`:                                      loops.Careful,
		"atomic_add(&total[i & 3], 1);":                             loops.Careful,
		"local float l[64]; l[i & 63] = in[i]; out[i] = l[i & 63];": loops.Careful,
		"out[i] = in[i]; barrier(1); out[i] += in[i + 1];":          loops.Careful,
	} {
		t.Run(body, func(t *testing.T) {
			funcs := loops.Parsed(t, helpers+"kernel void k(global const float *in, global float *out, global double *wide, "+
				"global const char *bytes, global const float2 *both, volatile global int *total, int n) { size_t i = "+
				"get_global_id(0); "+
				body+" }").Funcs
			p := loops.Plans(funcs, token.NewMeter(t.Context()))[funcs[len(funcs)-1]]
			require.NotNil(t, p)
			assert.Equal(t, want, p.Vectors())
		})
	}
}
