//go:build cgo

package stress

// Kernels that are cut at their barriers must compute the same results as on fibers: generated
// programs are run both ways and compared.

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// cutPrograms is the number of programs that TestCut generates, unless CONCORD_CUT_PROGRAMS sets
// another one.
const cutPrograms, cutKernels = 2, 12

func TestCut(t *testing.T) {
	programs := cutPrograms
	if v := os.Getenv("CONCORD_CUT_PROGRAMS"); v != "" {
		var err error
		programs, err = strconv.Atoi(v)
		require.NoError(t, err)
	}
	d, err := runtime.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	defer d.Close()
	for seed := range programs {
		text := cutProgram(uint64(seed))
		var results [2][]string
		for i, fibers := range []bool{false, true} {
			u, err := source.Parse(text, source.Options{Name: fmt.Sprintf("cut%d.cl", seed), Defines: forced(fibers)})
			require.NoError(t, err, "%s", text)
			p, err := d.Program(t.Context(), u)
			require.NoError(t, err, "%s", text)
			for k := range cutKernels {
				for _, group := range [][3]int{{16, 1, 1}, {4, 4, 1}, {5, 1, 3}} {
					results[i] = append(results[i], cutRun(t, d, p, k, group))
				}
			}
			require.NoError(t, p.Close())
		}
		for i := range results[0] {
			if !assert.Equal(t, results[1][i], results[0][i], "seed %d kernel k%d", seed, i/3) {
				t.Log(text)
				return
			}
		}
	}
}

// cutRun runs kernel k and returns its output.
func cutRun(t *testing.T, d *runtime.Device, p *runtime.Program, number int, group [3]int) string {
	k, err := p.Kernel(fmt.Sprintf("k%d", number))
	require.NoError(t, err)
	items := [3]int{3 * group[0], 2 * group[1], group[2]}
	n := items[0] * items[1] * items[2]
	in := make([]int32, 256)
	for i := range in {
		in[i] = int32(i*i*7919 - 12345)
	}
	from, err := runtime.Upload(t.Context(), d, in)
	require.NoError(t, err)
	defer from.Close()
	out, err := runtime.Upload(t.Context(), d, make([]int32, n))
	require.NoError(t, err)
	defer out.Close()
	err = d.Stream().Launch(k, runtime.Grid{Items: items, Group: group}, out, from, int32(13), int32(6),
		runtime.Local(4*64))
	require.NoError(t, err)
	got := make([]byte, 4*n)
	bytes, err := out.As(runtime.U8)
	require.NoError(t, err)
	require.NoError(t, runtime.Read(t.Context(), bytes, got))
	var b strings.Builder
	for i := range n {
		fmt.Fprint(&b, int32(binary.LittleEndian.Uint32(got[4*i:])), " ")
	}
	return b.String()
}

// cutter writes one kernel.
type cutter struct {
	*rand.Rand
	b     strings.Builder
	names int
	loops []string // counters of the enclosing loops of the group
	items []string // variables that differ between the items
	alike []string // variables that are the same for all items
}

func cutProgram(seed uint64) string {
	c := &cutter{Rand: rand.New(rand.NewPCG(seed, 1))}
	c.b.WriteString("int twist(int a, int b) { return (a ^ b << 3) + (b >> 1); }\n")
	for k := range cutKernels {
		c.loops, c.items, c.alike = nil, []string{"a", "b", "l", "h"}, []string{"n", "m", "u"}
		fmt.Fprintf(&c.b, "kernel void k%d(global int *out, global const int *in, int n, int m, local int *t) {\n", k)
		c.b.WriteString(`  local int s[64]; int p[4] = {1, 2, 3, 4}; int4 q = (int4)(1, 2, 3, 4);
  const int size = get_local_size(0) * get_local_size(1) * get_local_size(2);
  const int l = get_local_id(0) + get_local_size(0) * (get_local_id(1) + get_local_size(1) * get_local_id(2));
  int a = l, b = in[l], h = get_global_id(0) * 3 - get_global_id(1), u = get_group_id(0);
  global const int *ip = in + l;
  size_t o = get_global_id(0) + get_global_size(0) * (get_global_id(1) + get_global_size(1) * get_global_id(2));
`)
		if c.IntN(4) == 0 {
			c.b.WriteString("  n += 3; ")
		}
		if c.IntN(4) == 0 {
			c.items, c.alike = append(c.items, "m"), []string{"n", "u"}
			c.b.WriteString("  m += l; ")
		}
		c.block(2+c.IntN(6), 2)
		if c.IntN(3) == 0 {
			fmt.Fprintf(&c.b, "if (l >= %s) { out[o] = b; return; }\n", c.uniform(1))
		}
		c.b.WriteString("  out[o] = a * 31 + b + p[l & 3] * 7 + q.x - q.w + s[0] * 0 + ip[1];\n}\n")
	}
	return c.b.String()
}

func (c *cutter) one(list []string) string { return list[c.IntN(len(list))] }

// uniform writes an expression that has the same value for all items.
func (c *cutter) uniform(depth int) string {
	if depth == 0 || c.IntN(3) == 0 {
		switch c.IntN(5) {
		case 0:
			return strconv.Itoa(c.IntN(20))
		case 1:
			return "(int)get_group_id(" + strconv.Itoa(c.IntN(3)) + ")"
		case 2:
			return "(int)get_local_size(0)"
		}
		return c.one(append(c.alike, c.loops...))
	}
	if c.IntN(6) == 0 {
		return "twist(" + c.uniform(depth-1) + ", " + c.uniform(depth-1) + ")"
	}
	return "(" + c.uniform(depth-1) + c.one([]string{" + ", " - ", " * ", " & ", " ^ ", " < ", " >> "}) +
		c.uniform(depth-1) + ")"
}

// item writes an expression of one item.
func (c *cutter) item(depth int) string {
	if depth == 0 || c.IntN(4) == 0 {
		switch c.IntN(6) {
		case 0:
			return c.uniform(1)
		case 1:
			return "p[" + c.one(c.items) + " & 3]"
		case 2:
			return "q." + c.one([]string{"x", "y", "z", "w"})
		case 3:
			return "ip[" + c.uniform(0) + " & 63]"
		}
		return c.one(c.items)
	}
	if c.IntN(6) == 0 {
		return "twist(" + c.item(depth-1) + ", " + c.item(depth-1) + ")"
	}
	return "(" + c.item(depth-1) + c.one([]string{" + ", " - ", " * ", " & ", " ^ ", " < ", " | ", " >= "}) +
		c.item(depth-1) + ")"
}

// block writes statements, with barriers among them.
func (c *cutter) block(n, depth int) {
	items, alike := len(c.items), len(c.alike)
	for range n {
		c.statement(depth)
	}
	c.items, c.alike = c.items[:items], c.alike[:alike]
}

func (c *cutter) fresh(prefix string) string {
	c.names++
	return prefix + strconv.Itoa(c.names)
}

func (c *cutter) statement(depth int) {
	kind := c.IntN(15)
	if depth == 0 && kind >= 10 {
		kind = c.IntN(10)
	}
	switch kind {
	case 0, 1:
		c.itemStatement(1)
	case 2: // everybody writes, everybody reads
		mem := c.one([]string{"s", "t"})
		fmt.Fprintf(&c.b, "%s[l] = %s; barrier(CLK_LOCAL_MEM_FENCE);\n", mem, c.item(2))
		c.itemStatement(0)
		fmt.Fprintf(&c.b, "%s = %s[(l + %d) %% size]; barrier(CLK_LOCAL_MEM_FENCE);\n", c.one([]string{"a", "b"}), mem,
			c.IntN(7))
	case 3: // a tree
		r := c.fresh("w")
		fmt.Fprintf(&c.b, "s[l] = %s; barrier(CLK_LOCAL_MEM_FENCE); for (int %s = 8; %s > 0; %s >>= 1) { if (l < %s && l + "+
			"%s < size) s[l] += s[l + %s]; barrier(CLK_LOCAL_MEM_FENCE); } a ^= s[0]; barrier(CLK_LOCAL_MEM_FENCE);\n",
			c.item(1), r, r, r, r, r, r)
	case 4:
		v := c.fresh("v")
		fmt.Fprintf(&c.b, "int %s = %s;\n", v, c.item(2))
		c.items = append(c.items, v)
	case 5:
		v := c.fresh("c")
		fmt.Fprintf(&c.b, "const int %s = l * %s + %s;\n", v, c.uniform(0), c.uniform(1))
		c.items = append(c.items, v)
	case 6:
		v := c.fresh("u")
		fmt.Fprintf(&c.b, "int %s = %s;\n", v, c.uniform(2))
		c.alike = append(c.alike, v)
	case 7:
		fmt.Fprintf(&c.b, "%s %s %s;\n", "u", c.one([]string{"=", "+=", "^="}), c.uniform(1))
	case 8:
		fmt.Fprintf(&c.b, "ip += %s & 3; barrier(CLK_LOCAL_MEM_FENCE);\n", c.item(0))
		c.b.WriteString("ip = in + ((ip - in) & 63);\n")
	case 9: // a guard
		fmt.Fprintf(&c.b, "barrier(CLK_LOCAL_MEM_FENCE); if (%s %s %s) { a += %s; q.y ^= a; }\n",
			c.one([]string{"l", "(int)get_local_id(0)", "get_global_id(0)", "(uint)get_global_id(1)", "(long)get_global_id(0)"}),
			c.one([]string{"<", "<=", ">", ">=", "=="}),
			c.one([]string{c.uniform(1), c.uniform(1), "(n << 30)", "(m << 29) * (long)n", "(1L << 62)", "(uint)(n - 20)",
				"(long)(n - 20)"}), c.item(1))
	case 10, 11:
		r := c.fresh("r")
		fmt.Fprintf(&c.b, "for (int %s = 0; %s < (%s & 3); %s++) {\n", r, r, c.uniform(1), r)
		c.loops = append(c.loops, r)
		c.block(1+c.IntN(3), depth-1)
		if c.IntN(3) == 0 {
			fmt.Fprintf(&c.b, "if (%s) %s;\n", c.uniform(1), c.one([]string{"break", "continue"}))
			c.block(1, depth-1)
		}
		c.loops = c.loops[:len(c.loops)-1]
		c.b.WriteString("}\n")
	case 12:
		fmt.Fprintf(&c.b, "if (%s) {\n", c.uniform(2))
		c.block(1+c.IntN(3), depth-1)
		if c.IntN(2) == 0 {
			c.b.WriteString("} else {\n")
			c.block(1+c.IntN(2), depth-1)
		}
		c.b.WriteString("}\n")
	case 13:
		v := c.fresh("d")
		fmt.Fprintf(&c.b, "int %s = 3; do {\n", v)
		c.loops = append(c.loops, v)
		c.block(1+c.IntN(2), depth-1)
		c.loops = c.loops[:len(c.loops)-1]
		fmt.Fprintf(&c.b, "%s--; } while (%s > 0);\n", v, v)
	case 14:
		c.b.WriteString("{\n")
		c.block(1+c.IntN(3), depth-1)
		c.b.WriteString("}\n")
	}
}

// itemStatement writes a statement without barriers.
func (c *cutter) itemStatement(depth int) {
	switch kind := c.IntN(7); {
	case kind == 0:
		fmt.Fprintf(&c.b, "p[%s & 3] %s %s;\n", c.item(0), c.one([]string{"=", "+=", "^="}), c.item(1))
	case kind == 1:
		fmt.Fprintf(&c.b, "q.%s %s %s;\n", c.one([]string{"x", "w", "z"}), c.one([]string{"=", "+=", "-="}), c.item(1))
	case kind == 2:
		fmt.Fprintf(&c.b, "q += %s;\n", c.item(1))
	case kind == 3 && depth > 0:
		fmt.Fprintf(&c.b, "if (%s) {\n", c.item(1))
		c.itemStatement(depth - 1)
		c.b.WriteString("}\n")
	case kind == 4 && depth > 0:
		i := c.fresh("i")
		fmt.Fprintf(&c.b, "for (int %s = 0; %s < (%s & 7); %s++) {\n", i, i, c.item(1), i)
		c.itemStatement(depth - 1)
		fmt.Fprintf(&c.b, "if (%s) break;\n}\n", c.item(1))
	default:
		fmt.Fprintf(&c.b, "%s %s %s;\n", c.one([]string{"a", "b", "h"}), c.one([]string{"=", "+=", "^=", "-="}), c.item(2))
	}
}

// cutAddresses are kernels that change variables and parameters of an item through their addresses,
// so that no statement assigns them directly.
var cutAddresses = []string{
	`bump(&n); out[o] = n;`,
	`int *p = &n; *p += l; barrier(1); out[o] = n;`,
	`int *p = &n; *p += l; barrier(1); out[o] = *p; barrier(1); out[o] += *p * 3;`,
	`int a = l * 10 + in[l]; int *p = &a; barrier(1); out[o] = *p;`,
	`int q[4] = {l, l + 1, in[l], 7}; int *p = q; barrier(1); out[o] = p[0] * 100 + p[1] + p[2];`,
	`int q[2][2] = {{l, 1}, {2, 3}}; int (*p)[2] = q; p[1][1] = n; barrier(1); out[o] = p[0][0] + p[1][1];`,
	`float f; out[o] = (int)fract(m + l + 0.5f, &f) + (int)f; barrier(1); out[o] += (int)f;`,
	`int4 v = (int4)(l, n, m, 1); int *p = (int *)&v; p[1] += l; barrier(1); out[o] = v.y + p[0];`,
	`struct pair s = {l, {n, m}}; int *p = s.b; barrier(1); p[0] += s.a; out[o] = s.b[0] + s.b[1];`,
	`int *s = &m; *s ^= l; for (int r = 0; r < 3; r++) *s = *s * 1664525 + 1013904223; out[o] = m >> 8;`,
	`for (int r = 0; r < n; r++) { int a = l + r; int *p = &a; barrier(1); *p += 1; barrier(1); out[o] += a; }`,
	`int a = l, b = n; int *p = l & 1 ? &a : &b; barrier(1); *p += 5; barrier(1); out[o] = a * 100 + b;`,
}

func TestCutAddresses(t *testing.T) {
	var text strings.Builder
	text.WriteString("struct pair { int a, b[2]; };\nvoid bump(int *p) { *p += 1; }\n")
	for k, body := range cutAddresses {
		fmt.Fprintf(&text, `kernel void k%d(global int *out, global const int *in, int n, int m, local int *t) {
  int l = get_local_id(0) + get_local_size(0) * (get_local_id(1) + get_local_size(1) * get_local_id(2));
  size_t o = get_global_id(0) + get_global_size(0) * (get_global_id(1) + get_global_size(1) * get_global_id(2));
  %s
}
`, k, body)
	}
	d, err := runtime.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	defer d.Close()
	var results [2][]string
	for i, fibers := range []bool{false, true} {
		u, err := source.Parse(text.String(), source.Options{Name: "addresses.cl", Defines: forced(fibers)})
		require.NoError(t, err)
		p, err := d.Program(t.Context(), u)
		require.NoError(t, err)
		for k := range cutAddresses {
			results[i] = append(results[i], cutRun(t, d, p, k, [3]int{4, 4, 1}))
		}
		require.NoError(t, p.Close())
	}
	for k, body := range cutAddresses {
		assert.Equal(t, results[1][k], results[0][k], body)
	}
}
