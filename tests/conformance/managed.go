package conformance

// Buffers with two sides, and buffers that end together: what the host wrote a kernel
// reads, what a kernel wrote the host reads, whatever copies that took.

import (
	"testing"

	"github.com/concord-compute/concord/runtime"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var managedChecks = []check{
	{"managed/every type", false, checkManagedTypes},
	{"managed/kernels", true, checkManagedKernels},
	{"managed/modes", false, checkManagedModes},
	{"managed/views", false, checkManagedViews},
	{"managed/streams", false, checkManagedStreams},
	{"managed/large", false, checkManagedLarge},
	{"managed/arena", false, checkArena},
	{"managed/batch", false, checkBatch},
}

// managed returns a buffer that is closed with the check, or nil where the device
// cannot have its mode.
func (d *device) managed(t *testing.T, typ runtime.Type, n int, opt runtime.ManagedOptions) *runtime.Managed {
	t.Helper()
	m, err := d.Device.Managed(typ, n, opt)
	if opt.Mode == runtime.UnifiedMode && notHere(err) {
		return nil
	}
	require.NoError(t, err)
	d.arrays = append(d.arrays, m)
	return m
}

// stale is what the device's side holds where nobody may see it, or all have to.
const stale = 77

func checkManagedTypes(t *testing.T, d *device) {
	managedTrip(t, d, []float32{0, 1.5, -3e38})
	managedTrip(t, d, []float64{0, 1.5, -1.5e308})
	managedTrip(t, d, []runtime.Float16{0, 0x3c00, 0xfbff})
	managedTrip(t, d, []int8{0, 127, -128})
	managedTrip(t, d, []uint16{0, 65535, 7})
	managedTrip(t, d, []int32{0, 1<<31 - 1, -1 << 31})
	managedTrip(t, d, []uint64{0, 1<<64 - 1, 1})
}

// managedTrip sends data to the device's side, and looks there and at what comes back.
func managedTrip[T runtime.Element](t *testing.T, d *device, data []T) {
	t.Helper()
	for _, mode := range []runtime.Mode{runtime.AutomaticMode, runtime.ExplicitMode, runtime.UnifiedMode} {
		m := d.managed(t, runtime.TypeOf[T](), len(data), runtime.ManagedOptions{Mode: mode})
		if m == nil {
			continue
		}
		require.NoError(t, runtime.Write(t.Context(), m, data))
		require.NoError(t, m.ToDevice(t.Context()))
		side, err := m.DeviceSide(d.Stream(), runtime.ForWriting)
		require.NoError(t, err)
		assert.Equal(t, data, read[T](t, side), "mode %d: it is there", mode)
		require.NoError(t, runtime.Fill(d.Stream(), side, data[2]))
		require.NoError(t, side.Close())
		require.NoError(t, m.ToHost(t.Context()))
		got := make([]T, len(data))
		require.NoError(t, runtime.Read(t.Context(), m, got))
		assert.Equal(t, []T{data[2], data[2], data[2]}, got, "mode %d: and back", mode)
	}
}

// checkManagedKernels: inputs, outputs and both, and a step on the host in between.
func checkManagedKernels(t *testing.T, d *device) {
	const n = 1000
	k, ctx, s := d.kernel(t, saxpyText, "saxpy"), t.Context(), d.Stream()
	x := d.managed(t, runtime.F32, n, runtime.ManagedOptions{})
	y := d.managed(t, runtime.F32, n, runtime.ManagedOptions{Location: runtime.HostPreferred})
	data := make([]float32, n)
	for i := range data {
		data[i] = float32(i)
	}
	require.NoError(t, runtime.Write(ctx, x, data))
	require.NoError(t, runtime.Write(ctx, y, make([]float32, n)))
	add := func() { // y += 2 x
		t.Helper()
		require.NoError(t, s.Launch(k, runtime.Items(n), float32(2), x, y, uint32(n)))
		host, device := y.Dirty()
		assert.True(t, device && !host, "an output")
		host, device = x.Dirty()
		assert.False(t, device || host, "an input")
	}
	add()
	add()
	got := make([]float32, n)
	require.NoError(t, runtime.Read(ctx, y, got))
	assert.EqualValues(t, 4*(n-1), got[n-1])
	add()
	// A fallback computes y = 1 on the host.
	window, err := runtime.Map[float32](ctx, y, runtime.ForOverwriting)
	require.NoError(t, err)
	for i := range window {
		window[i] = 1
	}
	require.NoError(t, y.Unmap())
	host, device := y.Dirty()
	assert.True(t, host && !device)
	require.NoError(t, y.ToHost(ctx))
	require.NoError(t, runtime.Read(ctx, y, got))
	assert.EqualValues(t, 1, got[n-1], "the device's old result does not come over it")
	add()
	require.NoError(t, runtime.Write(ctx, x, make([]float32, n))) // while the launch may still run
	require.NoError(t, runtime.Read(ctx, y, got))
	for i := range got {
		if got[i] != float32(1+2*i) {
			t.Fatalf("element %d is %v, not %d", i, got[i], 1+2*i)
		}
	}
	require.NoError(t, runtime.Read(ctx, x, got))
	assert.Equal(t, make([]float32, n), got)
}

func checkManagedModes(t *testing.T, d *device) {
	ctx, s := t.Context(), d.Stream()
	m := d.managed(t, runtime.U32, 100, runtime.ManagedOptions{Mode: runtime.ExplicitMode})
	one, got := make([]uint32, 100), make([]uint32, 100)
	one[0], one[99] = 1, 1
	require.NoError(t, runtime.Write(ctx, m, one))
	require.NoError(t, m.ToDevice(ctx))
	side, err := m.DeviceSide(s, runtime.ForWriting)
	require.NoError(t, err)
	require.NoError(t, runtime.Fill(s, side, uint32(stale)))
	require.NoError(t, runtime.Read(ctx, m, got))
	assert.Equal(t, one, got, "nobody asked for a copy")
	require.NoError(t, s.ToHost(m))
	require.NoError(t, runtime.Read(ctx, m, got))
	assert.EqualValues(t, stale, got[50])
	require.NoError(t, side.Close())

	u := d.managed(t, runtime.U32, 100, runtime.ManagedOptions{Mode: runtime.UnifiedMode, AllowDowngrade: true})
	require.NoError(t, runtime.Write(ctx, u, one))
	require.NoError(t, s.ToDevice(u))
	side, err = u.DeviceSide(s, runtime.ForReading)
	require.NoError(t, err)
	assert.Equal(t, one, read[uint32](t, side))
	require.NoError(t, side.Close())

	host := d.managed(t, runtime.U32, 100, runtime.ManagedOptions{Location: runtime.HostOnly})
	require.NoError(t, runtime.Write(ctx, host, one))
	require.NoError(t, runtime.Read(ctx, host, got))
	assert.Equal(t, one, got)
	_, err = host.DeviceSide(s, runtime.ForReading)
	assert.ErrorIs(t, err, runtime.ErrNoDeviceMemory)
	far := d.managed(t, runtime.U32, 100, runtime.ManagedOptions{Location: runtime.DeviceOnly})
	assert.ErrorIs(t, runtime.Read(ctx, far, got), runtime.ErrNoHostMemory)
}

func checkManagedViews(t *testing.T, d *device) {
	ctx, s := t.Context(), d.Stream()
	m := d.managed(t, runtime.U16, 100, runtime.ManagedOptions{})
	want := make([]uint16, 100)
	for i := range want {
		want[i] = uint16(i)
	}
	require.NoError(t, runtime.Write(ctx, m, want))
	v, err := m.Slice(10, 50)
	require.NoError(t, err)
	w, err := v.Slice(5, 10)
	require.NoError(t, err)
	side, err := w.DeviceSide(s, runtime.ForOverwriting)
	require.NoError(t, err)
	require.NoError(t, runtime.Fill(s, side, uint16(stale)))
	for i := range 10 {
		want[15+i] = stale
	}
	require.NoError(t, runtime.Write(ctx, v, []uint16{1, 2, 3}))
	copy(want[10:], []uint16{1, 2, 3})
	got := make([]uint16, 100)
	require.NoError(t, runtime.Read(ctx, m, got))
	assert.Equal(t, want, got, "the host's change and the device's are both there")
	require.NoError(t, m.Close())
	require.NoError(t, runtime.Read(ctx, w, got[:10]))
	assert.Equal(t, want[15:25], got[:10], "a view keeps both sides")
	for _, c := range []interface{ Close() error }{v, w, side} {
		require.NoError(t, c.Close())
	}
}

// checkManagedStreams: a buffer that wanders from stream to stream is up to date on each.
func checkManagedStreams(t *testing.T, d *device) {
	const n = 1 << 16
	other, err := d.NewStream()
	require.NoError(t, err)
	m := d.managed(t, runtime.U32, n, runtime.ManagedOptions{})
	data := make([]uint32, n)
	for i := range uint32(40) {
		s := []*runtime.Stream{d.Stream(), other}[i%2]
		if i%5 == 0 {
			for j := range data {
				data[j] = i + uint32(j)
			}
			require.NoError(t, runtime.Write(t.Context(), m, data))
		}
		at := int(i) * 100
		part, err := m.Slice(at, 200)
		require.NoError(t, err)
		side, err := part.DeviceSide(s, runtime.ForOverwriting)
		require.NoError(t, err)
		require.NoError(t, runtime.Fill(s, side, i))
		for j := range 200 {
			data[at+j] = i
		}
		if i%3 == 0 {
			require.NoError(t, s.ToHost(m))
		}
		require.NoError(t, side.Close())
		require.NoError(t, part.Close())
	}
	got := make([]uint32, n)
	require.NoError(t, runtime.Read(t.Context(), m, got))
	assert.Equal(t, data, got)
	require.NoError(t, other.Close())
}

// checkManagedLarge: copies of several pieces, from and to memory of the host's.
func checkManagedLarge(t *testing.T, d *device) {
	if d.Info().TotalMemory > 0 && d.Info().TotalMemory < 1<<30 {
		t.Skip("too large for this device")
	}
	const n = 33<<20 + 5
	data := bytesOf(n)
	b, err := runtime.Upload(t.Context(), d.Device, data)
	require.NoError(t, err)
	d.buffers = append(d.buffers, b)
	part, err := b.Slice(3, n-3)
	require.NoError(t, err)
	d.buffers = append(d.buffers, part)
	assert.True(t, string(data[3:]) == string(read[uint8](t, part)), "there and back")
	again := bytesOf(n)
	again[0], again[n-1] = 1, 2
	require.NoError(t, runtime.Write(t.Context(), b, again))
	want := string(again)
	clear(again) // the caller's from the return of Write on, whatever is queued
	assert.True(t, want == string(read[uint8](t, b)), "what was there when Write was called")
}

func checkArena(t *testing.T, d *device) {
	for _, newArena := range []func() (*runtime.Arena, error){d.NewArena, d.Stream().NewArena} {
		a, err := newArena()
		require.NoError(t, err)
		for round := range 3 {
			var list []*runtime.Buffer
			for i := range 100 {
				b, err := a.Alloc(runtime.U16, 1+i*13)
				require.NoError(t, err)
				require.NoError(t, runtime.Fill(d.Stream(), b, uint16(1000*round+i)))
				list = append(list, b)
			}
			for i, b := range list {
				for _, got := range read[uint16](t, b) {
					require.EqualValues(t, 1000*round+i, got, "buffer %d", i)
				}
			}
			require.NoError(t, a.Reset())
			assert.ErrorIs(t, runtime.Fill(d.Stream(), list[0], uint16(1)), runtime.ErrClosed)
		}
		require.NoError(t, a.Close())
	}
}

func checkBatch(t *testing.T, d *device) {
	batch := d.NewBatch()
	b, err := batch.AddHost(t.Context(), []byte{1, 2, 3, 4, 5, 6}, 3, runtime.U16)
	require.NoError(t, err)
	assert.Equal(t, []uint16{0x201, 0x403, 0x605}, read[uint16](t, b))
	_, err = batch.AddHost(t.Context(), []byte{1, 2, 3}, 2, runtime.U16)
	assert.ErrorIs(t, err, runtime.ErrDimension)
	m, err := d.Device.Managed(runtime.F32, 10, runtime.ManagedOptions{})
	require.NoError(t, err)
	require.NoError(t, batch.Add(m))
	require.NoError(t, batch.Close())
	assert.ErrorIs(t, runtime.Read(t.Context(), b, make([]uint16, 3)), runtime.ErrClosed)
}
