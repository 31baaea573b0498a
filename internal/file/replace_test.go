package file

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

func read(t testing.TB, path string) string {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

// only demands that a directory holds these names and nothing else.
func only(t testing.TB, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var have []string
	for _, e := range entries {
		have = append(have, e.Name())
	}
	assert.ElementsMatch(t, names, have)
}

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plain"), nil, 0o666))
	require.NoError(t, Replace(path, text("one")))
	assert.Equal(t, "one", read(t, path))
	plain, err := os.Stat(filepath.Join(dir, "plain"))
	require.NoError(t, err)
	made, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, plain.Mode(), made.Mode(), "a new file is like any other")

	for _, mode := range []fs.FileMode{0o600, 0o640, 0o755, 0o666, 0o200} {
		require.NoError(t, os.Chmod(path, mode))
		require.NoError(t, Replace(path, text(mode.String())))
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, mode, info.Mode())
		require.NoError(t, os.Chmod(path, 0o600))
		assert.Equal(t, mode.String(), read(t, path))
	}
	require.NoError(t, Replace(path, text("")))
	assert.Empty(t, read(t, path))
	long := strings.Repeat("n", 255)
	require.NoError(t, Replace(filepath.Join(dir, long), text("x")), "the temporary name is no longer")
	only(t, dir, "a", "plain", long)
}

func TestReplaceOfARelativePath(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("below", 0o755))
	for _, path := range []string{"a", "./b", "below/c", "below/../d"} {
		require.NoError(t, Replace(path, text(path)))
		assert.Equal(t, path, read(t, path))
	}
	only(t, ".", "a", "b", "d", "below")
}

// Whatever goes wrong, the file is what it was, and nothing lies beside it.
func TestReplaceThatFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	boom := errors.New("boom")
	half := func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return boom
	}
	assert.Same(t, boom, Replace(path, half))
	only(t, dir)
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	assert.Same(t, boom, Replace(path, half))
	assert.Panics(t, func() { _ = Replace(path, func(io.Writer) error { panic(boom) }) })
	assert.Equal(t, "old", read(t, path))
	only(t, dir, "a")

	out, err := Create(path)
	require.NoError(t, err)
	require.NoError(t, out.Close())
	require.NoError(t, out.Close(), "again")
	_, err = out.Write([]byte("x"))
	assert.ErrorIs(t, err, fs.ErrClosed)
	assert.ErrorIs(t, out.Commit(), fs.ErrClosed)
	only(t, dir, "a")

	for bad, want := range map[string]error{
		"": fs.ErrNotExist, dir: syscall.EISDIR, dir + "/no/file": fs.ErrNotExist, path + "/x": syscall.ENOTDIR,
		dir + "/new/": syscall.EISDIR,
	} {
		err := Replace(bad, text("x"))
		assert.ErrorIs(t, err, want, bad)
		e, ok := errors.AsType[*fs.PathError](err)
		require.True(t, ok)
		assert.Equal(t, bad, e.Path)
	}
	only(t, dir, "a")
}

func TestReplaceOfAReadOnlyFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o400))
	assert.ErrorIs(t, Replace(path, text("new")), fs.ErrPermission)
	assert.Equal(t, "old", read(t, path))
	require.NoError(t, os.Symlink(path, filepath.Join(dir, "link")))
	assert.ErrorIs(t, Replace(filepath.Join(dir, "link"), text("new")), fs.ErrPermission)
	only(t, dir, "a", "link")
}

func TestReplaceThroughLinks(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "x", "y"), 0o755))
	link := func(target, name string) string {
		name = filepath.Join(dir, name)
		require.NoError(t, os.Symlink(target, name))
		return name
	}
	there := filepath.Join(dir, "there")
	require.NoError(t, os.WriteFile(there, []byte("old"), 0o600))
	require.NoError(t, Replace(link("there", "one"), text("new")))
	assert.Equal(t, "new", read(t, there))
	require.NoError(t, Replace(link("x/new", "dangling"), text("made")))
	assert.Equal(t, "made", read(t, filepath.Join(dir, "x", "new")))
	link("x/y", "deep")
	require.NoError(t, Replace(link("deep/../up", "again"), text("up")), "the directory above x/y is x")
	assert.Equal(t, "up", read(t, filepath.Join(dir, "x", "up")))
	for _, name := range []string{"one", "dangling", "again"} {
		info, err := os.Lstat(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Equal(t, fs.ModeSymlink, info.Mode().Type(), "a link stays")
	}
	assert.ErrorIs(t, Replace(link("no/such", "nowhere"), text("x")), fs.ErrNotExist)
	assert.ErrorIs(t, Replace(link("round", "round"), text("x")), syscall.ELOOP)
	only(t, dir, "there", "one", "dangling", "again", "nowhere", "round", "x", "deep")
}

// Readers see one whole text or another, and writers at the same time do not mix.
func TestReplaceIsSeenWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	texts := []string{strings.Repeat("a", 50_000), strings.Repeat("b", 70_000), ""}
	require.NoError(t, Replace(path, text("")))
	var writers, readers sync.WaitGroup
	var done atomic.Bool
	for _, s := range texts {
		writers.Go(func() {
			for range 20 {
				assert.NoError(t, Replace(path, text(s)))
			}
		})
	}
	readers.Go(func() {
		for !done.Load() {
			data, err := os.ReadFile(path)
			assert.NoError(t, err)
			assert.True(t, string(data) == texts[0] || string(data) == texts[1] || len(data) == 0, "%d bytes", len(data))
		}
	})
	writers.Wait()
	done.Store(true)
	readers.Wait()
	only(t, dir, "a")
}
