package kernels

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestReferenceFormulas compares the references with the usual formulas, for arguments for which these
// do not cancel.
func TestReferenceFormulas(t *testing.T) {
	for x := -4.0; x < 4; x += 0.37 {
		u := math.Sqrt(2/math.Pi) * (x + 0.044715*x*x*x)
		assert.InDelta(t, x/2*(1+math.Erf(x/math.Sqrt2)), refActivations["gelu"](x), 1e-14)
		assert.InDelta(t, x/2*(1+math.Tanh(u)), refActivations["gelu_tanh"](x), 1e-14)
	}
	assert.True(t, math.IsNaN(refMax([]float64{1, math.NaN(), 2})))
	assert.EqualValues(t, math.Inf(1), refSum([]float64{math.Inf(1), 1}))
}

// TestRegisterRefuses checks that Register panics with the reason why it refuses a family.
func TestRegisterRefuses(t *testing.T) {
	whole := Family{ID: "topk", Kernels: []string{"topk"}, Types: floatTypes, Defines: []string{"T"}, Source: sources,
		Reference: refFill, Cases: func(*Family) []Case { return nil }}
	for want, spoil := range map[string]func(f *Family){
		`family "topk" is registered twice`: func(*Family) {},
		"needs an ID":                       func(f *Family) { f.ID = "" },
		"has no kernel":                     func(f *Family) { f.Kernels = nil },
		"lists kernel topk twice":           func(f *Family) { f.Kernels = []string{"topk", "topk"} },
		"needs a source or a function":      func(f *Family) { f.Source = nil },
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
