//go:build unix

package tune

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// ends waits until a process has ended, whether or not its new parent has noticed.
func ends(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return syscall.Kill(pid, 0) == syscall.ESRCH || err == nil && strings.Contains(string(stat), ") Z ")
	}, 10*time.Second, time.Millisecond)
}

// lone waits for the one process that measures.
func lone(t *testing.T, starts string) int {
	t.Helper()
	require.Eventually(t, func() bool { return len(started(starts)) > 0 }, 10*time.Second, time.Millisecond)
	require.Len(t, started(starts), 1)
	return started(starts)[0]
}

// The process that measures has the lowest priority, and ends with the session; the next session begins again.
func TestFirstUseEndsWithTheSession(t *testing.T) {
	dir, starts := firstDirs(t)
	s, err := runtime.New(runtime.Config{CacheDir: dir, Tune: driver.TuneFirst, Validate: -1})
	require.NoError(t, err)
	_, err = multiply(t.Context(), s, runtime.F64, 24)
	require.NoError(t, err)
	pid := lone(t, starts)
	if stat := fmt.Sprintf("/proc/%d/task/*/stat", pid); hasProc(stat) {
		require.Eventually(t, func() bool { return slowest(t, stat) }, 10*time.Second, time.Millisecond)
	}
	start := time.Now()
	require.NoError(t, s.Close())
	assert.Less(t, time.Since(start), 5*time.Second, "it does not wait for the tuning")
	assert.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "when Close returns it has ended")
	left, err := filepath.Glob(filepath.Join(dir, "tuned", "*.*"))
	require.NoError(t, err)
	assert.Empty(t, left)

	again, d := using(t, dir, driver.TuneFirst)
	used(t, again, runtime.F64, 24)
	assert.Equal(t, 2, d.Choices().Of(napPause))
	assert.Len(t, started(starts), 2)
}

func hasProc(pattern string) bool {
	list, err := filepath.Glob(pattern)
	return err == nil && len(list) > 0
}

// slowest reports whether all threads have the lowest priority, in the format of proc(5).
func slowest(t *testing.T, pattern string) bool {
	t.Helper()
	list, err := filepath.Glob(pattern)
	require.NoError(t, err)
	for _, name := range list {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		if strings.Fields(rest)[16] != "19" {
			return false
		}
	}
	return len(list) > 0
}

// useProcess starts a process of its own that uses a device.
func useProcess(t *testing.T, dir, how string) (*exec.Cmd, *strings.Builder) {
	t.Helper()
	var out strings.Builder
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), useVariable+"="+dir+how)
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, &out
}

// A program that ends does not wait for a tuning, and leaves no process behind.
func TestFirstUseEndsWithTheProcess(t *testing.T) {
	dir, starts := firstDirs(t)
	cmd, out := useProcess(t, dir, " and goes")
	require.NoError(t, cmd.Wait(), out)
	ends(t, lone(t, starts))
	cmd, out = useProcess(t, dir, "")
	pid := 0
	require.Eventually(t, func() bool {
		if all := started(starts); len(all) > 1 {
			pid = all[1]
		}
		return pid > 0
	}, 10*time.Second, time.Millisecond)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait(), out)
	ends(t, pid)
	left, err := filepath.Glob(filepath.Join(dir, "tuned", "*.*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// Of two processes at once one tunes; a later one uses what it found.
func TestFirstUseOnce(t *testing.T) {
	dir, starts := firstDirs(t)
	one, first := useProcess(t, dir, "")
	two, second := useProcess(t, dir, "")
	require.NoError(t, one.Wait(), first)
	require.NoError(t, two.Wait(), second)
	assert.NotEmpty(t, first.String())
	assert.Equal(t, first.String(), second.String(), "the same bits")
	assert.Len(t, started(starts), 1)
	three, third := useProcess(t, dir, "")
	require.NoError(t, three.Wait(), third)
	assert.Equal(t, first.String(), third.String())
	assert.Len(t, started(starts), 1)
	_, d := using(t, dir, "")
	assert.Equal(t, 2, d.Choices().Of(napPause))
}
