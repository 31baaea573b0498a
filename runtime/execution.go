package runtime

// Where each result was computed. Package accounts makes receipts and statistics of it.

// Execution says where one operation ran. GPUExecuted is true only if a kernel ran on
// a GPU that is neither fake nor simulated.
type Execution struct {
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

// after describes work that ran here because of a fallback, if there was one.
func (e Execution) after(fallback error) Execution {
	if fallback != nil {
		e.Fallback, e.FallbackReason = true, fallback.Error()
	}
	return e
}
