//go:build unix && !aix

package kernelcache

// Tests of the lock between processes: two caches on one directory behave like two processes,
// because flock belongs to open files.

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func locks(t testing.TB, dir string) (names []string) {
	entries, err := os.ReadDir(filepath.Join(dir, "v3", "tmp"))
	require.NoError(t, err)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), lockPrefix) {
			names = append(names, e.Name())
		}
	}
	return names
}

// held starts a compile of key 1 in a separate cache, waits until it runs, and returns the function
// that ends it.
func held(t *testing.T, dir string) (release func()) {
	running, end, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_, _, err := Open(Options{Dir: dir}).Get(t.Context(), key(1), func(context.Context) (Entry, error) {
			close(running)
			<-end
			return entry(1), nil
		})
		assert.NoError(t, err)
	}()
	<-running
	return sync.OnceFunc(func() { close(end); <-done })
}

func TestOthersWaitForACompile(t *testing.T) {
	dir := privateDir(t)
	release := held(t, dir)
	assert.Len(t, locks(t, dir), 1)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			got, hit, err := Open(Options{Dir: dir}).Get(t.Context(), key(1), mustNotCompile(t))
			assert.NoError(t, err)
			assert.Equal(t, Disk, hit)
			assert.Equal(t, entry(1), got)
		})
	}
	// A Get of another key does not wait.
	_, _, err := Open(Options{Dir: dir}).Get(t.Context(), key(2), fixed(entry(2)))
	require.NoError(t, err)
	time.Sleep(20 * time.Millisecond)
	release()
	wg.Wait()
	assert.Empty(t, locks(t, dir), "no lock file stays")
}

func TestWhoeverWaitedLongEnoughCompiles(t *testing.T) {
	dir := privateDir(t)
	release := held(t, dir)
	defer release()
	for _, wait := range []time.Duration{time.Nanosecond, 30 * time.Millisecond} {
		c := Open(Options{Dir: dir, LockWait: wait, MemoryBytes: -1})
		start := time.Now()
		_, hit, err := c.Get(t.Context(), key(1), fixed(entry(1)))
		require.NoError(t, err)
		assert.Equal(t, Compiled, hit)
		assert.GreaterOrEqual(t, time.Since(start), wait)
		assert.EqualValues(t, 1, c.Stats().LockTimeouts)
		c.Evict(key(1))
	}
	c := Open(Options{Dir: dir, LockWait: -1})
	_, _, err := c.Get(t.Context(), key(1), fixed(entry(1)))
	require.NoError(t, err)
	assert.Zero(t, c.Stats().LockTimeouts+c.Stats().LockErrors, "LockWait is negative, so there was no wait")
}

func TestWaitingForAnotherProcessEndsWithTheContext(t *testing.T) {
	dir := privateDir(t)
	release := held(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	c := Open(Options{Dir: dir})
	_, hit, err := c.Get(ctx, key(1), mustNotCompile(t))
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, NoHit, hit)
	release()
	_, hit, err = c.Get(t.Context(), key(1), mustNotCompile(t))
	assert.NoError(t, err, "the cancellation is not remembered")
	assert.Equal(t, Disk, hit)
}

// A lock is released whatever the outcome of the compile.
func TestLockEndsWithTheCompile(t *testing.T) {
	dir := privateDir(t)
	for _, compile := range []func(context.Context) (Entry, error){
		fails(errors.New("no")),
		func(context.Context) (Entry, error) { panic("boom") },
	} {
		func() {
			defer func() { _ = recover() }()
			_, _, err := Open(Options{Dir: dir}).Get(t.Context(), key(1), compile)
			assert.Error(t, err)
		}()
		assert.Empty(t, locks(t, dir))
	}
	_, _, err := Open(Options{Dir: dir}).Get(t.Context(), key(1), fixed(entry(1)))
	assert.NoError(t, err)
}

// With a file system without locks, such as some network file systems, with one that loses the
// names of files, and with a directory that vanishes, each process compiles for itself.
func TestFileSystemsWithoutLocks(t *testing.T) {
	for name, flock := range map[string]func(*os.File) error{
		"no locks":       func(*os.File) error { return unix.ENOLCK },
		"not supported":  func(*os.File) error { return unix.EOPNOTSUPP },
		"stale":          func(*os.File) error { return unix.ESTALE },
		"names get lost": func(f *os.File) error { return os.Remove(f.Name()) },
	} {
		dir := privateDir(t)
		release := held(t, dir)
		c := Open(Options{Dir: dir})
		c.layer().flock = flock
		got, hit, err := c.Get(t.Context(), key(1), fixed(entry(1)))
		require.NoError(t, err, name)
		assert.Equal(t, Compiled, hit, name)
		assert.Equal(t, entry(1), got)
		assert.EqualValues(t, 1, c.Stats().LockErrors, name)
		assert.Zero(t, c.Stats().DiskErrors, name)
		assert.FileExists(t, entryFile(dir, 1), "it is stored nevertheless")
		release()
	}
	dir := privateDir(t)
	c := Open(Options{Dir: dir})
	c.Stats()
	require.NoError(t, os.RemoveAll(dir))
	_, _, err := c.Get(t.Context(), key(1), fixed(entry(1)))
	require.NoError(t, err)
	assert.EqualValues(t, 1, c.Stats().LockErrors)
	assert.FileExists(t, entryFile(dir, 1))
}

// The holder removes its file before it releases the lock. A process that waited with that file
// open must not take it as the lock, because another process may already hold the lock with a new
// file of that name.
func TestLockIsTheFileThatHasTheName(t *testing.T) {
	d, err := openDisk(privateDir(t), -1, -1)
	require.NoError(t, err)
	var inside, most, entered atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 50 {
				unlock, err := d.lock(t.Context(), key(1), time.Minute)
				if !assert.NoError(t, err) {
					return
				}
				if n := inside.Add(1); n > most.Load() {
					most.Store(n)
				}
				entered.Add(1)
				time.Sleep(10 * time.Microsecond)
				inside.Add(-1)
				unlock()
			}
		})
	}
	wg.Wait()
	assert.EqualValues(t, 1, most.Load(), "one at a time")
	assert.EqualValues(t, 16*50, entered.Load())
}

// The lock file of a killed process does not keep other processes from taking the lock, and is
// removed when it is old.
func TestLockFileThatWasLeft(t *testing.T) {
	dir := privateDir(t)
	put(t, dir, 1)
	left := filepath.Join(dir, "v3", "tmp", lockPrefix+key(2).String())
	require.NoError(t, os.WriteFile(left, nil, 0o600))
	put(t, dir, 2)
	assert.NoFileExists(t, left)
	require.NoError(t, os.WriteFile(left, nil, 0o600))
	past := time.Now().Add(-2 * tempAge)
	require.NoError(t, os.Chtimes(left, past, past))
	r, err := Open(Options{Dir: dir}).Verify(t.Context())
	require.NoError(t, err)
	assert.Zero(t, r.Temp, "removed when the directory was opened")
	assert.NoFileExists(t, left)
}
