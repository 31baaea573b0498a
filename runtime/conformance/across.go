package conformance

// Copies from one device to another: the same one opened twice, another of the
// backend, the CPU.

import (
	"errors"
	"sync"

	"github.com/concord-compute/concord/runtime"

	"github.com/concord-compute/concord/runtime/driver"
)

var acrossChecks = []Row{
	{"across/itself", false, func(t *row, d *device) { across(t, d, d.Device) }},
	{"across/sessions", false, func(t *row, d *device) { acrossTo(t, d, d.String()) }},
	{"across/neighbour", false, checkNeighbour},
	{"across/cpu", false, func(t *row, d *device) { acrossTo(t, d, host+":0") }},
	{"across/library", false, checkLibrary},
}

// checkNeighbour copies to and from another device of the backend, if there is one.
func checkNeighbour(t *row, d *device) {
	backend, other := d.Info().Backend, ":1"
	switch {
	case d.String() == host+":0":
		other = ":reference"
	case d.Info().NativeIndex != 0:
		other = ":0"
	}
	acrossTo(t, d, backend+other)
}

// acrossTo copies to and from a device that is opened in a separate session.
func acrossTo(t *row, d *device, name string) {
	s := t.session()
	other, err := t.open(s, name)
	if notHere(err) {
		must(t, s.Close())
		if errors.Is(err, runtime.ErrDeviceIndex) && name != d.String() {
			t.Skipf("the backend lists no %s: %v", name, err)
		}
		t.refused("%s does not open: %v", name, err)
	}
	must(t, err)
	across(t, d, other)
	st := other.Stats()
	equal(t, 0, st.Live+st.Deferred, "bytes left on %s", name)
	must(t, s.Close())
}

func across(t *row, d *device, other *runtime.Device) {
	far := &device{Device: other}
	for _, n := range []int{1, 1000, 5<<20 + 3} {
		data := bytesOf(n)
		here, there, back := upload(t, d, data), far.alloc(t, runtime.U8, n+7), d.alloc(t, runtime.U8, n)
		must(t, other.Stream().Fill(there, uint8(9)))
		must(t, runtime.CopyAcross(t.Context(), there, here))
		part := far.slice(t, there, 0, n)
		must(t, runtime.CopyAcross(t.Context(), back, part))
		mustEqual(t, data, read[uint8](t, back), "%d bytes there and back", n)
		equal(t, 9, read[uint8](t, there)[n], "no byte more")
	}
	acrossAfterWork(t, d, far)
	acrossQueued(t, d, far)
	acrossRefuses(t, d, far)
	far.close(t)
}

// acrossAfterWork copies buffers that queued work of both devices still uses.
func acrossAfterWork(t *row, d, far *device) {
	const n = 1 << 18
	p, q := d.stream(t), far.stream(t)
	src, dst := d.alloc(t, runtime.U32, n), far.alloc(t, runtime.U32, n)
	for i := range uint32(5) {
		for range 4 {
			must(t, q.Fill(dst, uint32(77)))
			must(t, p.Fill(src, uint32(88)))
		}
		must(t, p.Fill(src, i))
		must(t, runtime.CopyAcross(t.Context(), dst, src))
		all(t, dst, i, "the copy waits")
	}
	// Buffers are closed while they are copied: the memory is kept until the copy is done.
	a := call(runtime.Upload(t.Context(), d.Device, bytesOf(n))).must(t)
	b := call(far.Alloc(runtime.U8, n)).must(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := runtime.CopyAcross(t.Context(), b, a); err != nil {
			errorIs(t, err, runtime.ErrClosed)
		}
	})
	must(t, a.Close())
	must(t, b.Close())
	wg.Wait()
}

// acrossQueued queues copies in both directions behind events, and closes buffers and goes on with the work while they
// are queued.
func acrossQueued(t *row, d, far *device) {
	const n = 1 << 18
	p, q := d.stream(t), far.stream(t)
	src, there, back := d.alloc(t, runtime.U32, n), far.alloc(t, runtime.U32, n), d.alloc(t, runtime.U32, n)
	must(t, d.Sync(t.Context()))
	must(t, far.Sync(t.Context()))
	filled, copied := keep(d, new(runtime.Event)), keep(far, new(runtime.Event))
	for i := range uint32(5) {
		must(t, p.Fill(src, i+1))
		must(t, p.RecordIn(filled))
		must(t, q.CopyFrom(t.Context(), there, src, filled))
		must(t, q.RecordIn(copied))
		must(t, q.Sync(t.Context()), "before src is filled again")
		must(t, p.CopyFrom(t.Context(), back, there, copied))
	}
	step := call(p.Alloc(runtime.U32, n)).must(t)
	must(t, p.Fill(step, uint32(9)))
	must(t, q.CopyFrom(t.Context(), there, step, nil), "after the work that uses it")
	must(t, step.Close())
	must(t, p.Fill(d.alloc(t, runtime.U32, n), uint32(7)), "memory of its own")
	must(t, p.Sync(t.Context()))
	must(t, q.Sync(t.Context()))
	all(t, back, uint32(5), "the copy waits")
	all(t, there, uint32(9), "the memory is not used again too early")
	other := keep(d, call(p.Alloc(runtime.U32, n)).must(t))
	must(t, p.Fill(other, uint32(3)))
	must(t, p.RecordIn(filled))
	must(t, p.CopyFrom(t.Context(), back, other, filled), "on one device")
	must(t, p.Sync(t.Context()))
	equal(t, 3, read[uint32](t, back)[n-1])
	if d.Device != far.Device {
		errorIs(t, p.CopyFrom(t.Context(), back, there, filled), runtime.ErrInvalidArgument, "an event of another device")
		errorIs(t, p.CopyFrom(t.Context(), there, back, nil), runtime.ErrInvalidArgument, "a receiver on another device")
	}
	errorIs(t, p.CopyFrom(t.Context(), back, there, new(runtime.Event)), driver.ErrEventNotRecorded)
}

func acrossRefuses(t *row, d, far *device) {
	src := upload(t, d, []float32{1, 2, 3})
	errorIs(t, runtime.CopyAcross(t.Context(), far.alloc(t, runtime.F32, 2), src), runtime.ErrBufferOverflow)
	errorIs(t, runtime.CopyAcross(t.Context(), far.alloc(t, runtime.I32, 3), src), runtime.ErrInvalidArgument)
	errorIs(t, runtime.CopyAcross(t.Context(), nil, src), runtime.ErrInvalidArgument)
	closed := call(far.Alloc(runtime.F32, 3)).must(t)
	must(t, closed.Close())
	errorIs(t, runtime.CopyAcross(t.Context(), closed, src), runtime.ErrClosed)
	errorIs(t, runtime.CopyAcross(t.Context(), src, closed), runtime.ErrClosed)
}

// checkLibrary makes the device the only rank of its vendor's library: every collective is a copy then.
func checkLibrary(t *row, d *device) {
	must(t, upload(t, d, []byte{1}).Close()) // first, as a device without a library has memory, too
	maker, ok := d.Driver().(driver.Communicators)
	if !ok {
		t.Skipf("%s has no library of collectives", d)
	}
	id, err := maker.CommunicatorID()
	if errors.Is(err, runtime.ErrUnsupported) {
		t.Skipf("%v", err)
	}
	must(t, err)
	comm, err := maker.NewCommunicator(t.Context(), id, 0, 1)
	must(t, err)
	s := d.stream(t)
	for _, n := range []int{1, 1009, 1<<20 + 1} {
		data := bytesOf(4 * n)
		src := upload(t, d, data)
		for kind := driver.AllReduce; kind <= driver.SendReceive; kind++ {
			for _, typ := range []runtime.Type{runtime.U8, runtime.I32} {
				dst := d.alloc(t, runtime.U8, 4*n)
				c := driver.Collective{Kind: kind, Type: typ}
				must(t, s.Collective(t.Context(), comm, c, dst, src), "%v of %d %v", kind, n, typ)
				must(t, s.Sync(t.Context()))
				mustEqual(t, data, read[uint8](t, dst), "%v of %d %v", kind, n, typ)
				must(t, dst.Close())
			}
		}
		must(t, src.Close())
	}
	errorIs(t, s.Collective(t.Context(), comm, driver.Collective{Type: runtime.I16}, upload(t, d, []byte{1, 2}),
		upload(t, d, []byte{1, 2})), runtime.ErrUnsupported, "integers of 16 bits")
	must(t, comm.Err())
	must(t, comm.Close())
}
