package stress

// The dot products of bytes of cl_khr_integer_dot_product on every device, against Go.

import (
	"math"
	"math/rand"
	"testing"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const dotText = `
#ifndef cl_khr_integer_dot_product
#error there is no extension
#endif
int twice(uint a, uint b) { return 2 * dot_4x8packed_ss_int(a, b); }
kernel void dots(global const uint *a, global const uint *b, global const uint *c, global uint *out, uint n) {
  uint i = get_global_id(0);
  if (i >= n)
    return;
  global uint *o = out + 23 * (size_t)i;
  int acc = as_int(c[i]);
  o[0] = dot_4x8packed_uu_uint(a[i], b[i]);
  o[1] = as_uint(dot_4x8packed_ss_int(a[i], b[i]));
  o[2] = as_uint(dot_4x8packed_su_int(a[i], b[i]));
  o[3] = as_uint(dot_4x8packed_us_int(a[i], b[i]));
  o[4] = dot_acc_sat_4x8packed_uu_uint(a[i], b[i], c[i]);
  o[5] = as_uint(dot_acc_sat_4x8packed_ss_int(a[i], b[i], acc));
  o[6] = as_uint(dot_acc_sat_4x8packed_su_int(a[i], b[i], acc));
  o[7] = as_uint(dot_acc_sat_4x8packed_us_int(a[i], b[i], acc));
  uchar4 ua = as_uchar4(a[i]), ub = as_uchar4(b[i]);
  char4 sa = as_char4(a[i]), sb = as_char4(b[i]);
  o[8] = dot(ua, ub);
  o[9] = as_uint(dot(sa, sb));
  o[10] = as_uint(dot(sa, ub));
  o[11] = as_uint(dot(ua, sb));
  o[12] = dot_acc_sat(ua, ub, c[i]);
  o[13] = as_uint(dot_acc_sat(sa, sb, acc));
  o[14] = as_uint(dot_acc_sat(sa, ub, acc));
  o[15] = as_uint(dot_acc_sat(ua, sb, acc));
  o[16] = as_uint(twice(a[i], b[i]) + (int)dot((float2)(1, 2), (float2)(3, 4)));
  // Sums, which are one instruction where devices have it.
  int s = acc;
  s += dot_4x8packed_ss_int(a[i], b[i]);
  s += (dot_4x8packed_su_int(a[i], b[i]));
  s = dot_4x8packed_us_int(a[i], b[i]) + s;
  o[17] = as_uint(s);
  uint u = c[i];
  u += dot_4x8packed_uu_uint(a[i], b[i]);
  o[18] = u + dot_4x8packed_uu_uint(b[i], a[i]);
  int v[2] = {acc, acc}, j = 0;
  v[j++] += dot_4x8packed_ss_int(a[i], b[i]);
  v[1] += dot_4x8packed_ss_int(a[i], b[i]) + j++;
  o[19] = as_uint(v[0] ^ v[1]) + j;
  int4 w = (int4)(acc);
  w.y += dot_4x8packed_su_int(a[i], b[i]);
  o[20] = as_uint(w.y - w.x);
  volatile int z = acc;
  z += dot_4x8packed_us_int(a[i], b[i]);
  char e = 1;
  e += dot_4x8packed_ss_int(a[i], b[i]);
  o[21] = as_uint(z) + (uint)e;
  o[22] = as_uint(dot_4x8packed_ss_int(a[i], b[i]) + dot_4x8packed_us_int(a[i], b[i]) + dot_4x8packed_su_int(a[i], b[i])) + (s > dot_4x8packed_ss_int(a[i], b[i]));
}`

// dotReference returns what the kernel computes.
func dotReference(a, b, c uint32) (out [23]uint32) {
	var uu, ss, su, us int64
	for k := 0; k < 32; k += 8 {
		ua, ub := int64(uint8(a>>k)), int64(uint8(b>>k))
		sa, sb := int64(int8(a>>k)), int64(int8(b>>k))
		uu, ss, su, us = uu+ua*ub, ss+sa*sb, su+sa*ub, us+ua*sb
	}
	signed := func(x int64) uint32 { return uint32(int32(min(max(x, math.MinInt32), math.MaxInt32))) }
	acc := int64(int32(c))
	both := [8]uint32{uint32(uu), signed(ss), signed(su), signed(us), uint32(min(uu+int64(c), math.MaxUint32)),
		signed(ss + acc), signed(su + acc), signed(us + acc)}
	copy(out[:], both[:])
	copy(out[8:], both[:])
	out[16] = uint32(int32(2*ss + 11))
	s := int32(acc + ss + su + us)
	out[17] = uint32(s)
	out[18] = uint32(int64(c) + 2*uu)
	out[19] = uint32(int32(acc+ss)^int32(acc+ss+1)) + 2
	out[20] = uint32(su)
	out[21] = uint32(acc+us) + uint32(int8(1+ss))
	out[22] = uint32(ss + us + su)
	if int64(s) > ss {
		out[22]++
	}
	return out
}

func TestByteDots(t *testing.T) {
	edges := []uint32{0, 1, 0x7f7f7f7f, 0x80808080, 0xffffffff, 0x80ff7f01, 0x7fffffff, 0x80000000, 0xfffffff0, 0x0100ff80}
	var a, b, c []uint32
	for _, x := range edges {
		for _, y := range edges {
			for _, z := range edges {
				a, b, c = append(a, x), append(b, y), append(c, z)
			}
		}
	}
	r := rand.New(rand.NewSource(1))
	for len(a) < 4099 {
		a, b, c = append(a, r.Uint32()), append(b, r.Uint32()), append(c, r.Uint32())
	}
	eachDevice(t, func(t *testing.T, d *runtime.Device) {
		unit, err := source.Parse(dotText, source.Options{Name: "dots.cl", Features: d.Features()})
		require.NoError(t, err)
		prog, err := d.Program(t.Context(), unit)
		require.NoError(t, err)
		k, err := prog.Kernel("dots")
		require.NoError(t, err)
		upload := func(v []uint32) *runtime.Buffer {
			buf, err := runtime.Upload(t.Context(), d, v)
			require.NoError(t, err)
			t.Cleanup(func() { _ = buf.Close() })
			return buf
		}
		got := make([]uint32, 23*len(a))
		out := upload(got)
		require.NoError(t, d.Stream().Launch(k, runtime.Items(len(a)), upload(a), upload(b), upload(c), out, uint32(len(a))))
		require.NoError(t, runtime.Read(t.Context(), out, got))
		for i := range a {
			want := dotReference(a[i], b[i], c[i])
			require.Equal(t, want[:], got[23*i:23*i+23], "%#x %#x %#x", a[i], b[i], c[i])
		}
	})
	_, err := source.Parse("kernel void k(global int *x) { x[0] = dot_4x8packed_ss_int(x[0], x[1], x[2]); }",
		source.Options{})
	assert.ErrorContains(t, err, "no 'dot_4x8packed_ss_int' takes (int, int, int)")
	_, err = source.Parse("kernel void k(global int *x) { x[0] = dot((int4)(1), (int4)(2)); }", source.Options{})
	assert.ErrorContains(t, err, "no 'dot' takes (int4, int4)")
}
