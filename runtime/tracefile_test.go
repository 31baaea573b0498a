package runtime

import (
	"bytes"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func readTrace(t *testing.T, name string) []profile.Event {
	t.Helper()
	return readWholeTrace(t, name).Events
}

func readWholeTrace(t *testing.T, name string) profile.Trace {
	t.Helper()
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	trace, err := profile.ReadTrace(f)
	require.NoError(t, err)
	return trace
}

// Two sessions of a program share a file, which is whole when a device is closed, and when a session is.
func TestTraceFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "trace.json")
	b := &nullBackend{}
	session, d := open(t, b, Config{Trace: name})
	y := buffer(t, d, F32, 100)
	require.NoError(t, d.Stream().Fill(y, float32(1)))
	require.NoError(t, y.Close())
	require.NoError(t, d.Close())
	kinds := map[profile.Kind]int{}
	for _, e := range readTrace(t, name) {
		kinds[e.Kind]++
	}
	assert.Equal(t, 1, kinds[profile.Fill])
	other, err := New(Config{Trace: name, Backends: []driver.Backend{}, CacheDir: "off"})
	require.NoError(t, err)
	_, end := other.Region(t.Context(), "mine")
	end()
	require.NoError(t, other.Close())
	events := readTrace(t, name)
	assert.Equal(t, "mine", events[len(events)-1].Name)
	require.NoError(t, session.Close())
	require.NoError(t, session.Close())
	assert.Len(t, readTrace(t, name), len(events))
}

// A trace has the roofs of its devices: measured while it is written, or before by another process.
func TestTraceFileRoofs(t *testing.T) {
	name, dir := filepath.Join(t.TempDir(), "trace.json"), t.TempDir()
	config := Config{Trace: name, CacheDir: dir}
	session, d := open(t, &nullBackend{}, config)
	kept, err := d.KeptRoof(t.Context())
	require.NoError(t, err)
	roof, err := kept.Get(t.Context(), false, func() (profile.Roof, error) { return profile.Roof{MemoryGBs: 7}, nil })
	require.NoError(t, err)
	require.NoError(t, session.Close())
	assert.Equal(t, map[string]profile.Roof{d.String(): roof}, readWholeTrace(t, name).Roofs)

	before := config.CacheDir
	config.CacheDir = t.TempDir() // for this process another directory, with the same file
	require.NoError(t, os.CopyFS(config.CacheDir, os.DirFS(before)))
	require.NoError(t, os.Chmod(filepath.Join(config.CacheDir, "roofs"), 0o700))
	config.Trace = filepath.Join(t.TempDir(), "other.json")
	session, d = open(t, &nullBackend{}, config)
	require.NoError(t, d.Stream().Fill(buffer(t, d, F32, 10), float32(1)))
	require.NoError(t, session.Close())
	assert.Equal(t, map[string]profile.Roof{d.String(): roof}, readWholeTrace(t, config.Trace).Roofs)
}

// What cannot be replaced is refused, without a wait for the reader of a pipe.
func TestTraceFileRefused(t *testing.T) {
	_, err := New(Config{Trace: t.TempDir(), Backends: []driver.Backend{}, CacheDir: "off"})
	assert.ErrorIs(t, err, ErrInvalidArgument)
	_, err = New(Config{Trace: os.DevNull, Backends: []driver.Backend{}, CacheDir: "off"})
	assert.ErrorIs(t, err, ErrInvalidArgument)
}

// A file that cannot be written is refused by a strict session, and only there. One that can keeps its contents
// until there is a trace.
func TestTraceFileStrict(t *testing.T) {
	old := filepath.Join(t.TempDir(), "old")
	require.NoError(t, os.WriteFile(old, []byte("old"), 0o600))
	nowhere := filepath.Join(t.TempDir(), "none", "trace")
	for _, strict := range []bool{false, true} {
		for _, c := range []Config{{Trace: nowhere}, {MemoryTrace: nowhere}, {Trace: old, MemoryTrace: old}} {
			c.Strict, c.Backends, c.CacheDir = strict, []driver.Backend{}, "off"
			s, err := New(c)
			if strict && c.Trace != old {
				assert.ErrorIs(t, err, os.ErrNotExist)
				assert.ErrorContains(t, err, "TRACE, refused by CONCORD_STRICT=1")
				continue
			}
			require.NoError(t, err)
			require.NoError(t, s.Close())
		}
	}
	text, err := os.ReadFile(old)
	require.NoError(t, err)
	assert.Equal(t, "old", string(text))
	left, err := os.ReadDir(filepath.Dir(old))
	require.NoError(t, err)
	assert.Len(t, left, 1)
}

// A misspelt variable is told once, with the one that it may mean; other names are other programs'.
func TestMisspelt(t *testing.T) {
	var said bytes.Buffer
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	slog.SetDefault(slog.New(slog.NewTextHandler(&said, nil)))
	t.Setenv("CONCORD_DEVIEC", "cpu")
	t.Setenv("CONCORD_STRESS", "1")
	for range 2 {
		s, err := New(Config{Backends: []driver.Backend{}, CacheDir: "off"})
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
	assert.Equal(t, 1, strings.Count(said.String(), "CONCORD_DEVIEC is no setting of Concord and has no effect\" "+
		"meant=CONCORD_DEVICE"), said.String())
	assert.NotContains(t, said.String(), "STRESS")
}

// Sessions that come and go share one goroutine that writes the file.
func TestTraceFileOfShortSessions(t *testing.T) {
	config := Config{Trace: filepath.Join(t.TempDir(), "trace.json"), Backends: []driver.Backend{}, CacheDir: "off"}
	before := goruntime.NumGoroutine()
	for range 200 {
		s, err := New(config)
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
	assert.Less(t, goruntime.NumGoroutine(), before+50)
	s, err := New(config) // writing begins again
	require.NoError(t, err)
	_, end := s.Region(t.Context(), "late")
	end()
	assert.Eventually(t, func() bool {
		_, err := os.Stat(config.Trace)
		return err == nil
	}, 10*time.Second, time.Millisecond)
	require.NoError(t, s.Close())
}

const killedTrace = "_CONCORD_TEST_KILLED_TRACE"

// A process that is killed leaves what happened before.
func TestTraceFileOfAKilledProcess(t *testing.T) {
	if name := os.Getenv(killedTrace); name != "" {
		_, d := open(t, &nullBackend{}, Config{Trace: name})
		y := buffer(t, d, F32, 100)
		for {
			_ = d.Stream().Fill(y, float32(1))
			_ = d.Stream().Sync(t.Context())
			time.Sleep(time.Millisecond)
		}
	}
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Kill} {
		name := filepath.Join(t.TempDir(), "trace.json")
		cmd := exec.Command(os.Args[0], "-test.run=^TestTraceFileOfAKilledProcess$")
		cmd.Env = append(os.Environ(), killedTrace+"="+name)
		require.NoError(t, cmd.Start())
		require.Eventually(t, func() bool { _, err := os.Stat(name); return err == nil }, time.Minute, time.Millisecond)
		first := len(readTrace(t, name))
		require.Eventually(t, func() bool { return len(readTrace(t, name)) > first+10 }, time.Minute, 10*time.Millisecond,
			"it is written again")
		require.NoError(t, cmd.Process.Signal(sig))
		require.Error(t, cmd.Wait(), "the signal has its usual effect")
		assert.Greater(t, len(readTrace(t, name)), first+10)
	}
}

// A trace has the work of a program that queued little and neither waits for it nor closes anything.
func TestTraceFileWithoutWaits(t *testing.T) {
	name := filepath.Join(t.TempDir(), "trace.json")
	b := &nullBackend{stream: func(s *nullStream) driver.Stream {
		return &timelineStream{nullStream: s, begun: map[uint64]int64{}}
	}}
	_, d := open(t, b, Config{Trace: name})
	y := buffer(t, d, F32, 100)
	for range 3 {
		require.NoError(t, d.Stream().Fill(y, float32(1)))
	}
	assert.Eventually(t, func() bool {
		if _, err := os.Stat(name); err != nil {
			return false
		}
		timed := 0
		for _, e := range readTrace(t, name) {
			if e.Kind == profile.Fill && e.DeviceTime {
				timed++
			}
		}
		return timed == 3
	}, 10*time.Second, 10*time.Millisecond)
}
