package conformance

// Managed buffers, which have a host side and a device side, and buffers that are freed together:
// kernels read what the host wrote, and the host reads what kernels wrote, whatever copies that
// takes.

import (
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/managed"
)

var managedChecks = []Row{
	{"managed/every_type", false, checkManagedTypes},
	{"managed/kernels", true, checkManagedKernels},
	{"managed/modes", false, checkManagedModes},
	{"managed/views", false, checkManagedViews},
	{"managed/streams", false, checkManagedStreams},
	{"managed/large", false, checkManagedLarge},
	{"managed/arena", false, checkArena},
	{"managed/batch", false, checkBatch},
}

// newManaged returns a buffer that is closed at the end of the check, or nil if the device does not
// support its mode.
func (d *device) newManaged(t *row, typ runtime.Type, n int, opt managed.Options) *managed.Buffer {
	t.Helper()
	m, err := managed.New(d.Device, typ, n, opt)
	if opt.Mode == managed.UnifiedMode && notHere(err) {
		return nil
	}
	must(t, err)
	return keep(d, m)
}

// stale is a value on the device's side. Depending on the check it must be visible everywhere or
// nowhere.
const stale = 77

func checkManagedTypes(t *row, d *device) {
	managedTrip(t, d, []float32{0, 1.5, -3e38})
	managedTrip(t, d, []float64{0, 1.5, -1.5e308})
	managedTrip(t, d, []runtime.Float16{0, 0x3c00, 0xfbff})
	managedTrip(t, d, []int8{0, 127, -128})
	managedTrip(t, d, []uint16{0, 65535, 7})
	managedTrip(t, d, []int32{0, 1<<31 - 1, -1 << 31})
	managedTrip(t, d, []uint64{0, 1<<64 - 1, 1})
}

// managedTrip copies data to the device's side, and checks it there and after copying it back.
func managedTrip[T runtime.Element](t *row, d *device, data []T) {
	t.Helper()
	for _, mode := range []managed.Mode{managed.AutomaticMode, managed.ExplicitMode, managed.UnifiedMode} {
		m := d.newManaged(t, runtime.TypeOf[T](), len(data), managed.Options{Mode: mode})
		if m == nil {
			continue
		}
		must(t, managed.Write(t.Context(), m, data))
		must(t, m.ToDevice(t.Context()))
		side := call(m.DeviceSide(d.Stream(), runtime.ForWriting)).must(t)
		equal(t, data, read[T](t, side), "mode %d: it is there", mode)
		must(t, d.Stream().Fill(side, data[2]))
		must(t, side.Close())
		must(t, m.ToHost(t.Context()))
		got := make([]T, len(data))
		must(t, managed.Read(t.Context(), m, got))
		equal(t, []T{data[2], data[2], data[2]}, got, "mode %d: and back", mode)
	}
}

// checkManagedKernels: buffers as inputs, outputs and both, with a step on the host in between.
func checkManagedKernels(t *row, d *device) {
	const n = 1000
	k, ctx, s := d.kernel(t, saxpyText, "saxpy"), t.Context(), d.Stream()
	x := d.newManaged(t, runtime.F32, n, managed.Options{})
	y := d.newManaged(t, runtime.F32, n, managed.Options{Location: managed.HostPreferred})
	must(t, managed.Write(ctx, x, made(n, func(i int) float32 { return float32(i) })))
	must(t, managed.Write(ctx, y, make([]float32, n)))
	add := func() { // y += 2 x
		t.Helper()
		must(t, managed.Launch(s, k, runtime.Items(n), float32(2), x, y, uint32(n)))
		host, device := y.Dirty()
		expect(t, device && !host, "an output")
		host, device = x.Dirty()
		expect(t, !device && !host, "an input")
	}
	add()
	add()
	got := make([]float32, n)
	must(t, managed.Read(ctx, y, got))
	equal(t, 4*(n-1), got[n-1])
	add()
	// A fallback computes y = 1 on the host.
	window := call(managed.Map[float32](ctx, y, runtime.ForOverwriting)).must(t)
	for i := range window {
		window[i] = 1
	}
	must(t, y.Unmap())
	host, device := y.Dirty()
	expect(t, host && !device, "the host has overwritten it")
	must(t, y.ToHost(ctx))
	must(t, managed.Read(ctx, y, got))
	equal(t, 1, got[n-1], "the device's old result does not come over it")
	add()
	must(t, managed.Write(ctx, x, make([]float32, n))) // while the launch may still run
	must(t, managed.Read(ctx, y, got))
	mustEqual(t, made(n, func(i int) float32 { return float32(1 + 2*i) }), got)
	must(t, managed.Read(ctx, x, got))
	equal(t, make([]float32, n), got)
}

func checkManagedModes(t *row, d *device) {
	ctx, s := t.Context(), d.Stream()
	m := d.newManaged(t, runtime.U32, 100, managed.Options{Mode: managed.ExplicitMode})
	one, got := make([]uint32, 100), make([]uint32, 100)
	one[0], one[99] = 1, 1
	must(t, managed.Write(ctx, m, one))
	must(t, m.ToDevice(ctx))
	side := call(m.DeviceSide(s, runtime.ForWriting)).must(t)
	must(t, s.Fill(side, uint32(stale)))
	must(t, managed.Read(ctx, m, got))
	equal(t, one, got, "no copy was requested")
	must(t, m.QueueToHost(s))
	must(t, managed.Read(ctx, m, got))
	equal(t, stale, got[50])
	must(t, side.Close())

	u := d.newManaged(t, runtime.U32, 100, managed.Options{Mode: managed.UnifiedMode, AllowDowngrade: true})
	must(t, managed.Write(ctx, u, one))
	must(t, u.QueueToDevice(s))
	side = call(u.DeviceSide(s, runtime.ForReading)).must(t)
	equal(t, one, read[uint32](t, side))
	must(t, side.Close())

	host := d.newManaged(t, runtime.U32, 100, managed.Options{Location: managed.HostOnly})
	must(t, managed.Write(ctx, host, one))
	must(t, managed.Read(ctx, host, got))
	equal(t, one, got)
	call(host.DeviceSide(s, runtime.ForReading)).fails(t, driver.ErrNoDeviceMemory)
	far := d.newManaged(t, runtime.U32, 100, managed.Options{Location: managed.DeviceOnly})
	errorIs(t, managed.Read(ctx, far, got), driver.ErrNoHostMemory)
}

func checkManagedViews(t *row, d *device) {
	ctx, s := t.Context(), d.Stream()
	m := d.newManaged(t, runtime.U16, 100, managed.Options{})
	want := made(100, func(i int) uint16 { return uint16(i) })
	must(t, managed.Write(ctx, m, want))
	v := keep(d, call(m.Slice(10, 50)).must(t))
	w := keep(d, call(v.Slice(5, 10)).must(t))
	side := keep(d, call(w.DeviceSide(s, runtime.ForOverwriting)).must(t))
	must(t, s.Fill(side, uint16(stale)))
	for i := range 10 {
		want[15+i] = stale
	}
	must(t, managed.Write(ctx, v, []uint16{1, 2, 3}))
	copy(want[10:], []uint16{1, 2, 3})
	got := make([]uint16, 100)
	must(t, managed.Read(ctx, m, got))
	equal(t, want, got, "the host's change and the device's are both there")
	must(t, m.Close())
	must(t, managed.Read(ctx, w, got[:10]))
	equal(t, want[15:25], got[:10], "a view keeps both sides")
}

// checkManagedStreams: a buffer that several streams use in turn is up to date on each.
func checkManagedStreams(t *row, d *device) {
	const n = 1 << 16
	other := d.stream(t)
	m := d.newManaged(t, runtime.U32, n, managed.Options{})
	data := make([]uint32, n)
	for i := range uint32(40) {
		s := []*runtime.Stream{d.Stream(), other}[i%2]
		if i%5 == 0 {
			for j := range data {
				data[j] = i + uint32(j)
			}
			must(t, managed.Write(t.Context(), m, data))
		}
		at := int(i) * 100
		part := call(m.Slice(at, 200)).must(t)
		side := call(part.DeviceSide(s, runtime.ForOverwriting)).must(t)
		must(t, s.Fill(side, i))
		for j := range 200 {
			data[at+j] = i
		}
		if i%3 == 0 {
			must(t, m.QueueToHost(s))
		}
		must(t, side.Close())
		must(t, part.Close())
	}
	got := make([]uint32, n)
	must(t, managed.Read(t.Context(), m, got))
	equal(t, data, got)
}

// checkManagedLarge: copies from and to host memory that are done in several pieces.
func checkManagedLarge(t *row, d *device) {
	if d.Info().TotalMemory > 0 && d.Info().TotalMemory < 1<<30 {
		t.Skipf("%s has %d bytes of memory", d, d.Info().TotalMemory)
	}
	const n = 33<<20 + 5
	data := bytesOf(n)
	b := keep(d, call(runtime.Upload(t.Context(), d.Device, data)).must(t))
	part := d.slice(t, b, 3, n-3)
	expect(t, string(data[3:]) == string(read[uint8](t, part)), "there and back")
	again := bytesOf(n)
	again[0], again[n-1] = 1, 2
	must(t, runtime.Write(t.Context(), b, again))
	want := string(again)
	clear(again) // the caller may change it after Write has returned, whatever is queued
	expect(t, want == string(read[uint8](t, b)), "the contents at the time of Write")
}

func checkArena(t *row, d *device) {
	for _, s := range []*runtime.Stream{nil, d.Stream()} {
		a := keep(d, call(managed.NewArena(d.Device, s)).must(t))
		for round := range 3 {
			var list []*runtime.Buffer
			for i := range 100 {
				b := call(a.Alloc(runtime.U16, 1+i*13)).must(t)
				must(t, d.Stream().Fill(b, uint16(1000*round+i)))
				list = append(list, b)
			}
			for i, b := range list {
				all(t, b, uint16(1000*round+i), "buffer %d", i)
			}
			must(t, a.Reset())
			errorIs(t, d.Stream().Fill(list[0], uint16(1)), runtime.ErrClosed)
		}
	}
}

func checkBatch(t *row, d *device) {
	batch := managed.NewBatch(d.Device)
	b := call(batch.AddHost(t.Context(), []byte{1, 2, 3, 4, 5, 6}, 3, runtime.U16)).must(t)
	equal(t, []uint16{0x201, 0x403, 0x605}, read[uint16](t, b))
	call(batch.AddHost(t.Context(), []byte{1, 2, 3}, 2, runtime.U16)).fails(t, runtime.ErrDimension)
	m := call(managed.New(d.Device, runtime.F32, 10, managed.Options{})).must(t)
	must(t, batch.Add(m))
	must(t, batch.Close())
	errorIs(t, runtime.Read(t.Context(), b, make([]uint16, 3)), runtime.ErrClosed)
}
