package kernelcache

// Tests with disks that are full or read-only.

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func init() { roles["cramped"] = cramped }

// crowd uses a cache whose disk has no room for its entries, and checks that everything works from
// memory and that there is one warning.
func crowd(dir string) error {
	logger, buf := warnings()
	c := Open(Options{Dir: dir, Logger: logger})
	const keys = 8
	big := func(n int) Entry {
		return Entry{Binary: binary.LittleEndian.AppendUint64(make([]byte, 60_000), uint64(n))}
	}
	for range 2 {
		for n := range keys {
			e, _, err := c.Get(context.Background(), key(n), fixed(big(n)))
			if err != nil || string(e.Binary) != string(big(n).Binary) {
				return fmt.Errorf("key %d: %d bytes, error %w", n, len(e.Binary), err)
			}
		}
	}
	s := c.Stats()
	if s.Compiles != keys || s.MemoryHits != keys || s.DiskErrors == 0 {
		return fmt.Errorf("not from memory, or the disk had room: %+v", s)
	}
	if n := strings.Count(buf.String(), "level=WARN"); n != 1 {
		return fmt.Errorf("%d warnings: %s", n, buf)
	}
	if r, err := c.Verify(context.Background()); err != nil || len(r.Corrupt) != 0 {
		return fmt.Errorf("verify: %+v, error %w", r, err)
	}
	left, _ := os.ReadDir(filepath.Join(dir, "v3", "tmp"))
	if len(left) != 0 {
		return fmt.Errorf("%d temporary files stay", len(left))
	}
	return nil
}

// cramped is a child that may write only small files.
func cramped(dir string, _ plan) error {
	limit := unix.Rlimit{Cur: 4096, Max: 4096}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	return crowd(dir)
}

func TestDiskWithoutRoom(t *testing.T) {
	t.Run("file size limit", func(t *testing.T) {
		assert.NoError(t, child(t, "cramped", privateDir(t), plan{}).Run())
	})
	t.Run("full file system", func(t *testing.T) {
		dir := mounted(t, "size=128k")
		require.NoError(t, crowd(dir))
		n, _, err := Open(Options{Dir: dir}).Size()
		require.NoError(t, err)
		assert.Positive(t, n, "as many entries as fit are stored")
	})
	t.Run("no room for a name", func(t *testing.T) {
		dir := mounted(t, "size=1m,nr_inodes=8")
		put(t, dir, 1)
		for i := 0; ; i++ {
			if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600); err != nil {
				require.ErrorIs(t, err, unix.ENOSPC)
				break
			}
		}
		c := Open(Options{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
		_, hit, err := c.Get(t.Context(), key(1), mustNotCompile(t))
		require.NoError(t, err)
		assert.Equal(t, Disk, hit, "existing entries are read")
		_, hit, err = c.Get(t.Context(), key(2), fixed(entry(2)))
		require.NoError(t, err)
		assert.Equal(t, Compiled, hit)
	})
	t.Run("read-only file system", func(t *testing.T) {
		dir := mounted(t, "size=1m")
		put(t, dir, 1)
		logger, buf := warnings()
		c := Open(Options{Dir: dir, Logger: logger, MemoryBytes: -1})
		require.Empty(t, c.Stats().ReadOnly)
		require.NoError(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
		for range 2 {
			_, _, err := c.Get(t.Context(), key(2), fixed(entry(2)))
			require.NoError(t, err)
			_, hit, err := c.Get(t.Context(), key(1), mustNotCompile(t))
			require.NoError(t, err)
			assert.Equal(t, Disk, hit, "existing entries are still read")
		}
		assert.Contains(t, c.Stats().ReadOnly, "read-only")
		assert.Equal(t, 1, strings.Count(buf.String(), "level=WARN"), "%s", buf)
		readOnlyCache(t, dir, "read-only")
	})
	t.Run("read-only mount of a part of one", func(t *testing.T) {
		dir, there := privateDir(t), privateDir(t)
		put(t, there, 1)
		if err := unix.Mount(there, dir, "", unix.MS_BIND, ""); err != nil {
			t.Skipf("no mount of its own for a user who is not root: %v", err)
		}
		t.Cleanup(func() { assert.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
		require.NoError(t, unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
		readOnlyCache(t, dir, "read-only")
	})
	t.Run("read-only and empty", func(t *testing.T) {
		dir := mounted(t, "size=1m")
		require.NoError(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
		memoryOnly(t, dir, "read-only")
	})
}

// After the cache on a file system was closed, the file system can be unmounted, and the cache
// still works.
func TestCloseLetsGoOfTheDirectory(t *testing.T) {
	dir := mounted(t, "size=1m")
	c := Open(Options{Dir: dir})
	require.NoError(t, c.Close(), "nothing is open yet")
	_, _, err := c.Get(t.Context(), key(1), fixed(entry(1)))
	require.NoError(t, err)
	require.ErrorIs(t, unix.Unmount(dir, 0), unix.EBUSY)
	require.NoError(t, c.Close())
	require.NoError(t, c.Close(), "again")
	require.NoError(t, unix.Unmount(dir, 0))
	require.NoError(t, unix.Mount("none", dir, "tmpfs", 0, "mode=0700,size=1m"))
	_, _, err = c.Get(t.Context(), key(2), fixed(entry(2)))
	require.NoError(t, err)
	assert.FileExists(t, entryFile(dir, 2))
}

// mounted mounts a small file system, or skips the test if the user may not.
func mounted(t *testing.T, options string) string {
	dir := privateDir(t)
	if err := unix.Mount("none", dir, "tmpfs", 0, "mode=0700,"+options); err != nil {
		t.Skipf("no file system of its own for a user who is not root: %v", err)
	}
	// caches of the test may still have it open
	t.Cleanup(func() { assert.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// In a container whose user namespace maps only one user, the superuser's files seem to belong to
// an unknown user. The user's cache is still used.
func TestContainerWithoutTheSuperuser(t *testing.T) {
	dir, program := openToOthers(t)
	// Files of an unknown user below /tmp could belong to anyone.
	require.NoError(t, os.Chown(dir, victimID, victimID))
	require.NoError(t, os.Chown(filepath.Dir(dir), victimID, victimID))
	cache := mkdir(t, filepath.Join(dir, "cache"), victimID, 0o700)
	inside := func(dir string) map[string]int {
		cmd := as(child(t, "victim", dir, plan{Keys: 2}), program, 1000)
		cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 1000, HostID: victimID, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 1000, HostID: victimID, Size: 1}}
		cmd.SysProcAttr.Credential.NoSetGroups = true
		out, err := cmd.Output()
		if err != nil {
			t.Skipf("no user namespaces here: %v", err)
		}
		var seen map[string]int
		require.NoError(t, json.Unmarshal(out, &seen))
		return seen
	}
	assert.Equal(t, map[string]int{"compiled": 2}, inside(cache))
	assert.Equal(t, map[string]int{"disk": 2}, inside(cache))
	foreign := mkdir(t, filepath.Join(dir, "foreign"), attackerID, 0o755)
	require.NoError(t, forge(foreign))
	assert.Equal(t, map[string]int{"compiled": 2}, inside(foreign), "the directory itself has to be the user's")
}
