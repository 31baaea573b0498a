package runtime

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"testing"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pinnedBackend has devices with contents: what is copied can be looked at.
type pinnedBackend struct {
	nullBackend
	memory   map[uint64][]byte
	copyErr  error
	pinned   int // how many may be had; -1 is any number
	recorded func() error
	event    driver.Event // what streams record, if not nil
	late     func()       // called before each pinned copy
}

func (b *pinnedBackend) Open(_ context.Context, i int, _ *Config) (driver.Device, error) {
	return &pinnedDevice{nullDevice{b: &b.nullBackend, i: i}, b}, nil
}

type pinnedDevice struct {
	nullDevice
	b *pinnedBackend
}

func (d *pinnedDevice) Alloc(n int64, kind driver.MemoryKind) (driver.Memory, error) {
	if kind == driver.Pinned {
		if d.b.pinned == 0 {
			return driver.Memory{}, fmt.Errorf("pinned: %w", ErrOutOfMemory)
		}
		d.b.pinned--
	}
	m, err := d.nullDevice.Alloc(n, kind)
	if d.b.memory == nil {
		d.b.memory = map[uint64][]byte{}
	}
	d.b.memory[m.Handle] = make([]byte, n)
	return m, err
}

func (d *pinnedDevice) bytes(m driver.Memory) []byte {
	return d.b.memory[m.Handle][m.Offset : m.Offset+m.Size]
}

func (d *pinnedDevice) HostBytes(m driver.Memory) ([]byte, bool) {
	return d.bytes(m), m.Kind == driver.Pinned
}

func (d *pinnedDevice) NewStream() (driver.Stream, error) {
	return &pinnedStream{nullStream{b: d.nullDevice.b}, d}, nil
}

type pinnedStream struct {
	nullStream
	d *pinnedDevice
}

func (s *pinnedStream) UploadPinned(dst, src driver.Memory) error   { return s.copy(dst, src) }
func (s *pinnedStream) DownloadPinned(dst, src driver.Memory) error { return s.copy(dst, src) }
func (s *pinnedStream) copy(dst, src driver.Memory) error {
	if s.d.b.late != nil {
		s.d.b.late()
	}
	if s.d.b.copyErr != nil {
		return s.d.b.copyErr
	}
	s.b.note(fmt.Sprintf("piece of %d", src.Size))
	copy(s.d.bytes(dst), s.d.bytes(src))
	return nil
}

func (s *pinnedStream) Record(timing bool) (driver.Event, error) {
	if s.d.b.recorded != nil {
		if err := s.d.b.recorded(); err != nil {
			return nil, err
		}
	}
	if s.d.b.event != nil {
		return s.d.b.event, nil
	}
	return s.nullStream.Record(timing)
}

const testChunk = 64 << 10

func openPinned(t *testing.T, b *pinnedBackend) *Device {
	b.name, b.devices, b.told = "cuda", 1, true
	s, err := New(Config{Backends: []driver.Backend{b}, CacheDir: "off", NoMemoryPool: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	d, err := s.Open(t.Context(), "cuda:0")
	require.NoError(t, err)
	d.core.memory.staging.chunk = testChunk
	return d
}

func TestStagedCopies(t *testing.T) {
	b := &pinnedBackend{pinned: -1}
	d := openPinned(t, b)
	const chunk = testChunk
	for _, n := range []int{chunk, chunk + 1, 2 * chunk, 2*chunk + 5, 5*chunk - 3} {
		data, got := make([]byte, n), make([]byte, n)
		for i := range data {
			data[i] = byte(i*7 + i>>16)
		}
		x, err := d.Alloc(U8, n)
		require.NoError(t, err)
		b.heard()
		require.NoError(t, Write(t.Context(), x, data))
		var pieces []string
		for left := n; left > 0; left -= chunk {
			pieces = append(pieces, fmt.Sprintf("piece of %d", min(left, chunk)))
		}
		assert.Equal(t, pieces, b.heard(), "%d bytes up", n)
		require.NoError(t, Read(t.Context(), x, got))
		assert.Equal(t, pieces, b.heard(), "%d bytes down", n)
		require.True(t, slices.Equal(data, got), "%d bytes", n)
		part := got[:n-1]
		if n == chunk {
			part = got[:0] // a byte less goes the driver's own way, which does nothing here
		}
		require.NoError(t, d.Stream().Read(t.Context(), x, 1, part))
		require.True(t, slices.Equal(data[1:1+len(part)], part), "%d bytes from the second on", len(part))
		require.NoError(t, x.Close())
	}
	st := d.Stats().Staging
	assert.EqualValues(t, 2, st.Buffers)
	assert.EqualValues(t, 2*chunk, st.Bytes)
	assert.EqualValues(t, 14, st.Copies, "all but one that is a byte too short")
	small, err := d.Alloc(U8, chunk)
	require.NoError(t, err)
	b.heard()
	require.NoError(t, Write(t.Context(), small, make([]byte, chunk-1)))
	assert.Equal(t, []string{"upload"}, b.heard(), "the driver's own way")
	frees := b.frees.Load()
	require.NoError(t, d.Close())
	assert.EqualValues(t, 3, b.frees.Load()-frees)
}

func TestStagingNotToBeHad(t *testing.T) {
	for n := range 2 {
		b := &pinnedBackend{pinned: n}
		d := openPinned(t, b)
		x, err := d.Alloc(U8, testChunk)
		require.NoError(t, err)
		b.heard()
		data := make([]byte, testChunk)
		require.NoError(t, Write(t.Context(), x, data))
		require.NoError(t, Read(t.Context(), x, data))
		assert.Equal(t, []string{"upload", "download"}, b.heard())
		assert.EqualValues(t, n, d.Stats().Staging.Buffers)
	}
}

// A context ends a copy between two pieces; the stream goes on.
func TestStagedCopyEnds(t *testing.T) {
	b := &pinnedBackend{pinned: -1}
	d := openPinned(t, b)
	data := make([]byte, 4*testChunk)
	x, err := d.Alloc(U8, len(data))
	require.NoError(t, err)
	for _, call := range []func(context.Context) error{
		func(ctx context.Context) error { return Write(ctx, x, data) },
		func(ctx context.Context) error { return Read(ctx, x, data) },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		b.late = func() {
			if n++; n == 2 {
				cancel()
			}
		}
		assert.ErrorIs(t, call(ctx), context.Canceled)
		assert.Equal(t, 2, n)
		b.late = nil
		require.NoError(t, call(t.Context()), "the same once more")
	}
	b.copyErr = errors.New("no")
	assert.ErrorIs(t, Write(t.Context(), x, data), b.copyErr)
	assert.ErrorIs(t, Read(t.Context(), x, data), b.copyErr)
	b.copyErr = nil
	b.recorded = func() error { return fmt.Errorf("no event: %w", ErrOutOfMemory) }
	require.NoError(t, Write(t.Context(), x, data), "without events it waits")
	require.NoError(t, Read(t.Context(), x, data))
	b.recorded = func() error { return ErrLaunch }
	assert.ErrorIs(t, Write(t.Context(), x, data), ErrLaunch)
	b.recorded = nil
	require.NoError(t, Write(t.Context(), x, data))
	assert.EqualValues(t, 2, d.Stats().Staging.Buffers)
}

// brokenEvent is one of a stream that failed: it tells nothing.
type brokenEvent struct {
	nullEvent
	err error
}

func (e brokenEvent) Done() (bool, error)        { return false, e.err }
func (e brokenEvent) Wait(context.Context) error { return e.err }

// A buffer that a stream which failed may still use is set aside until the stream is
// closed, and is no reason for copies on other streams to fail.
func TestStagingOfAStreamThatFailed(t *testing.T) {
	failed := errors.New("the other stream failed")
	for _, noted := range []bool{true, false} { // whether there is an event of its last copies
		b := &pinnedBackend{pinned: -1}
		d := openPinned(t, b)
		s, err := d.NewStream()
		require.NoError(t, err)
		data := make([]byte, 2*testChunk)
		x, err := d.Alloc(U8, len(data))
		require.NoError(t, err)
		y, err := d.Alloc(U8, len(data))
		require.NoError(t, err)
		if noted {
			b.event = brokenEvent{nullEvent{&b.nullBackend}, failed}
			require.NoError(t, s.Write(t.Context(), x, 0, data))
		} else {
			b.recorded, b.syncErr = func() error { return failed }, failed
			assert.ErrorIs(t, s.Write(t.Context(), x, 0, data), failed)
		}
		b.event, b.recorded, b.syncErr = nil, nil, nil
		for range 4 { // each meets one of the buffers at most
			require.NoError(t, Write(t.Context(), y, data), "another stream")
		}
		assert.Greater(t, d.Stats().Staging.Buffers, int64(2), "what is set aside is not used")
		b.heard()
		frees := b.frees.Load()
		require.NoError(t, Write(t.Context(), y, data))
		assert.Equal(t, []string{fmt.Sprintf("piece of %d", testChunk), fmt.Sprintf("piece of %d", testChunk)}, b.heard(),
			"other buffers do it")
		assert.Equal(t, frees, b.frees.Load(), "nor freed")
		goruntime.KeepAlive(x) // a buffer that is collected is freed
		require.NoError(t, s.Close())
		d.core.memory.staging.put(d.core, nil)
		assert.EqualValues(t, stagesKept, d.Stats().Staging.Buffers)
		require.NoError(t, d.Close())
		assert.Equal(t, b.allocs.Load(), b.frees.Load())
	}
}

// What is more than to be kept goes when nothing is recorded, at the next look.
func TestStagingWhileADriverRecords(t *testing.T) {
	b := &pinnedBackend{pinned: -1}
	d := openPinned(t, b)
	g := &d.core.memory.staging
	one, ok := g.take(d.core)
	require.True(t, ok)
	two, ok := g.take(d.core)
	require.True(t, ok)
	d.core.streams.capturing.Add(1)
	g.put(d.core, one[:])
	g.put(d.core, two[:])
	assert.Zero(t, b.frees.Load(), "not every driver can free while it records")
	d.core.streams.capturing.Add(-1)
	assert.EqualValues(t, stagesMost, d.Stats().Staging.Buffers)
	g.put(d.core, nil)
	assert.EqualValues(t, stagesKept, d.Stats().Staging.Buffers)
	assert.EqualValues(t, 2, b.frees.Load())
}
