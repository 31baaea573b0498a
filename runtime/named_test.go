package runtime

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

// TestByName: a device that has to be named is opened by its name, has no place in lists, and is in them if
// CONCORD_REQUIRE names its backend.
func TestByName(t *testing.T) {
	backend := func() *nullBackend {
		return &nullBackend{name: "plain", devices: 2, change: func(i *Info) { i.ByName = i.NativeIndex == 0 }}
	}
	hidden := &nullBackend{name: "hidden", devices: 1, change: func(i *Info) { i.ByName = true }}
	ids := func(s *Session) (list []string) {
		devices, err := s.Devices(t.Context())
		require.NoError(t, err)
		for i, d := range devices {
			assert.Equal(t, i, d.Index)
			list = append(list, d.ID)
		}
		return list
	}
	s := session(t, Config{}, backend(), hidden, cpuBackend())
	assert.Equal(t, []string{"plain:1", "cpu:0"}, ids(s))
	probes, err := s.Discover(t.Context())
	require.NoError(t, err)
	for _, p := range probes {
		switch p.Backend {
		case "hidden":
			assert.Equal(t, driver.Unavailable, p.State)
			assert.Equal(t, "only devices that have to be named: hidden:0 (null)", p.Reason)
		case "plain":
			assert.Equal(t, driver.Available, p.State)
			assert.Contains(t, p.Tried, "plain:0 (null): only by name")
		}
	}
	first, err := s.DefaultDevice(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "plain:1", first.ID)
	for _, name := range []string{"plain:0", "hidden:0", "hidden"} {
		d, err := s.Open(t.Context(), name)
		require.NoError(t, err, name)
		assert.True(t, d.Info().ByName, name)
		require.NoError(t, d.Close())
	}
	s = session(t, Config{Required: []string{"hidden"}}, backend(), hidden, cpuBackend())
	assert.Equal(t, []string{"plain:1", "hidden:0", "cpu:0"}, ids(s))
}

// keeperBackend has devices whose driver compiles at launches.
type keeperBackend struct {
	nullBackend
	given, made []byte
	refuse      error
}

func (b *keeperBackend) Open(_ context.Context, i int, _ *Config) (driver.Device, error) {
	return &keeperDevice{nullDevice{b: &b.nullBackend, i: i}, b}, nil
}

type keeperDevice struct {
	nullDevice
	b *keeperBackend
}

func (d *keeperDevice) PipelinesName() string { return fmt.Sprintf("keeper-%d", d.i) }
func (d *keeperDevice) UsePipelines(data []byte) error {
	d.b.given = bytes.Clone(data)
	return d.b.refuse
}
func (d *keeperDevice) Pipelines() ([]byte, error) { return d.b.made, nil }

// TestPipelines: what a driver has compiled is kept when the device is closed, and given to the next session's; damaged
// files are not, and nothing is written if there is nothing new.
func TestPipelines(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "pipelines", "keeper-0")
	use := func(b *keeperBackend) {
		t.Helper()
		b.name, b.devices = "keeper", 1
		s, err := New(Config{CacheDir: dir, Backends: []driver.Backend{b}})
		require.NoError(t, err)
		d, err := s.Open(t.Context(), "keeper:0")
		require.NoError(t, err)
		require.NoError(t, d.Close())
		require.NoError(t, s.Close())
	}
	use(&keeperBackend{})
	assert.NoFileExists(t, file)
	use(&keeperBackend{made: []byte("first")})
	again := &keeperBackend{made: []byte("second")}
	use(again)
	assert.Equal(t, "first", string(again.given))
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, append(kept, 'x'), 0o600))
	damaged := &keeperBackend{made: []byte("third")}
	use(damaged)
	assert.Nil(t, damaged.given)
	refused := &keeperBackend{made: []byte("fourth"), refuse: driver.ErrFormat}
	use(refused)
	assert.Equal(t, "third", string(refused.given))
	last := &keeperBackend{}
	use(last)
	assert.Equal(t, "fourth", string(last.given))
}
