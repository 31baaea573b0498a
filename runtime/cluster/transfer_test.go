//go:build cgo && linux

package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// moved copies n elements with options, and checks what arrived.
func moved(t *testing.T, ctx context.Context, o TransferOptions, p *Pair, n int) error {
	t.Helper()
	want := numbers[int32](uint64(n), 0, n)
	src, err := runtime.Upload(t.Context(), p.From, want)
	require.NoError(t, err)
	defer src.Close()
	dst, err := runtime.Alloc[int32](p.To, n+3)
	require.NoError(t, err)
	defer dst.Close()
	if err := o.Copy(ctx, p, dst, src); err != nil {
		return err
	}
	got := make([]int32, n+3)
	require.NoError(t, runtime.Read(t.Context(), dst, got))
	assert.True(t, equal(want, got[:n]))
	return nil
}

func pairOf(t *testing.T, to, from *runtime.Device) *Pair {
	t.Helper()
	p, err := PairOf(to, from)
	require.NoError(t, err)
	return &p
}

// staging is memory of the host, of so many bytes.
func staging(t *testing.T, dev *runtime.Device, bytes int) *runtime.Buffer {
	t.Helper()
	b, err := dev.AllocKind(driver.Pinned, runtime.U8, bytes)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, b.Close()) })
	return b
}

// TestTransfer copies by every way: no byte passes the host where there is direct access, unless it is asked to.
func TestTransfer(t *testing.T) {
	m := simulate(t, 0, 2)
	p := pairOf(t, m.devs[1], m.devs[0])
	require.Equal(t, Peer, p.Path)
	for _, n := range []int{0, 1, 1009, 100_000} {
		require.NoError(t, moved(t, t.Context(), TransferOptions{}, p, n))
		require.NoError(t, moved(t, t.Context(), TransferOptions{Direct: true}, p, n))
	}
	assert.Equal(t, Stats{Direct: 2 * 4 * (1 + 1009 + 100_000)}, p.Stats())
	staged := pairOf(t, m.devs[1], m.devs[0])
	bytes := int64(0)
	for i, size := range []int{1003, 1 << 16, 16} { // memory of the one device, and of the other
		room := staging(t, m.devs[1-i%2], size)
		for _, n := range []int{0, 1, 2, 1009} {
			require.NoError(t, moved(t, t.Context(), TransferOptions{Staging: room}, staged, n))
			bytes += 4 * int64(n)
		}
	}
	assert.Equal(t, Stats{Host: bytes}, staged.Stats())

	cpu := open(t, "cpu:0")
	far := pairOf(t, cpu, m.devs[0])
	require.NoError(t, moved(t, t.Context(), TransferOptions{}, far, 1009))
	assert.Equal(t, Stats{Host: 4036}, far.Stats())
	require.ErrorIs(t, moved(t, t.Context(), TransferOptions{Direct: true}, far, 1009), runtime.ErrUnsupported)
	assert.Zero(t, far.Stats().Failures, "it was refused")
	here := pairOf(t, cpu, cpu)
	require.NoError(t, moved(t, t.Context(), TransferOptions{}, here, 10))
	assert.Equal(t, Stats{Shared: 40}, here.Stats())
}

// TestTransferFails has the driver's copy fail, or take too long: the host's memory is used instead, or the error
// returned, and both are counted.
func TestTransferFails(t *testing.T) {
	m := simulate(t, 0, 2)
	p := pairOf(t, m.devs[1], m.devs[0])
	require.NoError(t, moved(t, t.Context(), TransferOptions{}, p, 100))         // which enables direct access
	fails := func() { require.NoError(t, m.driver.Control("copy:1,devices:2")) } // the next copy
	src, dst := buffers(t, p)
	fails()
	require.NoError(t, p.Copy(t.Context(), dst, src))
	assert.Equal(t, Stats{Direct: 400, Host: 400, Fallbacks: 1}, p.Stats())
	assert.Contains(t, p.Stats().String(), "1 fallbacks")
	fails()
	require.ErrorIs(t, TransferOptions{Direct: true}.Copy(t.Context(), p, dst, src), driver.ErrLaunch)
	require.NoError(t, m.driver.Control("slow-copy:300,devices:2"))
	began := time.Now()
	err := TransferOptions{Timeout: 20 * time.Millisecond}.Copy(t.Context(), p, dst, src)
	require.ErrorIs(t, err, driver.ErrTimeout)
	assert.Less(t, time.Since(began), 250*time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, p.Copy(ctx, dst, src), context.DeadlineExceeded)
	assert.EqualValues(t, 3, p.Stats().Failures)
	assert.EqualValues(t, 1, p.Stats().Fallbacks)
	require.NoError(t, m.driver.Control("devices:2"))
}

// buffers returns two of 100 elements that a pair copies.
func buffers(t *testing.T, p *Pair) (src, dst *runtime.Buffer) {
	t.Helper()
	src, err := runtime.Upload(t.Context(), p.From, make([]int32, 100))
	require.NoError(t, err)
	dst, err = runtime.Alloc[int32](p.To, 100)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, src.Close()); assert.NoError(t, dst.Close()) })
	require.NoError(t, p.From.Sync(t.Context()))
	return src, dst
}

func TestTransferRefuses(t *testing.T) {
	cpu, other := open(t, "cpu:0"), open(t, "cpu:0")
	p := pairOf(t, cpu, other)
	src, dst := buffers(t, p)
	short, err := runtime.Alloc[int32](cpu, 99)
	require.NoError(t, err)
	defer short.Close()
	floats, err := runtime.Alloc[float32](cpu, 100)
	require.NoError(t, err)
	defer floats.Close()
	one, stage := pairOf(t, cpu, cpu), staging(t, cpu, 40)
	bytes := staging(t, cpu, 96)
	part := func(first, n int) *runtime.Buffer {
		b, err := bytes.Slice(first, n)
		require.NoError(t, err)
		t.Cleanup(func() { b.Close() })
		return b
	}
	for _, c := range []struct {
		o        TransferOptions
		p        *Pair
		dst, src *runtime.Buffer
		is       error
	}{
		{TransferOptions{Staging: stage}, one, part(8, 40), part(0, 40), runtime.ErrInvalidArgument},
		{TransferOptions{Staging: part(32, 64)}, one, part(0, 40), stage, runtime.ErrInvalidArgument},
		{TransferOptions{Staging: part(32, 64)}, one, stage, part(0, 40), runtime.ErrInvalidArgument},
		{TransferOptions{}, nil, dst, src, runtime.ErrInvalidArgument},
		{TransferOptions{}, &Pair{To: cpu, From: other}, dst, src, runtime.ErrInvalidArgument},
		{TransferOptions{}, p, nil, src, runtime.ErrInvalidArgument},
		{TransferOptions{}, p, dst, nil, runtime.ErrInvalidArgument},
		{TransferOptions{}, p, src, dst, runtime.ErrInvalidArgument},
		{TransferOptions{}, p, floats, src, runtime.ErrInvalidArgument},
		{TransferOptions{}, p, short, src, driver.ErrBufferOverflow},
		{TransferOptions{Timeout: -1}, p, dst, src, runtime.ErrInvalidArgument},
		{TransferOptions{Direct: true, Staging: dst}, p, dst, src, runtime.ErrInvalidArgument},
		{TransferOptions{Staging: staging(t, cpu, 15)}, p, dst, src, runtime.ErrInvalidArgument},
	} {
		assert.ErrorIs(t, c.o.Copy(t.Context(), c.p, c.dst, c.src), c.is, "%+v", c)
	}
	assert.Equal(t, Stats{}, (&Pair{}).Stats())
	assert.Zero(t, p.Stats().Direct)
}
