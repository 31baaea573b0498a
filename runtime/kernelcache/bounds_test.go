package kernelcache

// Tests of the disk layer's bounds: which entries are removed and which stay, and that the bounds
// always hold.

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sized is an entry whose file has exactly n bytes.
func sized(n int) Entry { return Entry{Binary: make([]byte, n-headerSize)} }

// age sets the time of an entry's last use to that long ago.
func age(t testing.TB, dir string, n int, by time.Duration) {
	then := time.Now().Add(-by)
	require.NoError(t, os.Chtimes(entryFile(dir, n), then, then))
}

// there lists which of the keys below n have a file.
func there(dir string, n int) (list []int) {
	for i := range n {
		if _, err := os.Lstat(entryFile(dir, i)); err == nil {
			list = append(list, i)
		}
	}
	return list
}

func TestLeastRecentlyUsedGoesFirst(t *testing.T) {
	dir := privateDir(t)
	put(t, dir, 0, 1, 2)
	for i := range 3 {
		age(t, dir, i, time.Duration(10-i)*time.Hour)
	}
	// Reading entry 0 from disk makes it the most recently used one; memory hits do not count.
	_, hit, err := Open(Options{Dir: dir}).Get(t.Context(), key(0), mustNotCompile(t))
	require.NoError(t, err)
	require.Equal(t, Disk, hit)

	c := Open(Options{Dir: dir, DiskEntries: 3})
	_, _, err = c.Get(t.Context(), key(3), fixed(entry(3)))
	require.NoError(t, err)
	assert.Equal(t, []int{0, 2, 3}, there(dir, 4))
	assert.EqualValues(t, 1, c.Stats().DiskEvictions)
	_, ok := c.Lookup(key(3))
	assert.True(t, ok)

	// Neither List nor Verify counts as a use.
	age(t, dir, 2, time.Hour)
	_, err = c.List()
	require.NoError(t, err)
	_, err = c.Verify(t.Context())
	require.NoError(t, err)
	_, _, err = c.Get(t.Context(), key(4), fixed(entry(4)))
	require.NoError(t, err)
	assert.Equal(t, []int{0, 3, 4}, there(dir, 5))
}

func TestDiskBytes(t *testing.T) {
	dir := privateDir(t)
	c := Open(Options{Dir: dir, DiskBytes: 10_000})
	for i := range 10 {
		_, _, err := c.Get(t.Context(), key(i), fixed(sized(1000)))
		require.NoError(t, err)
		age(t, dir, i, time.Duration(100-i)*time.Minute)
	}
	assert.Len(t, there(dir, 10), 10, "exactly full is not over")
	_, _, err := c.Get(t.Context(), key(10), fixed(sized(1000)))
	require.NoError(t, err)
	assert.Equal(t, []int{3, 4, 5, 6, 7, 8, 9, 10}, there(dir, 11), "down to seven eighths, so that this is rare")

	e, hit, err := c.Get(t.Context(), key(11), fixed(sized(10_001)))
	require.NoError(t, err)
	assert.Equal(t, Compiled, hit)
	assert.Len(t, e.Binary, 10_001-headerSize)
	assert.NoFileExists(t, entryFile(dir, 11), "larger than the cache may be")
	assert.Len(t, there(dir, 11), 8, "no entry is removed for one that is too large")
	assert.Zero(t, c.Stats().DiskErrors)

	// A smaller bound takes effect at the next store; the new entry stays.
	c = Open(Options{Dir: dir, DiskBytes: 3000})
	_, _, err = c.Get(t.Context(), key(12), fixed(sized(2500)))
	require.NoError(t, err)
	assert.Equal(t, []int{12}, there(dir, 13))

	for _, o := range []Options{{DiskBytes: -1, DiskEntries: 1000}, {DiskEntries: -1}} {
		o.Dir = privateDir(t)
		put := Open(o)
		for i := range 20 {
			_, _, err := put.Get(t.Context(), key(i), fixed(sized(100_000)))
			require.NoError(t, err)
		}
		assert.Len(t, there(o.Dir, 20), 20)
	}
}

// inFull reports whether the tests run in their full size.
func inFull() bool { return os.Getenv("CACHE_TEST_FULL") == "1" }

// Several caches on one directory do not see each other's stores at once, but exceed the bounds by
// no more than a sixteenth each.
func TestBoundsHoldForAll(t *testing.T) {
	runs := 4
	if inFull() {
		runs = 50
	}
	for run := range runs {
		random := rand.New(rand.NewPCG(uint64(run), 0))
		dir := privateDir(t)
		const maxBytes, maxEntries, most = 64_000, 32, 8000
		caches := make([]*Cache, 3)
		for i := range caches {
			caches[i] = Open(Options{Dir: dir, DiskBytes: maxBytes, DiskEntries: maxEntries})
		}
		for i := range 60 {
			c := caches[random.IntN(len(caches))]
			size := headerSize + random.IntN(most-headerSize)
			if run%2 == 0 {
				size = headerSize // so that the number of entries is the limit
			}
			_, _, err := c.Get(t.Context(), key(i), fixed(sized(size)))
			require.NoError(t, err)
			require.FileExists(t, entryFile(dir, i), "the entry that was just stored stays")
			n, bytes, err := c.Size()
			require.NoError(t, err)
			require.LessOrEqual(t, n, maxEntries+len(caches)*maxEntries/16, "run %d", run)
			require.LessOrEqual(t, bytes, int64(maxBytes+len(caches)*(maxBytes/16+most)), "run %d", run)
		}
	}
}

// A use is recorded at most once a minute.
func TestTouch(t *testing.T) {
	dir := privateDir(t)
	put(t, dir, 1)
	use := func() fs.FileInfo {
		_, _, err := Open(Options{Dir: dir}).Get(t.Context(), key(1), mustNotCompile(t))
		require.NoError(t, err)
		info, err := os.Stat(entryFile(dir, 1))
		require.NoError(t, err)
		return info
	}
	age(t, dir, 1, touchAfter/2)
	assert.WithinDuration(t, time.Now().Add(-touchAfter/2), use().ModTime(), touchAfter/4)
	age(t, dir, 1, 2*touchAfter)
	assert.WithinDuration(t, time.Now(), use().ModTime(), touchAfter/4)
	age(t, dir, 1, -time.Hour)
	assert.WithinDuration(t, time.Now(), use().ModTime(), touchAfter/4,
		"a time in the future, from a wrong clock, is corrected")
}
