//go:build !linux && !darwin

package cpu

// Other systems, on which the memory is unknown.

func systemMemory() (total, available int64) { return 0, 0 }

func systemCPUName() string { return "" }

func adviseHuge([]byte) {}
