package render_test

// Executed tests of Metal renderings: the stress programs on the simulated Metal of
// tests/sim/metal, which consists of clang and the host executor, compared with the expected
// output.

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/source"
	"github.com/concord-compute/concord/tests/sim"
)

// metalDriver builds a driver of testdata with the simulated Metal, or skips the test.
func metalDriver(t *testing.T, name string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles C++")
	}
	for _, tool := range []string{"gcc", "g++"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no compiler here: %v", err)
		}
	}
	metalClang(t)
	dir := t.TempDir()
	sim := "../../../tests/sim/metal"
	build := func(tool string, args ...string) {
		out, err := exec.Command(tool, args...).CombinedOutput()
		require.NoError(t, err, "%s", head(out))
	}
	object := func(name string) string { return filepath.Join(dir, filepath.Base(name)+".o") }
	build("gcc", "-O1", "-w", "-c", "-o", object("host"), "../../../csrc/host/host.c")
	build("gcc", "-O1", "-w", "-DMETAL", "-c", "-o", object("driver"), filepath.Join("testdata", name+".c"))
	parts := []string{"compile", "scan", "run", "threads", "../lib/process"}
	link := []string{"-o", filepath.Join(dir, "metal"), object("host"), object("driver")}
	for _, p := range parts {
		build("g++", "-std=c++17", "-O1", "-Wa,-I"+sim, "-c", "-o", object(p), filepath.Join(sim, p+".cpp"))
		link = append(link, object(p))
	}
	build("g++", append(link, "-lpthread", "-ldl")...)
	return filepath.Join(dir, "metal")
}

// metalClang finds a clang that the simulated Metal can use, which is one with half: 15 or newer.
func metalClang(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"clang++-19", "clang++-18", "clang++-17", "clang++-16", "clang++-15", "clang++"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		cmd := exec.Command(path, "-x", "c++", "-fsyntax-only", "-")
		cmd.Stdin = strings.NewReader("_Float16 h;")
		if cmd.Run() == nil {
			return path
		}
	}
	sim.Absent(t, "sim-metal", "there is no clang++ of version 15 or newer")
	return ""
}

// metalRefused are the stress programs that use features that Metal does not have, with the
// construct that the error names.
var metalRefused = map[string]string{
	"atomics": "atomic", "compare": "double", "convert": "double", "cxxnames": "goto", "float3mem": "double",
	"gotoswitch": "goto",
	"literals":   "double", "manyparams": "double", "strings": "printf",
}

// metalSingle are programs that use double in few places, where float gives the same results.
var metalSingle = map[string]bool{"funcs": true, "nestedlocal": true, "selects": true, "subgroups": true,
	"vecops2": true, "widevec": true}

var doubleIsFloat = []source.Define{{Name: "double", Value: "float"}, {Name: "double2", Value: "float2"},
	{Name: "double8", Value: "float8"}}

func TestMetalStress(t *testing.T) {
	driver := metalDriver(t, "driver")
	files, err := filepath.Glob("../../../internal/verify/stress/programs/*.cl")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	files = append(files, "testdata/gpu/subgroups.cl")
	dir := t.TempDir()
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".cl")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := readStress(t, file)
			features := source.MetalFeatures
			features.Subgroups = name == "subgroups"
			opt := source.Options{Name: file, Features: &features}
			if metalSingle[name] {
				opt.Defines = doubleIsFloat
			}
			u, err := source.Parse(p.text, opt)
			msl := ""
			if err == nil {
				msl, err = u.Render(source.Metal)
			}
			if construct := metalRefused[name]; construct != "" {
				var list source.ErrorList
				require.Error(t, err)
				require.True(t, errors.As(err, &list), "%v", err)
				assert.Contains(t, err.Error(), construct)
				assert.Positive(t, list[0].Pos.Line)
				return
			}
			require.NoError(t, err)
			text := filepath.Join(dir, name+".metal")
			require.NoError(t, os.WriteFile(text, []byte(msl), 0o644))
			for _, r := range p.runs {
				if _, ok := u.Kernel(r.kernel); !ok {
					continue // #ifdef cl_khr_fp64
				}
				got, err := run(t, driver, text, r)
				require.NoError(t, err, "kernel %s", r.kernel)
				assert.Equal(t, r.want, got, "kernel %s", r.kernel)
			}
		})
	}
}

// TestMetalBuiltins compares Metal's built-ins with those of the host, for every form without
// double.
func TestMetalBuiltins(t *testing.T) {
	if os.Getenv("CONCORD_STRESS") != "check" {
		t.Skip("CONCORD_STRESS=check compares all built-ins")
	}
	k := buildTools(t)
	host := filepath.Join(k.dir, "bhost")
	b, err := exec.Command("gcc", "-O1", "-w", "-o", host, "testdata/bdriver.c", "-ldl", "-lpthread").CombinedOutput()
	require.NoError(t, err, "%s", head(b))
	pair := diffPair{host: host, device: metalDriver(t, "bdriver"), target: source.Metal, features: source.MetalFeatures}
	only := os.Getenv("CONCORD_BUILTIN")
	all := diffCases(only, false)
	if only == "" || only == "convert" {
		all = append(all, convertCases()...)
	}
	cases := slices.DeleteFunc(all, func(c diffCase) bool {
		double := c.call.Result.Kind == source.Double
		for _, a := range c.args {
			double = double || a.Kind == source.Double
		}
		return double
	})
	for lo := 0; lo < len(cases); lo += 100 {
		diffBatch(t, k, pair, cases[lo:min(lo+100, len(cases))])
	}
	t.Logf("%d built-ins", len(cases))
}

// TestMetalProcessor: the errors of the simulated Metal for kernels with faults, and for launches
// that Metal refuses.
func TestMetalProcessor(t *testing.T) {
	driver := metalDriver(t, "driver")
	text := filepath.Join(t.TempDir(), "a.metal")
	require.NoError(t, os.WriteFile(text, []byte(`#include <metal_stdlib>
using namespace metal;
kernel void cc_kernel_ids(device uint *o [[buffer(0)]], uint2 at [[thread_position_in_grid]], uint2 all [[threads_per_grid]],
                          ushort i [[thread_index_in_threadgroup]], uint3 g [[threadgroup_position_in_grid]]) {
  o[at.y * all.x + at.x] = i + 100 * g.x + 1000 * g.y;
}
kernel void cc_kernel_turn(device const float *x [[buffer(0)]], device float *y [[buffer(1)]], threadgroup float *t [[threadgroup(0)]],
                           uint i [[thread_position_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
  threadgroup float u[4];
  t[i] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  u[i] = t[n - 1 - i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = u[i] + u[(i + 1) % 4];
}
kernel void cc_kernel_hang(device int *o [[buffer(0)]], uint i [[thread_position_in_threadgroup]]) {
  if (i < 2)
    threadgroup_barrier(mem_flags::mem_device);
  o[i] = 1;
}
kernel void cc_kernel_fault(device int *o [[buffer(0)]]) { o[1l << 40] = 1; }
[[max_total_threads_per_threadgroup(8)]] kernel void cc_kernel_small(device int *o [[buffer(0)]]) { o[0] = 1; }
kernel void cc_kernel_large(device int *o [[buffer(0)]], threadgroup int *l [[threadgroup(0)]]) {
  threadgroup int big[8000];
  big[o[0]] = l[0] = 1;
  o[1] = big[o[2]] + l[0];
}
`), 0o644))
	for _, c := range []struct {
		kernel, global, local string
		args                  []string
		want, says            string
	}{
		{"ids", "4,2", "2,1", []string{"out:u32:8"}, "0 1 100 101 1000 1001 1100 1101", ""},
		{"turn", "4", "4", []string{"buf:f32:4:1,2,3,4", "out:f32:4", "local:16"}, "7 5 3 5", ""},
		{"hang", "4", "4", []string{"out:i32:4"}, "", "hang: "},
		{"fault", "1", "1", []string{"out:i32:4"}, "", "fault: "},
		{"small", "8", "8", []string{"out:i32:1"}, "1", ""},
		{"small", "16", "16", []string{"out:i32:1"}, "", "at most 8"},
		{"large", "1", "1", []string{"out:i32:4", "local:512"}, "0 2 0 0", ""},
		{"large", "1", "1", []string{"out:i32:4", "local:1024"}, "", "at most 32768"},
		{"turn", "4", "4", []string{"buf:f32:4", "out:f32:4"}, "", "threadgroup memory at index 0 for t has 0 bytes"},
		{"turn", "4", "4", []string{"buf:f32:4", "local:16"}, "", "missing buffer binding at index 1 for y"},
	} {
		out, err := exec.Command(driver, append([]string{text, c.kernel, c.global, c.local}, c.args...)...).CombinedOutput()
		if c.says != "" {
			assert.Error(t, err, c.kernel)
			assert.Contains(t, string(out), c.says)
			continue
		}
		assert.NoError(t, err, "%s: %s", c.kernel, out)
		assert.Equal(t, c.want, strings.TrimSpace(string(out)), c.kernel)
	}
}
