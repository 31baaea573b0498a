package builtins

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/source/internal/token"
)

// clangAll asks TestBuiltinsLikeClang for every function and all combinations of argument
// types, which takes minutes; without it there is one function of each row of the table,
// and those of several arguments get a selection.
const clangAll = "CLANG_ALL"

// findClang returns a clang that compiles OpenCL C.
func findClang(t *testing.T) string {
	for _, name := range []string{os.Getenv("CLANG"), "clang", "clang-19", "clang-17", "clang-16", "clang-15",
		"clang-14"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no clang here, whose overload resolution is the measure")
	return ""
}

// everyScalar lists all scalar argument types, and some a selection with the most different rules.
var (
	everyScalar = []string{"char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "float", "double"}
	someScalars = []string{"char", "int", "uint", "long", "half", "float", "double"}
	someVectors = []string{"float4", "float2", "double4", "half4", "int4", "uint4", "char4", "uchar4", "short4", "long4",
		"ulong4"}
	somePointed = []string{"float", "double", "half", "int", "uint", "char", "float4", "int4", "half4", "long", "ulong"}
)

// argumentLists returns the lists of types that a built-in is called with.
func argumentLists(b *Func) (lists [][]string) {
	seen := map[string]bool{}
	for _, f := range b.Forms {
		scalars := everyScalar
		if len(f.Params) > 1 && os.Getenv(clangAll) == "" {
			scalars = someScalars
		}
		for _, mixed := range []bool{false, true} { // vectors with each other and with a few scalars
			sets := make([][]string, len(f.Params))
			for i, p := range f.Params {
				switch {
				case p.Ptr:
					for _, e := range somePointed {
						sets[i] = append(sets[i], "global "+e+"*")
					}
				case mixed:
					sets[i] = append(slices.Clone(someVectors), "float", "int", "char", "double")
					if len(f.Params) > 1 && os.Getenv(clangAll) == "" {
						sets[i] = []string{"float4", "double4", "int4", "uint4", "char4", "float", "int", "double"}
					}
				default:
					sets[i] = scalars
				}
			}
			for _, list := range product(sets) {
				if key := strings.Join(list, ","); !seen[key] {
					seen[key] = true
					lists = append(lists, list)
				}
			}
		}
	}
	return lists
}

func product(sets [][]string) [][]string {
	lists := [][]string{nil}
	for _, set := range sets {
		var longer [][]string
		for _, l := range lists {
			for _, s := range set {
				longer = append(longer, append(slices.Clip(l), s))
			}
		}
		lists = longer
	}
	return lists
}

// compared reports whether clang has the built-in as a function of OpenCL C 1.2.
func compared(b *Func) bool {
	for _, f := range b.Forms {
		for _, p := range f.Params {
			if p.Sym == 'e' || p.Sym == 'p' {
				return false
			}
		}
	}
	return b.Ext == "" && b.Name != "vec_step" && b.Name != "vloada_half" && !strings.HasPrefix(b.Name, "atom_")
}

// trial is one call.
type trial struct {
	text string
	want string // the type of its result, or "" if it is refused
	why  string
}

// TestBuiltinsLikeClang calls every built-in with all types of arguments. The front end has to
// accept the same calls as clang, and with the same type of result.
func TestBuiltinsLikeClang(t *testing.T) {
	clang := findClang(t)
	for _, c := range []struct {
		name, options string
		feats         token.Features
	}{
		{"all", "", token.Features{FP64: true, FP16: true}},
		{"double", "-Xclang -cl-ext=-cl_khr_fp16", token.Features{FP64: true}},
		{"float", "-Xclang -cl-ext=-cl_khr_fp16,-cl_khr_fp64", token.Features{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			calls := 0
			table := Table()
			var trials []trial
			seen := map[*Form]bool{}
			for _, name := range slices.Sorted(maps.Keys(table)) {
				b := table[name]
				if again := seen[&b.Forms[0]]; again && os.Getenv(clangAll) == "" {
					continue // another name of its row
				}
				seen[&b.Forms[0]] = true
				if compared(b) {
					trials = append(trials, trialsOf(t, b, &c.feats)...)
				}
			}
			if c.name != "all" && os.Getenv(clangAll) == "" { // most of it is the same as in "all"
				some := trials[:0]
				for i := 0; i < len(trials); i += 5 {
					some = append(some, trials[i])
				}
				trials = some
			}
			for chunk := range slices.Chunk(trials, 20000) {
				calls += len(chunk)
				compareWithClang(t, clang, c.options, &c.feats, chunk)
			}
			t.Logf("%d calls", calls)
		})
	}
}

// trialsOf resolves the calls of a built-in here.
func trialsOf(t *testing.T, b *Func, feats *token.Features) (trials []trial) {
	for _, list := range argumentLists(b) {
		has := func(typ string, ok bool) bool {
			return !ok && slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, typ) })
		}
		if has("half", feats.FP16) || has("double", feats.FP64) {
			continue
		}
		var args []Type
		var names []string
		for _, s := range list {
			args = append(args, parseB(t, s))
			names = append(names, variableOf(s))
		}
		call, fitting := b.Resolve(args, feats)
		x := trial{text: b.Name + "(" + strings.Join(names, ", ") + ")"}
		switch len(fitting) {
		case 0:
			if slices.ContainsFunc(args, func(a Type) bool { return a.Ptr }) {
				continue // for a pointer to another type clang warns, but here it is an error
			}
			x.why = "nothing fits"
		case 1:
			x.want = call.Result.Tree().String()
		default:
			x.why = "ambiguous: " + Candidates(b, fitting)
		}
		trials = append(trials, x)
	}
	return trials
}

func variableOf(typ string) string {
	if to, ok := strings.CutPrefix(typ, "global "); ok {
		return "p_" + strings.TrimSuffix(to, "*")
	}
	return "v_" + typ
}

var clangError = regexp.MustCompile(`(?m)^[^\n]*calls\.cl:(\d+):\d+: error: ([^\n]*)`)

// compareWithClang lets clang check a program with one line per call.
func compareWithClang(t *testing.T, clang, options string, feats *token.Features, trials []trial) {
	var b bytes.Buffer
	b.WriteString("#pragma OPENCL EXTENSION cl_khr_fp16 : enable\nvoid calls(")
	for _, typ := range slices.Concat(everyScalar, someVectors) {
		if !strings.HasPrefix(typ, "half") && !strings.HasPrefix(typ, "double") || feats.FP16 && typ[0] == 'h' ||
			feats.FP64 && typ[0] == 'd' {
			fmt.Fprintf(&b, "%s v_%s, ", typ, typ)
		}
	}
	for _, typ := range somePointed {
		if !strings.HasPrefix(typ, "half") && typ[0] != 'd' || typ == "half" || feats.FP16 && typ[0] == 'h' || feats.FP64 &&
			typ[0] == 'd' {
			fmt.Fprintf(&b, "global %s *p_%s, ", typ, typ)
		}
	}
	b.WriteString("int end) {\n")
	for _, x := range trials {
		want := x.want
		if want == "" {
			want = "struct none"
		}
		fmt.Fprintf(&b, "_Static_assert(__builtin_types_compatible_p(__typeof__(%s), %s), \"another result\");\n", x.text,
			want)
	}
	b.WriteString("}\n")
	text := strings.Replace(b.String(), "void calls(", "struct none { int x; }; void calls(", 1)
	file := filepath.Join(t.TempDir(), "calls.cl")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	args := []string{"-x", "cl", "-cl-std=CL1.2", "-D__opencl_c_integer_dot_product_input_4x8bit",
		"-D__opencl_c_integer_dot_product_input_4x8bit_packed", "-target", "spir64", "-fsyntax-only", "-w", "-ferror-limit=0",
		"-fno-caret-diagnostics",
		"-Xclang", "-finclude-default-header", "-fmacro-backtrace-limit=1"}
	args = append(args, strings.Fields(options)...)
	cmd := exec.Command(clang, append(args, file)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, _ := cmd.CombinedOutput()
	said := map[int]string{}
	for _, m := range clangError.FindAllStringSubmatch(string(out), -1) {
		line, _ := strconv.Atoi(m[1])
		if said[line] == "" {
			said[line] = m[2]
		}
	}
	if len(said) == 0 && len(trials) > 100 {
		require.Fail(t, "clang said nothing", "%s", out[:min(len(out), 4000)])
	}
	wrong := 0
	for i, x := range trials {
		message := said[i+3]
		differs := strings.Contains(message, "another result") || strings.Contains(message, "static")
		ok := x.want != "" && message == "" || x.want == "" && message != "" && !differs
		if !ok {
			if wrong++; wrong <= 200 {
				t.Errorf("%s: here %q (%s), clang: %q", x.text, x.want, x.why, message)
			}
		}
	}
	assert.Zero(t, wrong, "of %d calls", len(trials))
}
