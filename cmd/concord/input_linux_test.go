package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
	require.NoError(t, os.WriteFile(outer, []byte("#include \"inner.h\"\nkernel void k(global float *x) { x[0] = 1; }"), 0o600))
	at("inner.h")
	digits := filepath.Dir(at("digits/train-images-idx3-ubyte.gz"))
	run := []string{"run", "--device", "cpu:0", "--kernel", "k", "--global", "1"}
	return map[string][]string{
		"compile":         {"compile", "--target", "host", at("a.cl")},
		"include":         {"compile", "--target", "host", outer},
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

// A command that waits for a pipe ends by the first signal.
func TestSignalsEndReading(t *testing.T) {
	signals := []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP}
	var pipes []string
	table := inputs(t, func(path string) {
		require.NoError(t, syscall.Mkfifo(path, 0o600))
		pipes = append(pipes, path)
	})
	// reader returns a pipe that the command has opened, or waits to open, for writing.
	reader := func() *os.File {
		for _, path := range pipes {
			if f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
				return f
			}
		}
		return nil
	}
	i := 0
	for name, args := range table {
		signal := signals[i%len(signals)]
		i++
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // for a test that fails
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0], args...)
			cmd.Env = append(os.Environ(), asCommand+"=1")
			var out strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &out
			require.NoError(t, cmd.Start())
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			for {
				if pipe := reader(); pipe != nil {
					defer pipe.Close()
					require.NoError(t, cmd.Process.Signal(signal))
					<-ended
					assert.Equal(t, exitFailed, cmd.ProcessState.ExitCode(), "%v: %s", signal, &out)
					return
				}
				select {
				case <-ended: // it refuses pipes
					assert.Equal(t, exitFailed, cmd.ProcessState.ExitCode(), "%s", &out)
					assert.Contains(t, out.String(), "no regular file")
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
		})
	}
}

// Files that claim a terabyte, and devices without an end, are refused before memory is taken for them.
func TestReadingIsLimited(t *testing.T) {
	header := "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (274877906944,), }"
	header += strings.Repeat(" ", 127-len(header)) + "\n"
	sparse := func(path string) {
		text := ""
		if isArray(path) {
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
			status, _, stderr := concord(args...)
			assert.Equal(t, exitFailed, status, "%s %s: %s", kind, name, stderr)
			if kind == "sparse" && name != "cache import" && name != "include" && !strings.HasPrefix(name, "train --data x") && name != "trace show" {
				assert.Contains(t, stderr, "can never fit", name)
			}
		}
	}
}

// Numbers of flags are decimal, with zeros in front, too.
func TestNumbersOfFlagsAreDecimal(t *testing.T) {
	cmd, _, err := newApp(os.Stdout, os.Stderr).root().Find([]string{"predict"})
	require.NoError(t, err)
	for text, want := range map[string]int{"010": 10, "-0010": -10, "0x10": 16, "10": 10, "0": 0, "00": 0} {
		require.NoError(t, cmd.Flags().Set("length", text))
		got, err := cmd.Flags().GetInt("length")
		require.NoError(t, err)
		assert.Equal(t, want, got, text)
	}
}
