package kernelcache

// Tests of bundles: export and import, damage of every kind, bundles in a file system, and entries
// found by their target.

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/internal/seal"
	"github.com/concord-compute/concord/runtime/driver"
)

// target returns a key that is not the key of any entry.
func target(n int) Key { return KeyOf(F("target", string(rune('a'+n)))) }

// bundle returns a bundle with entries. Those with even numbers have a target.
func bundle(t testing.TB, numbers ...int) []byte {
	var c Cache
	for _, n := range numbers {
		e := entry(n)
		if n%2 == 0 {
			e.Target = target(n)
		}
		_, _, err := c.Get(t.Context(), key(n), fixed(e))
		require.NoError(t, err)
	}
	var buf bytes.Buffer
	moved, err := c.Export(&buf, nil)
	require.NoError(t, err)
	require.Equal(t, len(numbers), moved.Entries)
	return buf.Bytes()
}

// brought returns an entry in the form that it has after an import.
func brought(n int) Entry {
	e := entry(n)
	e.Imported = true
	if n%2 == 0 {
		e.Target = target(n)
	}
	return e
}

func TestExportAndImport(t *testing.T) {
	from, to := privateDir(t), privateDir(t)
	put(t, from, 1, 2, 3)
	var buf bytes.Buffer
	c := Open(Options{Dir: from})
	moved, err := c.Export(&buf, func(info Info) bool { return info.Label != entry(2).Label })
	require.NoError(t, err)
	assert.Equal(t, 2, moved.Entries)
	assert.EqualValues(t, buf.Len()-bundleHeader-bundleTail, moved.Bytes)

	put(t, to, 3)
	into := Open(Options{Dir: to})
	_, _, err = into.Get(t.Context(), key(1), fails(driver.ErrCompile))
	require.Error(t, err)
	got, err := into.Import(&buf)
	require.NoError(t, err)
	assert.Equal(t, 1, got.Entries)
	assert.Equal(t, 1, got.Known, "3 was here")
	e, hit, err := into.Get(t.Context(), key(1), mustNotCompile(t))
	require.NoError(t, err, "the imported entry replaces a remembered failure")
	assert.Equal(t, Disk, hit)
	assert.Equal(t, entry(1).Binary, e.Binary)
	assert.True(t, e.Imported)
	list, err := into.List()
	require.NoError(t, err)
	for _, info := range list {
		assert.Equal(t, info.Key == key(1), info.Imported, "an entry that existed is unchanged")
	}
	_, hit, err = into.Get(t.Context(), key(2), fixed(entry(2)))
	require.NoError(t, err)
	assert.Equal(t, Compiled, hit, "the filter left it out")
}

func TestExportLeavesDamageOut(t *testing.T) {
	dir := privateDir(t)
	put(t, dir, 1, 2)
	data, err := os.ReadFile(entryFile(dir, 1))
	require.NoError(t, err)
	data[len(data)-1]++
	require.NoError(t, os.WriteFile(entryFile(dir, 1), data, 0o600))
	c := Open(Options{Dir: dir})
	moved, err := c.Export(io.Discard, nil)
	require.NoError(t, err)
	assert.Equal(t, 1, moved.Entries)
	assert.EqualValues(t, 1, c.Stats().Corrupt)
	_, err = c.Export(fullWriter{}, nil)
	assert.ErrorIs(t, err, io.ErrShortWrite)
}

// fullWriter fails as a full disk does.
type fullWriter struct{}

func (fullWriter) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// Entries that are in memory because there is no disk, or it failed, are exported, too, and are
// imported into memory if there is no disk. An empty bundle is valid.
func TestBundlesOfMemory(t *testing.T) {
	var to Cache
	moved, err := to.Import(iotest.OneByteReader(bytes.NewReader(bundle(t, 1, 2))))
	require.NoError(t, err)
	assert.Equal(t, 2, moved.Entries)
	for _, n := range []int{1, 2} {
		e, ok := to.Lookup(key(n))
		assert.True(t, ok)
		assert.Equal(t, brought(n), e)
	}
	moved, err = to.Import(bytes.NewReader(bundle(t)))
	require.NoError(t, err)
	assert.Zero(t, moved)

	dir := privateDir(t)
	c := Open(Options{Dir: dir})
	for n := range 3 {
		_, _, err := c.Get(t.Context(), key(n), fixed(entry(n)))
		require.NoError(t, err)
	}
	require.NoError(t, os.Remove(entryFile(dir, 1)))
	moved, err = c.Export(io.Discard, nil)
	require.NoError(t, err)
	assert.Equal(t, 3, moved.Entries, "on disk, or else in memory, once each")
}

func TestImportKeepsTheBounds(t *testing.T) {
	dir := privateDir(t)
	c := Open(Options{Dir: dir, DiskEntries: 2})
	_, err := c.Import(bytes.NewReader(bundle(t, 1, 2, 3, 4)))
	require.NoError(t, err)
	assert.Len(t, there(dir, 5), 2)
}

// A damaged bundle is an error, whatever the damage, and the cache is unchanged.
func TestDamagedBundles(t *testing.T) {
	good := bundle(t, 1, 2)
	refused := func(data []byte, what string, at int) {
		var c Cache
		_, err := c.Import(bytes.NewReader(data))
		require.ErrorIs(t, err, driver.ErrCorrupt, "%s %d", what, at)
		require.Zero(t, c.Stats().MemoryEntries, "%s %d", what, at)
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1 << (i % 8)
		refused(bad, "changed byte", i)
		refused(good[:i], "cut to", i)
	}
	refused(append(bytes.Clone(good), 0), "one byte more, of", len(good)+1)
	refused([]byte("a text file\n"), "text", 0)
	// Memory must not be allocated for a claimed length before the bytes have been read.
	bad := bytes.Clone(good)
	for _, at := range []int{8, seal.Size + 16} { // the length of the whole, and that of the binary
		length := bad[bundleHeader+at:]
		binary.LittleEndian.PutUint64(length, binary.LittleEndian.Uint64(length)+maxFile-10_000)
	}
	_, err := readHeader(bad[bundleHeader:])
	require.NoError(t, err, "the claim is possible")
	refused(bad, "length", 24)

	var c Cache
	_, err = c.Import(iotest.TimeoutReader(bytes.NewReader(append(good, good...))))
	assert.Error(t, err)
}

// A bundle with a wrong count and a right checksum.
func TestForgedCount(t *testing.T) {
	data := bundle(t, 1)
	at := len(data) - sha256.Size
	data[at-8] = 2
	sum := sha256.Sum256(data[:at])
	copy(data[at:], sum[:])
	var c Cache
	_, err := c.Import(bytes.NewReader(data))
	assert.ErrorIs(t, err, driver.ErrCorrupt)
}

func TestImportIntoADiskThatFails(t *testing.T) {
	dir := privateDir(t)
	c := Open(Options{Dir: dir})
	c.Stats()
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.WriteFile(dir, nil, 0o600))
	_, err := c.Import(bytes.NewReader(bundle(t, 1)))
	assert.Error(t, err, "an import that cannot write is an error")
}

func TestBundlesInAFileSystem(t *testing.T) {
	fsys := fstest.MapFS{
		"a.bundle":         {Data: bundle(t, 1, 2)},
		"kernels/b.bundle": {Data: bundle(t, 2, 3)},
		"kernels/notes":    {Data: bundle(t, 4)},
	}
	dir := privateDir(t)
	c := Open(Options{Dir: dir, Bundles: fsys})
	for _, n := range []int{1, 2, 3} {
		e, hit, err := c.Get(t.Context(), key(n), mustNotCompile(t))
		require.NoError(t, err)
		assert.Equal(t, Bundled, hit)
		assert.Equal(t, brought(n), e)
		_, hit, err = c.Get(t.Context(), key(n), mustNotCompile(t))
		require.NoError(t, err)
		assert.Equal(t, Memory, hit)
	}
	_, hit, err := c.Get(t.Context(), key(4), fixed(entry(4)))
	require.NoError(t, err)
	assert.Equal(t, Compiled, hit, "not a bundle by its name")
	s := c.Stats()
	assert.EqualValues(t, 3, s.BundleHits)
	assert.EqualValues(t, 1, s.Compiles)
	assert.Equal(t, []int{4}, there(dir, 5), "entries of the program's bundles are not copied to disk")

	// An entry that the driver refused is not taken from the bundle again.
	assert.True(t, c.Evict(key(1)))
	_, hit, err = c.Get(t.Context(), key(1), fixed(entry(1)))
	require.NoError(t, err)
	assert.Equal(t, Compiled, hit)

	// Disk comes before bundles.
	_, hit, err = Open(Options{Dir: dir, Bundles: fsys}).Get(t.Context(), key(1), mustNotCompile(t))
	require.NoError(t, err)
	assert.Equal(t, Disk, hit)
}

// A damaged bundle of the program causes a compile and a warning.
func TestDamagedBundlesInAFileSystem(t *testing.T) {
	good := bundle(t, 1, 2)
	for i := range good {
		for what, data := range map[string][]byte{"cut to": good[:i], "changed byte": flipped(good, i)} {
			c := Open(Options{Bundles: fstest.MapFS{"a.bundle": {Data: data}}, Logger: slog.New(slog.DiscardHandler)})
			for _, n := range []int{1, 2} {
				e, hit, err := c.Get(t.Context(), key(n), fixed(entry(n)))
				require.NoError(t, err)
				require.Equal(t, entry(n).Binary, e.Binary, "%s %d", what, i)
				require.Contains(t, []Hit{Bundled, Compiled}, hit)
			}
			if what == "cut to" { // a changed key is just another key
				require.EqualValues(t, 1, c.Stats().Corrupt, "%s %d", what, i)
			}
		}
	}
}

func flipped(data []byte, i int) []byte {
	data = bytes.Clone(data)
	data[i] ^= 1 << (i % 8)
	return data
}

func TestBundlesThatCannotBeRead(t *testing.T) {
	logger, buf := warnings()
	for name, fsys := range map[string]fs.FS{
		"directory is missing":          os.DirFS(t.TempDir() + "/missing"),
		"cannot be read at an offset":   inOrder{fstest.MapFS{"a.bundle": {Data: bundle(t, 1)}}},
		"not a bundle of kernels":       fstest.MapFS{"a.bundle": {Data: []byte(strings.Repeat("text", 100))}},
		"no such file or other trouble": brokenFS{},
	} {
		buf.Reset()
		c := Open(Options{Bundles: fsys, Logger: logger})
		for n := range 2 {
			_, hit, err := c.Get(t.Context(), key(n), fixed(entry(n)))
			require.NoError(t, err, name)
			assert.Equal(t, Compiled, hit, name)
		}
		assert.Equal(t, 1, strings.Count(buf.String(), "level=WARN"), "%s: %s", name, buf)
		assert.EqualValues(t, 1, c.Stats().Corrupt, name)
	}
}

// inOrder is a file system whose files can only be read sequentially.
type inOrder struct{ fs.FS }

func (x inOrder) Open(name string) (fs.File, error) {
	f, err := x.FS.Open(name)
	if _, dir := f.(fs.ReadDirFile); dir || err != nil {
		return f, err
	}
	return struct{ fs.File }{f}, nil
}

type brokenFS struct{}

func (brokenFS) Open(string) (fs.File, error) { return nil, errors.New("broken") }

func TestFindByTarget(t *testing.T) {
	withDisk := Options{Dir: privateDir(t)}
	_, err := Open(withDisk).Import(bytes.NewReader(bundle(t, 1, 2)))
	require.NoError(t, err)
	var inMemory Cache
	_, err = inMemory.Import(bytes.NewReader(bundle(t, 1, 2)))
	require.NoError(t, err)
	for want, c := range map[Hit]*Cache{
		Disk:    Open(withDisk),
		Bundled: Open(Options{Bundles: fstest.MapFS{"a.bundle": {Data: bundle(t, 1, 2)}}}),
		Memory:  &inMemory,
	} {
		e, hit, ok := c.Find(target(2))
		assert.True(t, ok, want)
		assert.Equal(t, want, hit)
		assert.Equal(t, brought(2), e)
		_, hit, ok = c.Find(target(2))
		assert.True(t, ok)
		assert.Equal(t, Memory, hit)
		for _, none := range []Key{{}, target(1)} {
			_, _, ok := c.Find(none)
			assert.False(t, ok)
		}
		moved, err := c.Export(io.Discard, nil)
		require.NoError(t, err)
		assert.Equal(t, map[Hit]int{Disk: 2, Bundled: 0, Memory: 2}[want], moved.Entries,
			"an entry that was found is not stored twice")
	}
	var c Cache
	_, _, ok := c.Find(target(2))
	assert.False(t, ok)
	assert.EqualValues(t, 1, c.Stats().Misses)
}

func FuzzImport(f *testing.F) {
	good := bundle(f, 1, 2)
	f.Add(good)
	f.Add(good[:bundleHeader])
	f.Add(bundle(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := readBundle(bytes.NewReader(data))
		if err != nil {
			assert.ErrorIs(t, err, driver.ErrCorrupt)
			return
		}
		out := &bundleWriter{w: new(bytes.Buffer), sum: sha256.New()}
		out.write([]byte(bundleMagic), binary.LittleEndian.AppendUint64(nil, version))
		for _, b := range list {
			require.NoError(t, out.entry(b.key, b.entry))
		}
		out.write([]byte(bundleEnd), binary.LittleEndian.AppendUint64(nil, uint64(len(list))))
		out.write(out.sum.Sum(nil))
		assert.Equal(t, data, out.w.(*bytes.Buffer).Bytes(), "writing the accepted entries gives the same bytes")
	})
}
