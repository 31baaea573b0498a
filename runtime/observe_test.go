package runtime

import (
	"context"
	"errors"
	goruntime "runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/profile"
	"github.com/concord-compute/concord/source"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// of returns the observed events of a kind.
func of(r *profile.Recording, kind profile.Kind) (list []profile.Event) {
	events, _ := r.Events()
	return slices.DeleteFunc(events, func(e profile.Event) bool { return e.Kind != kind })
}

// The work of launches that state none is what the program knows, also in a graph.
func TestObserveKnownWork(t *testing.T) {
	session, d := open(t, &nullBackend{}, Config{})
	s, x, y := d.Stream(), buffer(t, d, F32, 100), buffer(t, d, F32, 100)
	var r profile.Recording
	defer session.Observe(&r)()
	known, err := source.Parse(nullText, source.Options{
		Name: "known.cl", Work: func(u *source.Unit, k *source.Kernel, global [3]int, values [][]byte) (float64, float64) {
			assert.Equal(t, "axpy", k.Name)
			assert.Equal(t, [3]int{100, 1, 1}, global)
			assert.Equal(t, [][]byte{{0, 0, 0x80, 0x3f}, nil, nil, {100, 0, 0, 0}}, values)
			return 2, 12
		}})
	require.NoError(t, err)
	program, err := d.Program(t.Context(), known)
	require.NoError(t, err)
	knows, err := program.Kernel("axpy")
	require.NoError(t, err)
	require.NoError(t, s.Launch(knows, Items(100), float32(1), x, y, int32(100)))
	require.NoError(t, s.Launch(knows, Items(100).Does(1, 0), float32(1), x, y, int32(100)))
	g, err := s.Capture(func(s *Stream) error {
		return errors.Join(s.Launch(knows, Items(100), float32(1), x, y, int32(100)),
			s.Launch(knows, Items(100), float32(1), x, y, int32(100)))
	})
	require.NoError(t, err)
	require.NoError(t, g.Launch(s))
	require.NoError(t, s.Sync(t.Context()))
	launches := of(&r, profile.Launch)
	require.Len(t, launches, 2)
	assert.Equal(t, []float64{2, 12, 1, 0}, []float64{launches[0].Flops, launches[0].Bytes, launches[1].Flops,
		launches[1].Bytes})
	assert.Equal(t, []float64{4, 24}, []float64{of(&r, profile.Graph)[0].Flops, of(&r, profile.Graph)[0].Bytes})
}

// A device without a timeline: the host's times.
func TestObserve(t *testing.T) {
	b := &nullBackend{}
	session, d := open(t, b, Config{})
	s := d.Stream()
	y := buffer(t, d, F32, 100)
	require.NoError(t, s.Fill(y, float32(0)), "nobody listens")
	var r profile.Recording
	stop := session.Observe(&r)
	k := kernel(t, d, "axpy")
	x := buffer(t, d, F32, 100)
	begin := driver.Now()
	require.NoError(t, s.Launch(k, Items(100).InGroups(10).Does(200, 1200), float32(1), x, y, int32(100)))
	require.NoError(t, s.Launch(k, Items(100), float32(1), x, y, int32(100)))
	assert.Empty(t, of(&r, profile.Launch), "they are not known to be over")
	require.NoError(t, s.Copy(y, x))
	require.NoError(t, s.Write(t.Context(), x, 0, make([]byte, 40)))
	require.NoError(t, s.Read(t.Context(), x, 0, make([]byte, 20)))
	launches := of(&r, profile.Launch)
	require.Len(t, launches, 2)
	l := launches[0]
	assert.Equal(t, profile.Event{Kind: profile.Launch, Name: "axpy", Device: "cuda:0", Stream: 1, Queued: l.Queued,
		Start: l.Queued, End: l.End,
		Items: [3]int{100, 1, 1}, Group: [3]int{10, 1, 1}, Flops: 200, Bytes: 1200,
		Registers: 24, SpillBytes: 4, Detail: "null"}, l)
	assert.GreaterOrEqual(t, l.Queued, begin)
	assert.Greater(t, l.End, l.Start)
	assert.Zero(t, launches[1].Flops+launches[1].Bytes, "unknown")
	copies := of(&r, profile.Copy)
	require.Len(t, copies, 3)
	for i, want := range []struct {
		name  string
		bytes float64
	}{{"device to device", 400}, {"host to device", 40}, {"device to host", 20}} {
		assert.Equal(t, want.name, copies[i].Name)
		assert.Equal(t, want.bytes, copies[i].Bytes)
		assert.NoError(t, copies[i].Err)
	}
	compiles := of(&r, profile.Compile)
	require.Len(t, compiles, 1)
	assert.Equal(t, []string{"null.cl", "compiled"}, []string{compiles[0].Name, compiles[0].Detail})
	assert.Len(t, of(&r, profile.Alloc), 1, "of x; y came before")
	assert.EqualValues(t, 400, of(&r, profile.Alloc)[0].Bytes)
	waits := of(&r, profile.Wait)
	require.Len(t, waits, 1, "an idle stream is not waited for")
	assert.Equal(t, "sync", waits[0].Name)
	assert.Empty(t, of(&r, profile.Fill))

	r.Reset()
	var other profile.Recording
	stopOther := session.Observe(&other)
	require.NoError(t, s.Fill(y, float32(0)))
	stop()
	stop()
	fills := of(&r, profile.Fill)
	require.Len(t, fills, 1)
	assert.Equal(t, fills[0].Start, fills[0].End)
	assert.Contains(t, fills[0].Detail, "not over")
	assert.Empty(t, of(&other, profile.Fill), "it is not over for those who still listen")
	require.NoError(t, s.Sync(t.Context()))
	assert.Len(t, of(&other, profile.Fill), 1)
	assert.Len(t, of(&r, profile.Fill), 1)
	stopOther()
	assert.False(t, session.observed())
}

// pausing keeps events, and lets the test do something at the first that is not over.
type pausing struct {
	profile.Recording
	sync.Once
	pause func(stream int64)
}

func (p *pausing) Observe(e profile.Event) {
	p.Recording.Observe(e)
	if strings.Contains(e.Detail, "not over") {
		p.Do(func() { p.pause(e.Stream) })
	}
}

// Each observer is told once of all work that was queued while it was registered, and of no other, also while
// other observers are added and removed.
func TestObserversComeAndGo(t *testing.T) {
	for _, stays := range []bool{true, false} {
		session, d := open(t, &nullBackend{}, Config{})
		y := buffer(t, d, F32, 100)
		fill := func(s *Stream, n int) {
			part, err := y.Slice(0, n)
			require.NoError(t, err)
			require.NoError(t, s.Fill(part, float32(1)))
			require.NoError(t, part.Close())
		}
		var first, second, third profile.Recording
		if stays {
			defer session.Observe(&first)()
		}
		paused, on := make(chan int64), make(chan bool)
		leaves := &pausing{pause: func(stream int64) { paused <- stream; <-on }}
		stop := session.Observe(leaves)
		streams := map[int64]*Stream{}
		for i := range 2 {
			s, err := d.NewStream()
			require.NoError(t, err)
			streams[s.number] = s
			fill(s, i+1)
		}
		stopped := make(chan bool)
		go func() { stop(); close(stopped) }()
		delete(streams, <-paused)
		for _, s := range streams { // the one of which he has yet to be told
			defer session.Observe(&second)()
			fill(s, 3)
			require.NoError(t, s.Sync(t.Context()))
			defer session.Observe(&third)()
			fill(s, 4)
		}
		close(on)
		<-stopped
		require.NoError(t, d.Sync(t.Context()))
		elements := func(r *profile.Recording) (list []int) {
			for _, e := range of(r, profile.Fill) {
				list = append(list, int(e.Bytes)/4)
			}
			slices.Sort(list)
			return list
		}
		if stays {
			assert.Equal(t, []int{1, 2, 3, 4}, elements(&first))
		}
		assert.Equal(t, []int{1, 2}, elements(&leaves.Recording))
		assert.Equal(t, []int{3, 4}, elements(&second))
		assert.Equal(t, []int{4}, elements(&third))
	}
}

// Memory that comes from the driver in the order of a stream is told, too.
func TestObserveStreamAlloc(t *testing.T) {
	b := &nullBackend{full: true}
	session, d := open(t, b, Config{})
	var r profile.Recording
	defer session.Observe(&r)()
	x, err := d.Stream().Alloc(F32, 10)
	require.NoError(t, err)
	require.NoError(t, x.Close())
	b.allocHereErr = ErrOutOfMemory
	_, err = d.Stream().Alloc(F32, 20)
	require.ErrorIs(t, err, ErrOutOfMemory)
	allocs := of(&r, profile.Alloc)
	require.GreaterOrEqual(t, len(allocs), 2, "what does not fit may be tried again")
	assert.NoError(t, allocs[0].Err)
	for i, e := range allocs {
		assert.Equal(t, []any{"cuda:0", int64(1), "on-device", float64(40 * min(i+1, 2))},
			[]any{e.Device, e.Stream, e.Name, e.Bytes})
		assert.Equal(t, i > 0, errors.Is(e.Err, ErrOutOfMemory))
	}
	b.allocHereErr = ErrUnsupported
	r.Reset()
	x, err = d.Stream().Alloc(F32, 10)
	require.NoError(t, err)
	require.NoError(t, x.Close())
	require.Len(t, of(&r, profile.Alloc), 1, "the driver cannot do it, and another way is found")
	assert.NoError(t, of(&r, profile.Alloc)[0].Err)
}

// What failed is told with its error, and so is what was refused.
func TestObserveFailures(t *testing.T) {
	why := errors.New("fault")
	b := &nullBackend{}
	session, d := open(t, b, Config{})
	s, err := d.NewStream()
	require.NoError(t, err)
	y := buffer(t, d, F32, 100)
	var r profile.Recording
	defer session.Observe(&r)()
	require.NoError(t, s.Fill(y, float32(0)))
	b.syncErr = why
	require.ErrorIs(t, s.Sync(t.Context()), why)
	require.Len(t, of(&r, profile.Fill), 1)
	assert.ErrorIs(t, of(&r, profile.Fill)[0].Err, why)
	assert.ErrorIs(t, of(&r, profile.Wait)[0].Err, why)
	b.syncErr = nil
	b.transferErr = func() error { return why }
	require.ErrorIs(t, s.Write(t.Context(), y, 0, make([]byte, 4)), why)
	require.Len(t, of(&r, profile.Copy), 1)
	assert.ErrorIs(t, of(&r, profile.Copy)[0].Err, why)
	r.Reset()
	require.NoError(t, s.Fill(y, float32(0)))
	ctx, cancel := context.WithCancel(t.Context())
	b.syncing = func(context.Context) { cancel() }
	b.syncErr = context.Canceled
	require.ErrorIs(t, s.Sync(ctx), context.Canceled)
	assert.Empty(t, of(&r, profile.Fill), "a wait that was given up says nothing about the work")
	b.syncing, b.syncErr = nil, nil
	require.NoError(t, s.Close())
	require.Len(t, of(&r, profile.Fill), 1)
	assert.NoError(t, of(&r, profile.Fill)[0].Err)
	b.allocErr = func() error { return ErrOutOfMemory }
	_, err = d.Alloc(F32, 10)
	require.ErrorIs(t, err, ErrOutOfMemory)
	allocs := of(&r, profile.Alloc)
	require.NotEmpty(t, allocs)
	assert.ErrorIs(t, allocs[0].Err, ErrOutOfMemory)
	b.allocErr = nil

	require.NoError(t, d.Stream().Fill(y, float32(0)))
	require.NoError(t, d.Abandon(why))
	fills := of(&r, profile.Fill)
	assert.ErrorIs(t, fills[len(fills)-1].Err, ErrDeviceLost)
}

// Waiting for an event tells observers of the work that was queued before the event.
func TestObserveEventWait(t *testing.T) {
	session, d := open(t, &nullBackend{}, Config{})
	s, y := d.Stream(), buffer(t, d, F32, 100)
	var r profile.Recording
	defer session.Observe(&r)()
	var e Event
	defer e.Close()
	for i := range 10 {
		require.NoError(t, s.Fill(y, float32(1)))
		require.NoError(t, s.RecordIn(&e))
		require.NoError(t, s.Fill(y, float32(2)), "behind the event")
		require.NoError(t, e.Wait(t.Context()))
		assert.Len(t, of(&r, profile.Fill), 2*i+1)
	}
}

// once panics at the first fill.
type once struct{ sync.Once }

func (o *once) Observe(e profile.Event) {
	if e.Kind == profile.Fill {
		o.Do(func() { panic("the observer's mistake") })
	}
}

// An observer that panics ends the call that told it something, and no other.
func TestObserverThatPanics(t *testing.T) {
	session, d := open(t, &nullBackend{}, Config{})
	s, y := d.Stream(), buffer(t, d, F32, 100)
	defer session.Observe(&once{})()
	var r profile.Recording
	defer session.Observe(&r)()
	require.NoError(t, s.Fill(y, float32(1)))
	assert.PanicsWithValue(t, "the observer's mistake", func() { _ = s.Sync(t.Context()) })
	require.NoError(t, s.Fill(y, float32(1)))
	require.NoError(t, s.Sync(t.Context()))
	assert.Len(t, of(&r, profile.Fill), 1, "the first was lost with the panic")
}

func TestObserveFallback(t *testing.T) {
	bad, good := &nullBackend{name: "cuda", devices: 1, openErr: ErrOutOfMemory}, &nullBackend{name: "opencl", devices: 1}
	session, err := New(Config{Backends: []driver.Backend{bad, good}, CacheDir: "off"})
	require.NoError(t, err)
	defer session.Close()
	var r profile.Recording
	defer session.Observe(&r)()
	d, err := session.Open(t.Context(), "cuda:0")
	require.NoError(t, err)
	defer d.Close()
	list := of(&r, profile.Fallback)
	require.Len(t, list, 1)
	assert.Equal(t, "opencl:0", list[0].Device)
	assert.NotEmpty(t, list[0].Detail)

	// Work of others falls back under the same policy, and is counted and told likewise.
	assert.True(t, session.MayFallBack(ErrDeviceLost))
	assert.False(t, session.MayFallBack(ErrDimension))
	session.FellBack("cpu:0", "product", ErrDeviceLost)
	assert.EqualValues(t, 2, session.Fallbacks())
	session.Tell(profile.Event{Kind: profile.Region, Name: "mine"})
	events, _ := r.Events()
	last := events[len(events)-2:]
	assert.Equal(t, "product cpu:0 device lost", last[0].Name+" "+last[0].Device+" "+last[0].Detail)
	assert.Equal(t, "mine", last[1].Name)
	strict, err := New(Config{Backends: []driver.Backend{bad, good}, CacheDir: "off", Fallback: Require})
	require.NoError(t, err)
	defer strict.Close()
	assert.False(t, strict.MayFallBack(ErrDeviceLost))

	s, err := d.NewStream()
	require.NoError(t, err)
	defer s.Close()
	assert.NotEqual(t, d.Stream().Number(), s.Number())
}

func TestRegion(t *testing.T) {
	session, err := New(Config{Backends: []driver.Backend{}, CacheDir: "off"})
	require.NoError(t, err)
	var r profile.Recording
	stop := session.Observe(&r)
	in, end := session.Region(t.Context(), "outer")
	label, _ := pprof.Label(in, "concord_region")
	assert.Equal(t, "outer", label)
	_, endInner := session.Region(in, "inner")
	endInner()
	end()
	stop()
	list := of(&r, profile.Region)
	require.Len(t, list, 2)
	inner, outer := list[0], list[1]
	assert.Equal(t, []string{"inner", "outer"}, []string{inner.Name, outer.Name})
	assert.True(t, outer.Start <= inner.Start && inner.End <= outer.End)
}

// timelineStream has a device's clock that begins elsewhere and goes faster. The test says what is over.
type timelineStream struct {
	*nullStream
	mu    sync.Mutex
	now   uint64
	begun map[uint64]int64
	over  []driver.Span
}

const (
	clockAt   = 7_000_000_000
	clockRate = 1.0005
)

func deviceClock(host int64) int64 { return clockAt + int64(float64(host)*clockRate) }

func (s *timelineStream) Time(op uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != 0 {
		s.over = append(s.over, driver.Span{Op: s.now, Start: s.begun[s.now], End: deviceClock(driver.Now())})
	}
	s.now, s.begun[op] = op, deviceClock(driver.Now())
	return nil
}

func (s *timelineStream) Spans(to []driver.Span) []driver.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	to = append(to, s.over...)
	s.over = nil
	return to
}

func (s *timelineStream) Clock() (device, host int64, err error) {
	now := driver.Now()
	return deviceClock(now), now, nil
}

// Times of a device's clock become the host's, whatever the clock's beginning and, up to a limit, its rate.
func TestObserveTimeline(t *testing.T) {
	b := &nullBackend{stream: func(s *nullStream) driver.Stream {
		return &timelineStream{nullStream: s, begun: map[uint64]int64{}}
	}}
	session, d := open(t, b, Config{})
	s := d.Stream()
	y := buffer(t, d, F32, 100)
	var r profile.Recording
	defer session.Observe(&r)()
	began := time.Now()
	for time.Since(began) < 4*clockEvery {
		require.NoError(t, s.Fill(y, float32(1)))
		time.Sleep(10 * time.Millisecond)
		require.NoError(t, s.Fill(y, float32(2)))
		b.transferErr = func() error { return ErrInvalidArgument }
		require.Error(t, s.Write(t.Context(), y, 0, make([]byte, 4)), "its span is nobody's")
		require.NoError(t, s.Sync(t.Context()))
	}
	fills := of(&r, profile.Fill)
	require.Greater(t, len(fills), 10)
	last := int64(0)
	for _, e := range fills {
		assert.True(t, e.DeviceTime)
		assert.GreaterOrEqual(t, e.Start, max(e.Queued, last))
		assert.InDelta(t, e.Queued, e.Start, 3e6, "within the drift of the time between two readings, and a busy "+
			"machine's pauses")
		last = e.End
	}
	assert.False(t, of(&r, profile.Copy)[0].DeviceTime)
	// Exactly: two readings, and times between and beyond them.
	n := notes{from: reading{deviceClock(0), 0}, to: reading{deviceClock(1e9), 1e9}}
	for _, host := range []int64{0, 5e8, 1e9, 3e9} {
		assert.InDelta(t, host, n.host(deviceClock(host)), 10)
	}
	n = notes{from: reading{0, 0}, to: reading{1e9, 2e9}} // a reading that was a mistake
	assert.EqualValues(t, 2e9+5, n.host(1e9+5))
}

// Work has times though the host never waits: its queueing more is enough.
func TestObserveWithoutWaits(t *testing.T) {
	b := &nullBackend{stream: func(s *nullStream) driver.Stream {
		return &timelineStream{nullStream: s, begun: map[uint64]int64{}}
	}}
	session, d := open(t, b, Config{})
	y := buffer(t, d, F32, 100)
	r := profile.Recording{Most: 1 << 20}
	defer session.Observe(&r)()
	for end := time.Now().Add(10 * time.Second); len(of(&r, profile.Fill)) < mostNotes &&
		time.Now().Before(end); time.Sleep(time.Millisecond) {
		for range fetchEvery {
			require.NoError(t, d.Stream().Fill(y, float32(1)))
		}
	}
	fills := of(&r, profile.Fill)
	assert.GreaterOrEqual(t, len(fills), mostNotes)
	timed := 0
	for _, e := range fills {
		if e.DeviceTime {
			timed++
		}
	}
	assert.Equal(t, len(fills), timed)
}

// However much is queued without a wait, the notes are bounded, and nothing is lost.
func TestObserveBounded(t *testing.T) {
	session, d := open(t, &nullBackend{}, Config{})
	s := d.Stream()
	y := buffer(t, d, F32, 100)
	r := profile.Recording{Most: 1 << 20}
	stop := session.Observe(&r)
	for range 3 * mostNotes {
		require.NoError(t, s.Fill(y, float32(1)))
	}
	assert.LessOrEqual(t, len(s.notes.open), mostNotes)
	require.NoError(t, s.Sync(t.Context()))
	stop()
	fills := of(&r, profile.Fill)
	assert.Len(t, fills, 3*mostNotes)
	untimed := 0
	for _, e := range fills {
		if strings.Contains(e.Detail, "too much") {
			untimed++
		}
	}
	assert.Equal(t, 2*mostNotes, untimed)
}

// Observers come and go while streams work and close.
func TestObserveConcurrently(t *testing.T) {
	session, d := open(t, &nullBackend{stream: func(s *nullStream) driver.Stream {
		return &timelineStream{nullStream: s, begun: map[uint64]int64{}}
	}}, Config{})
	y := buffer(t, d, F32, 100)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				s, err := d.NewStream()
				if err != nil {
					panic(err)
				}
				for range 100 {
					if err := s.Fill(y, float32(1)); err != nil {
						panic(err)
					}
				}
				if err := errors.Join(s.Sync(context.Background()), s.Close()); err != nil {
					panic(err)
				}
			}
		})
	}
	for range 20 {
		var r profile.Recording
		stop := session.Observe(&r)
		goruntime.Gosched()
		stop()
		events, _ := r.Events()
		for _, e := range events {
			assert.NoError(t, e.Err)
		}
	}
	wg.Wait()
}

// marking is a backend with a library for named parts of programs.
type marking struct {
	*nullBackend
	told []string
}

func (m *marking) Mark(name string) func() {
	if name == "unnamed" {
		return nil
	}
	m.told = append(m.told, name)
	return func() { m.told = append(m.told, "/"+name) }
}

// Regions are told to the vendors' profilers, whether anybody observes or not.
func TestRegionsAreMarked(t *testing.T) {
	b := &marking{nullBackend: &nullBackend{}}
	session, err := New(Config{Backends: []driver.Backend{&nullBackend{}, b}, CacheDir: "off"})
	require.NoError(t, err)
	defer session.Close()
	ctx, outer := session.Region(t.Context(), "outer")
	_, inner := session.Region(ctx, "inner")
	inner()
	_, unnamed := session.Region(ctx, "unnamed")
	unnamed()
	outer()
	assert.Equal(t, []string{"outer", "inner", "/inner", "/outer"}, b.told)
}
