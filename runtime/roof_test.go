package runtime

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Another driver, device or number of threads has another roof.
func TestRoofKey(t *testing.T) {
	key := func(change func(i *Info), cfg Config) string {
		_, d := open(t, &nullBackend{change: change}, cfg)
		return d.core.roofKey(t.Context())
	}
	seen := map[string]bool{key(nil, Config{}): true}
	assert.True(t, seen[key(func(*Info) {}, Config{})], "the same device")
	for _, k := range []string{
		key(func(i *Info) { i.DriverVersion = "2" }, Config{}), key(func(i *Info) { i.Name = "null2" }, Config{}),
		key(func(i *Info) { i.UUID = "2" }, Config{}), key(func(i *Info) { i.Arch = "2" }, Config{}),
		key(func(i *Info) { i.Arch, i.DriverVersion = "", "22" }, Config{}),
		key(func(i *Info) { i.ComputeUnits = 5 }, Config{}),
		key(nil, Config{CPUThreads: 1}), key(nil, Config{CPUKernels: "go"}),
	} {
		assert.False(t, seen[k])
		seen[k] = true
	}
}

// The place of a roof is the same for all handles of a device, and is refused for none.
func TestKeptRoof(t *testing.T) {
	session, d := open(t, &nullBackend{}, Config{CacheDir: t.TempDir()})
	other, err := session.Open(t.Context(), d.String())
	require.NoError(t, err)
	first, err := d.KeptRoof(t.Context())
	require.NoError(t, err)
	second, err := other.KeptRoof(t.Context())
	require.NoError(t, err)
	assert.Same(t, first, second)
	require.NoError(t, d.Close())
	_, err = d.KeptRoof(t.Context())
	assert.ErrorIs(t, err, ErrClosed)
	_, err = (*Device)(nil).KeptRoof(t.Context())
	assert.ErrorIs(t, err, ErrInvalidArgument)
	var none context.Context
	_, err = other.KeptRoof(none)
	assert.ErrorIs(t, err, ErrInvalidArgument)
}
