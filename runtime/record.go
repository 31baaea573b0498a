package runtime

// Where each result was computed. Package accounts builds receipts and statistics from records.

// Record says where one operation ran. GPUExecuted is true only if a kernel ran on
// a GPU that is neither fake nor simulated.
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

// after returns the record of work that ran here because of a fallback, if there was one.
func (r Record) after(fallback error) Record {
	if fallback != nil {
		r.Fallback, r.FallbackReason = true, fallback.Error()
	}
	return r
}
