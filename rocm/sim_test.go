package rocm

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
	"github.com/concord-compute/concord/tests/sim"
)

// simulation returns the directory of the simulated library, or skips the test if it is not built.
func simulation(t *testing.T) string {
	t.Helper()
	if table() == nil {
		sim.Absent(t, "sim-rocm", missing)
	}
	return sim.Dir(t, "..", "sim-rocm", "libamdhip64.so.5")
}

// open opens a simulated device.
func open(t *testing.T) driver.Device {
	t.Helper()
	return sim.Open(t, "sim-rocm", 0, &driver.Config{SimDir: simulation(t)})
}

func TestSimulatedInfo(t *testing.T) {
	d := open(t)
	info := d.Info()
	assert.EqualValues(t, 8<<20, info.L2Cache)
	assert.Equal(t, []int{4096, 1600}, []int{info.MemoryBusBits, info.MemoryClockMHz})
	assert.Equal(t, "sim-rocm:0", info.ID)
	assert.True(t, info.Simulated)
	assert.False(t, info.IsGPU(), "never reported as real")
	assert.Equal(t, "gfx90a:sramecc+:xnack-", info.Arch)
	assert.Equal(t, driver.Discrete, info.Kind)
	assert.Equal(t, 64, info.SubgroupSize)
	assert.Equal(t, int64(64<<10), info.LocalMemory)
	assert.Equal(t, info.LocalMemory, info.LocalMemoryPerComputeUnit)
	assert.True(t, info.HasTensorCores)
	assert.Equal(t, features(info.Arch), info.Features)
	assert.Regexp(t, `^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, info.UUID)
	p := sim.Registered(t, "sim-rocm").Probe(context.Background(), &driver.Config{SimDir: simulation(t)})
	assert.Equal(t, driver.Available, p.State)
	assert.Equal(t, "5.2.21153", p.DriverVersion)
	require.Len(t, p.Devices, 2)
	assert.NotEqual(t, p.Devices[0].UUID, p.Devices[1].UUID)
}

// The blocks of local memory are aligned to 128 bytes.
func TestSimulatedLaunch(t *testing.T) {
	d := open(t)
	sim.Launch(t, d, d.Info().LocalMemory-384)
}

// Copies that are longer than the staging memory, and fills of every pattern and alignment.
func TestSimulatedCopies(t *testing.T) {
	d := open(t)
	s, err := d.NewStream()
	require.NoError(t, err)
	defer s.Close()
	ctx := context.Background()
	const n = 9<<20 + 12345
	mem, err := d.Alloc(n, driver.OnDevice)
	require.NoError(t, err)
	defer d.Free(mem)
	want := make([]byte, n)
	for i := range want {
		want[i] = byte(i * 7 >> 3)
	}
	require.NoError(t, s.Upload(ctx, mem, want))
	got := make([]byte, n)
	require.NoError(t, s.Download(ctx, got, mem))
	require.True(t, bytes.Equal(want, got))

	for _, pattern := range [][]byte{{5}, {1, 2}, {3, 3}, {1, 2, 3, 4}, {1, 2, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8},
		{1, 2, 3, 4, 1, 2, 3, 4}} {
		for offset := range int64(9) {
			for _, count := range []int64{1, 2, 3, 1000} {
				bytes := count * int64(len(pattern))
				part := driver.Memory{Handle: mem.Handle, Offset: offset, Size: bytes, Kind: mem.Kind}
				require.NoError(t, s.Fill(driver.Memory{Handle: mem.Handle, Size: 9000, Kind: mem.Kind}, []byte{0xee}))
				require.NoError(t, s.Fill(part, pattern))
				got := got[:9000]
				require.NoError(t, s.Download(ctx, got, driver.Memory{Handle: mem.Handle, Size: 9000, Kind: mem.Kind}))
				for i := range int64(9000) {
					want := byte(0xee)
					if i >= offset && i < offset+bytes {
						want = pattern[(i-offset)%int64(len(pattern))]
					}
					if got[i] != want {
						t.Fatalf("pattern %v at %d: byte %d is %d, not %d", pattern, offset, i, got[i], want)
					}
				}
			}
		}
	}
}

// A target that the compiler does not know must not reach it: it would end the
// process, as AMD's does.
func TestSimulatedUnknownTarget(t *testing.T) {
	cfg := &driver.Config{SimDir: simulation(t)}
	c := sim.Registered(t, "sim-rocm").(driver.CrossCompiler)
	targets, err := c.Targets(context.Background(), cfg)
	require.NoError(t, err)
	assert.Contains(t, targets, "gfx90a")
	for _, target := range []string{"", "gfx942", "gfx90a:xnack", "gfx1030:xnack+"} {
		_, err := c.CompileFor(context.Background(), cfg, target, small(t), nil)
		assert.ErrorIs(t, err, driver.ErrInvalidArgument, "%q", target)
	}
	_, err = c.CompileFor(context.Background(), cfg, "gfx1030", small(t), nil)
	assert.NoError(t, err)
}

// An invalid address destroys the context; the device works after it is opened again.
func TestSimulatedLoss(t *testing.T) {
	sim.Lose(t, open(t), "hipErrorIllegalAddress")
	next := open(t)
	mem, err := next.Alloc(64, driver.OnDevice)
	require.NoError(t, err)
	require.NoError(t, next.Free(mem))
}

// TestSimulatedByName opens the simulated library under the name of the real backend: its devices stay simulated ones.
func TestSimulatedByName(t *testing.T) {
	path, err := filepath.EvalSymlinks(filepath.Join(simulation(t), "libamdhip64.so.5"))
	require.NoError(t, err)
	p := sim.Registered(t, "rocm").Probe(context.Background(), &driver.Config{HIPLibrary: path})
	require.Equal(t, driver.Available, p.State, p.Reason)
	for _, d := range p.Devices {
		assert.True(t, d.Simulated)
		assert.False(t, d.IsGPU(), "never a card")
	}
	require.Len(t, p.Libraries, 3)
	assert.Equal(t, driver.Library{Name: "hip", Version: p.DriverVersion, Path: path, Simulated: true}, p.Libraries[0])
	assert.Equal(t, "hiprtc", p.Libraries[1].Name)
	assert.Equal(t, p.CompilerVersion, p.Libraries[1].Version)
}

// gcc compiles C, or skips the test.
func gcc(t *testing.T, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc")
	}
	bin := filepath.Join(t.TempDir(), "program")
	out, err := exec.Command(path, append([]string{"-std=c11", "-o", bin}, args...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return bin
}

// An ordinary program for HIP runs on the simulated library unchanged.
func TestSimulatedProgram(t *testing.T) {
	dir := simulation(t)
	if _, err := os.Stat("/usr/include/hip/hiprtc.h"); err != nil {
		t.Skip("no headers of HIP: libamdhip64-dev has them")
	}
	bin := gcc(t, "-Wall", "-Wextra", "-Werror", "-D__HIP_PLATFORM_AMD__", "-isystem", "/usr/include",
		"../tests/sim/testdata/saxpy_hip.c", "-L"+dir, "-l:libamdhip64.so.5")
	cmd := exec.Command(bin)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+dir)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "ok on 2 x gfx90a")
}

// The shim refuses a truncated code object, which HIP itself does not detect.
func TestWhole(t *testing.T) {
	c, _ := compiler(t)
	built, err := c.CompileFor(context.Background(), &driver.Config{}, "gfx906", small(t), nil)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "code")
	require.NoError(t, os.WriteFile(path, built.Code, 0o600))
	out, err := exec.Command(gcc(t, "-O1", "-g", "-fsanitize=address", "testdata/whole.c", "-ldl", "-lpthread"),
		path).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// A kernel in the device's own language.
func TestSimulatedNative(t *testing.T) { sim.Native(t, open(t), source.HIP) }
