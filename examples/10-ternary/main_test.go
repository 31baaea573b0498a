package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

// TestCompare: ternary weights lose little of what few images teach, and have at most a fourteenth of the
// bytes. The accuracy with all images is compared where all examples run.
func TestCompare(t *testing.T) {
	dev, err := runtime.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	defer dev.Close()
	results, err := compare(t.Context(), dev, 2000)
	require.NoError(t, err)
	require.Len(t, results, 2)
	float, ternary := results[0], results[1]
	t.Logf("%+v, %+v", float, ternary)
	assert.Greater(t, float.accuracy, 0.75)
	assert.Greater(t, ternary.accuracy, 0.75)
	assert.InDelta(t, float.accuracy, ternary.accuracy, 0.1)
	assert.Equal(t, 4*(784*128+128*64+64*10), float.bytes)
	assert.LessOrEqual(t, 14*ternary.bytes, float.bytes)
	assert.Positive(t, ternary.rate)
}
