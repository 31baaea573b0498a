package accounts

// Statistics: the number and the time of operations, by kind and by processor.

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/mempool"
)

// OpKind is the kind under which Stats counts an operation.
type OpKind uint8

// The kinds of operations that are counted separately.
const (
	OtherOp OpKind = iota
	QuantizationOp
	MatmulOp
)

// Stats counts operations by kind and by the processor that did them. The zero value is ready to
// use. It is safe for concurrent use.
type Stats struct {
	mu   sync.Mutex
	v    Counts
	host bool // the target is known, and no GPU
}

// Counts is one consistent reading of Stats.
type Counts struct {
	DeviceType             string // the target's type, with "+fallback" if a CPU may stand in
	TargetDevice           string
	TotalOperations        int64
	QuantizationOperations int64
	MatmulOperations       int64
	TotalTimeMs            float64
	QuantizationTimeMs     float64
	MatmulTimeMs           float64
	GPUOperations          int64
	CPUOperations          int64
	FallbackCount          int64
	LastGPUError           string
	LastCPUError           string
	MemoryUsedBytes        int64
	MemoryTotalBytes       int64
}

// Target names the device that the operations are meant for.
func (s *Stats) Target(info runtime.Info, fallback bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.v.DeviceType, s.v.TargetDevice, s.host = strings.ToUpper(info.Backend), info.ID, !info.IsGPU()
	if fallback {
		s.v.DeviceType += "+fallback"
	}
}

// Count adds one operation.
func (s *Stats) Count(kind OpKind, r runtime.Execution, took time.Duration) {
	ms := float64(took) / float64(time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.v.TotalOperations++
	s.v.TotalTimeMs += ms
	switch kind {
	case QuantizationOp:
		s.v.QuantizationOperations++
		s.v.QuantizationTimeMs += ms
	case MatmulOp:
		s.v.MatmulOperations++
		s.v.MatmulTimeMs += ms
	}
	if r.GPUExecuted {
		s.v.GPUOperations++
	} else {
		s.v.CPUOperations++
	}
	if r.Fallback {
		s.v.FallbackCount++
		if s.host {
			s.v.LastCPUError = r.FallbackReason
		} else {
			s.v.LastGPUError = r.FallbackReason
		}
	}
}

// Failed notes the error of an operation.
func (s *Stats) Failed(info runtime.Info, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if info.IsGPU() {
		s.v.LastGPUError = err.Error()
	} else {
		s.v.LastCPUError = err.Error()
	}
}

// Read returns the counts, with the machine's memory sampled now.
func (s *Stats) Read() Counts {
	used, total, _ := mempool.SystemMemory()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.v.MemoryUsedBytes, s.v.MemoryTotalBytes = used, total
	return s.v
}

// Reset sets every count to 0 and keeps the target.
func (s *Stats) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.v = Counts{DeviceType: s.v.DeviceType, TargetDevice: s.v.TargetDevice}
}

// GPUEfficiency is the share of operations that a GPU did; 0 when there were none.
func (c Counts) GPUEfficiency() float64 {
	return ratio(float64(c.GPUOperations), float64(c.GPUOperations+c.CPUOperations))
}

// IsGPUEffective reports whether a GPU did more than 80 % of the operations.
func (c Counts) IsGPUEffective() bool {
	return c.GPUOperations > 0 && c.GPUEfficiency() > 0.8
}

// AverageTimeMs is the mean time of an operation; 0 when there were none.
func (c Counts) AverageTimeMs() float64 {
	return ratio(c.TotalTimeMs, float64(c.TotalOperations))
}

// AverageMatmulTimeMs is the mean time of a matrix product.
func (c Counts) AverageMatmulTimeMs() float64 {
	return ratio(c.MatmulTimeMs, float64(c.MatmulOperations))
}

// AverageQuantizationTimeMs is the mean time of a quantization.
func (c Counts) AverageQuantizationTimeMs() float64 {
	return ratio(c.QuantizationTimeMs, float64(c.QuantizationOperations))
}

// Summary returns the counts as one readable line. "+fallback" after the device says that the CPU may stand in
// for it, before that has ever happened; Fallbacks is how often it did.
func (c Counts) Summary() string {
	const mb = 1 << 20
	used, total := float64(c.MemoryUsedBytes)/mb, float64(c.MemoryTotalBytes)/mb
	return fmt.Sprintf("Device: %s | Total: %d ops (%d quantize, %d matmul) | Time: %.2fms | GPU: %.1f%% | Fallbacks: "+
		"%d | Memory: %.1f/%.1fMB (%.1f%%)",
		c.DeviceType, c.TotalOperations, c.QuantizationOperations, c.MatmulOperations, c.TotalTimeMs,
		100*c.GPUEfficiency(), c.FallbackCount, used, total, 100*ratio(used, total))
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
