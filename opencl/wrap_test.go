//go:build cgo && opencl && (linux || darwin)

package opencl_test

import (
	"testing"
	"unsafe"

	"github.com/go-gl/cl/v1.2/cl"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/tests/conformance"
)

// A program that has memory and a queue of its own from OpenCL shares them with Concord.
func TestProgramsMemory(t *testing.T) {
	d := conformance.Open(t, "opencl:0")
	defer d.Close()
	h := d.Driver().(driver.NativeHandles).Handles()
	device := h["device"]
	var code cl.ErrorCode
	inside := &[8]uintptr{h["context"]} // the binding's context is a pointer to a struct that begins with OpenCL's
	theirs := *(*cl.Context)(unsafe.Pointer(&inside))
	queue := cl.CreateCommandQueue(theirs, *(*cl.DeviceId)(unsafe.Pointer(&device)), 0, &code)
	require.Equal(t, cl.SUCCESS, code)
	defer cl.ReleaseCommandQueue(queue)
	const n = 1000
	data := make([]float32, n)
	for i := range data {
		data[i] = float32(i)
	}
	memory := cl.CreateBuffer(theirs, cl.MEM_READ_WRITE|cl.MEM_COPY_HOST_PTR, 4*n, unsafe.Pointer(&data[0]), &code)
	require.Equal(t, cl.SUCCESS, code)

	released := 0
	y, err := d.WrapHandle(uintptr(unsafe.Pointer(memory)), runtime.F32, n, func() {
		released++
		assert.Equal(t, cl.SUCCESS, cl.ReleaseMemObject(memory))
	})
	require.NoError(t, err)
	u, err := kernels.Unit("saxpy", d.Features())
	require.NoError(t, err)
	p, err := d.Program(t.Context(), u)
	require.NoError(t, err)
	saxpy, err := p.Kernel("saxpy")
	require.NoError(t, err)
	x, err := runtime.Upload(t.Context(), d, data)
	require.NoError(t, err)
	require.NoError(t, d.Stream().Launch(saxpy, runtime.Items(n), float32(2), x, y, uint64(n)))
	require.NoError(t, d.Stream().Sync(t.Context()))
	got := make([]float32, n)
	require.Equal(t, cl.SUCCESS, cl.EnqueueReadBuffer(queue, memory, cl.TRUE, 0, 4*n, unsafe.Pointer(&got[0]), 0, nil,
		nil))
	for i := range got {
		require.Equal(t, 3*float32(i), got[i])
	}
	require.NoError(t, d.Stream().Launch(saxpy, runtime.Items(n), float32(2), x, y, uint64(n)))
	require.NoError(t, y.Close())
	require.NoError(t, d.Stream().Sync(t.Context()))
	assert.Equal(t, 1, released)
	assert.Zero(t, d.Stats().Wrapped)
	require.NoError(t, x.Close())
	require.NoError(t, p.Close())
}
