package mempool

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Of the recorders for files the one of the newest file is kept, and those that pools record to.
func TestRecorders(t *testing.T) {
	files := func() []string {
		recordings.Lock()
		defer recordings.Unlock()
		return slices.Sorted(maps.Keys(recordings.of))
	}
	name, other := filepath.Join(t.TempDir(), "a.trace"), filepath.Join(t.TempDir(), "none", "b.trace")
	first, second := New(&tally{}, Options{}).RecordTo(name, "cpu:0"), New(&tally{}, Options{}).RecordTo(name, "cpu:0")
	assert.NoFileExists(t, name)
	first()
	assert.FileExists(t, name)
	third := New(&tally{}, Options{}).RecordTo(other, "cpu:0")
	assert.Subset(t, files(), []string{name, other}, "a pool records to each")
	second()
	third() // what cannot be written is logged
	assert.NoFileExists(t, other)
	assert.Subset(t, files(), []string{name, other}, "the program may open more devices")
	New(&tally{}, Options{}).RecordTo(other, "cpu:0")()
	assert.Equal(t, []string{other}, files(), "one file at most that nobody records to")
}
