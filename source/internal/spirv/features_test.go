package spirv_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/source"
)

// feature is a kernel k(int n, global int *o) that runs with n = 0, and what it stores, for what the stress programs do
// not have.
type feature struct{ name, head, body, want string }

var features = []feature{
	{"goto out of loops", "", `for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++) { if (i * j == 2) { o[0] = 10 * i + j; goto out; } o[1]++; }
		o[2] = 1; out: o[3] = 5;`, "12 6 0 5"},
	{"goto back", "", `int i = n; again: i++; if (i % 3) goto again; o[0] = i; if (i < 7) goto again; o[1] = i;`, "9 9 0 0"},
	{"break and continue out of a loop of goto", "", `for (int i = 0; i < 5; i++) { int k = 0; more: k++; o[0]++; if (i == 1) continue;
		if (i == 3) break; if (k < 3) goto more; o[1] += k; } o[2] = 1;`, "8 6 1 0"},
	{"goto past statements and out of a switch", "", `switch (n) { case 0: o[0] = 1; if (n == 0) goto end; case 1: o[1] = 1; } o[2] = 1; end: o[3]++;`,
		"1 0 0 1"},
	{"gotos that cross", "", `int k = n; a: k++; if (k > 4) goto c; b: k += 2; if (k < 4) goto a; if (k < 9) goto b; o[1] = k; c: o[0] = k; o[2]++;`,
		"10 10 1 0"},
	{"switch with ranges and a default in the middle", "", `for (int i = 0; i < 8; i++) switch (i + n) { case 1 ... 2: o[0]++; break; default: o[1]++; case 5: o[2]++; case 7: break; }`,
		"2 4 5 0"},
	{"local memory of kernels behind functions", `void inner(local int *y, global int *o) { y[0] = 7; o[1] = y[0]; }
		kernel void own(global int *o) { local int y[4]; y[n_of(o)] = 7; o[1] = y[0]; }
		void between(global int *o) { own(o); }`, `local int x[4]; x[0] = 3; between(o); o[0] = x[0]; inner(x + 1, o); o[2] = x[1];`, "3 7 7 0"},
	{"pointers in constants", `struct s { constant int *p; int a[3]; }; constant int t[3] = {5, 6, 7}; constant struct s c = {t + 1, {1, 2, 3}};`,
		`struct s v = c; constant struct s *q = &c; o[0] = v.p[1] + v.a[n]; o[1] = q->p[n]; o[2] = q->p == t + 1;`, "8 6 1 0"},
	{"pointers in front of arrays", "", `int a[4] = {1, 2, 3, 4}; int *p = a - 1000 * (n + 1); o[0] = p[1002]; int *q = n ? p : 0; o[1] = q == 0; o[2] = p + 1000 == a;`,
		"3 1 1 0"},
	{"records by value and back", `typedef struct { char c; int3 v; double d[2]; union { float f; uint u; } w; } S;
		S change(S s) { s.v.y += s.c; s.d[1] = 2.5; s.w.f = 1.0f; return s; }`,
		`S s = {3, {1, 2, 3}, {1.5}}; S t = change(change(s)); o[0] = t.v.y; o[1] = (int)(10 * (t.d[0] + t.d[1])); o[2] = t.w.u == 0x3f800000; o[3] = s.v.y;`,
		"8 40 1 2"},
	{"bytes of local memory", "", `local uchar b[8]; local short s[4]; for (int i = 0; i < 8; i++) b[i] = 250 + i; for (int i = 0; i < 4; i++) s[i] = -i;
		b[3]++; s[1] -= 5; o[0] = b[3] + b[7] * 1000; o[1] = s[1]; o[2] = s[2]; o[3] = *(local ushort *)(b + 2);`, "1254 -6 -2 65276"},
	{"many parameters", `int sum(int16 a, int16 b, int16 c, int16 d, int16 e, int16 f, int16 g, int16 h, int16 i, int16 j, int16 k, int16 l, int16 m, int16 p, int16 q, int16 r, int n)
		{ return a.s0 + b.s1 + c.s2 + d.s3 + e.s4 + f.s5 + g.s6 + h.s7 + i.s8 + j.s9 + k.sa + l.sb + m.sc + p.sd + q.se + r.sf + n; }`,
		`int16 v = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); o[0] = sum(v, v, v, v, v, v, v, v, v, v, v, v, v, v, v, v, n);`, "120 0 0 0"},
	{"products with zero", "", `float z = (float)(n - 5) * 0.0f; o[0] = as_int(z) == (int)0x80000000; o[1] = as_int((float)(n + 5) * 0.0f); o[2] = isnan((1.0f / n) * 0.0f);`,
		"1 0 1 0"},
	{"comparisons of long with constants", "", `for (int i = -1; i < 2; i++) { long z = n + 7 * i; o[0] += z < 0; o[1] += z < 5; o[2] += 3 > z; o[3] += z >= 0; }`,
		"1 2 2 2"},
	{"division and remainder", "", `int least = 0x80000000 + n, m = n - 1; o[0] = least / m == least; o[1] = least % m; o[2] = -7 / (n + 2); o[3] = -7 % (n + 4);`,
		"1 0 -3 -3"},
}

func (x feature) text() string {
	return "int n_of(global int *o) { return o[0] == 12345; }\n" + x.head + "\nkernel void k(int n, global int *o) { " +
		x.body + " }"
}

// TestFeatures runs them on a Vulkan device.
func TestFeatures(t *testing.T) {
	driver := vulkanDriver(t)
	for _, x := range features {
		t.Run(x.name, func(t *testing.T) {
			m := module(t, x.text(), source.Options{Name: x.name})
			require.True(t, validate(t, x.name, m))
			got, err := execute(t, driver, m, "k", "1", "1", "i32:0", "out:i32:4")
			require.NoError(t, err)
			assert.Equal(t, x.want, strings.Join(got, "\n"))
		})
	}
}

// TestSameBytes: a program becomes the same module whenever it is written. It finds an order that comes from a map.
func TestSameBytes(t *testing.T) {
	var all strings.Builder
	all.WriteString(features[0].text() + "\n")
	all.WriteString("kernel void last(global double *x) { x[0] = exp(x[0]) / sin(x[1]) + atan2(x[2], x[3]); }")
	u, err := source.Parse(all.String(), source.Options{Features: &vulkanFeatures})
	require.NoError(t, err)
	first, err := u.Module(context.Background())
	require.NoError(t, err)
	for range 10 {
		again, err := u.Module(context.Background())
		require.NoError(t, err)
		require.Equal(t, first, again)
	}
	text, err := u.Render(source.SPIRV)
	require.NoError(t, err)
	assert.Equal(t, string(first.Words), text)
}

// TestTemporaries: results of calls that are in memory share their place, so that many fit.
func TestTemporaries(t *testing.T) {
	m := module(t, "typedef struct { float a[100]; } S; S change(S s) { s.a[0] += 1; return s; }\n"+
		"kernel void k(global float *o) { S s = {{0}}; "+strings.Repeat("s = change(s); ", 700)+"o[0] = s.a[0]; }",
		source.Options{})
	assert.Len(t, m.Kernels, 1)
}

// TestRefused: what cannot be expressed is an error with its place.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"goto into a loop":  {"goto in;\nfor (int i = 0; i < 2; i++) { in: o[i]++; }", "program.cl:1:"},
		"goto into a block": {"if (n)\n  goto in;\n{ in: o[0]++; }", "program.cl:2:3: a goto to a label in another block"},
		"label of a switch": {"switch (n) {\n{ case 1: o[0] = 1; } }", "program.cl:2:3: a label of a switch inside"},
		"printf":            {"\n  printf(\"x\");", "program.cl:2:3: there is no printf"},
		"64 bits, local":    {"local long x;\natom_add(&x, 1);", "program.cl:2:1: 'atom_add': atomics of 64 bits"},
		"too much memory":   {"int a[1 << 20];\na[n] = 1; o[0] = a[n + 1];", "program.cl:2:1: 'k' and the functions"},
		"a goto into a goto": {"if (n) goto b;\na: o[0]++; b: o[1]++; if (o[1] < 3) goto a;",
			"a goto into the loop that the label 'a' begins"},
		"a long else if chain": {strings.Repeat("if (n > 1)\n o[0] = 1; else ", 800) + ";",
			"a chain of more than 700 else if"},
	} {
		t.Run(name, func(t *testing.T) {
			u, err := source.Parse("kernel void k(int n, global int *o) { "+c.body+" }", source.Options{})
			require.NoError(t, err)
			_, err = u.Module(context.Background())
			var list source.ErrorList
			require.ErrorAs(t, err, &list)
			require.ErrorIs(t, err, source.ErrUnsupported)
			assert.Contains(t, list.Error(), c.want)
		})
	}
}
