package loops_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/source"
	"github.com/concord-compute/concord/source/internal/loops"
	"github.com/concord-compute/concord/source/internal/token"
)

// rendered returns the host rendering of a program.
func rendered(t *testing.T, text string) string {
	t.Helper()
	u, err := source.Parse(text, source.Options{})
	require.NoError(t, err)
	cpp, err := u.Render(source.Host)
	require.NoError(t, err)
	return cpp
}

// TestFission: kernels are cut at their barriers if and only if all items of a group provably reach
// the same ones. tests/stress compares the results of the two forms.
func TestFission(t *testing.T) {
	const helper = "void wait(void) { barrier(CLK_LOCAL_MEM_FENCE); }\nint twice(int x) { return 2 * x; }\nint " +
		"peek(global int *x) { return *x; }\n"
	for name, c := range map[string]struct {
		body  string
		kept  int // bytes that an item keeps from piece to piece
		fiber bool
	}{
		"straight":          {body: "int a = x[l]; barrier(1); x[l] = a;", kept: 4},
		"an id is not kept": {body: "int a = l * 2 + n; barrier(1); x[l] = a;"},
		"loop over a size": {
			body: "for (int w = get_local_size(0) / 2; w > 0; w /= 2) { x[l] += x[l + w]; barrier(1); }"},
		"loop over an id":      {body: "for (int w = l; w > 0; w /= 2) barrier(1);", fiber: true},
		"loop over memory":     {body: "for (int w = x[0]; w > 0; w /= 2) barrier(1);", fiber: true},
		"while memory":         {body: "while (x[0]) { barrier(1); }", fiber: true},
		"branch of a group":    {body: "if (get_group_id(0) & 1) barrier(1); else x[l] = 1;"},
		"branch of an item":    {body: "if (l == 0) barrier(1);", fiber: true},
		"branch in two ways":   {body: "int u = 0; if (n > 3) { u = 1; } if (u) barrier(1);"},
		"branch by an item":    {body: "int u = 0; if (l > 3) { u = 1; } if (u) barrier(1);", fiber: true},
		"by way of a variable": {body: "int u = n, v = u; u = l; v = u; if (v) barrier(1);", fiber: true},
		"by its address":       {body: "int u = n; int *p = &u; *p = l; if (u) barrier(1);", fiber: true},
		"group leaves early":   {body: "if (get_group_id(0) > 2) return; barrier(1); x[l] = 1;"},
		"items leave early":    {body: "if (l > 2) return; barrier(1); x[l] = 1;", fiber: true},
		"items leave late":     {body: "barrier(1); if (l > 2) return; x[l] = 1;"},
		"items leave the loop": {body: "for (int i = 0; i < n; i++) { if (x[l]) break; barrier(1); }", fiber: true},
		"group leaves it":      {body: "for (int i = 0; i < n; i++) { x[l] = i; barrier(1); if (i == 3) break; }"},
		"in a switch":          {body: "switch (n) { case 1: barrier(1); }", fiber: true},
		"in a function":        {body: "wait();", fiber: true},
		"begins with itself":   {body: "int a = a + 1; barrier(1); x[l] = a;", kept: 4},
		"pure function":        {body: "if (twice(n) > 3) barrier(1);"},
		"function that reads":  {body: "if (peek(x)) barrier(1);", fiber: true},
		"parameter changes":    {body: "x += l; barrier(1); *x = n;", kept: 8},
		"parameter counts":     {body: "while (n > 0) { barrier(1); n--; }"},
		"too much to keep":     {body: "int a[5000]; a[l] = 1; barrier(1); x[l] = a[l];", fiber: true},
	} {
		t.Run(name, func(t *testing.T) {
			program := helper + "kernel void k(global int *x, int n) { int l = get_local_id(0); " + c.body + " }"
			funcs := loops.Parsed(t, program).Funcs
			k := funcs[len(funcs)-1]
			require.Equal(t, "k", k.Name)
			f := loops.Plans(funcs, token.NewMeter(t.Context()))[k]
			require.Equal(t, c.fiber, f == nil)
			if f != nil {
				assert.Equal(t, c.kept, f.KeptSize())
			}
			text := rendered(t, program)
			if c.fiber {
				assert.Contains(t, text, `CC_KERNEL("k", cc_program, `+k.CName+`, 1, `)
			} else {
				assert.Contains(t, text, `CC_SPLIT_KERNEL("k"`)
			}
		})
	}
}

// TestFissionOfChains: each variable of a chain, in which every variable is computed from the one
// before, is analyzed once.
func TestFissionOfChains(t *testing.T) {
	var b strings.Builder
	b.WriteString("kernel void k(global int *x) { int i = get_local_id(0); int a0 = i;\n")
	for j := 1; j < 60; j++ {
		fmt.Fprintf(&b, "int a%d = a%d + a%d;\n", j, j-1, j-1)
	}
	b.WriteString("x[i] = a59; barrier(1); x[i] += a59; }")
	rendered(t, b.String())
}
