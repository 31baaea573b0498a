//go:build cgo && opencl && (linux || darwin)

package opencl

// Helpers of all tests here, and the tests of discovery. The tests run on the loader's first
// device; the Makefile and TestOtherDrivers choose other drivers through the loader's environment
// variables.

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/go-gl/cl/v1.2/cl"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/config"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
	"github.com/concord-compute/concord/tests/sim"
)

// helperVar makes the test binary, when it is started again, execute one helper in a new process.
const helperVar = "OPENCL_TEST_HELPER"

func TestMain(m *testing.M) {
	if what := os.Getenv(helperVar); what != "" {
		helpers[what]()
		os.Exit(0)
	}
	// PoCL's cache is in a temporary directory, so that it does not hide the work of Concord's
	// cache and does not fill the user's.
	dir, err := os.MkdirTemp("", "concord-pocl")
	if err != nil {
		panic(err)
	}
	if os.Getenv("POCL_CACHE_DIR") == "" {
		os.Setenv("POCL_CACHE_DIR", dir)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// helpers are functions for child processes; each panics if something is wrong.
var helpers = map[string]func(){
	"missing": helpMissing,
	"load":    helpLoad,
	"memory":  helpMemory,
}

// child runs the test binary again, with a helper or with tests.
func child(t *testing.T, env []string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// open opens the first device. If there is none, it skips the test, unless one is required.
func open(t testing.TB) *device {
	t.Helper()
	p := backend{}.Probe(context.Background(), configured())
	if p.State != driver.Available {
		sim.Absent(t, name, "no OpenCL device: "+p.Reason)
	}
	d, err := backend{}.Open(context.Background(), 0, configured())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	return d.(*device)
}

func newStream(t testing.TB, d *device) *stream {
	t.Helper()
	s, err := d.NewStream()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s.(*stream)
}

func alloc(t testing.TB, d *device, n int64) driver.Memory {
	t.Helper()
	m, err := d.Alloc(n, driver.OnDevice)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Free(m)) })
	return m
}

func parse(t testing.TB, d *device, text string, defines ...source.Define) *source.Unit {
	t.Helper()
	unit, err := source.Parse(text, source.Options{Name: "test.cl", Defines: defines, Features: &d.info.Features})
	require.NoError(t, err)
	return unit
}

func load(t testing.TB, d *device, text string, defines ...source.Define) *module {
	t.Helper()
	unit := parse(t, d, text, defines...)
	bin, err := d.Compile(t.Context(), unit, nil)
	require.NoError(t, err)
	m, err := d.Load(t.Context(), unit, bin)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, m.Close()) })
	return m.(*module)
}

func kernelOf(t testing.TB, m *module, name string) driver.Kernel {
	t.Helper()
	k, err := m.Kernel(name)
	require.NoError(t, err)
	return k
}

// launch packs a one-dimensional launch: driver.Memory, int32, float32, or
// localBytes.
func launch(k driver.Kernel, global, local int, args ...any) *driver.Launch {
	l := &driver.Launch{Kernel: k, Dim: 1, Global: [3]int{global, 1, 1}, Local: [3]int{local, 1, 1}}
	for _, arg := range args {
		switch v := arg.(type) {
		case driver.Memory:
			l.Args = append(l.Args, driver.Arg{Kind: driver.ArgMemory, Memory: v})
		case localBytes:
			l.Args = append(l.Args, driver.Arg{Kind: driver.ArgLocal, Size: int(v)})
		default:
			off := (len(l.Data) + 15) / 16 * 16
			data, err := binary.Append(make([]byte, off), binary.LittleEndian, v)
			if err != nil {
				panic(err)
			}
			copy(data, l.Data)
			l.Data = data
			l.Args = append(l.Args, driver.Arg{Kind: driver.ArgValue, Offset: off, Size: len(data) - off})
		}
	}
	return l
}

type localBytes int

func bytesOf[T any](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(*new(T))))
}

func upload[T any](t testing.TB, s *stream, m driver.Memory, v []T) {
	t.Helper()
	require.NoError(t, s.Upload(t.Context(), m, bytesOf(v)))
}

func download[T any](t testing.TB, s *stream, m driver.Memory) []T {
	t.Helper()
	v := make([]T, m.Size/int64(unsafe.Sizeof(*new(T))))
	require.NoError(t, s.Download(t.Context(), bytesOf(v), m))
	return v
}

func view(m driver.Memory, offset, size int64) driver.Memory {
	m.Offset += offset
	m.Size = size
	return m
}

func TestProbe(t *testing.T) {
	d := open(t)
	p := backend{}.Probe(t.Context(), configured())
	require.Equal(t, driver.Available, p.State)
	assert.Empty(t, p.Reason)
	assert.NotEmpty(t, p.DriverVersion)
	assert.Contains(t, p.RuntimeVersion, "OpenCL")
	assert.Contains(t, p.CompilerVersion, "OpenCL C")
	assert.Contains(t, p.Tried[0], "libOpenCL")
	assert.Positive(t, p.Elapsed)
	for i, info := range p.Devices {
		assert.Equal(t, fmt.Sprintf("opencl:%d", i), info.ID, "numbered over all platforms")
		assert.Equal(t, i, info.NativeIndex)
	}
	info := p.Devices[0]
	assert.Equal(t, d.Info(), info, "the opened device is the listed one")
	assert.Equal(t, deviceText(d.id, cl.DEVICE_NAME), info.Name)
	assert.EqualValues(t, number(d.id, cl.DEVICE_MAX_MEM_ALLOC_SIZE), info.MaxAllocation)
	assert.EqualValues(t, number(d.id, cl.DEVICE_MEM_BASE_ADDR_ALIGN), info.BaseAlign*8, "OpenCL counts bits")
	assert.Positive(t, info.TotalMemory)
	assert.EqualValues(t, number(d.id, cl.DEVICE_GLOBAL_MEM_CACHE_SIZE), info.MemoryCache)
	assert.False(t, info.CachesKnown, "OpenCL does not tell the level")
	assert.Positive(t, info.LocalMemory)
	assert.Positive(t, info.MaxGroupSize)
	assert.Positive(t, info.MaxGroupSizes[2])
	assert.Equal(t, info.Features.FP16, info.SupportsFP16)
	if number(d.id, cl.DEVICE_TYPE)&uint64(cl.DEVICE_TYPE_CPU) != 0 {
		assert.Equal(t, driver.CPU, info.Kind)
		assert.False(t, info.IsGPU(), "a CPU device is never taken for a GPU")
	}
	if info.Simulated {
		assert.False(t, info.SupportsFP16, "oclgrind claims half and dies")
	}
}

func TestProbeGivesUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := backend{}.Probe(ctx, configured())
	if p.State != driver.Available { // the probe may have ended before its context
		assert.NotEmpty(t, p.Reason)
	}
}

func TestOpenIndex(t *testing.T) {
	open(t)
	for _, i := range []int{-1, 1000} {
		_, err := backend{}.Open(t.Context(), i, configured())
		require.ErrorIs(t, err, driver.ErrDeviceIndex)
		assert.ErrorIs(t, err, driver.ErrNoDevice)
		assert.Contains(t, err.Error(), "OpenCL devices")
	}
}

func TestKinds(t *testing.T) {
	const gpu, cpu, acc = uint64(cl.DEVICE_TYPE_GPU), uint64(cl.DEVICE_TYPE_CPU), uint64(cl.DEVICE_TYPE_ACCELERATOR)
	assert.Equal(t, driver.Discrete, kindOf(gpu, false))
	assert.Equal(t, driver.Integrated, kindOf(gpu, true))
	assert.Equal(t, driver.CPU, kindOf(gpu|cpu|acc, false), "oclgrind is everything")
	assert.Equal(t, driver.Accelerator, kindOf(acc, false))
	info := driver.Info{Name: "llvmpipe (LLVM 15)", Kind: driver.Discrete}
	quirks(platform{name: "Clover"}, &info)
	assert.Equal(t, driver.CPU, info.Kind)
}

// TestNothingLinked: a program starts on machines without OpenCL.
func TestNothingLinked(t *testing.T) {
	f, err := elf.Open(os.Args[0])
	if err != nil {
		t.Skipf("not an ELF file: %v", err)
	}
	defer f.Close()
	libs, err := f.ImportedLibraries()
	require.NoError(t, err)
	for _, lib := range libs {
		assert.NotContains(t, lib, "OpenCL")
	}
	symbols, err := f.DynamicSymbols()
	require.NoError(t, err)
	for _, s := range symbols {
		assert.False(t, strings.HasPrefix(s.Name, "clGet") || strings.HasPrefix(s.Name, "clEnqueue"),
			"%s is exported and could capture another library's calls", s.Name)
	}
}

const noSuchLibrary = "libNoSuchOpenCL.so.1"

func TestMissingLibrary(t *testing.T) {
	out, err := child(t, []string{helperVar + "=missing", "CONCORD_OPENCL_LIBRARY=" + noSuchLibrary})
	require.NoError(t, err, out)
}

func helpMissing() {
	p := backend{}.Probe(context.Background(), configured())
	check := func(ok bool, what string) {
		if !ok {
			panic(fmt.Sprintf("%s: %+v", what, p))
		}
	}
	check(p.State == driver.Unavailable, "state")
	check(len(p.Tried) == 1 && strings.HasPrefix(p.Tried[0], noSuchLibrary+": "), "tried")
	check(p.Remedy == advice, "remedy")
	check(strings.Contains(p.Reason, "pocl-opencl-icd") && strings.Contains(p.Reason, "ocl-icd-libopencl1"), "reason")
	_, err := backend{}.Open(context.Background(), 0, configured())
	check(err != nil && strings.Contains(err.Error(), noSuchLibrary), "open")
	var n uint32
	check(cl.GetPlatformIDs(0, nil, &n) == codeNoPlatform, "clGetPlatformIDs")
	var code cl.ErrorCode
	cl.CreateContext(nil, 0, nil, nil, nil, &code)
	check(code == codeNoPlatform, "clCreateContext")
}

// TestOtherDrivers runs the tests on the other OpenCL implementations of the
// machine, each in a separate process.
func TestOtherDrivers(t *testing.T) {
	if os.Getenv("OCL_ICD_VENDORS") != "" || testing.Short() {
		t.Skip("runs from the default drivers only")
	}
	const rusticlICD = "/etc/OpenCL/vendors/rusticl.icd"
	const oclgrindLib = "/usr/lib/oclgrind/liboclgrind-rt-icd.so"
	icd := t.TempDir() + "/oclgrind.icd"
	require.NoError(t, os.WriteFile(icd, []byte(oclgrindLib+"\n"), 0o600))
	for _, c := range []struct {
		name, needs, run string
		env              []string
	}{
		{"rusticl", rusticlICD, "", []string{"RUSTICL_ENABLE=llvmpipe", "OCL_ICD_VENDORS=" + rusticlICD}},
		{"oclgrind", oclgrindLib, "Probe|Launch$|Views", []string{"OCL_ICD_VENDORS=" + icd}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := os.Stat(c.needs); err != nil {
				t.Skipf("not installed: %v", err)
			}
			env := append(slices.Clone(c.env), "CONCORD_REQUIRE=opencl")
			out, err := child(t, env, "-test.short", "-test.v", "-test.run", c.run)
			assert.NoError(t, err, out)
			assert.Contains(t, out, "--- PASS: TestLaunch", "the device really ran")
		})
	}
}

// ptr is the address of a copy of v, for the binding.
func ptr[T any](v T) unsafe.Pointer { return unsafe.Pointer(&v) }

// configured returns the configuration of the environment.
func configured() *driver.Config {
	cfg, err := config.ParseEnv(os.Environ())
	if err != nil {
		panic(err)
	}
	return &cfg
}
