//go:build cgo && unix

package cgo

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/tests/sim/null"
)

// communicatorOf makes a communicator of one rank, with a stream.
func communicatorOf(t *testing.T, d *device) (driver.Communicator, driver.Stream) {
	t.Helper()
	id, err := d.CommunicatorID()
	require.NoError(t, err)
	c, err := d.NewCommunicator(ctx, id, 0, 1)
	require.NoError(t, err)
	s, err := d.NewStream()
	require.NoError(t, err)
	return c, s
}

// TestCollective checks what reaches the table: sizes in elements of one rank, the numbers of types.
func TestCollective(t *testing.T) {
	d := openNull(t, vendor())
	c, s := communicatorOf(t, d)
	x := driver.Memory{Handle: 4096, Offset: 16, Size: 48}
	for kind := driver.AllReduce; kind <= driver.SendReceive; kind++ {
		for typ, number := range map[driver.Type]int32{driver.F32: 7, driver.F64: 8, driver.BF16: 9, driver.U8: 1} {
			before := null.Calls("comm_queue")
			w := driver.Collective{Kind: kind, Op: driver.ReduceMax, Type: typ, Dst: x, Src: x}
			require.NoError(t, c.Queue(ctx, s, &w))
			assert.Equal(t, before+1, null.Calls("comm_queue"))
			got := null.Collective()
			n := uint64(48 / typ.Size())
			assert.Equal(t, []uint64{uint64(kind), uint64(number), 2, n, n, 4112, 4112},
				[]uint64{uint64(got.Kind), uint64(got.Type), uint64(got.Op), got.Count, got.Received, got.Dst, got.Src})
		}
	}
	assert.NoError(t, c.Err())
}

// TestCollectiveRefuses checks that nothing reaches the library that would read or write past the memory.
func TestCollectiveRefuses(t *testing.T) {
	d := openNull(t, vendor())
	c, s := communicatorOf(t, d)
	x, half := driver.Memory{Handle: 4096, Size: 16}, driver.Memory{Handle: 4096, Size: 8}
	for _, w := range []driver.Collective{
		{Kind: driver.AllReduce, Dst: half, Src: x},
		{Kind: driver.Reduce, Dst: half, Src: x},
		{Kind: driver.Broadcast, Dst: half, Src: x},
		{Kind: driver.AllGather, Dst: half, Src: x},
		{Kind: driver.ReduceScatter, Dst: half, Src: x},
	} {
		w.Type = driver.F32
		assert.ErrorIs(t, c.Queue(ctx, s, &w), driver.ErrDimension, w.Kind)
	}
	w := driver.Collective{Kind: driver.SendReceive, Type: driver.U8, To: 1, Dst: x, Src: x}
	assert.ErrorIs(t, c.Queue(ctx, s, &w), driver.ErrInvalidArgument)
	for _, typ := range []driver.Type{driver.I16, driver.U16, driver.Bool, driver.NoType} {
		w := driver.Collective{Type: typ, Dst: x, Src: x}
		assert.ErrorIs(t, c.Queue(ctx, s, &w), driver.ErrUnsupported, typ)
	}
	other, err := NewBackend(vendor()).Open(ctx, 1, nil)
	require.NoError(t, err)
	defer other.Close()
	foreign, err := other.NewStream()
	require.NoError(t, err)
	good := driver.Collective{Type: driver.F32, Dst: x, Src: x}
	assert.ErrorIs(t, c.Queue(ctx, foreign, &good), driver.ErrInvalidArgument)
	require.NoError(t, s.(driver.Capturer).BeginCapture())
	assert.ErrorIs(t, c.Queue(ctx, s, &good), driver.ErrInvalidArgument, "a graph does not record it")
	require.NoError(t, s.(driver.Capturer).DropCapture())
	assert.Zero(t, null.Calls("comm_queue"))
	require.NoError(t, c.Queue(ctx, s, &good))
	require.NoError(t, c.Close())
	require.NoError(t, c.Close())
	assert.ErrorIs(t, c.Queue(ctx, s, &good), driver.ErrClosed)
	assert.ErrorIs(t, c.Err(), driver.ErrClosed)
	without := vendor()
	without.Collectives = nil
	d2, err := NewBackend(without).Open(ctx, 1, nil)
	require.NoError(t, err)
	defer d2.Close()
	assert.True(t, d.HasCommunicators())
	assert.False(t, d2.(driver.Communicators).HasCommunicators())
	_, err = d2.(driver.Communicators).CommunicatorID()
	assert.ErrorIs(t, err, driver.ErrUnsupported)
	_, err = d2.(driver.Communicators).NewCommunicator(ctx, nil, 0, 1)
	assert.ErrorIs(t, err, driver.ErrUnsupported)
}

// TestCollectiveWaits has a library that is never done: a context ends the wait, and the device closes what is left.
func TestCollectiveWaits(t *testing.T) {
	d := openNull(t, vendor())
	c, s := communicatorOf(t, d)
	null.Hold(true)
	defer null.Hold(false)
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	x := driver.Memory{Handle: 4096, Size: 16}
	assert.ErrorIs(t, c.Queue(short, s, &driver.Collective{Type: driver.F32, Dst: x, Src: x}), context.DeadlineExceeded)
	id, err := d.CommunicatorID()
	require.NoError(t, err)
	_, err = d.NewCommunicator(short, id, 0, 1)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, 1, null.Calls("comm_abort"), "of the one that was not done")
}
