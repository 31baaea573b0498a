package gomlx_test

// GoMLX's own tests, of its graphs, layers, models and text generation, with Concord as their backend.

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

// upstream are the packages of GoMLX whose tests run here. GOMLX_ALL=1 runs more, which take minutes.
var (
	upstream = []string{"ml/layers/attention/...", "ml/layers/fnn", "ml/layers/norm", "ml/zoo/..."}
	all      = []string{"core/graph/...", "core/tensors/...", "ml/dataset", "ml/layers/...", "ml/model/...",
		"ml/train/...", "ml/zoo/..."}
)

const (
	refused  = "GoMLX itself refuses it: it fails with the Go backend too"
	narrow   = "Concord has no data types of less than 8 bits"
	bits     = "it compares a sum of float32 bit by bit with XLA's order of additions"
	backward = "it wants the gradient of a backend that fuses attention; GoMLX's use of one leaves out the gradient " +
		"of a bias"
)

// known has the tests of GoMLX that fail, without the names of backends, and why.
var known = map[string]string{
	"TestDynamicShapes/Reshape":          refused,
	"TestPiecewiseConstantFunctions":     refused,
	"TestDynamicShapesAndBucketing":      refused,
	"TestGeneratorSampling/Greedy":       refused,
	"TestGeneratorSampling/Temperature":  refused,
	"TestGeneratorSampling/OneDPrompt":   refused,
	"TestStreaming":                      refused,
	"TestBitcastSubByteDTypes":           narrow,
	"TestFromRaw/uint4":                  narrow,
	"TestAttentionBiasFusedParity":       backward,
	"TestAttentionBiasFusedParityMatrix": backward,
	"TestFusionFallbackParity":           backward,
	"TestFusionGQAParity":                backward,
	"TestFusionParity":                   backward,
	"TestAutoSharding/Graph":             bits,
}

// TestUpstream runs the tests of a copy of GoMLX, in a workspace with this module, of which the copy imports
// the backend.
func TestUpstream(t *testing.T) {
	packages := upstream
	if os.Getenv("GOMLX_ALL") != "" {
		packages = all
	}
	// TestVNNTrain trains for minutes, to an accuracy that depends on the random numbers of the backend.
	runUpstream(t, cmp.Or(os.Getenv("CONCORD_DEVICE"), "cpu:0"), packages, 100, "-skip", "^TestVNNTrain$")
}

// TestUpstreamDistributed runs GoMLX's tests of computations on several devices, which are four shares of one.
func TestUpstreamDistributed(t *testing.T) {
	device := cmp.Or(os.Getenv("CONCORD_DEVICE"), "cpu:0")
	// RandomUniform divides the three numbers of a random state among two devices, and panics if that is refused.
	runUpstream(t, strings.Join([]string{device, device, device, device}, ","),
		[]string{"core/graph", "core/tensors/dtensor", "ml/dataset", "ml/model"}, 20, "-run",
		"^(TestPortable|TestCollective|TestAutoSharding|TestTensor|TestDistributedAccumulator|TestFunction)$",
		"-skip", "^TestAutoSharding$/^RandomUniform$")
}

// runUpstream runs tests of packages on a device, of which at least some pass.
func runUpstream(t *testing.T, device string, packages []string, least int, flags ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds GoMLX's tests")
	}
	module, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/gomlx/gomlx").Output()
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(dir, "gomlx"), os.DirFS(strings.TrimSpace(string(module)))); err != nil {
		t.Fatal(err)
	}
	write("gomlx/support/testutil/concord.go",
		"package testutil\n\nimport _ \"github.com/concord-compute/concord/gomlx\"\n")
	write("gomlx/core/tensors/dtensor/concord_test.go",
		"package dtensor_test\n\nimport _ \"github.com/concord-compute/concord/gomlx\"\n")
	// GoMLX's tests would fetch XLA's library.
	write("go-xla/go.mod", "module github.com/gomlx/go-xla\n\ngo 1.26\n")
	write("go-xla/compute/xla/xla.go", "package xla\n\nfunc AutoInstall() error { return nil }\n")
	write("go.work", "go 1.26.5\n\nuse (\n\t./gomlx\n\t"+root+"\n\t"+filepath.Join(root, "gomlx")+
		"\n)\n\nreplace github.com/gomlx/go-xla => ./go-xla\n")

	tags := "noxla"
	info, _ := debug.ReadBuildInfo()
	for _, s := range info.Settings {
		if s.Key == "-tags" {
			tags += "," + s.Value
		}
	}
	c := exec.CommandContext(t.Context(), "go", append([]string{"test", "-json", "-tags", tags}, flags...)...)
	for _, p := range packages {
		c.Args = append(c.Args, "github.com/gomlx/gomlx/"+p)
	}
	c.Dir = dir
	c.Env = append(os.Environ(), "GOFLAGS=-trimpath", "GOWORK="+filepath.Join(dir, "go.work"),
		"GOMLX_BACKEND=concord:"+device)
	var errors bytes.Buffer
	c.Stderr = &errors
	raw, _ := c.Output() // its status is that of tests, which are looked at below
	passed, failed := 0, 0
	output, excused := map[string]string{}, map[string]bool{}
	for d := json.NewDecoder(bytes.NewReader(raw)); d.More(); {
		var e struct{ Action, Package, Test, Output string }
		if err := d.Decode(&e); err != nil {
			t.Fatalf("%v: %s", err, errors.String())
		}
		name := e.Package + " " + e.Test
		switch {
		case e.Action == "output":
			output[name] += e.Output
		case e.Action == "pass" && e.Test != "":
			passed++
		case e.Action == "fail":
			// A package fails after its tests: without one of them it was not built, or ended by itself.
			failed++
			if e.Test == "" && excused[e.Package] {
				continue
			}
			if why := reason(strings.ReplaceAll(e.Test, "/concord:"+device, "")); why == "" {
				t.Errorf("%s on %s: %s", name, device, output[name])
			}
			excused[e.Package] = true
		}
	}
	t.Logf("%s: %d tests of GoMLX passed, %d failed", device, passed, failed)
	if passed < least {
		t.Errorf("only %d tests of GoMLX ran on %s: %s", passed, device, errors.String())
	}
}

// reason says why a test of GoMLX fails, or one that has it as a part.
func reason(test string) string {
	for name, why := range known {
		if test == name || strings.HasPrefix(test, name+"/") || test != "" && strings.HasPrefix(name, test+"/") {
			return why
		}
	}
	return ""
}
