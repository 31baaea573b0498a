package managed

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func managed(t testing.TB, d *runtime.Device, n int, opt Options) *Buffer {
	t.Helper()
	m, err := New(d, runtime.F32, n, opt)
	require.NoError(t, err)
	return m
}

// dirtyOf names the newer side.
func dirtyOf(m *Buffer) string {
	host, device := m.Dirty()
	switch {
	case host && device:
		return "BOTH"
	case host:
		return "host"
	case device:
		return "device"
	}
	return "clean"
}

// axpy launches the kernel that reads x and adds to y.
func axpy(s *runtime.Stream, k *runtime.Kernel, x, y any) error {
	return Launch(s, k, runtime.Items(4), float32(2), x, y, 4)
}

// The calls that reach the driver, and the state of both sides afterwards.
func TestManagedCopiesWhatIsNeeded(t *testing.T) {
	b := &nullBackend{full: true, told: true}
	_, d := open(t, b, runtime.Config{})
	k, s, ctx := kernel(t, d, "axpy"), d.Stream(), t.Context()
	x, y := managed(t, d, 4, Options{}), managed(t, d, 4, Options{Location: HostPreferred})
	b.heard()
	step := func(what string, err error, xs, ys string, calls ...string) {
		t.Helper()
		require.NoError(t, err, what)
		assert.Equal(t, xs, dirtyOf(x), "x after "+what)
		assert.Equal(t, ys, dirtyOf(y), "y after "+what)
		if heard := b.heard(); len(calls)+len(heard) > 0 {
			assert.Equal(t, calls, heard, what)
		}
	}
	in := make([]float32, 4)
	step("write x", Write(ctx, x, in), "host", "clean")
	step("write y", Write(ctx, y, in[:2]), "host", "host")
	step("launch", axpy(s, k, x, y), "clean", "device", "upload pinned", "upload pinned", "launch")
	step("again", axpy(s, k, x, y), "clean", "device", "launch")
	step("read x", Read(ctx, x, in), "clean", "device")
	step("read y", Read(ctx, y, in[:1]), "clean", "clean", "download pinned")
	step("once more", Read(ctx, y, in), "clean", "clean")
	step("to host", y.ToHost(ctx), "clean", "clean")
	step("to device", y.ToDevice(ctx), "clean", "clean")
	step("out", axpy(s, k, x, Overwrite(y)), "clean", "device", "launch")
	step("part of y", Write(ctx, y, in[:1]), "clean", "host", "download pinned")
	step("queued", y.QueueToDevice(s), "clean", "clean", "upload pinned")
	step("launch after", axpy(s, k, y, x), "device", "clean", "launch")
	step("all of x", Write(ctx, x, in), "host", "clean")
	step("out of what is newer on the host", axpy(s, k, y, Overwrite(x)), "device", "clean", "launch")
	step("queued to host", x.QueueToHost(s), "clean", "clean", "download pinned")
	step("in and out", axpy(s, k, x, Overwrite(x)), "device", "clean", "launch")
	require.NoError(t, Write(ctx, x, in))
	step("read by one and replaced by the other", axpy(s, k, x, Overwrite(x)), "device", "clean", "upload pinned",
		"launch")

	half, err := x.Slice(1, 2)
	require.NoError(t, err)
	quarter, err := half.Slice(1, 1)
	require.NoError(t, err)
	require.NoError(t, Write(ctx, quarter, in[:1]))
	step("a view of a view", nil, "host", "clean", "download pinned")
	require.NoError(t, axpy(s, k, y, Overwrite(half)))
	step("out of a view", nil, "device", "clean", "upload pinned", "launch")
	assert.Equal(t, x.handle.st.dev.Memory().Handle, b.last.Args[2].Memory.Handle)
	assert.EqualValues(t, 4, b.last.Args[2].Memory.Offset)
	assert.EqualValues(t, 8, b.last.Args[2].Memory.Size)

	// Work on the host, as of a room above that falls back.
	out, err := Map[float32](ctx, x, runtime.ForOverwriting)
	require.NoError(t, err)
	for i := range out {
		out[i] = float32(i)
	}
	step("unmap", x.Unmap(), "host", "clean")
	step("to host after a fallback", x.ToHost(ctx), "host", "clean")
	require.NoError(t, Read(ctx, x, in))
	assert.Equal(t, []float32{0, 1, 2, 3}, in, "what the device had does not come back")
	step("the next launch", axpy(s, k, x, y), "clean", "device", "upload pinned", "launch")
	view, err := Map[float32](ctx, y, runtime.ForReading)
	require.NoError(t, err)
	assert.Len(t, view, 4)
	step("unmap what was read", y.Unmap(), "clean", "clean", "download pinned")
}

func TestManagedPlainHostMemory(t *testing.T) {
	b := &nullBackend{told: true}
	_, d := open(t, b, runtime.Config{})
	k, s, ctx := kernel(t, d, "axpy"), d.Stream(), t.Context()
	x, y := managed(t, d, 4, Options{}), managed(t, d, 4, Options{})
	b.heard()
	in := []float32{1, 2, 3, 4}
	require.NoError(t, Write(ctx, x, in))
	require.NoError(t, axpy(s, k, x, Overwrite(y)))
	require.NoError(t, Read(ctx, y, in))
	require.NoError(t, Read(ctx, x, in))
	assert.Equal(t, []string{"upload", "launch", "download"}, b.heard())
	assert.EqualValues(t, 32, d.Stats().Live, "the host's sides are no memory of the device")
	require.NoError(t, x.Close())
	require.NoError(t, y.Close())
	assert.Zero(t, d.Stats().Live)
}

func TestManagedExplicit(t *testing.T) {
	b := &nullBackend{full: true, told: true}
	_, d := open(t, b, runtime.Config{})
	k, s, ctx := kernel(t, d, "axpy"), d.Stream(), t.Context()
	x := managed(t, d, 4, Options{Mode: ExplicitMode})
	y := managed(t, d, 4, Options{Mode: ExplicitMode, Strict: true})
	in := []float32{1, 2, 3, 4}
	require.NoError(t, Write(ctx, x, in))
	b.heard()
	assert.ErrorIs(t, axpy(s, k, x, y), runtime.ErrInvalidArgument, "an input that is newer on the host")
	assert.ErrorIs(t, axpy(s, k, y, x), runtime.ErrInvalidArgument, "what is read and written as well")
	assert.Empty(t, b.heard())
	require.NoError(t, axpy(s, k, y, Overwrite(x)), "but not what is replaced")
	assert.Equal(t, "device", dirtyOf(x))
	got := make([]float32, 4)
	require.NoError(t, Read(ctx, x, got))
	assert.Equal(t, in, got, "what the host's side holds")
	assert.Equal(t, "device", dirtyOf(x))
	assert.ErrorIs(t, Write(ctx, x, in[:1]), runtime.ErrInvalidArgument, "both sides would have what the other lacks")
	_, err := Map[float32](ctx, x, runtime.ForWriting)
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	require.NoError(t, Write(ctx, x, in))
	assert.Equal(t, "host", dirtyOf(x))
	b.heard()
	require.NoError(t, x.ToDevice(ctx))
	require.NoError(t, axpy(s, k, x, Overwrite(y)))
	assert.Equal(t, []string{"upload pinned", "launch"}, b.heard())
	assert.ErrorIs(t, Read(ctx, y, got), runtime.ErrInvalidArgument, "strict")
	_, err = Map[float32](ctx, y, runtime.ForReading)
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	require.NoError(t, y.ToHost(ctx))
	require.NoError(t, Read(ctx, y, got))
	assert.Equal(t, []string{"download pinned"}, b.heard())
}

func TestManagedUnified(t *testing.T) {
	b := &nullBackend{full: true, told: true}
	_, d := open(t, b, runtime.Config{})
	k, s, ctx := kernel(t, d, "axpy"), d.Stream(), t.Context()
	x := managed(t, d, 4, Options{Mode: UnifiedMode})
	b.heard()
	require.NoError(t, Write(ctx, x, []float32{1, 2, 3, 4}))
	require.NoError(t, x.QueueToDevice(s))
	require.NoError(t, axpy(s, k, x, x))
	require.NoError(t, x.QueueToHost(s))
	require.NoError(t, Read(ctx, x, make([]float32, 4)))
	assert.Equal(t, []string{"prefetch false", "launch", "prefetch true"}, b.heard())
	assert.Equal(t, "clean", dirtyOf(x))
	assert.Equal(t, UnifiedMode, x.Mode())

	_, plain := open(t, &nullBackend{allocKindErr: fmt.Errorf("one address: %w", runtime.ErrUnsupported)},
		runtime.Config{})
	_, err := New(plain, runtime.F32, 4, Options{Mode: UnifiedMode})
	assert.ErrorIs(t, err, runtime.ErrUnsupported)
	y, err := New(plain, runtime.F32, 4, Options{Mode: UnifiedMode, AllowDowngrade: true})
	require.NoError(t, err)
	assert.Equal(t, AutomaticMode, y.Mode())
	_, blind := open(t, &nullBackend{}, runtime.Config{})
	_, err = New(blind, runtime.F32, 4, Options{Mode: UnifiedMode})
	assert.ErrorIs(t, err, runtime.ErrUnsupported, "the host does not see it")
	assert.Zero(t, blind.Stats().Live)
}

func TestManagedRefuses(t *testing.T) {
	b := &nullBackend{full: true, told: true}
	sess, d := open(t, b, runtime.Config{})
	other, err := sess.Open(t.Context(), "cuda:1")
	require.NoError(t, err)
	k, s, ctx := kernel(t, d, "axpy"), d.Stream(), t.Context()
	x, closed := managed(t, d, 4, Options{}), managed(t, d, 4, Options{})
	require.NoError(t, closed.Close())
	require.NoError(t, closed.Close())
	hostOnly, deviceOnly := managed(t, d, 4, Options{Location: HostOnly}), managed(t, d, 4, Options{Location: DeviceOnly})
	mapped, foreign := managed(t, d, 4, Options{}), managed(t, other, 4, Options{})
	_, err = Map[float32](ctx, mapped, runtime.ForWriting)
	require.NoError(t, err)
	ints, err := New(d, runtime.I32, 4, Options{})
	require.NoError(t, err)
	var none *Buffer
	in := make([]float32, 4)
	alloc := func(n int, opt Options) error { _, err := New(d, runtime.F32, n, opt); return err }
	b.heard()
	before := d.Stats()
	for what, c := range map[string]struct {
		call func() error
		want error
	}{
		"-1 elements":        {func() error { return alloc(-1, Options{}) }, runtime.ErrInvalidArgument},
		"far too many":       {func() error { return alloc(1<<61, Options{}) }, runtime.ErrTooLarge},
		"more than fits":     {func() error { return alloc(1<<38, Options{}) }, runtime.ErrTooLarge},
		"more than the host": {func() error { return alloc(1<<44, Options{Location: HostOnly}) }, runtime.ErrTooLarge},
		"mode":               {func() error { return alloc(1, Options{Mode: 9}) }, runtime.ErrInvalidArgument},
		"location":           {func() error { return alloc(1, Options{Location: 9}) }, runtime.ErrInvalidArgument},
		"unified, one side": {func() error { return alloc(1, Options{Mode: UnifiedMode, Location: HostOnly}) },
			runtime.ErrInvalidArgument},
		"type": {func() error { _, err := New(d, runtime.Type(0), 1, Options{}); return err },
			runtime.ErrInvalidArgument},
		"write too much": {func() error { return Write(ctx, x, make([]float32, 5)) }, runtime.ErrBufferOverflow},
		"read too much":  {func() error { return Read(ctx, x, make([]float32, 5)) }, runtime.ErrBufferOverflow},
		"write other":    {func() error { return Write(ctx, x, make([]int32, 1)) }, runtime.ErrInvalidArgument},
		"read closed":    {func() error { return Read(ctx, closed, in) }, runtime.ErrClosed},
		"write closed":   {func() error { return Write(ctx, closed, in) }, runtime.ErrClosed},
		"write nil":      {func() error { return Write(ctx, none, in) }, runtime.ErrInvalidArgument},
		"write zero":     {func() error { return Write(ctx, &Buffer{}, in) }, runtime.ErrInvalidArgument},
		"read no host":   {func() error { return Read(ctx, deviceOnly, in) }, driver.ErrNoHostMemory},
		"write no host":  {func() error { return Write(ctx, deviceOnly, in) }, driver.ErrNoHostMemory},
		"map no host": {func() error { _, err := Map[float32](ctx, deviceOnly, runtime.ForReading); return err },
			driver.ErrNoHostMemory},
		"to host, none":     {func() error { return deviceOnly.ToHost(ctx) }, driver.ErrNoHostMemory},
		"to device, none":   {func() error { return hostOnly.ToDevice(ctx) }, driver.ErrNoDeviceMemory},
		"launch, no device": {func() error { return axpy(s, k, hostOnly, x) }, driver.ErrNoDeviceMemory},
		"launch, mapped":    {func() error { return axpy(s, k, x, mapped) }, runtime.ErrInvalidArgument},
		"to device, mapped": {func() error { return mapped.ToDevice(ctx) }, runtime.ErrInvalidArgument},
		"side, mapped": {func() error { _, err := mapped.DeviceSide(s, runtime.ForReading); return err },
			runtime.ErrInvalidArgument},
		"map twice": {func() error { _, err := Map[float32](ctx, mapped, runtime.ForReading); return err },
			runtime.ErrInvalidArgument},
		"map other": {func() error { _, err := Map[int32](ctx, x, runtime.ForReading); return err },
			runtime.ErrInvalidArgument},
		"map nil": {func() error { _, err := Map[int32](ctx, none, runtime.ForReading); return err },
			runtime.ErrInvalidArgument},
		"map access":         {func() error { _, err := Map[float32](ctx, x, 9); return err }, runtime.ErrInvalidArgument},
		"unmap":              {func() error { return x.Unmap() }, runtime.ErrInvalidArgument},
		"unmap nil":          {func() error { return none.Unmap() }, runtime.ErrInvalidArgument},
		"launch closed":      {func() error { return axpy(s, k, closed, x) }, runtime.ErrClosed},
		"launch closed out":  {func() error { return axpy(s, k, x, Overwrite(closed)) }, runtime.ErrClosed},
		"launch nil":         {func() error { return axpy(s, k, none, x) }, runtime.ErrInvalidArgument},
		"launch nil out":     {func() error { return axpy(s, k, x, Overwrite(nil)) }, runtime.ErrInvalidArgument},
		"launch zero out":    {func() error { return axpy(s, k, x, Overwritten{}) }, runtime.ErrInvalidArgument},
		"launch foreign":     {func() error { return axpy(s, k, foreign, x) }, runtime.ErrInvalidArgument},
		"launch other type":  {func() error { return axpy(s, k, ints, x) }, runtime.ErrInvalidArgument},
		"an input as output": {func() error { return axpy(s, k, Overwrite(x), x) }, runtime.ErrInvalidArgument},
		"for a value": {func() error { return Launch(s, k, runtime.Items(4), x, x, x, 4) },
			runtime.ErrInvalidArgument},
		"grid": {func() error { return Launch(s, k, runtime.Items(0), float32(1), x, x, 4) },
			runtime.ErrInvalidArgument},
		"too few": {func() error { return Launch(s, k, runtime.Items(4), float32(1), x) },
			runtime.ErrInvalidArgument},
		"too many": {func() error { return Launch(s, k, runtime.Items(4), float32(1), x, x, 4, x) },
			runtime.ErrInvalidArgument},
		"in a graph": {
			func() error { return captured(s, func(r *runtime.Stream) error { return axpy(r, k, x, x) }) },
			runtime.ErrInvalidArgument},
		"copy in a graph": {
			func() error { return captured(s, func(r *runtime.Stream) error { return x.QueueToHost(r) }) },
			runtime.ErrInvalidArgument},
		"no stream":           {func() error { return x.QueueToDevice(nil) }, runtime.ErrInvalidArgument},
		"launch on no stream": {func() error { return axpy(nil, k, x, x) }, runtime.ErrInvalidArgument},
		"stream of another":   {func() error { return x.QueueToHost(other.Stream()) }, runtime.ErrInvalidArgument},
		"to device, nil":      {func() error { return none.QueueToDevice(s) }, runtime.ErrInvalidArgument},
		"slice":               {func() error { _, err := x.Slice(3, 2); return err }, runtime.ErrBufferOverflow},
		"slice nil":           {func() error { _, err := none.Slice(0, 1); return err }, runtime.ErrInvalidArgument},
		"slice closed":        {func() error { _, err := closed.Slice(0, 1); return err }, runtime.ErrClosed},
		"side access":         {func() error { _, err := x.DeviceSide(s, 9); return err }, runtime.ErrInvalidArgument},
		"side of closed": {func() error { _, err := closed.DeviceSide(s, runtime.ForReading); return err },
			runtime.ErrClosed},
		"side, none": {func() error { _, err := hostOnly.DeviceSide(s, runtime.ForReading); return err },
			driver.ErrNoDeviceMemory},
		"closed in the end": {func() error { return closed.Unmap() }, runtime.ErrClosed},
	} {
		assert.ErrorIs(t, c.call(), c.want, what)
		assert.NotContains(t, b.heard(), "launch", what)
		assert.Equal(t, "clean", dirtyOf(x), what)
	}
	after := d.Stats()
	assert.Equal(t, before.Live, after.Live)
	require.NoError(t, none.Close())
	require.NoError(t, new(Buffer).Close())
	assert.Equal(t, "nil buffer", none.String())
	assert.Equal(t, "f32[4] on cuda:0", x.String())
	require.NoError(t, mapped.Unmap())
	require.NoError(t, axpy(s, k, x, mapped), "unmapped it is as any other")
	require.NoError(t, Write(ctx, hostOnly, in))
	require.NoError(t, Read(ctx, hostOnly, in))
	require.NoError(t, hostOnly.ToHost(ctx))
	require.NoError(t, axpy(s, k, deviceOnly, deviceOnly))
	require.NoError(t, d.Close())
	assert.ErrorIs(t, Read(ctx, x, in), runtime.ErrClosed)
	assert.ErrorIs(t, x.ToDevice(ctx), runtime.ErrClosed)
	assert.ErrorIs(t, axpy(s, k, x, x), runtime.ErrClosed)
	require.NoError(t, x.Close())
}

func captured(s *runtime.Stream, record func(*runtime.Stream) error) error {
	_, err := s.Capture(record)
	return err
}

// A copy that fails is not taken for one that happened.
func TestManagedCopyThatFails(t *testing.T) {
	failed := errors.New("no")
	b := &nullBackend{told: true}
	_, d := open(t, b, runtime.Config{})
	k, s, ctx := kernel(t, d, "axpy"), d.Stream(), t.Context()
	x := managed(t, d, 4, Options{})
	require.NoError(t, Write(ctx, x, make([]float32, 4)))
	b.transferErr = func() error { return failed }
	assert.ErrorIs(t, axpy(s, k, x, x), failed)
	assert.Equal(t, "host", dirtyOf(x))
	b.transferErr = nil
	require.NoError(t, axpy(s, k, x, x))
	b.transferErr = func() error { return failed }
	assert.ErrorIs(t, Read(ctx, x, make([]float32, 4)), failed)
	assert.Equal(t, "device", dirtyOf(x))
	b.transferErr = nil
	require.NoError(t, Read(ctx, x, make([]float32, 4)))

	stop, cancel := context.WithCancel(ctx)
	cancel()
	require.NoError(t, axpy(s, k, x, x))
	b.transferErr = func() error { return stop.Err() }
	assert.ErrorIs(t, Read(stop, x, make([]float32, 4)), context.Canceled)
	assert.Equal(t, "device", dirtyOf(x))
}

// Streams that use the same buffer wait for each other, where that matters.
func TestManagedOrdersStreams(t *testing.T) {
	b := &nullBackend{full: true, told: true, slow: new(atomic.Bool)}
	_, d := open(t, b, runtime.Config{})
	k, ctx := kernel(t, d, "axpy"), t.Context()
	one, err := d.NewStream()
	require.NoError(t, err)
	two, err := d.NewStream()
	require.NoError(t, err)
	x, y, z := managed(t, d, 4, Options{}), managed(t, d, 4, Options{}), managed(t, d, 4, Options{})
	b.slow.Store(true)
	defer b.slow.Store(false)
	require.NoError(t, Write(ctx, x, make([]float32, 4)))
	b.heard()
	require.NoError(t, axpy(one, k, x, y))
	assert.Equal(t, []string{"upload pinned", "launch"}, b.heard())
	require.NoError(t, axpy(two, k, x, z))
	assert.Equal(t, []string{"wait", "launch"}, b.heard(), "it reads what the other stream uploads")
	require.NoError(t, axpy(one, k, x, y))
	assert.Equal(t, []string{"launch"}, b.heard(), "two readers do not wait for each other")
	require.NoError(t, axpy(one, k, z, x))
	assert.Equal(t, []string{"wait", "wait", "launch"}, b.heard(),
		"it writes what the other reads, and reads what that wrote")
	require.NoError(t, one.Sync(ctx))
	require.NoError(t, two.Sync(ctx))
	require.NoError(t, axpy(two, k, z, x))
	assert.Equal(t, []string{"launch"}, b.heard(), "nothing to wait for")
}

func TestManagedDeviceSide(t *testing.T) {
	b := &nullBackend{full: true, told: true}
	_, d := open(t, b, runtime.Config{})
	s, ctx := d.Stream(), t.Context()
	x := managed(t, d, 8, Options{})
	v, err := x.Slice(2, 4)
	require.NoError(t, err)
	require.NoError(t, Write(ctx, x, make([]float32, 8)))
	b.heard()
	side, err := v.DeviceSide(s, runtime.ForReading)
	require.NoError(t, err)
	assert.Equal(t, []string{"upload pinned"}, b.heard())
	assert.Equal(t, 4, side.Len())
	assert.EqualValues(t, 8, side.Memory().Offset)
	assert.Equal(t, "clean", dirtyOf(x))
	require.NoError(t, side.Close())
	side, err = v.DeviceSide(s, runtime.ForOverwriting)
	require.NoError(t, err)
	assert.Equal(t, "device", dirtyOf(x))
	require.NoError(t, s.Fill(side, float32(1)))
	require.NoError(t, Read(ctx, x, make([]float32, 8)))
	assert.Equal(t, []string{"fill", "download pinned"}, b.heard())
	require.NoError(t, x.Close())
	require.NoError(t, v.Close())
	assert.EqualValues(t, 32, d.Stats().Live, "the Buffer keeps its side")
	require.NoError(t, side.Close())
	assert.Zero(t, d.Stats().Live)
}

// TestLaunchNamesArgument: a refusal says which argument it is about, as those of Stream.Launch do.
func TestLaunchNamesArgument(t *testing.T) {
	sess, d := open(t, &nullBackend{full: true}, runtime.Config{})
	other, err := sess.Open(t.Context(), "cuda:1")
	require.NoError(t, err)
	k, s, x := kernel(t, d, "axpy"), d.Stream(), managed(t, d, 4, Options{})
	mapped, explicit := managed(t, d, 4, Options{}), managed(t, d, 4, Options{Mode: ExplicitMode})
	require.NoError(t, Write(t.Context(), explicit, make([]float32, 4)))
	_, err = Map[float32](t.Context(), mapped, runtime.ForWriting)
	require.NoError(t, err)
	for what, err := range map[string]error{
		"belongs to cuda:1":   axpy(s, k, x, managed(t, other, 4, Options{})),
		"is mapped":           axpy(s, k, x, mapped),
		"no device side":      axpy(s, k, x, managed(t, d, 4, Options{Location: HostOnly})),
		"copies are explicit": axpy(s, k, x, explicit),
		"buffer is nil":       axpy(s, k, x, (*Buffer)(nil)),
		"buffer holds":        axpy(s, k, x, Overwrite(managedInts(t, d))),
	} {
		assert.ErrorContains(t, err, "cuda:0: launch axpy: argument 2 (global float * y): ", what)
		assert.ErrorContains(t, err, what)
	}
	assert.ErrorContains(t, axpy(s, k, (*Buffer)(nil), x), "launch axpy: argument 1 ")
}

// A device of another session may have the same name, and is another device.
func TestManagedOtherSession(t *testing.T) {
	_, d := open(t, &nullBackend{full: true}, runtime.Config{})
	_, twin := open(t, &nullBackend{full: true}, runtime.Config{})
	require.Equal(t, d.String(), twin.String())
	x := managed(t, d, 4, Options{})
	assert.ErrorIs(t, x.QueueToDevice(twin.Stream()), runtime.ErrInvalidArgument)
	assert.ErrorIs(t, x.QueueToHost(twin.Stream()), runtime.ErrInvalidArgument)
	require.NoError(t, x.QueueToDevice(d.Stream()))
}

func managedInts(t *testing.T, d *runtime.Device) *Buffer {
	m, err := New(d, runtime.I32, 4, Options{})
	require.NoError(t, err)
	t.Cleanup(func() { m.Close() })
	return m
}

func TestManagedForgotten(t *testing.T) {
	b := &nullBackend{full: true}
	_, d := open(t, b, runtime.Config{})
	k := kernel(t, d, "axpy")
	kept := managed(t, d, 4, Options{})
	func() {
		for range 10 {
			m := managed(t, d, 4, Options{Location: HostPreferred})
			require.NoError(t, axpy(d.Stream(), k, m, m)) // now it has two sides, and a window on one
		}
		v, err := kept.Slice(0, 2)
		require.NoError(t, err)
		_, err = Map[float32](t.Context(), v, runtime.ForWriting)
		require.NoError(t, err)
	}()
	assert.ErrorIs(t, axpy(d.Stream(), k, kept, kept), runtime.ErrInvalidArgument, "mapped")
	deadline := time.Now().Add(10 * time.Second)
	for d.Stats().Live > 32 && time.Now().Before(deadline) {
		goruntime.GC()
		time.Sleep(time.Millisecond)
	}
	st := d.Stats()
	assert.EqualValues(t, 10, st.Forgotten, "one of each, whatever sides and views it has")
	assert.EqualValues(t, 32, st.Live)
	require.NoError(t, axpy(d.Stream(), k, kept, kept), "nobody looks through that window any more")
	require.NoError(t, kept.Close())
	assert.Zero(t, d.Stats().Live)
}

// TestManagedLaunchAllocates is the bar of 0 allocations.
func TestManagedLaunchAllocates(t *testing.T) {
	_, d := open(t, &nullBackend{full: true}, runtime.Config{})
	k, s := kernel(t, d, "axpy"), d.Stream()
	x, y := managed(t, d, 1000, Options{}), managed(t, d, 1000, Options{})
	a, n := float32(2), int32(1000)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		a++
		n--
		if err := Launch(s, k, runtime.Items(1024).InGroups(256), a, x, y, n); err != nil {
			t.Fatal(err)
		}
		if err := Launch(s, k, runtime.Items(1024).InGroups(256), a, x, Overwrite(y), n); err != nil {
			t.Fatal(err)
		}
	}))
}

// BenchmarkManagedLaunch is BenchmarkLaunch with buffers that have two sides.
func BenchmarkManagedLaunch(b *testing.B) {
	_, d := open(b, &nullBackend{}, runtime.Config{})
	k, s := kernel(b, d, "axpy"), d.Stream()
	x, y := managed(b, d, 1000, Options{}), managed(b, d, 1000, Options{})
	a, n := float32(2), int32(1000)
	b.ReportAllocs()
	for b.Loop() {
		a++
		n--
		if err := Launch(s, k, runtime.Items(1024).InGroups(256), a, x, y, n); err != nil {
			b.Fatal(err)
		}
	}
}

// Every call at once, on buffers and views of them, with Close among it. Nothing may
// hang, both sides may never be newer, and nothing may be left.
func TestManagedConcurrently(t *testing.T) {
	for _, full := range []bool{true, false} {
		b := &nullBackend{full: full}
		_, d := open(t, b, runtime.Config{})
		k, ctx := kernel(t, d, "axpy"), t.Context()
		x, y := managed(t, d, 64, Options{}), managed(t, d, 64, Options{Location: HostPreferred})
		fine := func(err error) {
			if err != nil && !errors.Is(err, runtime.ErrInvalidArgument) && !errors.Is(err, runtime.ErrClosed) {
				t.Error(err)
			}
		}
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				s, err := d.NewStream()
				fine(err)
				defer s.Close()
				in := make([]float32, 64)
				for i := range 300 {
					v, err := []*Buffer{x, y}[i%2].Slice(i%32, 32)
					fine(err)
					switch (g + i) % 8 {
					case 0:
						fine(axpy(s, k, x, y))
					case 1:
						fine(axpy(s, k, y, Overwrite(x)))
					case 2:
						fine(Write(ctx, v, in[:8]))
					case 3:
						fine(Read(ctx, v, in[:8]))
					case 4:
						fine(v.QueueToDevice(s))
					case 5:
						fine(v.ToHost(ctx))
					case 6:
						_, err := Map[float32](ctx, v, runtime.Access(i%3))
						fine(err)
					case 7:
						side, err := v.DeviceSide(s, runtime.Access(i%3))
						fine(err)
						fine(side.Close())
					}
					if dirtyOf(x) == "BOTH" || dirtyOf(y) == "BOTH" {
						t.Error("both sides are newer")
					}
					fine(v.Close())
				}
			})
		}
		wg.Wait()
		var many sync.WaitGroup
		for range 8 {
			many.Go(func() { fine(x.Close()); fine(axpy(d.Stream(), k, x, y)); fine(y.Close()) })
		}
		many.Wait()
		require.NoError(t, d.Sync(ctx))
		st := d.Stats()
		assert.Zero(t, st.Live+st.Deferred)
		assert.Equal(t, st.Allocations, st.Frees)
	}
}

func TestManagedTags(t *testing.T) {
	_, d := open(t, &nullBackend{full: true}, runtime.Config{})
	x := managed(t, d, 4, Options{})
	x.SetTag("weights")
	require.NoError(t, Write(t.Context(), x, make([]float32, 4)))
	b := buffer(t, d, runtime.F32, 100)
	b.SetTag("activations")
	var tags []string
	for _, h := range d.Memory().Holders() {
		tags = append(tags, h.Tag)
	}
	slices.Sort(tags)
	assert.Equal(t, []string{"activations", "weights"}, slices.Compact(tags))
}

// Nobody holds a Buffer while it waits for the work of others.
func TestManagedWaitsWithoutItsLock(t *testing.T) {
	b := &nullBackend{full: true}
	_, d := open(t, b, runtime.Config{})
	k, ctx := kernel(t, d, "axpy"), t.Context()
	explicit, unified := managed(t, d, 4, Options{Mode: ExplicitMode}), managed(t, d, 4, Options{Mode: UnifiedMode})
	for name, c := range map[string]struct {
		m    *Buffer
		call func(m *Buffer) error
	}{
		"to device": {explicit, func(m *Buffer) error { return m.ToDevice(ctx) }},
		"to host":   {explicit, func(m *Buffer) error { return m.ToHost(ctx) }},
		"read":      {unified, func(m *Buffer) error { return Read(ctx, m, make([]float32, 4)) }},
		"map":       {unified, func(m *Buffer) error { _, err := Map[float32](ctx, m, runtime.ForReading); return err }},
	} {
		require.NoError(t, axpy(d.Stream(), k, c.m, c.m), name)
		asked := 0
		b.syncing = func(context.Context) {
			if asked++; asked > 1 {
				return // what it waited for is done
			}
			if st := c.m.handle.st; assert.True(t, st.mu.TryLock(), name) {
				st.mu.Unlock()
			}
		}
		require.NoError(t, c.call(c.m), name)
		assert.Positive(t, asked, name)
		b.syncing = nil
		_ = c.m.Unmap() // of the one that was mapped
	}
}

// A copy that has to wait for another stream waits as long as its context.
func TestManagedWaitsAsLongAsItsContext(t *testing.T) {
	b := &nullBackend{full: true}
	_, d := open(t, b, runtime.Config{})
	s, err := d.NewStream()
	require.NoError(t, err)
	x := managed(t, d, 4, Options{})
	require.NoError(t, axpy(s, kernel(t, d, "axpy"), x, x))
	b.recordErr = errors.New("no event")
	type key struct{}
	ctx, asked := context.WithValue(t.Context(), key{}, true), false
	b.syncing = func(got context.Context) { asked = asked || got.Value(key{}) != nil }
	st, err := x.begin("to device")
	require.NoError(t, err)
	err = st.after(ctx, d.Stream(), true)
	st.end()
	assert.NoError(t, err)
	assert.True(t, asked)
	b.recordErr, b.syncing = nil, nil
}

func TestNilContext(t *testing.T) {
	_, d := open(t, &nullBackend{}, runtime.Config{})
	m, batch := managed(t, d, 4, Options{}), NewBatch(d)
	before := d.Stats()
	var none context.Context
	for name, call := range map[string]func() error{
		"write":        func() error { return Write(none, m, []float32{1}) },
		"read":         func() error { return Read(none, m, make([]float32, 1)) },
		"map":          func() error { _, err := Map[float32](none, m, runtime.ForReading); return err },
		"to device":    func() error { return m.ToDevice(none) },
		"to host":      func() error { return m.ToHost(none) },
		"add to batch": func() error { _, err := batch.AddHost(none, make([]byte, 4), 1, runtime.F32); return err },
	} {
		err := call()
		assert.ErrorIs(t, err, runtime.ErrInvalidArgument, name)
		assert.EqualError(t, err, name+": context is nil: invalid argument")
	}
	assert.Equal(t, before, d.Stats(), "nothing was done")
}

// What is on a device that was abandoned says so, and its driver is not called any more.
func TestAbandoned(t *testing.T) {
	b := &nullBackend{full: true, told: true}
	_, d := open(t, b, runtime.Config{})
	k, m, batch := kernel(t, d, "axpy"), managed(t, d, 4, Options{}), NewBatch(d)
	arena, err := NewArena(d, nil)
	require.NoError(t, err)
	_, err = arena.Alloc(runtime.F32, 1)
	require.NoError(t, err)
	b.heard()
	require.NoError(t, d.Abandon(errors.New("it hangs")))
	for what, call := range map[string]func() error{
		"write":  func() error { return Write(t.Context(), m, []float32{1}) },
		"launch": func() error { return axpy(d.Stream(), k, m, m) },
		"arena":  func() error { _, err := arena.Alloc(runtime.F32, 1); return err },
		"batch":  func() error { _, err := batch.Alloc(runtime.F32, 1); return err },
	} {
		assert.ErrorIs(t, call(), runtime.ErrDeviceLost, what)
	}
	require.NoError(t, m.Close())
	require.NoError(t, arena.Close())
	require.NoError(t, batch.Close())
	assert.Empty(t, b.heard())
}
