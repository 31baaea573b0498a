package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRatios: the picture in docs is that of the table beside it, whose rows name measurements that exist.
func TestRatios(t *testing.T) {
	ratios, err := readRatios("../../docs/rates.csv")
	require.NoError(t, err)
	drawn := filepath.Join(t.TempDir(), "rates.svg")
	require.NoError(t, drawRatios(ratios, drawn))
	got, err := os.ReadFile(drawn)
	require.NoError(t, err)
	want, err := os.ReadFile("../../docs/rates.svg")
	require.NoError(t, err)
	assert.True(t, string(want) == string(got), "the table has changed: go run ./tests/peers --ratios docs/rates.csv")
	for _, r := range ratios {
		assert.FileExists(t, filepath.Join("../../docs/measurements", r.source), r.name)
	}
}

// TestRatiosRefuses: a range that is none is an error, and not a bar.
func TestRatiosRefuses(t *testing.T) {
	for _, row := range []string{"", "x,y,2,1,f.md\n", "x,y,0,1,f.md\n", "x,y,NaN,1,f.md\n", "x,y,a,1,f.md\n", "x,y\n"} {
		file := filepath.Join(t.TempDir(), "r.csv")
		require.NoError(t, os.WriteFile(file, []byte("operation,peer,least,most,measured\n"+row), 0o600))
		_, err := readRatios(file)
		assert.Error(t, err, row)
	}
}
