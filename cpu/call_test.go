package cpu

import (
	"errors"
	"math"
	goruntime "runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/half"
	"github.com/concord-compute/concord/source"
)

var (
	intBuffer = source.Param{Name: "x", Decl: "global int *", Pointer: true, Space: source.Global, Kind: source.Int,
		Width: 1, Size: 4}
	floatBuffer = source.Param{Name: "y", Decl: "global float *", Pointer: true, Space: source.Global, Kind: source.Float,
		Width: 1, Size: 4}
	intValue = source.Param{Name: "n", Decl: "int", Kind: source.Int, Width: 1, Size: 4}
)

func value(kind source.Kind, size int) source.Param {
	return source.Param{Name: "v", Kind: kind, Width: 1, Size: size}
}

// runKernel launches f and returns the error of its stream.
func runKernel(t *testing.T, d *device, f Func, l *driver.Launch, params ...source.Param) error {
	t.Helper()
	s := openStream(t, d)
	l.Kernel = goKernel(d, "k", f, params...)
	require.NoError(t, s.Launch(l))
	return s.Sync(background(t))
}

func TestArguments(t *testing.T) {
	d := openDevice(t)
	m := allocBytes(t, d, 40)
	l := launchOf(nil, 1, m)
	pass(l, int8(-5))
	pass(l, uint16(65535))
	pass(l, int32(-7))
	pass(l, float32(1.5))
	pass(l, math.Pi)
	pass(l, uint64(1)<<63)
	pass(l, half.ToFloat16(0.5))
	l.Args = append(l.Args, driver.Arg{Kind: driver.ArgLocal, Size: 24})
	params := []source.Param{floatBuffer, value(source.Char, 1), value(source.UShort, 2), value(source.Int, 4),
		value(source.Float, 4),
		value(source.Double, 8), value(source.ULong, 8), value(source.Half, 2),
		{Name: "l", Pointer: true, Space: source.Local, Kind: source.Float, Width: 1, Size: 4}}
	err := runKernel(t, d, func(c *Call) error {
		assert.Len(t, c.F32(0), 10)
		assert.Len(t, c.Bytes(0), 40)
		assert.EqualValues(t, -5, c.Int(1))
		assert.EqualValues(t, 65535, c.Int(2))
		assert.EqualValues(t, -7, c.Int(3))
		assert.EqualValues(t, -7, c.Float(3))
		assert.EqualValues(t, 1.5, c.Float(4))
		assert.EqualValues(t, math.Pi, c.Float(5))
		assert.EqualValues(t, math.MinInt64, c.Int(6))
		assert.EqualValues(t, float64(1<<63), c.Float(6))
		assert.EqualValues(t, 0.5, c.Float(7))
		assert.Len(t, c.LocalBytes(8), 24)
		assert.Len(t, c.Value(5), 8)
		assert.Equal(t, d.threads, c.Threads())
		return nil
	}, l, params...)
	require.NoError(t, err)
}

func TestMisuseOfArguments(t *testing.T) {
	d := openDevice(t)
	m := allocBytes(t, d, 40)
	odd := driver.Memory{Handle: m.Handle, Offset: 2, Size: 8}
	for name, f := range map[string]Func{
		"wrong type":     func(c *Call) error { c.F64(0); return nil },
		"not there":      func(c *Call) error { c.F32(9); return nil },
		"not a buffer":   func(c *Call) error { c.F32(2); return nil },
		"not a value":    func(c *Call) error { c.Int(0); return nil },
		"misaligned":     func(c *Call) error { c.F32(1); return nil },
		"not local":      func(c *Call) error { c.LocalBytes(0); return nil },
		"not an integer": func(c *Call) error { c.Int(3); return nil },
		"in another goroutine": func(c *Call) error {
			return c.Parallel(1000, 1, func(lo, hi int) { c.F64(0) })
		},
	} {
		l := launchOf(nil, 1, m, odd)
		pass(l, int32(1))
		pass(l, float32(1))
		err := runKernel(t, d, f, l, floatBuffer, floatBuffer, intValue, value(source.Float, 4))
		assert.ErrorIs(t, err, driver.ErrInvalidArgument, name)
		assert.ErrorIs(t, err, driver.ErrLaunch, name)
		assert.NotContains(t, err.Error(), "panicked", "a wrong argument is not reported as a panic: "+name)
	}
}

func TestFreedMemoryIsRefused(t *testing.T) {
	d := openDevice(t)
	s := openStream(t, d)
	m, err := d.Alloc(64, driver.OnDevice)
	require.NoError(t, err)
	require.NoError(t, d.Free(m))
	require.ErrorIs(t, d.Free(m), driver.ErrInvalidArgument)
	nothing := goKernel(d, "nothing", func(*Call) error { return nil })
	require.ErrorIs(t, s.Launch(launchOf(nothing, 1, m)), driver.ErrInvalidArgument)
	require.ErrorIs(t, s.Fill(m, []byte{0}), driver.ErrInvalidArgument)
	m = allocBytes(t, d, 64)
	m.Offset = 1
	require.ErrorIs(t, s.Fill(m, []byte{0}), driver.ErrBufferOverflow)
	require.NoError(t, s.Sync(background(t)), "a refused call leaves the stream as it was")
}

func TestParallelCoversTheRange(t *testing.T) {
	d := openDevice(t)
	for _, threads := range []int{1, 2, 7} {
		d.threads = threads
		for _, n := range []int{-1, 0, 1, 2, 31, 33, 1000, 65537} {
			for _, grain := range []int{0, 1, 64, 100000} {
				seen := make([]atomic.Int32, max(n, 0))
				require.NoError(t, runKernel(t, d, func(c *Call) error {
					return c.Parallel(n, grain, func(lo, hi int) {
						assert.Less(t, lo, hi)
						assert.True(t, hi-lo >= grain || hi == n)
						for i := lo; i < hi; i++ {
							seen[i].Add(1)
						}
					})
				}, launchOf(nil, 1)))
				for i := range seen {
					require.EqualValues(t, 1, seen[i].Load(), "index %d of %d, grain %d, %d threads", i, n, grain, threads)
				}
			}
		}
	}
}

func TestPanicInParallel(t *testing.T) {
	d := openDevice(t)
	mine := errors.New("mine")
	err := runKernel(t, d, func(c *Call) error {
		return c.Parallel(1000, 1, func(lo, hi int) { panic(mine) })
	}, launchOf(nil, 1))
	require.ErrorIs(t, err, mine)
	require.ErrorIs(t, err, driver.ErrLaunch)
	assert.Regexp(t, `the function panicked at .*/call_test.go:\d+: mine$`, err.Error())
}

func TestOverrunOfGoCode(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("no guard pages on this system")
	}
	d := openDevice(t)
	m := allocBytes(t, d, 128)
	behind := func(c *Call, i int) *byte { // computes the address as assembly code would
		return (*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(c.Bytes(i))), 128))
	}
	for name, f := range map[string]Func{
		"function": func(c *Call) error { *behind(c, 0) = 1; return nil },
		"range": func(c *Call) error {
			return c.Parallel(100, 1, func(lo, hi int) { *behind(c, 0) = 1 })
		},
	} {
		err := runKernel(t, d, f, launchOf(nil, 1, m))
		require.ErrorIs(t, err, driver.ErrLaunch, name)
		assert.Regexp(t, `panicked at .*/call_test.go:\d+: .*invalid memory address`, err.Error(), name)
	}
}

func TestRegister(t *testing.T) {
	f := func(*Call) error { return nil }
	Register("test-register", "k", f)
	assert.Panics(t, func() { Register("test-register", "k", f) })
	assert.Panics(t, func() { Register("test-register", "nil", nil) })
	assert.Panics(t, func() { Register("", "k", f) })
	u, err := source.Parse("kernel void k() {}", source.Options{Family: "test-register"})
	require.NoError(t, err)
	k, ok := openDevice(t).Native(u, "k")
	require.True(t, ok)
	assert.Equal(t, "go", k.Info().Implementation)
	assert.True(t, k.Info().Native)
	_, ok = openDevice(t).Native(u, "other")
	assert.False(t, ok)
	_, ok = openDevice(t).Native(&source.Unit{}, "k")
	assert.False(t, ok, "a unit without a family has no implementation of its own")
	_, ok = openIndex(t, referenceIndex).Native(u, "k")
	assert.False(t, ok, "the reference device runs only references")
}
