package kernels

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

// The forms in use against those of the books, where nothing cancels.
func TestReferenceFormulas(t *testing.T) {
	for x := -4.0; x < 4; x += 0.37 {
		u := math.Sqrt(2/math.Pi) * (x + 0.044715*x*x*x)
		assert.InDelta(t, x/2*(1+math.Erf(x/math.Sqrt2)), refActivations["gelu"](x), 1e-14)
		assert.InDelta(t, x/2*(1+math.Tanh(u)), refActivations["gelu_tanh"](x), 1e-14)
	}
	assert.True(t, math.IsNaN(refMax([]float64{1, math.NaN(), 2})))
	assert.EqualValues(t, 1, refArgMax([]float64{1, math.NaN(), 2, math.NaN()}))
	assert.EqualValues(t, math.Inf(1), refSum([]float64{math.Inf(1), 1}))
}

// The formats of 16 bits against those of runtime/driver, which are written in another way.
func TestSmallFloats(t *testing.T) {
	bits := func(x float64) []uint16 {
		return []uint16{uint16(driver.ToFloat16(x)), uint16(driver.ToBFloat16(x))}
	}
	compare := func(x float64) {
		got, want := []uint16{half.bits(x), bfloat.bits(x)}, bits(x)
		if x == x {
			require.Equal(t, want, got, "%v", x)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 1 << 16 {
		h, b := driver.Float16(i).Float64(), driver.BFloat16(i).Float64()
		if h != h || b != b {
			require.Equal(t, math.IsNaN(h), math.IsNaN(half.number(uint16(i))))
			require.Equal(t, math.IsNaN(b), math.IsNaN(bfloat.number(uint16(i))))
			continue
		}
		require.Equal(t, math.Float64bits(h), math.Float64bits(half.number(uint16(i))), "%#x", i)
		require.Equal(t, math.Float64bits(b), math.Float64bits(bfloat.number(uint16(i))), "%#x", i)
		for _, x := range []float64{h, b} { // and beside the middle between two
			for _, y := range []float64{x, math.Nextafter(x, 9), x * (1 + 0x1p-11), x * (1 + 0x1p-11 + 0x1p-40), x * (1 + 0x1p-8), x + 0x1p-25} {
				compare(y)
			}
		}
		compare(math.Float64frombits(r.Uint64()))
	}
	assert.True(t, math.IsNaN(half.number(half.bits(math.NaN()))))
	assert.True(t, math.IsNaN(bfloat.number(bfloat.bits(math.NaN()))))
}

// Register says what is wrong with a family.
func TestRegisterRefuses(t *testing.T) {
	whole := Family{ID: "fill", Kernels: []string{"fill"}, Types: floatTypes, Defines: []string{"T"}, Source: sources,
		Reference: refFill, Cases: func(*Family) []Case { return nil }}
	for want, spoil := range map[string]func(f *Family){
		`family "fill" is registered twice`: func(*Family) {},
		"needs an ID":                       func(f *Family) { f.ID = "" },
		"has no kernel":                     func(f *Family) { f.Kernels = nil },
		"lists kernel fill twice":           func(f *Family) { f.Kernels = []string{"fill", "fill"} },
		"has no source":                     func(f *Family) { f.Source = nil },
		"no text in its source":             func(f *Family) { f.ID = "filling" },
		"no float64 reference":              func(f *Family) { f.Reference = nil },
		"has no cases":                      func(f *Family) { f.Cases = nil },
		"both a list of types":              func(f *Family) { f.Defines = nil },
	} {
		f := whole
		spoil(&f)
		func() {
			defer func() { assert.Contains(t, recover(), want) }()
			Register(f)
		}()
	}
}
