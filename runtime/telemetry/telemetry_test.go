package telemetry

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

func TestSampleOf(t *testing.T) {
	s := Sample{Backend: "cuda", UUID: "GPU-0A1B2C3D-0000-1111-2222-333344445555", PCI: "0000:3b:00.0"}
	for _, tc := range []struct {
		why  string
		info driver.Info
		want bool
	}{
		{"the same UUID, written otherwise", driver.Info{Backend: "cuda", UUID: "0a1b2c3d-0000-1111-2222-333344445555"},
			true},
		{"the same address", driver.Info{Backend: "cuda", PCI: "0000:3B:00.0"}, true},
		{"another device", driver.Info{Backend: "cuda", UUID: "ffffffff-0000-1111-2222-333344445555", PCI: "0000:3c:00.0"},
			false},
		{"nothing to go by", driver.Info{Backend: "cuda"}, false},
		{"another backend", driver.Info{Backend: "opencl", PCI: "0000:3b:00.0"}, false},
		{"simulated", driver.Info{Backend: "cuda", PCI: "0000:3b:00.0", Simulated: true}, false},
		{"fake", driver.Info{Backend: "cuda", PCI: "0000:3b:00.0", Fake: true}, false},
	} {
		assert.Equal(t, tc.want, s.Of(&tc.info), tc.why)
	}
	none := Sample{Backend: "cuda", UUID: "GPU-00000000-0000-0000-0000-000000000000"}
	assert.False(t, none.Of(&driver.Info{Backend: "cuda", UUID: "00000000-0000-0000-0000-000000000000"}),
		"zeros are no UUID")
}

// Unknown values are left out of the document; lists that are known to be empty are not.
func TestSampleJSON(t *testing.T) {
	text, err := json.Marshal(Sample{Backend: "cuda"})
	require.NoError(t, err)
	assert.JSONEq(t, `{"backend":"cuda","index":0,"time":"0001-01-01T00:00:00Z"}`, string(text))
	text, err = json.Marshal(Sample{Backend: "cuda", Busy: new(0.0), ECC: new(false), MemoryUsed: new(int64(0)),
		Throttle: []string{}, Processes: []Process{}})
	require.NoError(t, err)
	assert.JSONEq(t,
		`{"backend":"cuda","index":0,"time":"0001-01-01T00:00:00Z","busy_percent":0,"ecc":false,"memory_used":0,"throttle":[],"processes":[]}`, string(text))
}

func TestRegister(t *testing.T) {
	defer func(old []Reader) { registry = old }(registry)
	registry = nil
	Register(Missing("rocm", "not in this build"))
	Register(Missing("cuda", "not in this build"))
	assert.Panics(t, func() { Register(Missing("cuda", "")) })
	assert.Panics(t, func() { Register(nil) })
	list := Readers()
	require.Len(t, list, 2)
	assert.Equal(t, "cuda", list[0].Name())
	samples, err := list[0].Sample(context.Background(), &driver.Config{})
	assert.Empty(t, samples)
	require.ErrorIs(t, err, driver.ErrNoDevice)
	assert.EqualError(t, err, "cuda: telemetry: not in this build: no such device")
}

func TestProcessName(t *testing.T) {
	assert.Empty(t, ProcessName(-1))
	if space, err := os.Readlink("/proc/self/ns/pid"); err == nil && space == machineSpace {
		assert.NotEmpty(t, ProcessName(os.Getpid()))
	} else {
		assert.Empty(t, ProcessName(os.Getpid()), "in a container, or without /proc")
	}
}
