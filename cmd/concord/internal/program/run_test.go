package program

import (
	"encoding/binary"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
	"github.com/concord-compute/concord/internal/npy"
	"github.com/concord-compute/concord/runtime"
)

func saveFloats(t *testing.T, name string, shape []int, values ...float32) string {
	t.Helper()
	data, err := binary.Append(nil, binary.LittleEndian, values)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, npy.WriteFile(path, npy.Array{Type: runtime.F32, Shape: shape, Data: data}))
	return path
}

func loadFloats(t *testing.T, path string) ([]float32, []int) {
	t.Helper()
	a, err := npy.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, runtime.F32, a.Type)
	out := make([]float32, a.Len())
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(a.Data[4*i:]))
	}
	return out, a.Shape
}

const saxpyText = `#include "scale.h"
kernel void saxpy(float a, global const float *x, global float *y, uint n) {
  uint i = get_global_id(0);
  if (i < n) y[i] = scale(a) * x[i] + y[i] + EXTRA;
}
`

func TestRun(t *testing.T) {
	apptest.NeedsCompiler(t)
	cl := apptest.TextFile(t, "saxpy.cl", saxpyText)
	inc := filepath.Dir(apptest.TextFile(t, "scale.h", "float scale(float a) { return 2.0f * a; }\n"))
	x, y := saveFloats(t, "x.npy", []int{2, 3}, 1, 2, 3, 4, 5, 6), saveFloats(t, "y.npy", []int{6}, 10, 20, 30, 40, 50, 60)
	out := filepath.Join(t.TempDir(), "out.npy")
	args := []string{"run", "--device", "cpu:0", "--kernel", "saxpy", "--global", "8", "--local", "4", "--arg", "f32:3",
		"--arg", "@" + x,
		"--arg", "@" + y, "--arg", "u32:6", "--out", "2=" + out, "--out", "1=" + x, "-I", inc, "-D", "EXTRA=0.5f"}
	status, stdout, stderr := apptest.Run(append(args, "--json", cl)...)
	require.Equal(t, app.ExitOK, status, stderr)
	doc := apptest.Document(t, stdout)
	assert.Equal(t, "cpu:0", doc["device"])
	assert.Equal(t, "saxpy", doc["kernel"])
	assert.Len(t, doc["outputs"], 2)
	got, shape := loadFloats(t, out)
	assert.Equal(t, []float32{16.5, 32.5, 48.5, 64.5, 80.5, 96.5}, got)
	assert.Equal(t, []int{6}, shape)
	got, shape = loadFloats(t, x)
	assert.Equal(t, []float32{1, 2, 3, 4, 5, 6}, got)
	assert.Equal(t, []int{2, 3}, shape, "the shape is that of the file it came from")
	status, stdout, stderr = apptest.Run(append(args, "--timeout", "1m", cl)...)
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Contains(t, stdout, "saxpy on cpu:0")
}

// Which text ran is said where there are two.
func TestRunText(t *testing.T) {
	apptest.NeedsCompiler(t)
	cl := apptest.TextFile(t, "k.cl", "kernel void k(global int *x) { x[0] = 1; }")
	cu := strings.TrimSuffix(cl, "cl") + "cu"
	require.NoError(t, os.WriteFile(cu, []byte(`extern "C" __global__ void k(int *x) { x[0] = 2; }`), 0o600))
	run := func(file string, flags ...string) string {
		status, stdout, stderr := apptest.Run(append([]string{"run", "--device", "cpu:0", "--global", "1", "--arg",
			"zeros:i32:1",
			file}, flags...)...)
		require.Equal(t, app.ExitOK, status, stderr)
		return stdout
	}
	assert.NotContains(t, run(cl), "text:")
	assert.Contains(t, run(cu), "text: "+cl+" ("+cu+" is not for this device)")
	for _, file := range []string{cl, cu} {
		assert.Equal(t, cl, apptest.Document(t, run(file, "--json"))["text"])
	}
}

func TestRunArguments(t *testing.T) {
	apptest.NeedsCompiler(t)
	cl :=
		apptest.TextFile(t, "all.cl",
			`kernel void all(global float *out, local float *tmp, float4 v, float3 w, char c, ushort bf, long l) {
  size_t i = get_global_id(0);
  tmp[get_local_id(0)] = v.w + w.z + c + bf + l;
  out[i] = tmp[get_local_id(0)];
}`)
	out := filepath.Join(t.TempDir(), "out.npy")
	status, _, stderr := apptest.Run("run", "--device", "cpu:0", "--global", "4,2", "--arg", "zeros:f32:4,2", "--arg",
		"local:f32:8",
		"--arg", "f32:1,2,3,4", "--arg", "f32:5,6,7", "--arg", "i8:-1", "--arg", "bf16:0", "--arg", "i64:100", "--out",
		"0="+out, cl)
	require.Equal(t, app.ExitOK, status, stderr)
	got, shape := loadFloats(t, out)
	assert.Equal(t, []float32{110, 110, 110, 110, 0, 0, 0, 0}, got)
	assert.Equal(t, []int{4, 2}, shape)
	// Arrays without elements are allowed; kernels that look at none do not mind.
	status, _, stderr = apptest.Run("run", "--device", "cpu:0", "--global", "1", "--arg", "zeros:i32:0", "--out", "0="+out,
		apptest.TextFile(t, "none.cl", "kernel void none(global int *x) {}"))
	require.Equal(t, app.ExitOK, status, stderr)
	a, err := npy.ReadFile(out)
	require.NoError(t, err)
	assert.Equal(t, []int{0}, a.Shape)
}

func TestRunTimeout(t *testing.T) {
	apptest.NeedsCompiler(t)
	cl := apptest.TextFile(t, "spin.cl", "kernel void spin(global volatile int *x) { while (x[0] == 0) {} }")
	apptest.Run("compile", "--target", "host", cl) // the time below is that of the kernel
	start := time.Now()
	status, stdout, stderr := apptest.Run("run", "--device", "cpu:0", "--global", "1", "--arg", "zeros:i32:1", "--timeout",
		"500ms", "--json", cl)
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, apptest.Document(t, stdout)["error"], "timed out")
	assert.Contains(t, stderr, "spin.cl over 1")
	assert.Less(t, time.Since(start), 20*time.Second)
	t.Run("a failure passes through", func(t *testing.T) {
		bad := apptest.TextFile(t, "bad.cl", "kernel void k(global int *x) { x[0] = y; }")
		status, stdout, stderr := apptest.Run("run", "--device", "cpu:0", "--global", "1", "--arg", "zeros:i32:1",
			"--timeout",
			"1m", "--json", bad)
		assert.Equal(t, app.ExitFailed, status)
		assert.Contains(t, apptest.Document(t, stdout)["error"], "'y'")
		assert.Contains(t, stderr, "'y'")
	})
}

// The death of the child is an error like any other, and wrong usage keeps its exit status.
func TestRunDies(t *testing.T) {
	cl := apptest.TextFile(t, "wild.cl", "kernel void wild(global int *x) { x[1 << 28] = 1; }")
	for how, says := range map[string]string{"signal": "signal: killed", "panic": "exit status 2"} {
		t.Run(how, func(t *testing.T) {
			t.Setenv(apptest.ChildDies, how)
			status, stdout, stderr := apptest.Run("run", "--global", "1", "--arg", "zeros:i32:1", "--json", cl)
			assert.Equal(t, app.ExitFailed, status)
			assert.Contains(t, apptest.Document(t, stdout)["error"], "the kernel crashed the driver and its process: "+says)
			assert.Contains(t, stderr, "wild.cl over 1")
			var f runFlags
			f.global, f.device = "1", "opencl:0"
			j, err := f.job(cl)
			require.NoError(t, err)
			require.ErrorIs(t, runInChild(t.Context(), app.New(io.Discard, io.Discard), j), runtime.ErrLaunch)
		})
	}
	for device, want := range map[string]bool{"cpu": true, "CPU:0": true, "cpu:reference": true, "auto": false, "": false,
		"opencl:0": false, "0": false} {
		assert.Equal(t, want, onCPU(device), device)
	}
}

// A driver that runs kernels in the process itself, as PoCL does, dies of one that
// writes outside.
func TestRunCrash(t *testing.T) {
	apptest.NeedsOpenCL(t)
	cl := apptest.TextFile(t, "wild.cl", "kernel void wild(global int *x, ulong at) { x[at] = 1; }")
	args := []string{"run", "--device", "opencl:0", "--global", "1", "--arg", "zeros:i32:1", "--json", "--arg"}
	status, stdout, stderr := apptest.Run(append(args, "u64:0", cl)...)
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Equal(t, "wild", apptest.Document(t, stdout)["kernel"])
	status, stdout, stderr = apptest.Run(append(args, "u64:1152921504606846976", cl)...)
	assert.Equal(t, app.ExitFailed, status, stderr)
	assert.Contains(t, apptest.Document(t, stdout)["error"], "kernel")
}

// printf of a kernel goes to standard error, even where it is written to
// descriptor 1 behind Go's back.
func TestRunPrintf(t *testing.T) {
	apptest.NeedsCompiler(t)
	cl := apptest.TextFile(t, "hello.cl", `kernel void hello(global int *x) { printf("hello %d\n", x[0]); }`)
	cmd := apptest.Process("run", "--device", "cpu:0", "--global", "1", "--arg", "zeros:i32:1", "--json", cl)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	apptest.Document(t, string(stdout))
	assert.Contains(t, stderr.String(), "hello 0")
}

func TestCompile(t *testing.T) {
	apptest.NeedsCompiler(t)
	cl := apptest.TextFile(t, "two.cl",
		`kernel void one(global const float4 *x, constant int *c, local uchar *l, ulong n) {}
kernel void two(global int *x) { local int tile[32]; tile[get_local_id(0)] = 0; barrier(CLK_LOCAL_MEM_FENCE); x[0] = tile[0]; }`)
	for _, cached := range []bool{false, true} {
		status, stdout, stderr := apptest.Run("compile", "--target", "host", "--json", cl)
		require.Equal(t, app.ExitOK, status, stderr)
		doc := apptest.Document(t, stdout)
		assert.Equal(t, cached, doc["cached"])
		list := doc["kernels"].([]any)
		require.Len(t, list, 2)
		one, two := list[0].(map[string]any), list[1].(map[string]any)
		assert.Equal(t, "one", one["name"])
		var spaces []string
		for _, p := range one["params"].([]any) {
			spaces = append(spaces, p.(map[string]any)["space"].(string))
		}
		assert.Equal(t, []string{"global", "constant", "local", "private"}, spaces)
		assert.EqualValues(t, 128, two["local_bytes"])
		assert.Nil(t, two["registers"], "unknown is unknown")
	}
	status, stdout, _ := apptest.Run("compile", "--target", "host", cl)
	assert.Equal(t, app.ExitOK, status)
	assert.Contains(t, stdout, "from the cache")
}

// TestCompileVulkan compiles for devices that are not here, by what they have.
func TestCompileVulkan(t *testing.T) {
	cl := apptest.TextFile(t, "double.cl", "kernel void k(global double *x) { x[0] *= 2; }")
	status, stdout, stderr := apptest.Run("compile", "--target", "vk1.3-fp64", cl)
	if strings.Contains(stderr, "not in this build") {
		t.Skip(stderr)
	}
	assert.Equal(t, app.ExitOK, status, stderr)
	assert.Contains(t, stdout, "global double *")
	status, _, stderr = apptest.Run("compile", "--target", "vk1.3", cl)
	assert.NotEqual(t, app.ExitOK, status)
	assert.Contains(t, stderr, "cl_khr_fp64")
	_, _, stderr = apptest.Run("compile", "--target", "vk9", apptest.TextFile(t, "empty.cl", "kernel void k() {}"))
	assert.Contains(t, stderr, "vk1.3-fp64-fp16")
}

func TestCache(t *testing.T) {
	apptest.NeedsCompiler(t)
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700))
	t.Setenv("CONCORD_CACHE_DIR", dir)
	cl := apptest.TextFile(t, "kept.cl", "kernel void k(global int *x) {}")
	status, _, stderr := apptest.Run("compile", "--target", "host", cl)
	require.Equal(t, app.ExitOK, status, stderr)
	status, stdout, _ := apptest.Run("cache", "stats")
	assert.Equal(t, app.ExitOK, status)
	assert.Contains(t, stdout, "1 entry (1 compile, 0 imported)")
	_, stdout, _ = apptest.Run("cache", "list", "--json")
	entries := apptest.Document(t, stdout)["entries"].([]any)
	require.Len(t, entries, 1)
	assert.Contains(t, entries[0].(map[string]any)["label"], "kept.cl")
	status, _, _ = apptest.Run("cache", "verify")
	assert.Equal(t, app.ExitOK, status)
	// Damage is found, told by the exit status, and gone the next time.
	damaged, err := filepath.Glob(filepath.Join(dir, "*", "*", "*.kernel"))
	require.NoError(t, err)
	require.Len(t, damaged, 1)
	require.NoError(t, os.Truncate(damaged[0], 1000))
	status, stdout, _ = apptest.Run("cache", "verify", "--json")
	assert.Equal(t, app.ExitFailed, status)
	assert.Len(t, apptest.Document(t, stdout)["corrupt"], 1)
	status, _, _ = apptest.Run("cache", "verify")
	assert.Equal(t, app.ExitOK, status)
	apptest.Run("compile", "--target", "host", cl)
	_, stdout, _ = apptest.Run("cache", "clear", "--json")
	assert.EqualValues(t, 1, apptest.Document(t, stdout)["entries"])
	t.Setenv("CONCORD_CACHE_DIR", "off")
	status, stdout, _ = apptest.Run("cache", "stats")
	assert.Equal(t, app.ExitOK, status)
	assert.Contains(t, stdout, "in memory only")
}
