//go:build unix

package file

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is replaced is what was looked at: a link that comes in between leads nowhere else.
func TestReplaceWhileALinkComesAndGoes(t *testing.T) {
	dir := t.TempDir()
	kept, out := filepath.Join(dir, "kept"), filepath.Join(mkdir(t, 0o700, dir, "shared"), "out")
	require.NoError(t, os.WriteFile(kept, []byte("kept"), 0o400))
	end, ended := make(chan bool), make(chan bool)
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			default:
				_ = os.Symlink(kept, out)
				_ = os.Remove(out)
			}
		}
	}()
	defer func() {
		close(end)
		<-ended
	}()
	for start := time.Now(); time.Since(start) < time.Second; {
		_ = Replace(out, text("new")) // it may refuse the link
		require.Equal(t, "kept", read(t, kept), "nobody may write to it")
	}
}

// In a directory like /tmp another user's link would choose what is replaced.
func TestReplaceThroughALinkOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may make links of others")
	}
	dir := t.TempDir()
	link := filepath.Join(mkdir(t, 0o777|fs.ModeSticky, dir, "shared"), "out")
	require.NoError(t, os.Symlink("../new", link))
	require.NoError(t, os.Lchown(link, stranger, stranger))
	assert.ErrorIs(t, Replace(link, text("x")), fs.ErrPermission)
	assert.NoFileExists(t, filepath.Join(dir, "new"))
	require.NoError(t, os.Lchown(link, os.Geteuid(), -1))
	require.NoError(t, Replace(link, text("x")))
	assert.FileExists(t, filepath.Join(dir, "new"))
}
