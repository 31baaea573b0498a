// Package tests checks rules for the sources of the module: which room (package or directory of
// packages) may import which, which files may import "C", what backends may do while a program
// starts. It reads the sources as text, with all build tags and systems at once.
package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/concord-compute/concord"

// floor is a room or a module, and the rooms that it may import or that may import it.
type floor struct {
	name string
	may  []string
}

// floors lists the rooms from the bottom up, and for each the rooms that it may import. Tests may
// import everything, since programs do not import tests.
var floors = []floor{
	{"source/host", nil},
	{"source/internal/token", nil},
	{"source/internal/tree", []string{"source/internal/token"}},
	{"source/internal/preprocess", []string{"source/internal/token", "source/internal/tree"}},
	{"source/internal/builtins", []string{"source/internal/token", "source/internal/tree"}},
	{"source/internal/check", []string{"source/internal/token", "source/internal/tree", "source/internal/builtins"}},
	{"source/internal/loops", []string{"source/internal/token", "source/internal/tree", "source/internal/builtins"}},
	{"source/internal/render", []string{"source/host", "source/internal/token", "source/internal/preprocess",
		"source/internal/tree", "source/internal/builtins", "source/internal/loops"}},
	{"source/internal/spirv/module", nil},
	{"source/internal/spirv", []string{"source/internal/token", "source/internal/preprocess", "source/internal/tree",
		"source/internal/builtins", "source/internal/check", "source/internal/spirv/module"}},
	{"source", []string{"source/internal/token", "source/internal/preprocess", "source/internal/tree",
		"source/internal/check", "source/internal/render", "source/internal/spirv"}},
	{"csrc", nil},
	{"testdata/mnist", nil},
	{"internal/blocking", nil},
	{"internal/stdio", nil},
	{"internal/simd", []string{"source/host", "csrc"}},
	{"internal/gpu", []string{"csrc"}},
	{"internal/precise", nil},
	{"internal/group", nil},
	{"runtime/half", nil},
	{"runtime/choice", nil},
	{"kernels", []string{"source", "runtime/choice", "runtime/half", "internal/precise"}},
	{"runtime/driver", []string{"source", "runtime/choice"}},
	{"kernels/expr", []string{"source", "runtime/driver", "runtime/choice", "runtime/half", "kernels",
		"internal/precise"}},
	{"runtime/config", []string{"runtime/driver"}},
	{"runtime/telemetry", []string{"runtime/driver"}},
	{"internal/seal", []string{"runtime/driver"}},
	{"internal/cgo", []string{"runtime/driver", "source", "csrc", "internal/blocking", "internal/seal"}},
	{"internal/file", []string{"runtime/driver"}},
	{"internal/npy", []string{"runtime/driver", "internal/file"}},
	{"internal/safetensors", []string{"runtime/driver", "internal/file"}},
	{"internal/mnist", []string{"runtime/driver", "testdata/mnist"}},
	{"runtime/kernelcache", []string{"runtime/driver", "source", "internal/file", "internal/seal"}},
	{"runtime/mempool", []string{"runtime/driver", "internal/file"}},
	{"cpu", []string{"runtime/driver", "runtime/choice", "runtime/half", "internal/cgo", "internal/file", "internal/seal",
		"internal/simd", "internal/precise", "source", "source/host", "csrc", "kernels", "kernels/expr"}},
	{"cuda", []string{"runtime/driver", "internal/cgo", "internal/gpu", "source", "csrc"}},
	{"rocm", []string{"runtime/driver", "internal/cgo", "internal/file", "internal/gpu", "source", "csrc"}},
	{"opencl", []string{"runtime/driver", "internal/cgo", "internal/blocking", "internal/seal", "source", "csrc"}},
	{"metal", []string{"runtime/driver", "internal/cgo", "source", "csrc"}},
	{"vulkan", []string{"runtime/driver", "internal/cgo", "source", "csrc"}},
	{"cuda/nvml", []string{"runtime/driver", "runtime/telemetry", "internal/cgo"}},
	{"rocm/smi", []string{"runtime/driver", "runtime/telemetry", "internal/cgo"}},
	{"runtime/profile", []string{"runtime/driver", "internal/file"}},
	{"runtime", []string{"runtime/driver", "runtime/choice", "runtime/config", "runtime/half", "source",
		"runtime/kernelcache", "runtime/mempool", "runtime/profile", "internal/file"}},
	{"otel", []string{"runtime/driver", "runtime/profile"}},
	{"runtime/all", backends},
	{"runtime/managed", []string{"runtime", "runtime/driver", "runtime/mempool"}},
	{"runtime/roof", []string{"runtime", "runtime/managed", "runtime/driver", "runtime/profile", "source"}},
	{"runtime/conformance", []string{"runtime", "runtime/managed", "runtime/driver", "runtime/profile", "source"}},
	{"runtime/parity", []string{"runtime", "runtime/driver", "kernels", "source"}},
	{"runtime/validate", []string{"runtime", "runtime/driver", "kernels", "source", "internal/file"}},
	{"runtime/tune", []string{"runtime", "runtime/choice", "runtime/driver", "runtime/parity", "runtime/profile",
		"runtime/roof", "runtime/validate", "runtime/config", "kernels", "kernels/expr", "source",
		"internal/file", "internal/group"}},
	{"runtime/accounts", []string{"runtime", "runtime/mempool"}},
	{"runtime/cluster", []string{"runtime", "runtime/driver", "kernels/expr"}},
	{"runtime/cluster/mpi", []string{"runtime", "runtime/cluster", "runtime/config", "runtime/driver", "internal/blocking",
		"internal/cgo"}},
	{"quant", []string{"runtime", "runtime/accounts", "runtime/profile", "runtime/driver", "runtime/half", "kernels",
		"source", "internal/simd"}},
	{"quant/gguf", []string{"quant", "runtime/driver", "runtime/half", "internal/file"}},
	{"tensor", []string{"runtime", "runtime/choice", "runtime/cluster", "runtime/driver", "kernels", "kernels/expr",
		"source", "quant", "quant/gguf", "internal/npy", "internal/safetensors"}},
	{"nn", []string{"tensor", "quant", "runtime", "kernels", "runtime/cluster", "internal/safetensors"}},
	{"ann", []string{"runtime", "runtime/choice", "runtime/driver", "kernels", "kernels/expr", "runtime/cluster", "source",
		"internal/file", "internal/npy"}},
	{"internal/verify/stress", []string{"runtime", "runtime/driver", "source"}},
	{"internal/verify/golden", []string{"runtime", "tensor", "nn"}},
	{"internal/verify/rates", []string{"runtime", "runtime/profile", "runtime/roof", "runtime/parity", "kernels",
		"source", "quant", "tensor", "nn", "ann"}},
	{"internal/verify", []string{"runtime", "runtime/driver", "runtime/conformance", "runtime/parity", "runtime/profile",
		"source", "kernels", "quant", "tensor", "nn", "ann",
		"internal/file", "internal/group", "internal/mnist", "internal/verify/golden", "internal/verify/stress",
		"internal/verify/rates"}},
	{"gomlx", []string{"tensor", "kernels/expr", "runtime", "runtime/all", "runtime/cluster"}},
	{"cmd/concord", append(inCommand("app"), commandRooms...)},
	{"cmd/concord/internal/ui", nil},
	{"cmd/concord/internal/files", everything},
	{"cmd/concord/internal/app", inCommand("ui", "files")},
	{"cmd/concord/internal/apptest", inCommand("app")},
	{"cmd/concord/internal/picture", inCommand("app")},
	{"cmd/concord/internal/devices", inCommand("app", "files", "ui")},
	{"cmd/concord/internal/tuning", inCommand("app", "ui")},
	{"cmd/concord/internal/program", inCommand("app", "files", "ui")},
	{"cmd/concord/internal/explain", inCommand("app", "ui")},
	{"cmd/concord/internal/search", inCommand("app", "files", "ui")},
	{"cmd/concord/internal/tensors", inCommand("app", "files", "ui", "picture")},
	{"cmd/concord/internal/training", inCommand("app", "files", "ui", "picture")},
	{"cmd/concord/internal/trace", inCommand("app", "files", "ui", "picture")},
	{"cmd/concord/internal/bench", inCommand("app", "files", "ui", "devices")},
	{"cmd/concord/internal/checks", inCommand("app", "ui", "devices", "program")},
	{"examples", []string{"runtime", "runtime/all", "runtime/cluster", "runtime/managed", "runtime/profile",
		"runtime/tune", "source", "kernels", "kernels/expr", "tensor", "nn",
		"ann", "testdata/mnist", "cpu", "cuda", "rocm", "opencl", "metal", "vulkan"}},
	{"tests", append(slices.Clone(everything), "tests")},
}

var (
	backends = []string{"cpu", "cuda", "rocm", "opencl", "metal", "vulkan"}
	// sensors are the packages that read telemetry. They follow the rules of backends for C and
	// init, and runtime/all must not import them: go-nvml changes how a whole program is linked.
	sensors    = []string{"cuda/nvml", "rocm/smi"}
	vendors    = append(slices.Clone(backends), sensors...)
	everything = []string{"*"} // every room but tests and the rooms of the command
	// commandRooms are those that have commands.
	commandRooms = under("bench", "checks", "devices", "explain", "program", "search", "tensors", "trace", "training",
		"tuning")
)

// under returns the paths of rooms of the command.
func under(names ...string) []string {
	rooms := slices.Clone(names)
	for i := range rooms {
		rooms[i] = "cmd/concord/internal/" + rooms[i]
	}
	return rooms
}

// inCommand is what a room of the command may import: these of the command's, and every other room but tests.
func inCommand(names ...string) []string { return append(under(names...), everything...) }

// outside lists the other modules, and the rooms that may import them.
var outside = []floor{
	{"gonum.org/v1/gonum", []string{"kernels", "tests"}},
	{"gonum.org/v1/plot", append(under("picture", "tensors", "trace", "training",
		"tuning"), "tests")},
	{"github.com/hashicorp/golang-lru/v2", []string{"kernels", "kernels/expr", "tensor"}},
	{"github.com/klauspost/cpuid/v2", []string{"cpu", "internal/simd"}},
	{"github.com/go-gl/cl", []string{"opencl"}},
	{"github.com/NVIDIA/go-nvml", []string{"cuda/nvml"}},
	{"golang.org/x/sys", append(under("app", "devices"), "cpu", "runtime", "runtime/kernelcache", "internal/cgo",
		"internal/file")},
	{"golang.org/x/sync", append(under("search"), "cpu", "runtime", "runtime/parity")},
	{"golang.org/x/term", under("ui", "devices")},
	{"github.com/spf13/cobra", append(under("app"), commandRooms...)},
	{"github.com/spf13/pflag", under("app")},
	{"github.com/vbauerster/mpb/v8", under("ui")},
	{"github.com/prometheus/client_golang", under("search")},
	{"go.opentelemetry.io/otel", []string{"otel"}},
	{"github.com/gomlx/compute", []string{"gomlx"}},
	{"github.com/gomlx/gomlx", []string{"gomlx"}},
	{"github.com/gomlx/onnx-gomlx", []string{"gomlx"}},
	{"google.golang.org/protobuf", []string{"gomlx"}},
	{"github.com/pkg/errors", []string{"gomlx"}},
	{"github.com/stretchr/testify", append(under("apptest"), "tests")},
	{"pgregory.net/rapid", []string{"tests"}},
}

// reach lists the modules that become part of a program's build by importing a package of this
// module, directly or indirectly.
var reach = []struct {
	from    string
	modules []string
}{
	{"runtime", []string{"golang.org/x/sys", "golang.org/x/sync"}},
	{"runtime/conformance", []string{"golang.org/x/sys", "golang.org/x/sync"}},
	// imported by the tests of backends in other modules
	{"tests/conformance", []string{"golang.org/x/sys", "golang.org/x/sync"}},
	{"runtime/all", []string{"golang.org/x/sys", "golang.org/x/sync", "gonum.org/v1/gonum",
		"github.com/klauspost/cpuid/v2", "github.com/hashicorp/golang-lru/v2", "github.com/go-gl/cl"}},
}

// house holds the sources that the rules check.
type house struct {
	files      []file
	std        map[string]bool   // exported names of the standard package runtime
	forwarders map[string]string // C files of backends, internal/gpu and internal/simd, by path
	csrc       []string          // directories in csrc
}

type file struct {
	path string // below the root, with slashes
	ast  *ast.File
}

func (f file) dir() string { return path.Dir(f.path) }

// test reports whether f is a test file, whose imports do not become part of a program.
func (f file) test() bool { return strings.HasSuffix(f.path, "_test.go") }

// spec is one import: the path, and the name given to it.
type spec struct{ path, name string }

func (f file) imports() []spec {
	var list []spec
	for _, i := range f.ast.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		s := spec{path: p}
		if i.Name != nil {
			s.name = i.Name.Name
		}
		list = append(list, s)
	}
	return list
}

// own returns the directory of the import, if it is a package of this module.
func (s spec) own() (dir string, ok bool) {
	if s.path == module {
		return ".", true
	}
	return strings.CutPrefix(s.path, module+"/")
}

// outside reports whether the import is neither of this module nor of the standard library.
func (s spec) outside() bool {
	_, own := s.own()
	first, _, _ := strings.Cut(s.path, "/")
	return !own && strings.Contains(first, ".")
}

func within(dir, room string) bool { return dir == room || strings.HasPrefix(dir, room+"/") }

// roomOf returns the row of floors for a directory: its own, or that of the room that contains it.
// A room that contains other rooms has no further directories.
func roomOf(dir string) (room string, may []string, ok bool) {
	for _, f := range floors {
		if dir == f.name {
			return f.name, f.may, true
		}
	}
	for _, f := range floors {
		inside := func(g floor) bool { return g.name != f.name && within(g.name, f.name) }
		if within(dir, f.name) && !slices.ContainsFunc(floors, inside) {
			return f.name, f.may, true
		}
	}
	return "", nil, false
}

// load reads the house from the disk.
func load(t *testing.T, root string) *house {
	h := &house{std: standardNames(t), forwarders: map[string]string{}}
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, name)
		rel = filepath.ToSlash(rel)
		if e.IsDir() {
			if rel != "." && rel != "testdata" && (strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata" ||
				rel == "build" || rel == "bin") {
				return fs.SkipDir
			}
			if path.Dir(rel) == "csrc" {
				h.csrc = append(h.csrc, e.Name())
			}
			return nil
		}
		switch path.Ext(rel) {
		case ".go":
			a, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			h.files = append(h.files, file{rel, a})
		case ".c", ".m":
			if dir := path.Dir(rel); slices.Contains(vendors, dir) || dir == "internal/simd" || dir == "internal/gpu" {
				text, err := os.ReadFile(name)
				if err != nil {
					return err
				}
				h.forwarders[rel] = string(text)
			}
		}
		return nil
	})
	require.NoError(t, err)
	return h
}

func TestLayout(t *testing.T) {
	h := load(t, "..")
	require.NotEmpty(t, h.files)
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, v := range r.check(h) {
				assert.Fail(t, v)
			}
		})
	}
}
