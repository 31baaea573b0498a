package cuda

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

// Each flag, with the capabilities that gain or lose it.
func TestGates(t *testing.T) {
	gates := map[string]struct {
		of      func(*driver.Info) bool
		without []int
		with    []int
	}{
		"fp16":         {func(i *driver.Info) bool { return i.SupportsFP16 }, []int{35, 52}, []int{53, 60, 61, 90}},
		"fast fp16":    {func(i *driver.Info) bool { return i.FastFP16 }, []int{53, 61}, []int{60, 62, 70, 72, 75, 80}},
		"dp4a":         {func(i *driver.Info) bool { return i.SupportsDP4A }, []int{53, 60}, []int{61, 62, 70}},
		"tensor":       {func(i *driver.Info) bool { return i.HasTensorCores }, []int{61, 62}, []int{70, 72, 75}},
		"int8 tensor":  {func(i *driver.Info) bool { return i.SupportsInt8TensorCores }, []int{70, 72}, []int{75, 80}},
		"bf16":         {func(i *driver.Info) bool { return i.SupportsBF16 }, []int{75}, []int{80, 86, 90}},
		"tf32":         {func(i *driver.Info) bool { return i.SupportsTF32 }, []int{75}, []int{80, 86, 90}},
		"fp8":          {func(i *driver.Info) bool { return i.SupportsFP8 }, []int{80, 86, 87}, []int{89, 90, 100}},
		"clusters":     {func(i *driver.Info) bool { return i.SupportsClusters }, []int{89}, []int{90, 100}},
		"half":         {func(i *driver.Info) bool { return i.Features.FP16 }, []int{52}, []int{53, 90}},
		"double":       {func(i *driver.Info) bool { return i.Features.FP64 }, nil, []int{35, 52, 61, 90}},
		"int64 atomic": {func(i *driver.Info) bool { return i.Features.Int64Atomic }, []int{30}, []int{35, 90}},
	}
	device := func(cc int) *driver.Info {
		i := &driver.Info{ComputeMajor: cc / 10, ComputeMinor: cc % 10, ComputeUnits: 10, ClockMHz: 1000}
		i.Features = features("sm_" + strings.TrimLeft(string(rune('0'+cc/100))+string(rune('0'+cc/10%10))+
			string(rune('0'+cc%10)), "0"))
		describe(i)
		return i
	}
	for name, g := range gates {
		for _, cc := range g.without {
			assert.False(t, g.of(device(cc)), "%s on %d", name, cc)
		}
		for _, cc := range g.with {
			assert.True(t, g.of(device(cc)), "%s on %d", name, cc)
		}
	}
}

func TestPeak(t *testing.T) {
	// The H200 according to its data sheet: 132 multiprocessors, 1980 MHz, 67 TFLOP/s.
	i := &driver.Info{ComputeMajor: 9, ComputeUnits: 132, ClockMHz: 1980}
	describe(i)
	assert.InDelta(t, 66900, i.PeakGFLOPS, 100)
	i = &driver.Info{ComputeMajor: 99, ComputeUnits: 132, ClockMHz: 1980}
	describe(i)
	assert.Zero(t, i.PeakGFLOPS, "unknown, not guessed")
}

func TestCapability(t *testing.T) {
	for arch, want := range map[string]int{"sm_90": 90, "sm_90a": 90, "compute_100": 100, "sm_120f": 120} {
		n, ok := capability(arch)
		assert.True(t, ok, arch)
		assert.Equal(t, want, n, arch)
	}
	for _, arch := range []string{"", "sm_", "90", "gfx90a"} {
		_, ok := capability(arch)
		assert.False(t, ok, arch)
	}
}

func TestCompileArch(t *testing.T) {
	known := []string{"sm_70", "sm_80", "sm_86", "sm_90"}
	for arch, want := range map[string]string{
		"sm_86": "sm_86", "sm_89": "compute_86", "sm_120": "compute_90", "sm_72": "compute_70",
	} {
		got, err := compileArch(arch, known)
		require.NoError(t, err)
		assert.Equal(t, want, got, arch)
	}
	for _, arch := range []string{"sm_61", "sm_35", ""} {
		_, err := compileArch(arch, known)
		assert.ErrorContains(t, err, "sm_70", "the error lists the known targets")
	}
	_, err := compileArch("sm_90", nil)
	assert.Error(t, err)
}

func TestVersion(t *testing.T) {
	assert.Equal(t, "12.2", version(12020))
	assert.Equal(t, "13.0", version(13000))
	assert.Equal(t, "11.8", version(11080))
}

func TestOutdated(t *testing.T) {
	for _, code := range []int{209, 218, 222} {
		text := outdated(code, 12020, 13, 0)
		assert.Contains(t, text, "12.2")
		assert.Contains(t, text, "13.0")
		assert.Contains(t, text, "update the driver, or use an older NVRTC")
		assert.Empty(t, outdated(code, 12020, 12, 2), "neither is newer")
		assert.Empty(t, outdated(code, 12020, 11, 8))
	}
	assert.Empty(t, outdated(2, 12020, 13, 0), "memory has nothing to do with versions")
}
