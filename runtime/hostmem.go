package runtime

// The machine's memory, for accounts; 0 where it cannot be read.

import (
	"bufio"
	"os"
	"strconv"
	"strings"
)

// hostMemory returns the used and total bytes of the machine as Linux tells them.
func hostMemory() (used, total int64) {
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
