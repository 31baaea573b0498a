package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
	"github.com/concord-compute/concord/cmd/concord/internal/files"
)

// inputs returns the commands that read files, each with the path of one of these, which make makes.
func inputs(t *testing.T, make func(path string)) map[string][]string {
	dir := t.TempDir()
	at := func(name string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		make(path)
		return path
	}
	kernel := filepath.Join(dir, "k.cl")
	require.NoError(t, os.WriteFile(kernel, []byte("kernel void k(global float *x) { x[0] = 1; }"), 0o600))
	outer := filepath.Join(dir, "outer.cl")
	require.NoError(t, os.WriteFile(outer, []byte("#include \"inner.h\"\nkernel void k(global float *x) { x[0] = 1; }"),
		0o600))
	above := filepath.Join(dir, "deep", "above.cl")
	require.NoError(t, os.MkdirAll(filepath.Dir(above), 0o700))
	require.NoError(t, os.WriteFile(above, []byte("#include \"../inner.h\"\nkernel void k(global float *x) { x[0] = 1; }"),
		0o600))
	at("inner.h")
	digits := filepath.Dir(at("digits/train-images-idx3-ubyte.gz"))
	run := []string{"run", "--device", "cpu:0", "--kernel", "k", "--global", "1"}
	return map[string][]string{
		"compile":         {"compile", "--target", "host", at("a.cl")},
		"include":         {"compile", "--target", "host", outer},
		"include above":   {"compile", "--target", "host", above},
		"translate":       {"translate", "--to", "cuda", at("b.cl")},
		"run":             append(run[:len(run):len(run)], "--arg", "zeros:f32:1", at("c.cl")),
		"run --arg":       append(run[:len(run):len(run)], "--arg", "@"+at("a.npy"), kernel),
		"cache import":    {"cache", "import", at("bundle")},
		"trace show":      {"trace", "show", at("a.json")},
		"trace memory":    {"trace", "memory", at("a.trace")},
		"bench --compare": {"bench", "--compare", at("b.json")},
		"tensor":          {"tensor", at("b.npy")},
		"train --model":   {"train", "--device", "cpu:0", "--model", at("c.json")},
		"train --data":    {"train", "--device", "cpu:0", "--data", digits},
		"train --data x":  {"train", "--device", "cpu:0", "--data", at("c.npy"), "--labels", at("d.npy")},
		"train --data t":  {"train", "--device", "cpu:0", "--model", "lstm", "--data", at("e.txt")},
		"search build":    {"search", "build", "--vectors", at("f.npy"), "--out", filepath.Join(dir, "x.index")},
	}
}

// A command that waits for a pipe, which nobody opens for writing, ends by the first signal. An include that is
// a pipe is refused.
func TestSignalsEndReading(t *testing.T) {
	signals := []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP}
	table := inputs(t, func(path string) { require.NoError(t, syscall.Mkfifo(path, 0o600)) })
	for i, name := range slices.Sorted(maps.Keys(table)) {
		sent := signals
		if testing.Short() {
			sent = signals[i%len(signals) : i%len(signals)+1]
		}
		for _, signal := range sent {
			t.Run(fmt.Sprint(name, " ", signal), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // for a test that fails
				defer cancel()
				cmd := exec.CommandContext(ctx, os.Args[0], table[name]...)
				cmd.Env = append(os.Environ(), apptest.AsCommand+"=1")
				var out strings.Builder
				cmd.Stdout, cmd.Stderr = &out, &out
				require.NoError(t, cmd.Start())
				ended := make(chan struct{})
				go func() {
					_ = cmd.Wait()
					close(ended)
				}()
				refused := untilOpening(cmd.Process.Pid, ended)
				if !refused {
					require.NoError(t, cmd.Process.Signal(signal))
				}
				<-ended
				assert.Equal(t, app.ExitFailed, cmd.ProcessState.ExitCode(), "%v: %s", signal, &out)
				if name != "train --data t" { // that maps the file
					assert.Equal(t, strings.HasPrefix(name, "include"), refused, "%s", &out)
				}
				assert.Equal(t, refused, strings.Contains(out.String(), "no regular file"), "%s", &out)
			})
		}
	}
}

// untilOpening waits until a thread of a process stays in the system call that opens a file, or the process has
// ended, which it reports.
func untilOpening(pid int, ended <-chan struct{}) bool {
	opening := fmt.Sprint(syscall.SYS_OPENAT, " ")
	before := map[string]string{}
	for {
		select {
		case <-ended:
			return true
		case <-time.After(50 * time.Millisecond):
		}
		calls, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid))
		for _, path := range calls {
			text, _ := os.ReadFile(path) // the thread may be gone
			now := string(text)
			if strings.HasPrefix(now, opening) && now == before[path] {
				return false
			}
			before[path] = now
		}
	}
}

// Files that claim a terabyte, and devices without an end, are refused before memory is taken for them.
func TestReadingIsLimited(t *testing.T) {
	header := "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (274877906944,), }"
	header += strings.Repeat(" ", 127-len(header)) + "\n"
	sparse := func(path string) {
		text := ""
		if files.IsArray(path) {
			text = header
		}
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		if err := os.Truncate(path, int64(len(text))+1<<40); err != nil {
			t.Skip("files of a terabyte: ", err)
		}
	}
	endless := func(path string) { require.NoError(t, os.Symlink("/dev/zero", path)) }
	for kind, make := range map[string]func(string){"sparse": sparse, "endless": endless} {
		for name, args := range inputs(t, make) {
			if kind == "sparse" && name == "tensor" || kind == "endless" && name == "train --data" && testing.Short() {
				continue // it maps the file; and a quarter of a gigabyte is read
			}
			status, _, stderr := apptest.Run(args...)
			assert.Equal(t, app.ExitFailed, status, "%s %s: %s", kind, name, stderr)
			if kind == "sparse" && name != "cache import" && !strings.HasPrefix(name, "include") &&
				!strings.HasPrefix(name, "train --data x") && name != "trace show" {
				assert.Contains(t, stderr, "can never fit", name)
			}
		}
	}
}

// Numbers of flags are decimal, with zeros in front, too.
func TestNumbersOfFlagsAreDecimal(t *testing.T) {
	cmd, _, err := app.New(os.Stdout, os.Stderr).Root(commands...).Find([]string{"predict"})
	require.NoError(t, err)
	for text, want := range map[string]int{"010": 10, "-0010": -10, "0_10": 10, "0_0_12": 12, "0x10": 16, "10": 10, "0": 0,
		"00": 0} {
		require.NoError(t, cmd.Flags().Set("length", text))
		got, err := cmd.Flags().GetInt("length")
		require.NoError(t, err)
		assert.Equal(t, want, got, text)
	}
}
