package conformance

// Graphs: every launch executes the recorded work, and nothing is executed before the first launch.

import (
	"errors"
	"slices"

	"github.com/concord-compute/concord/runtime"
)

var graphChecks = []Row{
	{"graph/copies", false, checkGraphCopies},
	{"graph/kernels", true, checkGraphKernels},
	{"graph/update", true, checkGraphUpdate},
	{"graph/bindings", true, checkGraphBindings},
	{"graph/refuses", true, checkGraphRefuses},
	{"graph/lifetime", true, checkGraphLifetime},
	{"graph/streams", true, checkGraphStreams},
}

// capture records a graph on the device's own stream.
func capture(t *row, d *device, record func(s *runtime.Stream) error) *runtime.Graph {
	t.Helper()
	return keep(d, call(d.Stream().Capture(record)).must(t))
}

func checkGraphCopies(t *row, d *device) {
	a, b := upload(t, d, bytesOf(1000)), upload(t, d, make([]uint8, 1000))
	pinned := d.allocKind(t, runtime.Pinned, runtime.U8, 1000)
	part := d.slice(t, b, 100, 50)
	g := capture(t, d, func(s *runtime.Stream) error {
		err := errors.Join(s.Copy(b, a), s.Fill(part, uint8(7)))
		if pinned != nil {
			err = errors.Join(err, s.Copy(pinned, b), s.Fill(b, uint8(0)), s.Copy(b, pinned))
		}
		return err
	})
	equal(t, make([]uint8, 1000), read[uint8](t, b), "nothing has run yet")
	for i := range 5 {
		data := bytesOf(1000 + i)[:1000]
		must(t, runtime.Write(t.Context(), a, data))
		must(t, g.Launch(d.Stream()))
		for j := range 50 {
			data[100+j] = 7
		}
		mustEqual(t, data, read[uint8](t, b), "launch %d", i)
	}
	must(t, g.Close())
	must(t, g.Close(), "twice is nothing")
	errorIs(t, g.Launch(d.Stream()), runtime.ErrClosed)
	empty := capture(t, d, func(*runtime.Stream) error { return nil })
	must(t, empty.Launch(d.Stream()), "nothing is a graph too")
	must(t, d.Stream().Sync(t.Context()))
}

// checkGraphKernels replays a chain of kernels that depend on each other, with
// every kind of argument.
func checkGraphKernels(t *row, d *device) {
	p := d.program(t, saxpyText+"\n"+localArgText)
	saxpy := call(p.Kernel("saxpy")).must(t)
	sums := call(p.Kernel("sums")).must(t)
	const n = 256
	x, y := upload(t, d, ones[float32](n)), upload(t, d, make([]float32, n))
	in, out := upload(t, d, ones[int32](64)), d.alloc(t, runtime.I32, 4)
	g := capture(t, d, func(s *runtime.Stream) error {
		a, n := float32(1), uint32(n)
		for range 10 {
			if err := s.Launch(saxpy, runtime.Items(256).InGroups(64), a, x, y, n); err != nil {
				return err
			}
			a++ // the values are those of the call
		}
		n = 0
		return s.Launch(sums, runtime.Items(64).InGroups(32), in, out, runtime.Local(128), runtime.Local(256))
	})
	before := d.Stats().Launches
	for i := range 4 {
		must(t, g.Launch(d.Stream()))
		must(t, g.Launch(d.Stream()), "without waiting in between")
		all(t, y, float32(110*(i+1)), "launch %d", 2*i+1)
		equal(t, []int32{32, -32, 32, -32}, read[int32](t, out))
	}
	equal(t, 88, d.Stats().Launches-before)
}

func ones[T runtime.Element](n int) []T { return slices.Repeat([]T{1}, n) }

func checkGraphUpdate(t *row, d *device) {
	k := d.kernel(t, saxpyText, "saxpy")
	const n = 128
	x, y, z := upload(t, d, ones[float32](n)), upload(t, d, make([]float32, n)), upload(t, d, make([]float32, n))
	record := func(a float32, to *runtime.Buffer, items int) func(s *runtime.Stream) error {
		return func(s *runtime.Stream) error {
			return errors.Join(s.Fill(to, float32(1)), s.Launch(k, runtime.Items(items), a, x, to, uint32(items)))
		}
	}
	g := capture(t, d, record(2, y, n))
	must(t, g.Launch(d.Stream()))
	for i, step := range []struct {
		a     float32
		to    *runtime.Buffer
		items int
	}{{3, y, n}, {4, z, n}, {5, z, n / 2}, {6, y, n}} {
		must(t, g.Update(record(step.a, step.to, step.items)))
		for range 2 {
			must(t, g.Launch(d.Stream()))
		}
		got := read[float32](t, step.to)
		equal(t, 1+step.a, got[0], "step %d", i)
		equal(t, 1+step.a, got[step.items-1], "step %d", i)
		if step.items < n {
			equal(t, 1, got[step.items], "step %d: fewer items", i)
		}
	}
	// A launch that was queued before the update executes the old recording.
	must(t, g.Launch(d.Stream()))
	must(t, g.Update(func(s *runtime.Stream) error { // of another shape
		return errors.Join(s.Copy(z, y), s.Launch(k, runtime.Items(n), float32(1), y, z, uint32(n)), s.Fill(x, float32(0)))
	}))
	must(t, g.Launch(d.Stream()))
	equal(t, 14, read[float32](t, z)[n-1])
	equal(t, 0, read[float32](t, x)[0])
	wrong := errors.New("wrong")
	errorIs(t, g.Update(func(s *runtime.Stream) error { return errors.Join(s.Fill(z, float32(3)), wrong) }), wrong)
	must(t, g.Launch(d.Stream()))
	equal(t, 14, read[float32](t, z)[0], "an update that fails changes nothing")
}

// checkGraphBindings launches a graph with other buffers and values than were recorded, also behind
// launches that have not run yet.
func checkGraphBindings(t *row, d *device) {
	k := d.kernel(t, saxpyText, "saxpy")
	const n = 512
	x, y := upload(t, d, ones[float32](n)), upload(t, d, make([]float32, n))
	left, right := d.slice(t, y, 0, n/2), d.slice(t, y, n/2, n/2)
	input := d.slice(t, x, n/4, n/2)
	a := runtime.NewParam(float32(3))
	s := d.Stream()
	g := capture(t, d, func(s *runtime.Stream) error {
		return errors.Join(s.Fill(left, float32(1)), s.Launch(k, runtime.Items(n/2), a, input, left, uint32(n/2)),
			s.Copy(right, left))
	})
	x2, y2 := upload(t, d, slices.Repeat([]float32{2}, n)), upload(t, d, make([]float32, n))
	y3 := upload(t, d, make([]float32, n))
	is := func(b *runtime.Buffer, want float32, what string) {
		t.Helper()
		all(t, b, want, what)
	}
	must(t, g.Launch(s))
	is(y, 4, "as recorded")
	must(t, g.Launch(s, runtime.WithValue(a, float32(5))))
	is(y, 6, "another value")
	must(t, g.Launch(s, runtime.WithBuffer(y, y2), runtime.WithValue(a, float32(7))))
	must(t, g.Launch(s, runtime.WithBuffer(y, y3), runtime.WithBuffer(x, x2)))
	must(t, g.Launch(s, runtime.WithBuffer(x, x2), runtime.WithValue(a, float32(0.5))))
	is(y2, 8, "another output, without a wait")
	is(y3, 7, "others for an output and an input")
	is(y, 2, "another input and value")
	must(t, g.Launch(s))
	is(y, 4, "as recorded again")
	long, ints := d.alloc(t, runtime.F32, n+1), d.alloc(t, runtime.I32, n)
	closed := call(d.Alloc(runtime.F32, n)).must(t)
	must(t, closed.Close())
	part, other := d.slice(t, x, n/4, n/4), d.slice(t, x2, n/4, n/4)
	for what, b := range map[string]runtime.Binding{
		"nothing":        {},
		"nil":            runtime.WithBuffer(y, nil),
		"another length": runtime.WithBuffer(y, long),
		"another type":   runtime.WithBuffer(y, ints),
		"unused":         runtime.WithBuffer(y2, y3),
		"in part":        runtime.WithBuffer(part, other),
		"value type":     runtime.WithValue(a, int32(3)),
		"value unused":   runtime.WithValue(runtime.NewParam(float32(1)), float32(1)),
		"nil value":      runtime.WithValue[float32](nil, 1),
	} {
		errorIs(t, g.Launch(s, runtime.WithValue(a, float32(9)), b), runtime.ErrInvalidArgument, what)
	}
	errorIs(t, g.Launch(s, runtime.WithBuffer(y, closed)), runtime.ErrClosed)
	is(y, 4, "what was refused did not run")
	must(t, g.Launch(s))
	is(y, 4, "and changed nothing")
	must(t, s.Launch(k, runtime.Items(n), a, x, y, uint32(n)), "a Param is a value elsewhere")
	is(y, 7, "with its own value")
}

func checkGraphRefuses(t *row, d *device) {
	k := d.kernel(t, saxpyText, "saxpy")
	x, y := upload(t, d, []float32{1, 2}), upload(t, d, []float32{0, 0})
	e := keep(d, call(d.Stream().Record()).must(t))
	var kept *runtime.Stream
	g := capture(t, d, func(s *runtime.Stream) error {
		kept = s
		must(t, s.Launch(k, runtime.Items(2), float32(1), x, y, uint32(2)))
		_, err := s.Record()
		for what, err := range map[string]error{
			"read":        s.Read(t.Context(), x, 0, make([]byte, 4)),
			"write":       s.Write(t.Context(), x, 0, make([]byte, 4)),
			"large write": s.Write(t.Context(), x, 0, make([]byte, 1<<20)),
			"sync":        s.Sync(t.Context()),
			"record":      err,
			"wait":        s.Wait(e),
			"launch":      s.Launch(k, runtime.Items(2), float32(1), x, y),
		} {
			errorIs(t, err, runtime.ErrInvalidArgument, what)
		}
		b := call(d.Alloc(runtime.F32, 2)).must(t, "memory may be allocated meanwhile")
		must(t, s.Copy(b, x))
		must(t, b.Close())
		equal(t, []float32{0, 0}, read[float32](t, y), "other streams work")
		return s.Launch(k, runtime.Items(2), float32(1), x, y, uint32(2))
	})
	errorIs(t, kept.Fill(x, float32(1)), runtime.ErrClosed, "the recording is over")
	must(t, g.Launch(d.Stream()))
	equal(t, []float32{2, 4}, read[float32](t, y), "the refused calls changed nothing")
	wrong := errors.New("wrong")
	call(d.Stream().Capture(func(s *runtime.Stream) error {
		return errors.Join(s.Launch(k, runtime.Items(2), float32(1), x, y, uint32(2)), wrong)
	})).fails(t, wrong)
	func() {
		defer func() { equal(t, "wrong", recover(), "a panic of the caller is passed on") }()
		_, _ = d.Stream().Capture(func(s *runtime.Stream) error { _ = s.Copy(y, x); panic("wrong") })
	}()
	must(t, d.Stream().Launch(k, runtime.Items(2), float32(1), x, y, uint32(2)))
	equal(t, []float32{3, 6}, read[float32](t, y), "the stream is as it was")
}

func checkGraphLifetime(t *row, d *device) {
	p := d.program(t, saxpyText)
	k := call(p.Kernel("saxpy")).must(t)
	x := call(runtime.Upload(t.Context(), d.Device, []float32{1, 2})).must(t)
	y := upload(t, d, []float32{0, 0})
	g := capture(t, d, func(s *runtime.Stream) error {
		return s.Launch(k, runtime.Items(2), float32(10), x, y, uint32(2))
	})
	must(t, x.Close())
	must(t, p.Close())
	other := upload(t, d, []float32{500, 500}) // would get the memory if it had been freed
	for i := range 3 {
		must(t, g.Launch(d.Stream()), "a graph keeps the buffers and programs that it uses")
		equal(t, []float32{10 * float32(i+1), 20 * float32(i+1)}, read[float32](t, y))
	}
	equal(t, []float32{500, 500}, read[float32](t, other))
	must(t, g.Launch(d.Stream()))
	must(t, g.Close(), "while it runs")
	equal(t, []float32{40, 80}, read[float32](t, y))
	errorIs(t, d.Stream().Launch(k, runtime.Items(2), float32(1), y, y, uint32(2)), runtime.ErrClosed,
		"the program is closed")
}

// checkGraphStreams launches one graph on several streams, and two at once.
func checkGraphStreams(t *row, d *device) {
	k := d.kernel(t, saxpyText, "saxpy")
	x, y, z := upload(t, d, []float32{1}), upload(t, d, []float32{0}), upload(t, d, []float32{0})
	record := func(to *runtime.Buffer) func(s *runtime.Stream) error {
		return func(s *runtime.Stream) error { return s.Launch(k, runtime.Items(1), float32(1), x, to, uint32(1)) }
	}
	g, h := capture(t, d, record(y)), capture(t, d, record(z))
	for range 5 {
		p, q := d.stream(t), d.stream(t)
		for range 20 {
			must(t, g.Launch(p))
			must(t, h.Launch(q))
		}
		must(t, p.Close())
		must(t, q.Close())
	}
	equal(t, []float32{100}, read[float32](t, y))
	equal(t, []float32{100}, read[float32](t, z))
}
