package cpu

// The memory and processor of the machine on Linux, from /proc and /sys.

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

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

func systemCaches() caches { return readCaches("/sys/devices/system/cpu/cpu0/cache") }

// readCaches returns what a directory of /sys says of the caches of a core. A level that a core has twice for data, as
// no processor is known to, counts once.
func readCaches(dir string) (c caches) {
	list, _ := filepath.Glob(filepath.Join(dir, "index*")) // the pattern is right
	for _, index := range list {
		word := func(name string) string {
			text, _ := os.ReadFile(filepath.Join(index, name)) // what is missing is refused below
			return strings.TrimSpace(string(text))
		}
		if word("type") == "Instruction" {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(word("size"), "K"), 10, 40)
		if err != nil || kib <= 0 {
			return caches{}
		}
		switch word("level") {
		case "1":
			c.l1 = kib << 10
			c.line, _ = strconv.Atoi(word("coherency_line_size")) // 0 if it is unknown
		case "2":
			c.l2 = kib << 10
		case "3":
			c.l3 = kib << 10
		}
	}
	c.known = c.l1 > 0
	return c
}

func systemChannels() int { return countChannels("/sys/devices/system/edac/mc") }

// countChannels returns on how many channels there are modules of memory, by a directory of /sys which only machines
// have whose memory corrects errors; 0 is unknown. A module says where it is: "channel 1 slot 0".
func countChannels(dir string) int {
	list, _ := filepath.Glob(filepath.Join(dir, "mc*", "dimm*", "dimm_location")) // the pattern is right
	channels := map[string]bool{}
	for _, file := range list {
		text, err := os.ReadFile(file)
		fields := strings.Fields(string(text))
		if err != nil {
			return 0
		}
		at := filepath.Dir(filepath.Dir(file)) // the controller
		for i := 0; i+1 < len(fields); i += 2 {
			if fields[i] != "slot" && fields[i] != "csrow" {
				at += " " + fields[i] + " " + fields[i+1]
			}
		}
		channels[at] = true
	}
	return len(channels)
}

// adviseHuge requests huge pages. A failure only makes access slower, so it is ignored.
func adviseHuge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
