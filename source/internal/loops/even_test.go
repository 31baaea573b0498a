package loops_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/source/internal/loops"
	"github.com/concord-compute/concord/source/internal/token"
)

// TestEven: only kernels whose vectors need no permutation are compiled with the longest ones.
func TestEven(t *testing.T) {
	const helpers = "float f(global const float *p, ulong j) { return p[j]; }\nfloat g(float v) { return v * exp(v); }\n" +
		"float h(float v) { for (int j = 0; j < 3; j++) v += v; return v; }\n"
	for body, even := range map[string]bool{
		"out[i] = g(in[i]);":                                          true,
		"out[i] = as_float(as_int(in[i]) | n);":                       true,
		"out[i] = in[i] > 1 ? 2.0f : in[i];":                          true,
		"out[i] = select(in[i], 2.0f, in[i] > 1);":                    true,
		"float v = in[i + 1]; if (v > 0) { v *= in[n]; } out[i] = v;": true,
		"int j = i; if (j >= n) return; out[j] = tanh(in[j]);":        true,
		"out[i] = in[2 * i];":                                         false, // every other element
		"out[n - i] = in[i];":                                         false, // in reverse
		"out[i] = in[(int)in[i]];":                                    false, // a gather
		"out[i] = i;":                                                 false, // a count of 64 bits in a vector
		"if (i & 1) out[i] = in[i];":                                  false, // likewise
		"wide[i] = in[i];":                                            false,
		"out[i] = bytes[i];":                                          false,
		"out[i] = sin(in[i]);":                                        false, // computed in double
		"out[i] = h(in[i]);":                                          false, // a loop
		"for (int k = 0; k < n; k++) out[i]++;":                       false,
		"out[i] = f(in, 3 * i);":                                      false, // an index of which nothing is known
		"in += i; out[i] = in[i];":                                    false,
		"out[i] = *in;":                                               false,
		"out[i] = both[i].x;":                                         false,
		"local float l[64]; l[i & 63] = in[i]; barrier(1); out[i] = l[0];": false,
	} {
		t.Run(body, func(t *testing.T) {
			funcs := loops.Parsed(t, helpers+"kernel void k(global const float *in, global float *out, global double *wide, "+
				"global const char *bytes, global const float2 *both, int n) { size_t i = get_global_id(0); "+body+" }").Funcs
			p := loops.Plans(funcs, token.NewMeter(t.Context()))[funcs[len(funcs)-1]]
			require.NotNil(t, p)
			assert.Equal(t, even, p.Even())
		})
	}
}
