// Package cache tests the purpose of the kernel cache: a second process does not compile.
package cache

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/runtime/config"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/kernelcache"
	"github.com/concord-compute/concord/source"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// childVariable makes a process of this test a child that builds one program on
// the device it names and prints a report. bundlesVariable names a directory of bundles that the
// child uses like bundles that are built into it.
const (
	childVariable   = "CACHE_TEST_DEVICE"
	bundlesVariable = "CACHE_TEST_BUNDLES"
)

// report is the result of a child.
type report struct {
	From  string            // where the program came from
	Ready time.Duration     // until the program was loaded
	First time.Duration     // until its first launch was done, too
	Stats kernelcache.Stats // of its cache, at the end
	Skip  string            // why there is nothing to report
}

func TestMain(m *testing.M) {
	name := os.Getenv(childVariable)
	if name == "" {
		os.Exit(m.Run())
	}
	r, err := build(context.Background(), name)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		os.Exit(1)
	}
}

// build builds the catalog's gemm from its portable text and runs it once.
func build(ctx context.Context, name string) (r report, err error) {
	backend, _, _ := strings.Cut(name, ":")
	cfg := runtime.Config{Fallback: runtime.Require, Backends: []driver.Backend{}}
	for _, b := range driver.Backends() { // the time for probing other backends must not be measured
		if b.Name() == backend {
			cfg.Backends = append(cfg.Backends, b)
		}
	}
	if dir := os.Getenv(bundlesVariable); dir != "" {
		cfg.Bundles = os.DirFS(dir)
	}
	s, err := runtime.New(cfg)
	if err != nil {
		return r, err
	}
	defer s.Close()
	required, err := config.Requires(s.Config(), backend)
	if err != nil {
		return r, err
	}
	d, err := s.Open(ctx, name)
	// a simulated backend may not be in this build
	absent := errors.Is(err, runtime.ErrNoDevice) || errors.Is(err, runtime.ErrUnknownBackend)
	if absent && !required {
		return report{Skip: err.Error()}, nil
	}
	if err != nil {
		return r, err
	}
	// The unit is parsed before the clock starts, since the time for parsing must not be measured.
	unit, err := kernels.Unit("gemm", d.Features(), source.Define{Name: "T", Value: "f32"})
	if err != nil {
		return r, err
	}
	start := time.Now()
	p, err := d.Program(ctx, unit, runtime.ProgramOptions{Implementation: runtime.Portable})
	if errors.Is(err, runtime.ErrUnsupported) {
		return report{Skip: err.Error()}, nil
	}
	if err != nil {
		return r, err
	}
	r.From, r.Ready = p.Built().From, time.Since(start)
	if err := launch(ctx, d, p); err != nil {
		return r, err
	}
	r.First = time.Since(start)
	r.Stats = s.Cache().Stats()
	return r, p.Close()
}

// launch multiplies two matrices of 64×64 with undefined contents.
func launch(ctx context.Context, d *runtime.Device, p *runtime.Program) error {
	const n = 64
	k, err := p.Kernel("gemm")
	if err != nil {
		return err
	}
	var m [3]*runtime.Buffer
	for i := range m {
		if m[i], err = runtime.Upload(ctx, d, make([]float32, n*n)); err != nil {
			return err
		}
		defer m[i].Close()
	}
	items, group, err := kernels.Geometry(k.Unit(), "gemm", n, n)
	if err != nil {
		return err
	}
	err = d.Stream().Launch(k, runtime.Grid{Items: items, Group: group}, n, n, n, float32(1), m[0], n, m[1], n, float32(0),
		m[2], n)
	if err != nil {
		return err
	}
	return d.Stream().Sync(ctx)
}

// child runs build in a separate process, with the cache in dir. The OpenCL driver's own cache is
// off, and in a separate directory, because PoCL writes to it nevertheless and aborts if several
// processes do. It skips the test if the machine does not have the device.
func child(t testing.TB, name, dir string, env ...string) report {
	t.Helper()
	r, err := start(t, name, dir, env...)()
	require.NoError(t, err)
	if r.Skip != "" {
		t.Skip(r.Skip)
	}
	return r
}

// start starts such a process and returns a function that waits for its report.
func start(t testing.TB, name, dir string, env ...string) func() (report, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+name, "CONCORD_CACHE_DIR="+dir,
		"POCL_KERNEL_CACHE=0", "POCL_CACHE_DIR="+t.TempDir())
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = os.Stderr
	var out bytes.Buffer
	cmd.Stdout = &out
	require.NoError(t, cmd.Start())
	return func() (r report, err error) {
		if err := cmd.Wait(); err != nil {
			return r, err
		}
		return r, json.Unmarshal(out.Bytes(), &r)
	}
}

var devices = []string{"cpu:0", "opencl:0", "sim-cuda:0", "sim-rocm:0"}

func TestSecondProcessDoesNotCompile(t *testing.T) {
	for _, name := range devices {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			assert.Equal(t, "compiled", child(t, name, dir).From)
			assert.Equal(t, "disk", child(t, name, dir).From)
			other := child(t, name, t.TempDir())
			assert.Equal(t, "compiled", other.From, "another directory knows nothing")
		})
	}
}

// BenchmarkNewProcess compares, in turn, a new process that compiles with one that
// finds the program on disk: medians, and their ratio.
func BenchmarkNewProcess(b *testing.B) {
	for _, name := range devices {
		b.Run(name, func(b *testing.B) {
			warm := b.TempDir()
			child(b, name, warm)
			var cold, disk, coldFirst, diskFirst []time.Duration
			for b.Loop() {
				r := child(b, name, b.TempDir())
				cold, coldFirst = append(cold, r.Ready), append(coldFirst, r.First)
				r = child(b, name, warm)
				require.Equal(b, "disk", r.From)
				disk, diskFirst = append(disk, r.Ready), append(diskFirst, r.First)
			}
			b.ReportMetric(0, "ns/op") // the time of the loop has no meaning
			b.ReportMetric(ms(cold), "compile-ms")
			b.ReportMetric(ms(disk), "disk-ms")
			b.ReportMetric(ms(cold)/ms(disk), "x-ready")
			b.ReportMetric(ms(coldFirst)/ms(diskFirst), "x-first-result")
		})
	}
}

func ms(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/2]) / float64(time.Millisecond)
}
