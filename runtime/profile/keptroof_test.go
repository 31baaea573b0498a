package profile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// forgetRoofs makes the next KeepRoof one of another process.
func forgetRoofs() { keptRoofs.Clear() }

// A roof is measured once, then taken from the process, then from the disk, and measured again where the
// file is not what was written.
func TestKeptRoof(t *testing.T) {
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "roofs")
	measured := 0
	get := func(again bool) Roof {
		r, err := KeepRoof("key", dir).Get(ctx, again, func() (Roof, error) {
			measured++
			return Roof{MemoryGBs: float64(measured), Measured: time.Now().UTC().Round(time.Second)}, nil
		})
		require.NoError(t, err)
		return r
	}
	assert.Nil(t, KeepRoof("key", dir).Known())
	first := get(false)
	assert.Equal(t, first, get(false))
	assert.Equal(t, first, *KeepRoof("key", dir).Known())
	assert.Nil(t, KeepRoof("key2", dir).Known())
	assert.Nil(t, KeepRoof("key", "").Known())
	forgetRoofs()
	assert.Equal(t, first, *KeepRoof("key", dir).Known())
	forgetRoofs()
	assert.Equal(t, first, get(false))
	assert.Equal(t, 1, measured)

	file := filepath.Join(dir, "key.json")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for name, damage := range map[string]func(){
		"altered": func() {
			altered := append([]byte{}, text...)
			altered[len(altered)/2] ^= 1
			_ = os.WriteFile(file, altered, 0o600)
		},
		"truncated": func() { _ = os.WriteFile(file, text[:len(text)/2], 0o600) },
		"empty":     func() { _ = os.WriteFile(file, nil, 0o600) },
		"huge":      func() { _ = os.Truncate(file, 1<<30) },
		"foreign":   func() { _ = os.Chmod(file, 0o666) },
		"directory": func() { _ = os.Remove(file); _ = os.Mkdir(file, 0o700) },
		"of others": func() { _ = os.Rename(file, filepath.Join(dir, "key2.json")) },
	} {
		if goruntime.GOOS == "windows" && name == "foreign" {
			continue // there, permissions are not these
		}
		damage()
		forgetRoofs()
		assert.Nil(t, KeepRoof("key", dir).Known(), name)
		assert.Nil(t, KeepRoof("key2", dir).Known(), name)
		before := measured
		get(false)
		assert.Equal(t, before+1, measured, "%s: measured again", name)
		_ = os.RemoveAll(file)
		_ = os.WriteFile(file, text, 0o600)
	}
	forgetRoofs()
	assert.Equal(t, first, get(false))
	fresh := get(true)
	assert.NotEqual(t, first, fresh)
	assert.Equal(t, fresh, get(false))
	forgetRoofs()
	assert.Equal(t, fresh, get(false), "it replaced the file")
}

// Concurrent calls measure once; errors and contexts that are done keep nothing, and Known waits for nobody.
func TestKeptRoofConcurrent(t *testing.T) {
	k := KeepRoof(t.Name(), "")
	broken := errors.New("broken")
	_, err := k.Get(t.Context(), false, func() (Roof, error) { return Roof{GFLOPS: 1}, broken })
	require.ErrorIs(t, err, broken)
	assert.Nil(t, k.Known())
	_, err = k.Get(t.Context(), false, func() (Roof, error) {
		assert.Nil(t, k.Known())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := k.Get(ctx, false, nil) // waits for this one
		return Roof{}, err
	})
	require.ErrorIs(t, err, context.Canceled)
	var wg sync.WaitGroup
	measured := 0
	for range 16 {
		wg.Go(func() {
			r, err := k.Get(t.Context(), false, func() (Roof, error) {
				measured++
				return Roof{GFLOPS: float64(measured)}, nil
			})
			assert.NoError(t, err)
			assert.Equal(t, Roof{GFLOPS: 1}, r)
		})
	}
	wg.Wait()
}
