package spirv_test

// Executed tests: modules that spirv-val accepts run on a Vulkan device, Mesa's lavapipe if nothing else is there, by
// testdata/driver_vulkan.h.

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/source"
	"github.com/concord-compute/concord/tests/sim"
)

// vulkanFeatures are those of a device with everything that is lowered without extensions.
var vulkanFeatures = source.Features{FP64: true, FP16: true, Int64Atomic: true}

// validator returns the path of spirv-val, or skips the test.
func validator(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("spirv-val")
	if err != nil {
		sim.Absent(t, "spirv-val", "there is no spirv-val: install spirv-tools")
	}
	return path
}

// validate checks a module.
func validate(t *testing.T, name string, m *source.Module) bool {
	t.Helper()
	cmd := exec.Command(validator(t), "--target-env", "vulkan1.3", "-")
	cmd.Stdin = bytes.NewReader(m.Words)
	out, err := cmd.CombinedOutput()
	if err != nil {
		dump := filepath.Join(os.TempDir(), "invalid-"+strings.ReplaceAll(name, "/", "-")+".spv")
		_ = os.WriteFile(dump, m.Words, 0o644)
		return assert.NoError(t, err, "%s: %.2000s (in %s)", name, out, dump)
	}
	return true
}

// vulkanDriver builds the driver, or skips the test.
func vulkanDriver(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("runs modules on a Vulkan device")
	}
	driver := filepath.Join(t.TempDir(), "driver")
	out, err := exec.Command("gcc", "-O1", "-w", "-DVULKAN", "-Itestdata", "-o", driver, "../render/testdata/driver.c",
		"-lvulkan").CombinedOutput()
	if err != nil {
		sim.Absent(t, "vulkan", "no driver: install libvulkan-dev and mesa-vulkan-drivers: "+string(out[:min(len(out), 400)]))
	}
	return driver
}

// module parses a program and makes its module.
func module(t *testing.T, text string, opt source.Options) *source.Module {
	t.Helper()
	if opt.Features == nil {
		opt.Features = &vulkanFeatures
	}
	u, err := source.Parse(text, opt)
	require.NoError(t, err)
	m, err := u.Module(context.Background())
	require.NoError(t, err)
	return m
}

// execute runs a kernel and returns the lines that the driver prints.
func execute(t *testing.T, driver string, m *source.Module, kernel, global, local string,
	args ...string) ([]string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "module")
	var k source.ModuleKernel
	for _, one := range m.Kernels {
		if one.Name == kernel {
			k = one
		}
	}
	inMemory := uint32(0)
	if k.InMemory {
		inMemory = 1
	}
	var b []byte
	const facts = 0
	for _, w := range []uint32{uint32(k.LocalBytes), uint32(k.ArgBytes), inMemory, uint32(len(m.Constants)), facts} {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	b = append(append(b, m.Constants...), m.Words...)
	require.NoError(t, os.WriteFile(file, b, 0o644))
	cmd := exec.Command(driver, append([]string{file, kernel, global, local}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil {
		t.Logf("%.2000s", errs.String())
	}
	return strings.Split(strings.TrimSpace(out.String()), "\n"), err
}

func TestFirstKernels(t *testing.T) {
	driver := vulkanDriver(t)
	for _, c := range []struct {
		name, text, kernel, global, local string
		args                              []string
		want                              string
	}{
		{"saxpy", `kernel void k(float a, global const float *x, global float *y) { int i = get_global_id(0); y[i] += a * x[i]; }`,
			"k", "8", "4", []string{"f32:2.5", "buf:f32:8:iota", "out:f32:8:iota"}, "0 3.5 7 10.5 14 17.5 21 24.5"},
		{"loop", `kernel void k(int n, global int *o) { int s = 0; for (int i = 0; i < n; i++) { if (i % 3 == 1) continue; if (i > 7) break; s += i * i; } 
			int j = n; while (j > 0) { j -= 3; s++; } do s--; while (s % 5); o[get_global_id(0)] = s; }`,
			"k", "1", "1", []string{"i32:10", "out:i32:1"}, "75"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := module(t, c.text, source.Options{Name: c.name})
			require.True(t, validate(t, c.name, m))
			got, err := execute(t, driver, m, c.kernel, c.global, c.local, c.args...)
			require.NoError(t, err)
			assert.Equal(t, c.want, strings.Join(got, "\n"))
		})
	}
}
