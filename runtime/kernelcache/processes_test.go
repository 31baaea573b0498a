//go:build unix && !aix

package kernelcache

// Tests with several processes on one directory, and processes that are killed.
// CACHE_TEST_FULL=1 runs them in their full size; otherwise they are shorter.

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Environment variables that make a process of this test a child, with its role and its plan.
const (
	roleVariable = "KERNELCACHE_TEST_ROLE"
	dirVariable  = "KERNELCACHE_TEST_DIR"
	planVariable = "KERNELCACHE_TEST_PLAN"
)

var roles = map[string]func(dir string, p plan) error{"ask": ask, "publish": publish}

// plan is the work of a child.
type plan struct {
	Keys, Goroutines int
	Compile, Wait    time.Duration
}

type childReport struct {
	Stats  Stats
	Errors []string
}

func TestMain(m *testing.M) {
	role := roles[os.Getenv(roleVariable)]
	if role == nil {
		os.Exit(m.Run())
	}
	var p plan
	err := json.Unmarshal([]byte(os.Getenv(planVariable)), &p)
	if err == nil {
		err = role(os.Getenv(dirVariable), p)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func child(t testing.TB, role, dir string, p plan) *exec.Cmd {
	text, err := json.Marshal(p)
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role, dirVariable+"="+dir, planVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	return cmd
}

// payload is an entry of up to 64 KB whose every byte depends on its number.
func payload(n int) Entry {
	random := rand.NewChaCha8([32]byte(KeyOf(F("payload", strconv.Itoa(n)))))
	b := make([]byte, random.Uint64()%(64<<10))
	_, _ = random.Read(b) // never fails
	return Entry{Binary: b, Log: strconv.Itoa(n), Label: "payload " + strconv.Itoa(n)}
}

// ask is a child whose goroutines each get all keys in a different order, as soon as the parent
// closes its input.
func ask(dir string, p plan) error {
	c := Open(Options{Dir: dir, LockWait: p.Wait})
	var r childReport
	var mu sync.Mutex
	wrong := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		r.Errors = append(r.Errors, fmt.Sprintf(format, args...))
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	var wg sync.WaitGroup
	for range p.Goroutines {
		wg.Go(func() {
			for _, k := range rand.Perm(p.Keys) {
				e, _, err := c.Get(context.Background(), key(k), func(context.Context) (Entry, error) {
					time.Sleep(p.Compile)
					return payload(k), nil
				})
				if want := payload(k); err != nil || string(e.Binary) != string(want.Binary) || e.Label != want.Label {
					wrong("key %d: %d bytes labelled %q, error %v", k, len(e.Binary), e.Label, err)
				}
			}
		})
	}
	wg.Wait()
	r.Stats = c.Stats()
	return json.NewEncoder(os.Stdout).Encode(r)
}

// askTogether runs several such children at once and adds up their reports.
func askTogether(t *testing.T, dir string, processes int, p plan) (sum Stats) {
	var starts []io.Closer
	var outs []*bufio.Reader
	for range processes {
		cmd := child(t, "ask", dir, p)
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Wait() })
		starts, outs = append(starts, in), append(outs, bufio.NewReader(out))
	}
	for _, out := range outs {
		line, err := out.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "ready\n", line)
	}
	for _, start := range starts {
		require.NoError(t, start.Close())
	}
	for _, out := range outs {
		var r childReport
		require.NoError(t, json.NewDecoder(out).Decode(&r))
		assert.Empty(t, r.Errors)
		assert.Zero(t, r.Stats.DiskErrors+r.Stats.Corrupt+r.Stats.LockErrors)
		assert.Empty(t, r.Stats.DiskOff)
		sum.Compiles += r.Stats.Compiles
		sum.DiskHits += r.Stats.DiskHits
		sum.LockTimeouts += r.Stats.LockTimeouts
	}
	return sum
}

func TestProcessesCompileEachKeyOnce(t *testing.T) {
	processes, p := 4, plan{Keys: 12, Goroutines: 16, Compile: 10 * time.Millisecond}
	if inFull() {
		processes, p = 16, plan{Keys: 50, Goroutines: 64, Compile: 20 * time.Millisecond}
	}
	dir := privateDir(t)
	start := time.Now()
	sum := askTogether(t, dir, processes, p)
	t.Logf("%d processes of %d goroutines, %d keys: %d compiles, %d disk hits in %v",
		processes, p.Goroutines, p.Keys, sum.Compiles, sum.DiskHits, time.Since(start))
	assert.EqualValues(t, p.Keys, sum.Compiles, "exactly one compile for each key")
	assert.EqualValues(t, (processes-1)*p.Keys, sum.DiskHits, "the others found it")
	assert.Zero(t, sum.LockTimeouts)
	assert.Empty(t, locks(t, dir))
}

func TestProcessesThatWaitTooShort(t *testing.T) {
	processes, p := 4, plan{Keys: 6, Goroutines: 16, Compile: 300 * time.Millisecond, Wait: time.Millisecond}
	if inFull() {
		processes, p = 16, plan{Keys: 50, Goroutines: 64, Compile: 100 * time.Millisecond, Wait: time.Millisecond}
	}
	dir := privateDir(t)
	sum := askTogether(t, dir, processes, p)
	t.Logf("%d compiles of %d keys", sum.Compiles, p.Keys)
	assert.Greater(t, sum.Compiles, int64(p.Keys))
	assert.LessOrEqual(t, sum.Compiles, int64(processes*p.Keys), "once in each process at most")
	assert.Positive(t, sum.LockTimeouts)
	report, err := Open(Options{Dir: dir}).Verify(t.Context())
	require.NoError(t, err)
	assert.Equal(t, p.Keys, report.Checked)
	assert.Empty(t, report.Corrupt)
}

// publish is a child that compiles and stores entries without end, and prints each.
func publish(dir string, p plan) error {
	c := Open(Options{Dir: dir, MemoryBytes: -1, LockWait: p.Wait})
	for {
		n := rand.IntN(p.Keys)
		c.Evict(key(n))
		_, hit, err := c.Get(context.Background(), key(n), fixed(payload(n)))
		if err != nil {
			return err
		}
		if hit == Compiled {
			fmt.Println("published")
		}
	}
}

// Processes that are killed at any moment leave only valid entries, and do not block other
// processes.
func TestKilledWhilePublishing(t *testing.T) {
	publishes := 150
	if inFull() {
		publishes = 1000
	}
	dir := privateDir(t)
	p := plan{Keys: 40, Wait: 100 * time.Millisecond}
	told, kills := 0, 0
	for ; told < publishes; kills++ {
		cmd := child(t, "publish", dir, p)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			told++
			if n == 0 { // from now on it publishes all the time
				time.AfterFunc(time.Duration(rand.IntN(int(40*time.Millisecond))), func() { _ = cmd.Process.Kill() })
			}
		}
		var died *exec.ExitError
		require.ErrorAs(t, cmd.Wait(), &died)
		require.Equal(t, syscall.SIGKILL, died.Sys().(syscall.WaitStatus).Signal())
		readAll(t, dir, p.Keys)
	}
	c := Open(Options{Dir: dir})
	report, err := c.Verify(t.Context())
	require.NoError(t, err)
	assert.Empty(t, report.Corrupt)
	left, err := os.ReadDir(filepath.Join(dir, "v3", "tmp"))
	require.NoError(t, err)
	t.Logf("%d publishes, %d kills, %d entries, %d leftovers", told, kills, report.Checked, len(left))
	// Files that killed processes left behind do not make a compile fail or wait until its limit.
	for n := range p.Keys {
		c.Evict(key(n))
		_, hit, err := c.Get(t.Context(), key(n), fixed(payload(n)))
		require.NoError(t, err)
		require.Equal(t, Compiled, hit)
	}
	assert.Zero(t, c.Stats().LockTimeouts)
}

// readAll checks that every entry that can be read is right, byte by byte.
func readAll(t *testing.T, dir string, keys int) {
	c := Open(Options{Dir: dir})
	missing := errors.New("not there")
	for n := range keys {
		e, _, err := c.Get(t.Context(), key(n), fails(missing))
		if err != nil {
			require.ErrorIs(t, err, missing)
			continue
		}
		require.Equal(t, payload(n), e)
	}
	require.Zero(t, c.Stats().Corrupt, "a file with an entry's name is always complete")
	require.Zero(t, c.Stats().LockTimeouts, "the dead hold no locks")
}
