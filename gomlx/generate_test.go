package gomlx_test

// Text generation with a cache of keys and values.

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/zoo/transformer"
	"github.com/gomlx/gomlx/ml/zoo/transformer/generate"

	"github.com/concord-compute/concord/gomlx"
)

// writer returns a small transformer, whose weights are the same on every backend.
func writer(store *model.Store) *transformer.Model {
	scope := store.RootScope().WithInitializer(func(g *Graph, shape shapes.Shape) *Node {
		n := Iota(g, shapes.Make(dtypes.Float32, shape.Size()), 0)
		n = Sin(Mul(AddScalar(n, float64(shape.Size())), n))
		return ConvertDType(Reshape(n, shape.Dimensions...), shape.DType)
	})
	return transformer.New(scope).WithVocabSize(23).WithEmbedDim(16).WithNumLayers(2).WithNumHeads(4).
		WithHeadDim(4).WithFFNDim(32).WithMaxPosEmbed(32)
}

// Concord writes with a cache what GoMLX's Go backend writes by looking at the whole text for each token. That backend
// has no caches, as it lacks DynamicUpdateSlice.
func TestGenerate(t *testing.T) {
	const length = 12
	prompt := []int32{3, 1, 4, 1, 5}
	plain, err := compute.NewWithConfig("go")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Finalize()
	store := model.NewStore()
	m := writer(store)
	next, err := model.NewExec(plain, store, func(_ *model.Scope, tokens *Node) *Node {
		m.Scope = m.Scope.ResetVisited()
		return ArgMax(m.Logits(tokens, transformer.CallOptions{}), -1)
	})
	if err != nil {
		t.Fatal(err)
	}
	want := append([]int32{}, prompt...)
	for len(want) < length {
		out, err := next.Call([][]int32{want})
		if err != nil {
			t.Fatalf("%+v", err)
		}
		want = append(want, out[0].Value().([][]int32)[0][len(want)-1])
	}
	onDevices(t, func(t *testing.T, b *gomlx.Backend) {
		store := model.NewStore()
		m := writer(store)
		m.PopulateKVCacheConfigs()
		g := generate.New(transformer.MakeKVCacheModelFn(m)).WithMaxLength(length)
		g = g.WithKVCache(m.KVCache, 4, 4, dtypes.Float32)
		out, err := g.Decode(b, m.Scope, [][]int32{prompt})
		if err != nil {
			t.Fatalf("%+v", err)
		}
		equal(t, [][]int32{want}, out.Value())
		t.Log(want)
	})
}
