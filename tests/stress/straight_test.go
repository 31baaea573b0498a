//go:build cgo

package stress

// Indices that the item loops count in 64 bits must be what 32 bits make of them, also
// where those wrap within a row.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// straightValues are what each item computes: i and u hold its id, l its place in the
// group, y its second id, n and m are arguments.
var straightValues = []string{
	"i", "u", "-i", "~u", "i - 1", "u - 1", "n - i", "m - u", "i + m", "i + n + m", "2 * i - n * 3", "i * 65536", "u * 65536u + m",
	"(i << 12) - l", "(u << 16) | 0", "n * y + i", "m * y - u", "-(int)u * 40000", "(uint)(size_t)i * 50000 + 7", "(int)((long)i - 5) + n",
	"y ? i - n : i", "min(i, n)", "j", "j - 1", "v + 1", "(short)i", "i % 7", "(uchar)u + 1", "i * n", "i + (y == 1)", "i ? u : m",
}

// TestStraight compares them with the loops that leave indices alone.
func TestStraight(t *testing.T) {
	const items, rows = 70000, 2
	var text strings.Builder
	for k, value := range straightValues {
		fmt.Fprintf(&text, `kernel void k%d(global long *out, int n, uint m) {
  int i = get_global_id(0), y = get_global_id(1), l = get_local_id(0);
  uint u = get_global_id(0);
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
