package source

// The work on a program grows linearly with its text, whatever the text is.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/source/internal/check"
	"github.com/concord-compute/concord/source/internal/preprocess"
	"github.com/concord-compute/concord/source/internal/render"
	"github.com/concord-compute/concord/source/internal/spirv"
	"github.com/concord-compute/concord/source/internal/token"
)

// lines joins the results of line(0) to line(n-1).
func lines(n int, line func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(line(i))
		b.WriteByte('\n')
	}
	return b.String()
}

// inKernel returns a program of one kernel with that body.
func inKernel(body string) string {
	return "kernel void k(global int *x, int n) { int l = get_local_id(0), " +
		"g = get_global_id(0), z = get_global_size(0);\n" + body + "}\n"
}

// hostile are programs whose analysis or text could take more than their size suggests.
var hostile = map[string]func(n int) string{
	"differences spread backwards": func(n int) string {
		return inKernel(lines(n+1, func(i int) string { return fmt.Sprintf("int a%d = 0;", i) }) +
			lines(n, func(i int) string { return fmt.Sprintf("a%d = a%d;", i, i+1) }) +
			fmt.Sprintf("a%d = l; x[l] = a0; barrier(1);", n))
	},
	"differences spread by conditions": func(n int) string {
		return inKernel(lines(n+1, func(i int) string { return fmt.Sprintf("int a%d = 0;", i) }) +
			lines(n, func(i int) string { return fmt.Sprintf("if (a%d) a%d = 1;", i+1, i) }) +
			fmt.Sprintf("a%d = l; x[l] = a0; barrier(1);", n))
	},
	"differences spread by breaks": func(n int) string {
		return inKernel(lines(n+1, func(i int) string { return fmt.Sprintf("int a%d = 0;", i) }) +
			lines(n, func(i int) string { return fmt.Sprintf("while (n) { if (a%d) break; a%d = 1; }", i+1, i) }) +
			fmt.Sprintf("a%d = l; x[l] = a0; barrier(1);", n))
	},
	"the group decides backwards": func(n int) string {
		return inKernel(lines(n+1, func(i int) string { return fmt.Sprintf("int a%d = 0;", i) }) +
			lines(n, func(i int) string { return fmt.Sprintf("a%d = a%d;", i, i+1) }) +
			fmt.Sprintf("a%d = n; if (a0) barrier(1);", n))
	},
	"switch": func(n int) string {
		return inKernel("switch (n) {" + lines(n, func(i int) string {
			return fmt.Sprintf("case %d: x[%[1]d] = %[1]d; break;", i)
		}) + "}")
	},
	"switch with returns": func(n int) string {
		return inKernel("barrier(1); switch (n) {" + lines(n, func(i int) string {
			return fmt.Sprintf("case %d: x[%[1]d] = %[1]d; return;", i)
		}) + "}")
	},
	"cases in blocks": func(n int) string {
		return inKernel("switch (n) {" + lines(n, func(i int) string {
			return fmt.Sprintf("{ case %d: x[%[1]d] = %[1]d; break; }", i)
		}) + "}")
	},
	"cases that fall through": func(n int) string {
		return inKernel("switch (n) {" + lines(n, func(i int) string {
			return fmt.Sprintf("case %d: x[%[1]d] = %[1]d;", i)
		}) + "}")
	},
	"cases with barriers": func(n int) string {
		return inKernel("switch (n) {" + lines(n, func(i int) string {
			return fmt.Sprintf("case %d: x[%[1]d] = %[1]d; barrier(1); break;", i)
		}) + "}")
	},
	"ranges of cases": func(n int) string {
		return inKernel("switch (n) {" + lines(n, func(i int) string {
			return fmt.Sprintf("case %d ... %d: x[0] = %d; break;", 64*i, 64*i+63, i)
		}) + "}")
	},
	"else if": func(n int) string {
		return inKernel("if (n == -1) x[0] = 1;" + lines(n, func(i int) string {
			return fmt.Sprintf("else if (n == %d) x[%[1]d] = %[1]d;", i)
		}))
	},
	"else if with barriers": func(n int) string {
		return inKernel("if (n == -1) x[0] = 1;" + lines(n, func(i int) string {
			return fmt.Sprintf("else if (n == %d) { x[%[1]d] = %[1]d; barrier(1); }", i)
		}))
	},
	"returns": func(n int) string {
		return inKernel(lines(n, func(i int) string { return fmt.Sprintf("if (n == %d) return;", i) }) +
			"barrier(1); x[l] = 1;")
	},
	"guards through a chain": func(n int) string {
		return inKernel("int a0 = g;" + lines(n, func(i int) string { return fmt.Sprintf("int a%d = a%d;", i+1, i) }) +
			lines(n, func(i int) string { return fmt.Sprintf("if (a%d > n + %d) return;", n, i) }) + "x[l] = 1;")
	},
	"barriers": func(n int) string {
		return inKernel(lines(n, func(i int) string {
			return fmt.Sprintf("int a%d = l + %[1]d, b%[1]d = x[a%[1]d]; barrier(1); x[l] += b%[1]d;", i)
		}))
	},
	"barriers behind a chain": func(n int) string {
		return inKernel("int a0 = l;" + lines(n, func(i int) string { return fmt.Sprintf("int a%d = a%d + 1;", i+1, i) }) +
			lines(n, func(i int) string { return fmt.Sprintf("x[%d] = a%d; barrier(1);", i, n) }))
	},
	"a count of the group": func(n int) string {
		return inKernel("int c = 0; while (c < n) { barrier(1);" + lines(n, func(i int) string {
			return fmt.Sprintf("c++; int b%d = l + c; x[b%[1]d] = 1;", i)
		}) + "}")
	},
	"interchanged loops": func(n int) string {
		return inKernel("int q = 0;" + lines(n, func(i int) string {
			return fmt.Sprintf("int h%d = g + %[1]d; for (int i = h%[1]d; i < n; i += z) { if (i < 7) continue; q += x[i]; }", i)
		}) + "x[g] = q;")
	},
	"long bounds": func(n int) string {
		return inKernel("long y = n;" + lines(n/500, func(int) string {
			return "for (long i = g" + strings.Repeat(" + y", 500) + "; i < n; i += z) x[i] = 1;"
		}))
	},
	"parameters of the group": func(n int) string {
		return "kernel void k(global int *x" + lines(n, func(i int) string { return fmt.Sprintf(", int p%d", i) }) + ") {" +
			lines(n, func(i int) string { return fmt.Sprintf("p%d++; if (p%[1]d) barrier(1);", i) }) + "}"
	},
	"functions and kernels": func(n int) string {
		return "int f0(int a) { return a; }\n" + lines(500, func(i int) string {
			return fmt.Sprintf("int f%d(int a) { return f%d(a); }", i+1, i)
		}) +
			lines(n, func(i int) string {
				return fmt.Sprintf("kernel void k%d(global int *x) { if (f500(1)) barrier(1); x[0] = f500(2); }", i)
			})
	},
	"kernels that call kernels": func(n int) string {
		n = min(n/10, 900)
		return "kernel void k0(global int *x) { x[0] = 1; }\nkernel void k1(global int *x) { k0(x); }\n" +
			lines(n, func(i int) string {
				return fmt.Sprintf("kernel void k%d(global int *x) { k%d(x); k%d(x); }", i+2, i+1, i)
			})
	},
	"local variables": func(n int) string { return inKernel(strings.Repeat("{ local int a; }\n", n)) },
	"members": func(n int) string {
		return "struct s {" + lines(n, func(i int) string { return fmt.Sprintf("int a%d; struct { int b%[1]d; };", i) }) +
			"}; constant struct s c = {" +
			lines(n, func(i int) string { return fmt.Sprintf(".a%d = 1, .b%[1]d = 2,", i) }) +
			"}; kernel void k(global struct s *x) {" +
			lines(n, func(i int) string { return fmt.Sprintf("x[0].a%d = x[0].b%[1]d + c.a%[1]d;", i) }) + "}"
	},
	"structs in structs": func(n int) string {
		return "struct s0 { };\n" + lines(n, func(i int) string {
			return fmt.Sprintf("struct s%d { struct s%d a, b; };", i+1, i)
		}) +
			fmt.Sprintf("kernel void k(global int *x, struct s%d v) { x[0] = 1; }", n)
	},
	"nameless structs in structs": func(n int) string {
		n = min(n/10, 200)
		return "struct s0 { };\n" + lines(n, func(i int) string {
			return fmt.Sprintf("struct s%d { struct s%d; struct s%d; };", i+1, i, i)
		}) +
			fmt.Sprintf("struct t { struct s%d; int a; }; kernel void k(global struct t *x) { x->a = 1; }", n)
	},
	"constants from constants": func(n int) string {
		return "constant int2 c0 = (int2)(1, 2);\n" + lines(n, func(i int) string {
			return fmt.Sprintf("constant int2 c%d = c%d + c%d;", i+1, i, i)
		}) +
			inKernel(fmt.Sprintf("x[0] = c%d.x;", n))
	},
	"deep initializers": func(n int) string {
		return "struct s0 { int a[1000000]; };\n" + lines(100, func(i int) string {
			return fmt.Sprintf("struct s%d { struct s%d a; };", i+1, i)
		}) +
			"constant struct s100 c = " + strings.Repeat("{", 102) + strings.Repeat("1,\n", n) + strings.Repeat("}", 102) + ";" +
			inKernel("x[0] = c"+strings.Repeat(".a", 101)+"[n];")
	},
	"strings": func(n int) string {
		return "constant char t[] = " + strings.Repeat("\"abcdefgh\"\n", n) + ";" +
			inKernel("x[0] = t[n]; printf(\""+strings.Repeat("abcdefgh", n)+"\");")
	},
	"long sums": func(n int) string {
		return inKernel(lines(n/500, func(int) string {
			return "x[(long)(g" + strings.Repeat(" + 1", 500) + ")] = n << (1" + strings.Repeat(" + 1", 500) + ");"
		}))
	},
	"attributes in attributes": func(n int) string {
		return lines(n/100, func(i int) string {
			return fmt.Sprintf("int f%d(int n) { ", i) + strings.Repeat("__attribute__((aligned(sizeof(({ ", 30) + "4" +
				strings.Repeat("; }))))) int a; ", 30) + "return 1; }"
		})
	},
	"deep parentheses": func(n int) string {
		return inKernel(lines(n/100, func(int) string {
			return "x[0] = " + strings.Repeat("(", 200) + "n" + strings.Repeat(" + 1)", 200) + ";"
		}))
	},
	"nested blocks": func(n int) string {
		return inKernel(strings.Repeat("{ int a = n; ", 120) + strings.Repeat("x[n] = a;\n", n) + strings.Repeat("}", 120))
	},
	"nested switches": func(n int) string {
		return inKernel(strings.Repeat("switch (n) { case 1: ", 60) + strings.Repeat("x[n] = 1;\n", n) +
			strings.Repeat("}", 60))
	},
}

// work counts the steps of reading a program and rendering it for all targets.
func work(t *testing.T, text string) int {
	m := token.NewMeter(t.Context())
	pp, err := preprocess.Expand(m, text, preprocess.Options{Features: Portable})
	require.NoError(t, err)
	tree, err := check.Parse(m, pp.Tokens, Portable)
	require.NoError(t, err)
	steps := m.Steps
	for _, target := range []Target{Host, CUDA, HIP, Metal} {
		m := token.NewMeter(t.Context())
		func() {
			defer token.Settle(&err)
			_, _ = render.CPP(m, tree, target, false) // finding what a target does not support takes time, too
		}()
		require.NoError(t, err, target)
		steps += m.Steps
	}
	m = token.NewMeter(t.Context())
	module, _ := spirv.Emit(m, tree)
	if module != nil {
		steps += len(module.Words) / 40
	}
	return steps + m.Steps
}

// TestGrowth: four times the text takes at most about six times the work. An analysis of quadratic
// time would take 16 times the work, and some of these programs would never end.
func TestGrowth(t *testing.T) {
	for name, text := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			few, many := work(t, text(500)), work(t, text(2000))
			assert.Less(t, many, 6*few)
		})
	}
}

// after is a context that is done after n calls of Err.
type after struct {
	context.Context
	n *int
}

func (a after) Err() error {
	if *a.n--; *a.n < 0 {
		return context.Canceled
	}
	return nil
}

// TestCancel ends reading and rendering at every place where they look at the context. Afterwards
// the unit still works.
func TestCancel(t *testing.T) {
	text := hostile["interchanged loops"](200) + strings.ReplaceAll(hostile["differences spread by breaks"](200), "void k",
		"void k2")
	u, err := Parse(text, Options{})
	require.NoError(t, err)
	ends := func(call func(ctx context.Context) error) {
		times := 0
		for ; ; times += 1 + times/8 {
			n := times
			err := call(after{t.Context(), &n})
			if n >= 0 {
				require.NoError(t, err)
				break
			}
			require.ErrorIs(t, err, context.Canceled)
		}
		assert.Greater(t, times, 10)
	}
	ends(func(ctx context.Context) error {
		got, err := ParseContext(ctx, text, Options{})
		if err == nil {
			assert.Equal(t, u.Hash(), got.Hash())
		} else {
			assert.Nil(t, got)
		}
		return err
	})
	for _, target := range []Target{Host, CUDA, HIP, Metal, SPIRV} {
		want, err := u.Render(target)
		require.NoError(t, err)
		ends(func(ctx context.Context) error {
			got, err := u.RenderContext(ctx, target)
			if err == nil {
				assert.Equal(t, want, got)
			} else {
				assert.Empty(t, got)
			}
			return err
		})
	}
	ends(func(ctx context.Context) error { _, err := u.RenderOffsetsContext(ctx); return err })

	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	for _, target := range []Target{OpenCL, Host} {
		_, err = u.RenderContext(ctx, target)
		assert.Equal(t, cause, err)
	}
	_, err = u.RenderOffsetsContext(ctx)
	assert.Equal(t, cause, err)
	_, err = ParseContext(ctx, text, Options{})
	assert.Equal(t, cause, err)
}

// The limits that the package's documentation names.
const (
	longestName   = 4096
	deepestNest   = 256
	deepestCalls  = 1000
	mostOverloads = 256
	mostElements  = 1 << 22
)

// TestSizeLimits: programs beyond a limit are refused with a place.
func TestSizeLimits(t *testing.T) {
	long := strings.Repeat("n", longestName+1)
	for name, c := range map[string]struct{ text, want string }{
		"overloads": {lines(mostOverloads+1, func(i int) string {
			return fmt.Sprintf("struct s%d { int a; }; int __attribute__((overloadable)) f(struct s%[1]d a) { return 1; }", i)
		}), "program.cl:257:59: 'f' has more than 256 overloads"},
		"calls": {"int f0(int a) { return a; }\n" + lines(deepestCalls+9, func(i int) string {
			return fmt.Sprintf("int f%d(int a) { return f%d(a); }", i+1, i)
		}),
			"program.cl:1002:5: calls are nested deeper than 1000 functions"},
		"names":      {"constant int " + long + " = 1;", "program.cl:1:14: the name is longer than 4096 bytes"},
		"file names": {"#line 1 \"" + long + "\"\n", "program.cl:1:9: #line: the file name is longer than 4096 bytes"},
		"members without a name": {"struct s0 { int a; };\n" + lines(deepestNest+1, func(i int) string {
			return fmt.Sprintf("struct s%d { struct s%d; };", i+1, i)
		}),
			"program.cl:258:15: members without a name are nested deeper than 256 levels"},
		"strings": {"constant char t[] = \"" + strings.Repeat("a", mostElements+1) + "\";",
			"program.cl:1:21: the initializer is too long"},
		"cases": {inKernel("switch (n) {\ncase 1 ... 9000: x[0] = 1; break;\ncase 20: x[0] = 2; }"),
			"program.cl:4:1: the case 20 occurs twice"},
		"other cases": {inKernel("switch (n) {\ncase 20: x[0] = 2; break;\ncase 1 ... 9000: x[0] = 1; }"),
			"program.cl:4:1: the case 20 occurs twice"},
		"long cases": {inKernel("switch ((ulong)n) {\ncase 1 ... 0xffffffffffffffff: x[0] = 2; break;\ncase " +
			"0x8000000000000000: x[0] = 1; }"), "occurs twice"},
		"equal ranges": {inKernel("switch (n) {\ncase -5 ... 5: x[0] = 2; break;\ncase -5 ... 5: x[0] = 1; }"),
			"program.cl:4:1: the case -5 occurs twice"},
	} {
		_, err := Parse(c.text, Options{})
		var list ErrorList
		require.ErrorAs(t, err, &list, name)
		assert.Contains(t, err.Error(), c.want, name)
	}
	u := mustParse(t, inKernel("switch (n) {"+lines(8000, func(i int) string {
		return fmt.Sprintf("case %d ... %d: x[0] = 1; break;", 4097*i, 4097*i+4096)
	})+"}"), Options{})
	_, err := u.Render(CUDA)
	var list ErrorList
	require.ErrorAs(t, err, &list)
	assert.NotErrorIs(t, err, ErrUnsupported)
	assert.Contains(t, err.Error(), "the rendering is larger than 67108864 bytes")
	assert.Greater(t, list[0].Pos.Line, 100)
	_, err = u.Render(HIP)
	require.NoError(t, err)

	u = mustParse(t, "#line 1 \""+long[1:]+"\"\n"+inKernel(strings.Repeat("x[0] = 1;\n\n\n\n\n\n\n", 20000)), Options{})
	for _, render := range []func() (string, error){u.RenderOffsets, func() (string, error) { return u.Render(Host) }} {
		_, err = render()
		require.ErrorAs(t, err, &list)
		assert.Contains(t, list[0].Msg, "the rendering is larger than")
	}
}

// TestRangesBesideEachOther: adjacent case ranges that do not overlap are accepted.
func TestRangesBesideEachOther(t *testing.T) {
	mustParse(t, inKernel("switch (n) { case -9000 ... -1: x[0] = 1; break; case 0: case 1 ... 5000: break; case 6 + "+
		"5000 ... 9000: x[0] = 2; break; case 5001: ; }"), Options{})
}

// TestPlansThatTakeTooLong: a kernel runs on fibers if the plan that would replace them would grow
// faster than the kernel.
func TestPlansThatTakeTooLong(t *testing.T) {
	for n, planned := range map[int]bool{20: true, 2000: false} {
		text, err := mustParse(t, hostile["barriers behind a chain"](n), Options{}).Render(Host)
		require.NoError(t, err)
		assert.Equal(t, planned, strings.Contains(text, `CC_SPLIT_KERNEL("k"`), n)
		assert.Equal(t, !planned, strings.Contains(text, `CC_KERNEL("k", cc_program, k_k, 1, `), n)
	}
}
