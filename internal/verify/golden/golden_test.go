package golden

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLoad: every case is whole. Data has as many elements as the shape says, there is a
// cotangent for each output of f64 and a gradient of the shape of each input of f64, and inputs and
// cotangents are numbers of float32.
func TestLoad(t *testing.T) {
	cases, err := Load()
	require.NoError(t, err)
	require.NotEmpty(t, cases)
	seen := map[string]bool{}
	for _, c := range cases {
		name, formula := strings.CutPrefix(c.Name, "formula/")
		assert.Equal(t, c.Formula, formula, c.Name)
		assert.True(t, strings.HasPrefix(name, c.Op+"/"), c.Name)
		assert.False(t, seen[c.Name], c.Name)
		seen[c.Name] = true
		assert.NotEmpty(t, c.Outputs, c.Name)
		assert.Contains(t, []string{"", "f64"}, c.Only, c.Name)
		for _, a := range slices.Concat(c.Inputs, c.Outputs) {
			whole(t, c.Name, a)
		}
		for _, a := range c.Inputs {
			single(t, c.Name, a)
		}
		if c.Grads == nil {
			assert.Nil(t, c.Cotangents, c.Name)
			continue
		}
		require.Len(t, c.Cotangents, len(c.Outputs), c.Name)
		require.Len(t, c.Grads, len(c.Inputs), c.Name)
		for i, a := range c.Cotangents {
			mirror(t, c.Name, a, c.Outputs[i])
			if a != nil {
				single(t, c.Name, *a)
			}
		}
		for i, a := range c.Grads {
			mirror(t, c.Name, a, c.Inputs[i])
		}
	}
}

// whole: an array has the elements that its shape and type say.
func whole(t *testing.T, name string, a Array) {
	n := 1
	for _, d := range a.Shape {
		n *= d
	}
	assert.Len(t, a.Data, n, name)
	for _, x := range a.Data {
		switch a.Type {
		case "f64":
		case "i64":
			assert.Equal(t, math.Trunc(x), x, name)
			assert.LessOrEqual(t, math.Abs(x), float64(1<<53), name)
		case "bool":
			assert.True(t, x == 0 || x == 1, name)
		default:
			assert.Fail(t, "unknown type "+a.Type, name)
		}
	}
}

// single: the elements of an array of f64 are those of an array of float32.
func single(t *testing.T, name string, a Array) {
	for _, x := range a.Data {
		if a.Type == "f64" && !math.IsNaN(x) {
			assert.Equal(t, x, float64(float32(x)), name)
		}
	}
}

// mirror: there is a cotangent or a gradient if and only if what it belongs to is of f64, and it has
// that shape and no NaN.
func mirror(t *testing.T, name string, a *Array, of Array) {
	require.Equal(t, of.Type == "f64", a != nil, name)
	if a == nil {
		return
	}
	whole(t, name, *a)
	assert.Equal(t, of.Type, a.Type, name)
	assert.Equal(t, of.Shape, a.Shape, name)
	assert.False(t, slices.ContainsFunc(a.Data, math.IsNaN), name)
}

func TestNumbers(t *testing.T) {
	var a Array
	require.NoError(t,
		json.Unmarshal([]byte(`{"shape":[5],"type":"f64","data":["nan","inf","-inf",-0.0,0.30000001192092896]}`), &a))
	assert.True(t, math.IsNaN(a.Data[0]))
	assert.Equal(t, Numbers{math.Inf(1), math.Inf(-1)}, a.Data[1:3])
	assert.True(t, math.Signbit(a.Data[3]))
	assert.Equal(t, float64(float32(0.3)), a.Data[4])
	assert.Error(t, json.Unmarshal([]byte(`["one"]`), &a.Data))
	assert.Error(t, json.Unmarshal([]byte(`[null]`), &a.Data))
}

func TestAttrs(t *testing.T) {
	var a Attrs
	require.NoError(t,
		json.Unmarshal(
			[]byte(`{"p":"-inf","n":3,"axes":null,"kept":true,"mode":"same","rows":[[1,null],[]],"to":["i64"],"order":[2,-1]}`),
			&a))
	assert.Equal(t, math.Inf(-1), a.Float("p"))
	assert.Equal(t, 3.0, a.Float("n"))
	assert.Equal(t, 3, a.Int("n"))
	assert.True(t, a.Null("axes"))
	assert.Nil(t, a.Ints("axes"))
	assert.Equal(t, []int{2, -1}, a.Ints("order"))
	assert.True(t, a.Bool("kept"))
	assert.Equal(t, "same", a.String("mode"))
	assert.Equal(t, []string{"i64"}, a.Strings("to"))
	assert.Equal(t, [][]*int{{new(1), nil}, {}}, a.Rows("rows"))
	assert.Panics(t, func() { a.Null("missing") })
}

func TestCheck(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	want := []float64{1, -1, nan, inf, -inf, 0}
	assert.NoError(t, Check(want, want, F64))
	assert.NoError(t, Check([]float64{1 + 1e-10, -1, nan, inf, -inf, 0}, want, F64))
	assert.NoError(t, Check([]float64{1, -1, nan, inf, -inf, 7e-11}, want, F64), "judged by the size of the others")
	assert.NoError(t, Check([]float64{math.Copysign(0, -1)}, []float64{0}, F64))
	assert.NoError(t, Check(nil, nil, F64))
	assert.NoError(t, Check([]float64{1e200}, []float64{1e200 * (1 + 1e-12)}, F64))
	for i, wrong := range []float64{1 + 3e-10, 1, 1, nan, inf, 1e-9} {
		got := slices.Clone(want)
		got[i] = wrong
		err := Check(got, want, F64)
		if assert.Error(t, err, "element %d", i) {
			assert.Contains(t, err.Error(), "element "+string(rune('0'+i)))
		}
	}
	assert.Error(t, Check([]float64{1e-300}, []float64{0}, F32), "of zeros alone nothing may be off")
	assert.Error(t, Check([]float64{1e200}, []float64{1.1e200}, F64))
	assert.EqualError(t, Check([]float64{1}, nil, F64), "1 elements instead of 0")
	assert.EqualError(t, Check([]float64{1, 2.5, 9}, []float64{1, 2, 2}, 0.1),
		"element 2 is 9 instead of 2, 18.8 times the bound")
}
