package kernels

// Tests of the catalog as a whole: every case fits a program that parses, and wrong results
// exceed the bounds.

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/source"
)

// TestCasesFitTheirKernels checks that every case names a program that parses, a kernel in it,
// and arguments that fit its parameters.
func TestCasesFitTheirKernels(t *testing.T) {
	names := map[string]bool{}
	for _, f := range Families() {
		used := map[string]bool{}
		for _, c := range Cases(f.ID) {
			require.False(t, names[c.Name()], "two cases are called %s", c.Name())
			names[c.Name()] = true
			used[c.Kernel] = true
			u, err := Unit(c.Family, nil, c.Defines...)
			require.NoError(t, err, c.Name())
			require.Equal(t, c.Family, u.Family())
			k, ok := u.Kernel(c.Kernel)
			require.True(t, ok, c.Name())
			require.Len(t, c.Args, len(k.Params), c.Name())
			for i, a := range c.Args {
				p := k.Params[i]
				assert.Equal(t, a.Dir != Value, p.Pointer, "%s: %s", c.Name(), p.Name)
				assert.Equal(t, kinds[a.Type], p.Kind, "%s: %s is %s", c.Name(), p.Name, p.Decl)
				assert.Equal(t, a.Dir == In, p.Pointer && p.Const, "%s: direction of %s", c.Name(), p.Name)
			}
			items, group, err := Geometry(u, c.Kernel, c.Sizes...)
			require.NoError(t, err, c.Name())
			assert.Equal(t, k.ReqdLocal, group, c.Name())
			for d := range 3 {
				assert.Positive(t, items[d], c.Name())
				assert.Zero(t, items[d]%max(group[d], 1), c.Name())
			}
			assert.NotEmpty(t, c.Tolerance, c.Name())
			assert.NotEmpty(t, c.Why, c.Name())
		}
		for _, k := range f.Kernels {
			assert.True(t, used[k], "%s/%s has no case", f.ID, k)
		}
		assert.Len(t, used, len(f.Kernels), f.ID)
	}
	t.Logf("%d cases", len(names))
}

// TestUnlistedKernel parses a text with a kernel that its family does not list, so that no case would judge it.
func TestUnlistedKernel(t *testing.T) {
	text := []byte("kernel void a(global int *x) { x[0] = 1; }\nkernel void b(global int *x) { x[0] = 2; }\n")
	f := &Family{ID: "two", Kernels: []string{"a"}, Source: fstest.MapFS{"two.cl": {Data: text}}}
	_, err := f.parse(source.Portable, nil)
	require.ErrorContains(t, err, "does not list kernel b of its text")
	f.Kernels = append(f.Kernels, "b")
	_, err = f.parse(source.Portable, nil)
	require.NoError(t, err)
}

var kinds = map[string]source.Kind{
	"f32": source.Float, "f64": source.Double, "f16": source.Half, "bf16": source.UShort,
	"i8": source.Char, "i16": source.Short, "i32": source.Int, "i64": source.Long,
	"u8": source.UChar, "u16": source.UShort, "u32": source.UInt, "u64": source.ULong,
	"": source.Struct, // a value of Bytes
}

func TestDataFits(t *testing.T) {
	for _, f := range Families() {
		for _, c := range Cases(f.ID) {
			for i, a := range c.Args {
				assert.Positive(t, max(a.Len, btoi(a.Dir == Value)), c.Name())
				if a.Dir == In || a.Dir == InOut {
					require.Len(t, a.Data(), a.Len, "%s: argument %d", c.Name(), i)
				}
			}
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestUnitIsMemoized(t *testing.T) {
	a, err := Unit("gemm", nil)
	require.NoError(t, err)
	b, err := Unit("gemm", nil, source.Define{Name: "T", Value: "f32"})
	require.NoError(t, err)
	assert.Same(t, a, b, "f32 is the default")
	c, err := Unit("gemm", nil, source.Define{Name: "T", Value: "f64"})
	require.NoError(t, err)
	assert.NotSame(t, a, c)
	d, err := Unit("gemm", &source.Features{FP64: true})
	require.NoError(t, err)
	assert.NotSame(t, a, d)
}

func TestUnitRefuses(t *testing.T) {
	for _, c := range []struct {
		id, name, value, want string
		features              *source.Features
	}{
		{"none", "T", "f32", "no family", nil},
		{"gemm", "T", "i8", "not one of f32 f64 f16 bf16", nil},
		{"gemm", "TILE", "8", "not one of [T TRANS_A TRANS_B TYPE_A TYPE_B OUT ITEMS EACH WIDE DEPTH PAD]", nil},
		{"gemm", "TRANS_A", "2", "not 0 or 1", nil},
		{"gemm", "TYPE_B", "f32", "not one of f16 bf16", nil},
		{"gemm_bias", "ACT", "swish", "not one of none relu sigmoid tanh gelu silu", nil},
		{"gemm", "T", "f64", "double precision", &source.Features{Int64Atomic: true}},
		{"scan", "GROUP", "100", "power of two", nil},
		{"reduce", "INDEX", "f32", "not one of i8 i16", nil},
		{"gather", "CLAMP", "2", "not 0 or 1", nil},
		{"sort_pairs", "VALUE", "u4", "not one of f32", nil},
		{"conv2d", "SPREAD_H", "0", "not from 1 to 1024", nil},
		{"conv2d", "SPREAD_W", "02", "not from 1 to 1024", nil},
		{"transpose", "TILE", "64", "1 to 32", nil},
		{"vector_add", "WIDTH", "3", "not one of 1 2 4 8 16", nil},
	} {
		_, err := Unit(c.id, c.features, source.Define{Name: c.name, Value: c.value})
		assert.ErrorContains(t, err, c.want)
	}
	_, err := Unit("gemm", nil, source.Define{Name: "T", Value: "f16"}, source.Define{Name: "TYPE_A", Value: "bf16"})
	assert.ErrorContains(t, err, "TYPE_A is for T=f32")
}

// TestOtherDefinitions checks that programs also parse with other values of the definitions that
// are not types.
func TestOtherDefinitions(t *testing.T) {
	for id, def := range map[string]source.Define{"scan": {Name: "GROUP", Value: "1"},
		"reduce": {Name: "INDEX", Value: "i64"},
		"topk":   {Name: "GROUP", Value: "32"}, "transpose": {Name: "TILE", Value: "32"},
		"gemm_bias": {Name: "ACT", Value: "none"}, "vector_add": {Name: "WIDTH", Value: "16"}} {
		u, err := Unit(id, nil, def)
		require.NoError(t, err)
		assert.NotEmpty(t, u.Kernels())
	}
}

// TestNoDoubleWithoutFP64 checks that all families parse with their default types for a device
// without double precision.
func TestNoDoubleWithoutFP64(t *testing.T) {
	for _, f := range Families() {
		_, err := Unit(f.ID, &source.Features{Int64Atomic: true})
		assert.NoError(t, err, f.ID)
	}
}

// TestReduceParts checks that long axes of few results are divided, and only these, and that no part is short.
func TestReduceParts(t *testing.T) {
	for _, c := range [][4]int{{1, 1 << 24, 1, 1024}, {2, 1 << 24, 3, 170}, {1, 1 << 16, 1, 8}, {1, 1 << 13, 1, 1},
		{1, 100, 1, 1}, {0, 1 << 24, 1, 1},
		{1, 0, 1, 1}, {512, 1 << 24, 1, 1}, {1, 1 << 24, 1000, 1}} {
		assert.Equal(t, c[3], ReduceParts(c[0], c[1], c[2]), "%v", c)
	}
}

// TestBoundsSeeMistakes checks that the bounds of gemm are smaller than the effect of one product
// that is left out.
func TestBoundsSeeMistakes(t *testing.T) {
	for _, c := range Cases("gemm") {
		if !strings.HasPrefix(c.Shape, "m=127") {
			continue
		}
		in := make([][]float64, len(c.Args))
		for i := range c.Args {
			in[i] = c.Args[i].Data()
		}
		ref := make([]float64, c.Args[9].Len)
		bound := c.Bound(9, in, ref)
		for i := range bound {
			// One product left out of 67 in [-1, 1] is about 0.25.
			assert.Less(t, bound[i], 1e-3)
			assert.Greater(t, bound[i], 1e-7)
		}
		return
	}
	t.Fatal("no case")
}
