package file

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// temps returns the temporary files in a directory.
func temps(t *testing.T, dir string) []string {
	list, err := filepath.Glob(filepath.Join(dir, tempPrefix+"*"))
	require.NoError(t, err)
	return list
}

// dieWriting is a variable that makes this binary write to a file and die.
const dieWriting = "_CONCORD_TEST_DIE_WRITING"

func TestMain(m *testing.M) {
	if path := os.Getenv(dieWriting); path != "" {
		o, err := Create(path)
		if err == nil {
			_, err = o.Write([]byte("half"))
		}
		if self, findErr := os.FindProcess(os.Getpid()); err == nil && findErr == nil {
			_ = self.Kill() // it does not return
		}
		os.Exit(3)
	}
	os.Exit(m.Run())
}

// What a process leaves that is killed while it writes is removed by the next that writes there, and what
// others write at the time is not.
func TestCreateSweepsAfterDeath(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), dieWriting+"="+filepath.Join(dir, "a"))
		require.Error(t, cmd.Run())
		require.Len(t, temps(t, dir), 1, "of the last one alone")
	}
	one, err := Create(filepath.Join(dir, "a"))
	require.NoError(t, err)
	alive := temps(t, dir)
	require.Len(t, alive, 1)
	two, err := Create(filepath.Join(dir, "a"))
	require.NoError(t, err)
	assert.Len(t, temps(t, dir), 2)
	for _, o := range []*Output{one, two} {
		_, err := o.Write([]byte("whole"))
		require.NoError(t, err)
		require.NoError(t, o.Commit())
	}
	assert.Empty(t, temps(t, dir))

	// A file of another machine, or of this one before it was started again, may be in use.
	other := filepath.Join(dir, tempPrefix+"ABCDEFGH"+"ABCDEFGHIJKLMNOPQR")
	require.NoError(t, os.WriteFile(other, nil, 0o600))
	require.NoError(t, Replace(filepath.Join(dir, "a"), text("b")))
	assert.Equal(t, []string{other}, temps(t, dir))
}

// Many that write in one directory do not remove each other's files.
func TestCreateAtOnce(t *testing.T) {
	dir := t.TempDir()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 200 {
				assert.NoError(t, Replace(filepath.Join(dir, "a"), text("a")))
			}
		})
	}
	group.Wait()
	assert.Empty(t, temps(t, dir))
}
