package tests

// The rules. Each returns a list of its violations as sentences.

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var rules = []struct {
	name  string
	check func(h *house) []string
}{
	{"floors", checkFloors},
	{"outside", checkOutside},
	{"reach", checkReach},
	{"import C", checkC},
	{"goruntime", checkAlias},
	{"init", checkInit},
	{"package docs", checkDocs},
	{"names", checkNames},
	{"vendors", checkVendors},
	{"forwarders", checkForwarders},
}

// checkFloors: a room imports only rooms below it, and only tests import tests.
func checkFloors(h *house) (bad []string) {
	for _, f := range h.files {
		room, may, ok := roomOf(f.dir())
		if !ok {
			bad = append(bad, fmt.Sprintf("%s: no row in floors for this room", f.path))
		}
		if !ok || f.test() {
			continue
		}
		for _, i := range f.imports() {
			dir, own := i.own()
			if !own {
				continue
			}
			to, _, known := roomOf(dir)
			free := slices.Contains(may, "*") && to != "tests" && !within(to, "cmd/concord/internal")
			if !known || to != room && !free && !slices.Contains(may, to) {
				bad = append(bad, fmt.Sprintf("%s: %s may not import %s", f.path, room, dir))
			}
		}
	}
	return bad
}

// checkOutside: other modules are imported only by the rooms in their row of outside.
func checkOutside(h *house) (bad []string) {
	for _, f := range h.files {
		if f.test() {
			continue
		}
		room, _, _ := roomOf(f.dir())
		for _, i := range f.imports() {
			if !i.outside() {
				continue
			}
			row := slices.IndexFunc(outside, func(o floor) bool { return within(i.path, o.name) })
			if row < 0 || !slices.Contains(outside[row].may, room) {
				bad = append(bad, fmt.Sprintf("%s: %s may not import %s", f.path, room, i.path))
			}
		}
	}
	return bad
}

// checkReach: importing a package of the module adds no other modules to a build than those that
// reach lists.
func checkReach(h *house) (bad []string) {
	for _, r := range reach {
		seen := map[string]bool{}
		queue := []string{r.from}
		for len(queue) > 0 {
			dir := queue[0]
			queue = queue[1:]
			if seen[dir] {
				continue
			}
			seen[dir] = true
			for _, f := range h.files {
				if f.dir() != dir || f.test() {
					continue
				}
				for _, i := range f.imports() {
					if own, ok := i.own(); ok {
						queue = append(queue, own)
					} else if i.outside() && !slices.ContainsFunc(r.modules, func(m string) bool { return within(i.path, m) }) {
						bad = append(bad, fmt.Sprintf("%s: %s reaches %s", f.path, r.from, i.path))
					}
				}
			}
		}
	}
	return bad
}

// checkC allows import "C" in internal/cgo, internal/gpu, internal/simd, internal/stdio, opencl, the tests that
// exist for it, and in one file of each other backend, of each reader of sensors, and of runtime/cluster/mpi.
func checkC(h *house) (bad []string) {
	shims := map[string]string{}
	for _, f := range h.files {
		if !slices.ContainsFunc(f.imports(), func(i spec) bool { return i.path == "C" }) {
			continue
		}
		dir := f.dir()
		switch {
		case dir == "internal/cgo", dir == "internal/gpu", dir == "internal/simd", dir == "internal/stdio", dir == "opencl",
			within(dir, "tests/peers"), within(dir, "tests/sim"):
		case !slices.Contains(vendors, dir) && dir != "runtime/cluster/mpi":
			bad = append(bad, fmt.Sprintf(`%s: import "C" has no place in %s`, f.path, dir))
		case shims[dir] != "":
			bad = append(bad, fmt.Sprintf(`%s: import "C" is in %s already`, f.path, shims[dir]))
		default:
			shims[dir] = f.path
		}
	}
	return bad
}

// checkAlias: the standard runtime is goruntime everywhere, and ours is runtime. For a name that
// both packages have, tools would silently choose the standard one.
func checkAlias(h *house) (bad []string) {
	for _, f := range h.files {
		for _, i := range f.imports() {
			if i.path == "runtime" && i.name != "goruntime" {
				bad = append(bad, fmt.Sprintf("%s: import the standard runtime as goruntime", f.path))
			}
			if i.path == module+"/runtime" && i.name != "" {
				bad = append(bad, fmt.Sprintf("%s: import our runtime by its own name", f.path))
			}
		}
	}
	return bad
}

// drivers are the packages through which a driver, a library or another process is
// reached.
var drivers = []string{"C", "github.com/go-gl/cl", "github.com/NVIDIA/go-nvml", module + "/internal/cgo",
	module + "/internal/simd", "os/exec", "plugin", "syscall", "golang.org/x/sys"}

// registering are the functions of package driver that init may call.
var registering = []string{"Register", "Missing", "RegisterTelemetry", "NoTelemetry"}

// describing lists calls that describe a backend, or say why it is missing, and use nothing of it.
var describing = []string{"cgo.NewBackend", "cgo.NotBuilt", "cgo.Disabled"}

// checkInit: while a program starts, a backend only registers itself. Its init functions and
// variables do not call a driver, directly or indirectly.
func checkInit(h *house) (bad []string) {
	for _, dir := range vendors {
		funcs := map[string][]call{} // the functions of the package, by name
		var start []call
		for _, f := range h.files {
			if f.dir() != dir || f.test() {
				continue
			}
			for _, d := range f.ast.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					if d.Recv == nil && d.Name.Name == "init" {
						start = append(start, call{f, d.Body})
					} else if d.Recv == nil && d.Body != nil {
						funcs[d.Name.Name] = append(funcs[d.Name.Name], call{f, d.Body})
					}
				case *ast.GenDecl:
					if d.Tok == token.VAR {
						start = append(start, call{f, d})
					}
				}
			}
		}
		seen := map[string]bool{}
		for len(start) > 0 {
			c := start[0]
			start = start[1:]
			for _, name := range c.names() {
				pkg, fn, selector := strings.Cut(name, ".")
				switch {
				case slices.Contains(describing, name):
				case selector && c.file.driver(pkg):
					bad = append(bad, fmt.Sprintf("%s: %s is called before anyone asks for the backend", c.file.path, name))
				case selector && pkg == "driver" && !slices.Contains(registering, fn):
					bad = append(bad, fmt.Sprintf("%s: init may register, not call %s", c.file.path, name))
				case !selector && !seen[name]:
					seen[name] = true
					start = append(start, funcs[name]...)
				}
			}
		}
	}
	return bad
}

// call is a piece of code that is executed, and the file that it is in.
type call struct {
	file file
	node ast.Node
}

// names lists the functions that are called by name, "f" or "pkg.f", outside of
// function literals, which run later.
func (c call) names() (list []string) {
	ast.Inspect(c.node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			switch f := n.Fun.(type) {
			case *ast.Ident:
				list = append(list, f.Name)
			case *ast.SelectorExpr:
				if x, ok := f.X.(*ast.Ident); ok {
					list = append(list, x.Name+"."+f.Sel.Name)
				}
			}
		}
		return true
	})
	return list
}

// driver reports whether a package name of the file is one of drivers.
func (f file) driver(name string) bool {
	for _, i := range f.imports() {
		if i.name == name || i.name == "" && path.Base(i.path) == name {
			return slices.ContainsFunc(drivers, func(d string) bool { return within(i.path, d) })
		}
	}
	return false
}

// checkDocs: every package has one doc comment, in one file.
func checkDocs(h *house) (bad []string) {
	count, name := map[string]int{}, map[string]string{}
	for _, f := range h.files {
		if f.test() {
			continue
		}
		dir := f.dir()
		count[dir] += 0
		name[dir] = f.ast.Name.Name
		if f.ast.Doc == nil {
			continue
		}
		count[dir]++
		if want := "Package " + name[dir] + " "; name[dir] != "main" && !strings.HasPrefix(f.ast.Doc.Text(), want) {
			bad = append(bad, fmt.Sprintf("%s: the doc comment starts with %q", f.path, want))
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(count)) {
		if count[dir] != 1 {
			bad = append(bad, fmt.Sprintf("%s: package %s has %d doc comments", dir, name[dir], count[dir]))
		}
	}
	return bad
}

// checkNames: our runtime exports no name that the standard one exports.
func checkNames(h *house) (bad []string) {
	for _, f := range h.files {
		if f.dir() != "runtime" || f.test() {
			continue
		}
		for _, name := range exported(f.ast) {
			if h.std[name] {
				bad = append(bad, fmt.Sprintf("%s: %s is also in the standard runtime", f.path, name))
			}
		}
	}
	return bad
}

// aliases are other names for backends and for APIs like them.
var aliases = []string{"hip", "webgpu", "wgpu"}

// mayName lists the files and constants of runtime that may contain a backend's name as a literal,
// with the reason.
var mayName = map[string]string{
	"runtime/driver/names.go":      "the list of names for programs without the backend's package",
	"runtime/driver.CPU":           "a kind of device, whatever its backend",
	"runtime/conformance.host":     "the backend with which every other exchanges copies",
	"runtime/conformance/known.go": "what this module's backends are known not to have",
	"runtime/parity.Reference":     "the device that parity judges by, which is part of what parity is",
}

// checkVendors: nothing in runtime depends on the name of a backend, so that third parties'
// backends have the same features as Concord's. A literal counts if it is a name, begins with one
// ("cuda:0"), or is a pattern with one ("(cuda|rocm)").
func checkVendors(h *house) (bad []string) {
	for _, f := range h.files {
		dir := f.dir()
		if !within(dir, "runtime") || dir == "runtime/all" || f.test() || mayName[f.path] != "" {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.ValueSpec:
				return mayName[dir+"."+n.Names[0].Name] == ""
			case *ast.BasicLit:
				if n.Kind != token.STRING {
					return true
				}
				text, _ := strconv.Unquote(n.Value)
				for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("|():", r) }) {
					name := strings.TrimPrefix(strings.ToLower(word), "sim-")
					if slices.Contains(backends, name) || slices.Contains(aliases, name) {
						bad = append(bad, fmt.Sprintf("%s: %s is the name of a backend: go by what it says of itself", f.path, n.Value))
						break
					}
				}
			}
			return true
		})
	}
	return bad
}

// exported lists the exported names that a file declares in its package.
func exported(f *ast.File) (names []string) {
	add := func(list ...*ast.Ident) {
		for _, id := range list {
			if id.IsExported() {
				names = append(names, id.Name)
			}
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(d.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					add(s.Name)
				case *ast.ValueSpec:
					add(s.Names...)
				}
			}
		}
	}
	return names
}

// standardNames reads the exported names of the standard package runtime.
func standardNames(t *testing.T) map[string]bool {
	t.Helper()
	dir := filepath.Join(build.Default.GOROOT, "src", "runtime")
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files, "the standard library's sources are in %s", dir)
	names := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, n := range exported(f) {
			names[n] = true
		}
	}
	require.True(t, names["GC"] && names["Version"], "%v", names)
	return names
}

// checkForwarders requires that a C file of a backend, internal/gpu or internal/simd is a build constraint and
// one include of csrc, before which it may define the part of that file that it compiles, and that csrc embeds
// all its directories: otherwise edits would not rebuild, and vendoring would lose files.
func checkForwarders(h *house) (bad []string) {
	for _, name := range slices.Sorted(maps.Keys(h.forwarders)) {
		var lines []string
		for line := range strings.Lines(h.forwarders[name]) {
			if line = strings.TrimSpace(line); line != "" {
				lines = append(lines, line)
			}
		}
		if len(lines) == 3 && strings.HasPrefix(lines[1], "#define PART_") {
			lines = slices.Delete(lines, 1, 2)
		}
		up := strings.Repeat("../", strings.Count(name, "/"))
		if len(lines) != 2 || !strings.HasPrefix(lines[0], "//go:build ") ||
			!strings.HasPrefix(lines[1], `#include "`+up+`csrc/`) {
			bad = append(bad, fmt.Sprintf("%s: more or less than a build line and one include of csrc", name))
		}
	}
	embedded := map[string]bool{}
	for _, f := range h.files {
		if f.dir() != "csrc" {
			continue
		}
		for _, g := range f.ast.Comments {
			for _, c := range g.List {
				if patterns, ok := strings.CutPrefix(c.Text, "//go:embed "); ok {
					for _, p := range strings.Fields(patterns) {
						dir, _, _ := strings.Cut(p, "/")
						embedded[dir] = true
					}
				}
			}
		}
	}
	for _, dir := range h.csrc {
		if !embedded[dir] {
			bad = append(bad, fmt.Sprintf("csrc/%s is not embedded by csrc/csrc.go", dir))
		}
	}
	return bad
}
