//go:build unix

package memory

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	catalog "github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
)

// mapped returns a file of n floats that are 1, mapped.
func mapped(t *testing.T, n, protection int) []byte {
	ones := make([]float32, n)
	for i := range ones {
		ones[i] = 1
	}
	path := filepath.Join(t.TempDir(), "ones")
	require.NoError(t, os.WriteFile(path, unsafe.Slice((*byte)(unsafe.Pointer(&ones[0])), 4*n), 0o600))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	pages, err := unix.Mmap(int(f.Fd()), 0, 4*n, protection, unix.MAP_SHARED)
	require.NoError(t, err)
	return pages
}

// Kernels of the CPU read and write mapped files in place.
func TestWrapMappedFile(t *testing.T) {
	ctx := context.Background()
	session, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	require.NoError(t, err)
	defer func() { require.NoError(t, session.Close()) }()
	d, err := session.Open(ctx, "cpu:0")
	require.NoError(t, err)
	u, err := catalog.Unit("saxpy", d.Features())
	require.NoError(t, err)
	p, err := d.Program(ctx, u)
	require.NoError(t, err)
	saxpy, err := p.Kernel("saxpy")
	require.NoError(t, err)
	s := d.Stream()
	const n = 1 << 20
	before := d.Stats()
	file, constant := mapped(t, n, unix.PROT_READ|unix.PROT_WRITE), mapped(t, n, unix.PROT_READ)
	var released atomic.Int32
	wrap := func(pages []byte, how runtime.Access) *runtime.Buffer {
		b, err := d.Wrap(pages, runtime.F32, how, func() {
			released.Add(1)
			assert.NoError(t, unix.Munmap(pages))
		})
		require.NoError(t, err)
		return b
	}
	y, x := wrap(file, runtime.ForWriting), wrap(constant, runtime.ForReading)
	st := d.Stats()
	assert.EqualValues(t, 8*n, st.Wrapped)
	assert.Equal(t, [3]int64{before.Live, before.Allocations, before.Memory.Reserved},
		[3]int64{st.Live, st.Allocations, st.Memory.Reserved})
	require.NoError(t, s.Launch(saxpy, runtime.Items(n), float32(2), x, y, uint64(n)))
	require.NoError(t, s.Sync(ctx))
	view, err := runtime.Host[float32](y)
	require.NoError(t, err)
	assert.Equal(t, []float32{3, 3}, []float32{view[0], view[n-1]})
	assert.Same(t, &file[0], (*byte)(unsafe.Pointer(&view[0])), "in place")

	// What writes to memory for reading is refused, and nothing was queued.
	part, err := x.Slice(8, 8)
	require.NoError(t, err)
	for what, err := range map[string]error{
		"launch": s.Launch(saxpy, runtime.Items(n), float32(2), y, x, uint64(n)), "fill": s.Fill(part, float32(1)),
		"copy": s.Copy(x, y), "write": runtime.Write(ctx, x, []float32{1}), "copy across": runtime.CopyAcross(ctx, x, y),
	} {
		assert.ErrorIs(t, err, runtime.ErrInvalidArgument, what)
	}
	g, err := s.Capture(func(s *runtime.Stream) error { return s.Copy(y, x) })
	require.NoError(t, err)
	assert.ErrorIs(t, g.Launch(s, runtime.WithBuffer(y, x)), runtime.ErrInvalidArgument)
	require.NoError(t, g.Close())
	// A graph that reads memory which it could write takes memory for reading in its place.
	a, err := runtime.Upload(ctx, d, make([]float32, n))
	require.NoError(t, err)
	b, err := runtime.Alloc[float32](d, n)
	require.NoError(t, err)
	g, err = s.Capture(func(s *runtime.Stream) error {
		return errors.Join(s.Copy(b, a), s.Launch(saxpy, runtime.Items(n), float32(2), a, b, uint64(n)))
	})
	require.NoError(t, err)
	require.NoError(t, g.Launch(s, runtime.WithBuffer(a, x)))
	sum := make([]float32, n)
	require.NoError(t, runtime.Read(ctx, b, sum))
	assert.Equal(t, float32(3), sum[n-1])
	assert.ErrorIs(t, g.Launch(s, runtime.WithBuffer(b, x)), runtime.ErrInvalidArgument)
	require.NoError(t, g.Close())
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	require.NoError(t, s.Sync(ctx))

	// Released after the last use, once.
	for range 20 {
		require.NoError(t, s.Launch(saxpy, runtime.Items(n), float32(1), x, y, uint64(n)))
	}
	require.NoError(t, x.Close())
	require.NoError(t, y.Close())
	require.NoError(t, s.Sync(ctx))
	require.NoError(t, part.Close())
	st = d.Stats()
	assert.EqualValues(t, 2, released.Load())
	assert.Zero(t, st.Wrapped+st.Deferred)
	assert.Equal(t, before.Frees+2, st.Frees)

	// Memory that is not as it is said to be.
	constant = mapped(t, 1024, unix.PROT_READ)
	_, err = d.Wrap(constant[:15], runtime.F32, runtime.ForReading, nil)
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	assert.ErrorContains(t, err, "15 bytes are no elements of f32: invalid")
	_, err = d.Wrap(constant, runtime.F32, 9, nil)
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	assert.ErrorContains(t, err, "wrap memory: 9 is no access")
	if !instrumented {
		_, err = d.Wrap(constant, runtime.F32, runtime.ForWriting, func() { t.Error("released, though it was not wrapped") })
		assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
		assert.ErrorContains(t, err, "cannot be written: invalid argument")
		require.NoError(t, unix.Mprotect(constant, unix.PROT_NONE))
		_, err = d.Wrap(constant, runtime.F32, runtime.ForReading, nil)
		assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	}
	require.NoError(t, unix.Munmap(constant))

	// Closing the device releases, too.
	other, err := session.Open(ctx, "cpu:reference")
	require.NoError(t, err)
	file = mapped(t, 64, unix.PROT_READ|unix.PROT_WRITE)
	_, err = other.Wrap(file, runtime.F32, runtime.ForWriting, func() { released.Add(1) })
	require.NoError(t, err)
	require.NoError(t, other.Close())
	assert.EqualValues(t, 3, released.Load())
	_, err = other.Wrap(file, runtime.F32, runtime.ForWriting, nil)
	assert.ErrorIs(t, err, runtime.ErrClosed)
	require.NoError(t, unix.Munmap(file))
}
