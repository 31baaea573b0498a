package runtime

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

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/profile"
)

// forgetRoofs makes the next Roof read the disk, as another process would.
func forgetRoofs() {
	roofs.Lock()
	clear(roofs.kept)
	roofs.Unlock()
}

// A roof is measured once, then taken from the process, then from the disk, and measured again where the
// file is not what was written.
func TestRoofKept(t *testing.T) {
	b := &nullBackend{}
	dir := t.TempDir()
	b.name, b.devices = "cuda", 1
	session, err := New(Config{CacheDir: dir, Backends: []driver.Backend{b}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, session.Close()) })
	d, err := session.Open(t.Context(), "cuda:0")
	require.NoError(t, err)
	launches := func() int64 { return d.Stats().Launches }
	forgetRoofs()
	first, err := d.Roof(t.Context())
	require.NoError(t, err)
	assert.Positive(t, first.MemoryGBs)
	assert.Positive(t, first.LaunchNs)
	assert.Zero(t, first.GFLOPS, "this device reports no times")
	assert.WithinDuration(t, time.Now(), first.Measured, time.Minute)
	after := launches()
	assert.Positive(t, after)

	again, err := d.Roof(t.Context())
	require.NoError(t, err)
	assert.Equal(t, first, again)
	forgetRoofs()
	read, err := d.Roof(t.Context())
	require.NoError(t, err)
	assert.Equal(t, first, read)
	assert.Equal(t, after, launches(), "nothing was measured again")

	files, err := filepath.Glob(filepath.Join(dir, "roofs", "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	for name, damage := range map[string]func(){
		"altered": func() {
			altered := append([]byte{}, text...)
			altered[len(altered)/2] ^= 1
			_ = os.WriteFile(files[0], altered, 0o600)
		},
		"truncated": func() { _ = os.WriteFile(files[0], text[:len(text)/2], 0o600) },
		"empty":     func() { _ = os.WriteFile(files[0], nil, 0o600) },
		"huge":      func() { _ = os.Truncate(files[0], 1<<30) },
		"foreign":   func() { _ = os.Chmod(files[0], 0o666) },
		"directory": func() { _ = os.Remove(files[0]); _ = os.Mkdir(files[0], 0o700) },
	} {
		if goruntime.GOOS == "windows" && name == "foreign" {
			continue // there, permissions are not these
		}
		damage()
		forgetRoofs()
		before := launches()
		_, err := d.Roof(t.Context())
		require.NoError(t, err, name)
		assert.Greater(t, launches(), before, "%s: measured again", name)
		_ = os.RemoveAll(files[0])
		_ = os.WriteFile(files[0], text, 0o600)
	}
	before := launches()
	fresh, err := d.MeasureRoof(t.Context())
	require.NoError(t, err)
	assert.Greater(t, launches(), before)
	kept, err := d.Roof(t.Context())
	require.NoError(t, err)
	assert.Equal(t, fresh, kept)
	forgetRoofs()
	kept, err = d.Roof(t.Context())
	require.NoError(t, err)
	assert.Equal(t, fresh, kept, "it replaced the file")
	_, _, err = session.Cache().Size()
	require.NoError(t, err, "the kernel cache has no use for the directory")
}

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

// Concurrent calls measure once; errors and contexts that are done keep nothing.
func TestRoofConcurrent(t *testing.T) {
	forgetRoofs()
	var fail error
	b := &nullBackend{allocErr: func() error { return fail }}
	_, d := open(t, b, Config{})
	fail = ErrOutOfMemory
	_, err := d.Roof(t.Context())
	require.ErrorIs(t, err, ErrOutOfMemory)
	fail = nil
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = d.Roof(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, d.Stats().Live, "nothing is left open")

	var wg sync.WaitGroup
	var got [16]profile.Roof
	for i := range got {
		wg.Go(func() {
			var err error
			got[i], err = d.Roof(t.Context())
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	for _, r := range got {
		assert.Equal(t, got[0], r)
	}
	assert.EqualValues(t, 1, d.Stats().Compiles)
	require.NoError(t, d.Close())
	_, err = d.Roof(t.Context())
	assert.ErrorIs(t, err, ErrClosed)
	_, err = (*Device)(nil).Roof(t.Context())
	assert.ErrorIs(t, err, ErrInvalidArgument)
}

// Without a compiler there are copies alone.
func TestRoofWithoutCompiler(t *testing.T) {
	forgetRoofs()
	_, d := open(t, &nullBackend{noCompiler: true}, Config{})
	r, err := d.Roof(t.Context())
	require.NoError(t, err)
	assert.Positive(t, r.MemoryGBs)
	assert.Zero(t, r.GFLOPS+r.DoubleGFLOPS+r.LaunchNs)
	_, bound := r.Limit(1, 1)
	assert.Equal(t, profile.UnknownBound, bound)

	forgetRoofs()
	broken := errors.New("the compiler broke")
	_, d = open(t, &nullBackend{compile: func(context.Context) error { return broken }}, Config{})
	_, err = d.Roof(t.Context())
	assert.ErrorIs(t, err, broken)
}
