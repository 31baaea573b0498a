package rocm

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
	"github.com/concord-compute/concord/tests/sim"
)

// compiler returns the real hipRTC and its targets, or skips.
func compiler(t *testing.T) (driver.CrossCompiler, []string) {
	t.Helper()
	c, ok := sim.Registered(t, "rocm").(driver.CrossCompiler)
	if !ok {
		t.Skip(missing)
	}
	targets, err := c.Targets(context.Background(), &driver.Config{})
	if err != nil {
		require.ErrorIs(t, err, driver.ErrUnsupported)
		t.Skipf("no hipRTC: %v", err)
	}
	return c, targets
}

func TestTargets(t *testing.T) {
	_, targets := compiler(t)
	for _, want := range []string{"gfx906", "gfx90a", "gfx1030"} {
		assert.Contains(t, targets, want)
	}
	for _, name := range targets {
		assert.True(t, plausible(name), name)
	}
}

func TestCompile(t *testing.T) {
	c, _ := compiler(t)
	for _, target := range []string{"gfx906", "gfx90a", "gfx1030", "gfx90a:sramecc+:xnack-"} {
		features := c.TargetFeatures(target)
		unit, err := kernels.Unit("gemm", &features)
		require.NoError(t, err)
		built, err := c.CompileFor(context.Background(), &driver.Config{}, target, unit, nil)
		require.NoError(t, err, target)
		assert.Equal(t, "\x7fELF", string(built.Code[:4]))
		require.Len(t, built.Kernels, len(unit.Kernels()))
		for i, k := range built.Kernels {
			assert.Equal(t, unit.Kernels()[i].Name, k.Name)
			assert.Positive(t, k.Registers, k.Name)
			assert.Positive(t, k.MaxGroup, k.Name)
			assert.Zero(t, k.SpillBytes, k.Name)
			want := 64
			if strings.HasPrefix(target, "gfx10") {
				want = 32
			}
			assert.Equal(t, want, k.GroupMultiple)
		}
	}
}

// hipRTC would end the process for each of these.
func TestUnknownTarget(t *testing.T) {
	c, targets := compiler(t)
	unit := small(t)
	for _, target := range []string{"", "nonsense", "gfx", "gfx9999", "gfx1030:xnack+", "gfx906:foo+", "gfx90a:",
		"gfx90a:xnack",
		"gfx90a xnack", "sm_80", "gfx906\x00", "gfx942", "gfx1100"} {
		if slices.Contains(targets, target) {
			continue // known to a newer ROCm
		}
		_, err := c.CompileFor(context.Background(), &driver.Config{}, target, unit, nil)
		assert.ErrorIs(t, err, driver.ErrInvalidArgument, "%q", target)
	}
}

func TestCompileErrors(t *testing.T) {
	c, _ := compiler(t)
	unit := small(t)
	_, err := c.CompileFor(context.Background(), &driver.Config{}, "gfx906", unit, []string{"-cl-no-such-option"})
	assert.ErrorIs(t, err, driver.ErrInvalidArgument)
	for _, option := range []string{"-cl-fast-relaxed-math", "-cl-mad-enable", "-cl-denorms-are-zero", "-cl-opt-disable",
		"-g", "-Wall", "-munsafe-fp-atomics"} {
		_, err = c.CompileFor(context.Background(), &driver.Config{}, "gfx906", unit, []string{option})
		assert.NoError(t, err, option)
	}
}

// A program that only the compiler refuses.
func TestBuildError(t *testing.T) {
	c, _ := compiler(t)
	unit, err := source.Parse("kernel void k(global float *p) { local float big[100000]; size_t i = get_local_id(0); "+
		"big[i] = p[i]; barrier(CLK_LOCAL_MEM_FENCE); p[i] = big[i ^ 1]; }", source.Options{Name: "k.cl"})
	require.NoError(t, err)
	_, err = c.CompileFor(context.Background(), &driver.Config{}, "gfx906", unit, nil)
	var build *driver.BuildError
	require.ErrorAs(t, err, &build)
	assert.ErrorIs(t, err, driver.ErrCompile)
	assert.Equal(t, "gfx906", build.Target)
	assert.Regexp(t, `error: .*local memory`, build.Log)
	_, err = c.CompileFor(context.Background(), &driver.Config{}, "gfx906", small(t), nil)
	assert.NoError(t, err, "hipRTC goes on after an error")
}

func small(t *testing.T) *source.Unit {
	t.Helper()
	unit, err := source.Parse("kernel void k(global float *p) { *p = 1; }", source.Options{})
	require.NoError(t, err)
	return unit
}
