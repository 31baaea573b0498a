package runtime

// Honest compute: where each result was computed, and accounts built from that.

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// Record says where one operation ran. GPUExecuted is true only if a kernel ran on
// a GPU that was really opened.
type Record struct {
	Backend        string `json:"backend"`
	DeviceIndex    int    `json:"device_index"` // Info.Index
	DeviceName     string `json:"device_name"`
	GPUExecuted    bool   `json:"gpu_executed"`
	KernelID       string `json:"kernel_id"`
	Implementation string `json:"implementation,omitempty"` // "c++", "go", "opencl"
	DeviceTimeNs   int64  `json:"device_time_ns"`
	Fallback       bool   `json:"fallback,omitempty"`
	FallbackReason string `json:"fallback_reason,omitempty"`
}

// after returns the record of work that was done here because of a fallback, if
// there was one.
func (r Record) after(fallback error) Record {
	if fallback != nil {
		r.Fallback, r.FallbackReason = true, fallback.Error()
	}
	return r
}

// Receipt is a batch of records that a program shows for its work.
type Receipt struct {
	ComputePath string   `json:"compute_path"`
	Kernels     []string `json:"kernels"`
}

// NewReceipt returns the receipt of what ran.
func NewReceipt(records []Record) Receipt {
	r := Receipt{ComputePath: "real"}
	for _, rec := range records {
		r.Kernels = append(r.Kernels, rec.KernelID)
	}
	return r
}

// Limits of a receipt.
const (
	maxReceiptKernels = 10_000
	maxKernelID       = 128
)

// Validate returns nil if the receipt can be believed: its compute path is
// "real", it names at least one kernel and at most 10,000, and every name is 1 to
// 128 characters and does not contain "mock".
func (r Receipt) Validate() error {
	if r.ComputePath != "real" {
		return fmt.Errorf("receipt: compute path %q is not real: %w", r.ComputePath, ErrInvalidArgument)
	}
	if n := len(r.Kernels); n == 0 || n > maxReceiptKernels {
		return fmt.Errorf("receipt: %d kernels, 1 to %d expected: %w", n, maxReceiptKernels, ErrInvalidArgument)
	}
	for i, id := range r.Kernels {
		n := len([]rune(id))
		if n == 0 || n > maxKernelID || strings.TrimSpace(id) == "" || strings.Contains(strings.ToLower(id), "mock") {
			return fmt.Errorf("receipt: kernel %d has the id %.140q: %w", i, id, ErrInvalidArgument)
		}
	}
	return nil
}

// OpKind is what an operation counts as in DeviceStats.
type OpKind uint8

// The kinds of operations that are counted apart.
const (
	OtherOp OpKind = iota
	QuantizationOp
	MatmulOp
)

// DeviceStats counts operations by what they were and where they ran. The zero
// value is ready; it is safe for concurrent use.
type DeviceStats struct {
	mu sync.Mutex
	v  DeviceCounts
}

// DeviceCounts is one consistent reading of DeviceStats.
type DeviceCounts struct {
	DeviceType             string // the target's type, with "+fallback" when a CPU stands by
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
func (s *DeviceStats) Target(info Info, fallback bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.v.DeviceType, s.v.TargetDevice = strings.ToUpper(info.Backend), info.ID
	if fallback {
		s.v.DeviceType += "+fallback"
	}
}

// Count adds one operation.
func (s *DeviceStats) Count(kind OpKind, r Record, took time.Duration) {
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
		s.v.LastGPUError = r.FallbackReason
	}
}

// Failed notes the error of an operation.
func (s *DeviceStats) Failed(info Info, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if info.IsGPU() {
		s.v.LastGPUError = err.Error()
	} else {
		s.v.LastCPUError = err.Error()
	}
}

// Read returns the counts, with the machine's memory sampled now.
func (s *DeviceStats) Read() DeviceCounts {
	used, total := hostMemory()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.v.MemoryUsedBytes, s.v.MemoryTotalBytes = used, total
	return s.v
}

// Reset sets every count to 0 and keeps the target.
func (s *DeviceStats) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.v = DeviceCounts{DeviceType: s.v.DeviceType, TargetDevice: s.v.TargetDevice}
}

// GPUEfficiency is the share of operations that a GPU did; 0 when there were none.
func (c DeviceCounts) GPUEfficiency() float64 {
	return ratio(float64(c.GPUOperations), float64(c.GPUOperations+c.CPUOperations))
}

// IsGPUEffective reports whether a GPU did more than 80 % of the operations.
func (c DeviceCounts) IsGPUEffective() bool {
	return c.GPUOperations > 0 && c.GPUEfficiency() > 0.8
}

// AverageTimeMs is the mean time of an operation; 0 when there were none.
func (c DeviceCounts) AverageTimeMs() float64 {
	return ratio(c.TotalTimeMs, float64(c.TotalOperations))
}

// AverageMatmulTimeMs is the mean time of a matrix product.
func (c DeviceCounts) AverageMatmulTimeMs() float64 {
	return ratio(c.MatmulTimeMs, float64(c.MatmulOperations))
}

// AverageQuantizationTimeMs is the mean time of a quantization.
func (c DeviceCounts) AverageQuantizationTimeMs() float64 {
	return ratio(c.QuantizationTimeMs, float64(c.QuantizationOperations))
}

// Summary is one line for people.
func (c DeviceCounts) Summary() string {
	const mb = 1 << 20
	used, total := float64(c.MemoryUsedBytes)/mb, float64(c.MemoryTotalBytes)/mb
	return fmt.Sprintf("Device: %s | Total: %d ops (%d quantize, %d matmul) | Time: %.2fms | GPU: %.1f%% | Fallbacks: %d | Memory: %.1f/%.1fMB (%.1f%%)",
		c.DeviceType, c.TotalOperations, c.QuantizationOperations, c.MatmulOperations, c.TotalTimeMs,
		100*c.GPUEfficiency(), c.FallbackCount, used, total, 100*ratio(used, total))
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
