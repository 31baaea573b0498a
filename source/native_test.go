package source_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/source"
)

func TestNativeText(t *testing.T) {
	const text = "kernel void scale(global float *x, float a);\nkernel void both(global int *x) { x[0] = N; }\n"
	const cuda = "extern \"C\" __global__ void scale(float *x, float a) {}\nextern \"C\" __global__ void both(int *x) {}"
	parse := func(native map[source.Target]source.File) (*source.Unit, error) {
		return source.Parse(text, source.Options{Name: "k.cl", Defines: []source.Define{{Name: "N", Value: "3"}},
			Native: native})
	}
	native := map[source.Target]source.File{source.CUDA: {Name: "k.cu", Text: cuda}}
	u, err := parse(native)
	require.NoError(t, err)
	native[source.CUDA] = source.File{} // the unit has a copy
	k, ok := u.Kernel("scale")
	require.True(t, ok)
	require.Len(t, k.Params, 2)
	assert.Equal(t, "global float *", k.Params[0].Decl)
	assert.Equal(t, "a", k.Params[1].Name)
	assert.Len(t, u.Kernels(), 2)

	assert.Equal(t, []string{"k.cu", "k.cl", "k.cl"}, []string{u.NameFor(source.CUDA), u.NameFor(source.HIP), u.Name()})
	got, err := u.Render(source.CUDA)
	require.NoError(t, err)
	assert.Contains(t, got, "#define N 3\n")
	assert.Contains(t, got, "#define scale cc_kernel_scale\n")
	assert.True(t, strings.HasSuffix(got, "#line 1 \"k.cu\"\n"+cuda+"\n"))
	for _, target := range []source.Target{source.OpenCL, source.Host, source.HIP, source.Metal} {
		_, err = u.Render(target)
		require.ErrorIs(t, err, source.ErrUnsupported)
		var list source.ErrorList
		require.True(t, errors.As(err, &list))
		require.Len(t, list, 1, "the other kernel has a portable text")
		assert.Equal(t, "k.cl:1:13", list[0].Pos.String())
		assert.Contains(t, list[0].Msg, target.String())
	}
	_, err = u.RenderOffsets()
	assert.ErrorIs(t, err, source.ErrUnsupported)
	_, err = u.HostPart(t.Context())
	assert.ErrorIs(t, err, source.ErrUnsupported)

	// Every text and its name are part of the hash.
	hashes := map[[32]byte]bool{}
	for _, n := range []map[source.Target]source.File{nil,
		{source.CUDA: {Name: "k.cu", Text: cuda}}, {source.HIP: {Name: "k.cu", Text: cuda}},
		{source.CUDA: {Name: "l.cu", Text: cuda}},
		{source.CUDA: {Name: "k.cu", Text: cuda + " "}},
		{source.CUDA: {Name: "k.cu", Text: cuda}, source.Metal: {Name: "k.metal", Text: cuda}}} {
		u, err := parse(n)
		require.NoError(t, err)
		assert.False(t, hashes[u.Hash()])
		hashes[u.Hash()] = true
		if n == nil {
			assert.Len(t, u.Kernels(), 1, "without a native text a kernel that is only declared is none")
		}
	}

	for _, target := range []source.Target{source.OpenCL, source.Host, 77} {
		_, err = parse(map[source.Target]source.File{target: {Name: "x", Text: cuda}})
		assert.ErrorContains(t, err, "x:1:1", "%s", target)
	}
	_, err = parse(map[source.Target]source.File{
		source.Metal: {Text: "kernel void cc_kernel_scale(); kernel void both();"}})
	assert.NoError(t, err, "the names of entry points are good as well")
	_, err = parse(map[source.Target]source.File{source.Metal: {Text: "kernel void scaled(); kernel void both();"}})
	require.ErrorContains(t, err, "the kernel 'scale' is not in program.metal")
	assert.ErrorContains(t, err, "k.cl:1:13")
}
