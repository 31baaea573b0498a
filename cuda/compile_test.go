package cuda

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/config"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
	"github.com/concord-compute/concord/tests/sim"
)

// cross returns the backend as a compiler and the targets of the real NVRTC, or skips the test.
func cross(t *testing.T) (driver.CrossCompiler, []string) {
	t.Helper()
	if table() == nil {
		t.Skip(missing)
	}
	c := sim.Registered(t, "cuda").(driver.CrossCompiler)
	cfg, err := config.ParseEnv(os.Environ())
	require.NoError(t, err)
	targets, err := c.Targets(context.Background(), &cfg)
	if err != nil {
		require.ErrorIs(t, err, driver.ErrUnsupported)
		t.Skip(err)
	}
	return c, targets
}

func parse(t *testing.T, c driver.CrossCompiler, target, text string) *source.Unit {
	t.Helper()
	features := c.TargetFeatures(target)
	u, err := source.Parse(text, source.Options{Features: &features})
	require.NoError(t, err)
	return u
}

const program = `
kernel void mirror(global float *x, local float *t) {
  local double fixed[100];
  int i = get_local_id(0);
  t[i] = x[get_global_id(0)];
  fixed[i % 100] = t[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  x[get_global_id(0)] = t[get_local_size(0) - 1 - i] * x[0] + (float)fixed[(i + 1) % 100];
}
kernel void scale(global half *x, float a) { x[get_global_id(0)] *= a; }
`

func TestCompileFor(t *testing.T) {
	c, targets := cross(t)
	for _, target := range []string{"sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90"} {
		if !slices.Contains(targets, target) {
			continue
		}
		out, err := c.CompileFor(context.Background(), nil, target, parse(t, c, target, program), nil)
		require.NoError(t, err, target)
		assert.Equal(t, "\177ELF", string(out.Code[:4]), "machine code")
		require.Len(t, out.Kernels, 2)
		mirror, scale := out.Kernels[0], out.Kernels[1]
		assert.Equal(t, "mirror", mirror.Name)
		assert.Equal(t, "scale", scale.Name)
		assert.InDelta(t, 800+64, mirror.LocalBytes, 64, "the kernel's own memory, rounded up, without that of the launch")
		for _, k := range out.Kernels {
			assert.Positive(t, k.Registers, k.Name)
			assert.Zero(t, k.SpillBytes, k.Name)
		}
	}
}

// TestPrecision: the precision of programs without options, and with options that relax it.
func TestPrecision(t *testing.T) {
	c, targets := cross(t)
	require.NotEmpty(t, targets)
	target := targets[len(targets)-1]
	u := parse(t, c, target, `kernel void k(global float *x) { x[0] = x[1] * x[2] + x[3] / x[4]; }`)
	code := func(options ...string) string {
		out, err := c.CompileFor(context.Background(), nil, target, u, options)
		require.NoError(t, err, "%v", options)
		return string(out.Code)
	}
	plain := code()
	assert.Equal(t, plain, code("-cl-no-signed-zeros"))
	for _, o := range []string{"-cl-mad-enable", "-cl-fast-relaxed-math", "-cl-opt-disable", "-maxrregcount=16"} {
		assert.NotEqual(t, plain, code(o), o)
	}
	code("-cl-fast-relaxed-math", "-cl-mad-enable", "-cl-denorms-are-zero", "-cl-unsafe-math-optimizations")
}

func TestCompileRefused(t *testing.T) {
	c, targets := cross(t)
	target := targets[len(targets)-1]
	u := parse(t, c, target, program)
	for _, bad := range []string{"sm_1", "gfx90a", "compute_80", "", "sm_80 --x", "sm_80\x00"} {
		_, err := c.CompileFor(context.Background(), nil, bad, u, nil)
		assert.ErrorIs(t, err, driver.ErrInvalidArgument, "%q", bad)
	}
	_, err := c.CompileFor(context.Background(), nil, target, u, []string{"--nonsense"})
	assert.ErrorIs(t, err, driver.ErrInvalidArgument)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = c.CompileFor(ctx, nil, target, u, nil)
	assert.ErrorIs(t, err, context.Canceled)

	// The assembler refuses more local memory than any device has.
	huge :=
		parse(t, c, target,
			`kernel void k(global int *x) { local int t[1 << 18]; t[get_local_id(0)] = 1; barrier(CLK_LOCAL_MEM_FENCE); x[0] = t[x[1]]; }`)
	_, err = c.CompileFor(context.Background(), nil, target, huge, nil)
	var build *driver.BuildError
	require.ErrorAs(t, err, &build)
	assert.Equal(t, target, build.Target)
	assert.True(t, strings.Contains(build.Log, "shared") || strings.Contains(build.Log, "ptxas"), "%s", build.Log)
}
