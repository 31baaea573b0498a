package kernelcache

// Tests of the disk layer: other processes, damage of every kind, directories that cannot or must
// not be used, and the administration.

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/internal/seal"
	"github.com/concord-compute/concord/runtime/driver"
)

// privateDir returns a directory that only this user can access, whatever the umask.
func privateDir(t testing.TB) string {
	dir := filepath.Join(t.TempDir(), "cache")
	require.NoError(t, os.Mkdir(dir, 0o700))
	return dir
}

// put compiles entries into a directory with a separate cache.
func put(t testing.TB, dir string, numbers ...int) {
	c := Open(Options{Dir: dir})
	for _, n := range numbers {
		_, _, err := c.Get(t.Context(), key(n), fixed(entry(n)))
		require.NoError(t, err)
	}
	require.Zero(t, c.Stats().DiskErrors)
}

func entryFile(dir string, n int) string {
	return filepath.Join(dir, "v3", key(n).String()[:2], key(n).String()+".kernel")
}

func TestDiskIsSeenByTheNextCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	put(t, dir, 1)
	c := Open(Options{Dir: dir})
	got, hit, err := c.Get(t.Context(), key(1), mustNotCompile(t))
	require.NoError(t, err)
	assert.Equal(t, Disk, hit)
	assert.Equal(t, entry(1), got, "log and label come back too")
	_, hit, err = c.Get(t.Context(), key(1), mustNotCompile(t))
	require.NoError(t, err)
	assert.Equal(t, Memory, hit)
	s := c.Stats()
	assert.Equal(t, dir, s.Dir)
	assert.EqualValues(t, 1, s.DiskHits)
	assert.Zero(t, s.Misses)

	for path, mode := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "v3"): 0o700,
		filepath.Dir(entryFile(dir, 1)): 0o700, entryFile(dir, 1): 0o600} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, mode, info.Mode().Perm(), path)
	}
	left, err := os.ReadDir(filepath.Join(dir, "v3", "tmp"))
	require.NoError(t, err)
	assert.Empty(t, left, "no temporary file stays")
}

func TestDiskKeepsEmptyAndAbsentParts(t *testing.T) {
	dir := privateDir(t)
	for i, e := range []Entry{{Binary: []byte{}}, {Binary: []byte{0}}, {Binary: []byte{}, Log: "only a log"}} {
		_, _, err := Open(Options{Dir: dir}).Get(t.Context(), key(i), fixed(e))
		require.NoError(t, err)
		got, hit, err := Open(Options{Dir: dir}).Get(t.Context(), key(i), mustNotCompile(t))
		require.NoError(t, err)
		assert.Equal(t, Disk, hit)
		assert.Equal(t, e, got)
	}
}

// A second process finds the entries that this one compiled, and this one finds those of the
// second.
func TestDiskIsSeenByAnotherProcess(t *testing.T) {
	const variable = "KERNELCACHE_TEST_CHILD"
	if dir := os.Getenv(variable); dir != "" {
		c := Open(Options{Dir: dir})
		got, hit, err := c.Get(t.Context(), key(1), mustNotCompile(t))
		require.NoError(t, err)
		assert.Equal(t, Disk, hit)
		assert.Equal(t, entry(1), got)
		put(t, dir, 2)
		return
	}
	dir := privateDir(t)
	put(t, dir, 1)
	cmd := exec.Command(os.Args[0], "-test.run=^TestDiskIsSeenByAnotherProcess$", "-test.count=1")
	cmd.Env = append(os.Environ(), variable+"="+dir)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	_, hit, err := Open(Options{Dir: dir}).Get(t.Context(), key(2), mustNotCompile(t))
	require.NoError(t, err)
	assert.Equal(t, Disk, hit)
}

// damaged replaces an entry by other bytes and checks that the next Get is a miss that repairs it.
func damaged(t *testing.T, dir string, data []byte, what string, at int) {
	t.Helper()
	require.NoError(t, os.WriteFile(entryFile(dir, 1), data, 0o600))
	c := Open(Options{Dir: dir})
	compiled := false
	got, hit, err := c.Get(t.Context(), key(1), func(context.Context) (Entry, error) {
		_, err := os.Lstat(entryFile(dir, 1))
		assert.ErrorIs(t, err, os.ErrNotExist, "%s %d: a bad file is deleted at once", what, at)
		compiled = true
		return entry(1), nil
	})
	require.NoError(t, err)
	require.True(t, compiled && hit == Compiled, "%s %d was believed", what, at)
	require.Equal(t, entry(1), got)
	require.EqualValues(t, 1, c.Stats().Corrupt)
}

func TestEveryDamageIsAMiss(t *testing.T) {
	if testing.Short() {
		t.Skip("writes and syncs some hundred files")
	}
	dir := privateDir(t)
	put(t, dir, 1)
	good, err := os.ReadFile(entryFile(dir, 1))
	require.NoError(t, err)
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1 << (i % 8)
		damaged(t, dir, bad, "changed byte", i)
		damaged(t, dir, good[:i], "cut to", i)
	}
	damaged(t, dir, append(bytes.Clone(good), 0), "one byte more, file of", len(good)+1)
	damaged(t, dir, bytes.Repeat([]byte{0}, len(good)), "zeros", len(good))
	damaged(t, dir, []byte("#!/bin/sh\n"+strings.Repeat("# not ours\n", 50)), "foreign file", 0)
	_, hit, err := Open(Options{Dir: dir}).Get(t.Context(), key(1), mustNotCompile(t))
	require.NoError(t, err)
	assert.Equal(t, Disk, hit, "and after all that the entry is repaired")
}

// Every byte is changed to every value, and every length is tried, without a disk.
func TestEveryChangedByteIsNoticed(t *testing.T) {
	e := entry(1)
	e.Target, e.Imported = key(2), true
	good := append(encodeHead(key(1), e), e.Binary...)
	got, err := decode(key(1), good)
	require.NoError(t, err)
	require.Equal(t, e, got)
	for i := range good {
		bad := bytes.Clone(good)
		for x := 1; x < 256; x++ {
			bad[i] = good[i] ^ byte(x)
			_, err := decode(key(1), bad)
			require.ErrorIs(t, err, driver.ErrCorrupt, "byte %d changed by %#x", i, x)
		}
		_, err := decode(key(1), good[:i])
		require.ErrorIs(t, err, driver.ErrCorrupt, "cut to %d", i)
	}
}

// A damaged header with a matching checksum must not cause an allocation of the claimed size, and
// an entry that is renamed to another key is not used for that key.
func TestForgedFilesAreMisses(t *testing.T) {
	dir := privateDir(t)
	put(t, dir, 1, 2)
	good, err := os.ReadFile(entryFile(dir, 1))
	require.NoError(t, err)
	forge := func(change func(data []byte)) []byte {
		data := bytes.Clone(good)
		change(data)
		h := sha256.New()
		h.Write(data[:16])
		h.Write(data[seal.Size:])
		h.Sum(data[:16])
		return data
	}
	assert.Equal(t, good, forge(func([]byte) {}), "the forger knows the format")
	for _, at := range []int{8, seal.Size + 8, seal.Size + 16} {
		for _, n := range []uint64{1 << 62, 1<<64 - 1, -uint64(len(good)), 0, 1 << 30} {
			damaged(t, dir, forge(func(d []byte) { binary.LittleEndian.PutUint64(d[at:], n) }), "length at", at)
		}
	}
	damaged(t, dir, forge(func(d []byte) { binary.LittleEndian.PutUint32(d[seal.Size:], 1<<32-1) }), "length of label", 0)
	damaged(t, dir, forge(func(d []byte) { d[7]++ }), "version", version+1)
	damaged(t, dir, forge(func(d []byte) { d[seal.Size+4] = 2 }), "flags", 2)
	other, err := os.ReadFile(entryFile(dir, 2))
	require.NoError(t, err)
	damaged(t, dir, other, "entry of key", 2)
}

func TestThingsThatAreNoFiles(t *testing.T) {
	dir := privateDir(t)
	put(t, dir, 1)
	c := Open(Options{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, os.Remove(entryFile(dir, 1)))
	require.NoError(t, os.MkdirAll(filepath.Join(entryFile(dir, 1), "full"), 0o700))
	got, hit, err := c.Get(t.Context(), key(1), fixed(entry(1)))
	require.NoError(t, err)
	assert.Equal(t, Compiled, hit)
	assert.Equal(t, entry(1), got)
	assert.EqualValues(t, 1, c.Stats().DiskErrors, "it could not be written over a directory")
	list, err := c.List()
	require.NoError(t, err)
	assert.Empty(t, list)

	require.NoError(t, os.RemoveAll(entryFile(dir, 1)))
	require.NoError(t, os.Symlink(entryFile(dir, 2), entryFile(dir, 1)))
	_, hit, err = Open(Options{Dir: dir}).Get(t.Context(), key(1), fixed(entry(1)))
	require.NoError(t, err)
	assert.Equal(t, Compiled, hit, "a link is not followed")
	info, err := os.Lstat(entryFile(dir, 1))
	require.NoError(t, err)
	assert.True(t, info.Mode().IsRegular())
}

// warnings counts what a cache logs.
func warnings() (*slog.Logger, *bytes.Buffer) {
	var buf bytes.Buffer
	return slog.New(slog.NewTextHandler(&buf, nil)), &buf
}

// memoryOnly checks that a cache works without the disk, and has logged that once.
func memoryOnly(t *testing.T, dir, reason string) {
	t.Helper()
	logger, buf := warnings()
	c := Open(Options{Dir: dir, Logger: logger})
	for i := range 3 {
		_, hit, err := c.Get(t.Context(), key(i), fixed(entry(i)))
		require.NoError(t, err, "the disk is a convenience")
		assert.Equal(t, Compiled, hit)
		_, hit, err = c.Get(t.Context(), key(i), mustNotCompile(t))
		require.NoError(t, err)
		assert.Equal(t, Memory, hit)
	}
	assert.Equal(t, 1, strings.Count(buf.String(), "level=WARN"), "%s", buf)
	s := c.Stats()
	assert.Empty(t, s.Dir)
	assert.Contains(t, s.DiskOff, reason)
	_, err := c.List()
	assert.NoError(t, err)
	_, err = c.Verify(t.Context())
	assert.NoError(t, err)
	n, _, err := c.Clear()
	assert.NoError(t, err)
	assert.Equal(t, 3, n)
}

func TestDirectoryThatCannotBe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	memoryOnly(t, path, "not a directory")
	memoryOnly(t, filepath.Join(path, "below"), "not a directory")
}

// readOnlyCache checks that entry 1 of a directory is used, that everything else works without the
// directory, and that the directory is unchanged afterwards.
func readOnlyCache(t *testing.T, dir, reason string) {
	t.Helper()
	before := listing(t, dir)
	logger, buf := warnings()
	c := Open(Options{Dir: dir, Logger: logger, LockWait: time.Minute})
	got, hit, err := c.Get(t.Context(), key(1), mustNotCompile(t))
	require.NoError(t, err)
	assert.Equal(t, Disk, hit)
	assert.Equal(t, entry(1), got)
	assert.Empty(t, buf.String(), "reading is all that was asked for")
	for i := 2; i < 5; i++ {
		_, hit, err := c.Get(t.Context(), key(i), fixed(entry(i)))
		require.NoError(t, err)
		assert.Equal(t, Compiled, hit)
		_, hit, err = c.Get(t.Context(), key(i), mustNotCompile(t))
		require.NoError(t, err)
		assert.Equal(t, Memory, hit)
	}
	assert.Equal(t, 1, strings.Count(buf.String(), "level=WARN"), "%s", buf)
	s := c.Stats()
	assert.Equal(t, dir, s.Dir)
	assert.Contains(t, s.ReadOnly, reason)
	assert.Empty(t, s.DiskOff)
	assert.Zero(t, s.LockErrors+s.LockTimeouts+s.DiskErrors)
	list, err := c.List()
	require.NoError(t, err)
	assert.Len(t, list, 1)
	r, err := c.Verify(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 1, r.Checked)
	assert.Empty(t, r.Corrupt)
	var bundle bytes.Buffer
	_, err = c.Export(&bundle, nil)
	require.NoError(t, err)
	_, err = Open(Options{Dir: dir}).Import(&bundle)
	assert.ErrorContains(t, err, reason, "an import that cannot be stored is an error")
	_, _, err = c.Clear()
	assert.ErrorContains(t, err, reason)
	assert.Equal(t, before, listing(t, dir))
}

// listing returns every file below a directory with its size and its time.
func listing(t *testing.T, dir string) (list []string) {
	require.NoError(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := e.Info()
		list = append(list, fmt.Sprint(path, " ", info.Size(), " ", info.Mode(), " ", info.ModTime()))
		return err
	}))
	return list
}

func TestReadOnlyDirectory(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write to a read-only directory; the tests of file systems and of other users cover the rest")
	}
	dir := privateDir(t)
	require.NoError(t, os.Chmod(dir, 0o500))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	memoryOnly(t, dir, "permission denied")

	dir = privateDir(t)
	put(t, dir, 1)
	require.NoError(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if e.IsDir() {
			t.Cleanup(func() { _ = os.Chmod(path, 0o700) })
			return os.Chmod(path, 0o555)
		}
		return err
	}))
	readOnlyCache(t, dir, "permission denied")
	// The directory becomes read-only later: that is logged once, and reading goes on.
	dir = privateDir(t)
	put(t, dir, 1)
	logger, buf := warnings()
	c := Open(Options{Dir: dir, Logger: logger, MemoryBytes: -1})
	assert.Empty(t, c.Stats().ReadOnly)
	require.NoError(t, os.Chmod(filepath.Join(dir, "v3", "tmp"), 0o500))
	for i := range 3 {
		_, _, err := c.Get(t.Context(), key(i), fixed(entry(i)))
		require.NoError(t, err)
	}
	assert.Contains(t, c.Stats().ReadOnly, "permission denied")
	assert.EqualValues(t, 1, c.Stats().DiskHits)
	assert.Equal(t, 1, strings.Count(buf.String(), "level=WARN"), "%s", buf)
}

func TestDirectoryOfOthersIsRefused(t *testing.T) {
	for _, mode := range []os.FileMode{0o706, 0o702, 0o777 | os.ModeSticky} {
		dir := privateDir(t)
		require.NoError(t, os.Chmod(dir, mode))
		memoryOnly(t, dir, "others can write to it")
		below, err := os.ReadDir(dir)
		require.NoError(t, err)
		assert.Empty(t, below, "nothing is written there")
	}
	dir := privateDir(t)
	put(t, dir, 1)
	require.NoError(t, os.Chmod(filepath.Join(dir, "v3"), 0o777))
	memoryOnly(t, dir, "others can write to it")
	if os.Geteuid() == 0 {
		dir := privateDir(t)
		require.NoError(t, os.Chown(dir, 12345, -1))
		memoryOnly(t, dir, "belongs to user 12345")
	}
}

// A directory that becomes unusable: one warning, no error.
func TestDirectoryThatBreaksLater(t *testing.T) {
	dir := privateDir(t)
	logger, buf := warnings()
	c := Open(Options{Dir: dir, Logger: logger})
	_, _, err := c.Get(t.Context(), key(0), fixed(entry(0)))
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(dir))
	_, _, err = c.Get(t.Context(), key(1), fixed(entry(1)))
	require.NoError(t, err)
	assert.FileExists(t, entryFile(dir, 1), "a directory that was removed is made again")
	assert.Empty(t, buf.String())

	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.WriteFile(dir, nil, 0o600))
	for i := 2; i < 5; i++ {
		_, hit, err := c.Get(t.Context(), key(i), fixed(entry(i)))
		require.NoError(t, err)
		assert.Equal(t, Compiled, hit)
	}
	assert.Equal(t, 1, strings.Count(buf.String(), "level=WARN"), "%s", buf)
}

func TestLeftoversAreIgnoredAndSwept(t *testing.T) {
	dir := privateDir(t)
	put(t, dir, 1)
	tmp := filepath.Join(dir, "v3", "tmp")
	old, young, other := filepath.Join(tmp, "entry-1"), filepath.Join(tmp, "entry-2"), filepath.Join(tmp, "mine")
	for _, path := range []string{old, young, other} {
		require.NoError(t, os.WriteFile(path, []byte("half"), 0o600))
	}
	past := time.Now().Add(-2 * tempAge)
	require.NoError(t, os.Chtimes(old, past, past))
	require.NoError(t, os.Chtimes(other, past, past))
	c := Open(Options{Dir: dir})
	list, err := c.List()
	require.NoError(t, err)
	assert.Len(t, list, 1)
	assert.NoFileExists(t, old)
	assert.FileExists(t, young, "another process may still be writing it")
	assert.FileExists(t, other, "not ours")
	require.NoError(t, os.Chtimes(young, past, past))
	r, err := c.Verify(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 1, r.Temp)
}

func TestListSizeVerifyEvictClear(t *testing.T) {
	dir := privateDir(t)
	put(t, dir, 1, 2, 3)
	notes := filepath.Join(dir, "v3", "notes.txt")
	strange := filepath.Join(filepath.Dir(entryFile(dir, 1)), "strange.kernel")
	for _, path := range []string{notes, strange} {
		require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
	}
	c := Open(Options{Dir: dir})
	list, err := c.List()
	require.NoError(t, err)
	labels, total := map[string]bool{}, int64(0)
	for _, info := range list {
		labels[info.Label] = true
		total += info.Bytes
		assert.WithinDuration(t, time.Now(), info.Used, time.Minute)
	}
	assert.Equal(t, map[string]bool{"test:0 k1.cl": true, "test:0 k2.cl": true, "test:0 k3.cl": true}, labels)
	n, size, err := c.Size()
	require.NoError(t, err)
	assert.Equal(t, 3, n)
	assert.Equal(t, total, size)

	data, err := os.ReadFile(entryFile(dir, 2))
	require.NoError(t, err)
	data[len(data)-1]++
	require.NoError(t, os.WriteFile(entryFile(dir, 2), data, 0o600))
	r, err := c.Verify(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 3, r.Checked)
	assert.Equal(t, []Key{key(2)}, r.Corrupt)
	assert.NoFileExists(t, entryFile(dir, 2))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Verify(over)
	assert.ErrorIs(t, err, context.Canceled)

	assert.True(t, c.Evict(key(1)))
	assert.False(t, c.Evict(key(1)))
	assert.NoFileExists(t, entryFile(dir, 1))

	n, size, err = c.Clear()
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.Positive(t, size)
	assert.NoFileExists(t, entryFile(dir, 3))
	assert.FileExists(t, notes, "Clear deletes only files of the cache")
	assert.FileExists(t, strange)
}

// Failures are remembered in the process, never on the disk.
func TestFailuresStayOutOfTheDisk(t *testing.T) {
	dir := privateDir(t)
	c := Open(Options{Dir: dir})
	_, _, err := c.Get(t.Context(), key(1), fails(driver.ErrCompile))
	assert.ErrorIs(t, err, driver.ErrCompile)
	n, _, err := c.Size()
	require.NoError(t, err)
	assert.Zero(t, n)
}

func FuzzDecode(f *testing.F) {
	k := key(1)
	good := append(encodeHead(k, entry(1)), entry(1).Binary...)
	f.Add(good)
	f.Add(good[:headerSize])
	f.Add([]byte(entries))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := decode(k, data)
		if err != nil {
			assert.True(t, errors.Is(err, driver.ErrCorrupt))
			return
		}
		again := append(encodeHead(k, e), e.Binary...)
		assert.Equal(t, data, again, "encoding the accepted entry gives the same bytes")
	})
}
