//go:build !linux && !darwin

package cpu

// Other systems, on which the memory is unknown, and of the caches what the processor itself says.

func systemMemory() (total, available int64) { return 0, 0 }

func systemCPUName() string { return "" }

func systemCaches() caches { return caches{} }

func systemChannels() int { return 0 }

func adviseHuge([]byte) {}
