package tests

import (
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sound is a small tree of sources that follows every rule. %M stands for the module's path.
var sound = map[string]string{
	"source/source.go":         "// Package source parses.\npackage source\n",
	"runtime/driver/driver.go": "// Package driver is the contract.\npackage driver\nimport _ \"%M/source\"\n",
	"runtime/runtime.go": "// Package runtime runs.\npackage runtime\nimport (\n_ \"%M/runtime/driver\"\n_ " +
		"\"golang.org/x/sys/unix\"\n)\nfunc Open() {}\n",
	"runtime/runtime_test.go": "package runtime\nimport (\ngoruntime \"runtime\"\n_ " +
		"\"github.com/stretchr/testify/assert\"\n_ \"%M/tests/conformance\"\n)\n",
	"cuda/cuda.go": "// Package cuda is a backend.\npackage cuda\nimport \"%M/runtime/driver\"\nfunc " +
		"init() { driver.Register(nil) }\n",
	"cuda/shim.go": "package cuda\nimport \"C\"\nfunc open() { C.open() }\n",
	"cpu/cpu.go": "// Package cpu is a backend.\npackage cpu\nimport \"%M/internal/cgo\"\nvar later " +
		"= func() { cgo.Open() }\nfunc init() { add(func() { cgo.Open() }) }\nfunc add(f func()) {}\n",
	"internal/cgo/cgo.go":         "// Package cgo calls.\npackage cgo\nimport \"C\"\nfunc Open() {}\n",
	"runtime/cluster/mpi/call.go": "// Package mpi calls a library.\npackage mpi\nimport \"C\"\n",
	"csrc/csrc.go": "// Package csrc embeds itself.\npackage csrc\nimport \"embed\"\n//go:embed cuda " +
		"host/*.c\nvar _ embed.FS\n",
	"cmd/concord/main.go": "// Concord is the command.\npackage main\nimport (\n_ " +
		"\"%M/cmd/concord/internal/app\"\n\"%M/runtime\"\n)\n",
	"cmd/concord/internal/app/app.go": "// Package app is a frame.\npackage app\nimport _ " +
		"\"github.com/spf13/cobra\"\n",
	"tests/conformance/suite.go":    "// Package conformance is a suite.\npackage conformance\nimport \"%M/source\"\n",
	"tests/conformance/all_test.go": "package conformance_test\nimport _ \"github.com/stretchr/testify/assert\"\n",
	"tests/parity/parity.go": "// Package parity is a test.\npackage parity\nimport _ " +
		"\"github.com/stretchr/testify/assert\"\n",
	"cuda/nvml/nvml.go": "// Package nvml reads sensors.\npackage nvml\nimport (\n\"%M/runtime/driver\"\n_ " +
		"\"github.com/NVIDIA/go-nvml/pkg/nvml\"\n)\nfunc init() { telemetry.Register(nil) }\n",
	"cuda/shim.c":             "//go:build cgo && cuda\n\n#include \"../csrc/cuda/cuda.c\"\n",
	"runtime/driver/names.go": "package driver\nvar names = []string{\"cuda\", \"sim-cuda\"}\n",
	"runtime/driver/kinds.go": "package driver\n// CPU is \"cpu\".\nconst CPU = \"cpu\"\nconst doc = \"libcuda: " +
		"where CUDA is, and cpu\"\n",
	"runtime/names_test.go": "package runtime\nvar names = []string{\"cuda\"}\n",
}

// planted are violations: a file that is added to sound, and the message that the rules have to
// report.
var planted = []struct {
	rule, path, text, want string
}{
	{"floors", "source/up.go", "package source\nimport _ \"%M/runtime\"\n", "source may not import runtime"},
	{"floors", "cuda/up.go", "package cuda\nimport _ \"%M/runtime\"\n", "cuda may not import runtime"},
	{"floors", "cuda/side.go", "package cuda\nimport _ \"%M/cpu\"\n", "cuda may not import cpu"},
	{"floors", "runtime/down.go", "package runtime\nimport _ \"%M/cuda\"\n", "runtime may not import cuda"},
	{"floors", "runtime/t.go", "package runtime\nimport _ \"%M/tests/conformance\"\n",
		"runtime may not import tests/conformance"},
	{"floors", "cmd/concord/t.go", "package main\nimport _ \"%M/tests/conformance\"\n",
		"cmd/concord may not import tests/conformance"},
	{"floors", "cmd/concord/internal/ui/t.go", "package ui\nimport _ \"%M/cmd/concord/internal/app\"\n",
		"cmd/concord/internal/ui may not import cmd/concord/internal/app"},
	{"floors", "examples/01-a/main.go", "package main\nimport _ \"%M/internal/npy\"\n",
		"examples may not import internal/npy"},
	{"floors", "internal/simd/up.go", "package simd\nimport _ \"%M/kernels\"\n", "internal/simd may not import kernels"},
	{"floors", "kernels/root.go", "package kernels\nimport _ \"%M\"\n", "kernels may not import ."},
	{"floors", "attic/attic.go", "package attic\n", "no row in floors"},
	{"floors", "runtime/attic/attic.go", "package attic\n", "no row in floors"},
	{"outside", "runtime/p.go", "package runtime\nimport _ \"github.com/stretchr/testify/assert\"\n",
		"runtime may not import github.com/stretchr"},
	{"outside", "source/x.go", "package source\nimport _ \"golang.org/x/sys/unix\"\n",
		"source may not import golang.org/x/sys"},
	{"outside", "cuda/x.go", "package cuda\nimport _ \"example.org/new\"\n", "cuda may not import example.org/new"},
	{"outside", "cuda/x.go", "package cuda\nimport _ \"github.com/NVIDIA/go-nvml/pkg/nvml\"\n",
		"cuda may not import github.com/NVIDIA/go-nvml"},
	{"outside", "cpu/x.go", "package cpu\nimport _ \"gonum.org/v1/plot\"\n", "cpu may not import gonum.org/v1/plot"},
	{"reach", "runtime/all/x.go", "package all\nimport _ \"%M/cuda/nvml\"\n",
		"runtime/all reaches github.com/NVIDIA/go-nvml"},
	{"reach", "tests/conformance/x.go", "package conformance\nimport _ \"github.com/stretchr/testify/assert\"\n",
		"tests/conformance reaches github.com/stretchr"},
	{"floors", "runtime/all/x.go", "package all\nimport _ \"%M/cuda/nvml\"\n", "runtime/all may not import cuda/nvml"},
	{"reach", "runtime/driver/x.go", "package driver\nimport _ \"github.com/spf13/cobra\"\n",
		"runtime reaches github.com/spf13/cobra"},
	{"reach", "runtime/driver/x.go", "package driver\nimport _ \"gonum.org/v1/gonum/mat\"\n",
		"runtime reaches gonum.org/v1/gonum/mat"},
	{"import C", "runtime/c.go", "package runtime\nimport \"C\"\n", "has no place in runtime"},
	{"import C", "cuda/more.go", "package cuda\nimport \"C\"\n", `import "C" is in cuda/`},
	{"import C", "runtime/cluster/mpi/more.go", "package mpi\nimport \"C\"\n",
		`import "C" is in runtime/cluster/mpi/`},
	{"import C", "cuda/nvml/more/c.go", "package more\nimport \"C\"\n", "has no place in cuda/nvml/more"},
	{"goruntime", "cuda/gc.go", "package cuda\nimport \"runtime\"\n", "import the standard runtime as goruntime"},
	{"goruntime", "cuda/gc_test.go", "package cuda\nimport rt \"runtime\"\n", "import the standard runtime as goruntime"},
	{"goruntime", "cmd/concord/rt.go", "package main\nimport concord \"%M/runtime\"\n",
		"import our runtime by its own name"},
	{
		"init", "opencl/a.go",
		"package opencl\nimport \"github.com/go-gl/cl/v1.2/cl\"\nfunc init() { cl.GetPlatformIDs() }\n",
		"cl.GetPlatformIDs is called before"},
	{"init", "opencl/a.go", "package opencl\nimport \"github.com/go-gl/cl/v1.2/cl\"\nvar n = cl.GetPlatformIDs()\n",
		"cl.GetPlatformIDs is called before"},
	{"init", "cuda/a.go", "package cuda\nfunc init() { warm() }\nfunc warm() { open() }\n", "C.open is called before"},
	{"init", "cpu/a.go", "package cpu\nimport \"os/exec\"\nfunc init() { exec.Command(\"g++\") }\n",
		"exec.Command is called before"},
	{"init", "rocm/a.go", "package rocm\nimport \"%M/runtime/driver\"\nfunc init() { driver.Backends() }\n",
		"init may register, not call driver.Backends"},
	{
		"init", "cuda/nvml/a.go",
		"package nvml\nimport \"github.com/NVIDIA/go-nvml/pkg/nvml\"\nfunc init() { nvml.Init() }\n",
		"nvml.Init is called before"},
	{"package docs", "cuda/doc.go", "// Package cuda again.\npackage cuda\n", "package cuda has 2 doc comments"},
	{"package docs", "ann/ann.go", "//go:build linux\n\npackage ann\n", "package ann has 0 doc comments"},
	{"package docs", "ann/ann.go", "// Vector search.\npackage ann\n", `starts with "Package ann "`},
	{"names", "runtime/v.go", "package runtime\nfunc Version() {}\n", "Version is also in the standard runtime"},
	{"names", "runtime/v.go", "package runtime\ntype Func struct{}\n", "Func is also in the standard runtime"},
	{"vendors", "runtime/pool.go", "package runtime\nfunc split(backend string) bool { return backend == \"cuda\" }\n",
		`"cuda" is the name of a backend`},
	{"vendors", "runtime/discover.go", "package runtime\nvar titles = []string{\"OpenCL\"}\n",
		`"OpenCL" is the name of a backend`},
	{"vendors", "runtime/fake.go", "package runtime\nconst pattern = `(metal|abacus)`\n",
		"`(metal|abacus)` is the name of a backend"},
	{"vendors", "runtime/mempool/pool.go", "package mempool\nfunc f(b string) {\nswitch b {\ncase \"hip\":\n}\n}\n",
		`"hip" is the name of a backend`},
	{"vendors", "runtime/kernelcache/find.go", "package kernelcache\nconst fallback = \"cpu:0\"\n",
		`"cpu:0" is the name of a backend`},
	{"vendors", "runtime/driver/register.go", "package driver\nvar last = \"sim-metal\"\n",
		`"sim-metal" is the name of a backend`},
	{"forwarders", "cpu/shim.c", "#include \"../csrc/host/host.c\"\n", "cpu/shim.c: more or less than"},
	{"forwarders", "metal/shim.m", "//go:build metal\n#include \"../csrc/host/host.c\"\nint x;\n",
		"metal/shim.m: more or less than"},
	{"forwarders", "rocm/smi/smi.c", "//go:build rocm\n#include \"../csrc/rocm_smi/smi.c\"\n",
		"rocm/smi/smi.c: more or less than"},
	{"forwarders", "internal/simd/avx2_f32_amd64.c", "//go:build cgo\n#define WIDTH 8\n#include " +
		"\"../../csrc/cpu/avx2.c\"\n", "internal/simd/avx2_f32_amd64.c: more or less than"},
	{"forwarders", "csrc/rocm/", "", "csrc/rocm is not embedded"},
}

// buildHouse makes a house, a tree of sources, in memory.
func buildHouse(t *testing.T, std map[string]bool, sources ...map[string]string) *house {
	t.Helper()
	h := &house{std: std, forwarders: map[string]string{}, csrc: []string{"cuda", "host"}}
	for _, set := range sources {
		for name, text := range set {
			text = strings.ReplaceAll(text, "%M", module)
			switch {
			case strings.HasSuffix(name, ".go"):
				a, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
				require.NoError(t, err)
				h.files = append(h.files, file{name, a})
			case strings.HasSuffix(name, "/"):
				h.csrc = append(h.csrc, strings.TrimPrefix(strings.TrimSuffix(name, "/"), "csrc/"))
			default:
				h.forwarders[name] = text
			}
		}
	}
	return h
}

// TestRulesFindPlantedViolations: each rule reports its violation, and reports nothing without one.
func TestRulesFindPlantedViolations(t *testing.T) {
	std := standardNames(t)
	for _, r := range rules {
		assert.Empty(t, r.check(buildHouse(t, std, sound)), "%s: a sound house", r.name)
		found := false
		for _, p := range planted {
			if p.rule != r.name {
				continue
			}
			found = true
			bad := r.check(buildHouse(t, std, sound, map[string]string{p.path: p.text}))
			if assert.Len(t, bad, 1, "%s: %s: %s", r.name, p.path, p.text) {
				assert.Contains(t, bad[0], p.want)
			}
		}
		assert.True(t, found, "%s: nothing is planted for it", r.name)
	}
}
