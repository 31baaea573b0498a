package conformance

// Kinds of memory: pinned and unified memory works like the device's own, and the host's view is
// the same memory.

import (
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

var kindChecks = []Row{
	{"kinds/every_call", false, checkKinds},
	{"kinds/host_view", false, checkHostView},
	{"kinds/pinned_copies", false, checkPinnedCopies},
	{"kinds/kernels", true, checkKindsInKernels},
	{"kinds/prefetch", false, checkPrefetch},
}

var kinds = []runtime.MemoryKind{runtime.OnDevice, runtime.Pinned, runtime.Unified}

func checkKinds(t *row, d *device) {
	for _, kind := range kinds {
		b := d.allocKind(t, kind, runtime.U16, 1000)
		if b == nil {
			continue
		}
		equal(t, kind, b.Kind())
		want := made(1000, func(i int) uint16 { return uint16(i * 7) })
		must(t, runtime.Write(t.Context(), b, want))
		part := d.slice(t, b, 13, 100)
		must(t, d.Stream().Fill(part, uint16(0x1234)))
		for i := range 100 {
			want[13+i] = 0x1234
		}
		equal(t, want, read[uint16](t, b), "kind %d", kind)
		for _, other := range kinds {
			to := d.allocKind(t, other, runtime.U16, 101)
			if to == nil {
				continue
			}
			must(t, d.Stream().Fill(to, uint16(0)))
			must(t, d.Stream().Copy(to, part))
			equal(t, append(want[13:113:113], 0), read[uint16](t, to), "kind %d to %d", kind, other)
		}
	}
	call(d.AllocKind(runtime.Pinned, runtime.F32, -1)).fails(t, runtime.ErrInvalidArgument)
}

func checkHostView(t *row, d *device) {
	s := d.Stream()
	for _, kind := range kinds {
		b := d.allocKind(t, kind, runtime.I32, 1000)
		if b == nil {
			continue
		}
		view, err := runtime.Host[int32](b)
		if err != nil {
			errorIs(t, err, driver.ErrNoHostMemory)
			continue
		}
		mustEqual(t, 1000, len(view))
		must(t, s.Fill(b, int32(5)))
		must(t, s.Sync(t.Context()))
		equal(t, 5, view[0], "the host sees what the device wrote")
		equal(t, 5, view[999])
		for i := range view {
			view[i] = int32(i)
		}
		dev := d.alloc(t, runtime.I32, 1000)
		must(t, s.Copy(dev, b))
		equal(t, view, read[int32](t, dev), "the device sees what the host wrote")
		tail := d.slice(t, b, 990, 10)
		part := call(runtime.Host[int32](tail)).must(t)
		equal(t, view[990:], part)
		call(runtime.Host[float32](b)).fails(t, runtime.ErrInvalidArgument)
		must(t, tail.Close())
		call(runtime.Host[int32](tail)).fails(t, runtime.ErrClosed)
	}
}

// checkPinnedCopies queues copies both ways without waiting in between: they are executed in stream
// order.
func checkPinnedCopies(t *row, d *device) {
	const n, rounds = 1 << 18, 10
	counted := func(round int) []uint32 { return made(n, func(i int) uint32 { return uint32(round*n + i) }) }
	s := d.stream(t)
	dev := d.alloc(t, runtime.U32, n)
	var up, down []*runtime.Buffer
	for i := range rounds {
		in, out := d.allocKind(t, runtime.Pinned, runtime.U32, n), d.allocKind(t, runtime.Pinned, runtime.U32, n)
		if in == nil {
			t.refused("%s has no pinned memory", d)
		}
		must(t, runtime.Write(t.Context(), in, counted(i)))
		up, down = append(up, in), append(down, out)
	}
	must(t, d.Stream().Sync(t.Context()), "another stream uses the memory that was written")
	for i := range rounds {
		must(t, s.Copy(dev, up[i]))
		must(t, s.Copy(down[i], dev))
	}
	must(t, s.Fill(dev, uint32(0)))
	must(t, s.Sync(t.Context()))
	for i := range rounds {
		mustEqual(t, counted(i), read[uint32](t, down[i]), "round %d", i)
	}
}

func checkKindsInKernels(t *row, d *device) {
	k := d.kernel(t, saxpyText, "saxpy")
	for _, kind := range kinds {
		x, y := d.allocKind(t, kind, runtime.F32, 1000), d.allocKind(t, kind, runtime.F32, 1000)
		if x == nil {
			continue
		}
		must(t, d.Stream().Fill(x, float32(3)))
		must(t, d.Stream().Fill(y, float32(1)))
		must(t, d.Stream().Launch(k, runtime.Items(1000), float32(2), x, y, uint32(1000)))
		all(t, y, float32(7), "kind %d", kind)
	}
}

func checkPrefetch(t *row, d *device) {
	errorIs(t, d.Stream().Prefetch(d.alloc(t, runtime.F32, 10), true), runtime.ErrInvalidArgument)
	b := d.allocKind(t, runtime.Unified, runtime.U32, 1<<16)
	if b == nil {
		t.refused("%s has no unified memory", d)
	}
	s := d.Stream()
	for i := range uint32(5) {
		must(t, s.Prefetch(b, false))
		must(t, s.Fill(b, i))
		must(t, s.Prefetch(b, true))
		must(t, s.Sync(t.Context()))
		equal(t, i, read[uint32](t, b)[1<<16-1], "moving changes nothing")
	}
}
