//go:build cgo && opencl && (linux || darwin)

package opencl

import (
	"testing"
	"unsafe"

	"github.com/go-gl/cl/v1.2/cl"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

// queueFor makes a queue in the way of a program that uses the binding.
func queueFor(t *testing.T, d *device, properties cl.CommandQueueProperties) (cl.CommandQueue, uintptr) {
	var code cl.ErrorCode
	q := cl.CreateCommandQueue(d.context, d.id, properties, &code)
	require.Equal(t, cl.SUCCESS, code)
	t.Cleanup(func() { cl.ReleaseCommandQueue(q) })
	return q, uintptr(unsafe.Pointer(q))
}

// TestHandlesOut uses the backend's objects through the binding.
func TestHandlesOut(t *testing.T) {
	d := open(t)
	s := newStream(t, d)
	h := d.Handles()
	id := h["device"]
	assert.Equal(t, d.info.Name, deviceText(*(*cl.DeviceId)(unsafe.Pointer(&id)), cl.DEVICE_NAME))
	pl := h["platform"]
	assert.Equal(t, d.platform.name, platformText(*(*cl.PlatformID)(unsafe.Pointer(&pl)), cl.PLATFORM_NAME))
	var context uint64
	q := d.StreamHandle(s)
	require.NotZero(t, q)
	queue := *(*cl.CommandQueue)(unsafe.Pointer(&q))
	require.Equal(t, cl.SUCCESS, cl.GetCommandQueueInfo(queue, cl.QUEUE_CONTEXT, 8, unsafe.Pointer(&context), nil))
	assert.EqualValues(t, h["context"], context)

	m := alloc(t, d, 64)
	data := make([]byte, 64)
	for i := range data {
		data[i] = byte(i)
	}
	require.Equal(t, cl.SUCCESS, cl.EnqueueWriteBuffer(queue, memOf(m.Handle), cl.TRUE, 0, 64, unsafe.Pointer(&data[0]), 0,
		nil, nil))
	assert.Equal(t, data, download[byte](t, s, m))
	assert.Zero(t, d.StreamHandle(nil))
}

// TestWrapMemory makes a program's buffer and sub-buffer usable here.
func TestWrapMemory(t *testing.T) {
	d := open(t)
	s := newStream(t, d)
	k := kernelOf(t, load(t, d, programText), "set")
	align := d.info.BaseAlign
	size := 4 * align
	var code cl.ErrorCode
	theirs := cl.CreateBuffer(d.context, cl.MEM_READ_WRITE, uint64(size), nil, &code)
	require.Equal(t, cl.SUCCESS, code)
	region := [2]uint64{uint64(align), uint64(2 * align)}
	part := cl.CreateSubBuffer(theirs, 0, cl.BUFFER_CREATE_TYPE_REGION, unsafe.Pointer(&region), &code)
	require.Equal(t, cl.SUCCESS, code)

	m, err := d.WrapMemory(uintptr(unsafe.Pointer(theirs)), size)
	require.NoError(t, err)
	twice, err := d.WrapMemory(uintptr(unsafe.Pointer(theirs)), size)
	require.NoError(t, err)
	sub, err := d.WrapMemory(uintptr(unsafe.Pointer(part)), 2*align)
	require.NoError(t, err)
	require.NoError(t, s.Fill(m, []byte{0}))
	require.NoError(t, s.Launch(launch(k, 1, 1, m, int32(1))))
	require.NoError(t, s.Launch(launch(k, 1, 1, sub, int32(2))))
	require.NoError(t, s.Launch(launch(k, 1, 1, view(sub, align, 4), int32(3))), "a view of their sub-buffer")
	require.NoError(t, s.Launch(launch(k, 1, 1, view(sub, 8, 4), int32(4))), "at an odd offset")
	got := download[int32](t, s, m)
	assert.EqualValues(t, []int32{1, 2, 4, 3}, []int32{got[0], got[align/4], got[align/4+2], got[align/2]})

	for _, at := range []int64{0, 8} { // twice, because kernels keep the arguments that were set last
		require.NoError(t, s.Launch(launch(k, 1, 1, view(alloc(t, d, 64), at, 4), int32(0))))
	}
	require.NoError(t, s.Sync(t.Context()))
	require.NoError(t, d.Free(twice))
	require.NoError(t, d.Free(m))
	require.NoError(t, d.Free(sub))
	var refs uint32
	require.Equal(t, cl.SUCCESS, cl.GetMemObjectInfo(part, cl.MEM_REFERENCE_COUNT, 4, unsafe.Pointer(&refs), nil))
	assert.EqualValues(t, 1, refs, "only our own references were dropped")
	require.Equal(t, cl.SUCCESS, cl.ReleaseMemObject(part))
	require.Equal(t, cl.SUCCESS, cl.ReleaseMemObject(theirs))

	other := open(t)
	foreign := alloc(t, other, 64)
	_, err = d.WrapMemory(uintptr(foreign.Handle), 64)
	assert.ErrorIs(t, err, driver.ErrInvalidArgument)
	own := alloc(t, d, 64)
	_, err = d.WrapMemory(uintptr(own.Handle), 65)
	assert.ErrorIs(t, err, driver.ErrBufferOverflow)
	_, err = d.WrapMemory(0, 64)
	assert.ErrorIs(t, err, driver.ErrInvalidArgument)
}

// TestWrapStream uses a program's queue, with and without profiling.
func TestWrapStream(t *testing.T) {
	d := open(t)
	k := kernelOf(t, load(t, d, programText), "set")
	m := alloc(t, d, 64)
	for _, properties := range []cl.CommandQueueProperties{0, cl.QUEUE_PROFILING_ENABLE} {
		q, handle := queueFor(t, d, properties)
		ds, err := d.WrapStream(handle)
		require.NoError(t, err)
		s := ds.(*stream)
		assert.Equal(t, handle, d.StreamHandle(s))
		a, err := s.Record(true)
		require.NoError(t, err)
		require.NoError(t, s.Launch(launch(k, 16, 4, m, int32(properties+5))))
		b, err := s.Record(true)
		require.NoError(t, err)
		assert.EqualValues(t, properties+5, download[int32](t, s, m)[15])
		took, err := b.Elapsed(a)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, took, 0*took)
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
		require.NoError(t, s.Close())
		assert.Equal(t, cl.SUCCESS, cl.Finish(q), "the queue is still the program's")
	}
	_, handle := queueFor(t, open(t), 0)
	_, err := d.WrapStream(handle)
	assert.ErrorIs(t, err, driver.ErrInvalidArgument, "of another context")
	if number(d.id, cl.DEVICE_QUEUE_PROPERTIES)&uint64(cl.QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0 {
		_, handle = queueFor(t, d, cl.QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
		_, err = d.WrapStream(handle)
		assert.ErrorIs(t, err, driver.ErrInvalidArgument, "out of order")
	}
	_, err = d.WrapStream(0)
	assert.ErrorIs(t, err, driver.ErrInvalidArgument)
}

// TestAdopt makes a device of a program's context.
func TestAdopt(t *testing.T) {
	theirs := open(t)
	h := theirs.Handles()
	b := Adopt(h["context"], h["device"])
	p := b.Probe(t.Context(), configured())
	require.Equal(t, driver.Available, p.State, p.Reason)
	require.Len(t, p.Devices, 1)
	dd, err := b.Open(t.Context(), 0, configured())
	require.NoError(t, err)
	d := dd.(*device)
	assert.Equal(t, h, d.Handles())
	m := alloc(t, theirs, 64)
	wrapped, err := d.WrapMemory(uintptr(m.Handle), 64)
	require.NoError(t, err)
	s, err := d.NewStream()
	require.NoError(t, err)
	require.NoError(t, s.Launch(launch(kernelOf(t, load(t, d, programText), "set"), 16, 4, wrapped, int32(6))))
	assert.EqualValues(t, 6, download[int32](t, s.(*stream), wrapped)[15])
	require.NoError(t, s.Close())
	require.NoError(t, d.Free(wrapped))
	require.NoError(t, d.Close())
	assert.EqualValues(t, 6, download[int32](t, newStream(t, theirs), m)[15], "the context lives on")
	_, err = b.Open(t.Context(), 1, configured())
	assert.ErrorIs(t, err, driver.ErrDeviceIndex)
	_, err = Adopt(0, 0).Open(t.Context(), 0, configured())
	assert.ErrorIs(t, err, driver.ErrInvalidArgument)
}
