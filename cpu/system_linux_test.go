package cpu

import (
	"os"
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
