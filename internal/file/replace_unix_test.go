//go:build unix

package file

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is no regular file is written to.
func TestReplaceWritesToDevicesAndPipes(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	done := make(chan string)
	go func() {
		data, _ := os.ReadFile(pipe)
		done <- string(data)
	}()
	require.NoError(t, Replace(pipe, text("through")))
	assert.Equal(t, "through", <-done)
	only(t, dir, "pipe")
	if _, err := os.Stat("/dev/full"); err == nil {
		assert.ErrorIs(t, Replace("/dev/full", text("x")), syscall.ENOSPC)
	}
	require.NoError(t, Replace(os.DevNull, text("x")))
	info, err := os.Stat(os.DevNull)
	require.NoError(t, err)
	assert.False(t, info.Mode().IsRegular())
}

// Standard output that was sent to a file goes on where it is.
func TestReplaceOfStandardOutput(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	f, err := os.Create(path)
	require.NoError(t, err)
	defer f.Close()
	defer func(old *os.File) { os.Stdout = old }(os.Stdout)
	os.Stdout = f
	for _, s := range []string{"first ", "second "} {
		require.NoError(t, Replace(path, text(s)))
	}
	_, err = io.WriteString(os.Stdout, "third")
	require.NoError(t, err)
	assert.Equal(t, "first second third", read(t, path))
}

func TestReplaceKeepsTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may make files of others")
	}
	path := filepath.Join(t.TempDir(), "a")
	require.NoError(t, os.WriteFile(path, nil, 0o640))
	require.NoError(t, os.Chown(path, 12345, 23456))
	require.NoError(t, Replace(path, text("new")))
	info, err := os.Stat(path)
	require.NoError(t, err)
	sys := info.Sys().(*syscall.Stat_t)
	assert.EqualValues(t, 12345, sys.Uid)
	assert.EqualValues(t, 23456, sys.Gid)
	assert.EqualValues(t, 0o640, info.Mode().Perm())
}

// No room: the old file stays.
func TestReplaceWithoutRoom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
	small := limit
	small.Cur = 4096
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small))
	err := Replace(path, text(strings.Repeat("x", 10_000)))
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	assert.ErrorIs(t, err, syscall.EFBIG)
	assert.Equal(t, "old", read(t, path))
	only(t, filepath.Dir(path), "a")
}
