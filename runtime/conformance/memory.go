package conformance

// Memory: data that is written is read back, at any offset, for every type, and nothing else
// changes.

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync/atomic"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/managed"
)

var memoryChecks = []Row{
	{"memory/every_type", false, checkTypes},
	{"memory/sizes", false, checkSizes},
	{"memory/alignment", false, checkAlignment},
	{"memory/parts", false, checkParts},
	{"memory/copies", false, checkCopies},
	{"memory/fills", false, checkFills},
	{"memory/views", false, checkViews},
	{"memory/many", false, checkMany},
	{"memory/accounts", false, checkAccounts},
	{"memory/wrapped", true, checkWrapped},
	{"memory/nothing", true, checkNothing},
}

func checkTypes(t *row, d *device) {
	roundTrip(t, d, []float32{0, 1.5, -3e38})
	roundTrip(t, d, []float64{0, 1.5, -1.5e308})
	roundTrip(t, d, []runtime.Float16{0, 0x3c00, 0xfbff})
	roundTrip(t, d, []runtime.BFloat16{0, 0x3f80, 0xff7f})
	roundTrip(t, d, []int8{0, 127, -128})
	roundTrip(t, d, []int16{0, 32767, -32768})
	roundTrip(t, d, []int32{0, 1<<31 - 1, -1 << 31})
	roundTrip(t, d, []int64{0, 1<<63 - 1, -1 << 63})
	roundTrip(t, d, []uint8{0, 255})
	roundTrip(t, d, []uint16{0, 65535})
	roundTrip(t, d, []uint32{0, 1<<32 - 1})
	roundTrip(t, d, []uint64{0, 1<<64 - 1})
}

func roundTrip[T runtime.Element](t *row, d *device, data []T) {
	t.Helper()
	b := upload(t, d, data)
	equal(t, runtime.TypeOf[T](), b.Type())
	equal(t, data, read[T](t, b), "%v comes back as it was", b.Type())
}

func checkSizes(t *row, d *device) {
	for _, n := range []int{1, 2, 31, 32, 33, 255, 256, 257, 1000, 4095, 65537, 1 << 20} {
		data := bytesOf(n)
		equal(t, data, read[uint8](t, upload(t, d, data)), "%d bytes", n)
	}
}

func bytesOf(n int) []uint8 {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], uint64(n))
	data := make([]uint8, n)
	_, _ = rand.NewChaCha8(seed).Read(data) // which never fails
	return data
}

func checkAlignment(t *row, d *device) {
	align := d.Info().BaseAlign
	need(t, align > 0, "BaseAlign is %d", align)
	mustEqual(t, 0, bandBytes%align, "the guard bands of this suite keep the alignment")
}

func checkParts(t *row, d *device) {
	want := bytesOf(1000)
	b := upload(t, d, want)
	s := d.Stream()
	patch := []byte{1, 2, 3, 4, 5, 6, 7}
	must(t, s.Write(t.Context(), b, 13, patch))
	copy(want[13:], patch)
	got := make([]byte, 101)
	must(t, s.Read(t.Context(), b, 11, got))
	equal(t, want[11:112], got, "any byte offset, any length")
	must(t, s.Write(t.Context(), b, 1000, nil), "nothing at the very end is nothing")
	equal(t, want, read[uint8](t, b))
}

func checkCopies(t *row, d *device) {
	for _, c := range []struct{ from, to, n int }{{0, 0, 1000}, {1, 0, 999}, {0, 1, 999}, {7, 13, 101}, {999, 999, 1},
		{256, 512, 256}} {
		src, dst := bytesOf(1000), make([]uint8, 1000)
		a, b := upload(t, d, src), upload(t, d, dst)
		from, to := d.slice(t, a, c.from, c.n), d.slice(t, b, c.to, c.n)
		must(t, d.Stream().Copy(to, from))
		copy(dst[c.to:], src[c.from:c.from+c.n])
		equal(t, dst, read[uint8](t, b), "%+v", c)
	}
	// Copies within one buffer, between ranges that do not overlap.
	data := bytesOf(64)
	b := upload(t, d, data)
	low, high := d.slice(t, b, 0, 20), d.slice(t, b, 40, 20)
	must(t, d.Stream().Copy(high, low))
	copy(data[40:], data[:20])
	equal(t, data, read[uint8](t, b))
}

func checkFills(t *row, d *device) {
	fill(t, d, uint8(7), 1001)
	fill(t, d, uint16(0x1234), 501)
	fill(t, d, float32(-0.5), 333)
	fill(t, d, uint64(0x0102030405060708), 77)
	b := upload(t, d, make([]uint16, 10))
	v := d.slice(t, b, 3, 4)
	must(t, d.Stream().Fill(v, uint16(9)))
	equal(t, []uint16{0, 0, 0, 9, 9, 9, 9, 0, 0, 0}, read[uint16](t, b), "a view alone")
}

func fill[T runtime.Element](t *row, d *device, value T, n int) {
	t.Helper()
	b := d.alloc(t, runtime.TypeOf[T](), n)
	must(t, d.Stream().Fill(b, value))
	all(t, b, value, "%v", b.Type())
}

func checkViews(t *row, d *device) {
	data := []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	b := upload(t, d, data)
	v := d.slice(t, b, 2, 6)
	w := d.slice(t, v, 1, 3)
	equal(t, []int32{3, 4, 5}, read[int32](t, w), "a view of a view")
	must(t, runtime.Write(t.Context(), w, []int32{30, 40}))
	equal(t, []int32{2, 30, 40, 5, 6, 7}, read[int32](t, v), "views share memory")
	must(t, b.Close())
	equal(t, []int32{30, 40, 5}, read[int32](t, w), "a view keeps the memory alive")
}

// checkMany would find errors such as an internal table that moves, or a handle that is used twice.
func checkMany(t *row, d *device) {
	const n = 2000
	bufs := make([]*runtime.Buffer, n)
	for i := range bufs {
		bufs[i] = call(runtime.Upload(t.Context(), d.Device, []uint32{uint32(i), ^uint32(i)})).must(t)
	}
	for i, b := range bufs {
		mustEqual(t, []uint32{uint32(i), ^uint32(i)}, read[uint32](t, b))
		must(t, b.Close())
	}
}

func checkAccounts(t *row, d *device) {
	before := d.Stats()
	b := call(d.Alloc(runtime.F32, 1000)).must(t)
	mid := d.Stats()
	equal(t, 4000, mid.Live-before.Live)
	equal(t, 1, mid.LiveBuffers-before.LiveBuffers)
	must(t, b.Close())
	must(t, d.Sync(t.Context()))
	end := d.Stats()
	equal(t, before.Live, end.Live)
	equal(t, 1, end.Frees-before.Frees)
	if info := d.Info(); info.FreeMemoryKnown {
		expect(t, 0 < info.FreeMemory && info.FreeMemory <= info.TotalMemory, "free memory is read, not invented: %d of %d",
			info.FreeMemory, info.TotalMemory)
	}
}

// checkWrapped uses memory that was allocated without package runtime: by the vendor's handle, or in place where the
// device uses the host's memory.
func checkWrapped(t *row, d *device) {
	const n = 1 << 14
	k := d.kernel(t, saxpyText, "saxpy")
	raw := call(d.Driver().Alloc(4*n, driver.OnDevice)).must(t)
	var released atomic.Int32
	release := func() { released.Add(1) }
	wrap := func() *runtime.Buffer {
		t.Helper()
		if visible, ok := d.Driver().(driver.HostVisible); ok {
			if pages, seen := visible.HostBytes(raw); seen {
				b, err := d.Wrap(pages, runtime.F32, runtime.ForWriting, release)
				if !errors.Is(err, runtime.ErrUnsupported) {
					must(t, err)
					return b
				}
			}
		}
		b, err := d.WrapHandle(uintptr(raw.Handle), runtime.F32, n, release)
		if errors.Is(err, runtime.ErrUnsupported) {
			must(t, d.Driver().Free(raw))
			t.refused("%v", err)
		}
		must(t, err)
		return b
	}
	before := d.Stats()
	y := wrap()
	st := d.Stats()
	equal(t, before.Wrapped+4*n, st.Wrapped)
	equal(t, before.Live, st.Live, "wrapped memory is not the device's buffers'")
	equal(t, before.Memory.Reserved, st.Memory.Reserved, "nor the pool's")
	x := upload(t, d, ones[float32](n))
	s := d.stream(t)
	must(t, s.Fill(y, float32(1)))
	must(t, s.Launch(k, runtime.Items(n), float32(2), x, y, uint32(n)))
	half := d.slice(t, y, n/2, n/2)
	must(t, s.Fill(half, float32(7)))
	must(t, y.Close())
	must(t, s.Sync(t.Context()))
	equal(t, 0, released.Load(), "a view is open")
	again := wrap()
	got := read[float32](t, again)
	equal(t, []float32{3, 3, 7, 7}, []float32{got[0], got[n/2-1], got[n/2], got[n-1]})
	for range 10 {
		must(t, s.Fill(half, float32(8)))
	}
	must(t, half.Close())
	must(t, s.Close())
	d.Stats()
	equal(t, 1, released.Load(), "after the last use")
	g := capture(t, d, func(s *runtime.Stream) error { return s.Fill(again, float32(9)) })
	must(t, again.Close())
	must(t, g.Launch(d.Stream()))
	equal(t, 1, released.Load(), "a graph has it")
	must(t, g.Close())
	must(t, d.Stream().Sync(t.Context()))
	st = d.Stats()
	equal(t, 2, released.Load())
	equal(t, before.Wrapped, st.Wrapped)
	equal(t, before.Frees, st.Frees, "nothing of the pool was freed")
	must(t, d.Driver().Free(raw))
	_, err := d.WrapHandle(0, runtime.F32, n, release)
	expect(t, errors.Is(err, runtime.ErrInvalidArgument) || errors.Is(err, runtime.ErrUnsupported), "no handle: %v", err)
	call(d.Wrap(nil, runtime.F32, runtime.ForReading, release)).fails(t, runtime.ErrInvalidArgument)
	equal(t, 2, released.Load(), "what fails releases nothing")
}

// checkNothing uses buffers of 0 elements in every call that takes buffers.
func checkNothing(t *row, d *device) {
	k := d.kernel(t, saxpyText, "saxpy")
	s := d.Stream()
	full := upload(t, d, []float32{1, 2, 3})
	none := keep(d, call(d.Alloc(runtime.F32, 0)).must(t))
	also := keep(d, call(runtime.Upload(t.Context(), d.Device, []float32{})).must(t))
	here := keep(d, call(s.Alloc(runtime.F32, 0)).must(t))
	arena := keep(d, call(managed.NewArena(d.Device, nil)).must(t))
	cut := call(arena.Alloc(runtime.F32, 0)).must(t)
	begin, end := d.slice(t, full, 0, 0), d.slice(t, full, 3, 0)
	bytes := keep(d, call(begin.As(runtime.U64)).must(t))
	part := d.slice(t, none, 0, 0)
	call(none.Slice(0, 1)).fails(t, runtime.ErrBufferOverflow)
	equal(t, 0, bytes.Len())
	for i, b := range []*runtime.Buffer{none, also, here, cut, begin, end, part} {
		equal(t, 0, b.Bytes(), "%d", i)
		must(t, runtime.Write(t.Context(), b, []float32{}))
		must(t, runtime.Read(t.Context(), b, []float32{}))
		errorIs(t, runtime.Write(t.Context(), b, []float32{1}), runtime.ErrBufferOverflow, "%d", i)
		must(t, s.Fill(b, float32(9)))
		must(t, s.Copy(b, none))
		must(t, s.Copy(full, b))
		errorIs(t, s.Copy(b, full), runtime.ErrBufferOverflow, "%d", i)
		must(t, runtime.CopyAcross(t.Context(), b, also))
		must(t, s.Launch(k, runtime.Items(64), float32(2), b, b, uint32(0)), "%d", i)
		must(t, s.Launch(k, runtime.Items(3), float32(2), b, full, uint32(0)), "%d", i)
		if view, err := runtime.Host[float32](b); err == nil {
			equal(t, 0, len(view))
		} else {
			errorIs(t, err, driver.ErrNoHostMemory, "%d", i)
		}
		g := capture(t, d, func(s *runtime.Stream) error {
			return errors.Join(s.Fill(b, float32(9)), s.Copy(full, b), s.Launch(k, runtime.Items(1), float32(2), b, full,
				uint32(0)))
		})
		must(t, g.Launch(s, runtime.WithBuffer(b, also)), "%d", i)
		must(t, s.Sync(t.Context()))
	}
	for _, location := range []managed.Location{managed.DevicePreferred, managed.HostPreferred} {
		m := d.newManaged(t, runtime.F32, 0, managed.Options{Location: location})
		must(t, managed.Write(t.Context(), m, []float32{}))
		view := call(managed.Map[float32](t.Context(), m, runtime.ForWriting)).must(t)
		equal(t, 0, len(view))
		must(t, m.Unmap())
		must(t, managed.Launch(s, k, runtime.Items(1), float32(2), m, m, uint32(0)))
		must(t, m.QueueToHost(s))
		must(t, m.ToDevice(t.Context()))
		must(t, managed.Read(t.Context(), m, []float32{}))
		keep(d, call(m.DeviceSide(s, runtime.ForWriting)).must(t))
		keep(d, call(m.Slice(0, 0)).must(t))
	}
	equal(t, []float32{1, 2, 3}, read[float32](t, full), "nothing was written")
}
