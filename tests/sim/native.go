package sim

import (
	"context"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

const nativePrototypes = "kernel void turn(global float *x, local float *t, float a);\n"

const nativeCUDA = `template <class T> __device__ T scaled(T a, T x) { return a * x; }
extern "C" __global__ void turn(float *x, unsigned at, float a) { // at: of t in the launch's memory
  extern __shared__ unsigned char memory[];
  float *t = (float *)(memory + at);
  unsigned i = threadIdx.x, group = blockIdx.x * blockDim.x;
  t[i] = scaled(a, x[group + i]) + OFFSET;
  __syncthreads();
  x[group + i] = t[blockDim.x - 1 - i];
}
`

const nativeMetal = `#include <metal_stdlib>
using namespace metal;
kernel void turn(device float *x [[buffer(0)]], threadgroup float *t [[threadgroup(0)]],
                 constant float &a [[buffer(1)]], uint3 i [[thread_position_in_threadgroup]],
                 uint3 n [[threads_per_threadgroup]], uint3 g [[threadgroup_position_in_grid]]) {
  t[i.x] = a * x[g.x * n.x + i.x] + OFFSET;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  x[g.x * n.x + i.x] = t[n.x - 1 - i.x];
}
`

// NativeUnit returns a unit with a text in the target's language. With a mistake, a place in line 2 of it is
// wrong.
func NativeUnit(t *testing.T, target source.Target, features source.Features, mistake bool) *source.Unit {
	t.Helper()
	text := nativeCUDA
	if target == source.Metal {
		text = nativeMetal
	}
	if mistake {
		first, rest, _ := strings.Cut(text, "\n")
		text = first + "\nmistake here;\n" + rest
	}
	u, err := source.Parse(nativePrototypes, source.Options{Name: "turn.cl", Features: &features, Defines: []source.Define{
		{Name: "OFFSET", Value: "0.5f"}},
		Native: map[source.Target]source.File{target: {Name: "turn.native", Text: text}}})
	require.NoError(t, err)
	return u
}

// Native runs a kernel that is written in the device's own language, with every kind of argument, and
// compiles one with a mistake.
func Native(t *testing.T, d driver.Device, target source.Target) {
	t.Helper()
	ctx, c := context.Background(), d.(driver.Compiler)
	_, err := c.Compile(ctx, NativeUnit(t, target, d.Info().Features, true), nil)
	build := (*driver.BuildError)(nil)
	require.ErrorAs(t, err, &build)
	assert.Regexp(t, `turn\.native[:(]2`, build.Log, "places are those of the native text")

	u := NativeUnit(t, target, d.Info().Features, false)
	bin, err := c.Compile(ctx, u, nil)
	require.NoError(t, err)
	m, err := c.Load(ctx, u, bin)
	require.NoError(t, err)
	defer m.Close()
	k, err := m.Kernel("turn")
	require.NoError(t, err)
	s, err := d.NewStream()
	require.NoError(t, err)
	defer s.Close()
	const n, group = 64, 16
	mem, host := counting(t, d, s, n)
	defer d.Free(mem)
	require.NoError(t, s.Launch(&driver.Launch{Kernel: k, Dim: 1, Global: [3]int{n, 1, 1}, Local: [3]int{group, 1, 1},
		Args: []driver.Arg{{Kind: driver.ArgMemory, Memory: mem}, {Kind: driver.ArgLocal, Size: 4 * group},
			{Kind: driver.ArgValue, Size: 4}},
		Data: binary.LittleEndian.AppendUint32(nil, math.Float32bits(3))}))
	require.NoError(t, s.Download(ctx, host, mem))
	for i := range n {
		want := float32(3*(i/group*group+group-1-i%group)) + 0.5
		assert.Equal(t, want, math.Float32frombits(binary.LittleEndian.Uint32(host[4*i:])), "item %d", i)
	}
}
