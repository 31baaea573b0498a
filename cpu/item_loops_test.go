//go:build cgo && unix

package cpu

// Tests of the code that the host's compiler generates for the loops over items.

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// itemLoops are kernels, a text each, whose loop over the items has to be vectorized:
// bodies of kernel void k(const float *in, float *out, float a, N w, N n).
var itemLoops = map[string]string{
	"saxpy":           "N i = get_global_id(0); if (i < n) out[i] = a * in[i] + out[i];",
	"without a guard": "N i = get_global_id(0); out[i] = a * in[i] + out[i];",
	"line": `N i = get_global_id(0); if (i >= w && i < n - w)
		out[i] = 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - w] + in[i + w]);`,
	"plane": `N x = get_global_id(0), y = get_global_id(1); if (x > 0 && x < w - 1 && y > 0 && y < n - 1) { N i = y * w + x;
		out[i] = 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - w] + in[i + w]); }`,
	"plane of the launch": `N x = get_global_id(0), y = get_global_id(1), w1 = get_global_size(0), i = y * w1 + x;
		if (x == 0 || y == 0 || x == w1 - 1 || y == get_global_size(1) - 1) return;
		out[i] = in[i] + (in[i - 1] + in[i + 1] + in[i - w1] + in[i + w1]);`,
	"edges": `N x = get_global_id(0), y = get_global_id(1);
		if (x > 0 && x < w - 1) out[y * w + x] = in[y * w + x - 1] + in[y * w + x + 1]; else out[y * w + x] = 0;`,
	"some items": "N i = get_global_id(0); float v = in[i]; if (v > a) out[i] = v;",
	"tree": "N l = get_local_id(0); for (N s = n / 2; s > 0; s /= 2) { if (l < s) out[l] += out[l + s]; " +
		"barrier(CLK_GLOBAL_MEM_FENCE); }",
}

// TestItemLoopsVectorize reads the compiler's report of vectorized loops.
func TestItemLoopsVectorize(t *testing.T) {
	needCompiler(t)
	c, _, err := findToolchain(background(t))
	require.NoError(t, err)
	report, done := "-fopt-info-vec-optimized", "loop vectorized"
	if strings.Contains(c.version, "clang") {
		report, done = "-Rpass=loop-vectorize", "vectorized loop"
	}
	for name, body := range itemLoops {
		for _, index := range []string{"int", "uint", "ulong"} {
			t.Run(name+" "+index, func(t *testing.T) {
				u := parse(t, "kernel void k(global const float *in, global float *out, float a, N w, N n) { "+body+" }",
					source.Define{Name: "N", Value: index})
				text, err := u.Render(source.Host)
				require.NoError(t, err)
				_, log, err := c.build(background(t), text, u.Loops(), []string{report})
				if err != nil && strings.Contains(log, report) {
					t.Skipf("%s has no report: %s", c.path, log)
				}
				require.NoError(t, err, log)
				assert.Contains(t, log, done)
			})
		}
	}
}

// TestIDsBeyondInt launches so many items that ids do not fit in an int; for those another version of
// the kernel runs.
func TestIDsBeyondInt(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: 2^31 items")
	}
	const from, count = 1<<31 - 8, 16
	d := openDevice(t)
	k := loadKernel(t, d, `kernel void k(global long *out) {
		size_t i = get_global_id(0); uint u = i; int s = i;
		if (i < 2147483640ul || i >= 2147483656ul) return;
		out[3 * (u - 2147483640u)] = i;
		out[3 * (u - 2147483640u) + 1] = u;
		out[3 * (s - 2147483640) + 2] = s;
	}`, "k")
	s := openStream(t, d)
	out := upload(t, s, make([]int64, 3*count))
	l := &driver.Launch{Kernel: k, Dim: 1, Global: [3]int{1<<31 + 1<<16, 1, 1}, Local: [3]int{1 << 16, 1, 1}}
	l.Args = append(l.Args, driver.Arg{Kind: driver.ArgMemory, Memory: out})
	require.NoError(t, s.Launch(l))
	got := make([]int64, 3*count)
	require.NoError(t, s.Download(background(t), bytesOf(got), out))
	for i := range count {
		id := int64(from + i)
		require.Equal(t, []int64{id, id, int64(int32(id))}, got[3*i:3*i+3])
	}
}
