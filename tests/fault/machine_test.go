//go:build cgo && linux

package fault

// Faults of the machine, the compiler or a kernel, as opposed to faults of a single call.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/parity"
	"github.com/concord-compute/concord/source"
	"github.com/concord-compute/concord/tests/sim/control"
)

// session makes a session with a separate cache.
func session(t *testing.T, cfg runtime.Config) *runtime.Session {
	t.Helper()
	cfg.Fallback, cfg.NoProbeCache = runtime.Require, true
	if cfg.CacheDir == "" {
		cfg.CacheDir = t.TempDir()
		require.NoError(t, os.Chmod(cfg.CacheDir, 0o700))
	}
	s, err := runtime.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// faulty opens the library of a backend, and clears its faults at the end of the test.
func (b *backend) faulty(t *testing.T) *control.Library {
	t.Helper()
	lib := library(t, b.device, b.library)
	require.NoError(t, lib.Control(""))
	t.Cleanup(func() { require.NoError(t, lib.Control("")) })
	return lib
}

func each(t *testing.T, f func(t *testing.T, b *backend, lib *control.Library)) {
	for i := range backends {
		b := &backends[i]
		t.Run(b.device, func(t *testing.T) { f(t, b, b.faulty(t)) })
	}
}

// TestCompiler: a build that fails returns the right kind of error and leaves nothing in the cache,
// so that the next one works.
func TestCompiler(t *testing.T) {
	each(t, func(t *testing.T, b *backend, lib *control.Library) {
		rtc := lib
		if b.device == "sim-cuda:0" {
			s := session(t, runtime.Config{})
			var err error
			rtc, err = control.Open(filepath.Join(s.Config().SimDir, "libnvrtc.so.11.2"))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, rtc.Control("")) })
		}
		for fault, want := range map[string]error{
			"compile:1": runtime.ErrCompile, "compile:2": runtime.ErrCompile, "compile:1=1": runtime.ErrLaunch, /* of the host */
			"compile:1=11": runtime.ErrLaunch,
		} {
			t.Run(fault, func(t *testing.T) {
				s := session(t, runtime.Config{})
				require.NoError(t, rtc.Control(fault))
				err := exercise(t.Context(), s, b.device)
				require.ErrorIs(t, err, want)
				require.Zero(t, rtc.Count("programs"))
				b.idle(t, lib, fault)
				if errors.Is(want, runtime.ErrCompile) { // it may be remembered, since the text is the cause
					s = session(t, runtime.Config{})
				}
				require.NoError(t, exercise(t.Context(), s, b.device), "the next build")
				require.Zero(t, rtc.Count("programs"))
			})
		}
	})
}

// TestMachine: machines without the library, without a device, with a driver that is
// too old or does not start. The error has the reason, and nothing stays open.
func TestMachine(t *testing.T) {
	each(t, func(t *testing.T, b *backend, lib *control.Library) {
		refused := func(t *testing.T, cfg runtime.Config, words ...string) {
			t.Helper()
			_, err := session(t, cfg).Open(t.Context(), b.device)
			require.ErrorIs(t, err, runtime.ErrNoDevice)
			for _, w := range words {
				assert.ErrorContains(t, err, w)
			}
			b.idle(t, lib, t.Name())
		}
		t.Run("no library", func(t *testing.T) { refused(t, runtime.Config{SimDir: t.TempDir()}, "make sim") })
		t.Run("devices:0", func(t *testing.T) {
			require.NoError(t, lib.Control("devices:0"))
			_, err := session(t, runtime.Config{}).Open(t.Context(), b.device)
			require.Error(t, err)
			assert.True(t, errors.Is(err, runtime.ErrNoDevice) || errors.Is(err, runtime.ErrDeviceIndex), "%v", err)
		})
		require.NoError(t, lib.Control(""))
		require.NoError(t, exercise(t.Context(), session(t, runtime.Config{}), b.device))
	})
}

// TestOutdated: if a driver refuses a program because it is older than the compiler, the error says
// so.
func TestOutdated(t *testing.T) {
	b := &backends[0]
	lib := b.faulty(t)
	require.NoError(t, lib.Control("driver:10000,load:1=222"))
	err := exercise(t.Context(), session(t, runtime.Config{}), b.device)
	require.ErrorIs(t, err, runtime.ErrUnsupported)
	assert.ErrorContains(t, err, "for CUDA 10.0 and NVRTC is 11.8")
	b.idle(t, lib, "an old driver")
}

// TestOldDriver: a driver without functions of later versions works with older ones.
func TestOldDriver(t *testing.T) {
	b := &backends[0]
	b.faulty(t)
	from := session(t, runtime.Config{}).Config().SimDir
	dir := t.TempDir()
	for to, name := range map[string]string{"libcuda.so.1": "old/libcuda.so.1", "libnvrtc.so.11.2": "libnvrtc.so.11.2"} {
		data, err := os.ReadFile(filepath.Join(from, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, to), data, 0o600))
	}
	require.NoError(t, exercise(t.Context(), session(t, runtime.Config{SimDir: dir}), b.device))
}

const rough = `
kernel void scale(global int *x, int a) { x[get_global_id(0)] *= a; }
kernel void beyond(global int *x, int a) { x[(long)a * 1048576] = a; }
kernel void apart(global int *x, int a) {
  if (get_local_id(0) < 3) barrier(CLK_LOCAL_MEM_FENCE);
  x[get_global_id(0)] = a;
}
`

// open opens the device with a program, a buffer and a second stream.
func (b *backend) open(t *testing.T, s *runtime.Session) (*runtime.Device, *runtime.Program, *runtime.Buffer) {
	d, err := s.Open(t.Context(), b.device)
	require.NoError(t, err)
	unit, err := source.Parse(rough, source.Options{Name: "rough.cl", Features: d.Features()})
	require.NoError(t, err)
	p, err := d.Program(t.Context(), unit)
	require.NoError(t, err)
	x, err := runtime.Upload(t.Context(), d, numbers(count))
	require.NoError(t, err)
	return d, p, x
}

// TestLost: if a kernel destroys the context, the error names the kernel, and every stream returns
// it from then on; after the device is opened again it works.
func TestLost(t *testing.T) {
	each(t, func(t *testing.T, b *backend, lib *control.Library) {
		for _, name := range []string{"beyond", "apart"} {
			t.Run(name, func(t *testing.T) {
				s := session(t, runtime.Config{})
				d, p, x := b.open(t, s)
				other, err := d.NewStream()
				require.NoError(t, err)
				k, err := p.Kernel(name)
				require.NoError(t, err)
				require.NoError(t, d.Stream().Launch(k, runtime.Items(64).InGroups(16), x, int32(1)))
				err = d.Stream().Sync(t.Context())
				if name == "apart" && err == nil {
					t.Skip("this barrier is not one that diverges here")
				}
				require.ErrorIs(t, err, runtime.ErrDeviceLost)
				assert.ErrorContains(t, err, name)
				assert.ErrorIs(t, other.Sync(t.Context()), runtime.ErrDeviceLost)
				_, err = runtime.Alloc[int32](d, count)
				assert.ErrorIs(t, err, runtime.ErrDeviceLost)
				require.NoError(t, d.Close())
				b.idle(t, lib, name)
				require.NoError(t, exercise(t.Context(), s, b.device), "opened anew")
			})
		}
	})
}

// TestDeadline: a context that is done ends a wait but not the work.
func TestDeadline(t *testing.T) {
	each(t, func(t *testing.T, b *backend, lib *control.Library) {
		d, p, x := b.open(t, session(t, runtime.Config{}))
		k, err := p.Kernel("scale")
		require.NoError(t, err)
		require.NoError(t, lib.Control("slow-kernel:500"))
		require.NoError(t, d.Stream().Launch(k, runtime.Items(count).InGroups(group), x, int32(2)))
		ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer stop()
		require.ErrorIs(t, d.Stream().Sync(ctx), context.DeadlineExceeded)
		want := numbers(count)
		for i := range want {
			want[i] *= 2
		}
		require.NoError(t, same(t.Context(), "slow", x, want))
		require.NoError(t, d.Stream().Launch(k, runtime.Items(count).InGroups(group), x, int32(2)))
		require.NoError(t, d.Close(), "with work in flight")
		b.idle(t, lib, "closing")
	})
}

// TestChangedInFlight: a graph that is updated while it runs finishes as it was recorded. The
// backend waits for HIP before an update, since HIP does not guarantee that, and does not wait for
// CUDA.
func TestChangedInFlight(t *testing.T) {
	each(t, func(t *testing.T, b *backend, lib *control.Library) {
		d, p, x := b.open(t, session(t, runtime.Config{}))
		k, err := p.Kernel("scale")
		require.NoError(t, err)
		times := func(a ...int32) func(*runtime.Stream) error {
			return func(s *runtime.Stream) (err error) {
				for _, v := range a {
					err = errors.Join(err, s.Launch(k, runtime.Items(count).InGroups(group), x, v))
				}
				return err
			}
		}
		g, err := d.Stream().Capture(times(2))
		require.NoError(t, err)
		other, err := d.NewStream()
		require.NoError(t, err)
		require.NoError(t, d.Sync(t.Context()))
		const slow = 150 * time.Millisecond
		require.NoError(t, lib.Control("slow-kernel:150"))
		start := time.Now()
		require.NoError(t, g.Launch(d.Stream()))
		require.NoError(t, g.Launch(other))
		require.NoError(t, g.Update(times(3)), "in place")
		if b.device == "sim-rocm:0" {
			assert.GreaterOrEqual(t, time.Since(start), 2*slow)
		}
		require.NoError(t, g.Launch(other))
		require.NoError(t, g.Update(times(5, 7)), "anew")
		require.NoError(t, g.Launch(d.Stream()))
		require.NoError(t, g.Close(), "in flight")
		require.NoError(t, d.Sync(t.Context()))
		want := numbers(count)
		for i := range want {
			want[i] *= 2 * 2 * 3 * 5 * 7
		}
		require.NoError(t, same(t.Context(), "changed in flight", x, want))
		require.NoError(t, d.Close())
		b.idle(t, lib, "graphs")
	})
}

// TestParity runs a part of the catalog under faults: no verdict is a wrong result, and nothing
// stays open.
func TestParity(t *testing.T) {
	each(t, func(t *testing.T, b *backend, lib *control.Library) {
		s := session(t, runtime.Config{})
		run := func() ([]parity.Result, error) {
			return parity.Run(t.Context(), parity.Options{Session: s, Devices: []string{b.device},
				Kernels: []string{"saxpy", "reduce", "gemm"}, Keep: firsts()})
		}
		clean, err := run()
		require.NoError(t, err)
		require.NotEmpty(t, clean)
		for _, r := range clean {
			require.NotEqual(t, parity.Fail, r.Verdict, "%+v", r)
		}
		b.idle(t, lib, "without a fault")
		for _, fault := range []string{"alloc:3", "alloc:9+", "copy:2", "copy:7+", "launch:2", "launch-late:3", "load:1",
			"find:1",
			"sync:3", "sync:5+", "record:2", "fill:1", "lost:150", "lost:400"} {
			require.NoError(t, lib.Control(fault))
			results, err := run()
			require.NoError(t, lib.Control(""))
			for _, r := range results {
				assert.Zero(t, r.MaxError > r.Tolerance, "%s: a wrong result: %+v", fault, r)
				if r.Verdict == parity.Fail {
					assert.NotEmpty(t, r.Reason, "%s: %+v", fault, r)
				}
			}
			if err != nil {
				var typed *runtime.OpError
				assert.ErrorAs(t, err, &typed, fault)
			}
			b.idle(t, lib, fault)
		}
		after, err := run()
		require.NoError(t, err)
		assert.Equal(t, clean, after)
	})
}

// firsts selects one small case of each kernel, because each needs a compiled program.
func firsts() func(c *kernels.Case) bool {
	seen := map[string]bool{}
	return func(c *kernels.Case) bool {
		for _, a := range c.Args {
			if a.Len > 2048 {
				return false
			}
		}
		had := seen[c.Kernel] || len(seen) >= 6
		seen[c.Kernel] = true
		return !had
	}
}

// TestStart: a driver that does not start, and one that is too old, each in a process of its own,
// since a driver starts only once per process.
func TestStart(t *testing.T) {
	const child = "FAULT_DEVICE"
	if device := os.Getenv(child); device != "" {
		_, err := session(t, runtime.Config{}).Open(t.Context(), device)
		fmt.Println("said:", err)
		return
	}
	each(t, func(t *testing.T, b *backend, _ *control.Library) {
		dir, err := filepath.Abs(session(t, runtime.Config{}).Config().SimDir)
		require.NoError(t, err)
		for fault, words := range map[string][]string{"init:100": {"no such device", "100"},
			"init:3": {"no such device", "3"}} {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestStart$", "-test.v")
			cmd.Env = append(os.Environ(), child+"="+b.device, "CONCORD_SIM_FAULT="+fault, "CONCORD_SIM_DIR="+dir)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			_, said, _ := strings.Cut(string(out), "said: ")
			for _, w := range words {
				assert.Contains(t, said, w, fault)
			}
		}
	})
}
