package mempool

// The machine's memory, for accounts and limits.

import (
	"bufio"
	"os"
	"strconv"
	"strings"
)

// SystemMemory returns how much memory of the machine is in use and how much there is, in bytes, as
// the operating system reports it now; known is false where it does not.
func SystemMemory() (used, total int64, known bool) {
	used, total = systemMemory()
	return used, total, total > 0
}

// systemMemory returns the used and total bytes of the machine as Linux reports them, or 0.
func systemMemory() (used, total int64) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, 0
	}
	defer f.Close()
	fields := map[string]int64{}
	for scan := bufio.NewScanner(f); scan.Scan(); {
		name, rest, _ := strings.Cut(scan.Text(), ":")
		kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		if err == nil {
			fields[name] = kb << 10
		}
	}
	return fields["MemTotal"] - fields["MemAvailable"], fields["MemTotal"]
}
