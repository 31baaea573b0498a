package cpu

// The memory and processor of the machine on Linux, from /proc.

import (
	"bufio"
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// systemMemory returns the bytes of memory of the machine, and those that a program can still
// allocate; 0 means unknown.
func systemMemory() (total, available int64) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, 0
	}
	return meminfo(text, "MemTotal:"), meminfo(text, "MemAvailable:")
}

// meminfo returns the bytes in a line of /proc/meminfo such as "MemTotal:  16374020 kB".
func meminfo(text []byte, name string) int64 {
	for line := range bytes.Lines(text) {
		rest, ok := bytes.CutPrefix(line, []byte(name))
		if !ok {
			continue
		}
		fields := bytes.Fields(rest)
		if len(fields) == 0 {
			return 0
		}
		n, err := strconv.ParseInt(string(fields[0]), 10, 64)
		if err != nil {
			return 0
		}
		return n << 10
	}
	return 0
}

func systemCPUName() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		for _, key := range []string{"model name", "Processor", "Hardware"} {
			if rest, ok := bytes.CutPrefix(s.Bytes(), []byte(key)); ok {
				_, value, _ := bytes.Cut(rest, []byte(":"))
				return string(bytes.TrimSpace(value))
			}
		}
	}
	return ""
}

// adviseHuge requests huge pages. A failure only makes access slower, so it is ignored.
func adviseHuge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
