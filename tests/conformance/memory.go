package conformance

// Memory: data that is written is read back, at any offset, for every type, and nothing else
// changes.

import (
	"math/rand/v2"

	"github.com/concord-compute/concord/runtime"
)

var memoryChecks = []check{
	{"memory/every_type", false, checkTypes},
	{"memory/sizes", false, checkSizes},
	{"memory/alignment", false, checkAlignment},
	{"memory/parts", false, checkParts},
	{"memory/copies", false, checkCopies},
	{"memory/fills", false, checkFills},
	{"memory/views", false, checkViews},
	{"memory/many", false, checkMany},
	{"memory/accounts", false, checkAccounts},
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
	r := rand.New(rand.NewPCG(1, uint64(n)))
	data := make([]uint8, n)
	for i := range data {
		data[i] = uint8(r.Uint32())
	}
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
	for _, c := range []struct{ from, to, n int }{{0, 0, 1000}, {1, 0, 999}, {0, 1, 999}, {7, 13, 101}, {999, 999, 1}, {256, 512, 256}} {
		src, dst := bytesOf(1000), make([]uint8, 1000)
		a, b := upload(t, d, src), upload(t, d, dst)
		from, err := a.Slice(c.from, c.n)
		must(t, err)
		to, err := b.Slice(c.to, c.n)
		must(t, err)
		must(t, d.Stream().Copy(to, from))
		copy(dst[c.to:], src[c.from:c.from+c.n])
		equal(t, dst, read[uint8](t, b), "%+v", c)
		must(t, from.Close())
		must(t, to.Close())
	}
	// Copies within one buffer, between ranges that do not overlap.
	data := bytesOf(64)
	b := upload(t, d, data)
	low, err := b.Slice(0, 20)
	must(t, err)
	high, err := b.Slice(40, 20)
	must(t, err)
	must(t, d.Stream().Copy(high, low))
	copy(data[40:], data[:20])
	equal(t, data, read[uint8](t, b))
	must(t, low.Close())
	must(t, high.Close())
}

func checkFills(t *row, d *device) {
	fill(t, d, uint8(7), 1001)
	fill(t, d, uint16(0x1234), 501)
	fill(t, d, float32(-0.5), 333)
	fill(t, d, uint64(0x0102030405060708), 77)
	b := upload(t, d, make([]uint16, 10))
	v, err := b.Slice(3, 4)
	must(t, err)
	must(t, d.Stream().Fill(v, uint16(9)))
	equal(t, []uint16{0, 0, 0, 9, 9, 9, 9, 0, 0, 0}, read[uint16](t, b), "a view alone")
	must(t, v.Close())
}

func fill[T runtime.Element](t *row, d *device, value T, n int) {
	t.Helper()
	b := d.alloc(t, runtime.TypeOf[T](), n)
	must(t, d.Stream().Fill(b, value))
	for i, got := range read[T](t, b) {
		if got != value {
			t.Fatalf("element %d of %v is %v, not %v", i, b.Type(), got, value)
		}
	}
}

func checkViews(t *row, d *device) {
	data := []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	b := upload(t, d, data)
	v, err := b.Slice(2, 6)
	must(t, err)
	w, err := v.Slice(1, 3)
	must(t, err)
	equal(t, []int32{3, 4, 5}, read[int32](t, w), "a view of a view")
	must(t, runtime.Write(t.Context(), w, []int32{30, 40}))
	equal(t, []int32{2, 30, 40, 5, 6, 7}, read[int32](t, v), "views share memory")
	must(t, b.Close())
	equal(t, []int32{30, 40, 5}, read[int32](t, w), "a view keeps the memory alive")
	must(t, v.Close())
	must(t, w.Close())
}

// checkMany would find errors such as an internal table that moves, or a handle that is used twice.
func checkMany(t *row, d *device) {
	const n = 2000
	bufs := make([]*runtime.Buffer, n)
	for i := range bufs {
		b, err := runtime.Upload(t.Context(), d.Device, []uint32{uint32(i), ^uint32(i)})
		must(t, err)
		bufs[i] = b
	}
	for i, b := range bufs {
		got := read[uint32](t, b)
		mustEqual(t, []uint32{uint32(i), ^uint32(i)}, got)
		must(t, b.Close())
	}
}

func checkAccounts(t *row, d *device) {
	before := d.Stats()
	b, err := d.Alloc(runtime.F32, 1000)
	must(t, err)
	mid := d.Stats()
	equal(t, 4000, mid.Live-before.Live)
	equal(t, 1, mid.LiveBuffers-before.LiveBuffers)
	must(t, b.Close())
	must(t, d.Sync(t.Context()))
	end := d.Stats()
	equal(t, before.Live, end.Live)
	equal(t, 1, end.Frees-before.Frees)
	if info := d.Info(); info.FreeMemoryKnown {
		expect(t, 0 < info.FreeMemory && info.FreeMemory <= info.TotalMemory, "free memory is read, not invented: %d of %d", info.FreeMemory, info.TotalMemory)
	}
}
