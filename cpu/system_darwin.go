package cpu

// The memory of the machine on macOS, by sysctl. macOS has no single number for the available
// memory, so that it is unknown.

import "golang.org/x/sys/unix"

func systemMemory() (total, available int64) {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0, 0
	}
	return int64(n), 0
}

func systemCPUName() string {
	name, err := unix.Sysctl("machdep.cpu.brand_string")
	if err != nil {
		return ""
	}
	return name
}

func adviseHuge([]byte) {}
