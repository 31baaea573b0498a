package source

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A call for which no overload is the best match is refused at its position, with the candidates.
func TestAmbiguousCalls(t *testing.T) {
	for _, c := range []struct{ call, want string }{
		{"max(i, c)", "test.cl:2:8: the call of 'max' with (int, char) is ambiguous, cast an argument; " +
			"candidates: char max(char, char); int max(int, int)"},
		{"select(c, i, uc)", "test.cl:2:8: the call of 'select' with (char, int, uchar) is ambiguous, cast an argument; " +
			"candidates: char select(char, char, uchar); int select(int, int, int)"},
		{"sqrt(i)", "test.cl:2:8: the call of 'sqrt' with (int) is ambiguous, cast an argument; " +
			"candidates: half sqrt(half); float sqrt(float); double sqrt(double)"},
		{"max(i, (int)c)", ""},
		{"pow(f, i)", ""},
		{"max(uc, uc)", ""},
	} {
		text := "kernel void k(global float *o, int i, char c, uchar uc, float f) {\n  o[0]=" + c.call + ";\n}\n"
		_, err := Parse(text, Options{Name: "test.cl", Features: &Features{FP64: true, FP16: true}})
		if c.want == "" {
			assert.NoError(t, err, c.call)
			continue
		}
		require.Error(t, err, c.call)
		assert.Equal(t, c.want, err.Error())
	}
}
