//go:build unix && !aix

package kernelcache

// Attacks on the disk layer by other users, to make this process run their code:
// through the directories on the path, through files that they create, through links.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

func init() { roles["victim"], roles["attacker"] = victim, attacker }

// The users of these tests. They need not exist in the system.
const victimID, attackerID = 54321, 54322

// forged returns the entry that an attacker wants to be run in place of every other.
func forged() Entry { return Entry{Binary: []byte("forged"), Label: "forged"} }

// forge makes a cache directory whose entries of the first keys are forged, and which
// all users can read.
func forge(dir string) error {
	for n := range 4 {
		path := entryFile(dir, n)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		e := forged()
		if err := os.WriteFile(path, append(encodeHead(key(n), e), e.Binary...), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// victim is a child that gets keys from caches that it opens again and again, and prints a count of
// the results.
func victim(dir string, p plan) error {
	seen := map[string]int{}
	for start := time.Now(); ; {
		c := Open(Options{Dir: dir, LockWait: -1, Logger: slog.New(slog.DiscardHandler)})
		for n := range p.Keys {
			e, hit, err := c.Get(context.Background(), key(n), fixed(entry(n)))
			if err != nil {
				return err
			}
			if e.Label == forged().Label {
				seen["forged"]++
			} else {
				seen[hit.String()]++
			}
		}
		if err := c.Close(); err != nil {
			return err
		}
		if time.Since(start) >= p.Wait {
			return json.NewEncoder(os.Stdout).Encode(seen)
		}
	}
}

// attacker is a child that exchanges a directory for a forged one and back, as fast as it can.
func attacker(dir string, p plan) error {
	own, away := filepath.Join(filepath.Dir(dir), "own"), filepath.Join(filepath.Dir(dir), "away")
	// The victim uses the directory itself, or the directory cache in it.
	if err := joined(forge(own), forge(filepath.Join(own, "cache"))); err != nil {
		return err
	}
	done := 0
	for start := time.Now(); time.Since(start) < p.Wait; {
		if os.Rename(dir, away) == nil && os.Rename(own, dir) == nil {
			done++
			time.Sleep(50 * time.Microsecond)
			_ = os.Rename(dir, own)
		}
		_ = os.Rename(away, dir)
	}
	fmt.Println(done)
	return nil
}

// openToOthers returns a directory that other users can access, and a copy of the test binary in
// it.
func openToOthers(t *testing.T) (dir, program string) {
	if os.Geteuid() != 0 {
		t.Skip("only root can run processes of two other users")
	}
	dir = t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	data, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	program = filepath.Join(dir, "kernelcache.test")
	require.NoError(t, os.WriteFile(program, data, 0o755))
	return dir, program
}

// as makes a child run as another user.
func as(cmd *exec.Cmd, program string, id uint32) *exec.Cmd {
	cmd.Path, cmd.Args[0], cmd.Dir = program, program, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
	return cmd
}

// saw runs a victim and returns its counts.
func saw(t *testing.T, program, dir string, p plan) map[string]int {
	t.Helper()
	out, err := as(child(t, "victim", dir, p), program, victimID).Output()
	require.NoError(t, err)
	var seen map[string]int
	require.NoError(t, json.Unmarshal(out, &seen))
	return seen
}

func mkdir(t *testing.T, path string, uid int, mode fs.FileMode) string {
	require.NoError(t, os.Mkdir(path, 0o700))
	require.NoError(t, os.Chown(path, uid, uid))
	require.NoError(t, os.Chmod(path, mode))
	return path
}

// Another user replaces the directory while it is in use.
func TestDirectoryIsExchangedByOthers(t *testing.T) {
	dir, program := openToOthers(t)
	for name, parent := range map[string]string{
		"by all":             mkdir(t, filepath.Join(dir, "all"), 0, 0o777),
		"by all, one's own":  mkdir(t, filepath.Join(dir, "own"), victimID, 0o777),
		"by its owner":       mkdir(t, filepath.Join(dir, "foreign"), attackerID, 0o755),
		"by sticky's owner":  mkdir(t, filepath.Join(dir, "sticky"), attackerID, 0o777|fs.ModeSticky),
		"above what is fine": mkdir(t, filepath.Join(mkdir(t, filepath.Join(dir, "above"), 0, 0o777), "fine"), 0, 0o755),
	} {
		t.Run(name, func(t *testing.T) {
			cache := mkdir(t, filepath.Join(parent, "cache"), victimID, 0o700)
			swapped := cache
			if name == "above what is fine" {
				swapped = parent
			}
			p := plan{Keys: 4, Wait: time.Second}
			if testing.Short() {
				p.Wait /= 4
			}
			running := as(child(t, "attacker", swapped, plan{Wait: p.Wait + time.Second}), program, attackerID)
			var exchanges strings.Builder
			running.Stdout = &exchanges
			require.NoError(t, running.Start())
			for range 2 {
				seen := saw(t, program, cache, p)
				assert.Zero(t, seen["forged"], "code of another user would have run: %v", seen)
				assert.Positive(t, seen["compiled"])
			}
			require.NoError(t, running.Wait())
			assert.NotEqual(t, "0\n", exchanges.String(), "nothing was attacked")
		})
	}
}

// In a directory with the sticky bit, such as /tmp, a directory of the user's own is used as
// anywhere else, and a directory that another user made there before is not.
func TestDirectoryInAStickyOne(t *testing.T) {
	dir, program := openToOthers(t)
	sticky := mkdir(t, filepath.Join(dir, "sticky"), 0, 0o777|fs.ModeSticky)
	cache := filepath.Join(sticky, "cache")
	assert.Equal(t, 4, saw(t, program, cache, plan{Keys: 4})["compiled"])
	assert.Equal(t, 4, saw(t, program, cache, plan{Keys: 4})["disk"])
	out, err := as(child(t, "attacker", cache, plan{Wait: 50 * time.Millisecond}), program, attackerID).Output()
	require.NoError(t, err)
	assert.Equal(t, "0\n", string(out), "the sticky bit does not work here")
	assert.Equal(t, 4, saw(t, program, cache, plan{Keys: 4})["disk"])

	link := filepath.Join(sticky, "link")
	require.NoError(t, os.Symlink("cache", link))
	require.NoError(t, os.Lchown(link, victimID, victimID))
	assert.Equal(t, 4, saw(t, program, link, plan{Keys: 4})["disk"], "a link of one's own is followed")
	require.NoError(t, os.Lchown(link, attackerID, attackerID))
	assert.Equal(t, 4, saw(t, program, link, plan{Keys: 4})["compiled"], "a link of another user is not")

	// The attacker made the directory first; the entries in it are readable and look valid.
	before := filepath.Join(sticky, "own")
	assert.Equal(t, 4, saw(t, program, before, plan{Keys: 4})["compiled"])
}

// All users use a cache of the superuser, and none of them can change it.
func TestDirectoryOfTheSuperuser(t *testing.T) {
	dir, program := openToOthers(t)
	cache := filepath.Join(dir, "cache")
	put(t, cache, 0, 1)
	require.NoError(t, filepath.WalkDir(cache, func(path string, e fs.DirEntry, err error) error {
		require.NoError(t, err)
		if e.IsDir() {
			return os.Chmod(path, 0o755)
		}
		return os.Chmod(path, 0o444)
	}))
	before := listing(t, cache)
	seen := saw(t, program, cache, plan{Keys: 4})
	assert.Equal(t, map[string]int{"disk": 2, "compiled": 2}, seen)
	assert.Equal(t, before, listing(t, cache))
}

// Files that other users created while they could, or can still write to, are not used, and are
// replaced.
func TestEntriesOfOthers(t *testing.T) {
	dir, program := openToOthers(t)
	cache := mkdir(t, filepath.Join(dir, "cache"), victimID, 0o700)
	foreign := filepath.Join(dir, "foreign")
	require.NoError(t, forge(foreign))
	elsewhere := filepath.Join(dir, "elsewhere")
	for name, plant := range map[string]func(path string) error{
		"another user's": func(path string) error {
			return joined(os.Chown(path, attackerID, attackerID), os.Chmod(path, 0o644))
		},
		"written by all": func(path string) error {
			return joined(os.Chown(path, victimID, victimID), os.Chmod(path, 0o666))
		},
		"written by the group": func(path string) error {
			return joined(os.Chown(path, victimID, victimID), os.Chmod(path, 0o620))
		},
		"another name for a file of the victim": func(path string) error {
			return joined(os.Chown(path, victimID, victimID), os.RemoveAll(elsewhere), os.Link(path, elsewhere))
		},
		"a link to a file of the victim": func(path string) error {
			return joined(os.Chown(path, victimID, victimID), os.RemoveAll(elsewhere), os.Rename(path, elsewhere),
				os.Symlink(elsewhere, path))
		},
		"a link to a file in the cache": func(path string) error {
			there := filepath.Join(filepath.Dir(path), "file")
			return joined(os.Chown(path, victimID, victimID), os.Rename(path, there), os.Symlink("file", path))
		},
		"a pipe": func(path string) error {
			return joined(os.Remove(path), syscall.Mkfifo(path, 0o600), os.Chown(path, victimID, victimID))
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, map[string]int{"compiled": 1}, saw(t, program, cache, plan{Keys: 1}))
			data, err := os.ReadFile(entryFile(foreign, 0))
			require.NoError(t, err)
			require.NoError(t, os.Remove(entryFile(cache, 0)))
			require.NoError(t, os.WriteFile(entryFile(cache, 0), data, 0o600))
			require.NoError(t, plant(entryFile(cache, 0)))
			assert.Equal(t, map[string]int{"compiled": 1}, saw(t, program, cache, plan{Keys: 1}))
			assert.Equal(t, map[string]int{"disk": 1}, saw(t, program, cache, plan{Keys: 1}), "replaced")
			require.NoError(t, os.Remove(entryFile(cache, 0)))
		})
	}
	// Changes of a directory that holds entries.
	for _, change := range []func(path string) error{
		func(path string) error { return os.Chown(path, attackerID, attackerID) },
		func(path string) error { return os.Chmod(path, 0o777) },
	} {
		require.NoError(t, os.RemoveAll(cache))
		mkdir(t, cache, victimID, 0o700)
		require.Equal(t, 1, saw(t, program, cache, plan{Keys: 1})["compiled"])
		require.NoError(t, change(filepath.Dir(entryFile(cache, 0))))
		assert.Equal(t, map[string]int{"compiled": 1}, saw(t, program, cache, plan{Keys: 1}))
	}
}

// A lock file of another user does not keep this user from taking the lock.
func TestLockOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may make files of others")
	}
	dir := privateDir(t)
	put(t, dir, 0)
	release := held(t, dir)
	defer release()
	require.NoError(t, os.Chown(filepath.Join(dir, "v3", "tmp", lockPrefix+key(1).String()), attackerID, -1))
	c := Open(Options{Dir: dir, LockWait: time.Minute})
	start := time.Now()
	_, hit, err := c.Get(t.Context(), key(1), fixed(entry(1)))
	require.NoError(t, err)
	assert.Equal(t, Compiled, hit)
	assert.Less(t, time.Since(start), 30*time.Second)
	assert.Zero(t, c.Stats().LockErrors)
}

func joined(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// The same with one user: the directories on the path, and their permissions.
func TestWayToTheDirectory(t *testing.T) {
	base := privateDir(t)
	at := func(mode fs.FileMode, names ...string) string {
		path := filepath.Join(append([]string{base}, names...)...)
		require.NoError(t, os.MkdirAll(path, 0o700))
		require.NoError(t, os.Chmod(path, mode))
		return path
	}
	for _, mode := range []fs.FileMode{0o777, 0o706, 0o702} {
		at(mode, "loose")
		memoryOnly(t, filepath.Join(base, "loose", "cache"), filepath.Join(base, "loose")+" has mode")
		at(0o700, "loose", "in", "between")
		memoryOnly(t, filepath.Join(base, "loose", "in", "between", "cache"), "others can write to it")
		only(t, filepath.Join(base, "loose"), "in")
		only(t, filepath.Join(base, "loose", "in", "between"))
	}
	at(0o777|fs.ModeSticky, "sticky")
	put(t, filepath.Join(base, "sticky", "cache"), 1)
	assert.FileExists(t, entryFile(filepath.Join(base, "sticky", "cache"), 1))

	// Links: the user's own, absolute and relative, several in a row, and through directories that
	// others can write to.
	put(t, at(0o700, "real"), 1)
	for name, target := range map[string]string{"absolute": filepath.Join(base, "real"), "relative": "real",
		"again":  "relative",
		"around": "sticky/../real", "new": "not/there/yet", "through": "loose/../real"} {
		require.NoError(t, os.Symlink(target, filepath.Join(base, name)))
	}
	for _, name := range []string{"absolute", "relative", "again", "around"} {
		c := Open(Options{Dir: filepath.Join(base, name)})
		_, hit, err := c.Get(t.Context(), key(1), mustNotCompile(t))
		require.NoError(t, err)
		assert.Equal(t, Disk, hit, name)
		assert.Equal(t, filepath.Join(base, name), c.Stats().Dir)
	}
	put(t, filepath.Join(base, "new"), 1)
	assert.FileExists(t, entryFile(filepath.Join(base, "not", "there", "yet"), 1))
	memoryOnly(t, filepath.Join(base, "through"), "others can write to it")
	require.NoError(t, os.Symlink("round", filepath.Join(base, "round")))
	memoryOnly(t, filepath.Join(base, "round"), "too many")
}

func only(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var there []string
	for _, e := range entries {
		there = append(there, e.Name())
	}
	assert.ElementsMatch(t, names, there)
}

// The directory that was opened is used, even if its path names another one afterwards.
func TestDirectoryIsHeld(t *testing.T) {
	parent := privateDir(t)
	dir, own := filepath.Join(parent, "cache"), filepath.Join(parent, "own")
	put(t, dir, 0)
	require.NoError(t, forge(own))
	c := Open(Options{Dir: dir, MemoryBytes: -1, LockWait: -1})
	_, _, err := c.Get(t.Context(), key(0), mustNotCompile(t))
	require.NoError(t, err)
	require.NoError(t, os.Rename(dir, filepath.Join(parent, "away")))
	require.NoError(t, os.Rename(own, dir))
	require.NoError(t, os.Chmod(parent, 0o777))
	t.Cleanup(func() { _ = os.Chmod(parent, 0o700) })
	for n, want := range []Hit{Disk, Compiled, Compiled} {
		e, hit, err := c.Get(t.Context(), key(n), fixed(entry(n)))
		require.NoError(t, err)
		assert.Equal(t, want, hit)
		assert.Equal(t, entry(n), e)
	}
	assert.FileExists(t, entryFile(filepath.Join(parent, "away"), 1), "and it is written to")
	data, err := os.ReadFile(entryFile(dir, 1))
	require.NoError(t, err)
	assert.Contains(t, string(data), "forged", "nothing is written to the other one")
	// The next check finds that others can write to it.
	memoryOnly(t, dir, "others can write to it")
}

// With every umask the owner can use the directory.
func TestUmask(t *testing.T) {
	for _, mask := range []int{0, 0o002, 0o022, 0o077} {
		dir := filepath.Join(privateDir(t), "not", "yet")
		old := syscall.Umask(mask)
		put(t, dir, 1)
		syscall.Umask(old)
		require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			require.NoError(t, err)
			info, err := e.Info()
			assert.Zero(t, info.Mode().Perm()&0o077, "%s with mask %03o", strings.TrimPrefix(path, dir), mask)
			return err
		}))
		_, hit, err := Open(Options{Dir: dir}).Get(t.Context(), key(1), mustNotCompile(t))
		require.NoError(t, err)
		assert.Equal(t, Disk, hit)
	}
}

// Bundles that other users could have written are skipped, and other bundles beside them are used.
func TestBundlesOfOthers(t *testing.T) {
	var bundle bytes.Buffer
	dir := privateDir(t)
	put(t, dir, 1)
	_, err := Open(Options{Dir: dir}).Export(&bundle, nil)
	require.NoError(t, err)
	changes := map[string]func(file, dir string) error{
		"a file that all can write":      func(file, _ string) error { return os.Chmod(file, 0o666) },
		"a directory that all can write": func(_, dir string) error { return os.Chmod(dir, 0o777) },
	}
	if os.Geteuid() == 0 {
		changes["a file of another user"] = func(file, _ string) error { return os.Chown(file, attackerID, -1) }
		changes["a directory of another user"] = func(_, dir string) error { return os.Chown(dir, attackerID, -1) }
	}
	for name, change := range changes {
		for _, late := range []bool{false, true} {
			built := filepath.Join(privateDir(t), "built")
			require.NoError(t, os.Mkdir(built, 0o755))
			path := filepath.Join(built, "a.bundle")
			require.NoError(t, os.WriteFile(path, bundle.Bytes(), 0o644))
			logger, buf := warnings()
			c := Open(Options{Bundles: os.DirFS(built), Logger: logger})
			if late { // indexed while it was trusted
				_, hit, err := c.Get(t.Context(), key(2), fixed(entry(2)))
				require.NoError(t, err)
				require.Equal(t, Compiled, hit)
			}
			require.NoError(t, change(path, built))
			_, hit, err := c.Get(t.Context(), key(1), fixed(entry(1)))
			require.NoError(t, err)
			if late && strings.HasPrefix(name, "a directory") {
				continue // the file itself is unchanged
			}
			assert.Equal(t, Compiled, hit, name)
			assert.Equal(t, 1, strings.Count(buf.String(), "level=WARN"), "%s", buf)
			assert.EqualValues(t, 1, c.Stats().Corrupt)
		}
	}
	// Bundles in the user's own directory, and built into the program, are used.
	for _, fsys := range []fs.FS{fstest.MapFS{"a.bundle": {Data: bundle.Bytes(), Mode: 0o666}},
		os.DirFS(writeBundle(t, bundle.Bytes()))} {
		_, hit, err := Open(Options{Bundles: fsys}).Get(t.Context(), key(1), mustNotCompile(t))
		require.NoError(t, err)
		assert.Equal(t, Bundled, hit)
	}
}

func writeBundle(t *testing.T, data []byte) string {
	dir := privateDir(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.bundle"), data, 0o600))
	return dir
}

// A file that other users could have replaced is not imported; a copy of it is.
func TestImportOfAFileOfOthers(t *testing.T) {
	dir := privateDir(t)
	put(t, dir, 1)
	var bundle bytes.Buffer
	_, err := Open(Options{Dir: dir}).Export(&bundle, nil)
	require.NoError(t, err)
	imported := func(path string) error {
		f, err := os.Open(path)
		require.NoError(t, err)
		defer f.Close()
		c := Open(Options{Dir: privateDir(t)})
		moved, err := c.Import(f)
		n, _, sizeErr := c.Size()
		require.NoError(t, sizeErr)
		assert.Equal(t, moved.Entries, n)
		assert.Equal(t, err == nil, n == 1)
		return err
	}
	loose := filepath.Join(privateDir(t), "loose")
	require.NoError(t, os.Mkdir(loose, 0o700))
	path := filepath.Join(loose, "a.bundle")
	require.NoError(t, os.WriteFile(path, bundle.Bytes(), 0o644))
	require.NoError(t, imported(path))
	require.NoError(t, os.Chmod(loose, 0o777))
	err = imported(path)
	assert.ErrorIs(t, err, driver.ErrUnsupported)
	assert.ErrorContains(t, err, loose+" has mode 0777")
	require.NoError(t, os.Chmod(loose, 0o777|fs.ModeSticky))
	require.NoError(t, imported(path), "as in /tmp")
	require.NoError(t, os.Chmod(path, 0o666))
	assert.ErrorContains(t, imported(path), "others can write to it")
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chmod(path, 0o644))
		require.NoError(t, os.Chown(path, attackerID, -1))
		assert.ErrorContains(t, imported(path), "belongs to user 54322")
	}
}
