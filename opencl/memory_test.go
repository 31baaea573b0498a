//go:build cgo && opencl && (linux || darwin)

package opencl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

func TestAllocErrors(t *testing.T) {
	d := open(t)
	_, err := d.Alloc(1<<50, driver.OnDevice)
	require.Error(t, err)
	assert.True(t, errors.Is(err, driver.ErrTooLarge) || errors.Is(err, driver.ErrOutOfMemory), "%v", err)
	assert.Contains(t, err.Error(), "opencl:0: alloc 1.0 PiB: CL_")
	_, err = d.Alloc(64, driver.Unified)
	assert.ErrorIs(t, err, driver.ErrUnsupported)
	assert.ErrorIs(t, d.Free(driver.Memory{Handle: 12345}), driver.ErrInvalidArgument)

	m, err := d.Alloc(64, driver.Pinned)
	require.NoError(t, err)
	assert.Equal(t, driver.Pinned, m.Kind)
	require.NoError(t, d.Free(m))
	assert.ErrorIs(t, d.Free(m), driver.ErrInvalidArgument, "twice")
}

// TestOutOfMemory limits the memory of a process.
func TestOutOfMemory(t *testing.T) {
	d := open(t)
	if d.info.Kind != driver.CPU || d.info.Simulated {
		t.Skip("limits the process's own memory, which is the device's only on a CPU")
	}
	out, err := child(t, []string{helperVar + "=memory"})
	require.NoError(t, err, out)
}

func helpMemory() {
	d, err := backend{}.Open(context.Background(), 0, configured())
	if err != nil {
		panic(err)
	}
	if _, err := d.Alloc(touchFrom, driver.OnDevice); err != nil { // including everything that is made at the first use
		panic(err)
	}
	limit := syscall.Rlimit{Cur: 8 << 30, Max: 8 << 30}
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &limit); err != nil {
		panic(err)
	}
	for range 64 {
		if _, err = d.Alloc(256<<20, driver.OnDevice); err != nil {
			break
		}
	}
	if !errors.Is(err, driver.ErrOutOfMemory) {
		panic(fmt.Sprintf("not out of memory: %v", err))
	}
	fmt.Println(err)
	syscall.Exit(0) // with so little memory left, nothing else is guaranteed to work
}

// TestCopies compares every copying operation at any offset with the same operation on a slice,
// including the bytes around it.
func TestCopies(t *testing.T) {
	d := open(t)
	s := newStream(t, d)
	const size = 4096
	a, b := alloc(t, d, size), alloc(t, d, size)
	rng := rand.New(rand.NewPCG(1, 2))
	wantA, wantB := make([]byte, size), make([]byte, size)
	for i := range wantA {
		wantA[i], wantB[i] = byte(rng.Uint32()), byte(rng.Uint32())
	}
	upload(t, s, a, wantA)
	upload(t, s, b, wantB)
	for step := range 200 {
		k := int64(1) << rng.IntN(4)
		n := k * (1 + rng.Int64N(64))
		x, y := rng.Int64N(size-n), rng.Int64N(size-n)
		switch step % 3 {
		case 0:
			pattern := make([]byte, k)
			for i := range pattern {
				pattern[i] = byte(rng.Uint32())
			}
			require.NoError(t, s.Fill(view(a, x, n), pattern))
			copy(wantA[x:x+n], bytes.Repeat(pattern, int(n/k)))
		case 1:
			require.NoError(t, s.Copy(view(b, y, n), view(a, x, n)))
			copy(wantB[y:y+n], wantA[x:x+n])
		case 2:
			data := make([]byte, n)
			for i := range data {
				data[i] = byte(rng.Uint32())
			}
			upload(t, s, view(a, x, n), data)
			copy(wantA[x:], data)
			clear(data) // the caller may change it again
			require.Equal(t, wantB[y:y+n], download[byte](t, s, view(b, y, n)))
		}
	}
	assert.Equal(t, wantA, download[byte](t, s, a))
	assert.Equal(t, wantB, download[byte](t, s, b))
	assert.ErrorIs(t, s.Fill(view(a, 0, 9), []byte{1, 2}), driver.ErrInvalidArgument)
	assert.ErrorIs(t, s.Fill(view(a, 0, 9), []byte{1, 2, 3}), driver.ErrInvalidArgument)
}

// TestUploadSizes covers uploads with and without staging memory, with and without a context that
// can be done.
func TestUploadSizes(t *testing.T) {
	d := open(t)
	s := newStream(t, d)
	for _, n := range []int{1, stageLimit - 1, stageLimit, stageLimit + 1, 3 * stageTotal / 2} {
		m := alloc(t, d, int64(n))
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(i * 7)
		}
		for _, ctx := range []context.Context{context.Background(), t.Context()} {
			require.NoError(t, s.Fill(m, []byte{0}))
			require.NoError(t, s.Upload(ctx, m, data))
			got := make([]byte, n)
			require.NoError(t, s.Download(ctx, got, m))
			require.True(t, bytes.Equal(data, got), "%d bytes", n)
		}
	}
	require.NoError(t, s.Upload(t.Context(), alloc(t, d, 1), nil))
	require.NoError(t, s.Download(t.Context(), nil, alloc(t, d, 1)))
}

// TestManyUploads exceeds the staging memory and the ring of commands in progress.
func TestManyUploads(t *testing.T) {
	d := open(t)
	s := newStream(t, d)
	m := alloc(t, d, 4*3*ringSize)
	for i := range 3 * ringSize {
		require.NoError(t, s.Upload(t.Context(), view(m, int64(4*i), 4), bytesOf([]uint32{uint32(i)})))
	}
	big := alloc(t, d, stageLimit)
	data := make([]byte, stageLimit)
	for i := range 3 * stageTotal / stageLimit {
		data[0] = byte(i)
		require.NoError(t, s.Upload(t.Context(), big, data))
	}
	for i, v := range download[uint32](t, s, m) {
		require.EqualValues(t, i, v)
	}
	assert.EqualValues(t, byte(3*stageTotal/stageLimit-1), download[byte](t, s, big)[0])
}
