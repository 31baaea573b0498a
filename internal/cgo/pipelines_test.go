//go:build cgo && unix

package cgo

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/tests/sim/null"
)

// TestPipelines: what the driver has compiled passes through unchanged, and a vendor without such a thing has no name.
func TestPipelines(t *testing.T) {
	d := openNull(t, vendor())
	none, err := d.Pipelines()
	require.NoError(t, err)
	assert.Empty(t, none)
	require.NoError(t, d.UsePipelines([]byte{1, 0, 2}))
	got, err := d.Pipelines()
	require.NoError(t, err)
	assert.Equal(t, []byte{1, 0, 2}, got)
	assert.ErrorIs(t, d.UsePipelines(make([]byte, 100)), driver.ErrFormat)
	assert.Regexp(t, `^null-[0-9a-f]{16}$`, d.PipelinesName())

	require.NoError(t, d.Close())
	assert.ErrorIs(t, d.UsePipelines(nil), driver.ErrClosed)

	v := vendor()
	v.Table = null.Bare
	assert.Empty(t, openNull(t, v).PipelinesName())
}
