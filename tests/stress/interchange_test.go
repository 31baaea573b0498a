//go:build cgo

package stress

// Interchanged loops must compute the same for each item as loops that each item runs to the end by
// itself.

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// interchanged are bodies of kernels: i is the item's id, l its place in the group, size and
// step count the items of the group and of the first dimension. IN reads element k of 4096. n and m
// are arguments, s is the item's result. K is a type.
var interchanged = []string{
	"for (K k = i; k < n; k += step) s = s * 31 + x[k];",
	"for (K k = i; k <= n; k += step) s = s * 31 + x[k] + k;",
	"for (K k = i; n > k; k = k + step) s = s * 31 + x[k];",
	"for (K k = i; k < n && k < 700; k = step + k) s = s * 31 + x[k];",
	"for (K k = i; k >= 5 && k < n && m > -7; k += step) s = s * 31 + x[k];",
	"for (K k = i; k < n && m > 0; k += step) s = s * 31 + x[k];",
	"for (K k = n - 1 - i; k >= 0 && k < n; k -= step) s = s * 31 + x[k];",
	"for (K k = l; k < n; k += size) s = s * 31 + x[k];",
	"for (K k = get_local_id(0); k < n; k += get_local_size(0)) s = s * 31 + x[k];",
	"for (K k = get_group_id(0) * 50 + l; k < min(n, (int)get_group_id(0) * 50 + 50); k += size) s = s * 31 + x[k];",
	"for (K k = i; k < (uint)n; k += step) s = s * 31 + x[k];",
	"for (K k = i; k < (ulong)n; k += step) s = s * 31 + x[k];",
	"for (K k = i; k < get_global_size(0) * 3; k += step) s = s * 31 + IN;",
	"for (K k = i; (long)k < n; k += step) s = s * 31 + IN;",

	// steps that are arguments, of both signs, and beginnings before and behind zero
	"for (K k = i; k < n; k += m > 0 ? m : 4000) s = s * 31 + IN;",
	"for (K k = i - 9; k < n; k += step) s = s * 31 + IN + k;",
	"for (K k = i - 9; k < (uint)n; k += step) s = s * 31 + IN + k;",
	"for (K k = i - 9; k < (ulong)n; k += step) s = s * 31 + IN + k;",
	"for (K k = i - 9; (int)k < n; k += step) s = s * 31 + IN + k;",

	"for (K k = i; k < 900; k += m & 15 | 8) s = s * 31 + IN;",
	"for (K k = i; k < n; k += step) { int j = k + 2147483500; s = s * 31 + (j > 0 && j < 2147483600 && k < 4096 ? x[j " +
		"- 2147483500] : j); }",

	// bodies
	"for (K k = i; k < n; k += step) { if (k & 1) continue; s = s * 31 + x[k]; }",
	"for (K k = i; k < n; k += step) { int v = x[k]; if (v > s) { s = v; t = k; } }",
	"for (K k = i; k < n; k += step) { for (int r = 0; r < (k & 3); r++) { if (r == 2) break; s = s * 31 + x[k] + r; } " +
		"t += s; }",
	"for (K k = i; k < n; k += step) { switch (x[k] & 3) { case 0: s++; break; case 1: continue; default: s *= 3; } t " +
		"^= s; }",
	"for (K k = i; k < n; k += step) { float a = x[k]; const float b = a * 0.1f; f += b; f *= 1.0001f; } s = as_int(f);",
	"for (K k = i; k < n; k += step) { q += (int4)(x[k], k, s, 1); q = q.yzwx; } s = q.x + q.y * 3 + q.z * 5 + q.w * 7;",
	"for (K k = i; k < n; k += step) { d += x[k] * (ulong)k; } s = (int)(d ^ d >> 32);",
	"for (K k = i; k < n; k += step) { s += x[x[k] & 1023]; }",
	"for (K k = i; k < n; k += step) { s = s * 31 + x[k]; ip += k & 15; } s += ip - x;",
	"global const int *jp = x + y; for (K k = i; k < n; k += step) { s = s * 31 + jp[k]; }",
	"for (K k = i; k < n; k += step) { int i = k * 2; s = s * 31 + x[k] + i; } s += i;",
	"for (K k = i; k < n; k += step) out[y * 4096 + k] = x[k] * 3 + k; return;",
	"for (K k = i; k < n; k += step) { out[y * 4096 + k] += x[k]; out[y * 4096 + k] = out[y * 4096 + k] * 5 + (int)k; } " +
		"return;",
	"for (K k = i; k < n; k += step) { s = s * 31 + x[k + 1]; } for (K k = i; k < n; k += step) { s = s * 17 + x[k]; t " +
		"+= s; } s ^= t;",
	"for (K k = i; k < n; k += step) { s = s * 31 + x[k + y * 5]; }",
	"for (K k = i; k < n; k += step) { s = s * 31 + x[k]; } float c; f = sincos((float)s, &c); t = as_int(c);",
	"const int w = step, from = i; for (K k = from; k < n; k += w) { const int v = k + 1; s = s * 31 + x[v]; }",

	// items that are turned away, before and after
	"@ if (i >= m) return; int s = 1; for (K k = i; k < n; k += step) s = s * 31 + x[k]; out[o] = s;",
	"@ if (i < 1 || i > m + 100) return; int s = 1; for (K k = i; k < n; k += step) { s = s * 31 + x[k]; } out[o] = s; " +
		"if (s & 1) return; out[o] = 5;",
	"@ if (i < m + 50) { int s = 1, w = s + 5; for (K k = i; k < n; k += step) { s = s * 31 + x[k]; w ^= s; } " +
		"out[o] = w; }",
	"@ if (y < 3 && i > 5) { int s = 1; for (K k = l; k < n; k += size) { s = s * 31 + x[k]; } for (K k = i; k < n; k " +
		"+= step) { s = s * 17 + x[k]; } out[o] = s; }",

	// barriers around
	"s = x[l] ; barrier(1); for (K k = i; k < n; k += step) { s = s * 31 + x[k]; } barrier(1); t = s * 3; barrier(1); " +
		"s += t;",
	"for (int r = 0; r < 3; r++) { barrier(1); for (K k = i + r; k < n; k += step) { s = s * 31 + x[k] + r; } loc[l] = " +
		"s; barrier(1); s ^= loc[(l + 1) % size]; }",
	"int a[2] = {l, 1}; barrier(1); for (K k = l; k < n; k += size) { a[k & 1] += x[k]; } barrier(1); " +
		"s = a[0] * 3 + a[1];",
}

// falling are bodies that need a variable that can be negative, wrapping those that need one of 32
// bits.
var falling = []string{
	"for (K k = i + 20; k > 3; k -= step) s = s * 31 + IN + k;",
	"for (K k = 2000 - i; k > 50; k -= step) s = s * 31 + IN + k;",
	"for (K k = 2000 - i; k >= -m; k -= step) s = s * 31 + IN + k;",
}

var wrapping = []string{
	"for (K k = i + 2147483500; k > 100000000; k += 0x1e3779b1) s = s * 31 + IN + (int)k;",
	"for (K k = i + 2147483500; (uint)k > 100000000 && k > n; k += 0x1e3779b1) s = s * 31 + IN + (int)k;",
	"for (K k = i - 2147483500; k < -100000000; k -= 0x1e3779b1) s = s * 31 + IN + (int)k;",
	"for (K k = u + 4294967200u; (uint)k > 100000000u; k += 0x1e3779b1) s = s * 31 + IN + (int)k;",
	"for (K k = 100u - u; (uint)k > 100000000u; k += 0x1e3779b1) s = s * 31 + IN + (int)k;",
	"for (K k = i + m * 119304647; k > 90000000; k += 0x1e3779b1) s = s * 31 + IN + (int)k;",
	"for (K k = -i; k < 4000000000u; k += 0x1e3779b1) s = s * 31 + IN + (int)k;",
	"for (K k = 50 - i; k < 4000000000u && k > 7; k += 0x1e3779b1) s = s * 31 + IN + (int)k;",
	"for (K k = 50 - i; (long)k < 4000000000u && (int)k > -3000; k += -1000) s = s * 31 + IN + (int)k;",
}

// left are bodies whose loop is not interchanged.
var left = []string{
	"for (K k = i; k < n; k += step) { if (x[k] == 7) break; s = s * 31 + x[k]; }",
	"for (K k = i; k < n; k += step) { if (x[k] == 7) return; s = s * 31 + x[k]; }",
	"for (K k = i; k < n; k++) s = s * 31 + x[k];",
	"for (K k = 0; k < n / 4; k++) s = s * 31 + x[i * 5 % 64 + k];",
	"for (K k = i; k < n && x[k] != 7; k += step) s = s * 31 + x[k];",
	"for (K k = i; k < n; k += step) { s = s * 31 + x[k]; k += s & 1; }",
	"for (K k = i; k < n; k += step) { s = s * 31 + x[k]; step += 1; }",
	"for (K k = i; k < n + 0 * s; k += step) s = s * 31 + x[k];",
	"for (K k = i * 2; k < n; k += 2 * step) s = s * 31 + x[k];",
	"for (K k = i; k < 1000; k += k + 9) s = s * 31 + x[k];",
	"for (K k = i; k < n; k += step) { K *p = &k; s = s * 31 + x[*p]; }",
	"int a[2] = {0, 1}; for (K k = i; k < n; k += step) { a[k & 1] += x[k]; } s = a[0] * 3 + a[1];",
	"if (m) n++; for (K k = i; k < n; k += step) s = s * 31 + x[k];",
	"for (K k = i; k != n + i * 0 && k < n; k += step) s = s * 31 + x[k];",
	"for (K k = i; k < n && s < 100000; k += step) s = s * 31 + x[k];",
	"for (K k = i; k < n; k += step) { s = s * 31 + *ip * x[k]; ip = x + (k & 15); }",
	"for (K k = i; k < n; k += step) { atomic_add(&out[o], x[k]); } return;",
	"for (K k = i; k < n; k += step) { s = s * 31 + ((volatile global const int *)x)[k]; }",
	"if (x[i & 63] & 1) return; for (K k = i; k < n; k += step) s = s * 31 + x[k];",

	// pointers to what only one strip mentions, and a lock
	"int v = x[i & 63]; int *p = &v; for (K k = i; k < n; k += step) { s = s * 31 + x[k]; } s += *p;",
	"int a[2] = {x[i & 7], x[l & 7]}; int *p = a; for (K k = i; k < n; k += step) { s = s * 31 + x[k] * p[x[k] & 1]; }",
	"volatile global int *lock = out + 6 * 4096 - 1; while (atomic_cmpxchg(lock, 0, 1)) { } for (K k = i; k < n; k += " +
		"step) { s = s * 31 + x[k]; } atomic_xchg(lock, 0);",
	"if (x[i & 63] & 1) { for (K k = i; k < n; k += step) s = s * 31 + x[k]; }",
}

func interchangeProgram(bodies []string) string {
	var text strings.Builder
	text.WriteString("#define IN (k >= 0 && k < 4096 ? x[k] : 7)\n")
	for b, body := range bodies {
		fmt.Fprintf(&text, `kernel void k%d(global int *out, global const int *x, int n, int m, local int *loc) {
  int i = get_global_id(0), y = get_global_id(1), l = get_local_id(0), step = get_global_size(0), size = get_local_size(0);
  uint u = get_global_id(0);
  size_t o = get_global_id(1) * get_global_size(0) + get_global_id(0);
`, b)
		if own, ok := strings.CutPrefix(body, "@"); ok {
			text.WriteString(own + "\n}\n")
			continue
		}
		fmt.Fprintf(&text, `  int s = 1, t = 0;
  float f = 0;
  int4 q = (int4)(0, 1, 2, 3);
  ulong d = 5;
  global const int *ip = x;
  %s
  out[o] = s + t * 3;
}
`, body)
	}
	return text.String()
}

func TestInterchange(t *testing.T) {
	d, err := runtime.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	defer d.Close()
	for j, index := range []string{"int", "uint", "long", "ulong"} {
		t.Run(index, func(t *testing.T) {
			if testing.Short() && (j == 1 || j == 2) {
				t.Skip("its programs take long to compile, and differ from those of int and ulong in the type alone")
			}
			bodies := slices.Concat(interchanged, left)
			if index != "int" { // only some of them, since compiling takes long
				some := bodies[:0:0]
				for b := j; b < len(bodies); b += 3 {
					some = append(some, bodies[b])
				}
				bodies = some
			}
			if !strings.HasPrefix(index, "u") {
				bodies = append(bodies, falling...)
			}
			if strings.HasSuffix(index, "int") {
				bodies = append(bodies, wrapping...)
			}
			var results [2][][]int32
			for i, fibers := range []bool{false, true} {
				defines := append(forced(fibers), source.Define{Name: "K", Value: index})
				u, err := source.Parse(interchangeProgram(bodies), source.Options{Name: "interchange.cl", Defines: defines})
				require.NoError(t, err)
				p, err := d.Program(t.Context(), u)
				require.NoError(t, err)
				for k := range bodies {
					results[i] = append(results[i], interchangeRuns(t, d, p, k)...)
				}
				require.NoError(t, p.Close())
			}
			runs := len(results[0]) / len(bodies)
			for r := range results[0] {
				if !assert.Equal(t, results[1][r], results[0][r], "%s: run %d", bodies[r/runs], r%runs) {
					return
				}
			}
		})
	}
}

// interchangeRuns runs a kernel on grids and arguments of many shapes.
func interchangeRuns(t *testing.T, d *runtime.Device, p *runtime.Program, number int) [][]int32 {
	k, err := p.Kernel(fmt.Sprintf("k%d", number))
	require.NoError(t, err)
	const elements = 6 * 4096
	in := make([]int32, elements)
	for i := range in {
		in[i] = int32(i*i*7919-12345) >> 7
	}
	from, err := runtime.Upload(t.Context(), d, in)
	require.NoError(t, err)
	defer from.Close()
	var results [][]int32
	for _, grid := range []runtime.Grid{runtime.Items(1).InGroups(1), runtime.Items(96).InGroups(32),
		runtime.Items(35).InGroups(7), runtime.Items(24, 6).InGroups(8, 2), runtime.Items(3000).InGroups(1000),
		runtime.Items(640).InGroups(320)} {
		for _, n := range []int32{0, 1, 5, 37, 999, 4096} {
			out, err := runtime.Upload(t.Context(), d, make([]int32, elements))
			require.NoError(t, err)
			require.NoError(t, d.Stream().Launch(k, grid, out, from, n, n%31+n%7-3, runtime.Local(4*1024)))
			got := make([]int32, elements)
			require.NoError(t, runtime.Read(t.Context(), out, got))
			require.NoError(t, out.Close())
			results = append(results, got)
		}
	}
	return results
}

// TestInterchanged: which loops are interchanged, and which are not.
func TestInterchanged(t *testing.T) {
	for i, bodies := range [][]string{slices.Concat(interchanged, falling, wrapping), left} {
		for _, body := range bodies {
			u, err := source.Parse(interchangeProgram([]string{body}),
				source.Options{Name: "interchange.cl", Defines: []source.Define{{Name: "K", Value: "int"}}})
			require.NoError(t, err, body)
			text, err := u.Render(source.Host)
			require.NoError(t, err)
			assert.Equal(t, i == 0, strings.Contains(text, "cc_rounds<cc_I, "), body)
		}
	}
}
