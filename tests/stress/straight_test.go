//go:build cgo

package stress

// Indices that the item loops count in 64 bits must have the values of 32-bit arithmetic, also if
// that wraps within a row.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// straightValues are the expressions that each item computes: i and u hold its id, l its place in
// the group, y its second id, w and b are u in fewer bits, n and m are arguments.
var straightValues = []string{
	"i", "u", "-i", "~u", "i - 1", "u - 1", "n - i", "m - u", "i + m", "i + n + m", "2 * i - n * 3", "i * 65536",
	"u * 65536u + m",
	"(i << 12) - l", "(u << 16) | 0", "n * y + i", "m * y - u", "-(int)u * 40000", "(uint)(size_t)i * 50000 + 7",
	"(int)((long)i - 5) + n",
	"y ? i - n : i", "min(i, n)", "j", "j - 1", "v + 1", "(short)i", "i % 7", "(uchar)u + 1", "i * n", "i + (y == 1)",
	"i ? u : m",

	// a wrap that cancels in the lower 32 bits shows in the upper ones
	"i + ((int)(((ulong)(u * 65537u + m) - (ulong)(u * 65537u)) >> 32) & 1)",
	"i + (int)(((ulong)(u * 100000u + m) - (ulong)(u * 100000u)) >> 32)",
	"i + (int)(((long)(i * 100000 + n) - (long)(i * 100000)) / 3)",
	"i + (int)(((long)(i * 100000 + n) - (long)(i * 100000)) % 1000)",
	"i + ((long)(i * 100000 + n) - (long)(i * 100000) == n)",
	"i + ((long)(i * 100000 + n) - (long)(i * 100000) == n && y == 0)",
	"i + ((long)(i * 100000 + n) - (long)(i * 100000) > 0 ? 3 : 5)",
	"i + !((ulong)(u * 65537u + m) - (ulong)(u * 65537u) - m)",
	"i + (bool)((ulong)(u * 65537u + m) - (ulong)(u * 65537u) - m)",
	"i + ((float)((ulong)(u * 65537u + m) - (ulong)(u * 65537u)) > 1e10f)",
	"i + (int)((((ulong)(u * 65537u + m) - (ulong)(u * 65537u)) & 0xf00000000ul) != 0)",
	"i + (int)(((((ulong)(u * 65537u + m) - (ulong)(u * 65537u)) * 8ul) << 3) >> 38)",
	"i + (int)((ulong)(i - i + n) * (ulong)(u * 65537u) >> 32)",
	"i + (int)(((ulong)(i * 100000) - (ulong)(u * 100000u)) >> 32)",
	"i + (int)(((ulong)(-u) + (ulong)u) >> 32)",
	"i + (int)(((ulong)~u + (ulong)(u * 65537u) - (ulong)(u * 65536u)) >> 32)",

	// and so do 16 and 8 bits in those above them
	"i + (ushort)(u + m) - (ushort)u", "i + (short)(i * 3) - (short)(u * 3u)", "i + (uchar)(u + 250) - (uchar)u",
	"i + (((short)(i + n) - (short)i) >> 8)", "i + (int)(((long)(short)i - (long)(ushort)u) >> 16)",
	"i + (char)i - (uchar)i",
	"w - (ushort)7", "b + i", "i * 65536 * 65536 + i", "u * 4294967295u", "(int)(u * 4294901761u) + 1",
	"(uint)(((ulong)u << 32) + u)", "(uint)((ulong)i * 4294967297ul)", "(i << 30) + i", "(int)(((long)i << 30) - i)",

	// also when a row counts too many sums to see them all
	many() + "(i + (int)(((long)(i * 3 + n) - (long)(i * 3)) >> 32))",
	many() + "(i + (int)(((ulong)(u * 3u - m) - (ulong)(u * 3u)) / 7))",
	many() + "(i + ((long)(i * 3 + n) - (long)(i * 3) < 0))",
}

// many returns the beginning of a sum with more straight indices than the limit for a row.
func many() string {
	var text strings.Builder
	for k := range 30 {
		fmt.Fprintf(&text, "(long)(i + %d) + ", k)
	}
	return text.String()
}

// TestStraight compares the results with those of kernels without straight indices.
func TestStraight(t *testing.T) {
	const items, rows = 70000, 2
	var text strings.Builder
	for k, value := range straightValues {
		fmt.Fprintf(&text, `kernel void k%d(global long *out, int n, uint m) {
  int i = get_global_id(0), y = get_global_id(1), l = get_local_id(0);
  uint u = get_global_id(0);
  ushort w = u;
  bool b = u;
  const int j = n * y + i - 3;
  size_t o = get_global_id(1) * get_global_size(0) + get_global_id(0);
  if (o == 12345) return;
  { uint v = m + u; int l = v; out[2 * o] = (long)(%s) + l; }
  ulong s = %s;
  out[o * 2 + 1] = s;
}
`, k, value, strings.ReplaceAll(value, "v + 1", "m"))
	}
	d, err := runtime.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	defer d.Close()
	var results [2][][]int64
	for i, fibers := range []bool{false, true} {
		u, err := source.Parse(text.String(), source.Options{Name: "straight.cl", Defines: forced(fibers)})
		require.NoError(t, err)
		rendered, err := u.Render(source.Host)
		require.NoError(t, err)
		assert.Equal(t, !fibers, strings.Contains(rendered, "cc_r.template from<"))
		p, err := d.Program(t.Context(), u)
		require.NoError(t, err)
		out, err := runtime.Upload(t.Context(), d, make([]int64, 2*items*rows))
		require.NoError(t, err)
		for k := range straightValues {
			for _, arg := range []int32{5, 1<<31 - 20, -1 << 31} {
				kernel, err := p.Kernel(fmt.Sprintf("k%d", k))
				require.NoError(t, err)
				require.NoError(t, d.Stream().Launch(kernel, runtime.Items(items, rows), out, arg, uint32(arg)+3))
				got := make([]int64, 2*items*rows)
				require.NoError(t, runtime.Read(t.Context(), out, got))
				results[i] = append(results[i], got)
			}
		}
		require.NoError(t, out.Close())
		require.NoError(t, p.Close())
	}
	for k := range results[0] {
		for o, want := range results[1][k] {
			if results[0][k][o] != want {
				t.Errorf("%s: number %d is %d instead of %d", straightValues[k/3], o, results[0][k][o], want)
				break
			}
		}
	}
}
