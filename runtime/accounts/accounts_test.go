package accounts

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

func TestReceipt(t *testing.T) {
	rec := runtime.Execution{KernelID: "axpy"}
	assert.NoError(t, NewReceipt([]runtime.Execution{rec}).Validate())
	many := make([]string, maxReceiptKernels+1)
	for i := range many {
		many[i] = "k"
	}
	long := string(make([]rune, maxKernelID+1))
	for _, r := range []Receipt{{}, {ComputePath: "real"}, {ComputePath: "mock", Kernels: []string{"k"}},
		{ComputePath: "real", Kernels: []string{""}}, {ComputePath: "real", Kernels: []string{"a", "MockGemm"}},
		{ComputePath: "real", Kernels: []string{long}}, {ComputePath: "real", Kernels: many}} {
		assert.ErrorIs(t, r.Validate(), runtime.ErrInvalidArgument)
	}
}

func TestStats(t *testing.T) {
	var s Stats
	s.Target(runtime.Info{ID: "cuda:0", Backend: "cuda", Kind: driver.Discrete}, true)
	assert.Zero(t, s.Read().GPUEfficiency())
	for i := range 10 {
		s.Count(MatmulOp, runtime.Execution{GPUExecuted: i < 8}, 2e6)
	}
	c := s.Read()
	assert.Equal(t, 0.8, c.GPUEfficiency())
	assert.False(t, c.IsGPUEffective(), "strictly above 0.8")
	s.Count(QuantizationOp, runtime.Execution{GPUExecuted: true}, 3e6)
	s.Count(OtherOp, runtime.Execution{Fallback: true, FallbackReason: "lost"}, 0)
	c = s.Read()
	c.MemoryUsedBytes, c.MemoryTotalBytes = 512<<20, 1024<<20
	assert.Equal(t, "Device: CUDA+fallback | Total: 12 ops (1 quantize, 10 matmul) | Time: 23.00ms | GPU: 75.0% | "+
		"Fallbacks: 1 | Memory: 512.0/1024.0MB (50.0%)", c.Summary())
	assert.Equal(t, 2.0, c.AverageMatmulTimeMs())
	s.Reset()
	assert.Zero(t, s.Read().TotalOperations)
	assert.Equal(t, "cuda:0", s.Read().TargetDevice)
	s.Count(OtherOp, runtime.Execution{Fallback: true, FallbackReason: "lost"}, 0)
	assert.Equal(t, "lost", s.Read().LastGPUError)
	s.Reset()
	s.Target(runtime.Info{ID: "opencl:0", Backend: "opencl", Kind: driver.CPU}, true)
	s.Count(OtherOp, runtime.Execution{Fallback: true, FallbackReason: "lost"}, 0)
	assert.Equal(t, "lost", s.Read().LastCPUError)
	assert.Empty(t, s.Read().LastGPUError, "there is none")
	c = Counts{DeviceType: "CPU"}
	assert.Contains(t, c.Summary(), "Memory: 0.0/0.0MB (0.0%)")
}
