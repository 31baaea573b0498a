package cpu

// The memory and caches of the machine on macOS, by sysctl. macOS has no single number for the available
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

// systemCaches returns the caches of a fast core, where there are two kinds.
func systemCaches() (c caches) {
	number := func(names ...string) int64 {
		for _, name := range names {
			if n, err := unix.SysctlUint64(name); err == nil {
				return int64(n)
			}
			if n, err := unix.SysctlUint32(name); err == nil { // those of a kind of core have 4 bytes
				return int64(n)
			}
		}
		return 0
	}
	c.l1 = number("hw.perflevel0.l1dcachesize", "hw.l1dcachesize")
	c.l2 = number("hw.perflevel0.l2cachesize", "hw.l2cachesize")
	c.l3 = number("hw.l3cachesize")
	c.line = int(number("hw.cachelinesize"))
	c.known = c.l1 > 0 && c.l2 > 0
	return c
}

func systemChannels() int { return 0 }

func adviseHuge([]byte) {}
