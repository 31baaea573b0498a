package rates

import (
	"context"
	_ "embed"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

// wide is the raw page as a table, in the form of the profiler's manual: written by hand, not by a profiler.
//
//go:embed testdata/ncu-raw.txt
var wide string

// The form with a row for each metric.
const long = `"ID","Process ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"
"0","41","gemm","Command line profiler metrics","gpu__time_duration.sum","nsecond","1,000"
"0","41","gemm","Command line profiler metrics","launch__registers_per_thread","register/thread","64"
"0","41","gemm","Command line profiler metrics","sm__throughput.avg.pct_of_peak_sustained_elapsed","%","n/a"
`

func TestParseProfile(t *testing.T) {
	for name, c := range map[string]struct{ out, want, err string }{
		"wide":      {wide, "gemm: memory 78 %, DRAM 31 %, compute 12 %, warps 45 %, 96 registers", ""},
		"long":      {long, "gemm: 64 registers", ""},
		"nothing":   {"", "", "no kernel was profiled"},
		"no kernel": {"==WARNING== No kernels were profiled.\n", "", "No kernels were profiled."},
		"refused": {"==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n", "",
			"ERR_NVGPUCTRPERM - The user does not have permission: not supported here"},
		"damaged":    {"\"ID\",\"Kernel Name\"\n\"0\n", "", "parse error"},
		"no metrics": {"\"ID\",\"Kernel Name\"\n\"0\",\"gemm\"\n", "", "none of the metrics"},
	} {
		got, err := parseProfile([]byte(c.out))
		assert.Equal(t, c.want, got, name)
		if c.err == "" {
			assert.NoError(t, err, name)
		} else {
			assert.ErrorContains(t, err, c.err, name)
		}
	}
	_, err := parseProfile([]byte("==ERROR== ERR_NVGPUCTRPERM\n"))
	assert.ErrorIs(t, err, runtime.ErrUnsupported)
}

// profiler puts a script in place of ncu.
func profiler(t *testing.T, text string) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ncu"), []byte("#!/bin/sh\n"+text), 0o700))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// The profiler gets the command behind its own options, and is killed when the context ends.
func TestBound(t *testing.T) {
	file := filepath.Join(t.TempDir(), "table")
	require.NoError(t, os.WriteFile(file, []byte(wide), 0o600))
	profiler(t, `case "$*" in *"--csv --page raw"*"concord once") cat `+file+`; exit 3;; esac
echo "what? $*" >&2; exit 1`)
	got, err := Bound(t.Context(), []string{"concord", "once"})
	require.NoError(t, err, "the program's own failure does not matter if there is a table")
	assert.Contains(t, got, "96 registers")
	_, err = Bound(t.Context(), []string{"other"})
	assert.ErrorContains(t, err, "no kernel was profiled exit status 1 what?")
	assert.NotContains(t, err.Error(), "\n")

	profiler(t, `exec sleep 100`)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err = Bound(ctx, []string{"concord"})
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Less(t, time.Since(start), 20*time.Second)
}

func TestNoProfiler(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if path, err := Tool("ncu", profilerPaths...); err == nil {
		t.Skip("there is ", path)
	}
	_, err := Bound(t.Context(), []string{"concord"})
	assert.ErrorIs(t, err, runtime.ErrUnsupported)
	assert.ErrorContains(t, err, "ncu is not installed")
}
