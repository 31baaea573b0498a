package nn

import (
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// resident returns how much memory of this process is resident, in bytes.
func resident(t *testing.T) float64 {
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	var size, pages int
	_, err = fmt.Sscan(string(text), &size, &pages)
	require.NoError(t, err)
	return float64(pages * os.Getpagesize())
}

// From the second epoch on a training keeps no more memory of the device, and no more of the host than 5 %.
// What is resident goes up and down with the garbage of other tests and with stacks, so the least of the first
// ten epochs is compared with the least of the last ten: a leak raises the least too.
func TestMemoryOfFiftyEpochs(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	c := Config{Loss: CrossEntropy{}, BatchSize: 128, Epochs: 50, Patience: new(0)}
	c.Checkpoint = t.TempDir() + "/checkpoint"
	c.CheckpointEvery = 2
	var live []int64
	var memory []float64
	c.OnEpoch = func(h *History) error {
		live, memory = append(live, s.Device().Stats().Live), append(memory, resident(t))
		return nil
	}
	fit(t, mlp(t, s), c, digits(t, s, 1000, 784))
	require.Len(t, live, 50)
	first, last := slices.Min(memory[1:11]), slices.Min(memory[40:])
	t.Logf("device: %d, %d bytes; resident: %.0f, %.0f MB", live[1], live[49], first/1e6, last/1e6)
	assert.Equal(t, live[1], live[49])
	assert.LessOrEqual(t, last, 1.05*first)
}
