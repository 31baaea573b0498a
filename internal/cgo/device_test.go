//go:build cgo && unix

package cgo

import (
	"context"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/tests/sim/null"
)

func TestMemory(t *testing.T) {
	d := openNull(t, vendor())
	assert.True(t, d.Info().FreeMemoryKnown)
	assert.EqualValues(t, 1<<29, d.Info().FreeMemory)

	m := alloc(t, d, 100, driver.OnDevice)
	assert.Zero(t, m.Handle%256)
	_, visible := d.HostBytes(m)
	assert.False(t, visible)
	p := alloc(t, d, 100, driver.Pinned)
	p.Offset, p.Size = 10, 20
	b, visible := d.HostBytes(p)
	require.True(t, visible)
	assert.Len(t, b, 20)
	b[19] = 1

	_, err := d.Alloc(1<<28+1, driver.OnDevice)
	require.ErrorIs(t, err, driver.ErrTooLarge)
	assert.ErrorContains(t, err, "null:0: alloc 256.0 MiB")
	null.Fail("mem_alloc", 0, int(statusNoMemory))
	_, err = d.Alloc(64<<20, driver.OnDevice)
	assert.EqualError(t, err, "null:0: alloc 64.0 MiB: NULL_ERROR_5: out of device memory (code 1005)")

	require.NoError(t, d.Free(m))
	assert.ErrorIs(t, d.Free(m), driver.ErrInvalidArgument, "not of this device any more")

	w, err := d.WrapMemory(0x1000, 64)
	require.NoError(t, err)
	assert.Equal(t, driver.Memory{Handle: 0x1000, Size: 64}, w)
	assert.NoError(t, d.Free(w), "which releases nothing of the program's")
	own, err := d.WrapMemory(uintptr(p.Handle), 100)
	require.NoError(t, err)
	require.NoError(t, d.Free(own))
	_, visible = d.HostBytes(p)
	assert.True(t, visible, "our own reference stays")
	_, err = d.WrapMemory(0, 64)
	assert.ErrorIs(t, err, driver.ErrInvalidArgument)
	_, err = d.WrapMemory(uintptr(p.Handle), 101)
	assert.ErrorIs(t, err, driver.ErrBufferOverflow)
}

func TestHandles(t *testing.T) {
	d := openNull(t, vendor())
	assert.NotZero(t, d.Handles()["context"])
	s := newStream(t, d)
	assert.EqualValues(t, 100, d.StreamHandle(s))
	high, err := d.NewPriorityStream(driver.High)
	require.NoError(t, err)
	assert.EqualValues(t, 101, d.StreamHandle(high))
	require.NoError(t, high.Close())
	assert.Zero(t, d.StreamHandle(high))
	w, err := d.WrapStream(7)
	require.NoError(t, err)
	assert.EqualValues(t, 7, d.StreamHandle(w))
	require.NoError(t, w.Close())
}

func TestModule(t *testing.T) {
	d := openNull(t, vendor())
	m := load(t, d, saxpyText)
	k := kernelOf(t, m, "relu")
	assert.Equal(t, driver.KernelInfo{Name: "relu", Implementation: "opencl", MaxGroup: 512, GroupMultiple: 32,
		LocalBytes: 64, Registers: 8, SpillBytes: 4}, k.Info())
	_, err := m.Kernel("tanh")
	require.ErrorIs(t, err, driver.ErrNoKernel)
	assert.ErrorContains(t, err, "saxpy, relu")

	n, err := d.Occupancy(k, 256, 0)
	require.NoError(t, err)
	assert.Equal(t, 8, n)
	n, err = d.SuggestGroup(k, 0)
	require.NoError(t, err)
	assert.Equal(t, 256, n)

	require.NoError(t, m.Close())
	require.NoError(t, m.Close())
	_, err = m.Kernel("relu")
	assert.ErrorIs(t, err, driver.ErrClosed)
	_, err = d.Occupancy(k, 256, 0)
	assert.ErrorIs(t, err, driver.ErrClosed)
	assert.ErrorIs(t, newStream(t, d).Launch(&driver.Launch{Kernel: k, Dim: 1, Global: [3]int{1}, Local: [3]int{1}}),
		driver.ErrClosed)
}

func TestLoadRefuses(t *testing.T) {
	d := openNull(t, vendor())
	unit := parse(t, "kernel void absent(global float *x) { x[0] = 1; }")
	bin, err := d.Compile(ctx, unit, nil)
	require.NoError(t, err)
	_, err = d.Load(ctx, unit, bin)
	require.ErrorIs(t, err, driver.ErrCorrupt, "a program without the unit's kernels is another one")
	_, err = d.Load(ctx, unit, driver.Binary{Code: bin.Code[:len(bin.Code)-1]})
	require.ErrorIs(t, err, driver.ErrCorrupt)
	null.Fail("module_load", 0, int(statusCompile))
	_, err = d.Load(ctx, unit, bin)
	var built *driver.BuildError
	require.ErrorAs(t, err, &built)
	assert.Equal(t, "loaded", built.Log)
	null.Fail("module_load", 0, int(statusFormat))
	_, err = d.Load(ctx, unit, bin)
	require.ErrorIs(t, err, driver.ErrFormat)
	require.ErrorAs(t, err, &built)
	assert.Equal(t, "loaded", built.Log, "what the driver's compiler wrote")
}

func TestLibraries(t *testing.T) {
	d := openNull(t, vendor())
	list := d.Libraries()
	require.Len(t, list, 3)
	assert.Equal(t, driver.Library{Name: "nullblas"}, list[2], "of the device")
	require.NoError(t, d.Close())
	assert.Len(t, d.Libraries(), 2)
	v := vendor()
	v.Table = null.Bare
	assert.Empty(t, openNull(t, v).Libraries())
}

func TestPeers(t *testing.T) {
	d0 := openNull(t, vendor())
	other, err := NewBackend(vendor()).Open(ctx, 1, nil)
	require.NoError(t, err)
	d1 := other.(*device)
	defer d1.Close()
	can, direct := d0.CanCopyFrom(d1)
	assert.True(t, can && direct)
	can, direct = d1.CanCopyFrom(d0)
	assert.True(t, can && !direct, "staged")
	can, _ = d0.CanCopyFrom(d0)
	assert.False(t, can)

	src, dst := alloc(t, d1, 8, driver.OnDevice), alloc(t, d0, 8, driver.OnDevice)
	s0, s1 := newStream(t, d0), newStream(t, d1)
	require.NoError(t, s1.Upload(ctx, src, []byte("12345678")))
	for range 2 {
		require.NoError(t, d0.CopyFrom(s0, dst, d1, src))
	}
	assert.Equal(t, 3, null.Calls("peer"), "asked twice, allowed once")
	got := make([]byte, 8)
	require.NoError(t, s0.Download(ctx, got, dst))
	assert.Equal(t, "12345678", string(got))
	assert.ErrorIs(t, d0.CopyFrom(s1, dst, d1, src), driver.ErrInvalidArgument, "a stream of the other device")
	require.NoError(t, d1.Close())
	assert.ErrorIs(t, d0.CopyFrom(s0, dst, d1, src), driver.ErrClosed)
}

// Closing the device releases all objects that are still open, and every later call on them fails.
func TestCloseForgotten(t *testing.T) {
	reset(t)
	opened, err := NewBackend(vendor()).Open(ctx, 0, nil)
	require.NoError(t, err)
	d := opened.(*device)
	m := load(t, d, saxpyText)
	k := kernelOf(t, m, "saxpy")
	s := newStream(t, d)
	x, err := d.Alloc(1024, driver.OnDevice)
	require.NoError(t, err)
	e, err := s.Record(true)
	require.NoError(t, err)
	require.NoError(t, s.BeginCapture())
	g, err := s.EndCapture(nil)
	require.NoError(t, err)
	require.NoError(t, s.BeginCapture(), "closed in the middle of a capture")

	require.NoError(t, d.Close())
	require.NoError(t, d.Close(), "twice does nothing")
	require.Empty(t, null.Live())

	_, allocErr := d.Alloc(1, driver.OnDevice)
	_, streamErr := d.NewStream()
	_, compileErr := d.Compile(ctx, parse(t, saxpyText), nil)
	_, kernelErr := m.Kernel("saxpy")
	_, doneErr := e.Done()
	_, recordErr := s.Record(false)
	for what, err := range map[string]error{
		"alloc": allocErr, "stream": streamErr, "compile": compileErr, "kernel": kernelErr, "done": doneErr,
		"record": recordErr,
		"launch": s.Launch(launchOf(k, x, x)), "sync": s.Sync(ctx), "wait": e.Wait(ctx), "graph": g.Launch(s),
		"upload": s.Upload(ctx, x, []byte{1}), "copy": s.Copy(x, x), "wait for": s.Wait(e),
	} {
		assert.ErrorIs(t, err, driver.ErrClosed, what)
	}
	assert.NoError(t, s.Err())
	for what, err := range map[string]error{"free": d.Free(x), "stream": s.Close(), "event": e.Close(), "graph": g.Close(),
		"module": m.Close()} {
		assert.NoError(t, err, what)
	}
	assert.Nil(t, d.Handles())
	assert.False(t, d.Info().FreeMemoryKnown)
}

// TestRequired leaves out one entry of a table after the other.
func TestRequired(t *testing.T) {
	const required = 35 // with the two of the compiler, which this table has
	for i, name := range map[int]string{0: "open", 24: "launch", 32: "event_close", 34: "compile"} {
		v, hole := vendor(), null.Without(i)
		v.Table = func() unsafe.Pointer { return hole }
		assert.PanicsWithValue(t, "the table of null has no "+name, func() { _ = NewBackend(v).Probe(ctx, nil) })
	}
	for i := range required {
		v, hole := vendor(), null.Without(i)
		v.Table = func() unsafe.Pointer { return hole }
		assert.Panics(t, func() { _, _ = NewBackend(v).Open(ctx, 0, nil) }, "entry %d", i)
	}
	v, whole := vendor(), null.Without(required)
	v.Table = func() unsafe.Pointer { return whole }
	assert.NotPanics(t, func() { _, _ = (&backend{v: v}).table() })
}

func TestLacking(t *testing.T) {
	v := vendor()
	v.Table = null.Bare
	d := openNull(t, v)
	assert.Nil(t, d.Info().PeerAccess)
	s := newStream(t, d)
	m := load(t, d, saxpyText)
	k := kernelOf(t, m, "relu")
	p := alloc(t, d, 64, driver.Pinned)
	_, wrapErr := d.WrapStream(1)
	_, hereErr := s.AllocHere(64)
	_, occupancyErr := d.Occupancy(k, 64, 0)
	_, suggestErr := d.SuggestGroup(k, 0)
	for what, err := range map[string]error{"wrap": wrapErr, "alloc": hereErr, "occupancy": occupancyErr,
		"suggest": suggestErr,
		"upload":  s.UploadPinned(p, p), "download": s.DownloadPinned(p, p), "prefetch": s.Prefetch(p, true),
		"capture": s.BeginCapture(),
		"peer":    d.CopyFrom(s, p, d, p)} {
		assert.ErrorIs(t, err, driver.ErrUnsupported, what)
	}
	can, _ := d.CanCopyFrom(d)
	assert.False(t, can)
	assert.NoError(t, s.Sync(ctx), "asking harms nothing")
}

// A compile and a load whose callers have stopped waiting still end.
func TestAbandoned(t *testing.T) {
	d := openNull(t, vendor())
	unit := parse(t, saxpyText)
	bin, err := d.Compile(ctx, unit, nil)
	require.NoError(t, err)
	done, cancel := context.WithTimeout(ctx, time.Nanosecond)
	defer cancel()
	<-done.Done()
	_, err = d.Compile(done, unit, nil)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	for range 50 {
		short, stop := context.WithCancel(ctx)
		go stop()
		if m, err := d.Load(short, unit, bin); err == nil {
			assert.NoError(t, m.Close())
		} else {
			assert.ErrorIs(t, err, context.Canceled)
		}
	}
	assert.Eventually(t, func() bool { return null.Live()["module"] == 0 }, 5*time.Second, time.Millisecond)
}
