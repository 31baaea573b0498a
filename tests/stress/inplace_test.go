//go:build cgo

package stress

import (
	"testing"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// inPlace are kernels whose two buffers may be the same one: then an item reads what it has just written.
const inPlace = `
kernel void f(global float *x, global const float *y, ulong n) {
  size_t i = get_global_id(0);
  if (i < n) { x[i] = y[i] * 2; x[i] += y[i]; }
}
kernel void l(global long *x, global const long *y, int n) {
  int i = get_global_id(0);
  if (i >= n) return;
  long v = y[i]; x[i] = v * 2; x[i] += y[i];
}
kernel void b(global char *x, global const char *y, ulong n) {
  size_t i = get_global_id(0);
  if (i < n) { x[i] = y[i] * 2; if (y[i] & 1) return; x[i] += y[i]; }
}
kernel void r(global int *x, global const int *y, int n) {
  int i = get_global_id(0);
  if (i < n) { x[n - 1 - i] = y[n - 1 - i] * 2; x[n - 1 - i] += y[n - 1 - i]; }
}
`

// TestInPlace: one item's accesses keep their order when the buffers of a launch are the same, though
// compilers are told that items do not depend on each other.
func TestInPlace(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *runtime.Device) {
		u, err := source.Parse(inPlace, source.Options{Name: "inplace.cl"})
		require.NoError(t, err)
		p := build(t, d, u)
		for _, n := range []int{1, 7, 64, 1003} {
			inPlaceOf[float32](t, d, p, "f", n, uint64(n))
			inPlaceOf[int64](t, d, p, "l", n, int32(n))
			inPlaceOf[int8](t, d, p, "b", n, uint64(n))
			inPlaceOf[int32](t, d, p, "r", n, int32(n))
		}
	})
}

func inPlaceOf[T float32 | int64 | int8 | int32](t *testing.T, d *runtime.Device, p *runtime.Program, kernel string,
	n int, arg any) {
	k, err := p.Kernel(kernel)
	require.NoError(t, err)
	in, apart, same := make([]T, n), make([]T, n), make([]T, n)
	for i := range in {
		in[i] = T(i % 9 * 2) // even, for b
		apart[i], same[i] = 3*in[i], 4*in[i]
	}
	for _, want := range [][]T{apart, same} {
		x, err := runtime.Upload(t.Context(), d, in)
		require.NoError(t, err)
		y, err := runtime.Upload(t.Context(), d, in)
		require.NoError(t, err)
		if &want[0] == &same[0] {
			require.NoError(t, y.Close())
			y = x
		}
		require.NoError(t, d.Stream().Launch(k, runtime.Items(n), x, y, arg))
		got := make([]T, n)
		require.NoError(t, runtime.Read(t.Context(), x, got))
		assert.Equal(t, want, got, "%s of %d", kernel, n)
	}
}
