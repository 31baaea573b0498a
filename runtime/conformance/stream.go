package conformance

// Streams and events: order within a stream, waiting across streams, time, and
// contexts.

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/profile"
)

var streamChecks = []Row{
	{"stream/order", false, checkOrder},
	{"stream/across", false, checkAcross},
	{"stream/buffer", false, checkBufferOrder},
	{"stream/events", false, checkEvents},
	{"stream/events_again", false, checkEventsAgain},
	{"stream/times", true, checkTimes},
	{"stream/timeline", true, checkTimeline},
	{"stream/context", false, checkContext},
	{"stream/deadline", true, checkDeadline},
	{"stream/close", false, checkStreamClose},
	{"stream/concurrency", false, checkConcurrency},
	{"stream/priorities", true, checkPriorities},
	{"stream/memory", false, checkStreamMemory},
}

func checkOrder(t *row, d *device) {
	s := d.stream(t)
	a, b := d.alloc(t, runtime.U32, 1<<16), d.alloc(t, runtime.U32, 1<<16)
	for i := range 50 { // without waiting in between
		must(t, s.Fill(a, uint32(i)))
		must(t, s.Copy(b, a))
	}
	must(t, s.Fill(a, uint32(0)))
	got := make([]uint32, 1)
	must(t, s.Sync(t.Context()))
	must(t, runtime.Read(t.Context(), b, got))
	equal(t, 49, got[0], "work of one stream happens in order")
}

// checkBufferOrder reads what another stream stores without waiting for that stream, on the host and on a third stream.
func checkBufferOrder(t *row, d *device) {
	p, q := d.stream(t), d.stream(t)
	const n, times = 1 << 21, 20
	a, b := d.alloc(t, runtime.U32, n), d.alloc(t, runtime.U32, n)
	must(t, d.Sync(t.Context()))
	last := make([]uint32, n)
	for i := range times {
		must(t, p.Fill(a, uint32(i+1)))
	}
	must(t, runtime.Read(t.Context(), a, last))
	equal(t, times, last[0])
	equal(t, times, last[n-1], "Read comes after the work of every stream")
	for i := range times {
		must(t, p.Fill(a, uint32(i+101)))
	}
	must(t, q.WaitFor(t.Context(), a))
	must(t, q.Copy(b, a))
	must(t, runtime.Read(t.Context(), b, last))
	equal(t, times+100, last[0])
	equal(t, times+100, last[n-1], "WaitFor puts work behind that of every stream")
	errorIs(t, q.WaitFor(t.Context(), nil), runtime.ErrInvalidArgument)
	errorIs(t, (*runtime.Stream)(nil).WaitFor(t.Context(), a), runtime.ErrInvalidArgument)
}

func checkAcross(t *row, d *device) {
	p, q := d.stream(t), d.stream(t)
	a, b := d.alloc(t, runtime.U32, 1<<18), d.alloc(t, runtime.U32, 1<<18)
	must(t, d.Sync(t.Context()))
	for i := range 20 {
		must(t, p.Fill(a, uint32(i+1)))
		ready := call(p.Record()).must(t)
		must(t, q.Wait(ready))
		must(t, q.Copy(b, a))
		taken := call(q.Record()).must(t)
		must(t, p.Wait(taken))
		must(t, ready.Close())
		must(t, taken.Close())
	}
	must(t, q.Sync(t.Context()))
	all(t, b, uint32(20), "the second stream waits")
}

func checkEvents(t *row, d *device) {
	s := d.Stream()
	b := d.alloc(t, runtime.U32, 1<<16)
	e := call(s.Record()).must(t)
	must(t, e.Wait(t.Context()))
	done := call(e.Done()).must(t)
	expect(t, done, "an event that was waited for is done")
	must(t, s.Fill(b, uint32(1)))
	f := keep(d, call(s.Record()).must(t))
	must(t, f.Wait(t.Context()))
	took := call(f.Elapsed(e)).must(t)
	expect(t, took >= 0, "%v", took)
	back := call(e.Elapsed(f)).must(t)
	equal(t, -took, back)
	must(t, e.Close())
	must(t, e.Close(), "twice is nothing")
	call(f.Elapsed(e)).fails(t, runtime.ErrClosed)
	var zero runtime.Event
	call(zero.Done()).fails(t, driver.ErrEventNotRecorded)
	errorIs(t, s.Wait(&zero), driver.ErrEventNotRecorded)
}

// checkEventsAgain orders two streams by two events that are recorded again and again, while earlier
// waits for them are queued.
func checkEventsAgain(t *row, d *device) {
	p, q := d.stream(t), d.stream(t)
	a, b := d.alloc(t, runtime.U32, 1<<18), d.alloc(t, runtime.U32, 1<<18)
	must(t, d.Sync(t.Context()))
	var ready, taken, start runtime.Event
	must(t, p.RecordIn(&start))
	for i := range 20 {
		must(t, p.Fill(a, uint32(i+1)))
		must(t, p.RecordIn(&ready))
		must(t, q.Wait(&ready))
		must(t, q.Copy(b, a))
		must(t, q.RecordIn(&taken))
		must(t, p.Wait(&taken))
	}
	must(t, taken.Wait(t.Context()))
	all(t, b, uint32(20), "both streams wait")
	took := call(ready.Elapsed(&start)).must(t)
	expect(t, took >= 0, "%v", took)
	must(t, q.RecordIn(&start), "on another stream")
	must(t, start.Wait(t.Context()))
	took = call(start.Elapsed(&ready)).must(t)
	expect(t, took >= 0, "the event stands for its last point: %v", took)
	errorIs(t, p.RecordIn(nil), runtime.ErrInvalidArgument)
	recorded := make(chan error)
	go func() {
		var err error
		for i := 0; i < 200 && err == nil; i++ {
			err = p.RecordIn(&taken)
		}
		recorded <- err
	}()
	for range 200 { // beside it, no wait finds an event that is closed
		must(t, q.Wait(&taken))
		must(t, taken.Wait(t.Context()))
	}
	must(t, <-recorded)
	must(t, p.Close())
	errorIs(t, p.RecordIn(&start), runtime.ErrClosed)
	done := call(start.Done()).must(t, "an event that could not be recorded is unchanged")
	expect(t, done, "it is still done")
	for _, e := range []*runtime.Event{&ready, &taken, &start} {
		must(t, e.Close())
	}
	errorIs(t, q.RecordIn(&start), runtime.ErrClosed)
}

const spinText = `kernel void spin(global uint *out, uint rounds) {
	uint x = get_global_id(0) + 1;
	for (uint i = 0; i < rounds; i++) { x ^= x << 13; x ^= x >> 17; x ^= x << 5; }
	out[get_global_id(0)] = x;
}`

// checkTimes: a kernel with a hundred times the work takes longer, so that a device's times are
// real times and not counters of calls.
func checkTimes(t *row, d *device) {
	k := d.kernel(t, spinText, "spin")
	items, fewer, more := 4096, uint32(100), uint32(50_000) // Mesa's llvmpipe ends loops after 2^16 rounds
	if d.Info().Simulated {
		items, fewer, more = 64, 500, 50_000 // a simulator runs few items at a time, and its launches are slow
	}
	out := d.alloc(t, runtime.U32, items)
	s := d.Stream()
	best := func(rounds uint32) int64 {
		var least int64 = 1 << 62
		for range 5 {
			r := call(s.Run(t.Context(), k, runtime.Items(items), out, rounds)).must(t)
			equal(t, "spin", r.KernelID)
			least = min(least, r.DeviceTimeNs)
		}
		return least
	}
	short, long := best(fewer), best(more)
	expect(t, long > 0 && long > short, "a longer kernel takes longer: %d ns, not %d ns", short, long)
}

// checkTimeline: observed work has times, in the order of the stream, after it was queued and before the host knew
// that it was done; if the driver has a timeline, they are the device's own, and an operation of any kind has one.
func checkTimeline(t *row, d *device) {
	k := d.kernel(t, spinText, "spin")
	s := d.stream(t)
	const n = 1 << 12
	out, back := d.alloc(t, runtime.U32, n), d.alloc(t, runtime.U32, n)
	must(t, s.Launch(k, runtime.Items(n), out, uint32(10))) // drivers finish programs at the first launch
	must(t, s.Sync(t.Context()))
	g := keep(d, call(s.Capture(func(s *runtime.Stream) error {
		return errors.Join(s.Fill(out, uint32(7)), s.Launch(k, runtime.Items(n), back, uint32(10)))
	})).must(t))
	lines, timed := d.stream(t).Driver().(driver.Timeliner)
	timed = timed && lines.Time(1) == nil
	var r profile.Recording
	stop := d.Session().Observe(&r)
	begin := driver.Now()
	must(t, s.Fill(out, uint32(1)))
	must(t, s.Launch(k, runtime.Items(n).Does(3, 4), out, uint32(20_000)))
	must(t, s.Copy(back, out))
	must(t, s.Write(t.Context(), out, 0, make([]byte, 64)))
	must(t, s.Write(t.Context(), out, 0, make([]byte, 4*n)))
	must(t, g.Launch(s))
	must(t, s.Read(t.Context(), back, 0, make([]byte, 4*n)))
	must(t, s.Sync(t.Context()))
	end := driver.Now()
	stop()
	must(t, s.Fill(out, uint32(1)), "which nobody observes")
	events, _ := r.Events()
	var kinds []profile.Kind
	var nodes []profile.Event
	last := begin
	const clocks = 1_000_000 // nanoseconds by which two clocks may differ
	for _, e := range events {
		if !e.Kind.OnDevice() {
			continue
		}
		must(t, e.Err)
		equal(t, d.String(), e.Device)
		expect(t, e.Queued >= begin && e.Start >= e.Queued && e.End >= e.Start && e.End <= end+clocks, "%v between %d and %d",
			e, begin, end)
		equal(t, timed, e.DeviceTime, "whether the times of "+e.Name+" are the device's")
		if e.Kind == profile.Node { // told before its graph, whose time it is part of
			nodes = append(nodes, e)
			continue
		}
		kinds = append(kinds, e.Kind)
		if e.Kind == profile.Graph {
			for _, n := range nodes {
				expect(t, n.Start >= e.Start && n.End <= e.End, "%v is not within %v", n, e)
			}
		}
		if timed {
			expect(t, e.Start >= last, "%v begins before %d, when the work before it ended", e, last)
			last = e.End
		}
		if e.Kind == profile.Launch {
			equal(t, "spin", e.Name)
			equal(t, 4.0, e.Bytes)
			equal(t, [3]int{n, 1, 1}, e.Items)
			expect(t, e.End > e.Start, "a launch takes time")
		}
	}
	equal(t, fmt.Sprint([]profile.Kind{profile.Fill, profile.Launch, profile.Copy, profile.Copy, profile.Copy,
		profile.Graph, profile.Copy}), fmt.Sprint(kinds))
}

func checkContext(t *row, d *device) {
	b := d.alloc(t, runtime.U32, 16)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := d.Stream()
	e := keep(d, call(s.Record()).must(t))
	for what, err := range map[string]error{
		"read": runtime.Read(ctx, b, make([]uint32, 16)), "write": runtime.Write(ctx, b, make([]uint32, 16)),
	} {
		if err != nil { // the work may be done before the context is checked
			errorIs(t, err, context.Canceled, what)
		}
	}
	must(t, s.Sync(t.Context()), "a cancelled wait does not make the stream fail")
	must(t, e.Wait(t.Context()))
}

// checkDeadline waits for work that takes seconds, with contexts that end earlier. The work is
// several launches because llvmpipe ends each loop after 65,535 rounds.
func checkDeadline(t *row, d *device) {
	const n = 1 << 12
	k := d.kernel(t, spinText, "spin")
	out := d.alloc(t, runtime.U32, n)
	s := d.Stream()
	spin := func(rounds uint32) time.Duration {
		least := time.Hour // minimum of three, since the first may include finishing the program
		for range 3 {
			start := time.Now()
			must(t, s.Launch(k, runtime.Items(n), out, rounds))
			must(t, s.Sync(t.Context()))
			least = min(least, time.Since(start))
		}
		return least
	}
	rounds := uint32(1000)
	took := spin(rounds)
	for took < 50*time.Millisecond && rounds < 1<<28 {
		rounds *= 4
		took = spin(rounds)
	}
	// In rusticl 22.3 a launch now and then waits for the launches before it. Then there is nothing
	// left to wait for, and the work is queued again.
	const tries = 12
	var e *runtime.Event
	for try := 1; ; try++ {
		need(t, try <= tries, "launches return while their work is in flight")
		start := time.Now()
		for range 2*time.Second/took + 1 {
			must(t, s.Launch(k, runtime.Items(n), out, rounds))
		}
		e = keep(d, call(s.Record()).must(t))
		done := call(e.Done()).must(t)
		if !done && time.Since(start) < time.Second {
			break
		}
		must(t, e.Wait(t.Context()))
	}
	for what, wait := range map[string]func(context.Context) error{
		"sync":  s.Sync,
		"event": e.Wait,
		"read":  func(ctx context.Context) error { return s.Read(ctx, out, 0, make([]byte, 4)) },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		errorIs(t, wait(ctx), context.DeadlineExceeded, what)
		cancel()
	}
	done := call(e.Done()).must(t)
	expect(t, !done, "a wait must not last longer than its deadline")
	must(t, s.Sync(t.Context()), "a deadline does not make the stream fail")
	must(t, e.Wait(t.Context()))
	expect(t, read[uint32](t, out)[0] != 0, "the kernel wrote")
}

func checkStreamClose(t *row, d *device) {
	s := d.stream(t)
	b := d.alloc(t, runtime.U32, 1<<16)
	must(t, d.Sync(t.Context()))
	must(t, s.Fill(b, uint32(5)))
	must(t, s.Close(), "close waits for the work in flight")
	must(t, s.Close(), "twice is nothing")
	equal(t, 5, read[uint32](t, b)[1<<16-1])
	errorIs(t, s.Fill(b, uint32(6)), runtime.ErrClosed)
	errorIs(t, s.Sync(t.Context()), runtime.ErrClosed)
	call(s.Record()).fails(t, runtime.ErrClosed)
}

// onStreams calls work on several goroutines at once, each with a stream of its own and a number.
func (d *device) onStreams(t *row, work func(s *runtime.Stream, number int)) {
	var wg sync.WaitGroup
	for number := range 8 {
		wg.Go(func() {
			s, err := d.NewStream()
			if noError(t, err) {
				defer s.Close()
				work(s, number)
			}
		})
	}
	wg.Wait()
}

func checkConcurrency(t *row, d *device) {
	d.onStreams(t, func(s *runtime.Stream, number int) {
		for i := range 20 {
			b, err := d.Alloc(runtime.U32, 1000+i)
			if !noError(t, err) {
				return
			}
			value := uint32(number*1000 + i)
			noError(t, s.Fill(b, value))
			got := make([]byte, 4)
			noError(t, s.Read(t.Context(), b, int64(4*(999+i)), got))
			equal(t, value, binary.LittleEndian.Uint32(got))
			noError(t, b.Close())
		}
	})
}

// checkPriorities checks results and not the order: which of two streams goes first is visible only
// if the device is full.
func checkPriorities(t *row, d *device) {
	k := d.kernel(t, spinText, "spin")
	var want []uint32
	for _, p := range []driver.Priority{driver.Low, driver.Normal, driver.High} {
		s := keep(d, call(d.NewPriorityStream(p)).must(t))
		out := d.alloc(t, runtime.U32, 256)
		for range 4 {
			must(t, s.Launch(k, runtime.Items(256), out, uint32(20)))
		}
		must(t, s.Sync(t.Context()))
		got := read[uint32](t, out)
		if want == nil {
			want = got
		}
		equal(t, want, got, "priority %d", p)
	}
	call(d.NewPriorityStream(driver.High+1)).fails(t, runtime.ErrInvalidArgument)
}

// checkStreamMemory allocates and closes in the middle of queued work: memory that is
// handed out again too early would be written by two steps at once.
func checkStreamMemory(t *row, d *device) {
	const n, rounds = 1 << 16, 30
	s, other := d.stream(t), d.stream(t)
	whole := d.alloc(t, runtime.U32, n*rounds)
	for i := range rounds {
		part := d.slice(t, whole, i*n, n)
		step := call(s.Alloc(runtime.U32, n)).must(t)
		use := s
		if i%3 == 2 {
			use = other // ordered after the allocation without further calls
		}
		must(t, use.Fill(step, uint32(i)))
		must(t, use.Copy(part, step))
		must(t, step.Close())
	}
	must(t, s.Sync(t.Context()))
	must(t, other.Sync(t.Context()))
	mustEqual(t, made(n*rounds, func(i int) uint32 { return uint32(i / n) }), read[uint32](t, whole))
	left := keep(d, call(s.Alloc(runtime.U32, n)).must(t))
	must(t, s.Fill(left, uint32(7)))
	must(t, s.Close())
	equal(t, 7, read[uint32](t, left)[n-1], "it outlives its stream")
	call(s.Alloc(runtime.U32, n)).fails(t, runtime.ErrClosed)
	call(other.Alloc(runtime.U32, -1)).fails(t, runtime.ErrInvalidArgument)
}
