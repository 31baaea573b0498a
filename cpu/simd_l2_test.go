package cpu

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDistancesOfBytesExact checks that every result is the quotient of the exact sum, for sizes around
// whole registers, strips and blocks, and for the smallest and largest bytes.
func TestDistancesOfBytesExact(t *testing.T) {
	eachBytes(t, func(t *testing.T, d *device) {
		if d.simd == nil {
			t.Skip("the Go kernel rounds at another step")
		}
		f := newFence(t, 17)
		for _, dim := range []int{0, 1, 3, 4, 7, 8, 16, 29, 32, 63, 64, 65, 100, 128, 200} {
			for _, nv := range []int{1, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 97, 128, 131} {
				f.exactDistances(d, 9+f.r.IntN(30), nv, dim)
			}
		}
		f.exactDistances(d, 10, 34, l2Int8Short)
	})
}

func (f *fence) exactDistances(d *device, nq, nv, dim int) {
	f.t.Helper()
	data := func(n int) []byte {
		b := f.bytes(n)
		for i := range b {
			b[i] = byte(f.r.Uint32())
			if f.r.IntN(2) == 0 {
				b[i] = 127 + byte(f.r.IntN(2))
			}
		}
		return b
	}
	q, v, out := data(nq*dim), data(nv*dim), f.bytes(4*nq*nv)
	for i := range dim { // the largest possible distance
		q[i], v[i] = 127, 128
	}
	require.NoError(f.t, invoke(f.t, d, "l2_distance", "l2_distance_int8", nil, [3]int{1, 1, 1}, q, v, out, uint32(nq),
		uint32(nv), uint32(dim)))
	for i := range nq * nv {
		sum := int64(0)
		for k := range dim {
			x := int64(int8(q[i/nv*dim+k])) - int64(int8(v[i%nv*dim+k]))
			sum += x * x
		}
		if want, got := float32(sum)/16129, at32(out, i); got != want {
			require.Equal(f.t, want, got, "%d×%d×%d at %d", nq, nv, dim, i)
		}
	}
	f.free()
}
