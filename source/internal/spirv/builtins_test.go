package spirv_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/source"
	"github.com/concord-compute/concord/source/internal/builtins"
	"github.com/concord-compute/concord/source/internal/tree"
)

// all are the features of a device with every type and with sub-groups.
var all = source.Features{FP64: true, FP16: true, Int64Atomic: true, Subgroups: true}

// secondResults are the functions whose pointers are private variables here.
var secondResults = []string{"fract", "modf", "sincos", "frexp", "lgamma_r", "remquo"}

// clType returns a type of the table in OpenCL C.
func clType(t builtins.Type) string {
	if t.Event {
		return "event_t"
	}
	return tree.Vector(t.Kind, t.Lanes()).String()
}

// formKernel returns a kernel that calls a form of a built-in for the generic type g, or "" if there is no such form.
func formKernel(b *builtins.Func, form *builtins.Form, g builtins.Type, name string) string {
	var params, args []string
	pre, post := "", ""
	hint := builtins.Type{Kind: source.UInt, Width: 4}
	for i, s := range form.Params {
		t := s.Of(g, hint)
		v := fmt.Sprintf("v%d", i)
		switch {
		case t.Event && t.Ptr:
			pre += "event_t e; "
			args = append(args, "&e")
		case t.Event:
			args = append(args, "0")
		case t.Ptr && slices.Contains(secondResults, b.Name):
			pre += fmt.Sprintf("%s %s; ", clType(t), v)
			post += fmt.Sprintf(" q%d[i] = %s;", i, v)
			params = append(params, fmt.Sprintf("global %s *q%d", clType(t), i))
			args = append(args, "&"+v)
		case t.Ptr:
			space := "global"
			if strings.HasPrefix(b.Name, "async") && i == 0 {
				space = "local"
			}
			params = append(params, fmt.Sprintf("%s %s *%s", space, clType(t), v))
			args = append(args, v)
		default:
			params = append(params, fmt.Sprintf("global const %s *%s", clType(t), v))
			args = append(args, v+"[i]")
		}
	}
	call := fmt.Sprintf("%s(%s);", b.Name, strings.Join(args, ", "))
	switch r := form.Result.Of(g, hint); {
	case r.Event || r.None:
	default:
		params = append(params, fmt.Sprintf("global %s *r", clType(r)))
		call = "r[i] = " + call
	}
	return fmt.Sprintf("kernel void %s(%s) { size_t i = get_global_id(0); %s%s%s }\n", name, strings.Join(params, ", "),
		pre, call, post)
}

// Every form of every built-in of the table, for every type, becomes a valid module, but for printf, whose error
// names its place. A form that the lowering does not know, or one with wrong types, is found here.
func TestBuiltinForms(t *testing.T) {
	var names []string
	for name := range builtins.Table() {
		names = append(names, name)
	}
	slices.Sort(names)
	widths := []int{1, 2, 3, 4, 8, 16}
	for _, name := range names {
		if name == "printf" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			b := builtins.Table()[name]
			text := ""
			if b.Ext != "" {
				text = "#pragma OPENCL EXTENSION " + b.Ext + " : enable\n"
			}
			n := 0
			for i := range b.Forms {
				form := &b.Forms[i]
				for k := source.Char; k <= source.Double; k++ {
					for _, w := range widths {
						g := builtins.Type{Kind: k, Width: w}
						if form.Class != nil && !form.Class.Has(g) || form.Class == nil && (k != source.Float || w != 1) {
							continue
						}
						if i > 0 && w == 1 && form.Class == b.Forms[0].Class { // the same as the first form
							continue
						}
						text += formKernel(b, form, g, fmt.Sprintf("k%d", n))
						n++
					}
				}
			}
			require.NotZero(t, n)
			u, err := source.Parse(text, source.Options{Name: name, Features: &all})
			require.NoError(t, err, "%.3000s", text)
			m, err := u.Module(context.Background())
			require.NoError(t, err, "%.3000s", text)
			validate(t, name, m)
			assert.Len(t, m.Kernels, n)
		})
	}
	u, err := source.Parse(`kernel void k(int x) {
  printf("%d", x);
}`, source.Options{Name: "print.cl"})
	require.NoError(t, err)
	_, err = u.Module(context.Background())
	var list source.ErrorList
	require.ErrorAs(t, err, &list)
	assert.Contains(t, list.Error(), "print.cl:2:3")
}

// Sub-groups: every item of testdata/gpu/subgroups.cl checks what it gets from the others. The program takes sub-groups
// for parts of the group in the order of its items, which Vulkan promises for groups of one dimension only.
func TestSubGroups(t *testing.T) {
	driver := vulkanDriver(t)
	const file = "../render/testdata/gpu/subgroups.cl"
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	m := module(t, string(text), source.Options{Name: file, Features: &all})
	validate(t, "subgroups", m)
	for _, r := range readRuns(string(text)) {
		if strings.Contains(r.local, ",") {
			continue
		}
		got, err := execute(t, driver, m, r.kernel, r.global, r.local, r.args...)
		require.NoError(t, err)
		assert.Equal(t, r.want, got, "local size %s", r.local)
	}
	got, err := execute(t, driver, m, "all", "39", "13", "out:i32:39") // the last sub-group is smaller
	require.NoError(t, err)
	assert.Equal(t, strings.TrimSpace(strings.Repeat("0 ", 39)), strings.Join(got, "\n"))
}

// An int that became a long is compared right: Mesa 22.3 compares the result of OpSConvert with a constant wrongly.
func TestExtended(t *testing.T) {
	driver := vulkanDriver(t)
	m := module(t, `kernel void k(global const int *a, global int *o) {
  size_t i = get_global_id(0);
  long x = a[i];
  o[i] = x > 5 ? 1 : x == -5 ? 2 : x <= -100 ? 3 : x < 0 ? 4 : 5;
}`, source.Options{Name: "extended"})
	validate(t, "extended", m)
	got, err := execute(t, driver, m, "k", "8", "8", "buf:i32:8:0,-1,1,-5,16777217,-16777219,7,-128", "out:i32:8")
	require.NoError(t, err)
	assert.Equal(t, "5 4 5 2 1 3 1 3", strings.Join(got, "\n"))
}

// A sign is copied right at the end of nested conditions, where Mesa 22.3 joins the bits of two numbers wrongly.
func TestNestedSign(t *testing.T) {
	driver := vulkanDriver(t)
	m := module(t, `kernel void k(global const double *in, global double *out) {
  size_t i = get_global_id(0);
  double x = in[i], y = x == x ? x > 700.0 ? 700.0 : x < -40.0 ? -40.0 : x : 0.0;
  double n = rint(y * 0x1.71547652b82fep+0), r = y - n * 0x1.62e42fefa2p-1;
  double s = as_double((ulong)((int)n + 1023) << 52);
  out[i] = x != x ? x : x > 700.0 ? exp(x) : copysign(s * r, x);
}`, source.Options{Name: "sign"})
	validate(t, "sign", m)
	got, err := execute(t, driver, m, "k", "4", "4", "buf:f64:4:1,-1,0.5,-2", "out:f64:4")
	require.NoError(t, err)
	assert.Equal(t, "0.61370563888158358 -0.1534264097203959 0.38629436111841642 -0.0099301927097030784",
		strings.Join(got, "\n"))
}
