package cpu

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestInfoIsTheSystems checks that the device reports the figures of the operating system.
func TestInfoIsTheSystems(t *testing.T) {
	text, err := os.ReadFile("/proc/meminfo")
	require.NoError(t, err)
	info := openDevice(t).Info()
	assert.Equal(t, meminfo(text, "MemTotal:"), info.TotalMemory)
	assert.True(t, info.FreeMemoryKnown)
	assert.InEpsilon(t, float64(meminfo(text, "MemAvailable:")), float64(info.FreeMemory), 0.5)
	assert.EqualValues(t, 0, meminfo([]byte("MemTotal:\nMemAvailable: many kB\n"), "MemTotal:"))
	assert.EqualValues(t, 0, meminfo([]byte("MemAvailable: many kB\n"), "MemAvailable:"))
	assert.EqualValues(t, 3<<10, meminfo([]byte("A: 1 kB\nMemTotal:   3 kB\n"), "MemTotal:"))
	name := systemCPUName()
	cpuinfo, err := os.ReadFile("/proc/cpuinfo")
	require.NoError(t, err)
	assert.Contains(t, string(cpuinfo), name)
}

// TestCachesAreTheSystems reads directories such as those of /sys, and compares the device with what the system says.
func TestCachesAreTheSystems(t *testing.T) {
	write := func(path, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text+"\n"), 0o644))
	}
	dir := t.TempDir()
	for i, c := range [][3]string{{"1", "Data", "48K"}, {"1", "Instruction", "32K"}, {"2", "Unified", "2048K"},
		{"3", "Unified", "266240K"}} {
		at := filepath.Join(dir, "index"+strconv.Itoa(i))
		write(filepath.Join(at, "level"), c[0])
		write(filepath.Join(at, "type"), c[1])
		write(filepath.Join(at, "size"), c[2])
		write(filepath.Join(at, "coherency_line_size"), "64")
	}
	assert.Equal(t, caches{48 << 10, 2 << 20, 260 << 20, 64, true}, readCaches(dir))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "index3")))
	assert.Equal(t, caches{48 << 10, 2 << 20, 0, 64, true}, readCaches(dir), "there is none")
	for _, bad := range []string{"", "0K", "many", "-1K"} {
		write(filepath.Join(dir, "index2", "size"), bad)
		assert.Equal(t, caches{}, readCaches(dir), "%q is no size", bad)
	}
	assert.Equal(t, caches{}, readCaches(filepath.Join(dir, "none")))

	info, told := openDevice(t).Info(), readCaches("/sys/devices/system/cpu/cpu0/cache")
	if told.known {
		assert.Equal(t, told, caches{info.L1Cache, info.L2Cache, info.L3Cache, info.CacheLine, info.CachesKnown})
	} else {
		assert.False(t, info.CachesKnown)
	}

	dir = t.TempDir()
	assert.Zero(t, countChannels(dir))
	for at, text := range map[string]string{"mc0/dimm0": "channel 0 slot 0", "mc0/dimm1": "channel 0 slot 1",
		"mc0/dimm4": "channel 2 slot 0", "mc1/dimm0": "channel 0 slot 0"} {
		write(filepath.Join(dir, at, "dimm_location"), text)
	}
	assert.Equal(t, 3, countChannels(dir))
	write(filepath.Join(dir, "mc2/dimm0/dimm_location"), "csrow 0 channel 0")
	write(filepath.Join(dir, "mc2/dimm1/dimm_location"), "csrow 1 channel 0")
	assert.Equal(t, 4, countChannels(dir))
}
