package vulkan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
	"github.com/concord-compute/concord/tests/sim"
)

func TestNotInThisBuild(t *testing.T) {
	if table() != nil {
		t.Skip("it is in this build")
	}
	sim.NotInThisBuild(t, "vulkan", missing)
}

// TestNoLoader: without the loader, the reason has its name and a remedy, and nothing opens.
func TestNoLoader(t *testing.T) {
	if table() == nil {
		t.Skip("not in this build")
	}
	cfg := &driver.Config{VulkanLibrary: "libnowhere.so.1"}
	b := sim.Registered(t, "vulkan")
	p := b.Probe(t.Context(), cfg)
	assert.Equal(t, driver.Unavailable, p.State)
	assert.Contains(t, p.Reason, "libnowhere.so.1 was not found; install the Vulkan loader")
	assert.NotEmpty(t, p.Remedy)
	_, err := b.Open(t.Context(), 0, cfg)
	assert.ErrorIs(t, err, driver.ErrNoDevice)
}

func TestVersion(t *testing.T) { assert.Equal(t, "1.3.239", version(1<<22|3<<12|239)) }

func TestFeatures(t *testing.T) {
	assert.Len(t, targets(), 16)
	assert.Contains(t, targets(), "vk1.3-fp64-fp16-i64-sg")
	assert.Equal(t, source.Features{}, features("vk1.3"))
	assert.Equal(t, source.Features{FP64: true, Subgroups: true}, features("vk1.3-fp64-sg"))
	assert.Equal(t, source.Features{FP16: true, Int64Atomic: true}, features("vk1.3-fp16-i64"))
}

func TestOptions(t *testing.T) {
	got, err := options([]string{"-cl-std=CL1.2", "-cl-mad-enable", "-cl-fast-relaxed-math", "-Wall"})
	require.NoError(t, err)
	assert.Empty(t, got)
	for _, o := range []string{"-DX=1", "--target=vk1.3", "-I.", ""} {
		_, err := options([]string{o})
		assert.ErrorIs(t, err, driver.ErrInvalidArgument, "%q", o)
	}
}

// TestCompileFor: programs are compiled for devices that are not here, without a driver, and equal ones are equal.
func TestCompileFor(t *testing.T) {
	if table() == nil {
		t.Skip("not in this build")
	}
	cfg := &driver.Config{VulkanLibrary: "libnowhere.so.1"}
	unit, err := source.Parse(`kernel void copy(global const int *from, global int *to) {
	to[get_global_id(0)] = from[get_global_id(0)]; }`, source.Options{Name: "copy.cl"})
	require.NoError(t, err)
	c := sim.Registered(t, "vulkan").(driver.CrossCompiler)
	known, err := c.Targets(t.Context(), cfg)
	require.NoError(t, err)
	assert.Equal(t, targets(), known)
	first, err := c.CompileFor(t.Context(), cfg, "vk1.3", unit, nil)
	require.NoError(t, err)
	again, err := c.CompileFor(t.Context(), cfg, "vk1.3", unit, nil)
	require.NoError(t, err)
	assert.Equal(t, first, again)
	assert.Equal(t, "copy", first.Kernels[0].Name)
	double, err := source.Parse("kernel void one(global double *to) { to[0] = 1; }",
		source.Options{Name: "one.cl", Features: &source.Features{FP64: true}})
	require.NoError(t, err)
	_, err = c.CompileFor(t.Context(), cfg, "vk1.3-fp16", double, nil)
	assert.ErrorContains(t, err, "needs fp64")
	_, err = c.CompileFor(t.Context(), cfg, "vk1.3-fp64-fp16", double, nil)
	require.NoError(t, err)
	_, err = c.CompileFor(t.Context(), cfg, "vk9", unit, nil)
	assert.ErrorIs(t, err, driver.ErrInvalidArgument)
}
