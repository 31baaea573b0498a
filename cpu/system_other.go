//go:build !linux && !darwin

package cpu

// Systems whose figures are not read here: unknown stays zero.

func systemMemory() (total, available int64) { return 0, 0 }

func systemCPUName() string { return "" }

func adviseHuge([]byte) {}
