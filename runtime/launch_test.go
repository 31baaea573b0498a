package runtime

import (
	"context"
	"math"
	"testing"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLaunchPacksArguments(t *testing.T) {
	b := &nullBackend{}
	_, d := open(t, b, Config{})
	k := kernel(t, d, "axpy")
	x, y := buffer(t, d, F32, 100), buffer(t, d, F32, 100)
	require.NoError(t, d.Stream().Launch(k, Items(100), float32(1.5), x, y, int32(-7)))
	l := &b.last
	assert.Equal(t, 1, l.Dim)
	assert.Equal(t, [3]int{100, 1, 1}, l.Global)
	assert.Equal(t, [3]int{100, 1, 1}, l.Local, "a divisor is picked")
	require.Len(t, l.Args, 4)
	assert.Equal(t, driver.Arg{Kind: driver.ArgMemory, Memory: x.Memory()}, l.Args[1])
	assert.Equal(t, 4, l.Args[0].Size)
	assert.Equal(t, float32(1.5), math.Float32frombits(le32(l.Data[l.Args[0].Offset:])))
	assert.Equal(t, uint32(0xfffffff9), le32(l.Data[l.Args[3].Offset:]))
	require.NoError(t, d.Stream().Launch(k, Items(100), float32(1.5), x, y, 12),
		"an int goes to any integer that holds it")
	assert.Equal(t, uint32(12), le32(b.last.Data[b.last.Args[3].Offset:]))
}

func le32(b []byte) uint32 {
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

func TestLaunchRefuses(t *testing.T) {
	b := &nullBackend{}
	s, d := open(t, b, Config{})
	other, err := s.Open(t.Context(), "cuda:1")
	require.NoError(t, err)
	k, odd, sized := kernel(t, d, "axpy"), kernel(t, d, "odd"), kernel(t, d, "sized")
	x, y := buffer(t, d, F32, 100), buffer(t, d, F32, 100)
	foreign := buffer(t, other, F32, 100)
	ints, small := buffer(t, d, I32, 100), buffer(t, d, F32, 2)
	closed := buffer(t, d, F32, 100)
	require.NoError(t, closed.Close())
	f, n := float32(1), int32(100)
	pair := make([]byte, 8)

	for name, c := range map[string]struct {
		k    *Kernel
		g    Grid
		args []any
		want error
	}{
		"nil kernel":         {nil, Items(1), nil, ErrInvalidArgument},
		"too few":            {k, Items(100), []any{f, x, y}, ErrInvalidArgument},
		"too many":           {k, Items(100), []any{f, x, y, n, n}, ErrInvalidArgument},
		"wrong width":        {k, Items(100), []any{float64(1), x, y, n}, ErrInvalidArgument},
		"int for a float":    {k, Items(100), []any{1, x, y, n}, ErrInvalidArgument},
		"int too large":      {k, Items(100), []any{f, x, y, 1 << 40}, ErrInvalidArgument},
		"buffer for a value": {k, Items(100), []any{x, x, y, n}, ErrInvalidArgument},
		"value for a buffer": {k, Items(100), []any{f, n, y, n}, ErrInvalidArgument},
		"slice for a buffer": {k, Items(100), []any{f, []float32{1}, y, n}, ErrInvalidArgument},
		"nil":                {k, Items(100), []any{f, nil, y, n}, ErrInvalidArgument},
		"nil buffer":         {k, Items(100), []any{f, (*Buffer)(nil), y, n}, ErrInvalidArgument},
		"element type":       {k, Items(100), []any{f, ints, y, n}, ErrInvalidArgument},
		"foreign buffer":     {k, Items(100), []any{f, foreign, y, n}, ErrInvalidArgument},
		"closed buffer":      {k, Items(100), []any{f, closed, y, n}, ErrClosed},
		"local for global":   {k, Items(100), []any{f, Local(16), y, n}, ErrInvalidArgument},
		"buffer too small":   {odd, Items(1), []any{small, Local(4), uint32(1), uint64(1), pair, x}, ErrInvalidArgument},
		"no local memory":    {odd, Items(1), []any{x, Local(0), uint32(1), uint64(1), pair, x}, ErrInvalidArgument},
		"local overflow":     {odd, Items(1), []any{x, Local(49 << 10), uint32(1), uint64(1), pair, x}, ErrLaunch},
		"vector as float":    {odd, Items(1), []any{x, Local(4), uint32(1), uint64(1), f, x}, ErrInvalidArgument},
		"vector too long": {odd, Items(1), []any{x, Local(4), uint32(1), uint64(1), make([]byte, 12), x},
			ErrInvalidArgument},
		"negative uint":     {odd, Items(1), []any{x, Local(4), -1, uint64(1), pair, x}, ErrInvalidArgument},
		"grid 0":            {k, Items(0), []any{f, x, y, n}, ErrInvalidArgument},
		"grid empty":        {k, Items(), []any{f, x, y, n}, ErrInvalidArgument},
		"grid negative":     {k, Items(-5), []any{f, x, y, n}, ErrInvalidArgument},
		"grid hole":         {k, Items(5, 0, 5), []any{f, x, y, n}, ErrInvalidArgument},
		"grid 4 dimensions": {k, Items(1, 1, 1, 1), []any{f, x, y, n}, ErrInvalidArgument},
		"grid huge":         {k, Items(math.MaxInt), []any{f, x, y, n}, ErrTooLarge},
		"grid overflows":    {k, Items(1<<32, 1<<32), []any{f, x, y, n}, ErrTooLarge},
		"group negative":    {k, Items(4).InGroups(-2), []any{f, x, y, n}, ErrInvalidArgument},
		"group no divisor":  {k, Items(100).InGroups(64), []any{f, x, y, n}, ErrInvalidArgument},
		"group oversized":   {k, Items(4096).InGroups(2048), []any{f, x, y, n}, ErrTooLarge},
		"group volume":      {k, Items(64, 64).InGroups(64, 64), []any{f, x, y, n}, ErrTooLarge},
		"group depth":       {k, Items(1, 1, 128).InGroups(1, 1, 128), []any{f, x, y, n}, ErrTooLarge},
		"group required":    {sized, Items(64, 64).InGroups(8, 8), []any{ints}, ErrInvalidArgument},
	} {
		before := b.launches.Load()
		err := d.Stream().Launch(c.k, c.g, c.args...)
		assert.ErrorIs(t, err, c.want, name)
		assert.Equal(t, before, b.launches.Load(), "%s: the driver is not called", name)
	}
	require.NoError(t, d.Stream().Launch(k, Items(100), f, x, y, n), "the next good call works")
	require.NoError(t, d.Stream().Launch(odd, Items(1), x, Local(4), uint32(1), uint64(1), pair, ints))
	require.NoError(t, d.Stream().Launch(sized, Items(64, 64), ints))
	assert.Equal(t, [3]int{8, 4, 1}, b.last.Local, "the required group is used")
}

func TestLaunchRefusesKernelOfAnotherDevice(t *testing.T) {
	s, d := open(t, &nullBackend{}, Config{})
	other, err := s.Open(t.Context(), "cuda:1")
	require.NoError(t, err)
	x := buffer(t, other, F32, 4)
	err = other.Stream().Launch(kernel(t, d, "axpy"), Items(4), float32(1), x, x, int32(4))
	assert.ErrorIs(t, err, ErrInvalidArgument)
}

func TestLaunchAfterClose(t *testing.T) {
	_, d := open(t, &nullBackend{}, Config{})
	x := buffer(t, d, F32, 4)
	k := kernel(t, d, "axpy")
	s, err := d.NewStream()
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close(), "twice is nothing")
	assert.ErrorIs(t, s.Launch(k, Items(4), float32(1), x, x, int32(4)), ErrClosed)
	require.NoError(t, d.Close())
	assert.ErrorIs(t, d.Stream().Launch(k, Items(4), float32(1), x, x, int32(4)), ErrClosed)
	assert.NoError(t, x.Close())
	_, err = d.Alloc(F32, 4)
	assert.ErrorIs(t, err, ErrClosed)
	_, err = d.NewStream()
	assert.ErrorIs(t, err, ErrClosed)
}

func TestPickGroup(t *testing.T) {
	_, d := open(t, &nullBackend{}, Config{})
	k := kernel(t, d, "axpy")
	for _, c := range []struct{ items, want [3]int }{
		{[3]int{1024}, [3]int{256, 1, 1}},
		{[3]int{1000}, [3]int{250, 1, 1}},
		{[3]int{251}, [3]int{251, 1, 1}},
		{[3]int{257}, [3]int{1, 1, 1}},
		{[3]int{16, 48}, [3]int{16, 16, 1}},
		{[3]int{1, 1, 256}, [3]int{1, 1, 64}},
	} {
		_, _, group, err := Grid{Items: c.items}.resolve(k)
		require.NoError(t, err)
		assert.Equal(t, c.want, group, "%v", c.items)
	}
}

// Where a device counts few groups along a dimension, groups reach further along it.
func TestPickGroupFits(t *testing.T) {
	_, d := open(t, &nullBackend{maxGroups: [3]int{1<<31 - 1, 65535, 65535}}, Config{})
	k := kernel(t, d, "axpy")
	for _, c := range []struct{ items, want [3]int }{
		{[3]int{1 << 20, 64}, [3]int{256, 1, 1}},
		{[3]int{64, 65535}, [3]int{64, 3, 1}},
		{[3]int{64, 1 << 20}, [3]int{8, 32, 1}},
		{[3]int{64, 1 << 20, 1 << 17}, [3]int{2, 32, 4}},
		{[3]int{7, 65536 * 8}, [3]int{7, 32, 1}},
		{[3]int{1, 1 << 26}, [3]int{1, 1024, 0}}, // does not fit: 65536 groups of 1024
		{[3]int{1, 65537}, [3]int{1, 0, 0}},      // prime
		{[3]int{1, 1 << 25}, [3]int{1, 1024, 1}}, // above 256 as it must
	} {
		_, _, group, err := Grid{Items: c.items}.resolve(k)
		if c.want[2] == 0 {
			assert.ErrorIs(t, err, ErrTooLarge, "%v", c.items)
			continue
		}
		require.NoError(t, err, "%v", c.items)
		assert.Equal(t, c.want, group, "%v", c.items)
	}
}

// TestLaunchTakesEveryInteger passes each of Go's integer types to parameters of other integer types.
func TestLaunchTakesEveryInteger(t *testing.T) {
	b := &nullBackend{}
	_, d := open(t, b, Config{})
	u, err := source.Parse(`kernel void all(char c, uchar uc, short s, ushort us, int i, uint ui, long l, ulong ul) {}`,
		source.Options{})
	require.NoError(t, err)
	p, err := d.Program(t.Context(), u, ProgramOptions{})
	require.NoError(t, err)
	k, err := p.Kernel("all")
	require.NoError(t, err)
	for _, v := range []any{int(7), int8(7), int16(7), int32(7), int64(7), uint(7), uint8(7), uint16(7), uint32(7),
		uint64(7), uintptr(7)} {
		require.NoError(t, d.Stream().Launch(k, Items(1), v, v, v, v, v, v, v, v), "%T", v)
		for _, arg := range b.last.Args {
			assert.Equal(t, byte(7), b.last.Data[arg.Offset], "%T", v)
		}
	}
	all := func() []any { return []any{0, 0, 0, 0, 0, 0, 0, 0} }
	for i, c := range []struct{ least, most, below, above any }{
		{int64(math.MinInt8), uint64(math.MaxInt8), int64(math.MinInt8 - 1), uint64(math.MaxInt8 + 1)},
		{int64(0), uint64(math.MaxUint8), int64(-1), int32(math.MaxUint8 + 1)},
		{int64(math.MinInt16), uint64(math.MaxInt16), int64(math.MinInt16 - 1), uint16(math.MaxInt16 + 1)},
		{int64(0), int64(math.MaxUint16), int8(-1), int32(math.MaxUint16 + 1)},
		{int64(math.MinInt32), uint64(math.MaxInt32), int64(math.MinInt32 - 1), uint32(math.MaxInt32 + 1)},
		{int64(0), uint64(math.MaxUint32), int32(-1), int64(math.MaxUint32 + 1)},
		{int(math.MinInt64), uint64(math.MaxInt64), nil, uint64(math.MaxInt64 + 1)},
		{int64(0), uint(math.MaxUint64), int64(-1), nil},
	} {
		for _, v := range []any{c.least, c.most} {
			args := all()
			args[i] = v
			assert.NoError(t, d.Stream().Launch(k, Items(1), args...), "%T(%d)", v, v)
		}
		for _, v := range []any{c.below, c.above, float32(1), Float16(1)} {
			args := all()
			args[i] = v
			assert.ErrorIs(t, d.Stream().Launch(k, Items(1), args...), ErrInvalidArgument, "%T(%v) for parameter %d", v, v, i)
		}
	}
}

// TestLaunchAllocates is the bar of 0 allocations with variables as arguments.
func TestLaunchAllocates(t *testing.T) {
	_, d := open(t, &nullBackend{}, Config{})
	k, s := kernel(t, d, "axpy"), d.Stream()
	x, y := buffer(t, d, F32, 1000), buffer(t, d, F32, 1000)
	a, n := float32(2), int64(1000) // n is an int in the kernel
	got := testing.AllocsPerRun(100, func() {
		a++
		n--
		if err := s.Launch(k, Items(1024).InGroups(256), a, x, y, n); err != nil {
			t.Fatal(err)
		}
	})
	assert.Zero(t, got)
}

// BenchmarkLaunch is a launch with 4 variable arguments over a driver that does
// nothing: what Concord adds.
func BenchmarkLaunch(b *testing.B) {
	null := &nullBackend{}
	_, d := open(b, null, Config{})
	k, s := kernel(b, d, "axpy"), d.Stream()
	x, y := buffer(b, d, F32, 1000), buffer(b, d, F32, 1000)
	a, n := float32(2), int32(1000)
	b.ReportAllocs()
	for b.Loop() {
		a++
		n--
		if err := s.Launch(k, Items(1024).InGroups(256), a, x, y, n); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkProgram is asking for a program that is loaded.
func BenchmarkProgram(b *testing.B) {
	_, d := open(b, &nullBackend{}, Config{})
	unit := kernel(b, d, "axpy").program.key.unit
	b.ReportAllocs()
	for b.Loop() {
		p, err := d.Program(context.Background(), unit)
		if err != nil {
			b.Fatal(err)
		}
		p.Close()
	}
}
