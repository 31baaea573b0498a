//go:build unix

package file

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

// stranger is a user that no test runs as.
const stranger = 54323

// private is a directory that is trusted whatever the mask of new files is.
func private(t testing.TB) string {
	dir := filepath.Join(t.TempDir(), "own")
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o700))
	require.NoError(t, os.Mkdir(dir, 0o700))
	return dir
}

func mkdir(t testing.TB, mode fs.FileMode, names ...string) string {
	path := filepath.Join(names...)
	require.NoError(t, os.MkdirAll(path, 0o700))
	require.NoError(t, os.Chmod(path, mode))
	return path
}

func TestTempDir(t *testing.T) {
	base := private(t)
	made := func(tmp string) string {
		t.Helper()
		t.Setenv("TMPDIR", tmp)
		dir, err := TempDir("concord-test-")
		require.NoError(t, err)
		t.Cleanup(func() { os.RemoveAll(dir) })
		info, err := os.Lstat(dir)
		require.NoError(t, err)
		assert.EqualValues(t, 0o700, info.Mode().Perm())
		assert.True(t, filepath.IsAbs(dir) && strings.HasPrefix(filepath.Base(dir), "concord-test-"))
		return filepath.Dir(dir)
	}
	real, err := filepath.EvalSymlinks(base)
	require.NoError(t, err)
	assert.Equal(t, real, made(base))
	sticky := mkdir(t, 0o777|fs.ModeSticky, real, "sticky")
	assert.Equal(t, sticky, made(sticky))
	require.NoError(t, os.Symlink("sticky", filepath.Join(real, "link")))
	assert.Equal(t, sticky, made(filepath.Join(real, "link")))
	t.Chdir(real)
	assert.Equal(t, sticky, made("link"))

	for _, mode := range []fs.FileMode{0o777, 0o706, 0o702} {
		loose := mkdir(t, mode, real, "loose")
		for _, dir := range []string{loose, mkdir(t, 0o700, loose, "below"), filepath.Join(loose, "..", "loose", "below")} {
			assert.NotContains(t, made(dir), real, "mode %04o", mode)
		}
		only(t, loose, "below")
		only(t, filepath.Join(loose, "below"))
	}
	defer func(old []string) { tempDirs = old }(tempDirs)
	tempDirs = nil
	t.Setenv("TMPDIR", filepath.Join(real, "loose"))
	_, err = TempDir("concord-test-")
	assert.ErrorIs(t, err, driver.ErrUnsupported)
	assert.ErrorContains(t, err, "others can write to it")
	t.Setenv("TMPDIR", filepath.Join(real, "not there"))
	_, err = TempDir("concord-test-")
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

func TestCheckOpen(t *testing.T) {
	base := private(t)
	path := filepath.Join(base, "a")
	require.NoError(t, os.WriteFile(path, []byte("text"), 0o644))
	judge := func(path string) error {
		f, err := os.Open(path)
		require.NoError(t, err)
		defer f.Close()
		return CheckOpen(f)
	}
	good := func(path string) {
		t.Helper()
		assert.NoError(t, judge(path))
	}
	bad := func(path, why string) {
		t.Helper()
		err := judge(path)
		assert.ErrorIs(t, err, driver.ErrUnsupported)
		assert.ErrorContains(t, err, why)
	}
	good(path)
	require.NoError(t, os.Symlink("a", filepath.Join(base, "link")))
	good(filepath.Join(base, "link"))
	t.Chdir(base)
	good("link")
	good("./../own/a")

	require.NoError(t, os.Chmod(path, 0o646))
	bad(path, "others can write to it")
	require.NoError(t, os.Chmod(path, 0o644))
	loose := mkdir(t, 0o777, base, "loose")
	require.NoError(t, os.Symlink(path, filepath.Join(loose, "link")))
	bad(filepath.Join(loose, "link"), "loose has mode 0777")
	bad("loose/../a", "loose has mode 0777")
	sticky := mkdir(t, 0o777|fs.ModeSticky, base, "sticky")
	require.NoError(t, os.Link(path, filepath.Join(sticky, "a")))
	good(filepath.Join(sticky, "a"))
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(path, stranger, stranger))
		bad(path, "belongs to user 54323")
	}

	// Exchanged, and gone.
	path = filepath.Join(base, "b")
	require.NoError(t, os.WriteFile(path, nil, 0o644))
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, os.Remove(path))
	assert.NoError(t, CheckOpen(f))
	require.NoError(t, os.WriteFile(path, nil, 0o644))
	assert.ErrorContains(t, CheckOpen(f), "exchanged")
}

// What comes through a pipe lies nowhere; a pipe with a name may be another user's.
func TestCheckOpenOfAPipe(t *testing.T) {
	if _, err := os.Stat("/dev/fd/0"); err != nil {
		t.Skip(err)
	}
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	_, err = w.WriteString("text")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	assert.NoError(t, CheckOpen(r))
	f, err := os.Open("/dev/fd/" + strconv.Itoa(int(r.Fd())))
	require.NoError(t, err)
	defer f.Close()
	assert.NoError(t, CheckOpen(f))
	if os.Geteuid() != 0 {
		return
	}
	named := filepath.Join(private(t), "pipe")
	require.NoError(t, syscall.Mkfifo(named, 0o666))
	require.NoError(t, os.Chown(named, stranger, stranger))
	f, err = os.OpenFile(named, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	assert.ErrorContains(t, CheckOpen(f), "belongs to user 54323")
}

// A container in which the superuser has no number: whose is the root is trusted on the
// way, and nowhere else.
func TestOwnerOfTheRoot(t *testing.T) {
	dir := func(mode fs.FileMode, uid uint32) fs.FileInfo {
		return described{mode: fs.ModeDir | mode, sys: &syscall.Stat_t{Uid: uid}}
	}
	w := way{above: 64999}
	require.NoError(t, w.step("/", dir(0o755, 64999)))
	require.NoError(t, w.step("/home", dir(0o755, 64999)))
	require.NoError(t, w.step("/home/me", dir(0o700, uint32(os.Geteuid()))))
	require.NoError(t, w.step("/tmp", dir(0o777|fs.ModeSticky, 64999)))
	assert.Error(t, w.step("/tmp/theirs", dir(0o700, 64999)), "anybody's")
	require.NoError(t, w.step("/tmp/mine", dir(0o700, uint32(os.Geteuid()))))
	assert.Error(t, w.step("/tmp/mine/other", dir(0o700, stranger)))
	assert.Error(t, check("/home", dir(0o755, 64999)))
}

type described struct {
	fs.FileInfo
	mode fs.FileMode
	sys  any
}

func (d described) Mode() fs.FileMode { return d.mode }
func (d described) IsDir() bool       { return d.mode.IsDir() }
func (d described) Sys() any          { return d.sys }

// A file that another process of this user replaces by a new one is found as it was before
// or as it is after.
func TestOpenInWhileAFileIsReplaced(t *testing.T) {
	dir := mkdir(t, 0o700, t.TempDir(), "trusted")
	root, err := OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	path := filepath.Join(dir, "a")
	require.NoError(t, os.WriteFile(path, []byte("0"), 0o600))
	end, ended := make(chan bool), make(chan bool)
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			default:
				_ = os.WriteFile(path+".new", []byte("1"), 0o600)
				_ = os.Rename(path+".new", path)
			}
		}
	}()
	defer func() {
		close(end)
		<-ended
	}()
	for range 2000 {
		f, _, err := OpenIn(root, "a")
		require.NoError(t, err)
		f.Close()
	}
}
