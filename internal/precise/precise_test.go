package precise

import (
	"bufio"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// functions are those of the table, with the largest errors in units in the last place that the package's
// documentation states.
var functions = map[string]struct {
	ulp float64
	f   func(x, y float64) float64
}{
	"log": {1, one(Log)}, "log2": {1, one(Log2)}, "exp": {1, one(Exp)}, "expm1": {1, one(Expm1)}, "sinh": {2, one(Sinh)},
	"cosh": {2, one(Cosh)},
	"sin":  {1, one(Sin)}, "cos": {1, one(Cos)}, "tan": {2, one(Tan)}, "pow": {1, Pow}, "sigmoid": {2, one(Sigmoid)},
	"gelu": {5, one(GELU)},
	"sqrt": {0, one(math.Sqrt)}, "exp2": {1, one(math.Exp2)}, "log1p": {1, one(math.Log1p)}, "tanh": {1, one(math.Tanh)},
	"atan": {1, one(math.Atan)},
	"erf":  {1, one(math.Erf)}, "erfc": {4, one(math.Erfc)}, "atan2": {1, Atan2}, "mod": {0, math.Mod},
}

func one(f func(float64) float64) func(x, y float64) float64 {
	return func(x, _ float64) float64 { return f(x) }
}

// ulps returns the distance of two numbers in units in the last place of the second one.
func ulps(got, want float64) float64 {
	if got == want && math.Signbit(got) == math.Signbit(want) || got != got && want != want {
		return 0
	}
	_, e := math.Frexp(want)
	if u := math.Abs(got-want) / math.Ldexp(1, max(e-53, -1074)); u > 0 && !math.IsInf(want, 0) {
		return u
	}
	return math.Inf(1)
}

// Every function agrees with results that were computed with hundreds of digits: at limits, among denormal
// numbers, of random bits.
func TestFunctions(t *testing.T) {
	file, err := os.Open("testdata/functions.txt")
	require.NoError(t, err)
	defer file.Close()
	seen := map[string]float64{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		var v []float64
		for _, w := range words[1:] {
			bits, err := strconv.ParseUint(w, 16, 64)
			require.NoError(t, err)
			v = append(v, math.Float64frombits(bits))
		}
		x, y, want := v[0], v[len(v)-2], v[len(v)-1]
		f := functions[words[0]]
		got, limit := f.f(x, y), f.ulp
		if words[0] == "gelu" && math.Abs(want) < 0x1p-1022 {
			limit = 24
		}
		u := ulps(got, want)
		assert.LessOrEqual(t, u, limit, "%s of %v is %v, not %v", words[0], v[:len(v)-1], got, want)
		seen[words[0]] = max(seen[words[0]], u)
	}
	require.NoError(t, lines.Err())
	assert.Len(t, seen, len(functions))
	t.Log(seen)
}

// Powers that are exact are exact, and special cases are those of math.Pow.
func TestPow(t *testing.T) {
	for i := range 16 {
		x := float64(i)
		assert.Equal(t, x*x*x, Pow(x, 3))
		assert.Equal(t, x, Pow(x*x, 0.5))
		assert.Equal(t, -x*x*x, Pow(-x, 3))
	}
	special := []float64{0, math.Copysign(0, -1), 1, -1, 2, -2, 3, 0.5, math.Inf(1), math.Inf(-1), math.NaN(),
		math.MaxFloat64, 5e-324}
	for _, x := range special {
		for _, y := range special {
			if math.IsInf(x, 0) || math.IsInf(y, 0) || x != x || y != y || x == 0 || y == 0 || math.Abs(x) == 1 {
				assert.Zero(t, ulps(Pow(x, y), math.Pow(x, y)), "%v to the %v", x, y)
			}
		}
	}
}

// What has no value, or an infinite one, has the same as of package math.
func TestSpecial(t *testing.T) {
	for name, f := range map[string][2]func(float64) float64{
		"log": {Log, math.Log}, "exp": {Exp, math.Exp}, "expm1": {Expm1, math.Expm1}, "sinh": {Sinh, math.Sinh},
		"cosh": {Cosh, math.Cosh},
		"sin":  {Sin, math.Sin}, "cos": {Cos, math.Cos}, "tan": {Tan, math.Tan}, "log2": {Log2, math.Log2},
	} {
		for _, x := range []float64{math.Inf(1), math.Inf(-1), math.NaN(), 0, math.Copysign(0, -1)} {
			assert.Zero(t, ulps(f[0](x), f[1](x)), "%s of %v", name, x)
		}
	}
	assert.Equal(t, 1.0, Sigmoid(math.Inf(1)))
	assert.Equal(t, 0.0, Sigmoid(math.Inf(-1)))
	assert.Equal(t, math.Inf(1), GELU(math.Inf(1)))
}
