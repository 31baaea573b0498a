package conformance

// Lifetimes: Close in any order, twice, and while work is queued.

import (
	"github.com/concord-compute/concord/runtime"
)

var lifetimeChecks = []Row{
	{"lifetime/closed", false, checkClosed},
	{"lifetime/work_under_way", true, checkCloseUnderWay},
	{"lifetime/any_order", true, checkAnyOrder},
	{"lifetime/foreign", true, checkForeign},
}

func checkClosed(t *row, d *device) {
	b := call(d.Alloc(runtime.F32, 4)).must(t)
	must(t, b.Close())
	must(t, b.Close(), "twice is nothing")
	errorIs(t, runtime.Read(t.Context(), b, make([]float32, 4)), runtime.ErrClosed)
	errorIs(t, d.Stream().Fill(b, float32(1)), runtime.ErrClosed)
	call(b.Slice(0, 1)).fails(t, runtime.ErrClosed)
}

// checkCloseUnderWay closes buffers while kernels that use them are queued: the
// memory may not be freed before they are done. If it were, the next buffer would
// get it, and the kernel would write over what another stream has put there.
func checkCloseUnderWay(t *row, d *device) {
	k := d.kernel(t, spinText, "spin")
	s := d.Stream()
	other := d.stream(t)
	for range 20 {
		b := call(d.Alloc(runtime.U32, 1024)).must(t)
		must(t, s.Launch(k, runtime.Items(1024), b, uint32(2000)))
		must(t, b.Close())
		c := call(d.Alloc(runtime.U32, 1024)).must(t)
		must(t, other.Fill(c, uint32(7)))
		must(t, other.Sync(t.Context()))
		must(t, s.Sync(t.Context()))
		all(t, c, uint32(7))
		must(t, c.Close())
	}
}

func checkAnyOrder(t *row, d *device) {
	p := d.program(t, saxpyText)
	k := call(p.Kernel("saxpy")).must(t)
	s := d.stream(t)
	x := keep(d, call(runtime.Upload(t.Context(), d.Device, []float32{1, 2})).must(t))
	e := call(s.Record()).must(t)
	must(t, s.Launch(k, runtime.Items(2), float32(1), x, x, uint32(2)))
	must(t, p.Close())
	must(t, p.Close())
	errorIs(t, s.Launch(k, runtime.Items(2), float32(1), x, x, uint32(2)), runtime.ErrClosed, "its program is closed")
	must(t, s.Close())
	must(t, e.Close(), "an event after its stream")
	equal(t, []float32{2, 4}, read[float32](t, x))
}

// checkForeign opens the same hardware in a second session: objects of one device must not be used
// with the other.
func checkForeign(t *row, d *device) {
	s := t.session()
	other, err := t.open(s, d.String())
	if notHere(err) {
		must(t, s.Close())
		t.refused("no second session of %s: %v", d, err)
	}
	must(t, err)
	b := call(runtime.Upload(t.Context(), other, []float32{1})).must(t)
	mine := upload(t, d, []float32{1})
	k := d.kernel(t, saxpyText, "saxpy")
	errorIs(t, d.Stream().Launch(k, runtime.Items(1), float32(1), b, mine, uint32(1)), runtime.ErrInvalidArgument)
	errorIs(t, d.Stream().Copy(mine, b), runtime.ErrInvalidArgument)
	errorIs(t, other.Stream().Launch(k, runtime.Items(1), float32(1), mine, mine, uint32(1)), runtime.ErrInvalidArgument)
	e := call(other.Stream().Record()).must(t)
	errorIs(t, d.Stream().Wait(e), runtime.ErrInvalidArgument)
	must(t, e.Close())
	must(t, s.Close())
	noError(t, b.Close(), "after its device")
	equal(t, []float32{1}, read[float32](t, mine))
}
