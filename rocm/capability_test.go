package rocm

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

func TestGeneration(t *testing.T) {
	for arch, want := range map[string][3]any{
		"gfx803": {8, 0, "3"}, "gfx90a:sramecc+:xnack-": {9, 0, "a"}, "gfx906": {9, 0, "6"}, "gfx942": {9, 4, "2"},
		"gfx1030": {10, 3, "0"}, "gfx1201": {12, 0, "1"},
		"": {0, 0, ""}, "gfx": {0, 0, ""}, "gfx9": {0, 0, ""}, "sm_90": {0, 0, ""}, "gfx9-generic": {0, 0, ""},
		"gfx-90": {0, 0, ""},
	} {
		major, minor, step := generation(arch)
		assert.Equal(t, want, [3]any{major, minor, step}, arch)
	}
}

func TestDescribe(t *testing.T) {
	type flags struct{ fp16, fast, dp4a, matrix, bf16, tf32, fp8 bool }
	for arch, want := range map[string]flags{
		"gfx701":                 {},
		"gfx803":                 {fp16: true},
		"gfx900":                 {fp16: true, fast: true},
		"gfx906":                 {fp16: true, fast: true, dp4a: true},
		"gfx908":                 {true, true, true, true, true, false, false},
		"gfx90a:sramecc+:xnack-": {true, true, true, true, true, false, false},
		"gfx90c":                 {fp16: true, fast: true},
		"gfx942":                 {true, true, true, true, true, true, true},
		"gfx950":                 {true, true, true, true, true, false, true},
		"gfx1010":                {fp16: true, fast: true},
		"gfx1011":                {fp16: true, fast: true, dp4a: true},
		"gfx1030":                {fp16: true, fast: true, dp4a: true},
		"gfx1100":                {true, true, true, true, true, false, false},
		"gfx1201":                {true, true, true, true, true, false, true},
		"":                       {},
		"unheard of":             {},
	} {
		i := driver.Info{Arch: arch, ComputeUnits: 10, ClockMHz: 1000}
		describe(&i)
		got := flags{i.SupportsFP16, i.FastFP16, i.SupportsDP4A, i.HasTensorCores, i.SupportsBF16, i.SupportsTF32,
			i.SupportsFP8}
		assert.Equal(t, want, got, arch)
		assert.Equal(t, i.HasTensorCores, i.SupportsInt8TensorCores, arch)
		assert.False(t, i.SupportsClusters, arch)
	}
	i := driver.Info{Arch: "gfx906", ComputeUnits: 60, ClockMHz: 1725}
	describe(&i)
	assert.InDelta(t, 13248, i.PeakGFLOPS, 1)
	i = driver.Info{Arch: "gfx1030", ComputeUnits: 40, ClockMHz: 2250}
	describe(&i)
	assert.Zero(t, i.PeakGFLOPS, "not known")
}

func TestFeatures(t *testing.T) {
	assert.Equal(t, source.Features{}, features(""))
	assert.Equal(t, source.Features{FP64: true, FP16: true, Int64Atomic: true, FastFMA: true, Subgroups: true},
		features("gfx90a:xnack-"))
	assert.Equal(t, source.Features{FP64: true, Int64Atomic: true}, features("gfx701"))
}
