package nn

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/tensor"
)

func TestLayersFromJSON(t *testing.T) {
	layers, err := LayersFromJSON([]byte(` [{"layer":"dense","out":6,"act":"relu","no_bias":true,"init":0.5},
		{"layer":"residual","body":[{"layer":"dense","out":6,"init":"he_normal"},{"layer":"tanh"}],"shortcut":{"layer":"layer_norm","eps":0.001}},
		{"layer":"reshape","shape":[1,2,3]},{"layer":"conv","filters":2,"size":[2,2],"same":true},{"layer":"flatten"},{"layer":"dense","out":2}]`))
	require.NoError(t, err)
	s := scopeOn(t, "cpu:0")
	m, err := Build(t.Context(), s, 1, Spec{Type: tensor.F32, Shape: []int{3}}, layers...)
	require.NoError(t, err)
	want, err := Build(t.Context(), s, 1, Spec{Type: tensor.F32, Shape: []int{3}},
		Dense{Out: 6, Act: ReLU, NoBias: true, Init: Gaussian(0.5)},
		Residual{Body: Sequence{Dense{Out: 6, Init: HeNormal}, Tanh}, Shortcut: LayerNorm{Eps: new(0.001)}},
		Reshape{Shape: []int{1, 2, 3}}, Conv{Filters: 2, Size: []int{2, 2}, Same: true}, Flatten{}, Dense{Out: 2})
	require.NoError(t, err)
	assert.Equal(t, want.Summary(), m.Summary())
	x := tensor.From(s, []float32{1, -2, 3}, 1, 3)
	var results [][]float32
	for _, m := range []*Model{want, m} {
		y, err := m.Predict(t.Context(), x, nil)
		require.NoError(t, err)
		list, err := tensor.Read[float32](t.Context(), y)
		require.NoError(t, err)
		results = append(results, list)
	}
	assert.Equal(t, results[0], results[1])
	for name, zero := range layersByName {
		one, err := LayersFromJSON([]byte(`[{"layer":"` + name + `"}]`))
		require.NoError(t, err)
		assert.Equal(t, []Layer{zero}, one)
	}
}

func TestLayersFromJSONRefuses(t *testing.T) {
	for text, says := range map[string]string{
		``: "a list of layers in JSON", `{}`: "a list of layers in JSON", `[]`: "without layers",
		`[{"layer":"flatten"}] x`: "a list of layers in JSON", `[7]`: "network[0]: an object",
		`[{"out":7}]`: `no name of a layer in "layer"`,
		`[{"layer":"flatten"},{"layer":"dence"}]`:         `network[1]: no layer "dence"; there are [attention avg_pool`,
		`[{"layer":"dense","width":7}]`:                   `dense has no field "width"; it has ["out" "act" "init" "no_bias"`,
		`[{"layer":"dense","out":"7"}]`:                   "network[0].out",
		`[{"layer":"dense","Out":7}]`:                     `no field "Out"`,
		`[{"layer":"dense","init":"best"}]`:               `"best" is no number, and none of ["he_normal"`,
		`[{"layer":"residual","body":[{"layer":"gan"}]}]`: `network[0].body[0]: no layer "gan"`,
		`[{"layer":"relu","slope":1}]`:                    `relu has no field "slope"`,
		`[{"layer":"dense","out":3,"init":null}]`:         "network[0].init: null is no value",
		"[\n{\"layer\": dense}]":                          "line 2: invalid character 'd'",
		`[{"layer":"dense","out":2.5}]`:                   "network[0].out: 2.5 is no whole number",
		`[{"layer":"conv","size":3}]`:                     "network[0].size: 3 is no list of whole numbers",
		`[{"layer":"dense","no_bias":"yes"}]`:             `network[0].no_bias: "yes" is no truth value`,
		`[{"layer":"dropout","p":"half"}]`:                "no field",
		`[{"layer":"scale","factor":[1]}]`:                "network[0].factor: [1] is no number",
		`[{"layer":"dense","act":7}]`:                     "network[0].act: 7 is no name",
		`"` + strings.Repeat("a", 99) + `"`:               "a list of layers in JSON is needed, not \"aaa",
		`[{"layer":"dense","out":null}]`:                  "network[0].out: null is no value",
	} {
		_, err := LayersFromJSON([]byte(text))
		assert.ErrorIs(t, err, ErrConfig, text)
		assert.ErrorContains(t, err, says, text)
		assert.NotContains(t, err.Error(), " Go ", "it is written in JSON")
		assert.Less(t, len(err.Error()), 1000)
	}
}
