package render_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/source"
	"github.com/concord-compute/concord/source/internal/builtins"
	"github.com/concord-compute/concord/source/internal/render"
	"github.com/concord-compute/concord/source/internal/tree"
)

// kernelFlags are the flags that kernels are compiled with, without optimization.
var kernelFlags = []string{"-std=c++17", "-Wall", "-Werror", "-fno-exceptions", "-fno-rtti", "-fwrapv",
	"-fno-strict-aliasing", "-ffp-contract=off"}

// eachCompiler runs f for every C++ compiler of the machine.
func eachCompiler(t *testing.T, f func(t *testing.T, cxx string)) {
	found := false
	for _, cxx := range []string{"g++", "clang++"} {
		if _, err := exec.LookPath(cxx); err == nil {
			found = true
			t.Run(cxx, func(t *testing.T) { f(t, cxx) })
		}
	}
	if !found {
		t.Skip("neither g++ nor clang++ here")
	}
}

// compilePrelude compiles the host prelude followed by text.
func compilePrelude(t *testing.T, cxx, text string, flags ...string) (string, []byte, error) {
	t.Helper()
	dir := t.TempDir()
	src, bin := filepath.Join(dir, "t.cc"), filepath.Join(dir, "t")
	require.NoError(t, os.WriteFile(src, []byte(render.WholePrelude(source.Host)+text), 0o644))
	out, err := exec.Command(cxx, append(append(append([]string{}, kernelFlags...), "-o", bin, src),
		flags...)...).CombinedOutput()
	return bin, out, err
}

func TestPreludeValues(t *testing.T) {
	text, err := os.ReadFile("testdata/prelude_test.cc")
	require.NoError(t, err)
	eachCompiler(t, func(t *testing.T, cxx string) {
		for _, flags := range [][]string{{"-O0"}, {"-O3", "-march=native"}} {
			bin, out, err := compilePrelude(t, cxx, string(text), flags...)
			require.NoError(t, err, "%s", head(out))
			out, err = exec.Command(bin).CombinedOutput()
			assert.NoError(t, err, "%s: %s", flags, head(out))
		}
	})
}

// cppName spells a type of the table in C++.
func cppName(b builtins.Type) string {
	s := "cc_" + tree.Vector(b.Kind, b.Lanes()).String()
	switch {
	case b.Event:
		s = "cc_event"
	case b.None:
		s = "void"
	}
	if b.Ptr {
		s += " *"
	}
	return s
}

// Every form of every built-in, with every type that its class allows, has a function in the
// prelude with exactly these parameter types and the right result type.
func TestPreludeOffersTable(t *testing.T) {
	text, calls := tableProgram(source.Host, builtinNames(source.Host), false)
	assert.Greater(t, calls, 3000)
	eachCompiler(t, func(t *testing.T, cxx string) {
		_, out, err := compilePrelude(t, cxx, text, "-c", "-Wno-unused", "-Wno-undefined-inline", "-Wno-undefined-internal")
		assert.NoError(t, err, "%s", head(out))
	})
}

// builtinNames are the functions that the prelude of a target offers.
func builtinNames(target source.Target) []string {
	var names []string
	for name, b := range builtins.Table() {
		if name != "printf" && (target != source.Host || b.Ext != builtins.SubgroupExt) {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

// tableProgram is a program that calls functions with every type that they take, or only with scalars
// other than half.
func tableProgram(target source.Target, names []string, scalars bool) (program string, calls int) {
	fn, end := "", "CC_PROGRAM_BEGIN\nCC_KERNEL(\"all\", cc_program, all, 1, 0)\nCC_PROGRAM_END\n"
	if target != source.Host {
		fn, end = "static CC_FN ", "extern \"C\" __global__ void cc_kernel_all() { cc_program::all(); }\n"
	}
	var text strings.Builder
	text.WriteString("namespace {\nstruct cc_program : cc_item {\n" +
		"template <class T> static " + strings.TrimPrefix(fn, "static ") + "T v() { return T(); }\n" + fn + "void all() {\n")
	for _, name := range names {
		b := builtins.Table()[name]
		for i := range b.Forms {
			for _, g := range classTypes(b.Forms[i].Class) {
				if scalars && (g.Lanes() > 1 || g.Kind == source.Half) {
					continue
				}
				calls++
				text.WriteString(offered(b, &b.Forms[i], g, target))
			}
		}
	}
	text.WriteString("}\n};\n}\n" + end)
	return text.String(), calls
}

// What a program gets of the prelude is enough for it, and the functions that it calls are those of the whole
// prelude: a section with one form of a function has its name, but for those that come with a type.
func TestPreludeSections(t *testing.T) {
	groups := map[string][]string{} // by what their programs get
	for _, name := range builtinNames(source.Host) {
		program, _ := tableProgram(source.Host, []string{name}, true)
		key := render.PreludeText(source.Host, program)
		groups[key] = append(groups[key], name)
	}
	assert.Greater(t, len(groups), 40)
	whole := len(render.WholePrelude(source.Host))
	once := false // whether a name is missing does not depend on the compiler
	eachCompiler(t, func(t *testing.T, cxx string) {
		for _, names := range groups {
			for _, scalars := range []bool{true, false} {
				if text, calls := tableProgram(source.Host, names, scalars); calls > 0 && !once {
					prelude := render.PreludeText(source.Host, text)
					assert.Less(t, len(prelude), whole*3/4, names)
					out, err := compileText(t, cxx, prelude+text)
					assert.NoError(t, err, "%s: %s", names, head(out))
				}
			}
		}
		once = true
	})
	for name, sections := range render.Defining(source.Host) {
		for _, s := range sections {
			assert.True(t, len(sections) == 1 || slices.Contains(s, name) || slices.Contains(s, "cc_half") ||
				slices.Contains(s, "cc_vec"),
				"a section with a form of %s has only the names %s", name, s)
		}
	}
}

// compileText compiles a program that has its prelude, without an output.
func compileText(t *testing.T, cxx, text string) ([]byte, error) {
	src := filepath.Join(t.TempDir(), "t.cc")
	require.NoError(t, os.WriteFile(src, []byte(text), 0o644))
	return exec.Command(cxx, append(kernelFlags, "-fsyntax-only", "-Wno-unused", "-Wno-undefined-inline",
		"-Wno-undefined-internal", src)...).CombinedOutput()
}

// classTypes lists the types that a class allows. Without a class it returns one type, for a form
// without G.
func classTypes(c *builtins.Class) []builtins.Type {
	if c == nil {
		return []builtins.Type{{}}
	}
	var ts []builtins.Type
	for k := source.Char; k <= source.Double; k++ {
		for w := 1; w <= 16; w++ {
			if t := (builtins.Type{Kind: k, Width: w}); c.Has(t) {
				ts = append(ts, t)
			}
		}
	}
	return ts
}

// offered returns a call with a check of its result type.
func offered(b *builtins.Func, f *builtins.Form, g builtins.Type, target source.Target) string {
	var args []string
	hint := builtins.Type{Kind: source.UInt, Width: 4}
	for _, s := range f.Params {
		args = append(args, fmt.Sprintf("v<%s>()", cppName(s.Of(g, hint))))
	}
	if b.Barrier {
		args = append(args, "1u")
	}
	name := b.Name
	if target != source.Host && name == "async_work_group_strided_copy" {
		name = "strided_to_local" // the renderer knows which side is local
	}
	call := fmt.Sprintf("cc_%s(%s)", name, strings.Join(args, ", "))
	return fmt.Sprintf("static_assert(cc_same<decltype(%s), %s>::yes, \"\"); %s;\n", call,
		cppName(f.Result.Of(g, hint)), call)
}
