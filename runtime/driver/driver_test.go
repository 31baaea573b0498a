package driver

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseEnv(t *testing.T) {
	c, err := ParseEnv([]string{"PATH=/bin", "CONCORD_DEBUG=2", "CONCORD_DEVICE=cuda:1", "CONCORD_MEMORY_POOL=0",
		"CONCORD_MEMORY_LIMIT=2G", "CONCORD_CACHE_DIR=off", "CONCORD_CACHE_SIZE=1M", "CONCORD_FAKE_DEVICES=",
		"CONCORD_FALLBACK=Require", "CONCORD_REQUIRE=cuda, opencl", "CONCORD_PROBE_CACHE=0", "CONCORD_PROBE_TIMEOUT=250ms",
		"CONCORD_CPU_THREADS=3", "CONCORD_OPENCL_LIBRARY=/x.so", "CONCORD_NO_SUCH=1"})
	require.NoError(t, err)
	require.NotNil(t, c.FakeDevices, "empty but set is not unset")
	assert.Equal(t, Config{Debug: 2, Device: "cuda:1", NoMemoryPool: true, MemoryLimit: 2 << 30, CacheDir: "off",
		CacheSize: 1 << 20, FakeDevices: c.FakeDevices, Fallback: Require, Required: []string{"cuda", "opencl"},
		NoProbeCache: true, ProbeTimeout: 250 * time.Millisecond, CPUThreads: 3, OpenCLLibrary: "/x.so"}, c)
	c, err = ParseEnv(nil)
	require.NoError(t, err)
	assert.Equal(t, Config{}, c, "the zero value is the default")
}

func TestSimulatedBackends(t *testing.T) {
	c, err := ParseEnv([]string{"CONCORD_REQUIRE=sim-cuda,sim-rocm,cpu", "CONCORD_SIM_DIR=/sim"})
	require.NoError(t, err)
	assert.Equal(t, []string{"sim-cuda", "sim-rocm", "cpu"}, c.Required)
	assert.Equal(t, "/sim", Config{}.Merge(c).SimDir)
	assert.Equal(t, "/mine", Config{SimDir: "/mine"}.Merge(c).SimDir)
	var list []Backend
	for _, name := range []string{"sim-rocm", "cpu", "other", "sim-cuda", "opencl", "abacus", "cuda"} {
		b := Missing(name, Disabled, "")
		for known, d := range Reserved() {
			if known == name {
				b = described{b, d}
			}
		}
		list = append(list, b)
	}
	list = append(list, described{Missing("best", Disabled, ""), Description{Preference: 5}})
	slices.SortFunc(list, compareBackends)
	var names []string
	for _, b := range list {
		names = append(names, b.Name())
	}
	assert.Equal(t, []string{"best", "cuda", "opencl", "abacus", "other", "cpu", "sim-cuda", "sim-rocm"}, names)
	assert.Equal(t, Description{Title: "abacus"}, Describe(Missing("abacus", Disabled, "")), "of what says nothing the name is known")
}

// described is a backend with a description.
type described struct {
	Backend
	d Description
}

func (b described) Describe() Description { return b.d }

func TestRequires(t *testing.T) {
	c, err := ParseEnv([]string{"CONCORD_REQUIRE=Host_dev2,cuda"})
	require.NoError(t, err, "a backend of another module")
	assert.Equal(t, []string{"host_dev2", "cuda"}, c.Required)
	_, err = c.Requires("cpu")
	assert.ErrorIs(t, err, ErrUnknownBackend, "it is not in this program")
	assert.ErrorContains(t, err, "host_dev2")
	c.Backends = []Backend{Missing("host_dev2", Unavailable, "")}
	for backend, want := range map[string]bool{"host_dev2": true, "cuda": true, "cpu": false} {
		got, err := c.Requires(backend)
		require.NoError(t, err)
		assert.Equal(t, want, got, backend)
	}
}

func TestParseEnvNamesTheVariable(t *testing.T) {
	for _, entry := range []string{"CONCORD_DEBUG=3", "CONCORD_DEBUG=x", "CONCORD_MEMORY_POOL=yes", "CONCORD_MEMORY_LIMIT=1T",
		"CONCORD_MEMORY_LIMIT=-1", "CONCORD_MEMORY_LIMIT=99999999999G", "CONCORD_CACHE_SIZE=0", "CONCORD_STRICT=2",
		"CONCORD_FALLBACK=never", "CONCORD_REQUIRE=cuda:0", "CONCORD_REQUIRE=cuda;rocm", "CONCORD_REQUIRE=cpu,-x", "CONCORD_REQUIRE=42", "CONCORD_PROBE_CACHE=on", "CONCORD_PROBE_TIMEOUT=5",
		"CONCORD_PROBE_TIMEOUT=-1s", "CONCORD_CPU_THREADS=0"} {
		_, err := ParseEnv([]string{entry})
		assert.ErrorIs(t, err, ErrInvalidArgument, entry)
		assert.ErrorContains(t, err, entry)
	}
	_, err := ParseEnv([]string{"CONCORD_STRICT=1", "CONCORD_NO_SUCH=1"})
	assert.ErrorContains(t, err, "CONCORD_NO_SUCH")
}

func TestMergeAndStrict(t *testing.T) {
	env := Config{Device: "cuda", Debug: 1, MemoryLimit: 10}
	got := Config{Device: "cpu"}.Merge(env)
	assert.Equal(t, Config{Device: "cpu", Debug: 1, MemoryLimit: 10}, got)
	strict, err := ParseEnv([]string{"CONCORD_STRICT=1", "CONCORD_FALLBACK=prefer"})
	require.NoError(t, err)
	assert.Equal(t, Require, strict.Fallback)
	assert.Equal(t, Require, Config{Fallback: Prefer}.Merge(strict).Fallback, "code cannot loosen it")
	for _, c := range []Config{{Fallback: "x"}, {MemoryLimit: -1}, {CPUThreads: -1}} {
		assert.ErrorIs(t, c.Check(), ErrInvalidArgument)
	}
}

func TestErrors(t *testing.T) {
	for fine, coarse := range map[error]error{
		ErrBufferOverflow: ErrInvalidArgument, ErrEventNotRecorded: ErrInvalidArgument, ErrTimingDisabled: ErrInvalidArgument,
		ErrNoHostMemory: ErrInvalidArgument, ErrNoDeviceMemory: ErrInvalidArgument, ErrDeviceIndex: ErrNoDevice,
		ErrFakeDevice: ErrNoDevice, ErrAllBackendsExhausted: ErrNoDevice, ErrUnsupportedPrecision: ErrUnsupported, ErrNoKernel: ErrCompile, ErrFormat: ErrCorrupt,
	} {
		assert.ErrorIs(t, fine, coarse)
		assert.NotErrorIs(t, coarse, fine)
	}
	err := error(&OpError{Backend: "cuda", Device: "cuda:0", Op: "alloc " + FormatBytes(8<<30), Code: 2, Err: ErrOutOfMemory})
	assert.EqualError(t, err, "cuda:0: alloc 8.0 GiB: out of device memory (code 2)")
	assert.ErrorIs(t, fmt.Errorf("while training: %w", err), ErrOutOfMemory)
	build := &BuildError{Source: "k.cl", Target: "host", Log: "In file\nk.cl:3:4: error: no\nmore", Err: ErrTimeout}
	assert.ErrorIs(t, build, ErrCompile)
	assert.ErrorIs(t, build, ErrTimeout)
	assert.EqualError(t, build, "k.cl: build for host: program did not build: k.cl:3:4: error: no: timed out")
	assert.True(t, errors.Is(&BuildError{}, ErrCompile))
}

func TestFormatBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 8 << 30: "8.0 GiB", math.MaxInt64: "8.0 EiB"} {
		assert.Equal(t, want, FormatBytes(n))
	}
}

func TestTypes(t *testing.T) {
	for _, typ := range Types {
		got, err := ParseType(typ.String())
		require.NoError(t, err)
		assert.Equal(t, typ, got)
		assert.Positive(t, typ.Size())
	}
	_, err := ParseType("f8")
	assert.ErrorIs(t, err, ErrInvalidArgument)
	assert.Equal(t, "Type(200)", Type(200).String())
	assert.Zero(t, Type(200).Size())
}

// TestFloat16 goes through every bit pattern, and through every midpoint between
// neighbours, where rounding to even shows.
func TestFloat16(t *testing.T) {
	for b := range 1 << 16 {
		h := Float16(b)
		x := h.Float64()
		if math.IsNaN(x) {
			assert.True(t, math.IsNaN(ToFloat16(x).Float64()))
			continue
		}
		if got := ToFloat16(x); got != h {
			t.Fatalf("%#04x is %v, which comes back as %#04x", b, x, got)
		}
		next := Float16(b + 1).Float64()
		if b&0x7fff >= 0x7bff {
			continue
		}
		mid, even := (x+next)/2, h
		if b&1 == 1 {
			even++
		}
		if got := ToFloat16(mid); got != even {
			t.Fatalf("midpoint %v of %#04x rounds to %#04x, not to the even %#04x", mid, b, got, even)
		}
		above := mid + (next-mid)*1e-9 // lost by rounding to float32 first
		if got := ToFloat16(above); got != h+1 {
			t.Fatalf("%v just above the midpoint of %#04x rounds to %#04x", above, b, got)
		}
	}
	for x, want := range map[float64]Float16{65504: 0x7bff, 65519.99: 0x7bff, 65520: 0x7c00, 1e300: 0x7c00, math.Inf(-1): 0xfc00,
		math.Ldexp(1, -25): 0, math.Ldexp(1.0001, -25): 1, math.Copysign(0, -1): 0x8000, 1e-300: 0, 5e-324: 0} {
		assert.Equal(t, want, ToFloat16(x), "%v", x)
	}
}

func TestBFloat16(t *testing.T) {
	for b := range 1 << 16 {
		h := BFloat16(b)
		x := h.Float64()
		if math.IsNaN(x) {
			assert.True(t, math.IsNaN(ToBFloat16(x).Float64()))
			continue
		}
		if got := ToBFloat16(x); got != h {
			t.Fatalf("%#04x is %v, which comes back as %#04x", b, x, got)
		}
	}
	one := 1.0
	ulp := math.Ldexp(1, -7)
	assert.Equal(t, ToBFloat16(one), ToBFloat16(one+ulp/2), "ties to even")
	assert.Equal(t, BFloat16(0x3f81), ToBFloat16(one+ulp/2*(1+1e-12)), "rounded once")
	assert.Equal(t, BFloat16(0x3f82), ToBFloat16(one+1.5*ulp))
	assert.Equal(t, BFloat16(0x7f80), ToBFloat16(math.MaxFloat64))
}

func TestRegister(t *testing.T) {
	assert.Panics(t, func() { Register(nil) })
}
