package spirv

// The library: functions in OpenCL C that are lowered with the program where it needs them.

import (
	"context"
	"embed"
	"slices"
	"strings"
	"sync"

	"github.com/concord-compute/concord/source/internal/check"
	"github.com/concord-compute/concord/source/internal/preprocess"
	"github.com/concord-compute/concord/source/internal/spirv/module"
	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

//go:embed text/*.cl
var texts embed.FS

// part is a declaration of the library: a function, a struct or a constant. Each begins at the first column of a line.
type part struct {
	text string
	uses []int // the parts that have to stand before it
}

// intrinsics are functions of the library's texts that are instructions: the device's own operations, and its facts.
const intrinsics = `
int cc_fact(int n) { return n; }
float cc_raw_fma_f(float x, float y, float z) { return x; }
double cc_raw_fma_d(double x, double y, double z) { return x; }
float cc_raw_div_f(float x, float y) { return x; }
double cc_raw_div_d(double x, double y) { return x; }
float cc_raw_sqrt_f(float x) { return x; }
double cc_raw_sqrt_d(double x) { return x; }
`

// libraryTexts returns the texts of the library.
func libraryTexts() []string {
	list := []string{intrinsics}
	files, err := texts.ReadDir("text")
	for _, file := range files {
		text, readErr := texts.ReadFile("text/" + file.Name())
		if err == nil {
			err = readErr
		}
		list = append(list, string(text))
	}
	if err != nil {
		panic(err) // the files are a part of the program
	}
	return list
}

// libraryNames returns the words in a text that begin with cc_.
func libraryNames(text string) (names []string) {
	inWord := func(c byte) bool {
		return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	for i := 0; i < len(text); {
		begin := i
		for i < len(text) && inWord(text[i]) {
			i++
		}
		if strings.HasPrefix(text[begin:i], "cc_") {
			names = append(names, text[begin:i])
		}
		if i == begin {
			i++
		}
	}
	return names
}

// libraryParts splits the texts, once.
var libraryParts = sync.OnceValues(func() ([]part, map[string]int) {
	var parts []part
	names := map[string]int{}
	for _, text := range libraryTexts() {
		inside := false
		for _, line := range strings.SplitAfter(text, "\n") {
			begins := line != "" && (line[0] >= 'a' && line[0] <= 'z')
			switch {
			case begins:
				parts = append(parts, part{text: line})
				names[declared(line)] = len(parts) - 1
				inside = true
			case strings.HasPrefix(line, "//"):
				inside = false
			case inside:
				parts[len(parts)-1].text += line
			}
		}
	}
	for i := range parts {
		for _, name := range libraryNames(parts[i].text) {
			if n, ok := names[name]; ok && n != i && !slices.Contains(parts[i].uses, n) {
				parts[i].uses = append(parts[i].uses, n)
			}
		}
	}
	return parts, names
})

// declared returns the name that a declaration declares: the last one before its parameters, value or members.
func declared(line string) string {
	head := line
	if at := strings.IndexAny(line, "([={"); at >= 0 {
		head = line[:at]
	}
	names := libraryNames(head)
	if len(names) == 0 {
		return ""
	}
	return names[len(names)-1]
}

// hasLibrary reports whether the library has a function.
func hasLibrary(name string) bool {
	_, names := libraryParts()
	_, ok := names[name]
	return ok
}

// libraryText returns the text of a function with all that it needs.
func libraryText(name string) string {
	parts, names := libraryParts()
	var text strings.Builder
	done := map[int]bool{}
	var add func(i int)
	add = func(i int) {
		if done[i] {
			return
		}
		done[i] = true
		for _, n := range parts[i].uses {
			add(n)
		}
		text.WriteString(parts[i].text)
	}
	add(names[name])
	return text.String()
}

// libraryProgram is a function with all that it calls, which is parsed once.
type libraryProgram struct {
	parse func() (*tree.Program, *tree.Function)
}

var parsed sync.Map // of libraryProgram by name

// parseLibrary returns a function of the library.
func parseLibrary(name string) (*tree.Program, *tree.Function) {
	known, ok := parsed.Load(name)
	if !ok {
		known, _ = parsed.LoadOrStore(name, libraryProgram{sync.OnceValues(func() (*tree.Program, *tree.Function) {
			features := token.Features{FP64: true, FP16: true, Int64Atomic: true}
			m := token.NewMeter(context.Background())
			pp, err := preprocess.Expand(m, libraryText(name), preprocess.Options{Name: "concord", Features: features})
			var p *tree.Program
			if err == nil {
				p, err = check.Parse(m, pp.Tokens, features)
			}
			if err != nil {
				panic(err) // a mistake in the library, which its tests find
			}
			return p, p.Funcs[len(p.Funcs)-1]
		})})
	}
	return known.(libraryProgram).parse()
}

// libraryFunction returns the finished form of a function of the library.
func (e *emitter) libraryFunction(name string) *function {
	if f := e.library[name]; f != nil {
		return f
	}
	p, fn := parseLibrary(name)
	return e.libraryPart(p, fn)
}

func (e *emitter) libraryPart(p *tree.Program, fn *tree.Function) *function {
	if f := e.library[fn.Name]; f != nil {
		return f
	}
	for _, c := range fn.Calls {
		e.libraryPart(p, c.To)
	}
	f := &function{emitter: e, p: p, decl: fn, isLibrary: true}
	e.library[fn.Name] = f
	if !isIntrinsic(fn.Name) {
		f.write()
	}
	return f
}

// callLibrary calls a function of the library whose result is a scalar. Conversions get the mode to nearest.
func (f *function) callLibrary(name string, k tree.Kind, args ...id) id {
	to := f.libraryFunction(name)
	for len(args) < len(to.decl.Params) {
		args = append(args, f.uint(modeNearest))
	}
	return f.f.Emit(module.OpFunctionCall, f.kindType(k), append([]id{to.f.ID}, args...)...)
}

func isIntrinsic(name string) bool { return name == "cc_fact" || strings.HasPrefix(name, "cc_raw_") }

// intrinsic writes a call of an intrinsic function.
func (f *function) intrinsic(name string, args []value) value {
	var ids []id
	for _, a := range args {
		ids = append(ids, a.one())
	}
	t := tree.FloatType
	if strings.HasSuffix(name, "_d") {
		t = tree.DoubleType
	}
	typ := f.kindType(t.Base)
	switch operation := name[:len(name)-2]; {
	case name == "cc_fact":
		bit := f.op(module.OpShiftLeftLogical, tree.UInt, f.uint(1), ids[0])
		if n, ok := f.b.Value(ids[0]); ok {
			bit = f.uint(1 << n)
		}
		return scalar(tree.IntType, f.op(module.OpBitwiseAnd, tree.UInt, f.facts, bit))
	case operation == "cc_raw_fma":
		return scalar(t, f.f.Ext(module.Fma, typ, ids...))
	case operation == "cc_raw_div":
		return scalar(t, f.exact(module.OpFDiv, t.Base, ids[0], ids[1]))
	default:
		return scalar(t, f.f.Ext(module.Sqrt, typ, ids...))
	}
}
