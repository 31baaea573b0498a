package conformance

// Errors: each wrong call returns its typed error and changes nothing, and the next valid call
// works.

import (
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

var errorChecks = []Row{
	{"error/alloc", false, checkAllocErrors},
	{"error/launch", true, checkLaunchErrors},
	{"error/build", true, checkBuildErrors},
	{"error/fault", true, checkFault},
	{"error/reset", true, checkReset},
	{"error/abandon", true, checkAbandon},
}

func checkAllocErrors(t *row, d *device) {
	for _, n := range []int{-1, math.MinInt} {
		call(d.Alloc(runtime.F32, n)).fails(t, runtime.ErrInvalidArgument, "%d elements", n)
	}
	for _, n := range []int{math.MaxInt, math.MaxInt / 4, 1 << 50} {
		_, err := d.Alloc(runtime.F32, n)
		errorIs(t, err, runtime.ErrTooLarge, "%d elements", n)
		expect(t, !errors.Is(err, runtime.ErrOutOfMemory), "a size that can never fit is not a lack of memory: %v", err)
	}
	equal(t, []uint8{1, 2}, read[uint8](t, upload(t, d, []uint8{1, 2})), "the next good call works")
}

func checkLaunchErrors(t *row, d *device) {
	k := d.kernel(t, saxpyText, "saxpy")
	x, y := upload(t, d, []float32{1, 2, 3, 4}), upload(t, d, []float32{0, 0, 0, 0})
	ints := upload(t, d, []int32{1})
	a, n := float32(2), uint32(4)
	huge := d.Info().MaxGroupSize
	if most := d.Info().MaxGroupSizes[0]; most > huge {
		huge = most
	}
	need(t, huge > 0, "Info says how large groups can be, not %d", huge)
	for what, c := range map[string]struct {
		g    runtime.Grid
		args []any
		want error
	}{
		"no arguments":       {runtime.Items(4), nil, runtime.ErrInvalidArgument},
		"one too many":       {runtime.Items(4), []any{a, x, y, n, n}, runtime.ErrInvalidArgument},
		"wrong element type": {runtime.Items(4), []any{a, ints, y, n}, runtime.ErrInvalidArgument},
		"wrong scalar":       {runtime.Items(4), []any{2.0, x, y, n}, runtime.ErrInvalidArgument},
		"nil":                {runtime.Items(4), []any{a, nil, y, n}, runtime.ErrInvalidArgument},
		"no items":           {runtime.Items(0), []any{a, x, y, n}, runtime.ErrInvalidArgument},
		"negative items":     {runtime.Items(-4), []any{a, x, y, n}, runtime.ErrInvalidArgument},
		"no divisor":         {runtime.Items(5).InGroups(2), []any{a, x, y, n}, runtime.ErrInvalidArgument},
		"huge grid":          {runtime.Items(math.MaxInt), []any{a, x, y, n}, runtime.ErrTooLarge},
		"huge volume":        {runtime.Items(1<<31, 1<<31, 1<<31), []any{a, x, y, n}, runtime.ErrTooLarge},
		"oversized group":    {runtime.Items(2 * huge).InGroups(2 * huge), []any{a, x, y, n}, runtime.ErrTooLarge},
	} {
		errorIs(t, d.Stream().Launch(k, c.g, c.args...), c.want, what)
	}
	errorIs(t, d.Stream().Launch(nil, runtime.Items(1)), runtime.ErrInvalidArgument)
	noError(t, d.Stream().Err(), "a refused launch does not make the stream fail")
	must(t, d.Stream().Launch(k, runtime.Items(4), a, x, y, n))
	equal(t, []float32{2, 4, 6, 8}, read[float32](t, y), "the next good launch works, and the wrong ones wrote nothing")
}

func checkBuildErrors(t *row, d *device) {
	_, err := source.Parse("kernel void k(global int *p) {\n\tp[0] = no_such_name;\n}", source.Options{Name: "broken.cl"})
	errorSays(t, err, "broken.cl:2:", "an error of the text names file and line")
	_, err = d.program(t, saxpyText).Kernel("missing")
	errorIs(t, err, runtime.ErrCompile)
	errorSays(t, err, "saxpy", "the entry points that are there are named")
	call(d.Program(t.Context(), nil)).fails(t, runtime.ErrInvalidArgument)
}

const divideText = `kernel void divide(global int *x, int by) { x[get_global_id(0)] = 84 / by; }`

// checkReset divides by zero, which is an error on a CPU and undefined elsewhere, and goes on with the stream.
func checkReset(t *row, d *device) {
	k := d.kernel(t, divideText, "divide")
	x := upload(t, d, []int32{0})
	s := call(d.NewStream()).must(t)
	must(t, s.Reset(), "nothing has failed")
	for _, s := range []*runtime.Stream{s, d.Stream(), s} {
		if d.Info().Backend == host {
			must(t, s.Launch(k, runtime.Items(1), x, int32(0)))
			if err := s.Fill(x, int32(3)); err != nil { // behind it, unless it has failed already
				errorIs(t, err, runtime.ErrLaunch)
			}
			behind, err := s.Record()
			if err == nil {
				errorIs(t, behind.Wait(t.Context()), runtime.ErrLaunch)
			}
			errorIs(t, s.Sync(t.Context()), runtime.ErrLaunch)
			errorIs(t, s.Fill(x, int32(1)), runtime.ErrLaunch, "until it is reset")
			errorIs(t, s.Err(), runtime.ErrLaunch)
			must(t, s.Reset())
			if err == nil {
				errorIs(t, behind.Wait(t.Context()), runtime.ErrLaunch, "an event behind the failure keeps its error")
				must(t, behind.Close())
			}
		}
		must(t, s.Err())
		must(t, s.Launch(k, runtime.Items(1), x, int32(2)))
		must(t, s.Sync(t.Context()))
		equal(t, []int32{42}, read[int32](t, x))
		step := call(s.Alloc(runtime.I32, 1000)).must(t)
		must(t, s.Fill(step, int32(1)))
		must(t, step.Close())
		must(t, s.Sync(t.Context()))
	}
	must(t, s.Close())
	errorIs(t, s.Reset(), runtime.ErrClosed)
}

// reopen opens the device under test in a session of the row's.
func reopen(t *row, s *runtime.Session, name string) *device {
	t.Helper()
	return &device{Device: call(t.open(s, name)).must(t)}
}

// checkAbandon gives a device up while kernels run, and opens it again.
func checkAbandon(t *row, d *device) {
	name := d.String()
	must(t, d.Close())
	d.given = true
	s := t.session()
	d = reopen(t, s, name)
	k := d.kernel(t, spinText, "spin")
	out := call(d.Alloc(runtime.U32, 256)).must(t)
	stream := call(d.NewStream()).must(t)
	e := call(stream.Record()).must(t)
	for range 50 {
		must(t, stream.Launch(k, runtime.Items(256), out, uint32(50_000)))
	}
	why := errors.New("takes too long")
	start := time.Now()
	must(t, d.Abandon(why))
	for what, err := range map[string]error{
		"launch": stream.Launch(k, runtime.Items(256), out, uint32(1)), "sync": stream.Sync(t.Context()),
		"read": runtime.Read(t.Context(), out, make([]uint32, 256)), "wait": e.Wait(t.Context()),
		"device": d.Sync(t.Context()),
	} {
		errorIs(t, err, runtime.ErrDeviceLost, what)
		errorIs(t, err, why, what)
	}
	call(d.Alloc(runtime.U32, 1)).fails(t, runtime.ErrDeviceLost)
	for _, c := range []io.Closer{e, stream, out, d} {
		must(t, c.Close())
	}
	expect(t, time.Since(start) < 10*time.Second, "nothing is waited for: %v", time.Since(start))
	expect(t, d.Stats().Leaked >= 1024, "%d bytes leaked", d.Stats().Leaked)
	anew := reopen(t, s, name)
	checkSaxpy(t, anew)
	anew.end(t)
	must(t, s.Close())
}

const astrayText = `kernel void astray(global int *x, long at) { x[at] = 1; }`

// checkFault runs a kernel that writes to an invalid address. CPUs and simulators are sure to
// detect that; on a real GPU it may end the whole process.
func checkFault(t *row, d *device) {
	if backend := d.Info().Backend; backend != host && !driver.IsSimulated(backend) {
		t.Skipf("%s need not notice a bad address", d)
	}
	name := d.String()
	must(t, d.Close()) // it may share the context that is lost
	d.given = true
	s := t.session()
	d = reopen(t, s, name)
	k := d.kernel(t, astrayText, "astray")
	x := upload(t, d, []int32{0})
	faulty := call(d.NewStream()).must(t)
	must(t, faulty.Launch(k, runtime.Items(1), x, int64(1)<<40), "a failure of queued work is not an error of the launch")
	err := faulty.Sync(t.Context())
	lost := errors.Is(err, runtime.ErrDeviceLost)
	expect(t, lost || errors.Is(err, runtime.ErrLaunch), "neither ErrDeviceLost nor ErrLaunch: %v", err)
	errorSays(t, err, "astray", "the error names the kernel")
	equal(t, fmt.Sprint(err), fmt.Sprint(faulty.Err()), "the stream keeps its first error")
	equal(t, fmt.Sprint(err), fmt.Sprint(faulty.Launch(k, runtime.Items(1), x, int64(0))))
	equal(t, fmt.Sprint(err), fmt.Sprint(faulty.Fill(x, int32(1))))
	if lost {
		errorIs(t, d.Stream().Fill(x, int32(1)), runtime.ErrDeviceLost, "on every stream")
		errorIs(t, faulty.Reset(), runtime.ErrDeviceLost)
		call(d.NewStream()).fails(t, runtime.ErrDeviceLost)
		call(d.Alloc(runtime.F32, 1)).fails(t, runtime.ErrDeviceLost)
	} else {
		must(t, d.Stream().Fill(x, int32(2)), "other streams go on")
		equal(t, []int32{2}, read[int32](t, x))
		must(t, faulty.Reset())
		must(t, faulty.Launch(k, runtime.Items(1), x, int64(0)))
		must(t, faulty.Sync(t.Context()))
		equal(t, []int32{1}, read[int32](t, x))
	}
	noError(t, faulty.Close())
	if !lost {
		must(t, d.Close())
	}
	anew := reopen(t, s, name)
	checkSaxpy(t, anew)
	if lost {
		errorIs(t, d.Stream().Fill(x, int32(1)), runtime.ErrDeviceLost, "the old one stays lost")
		noError(t, d.Close())
	}
	anew.end(t)
	must(t, s.Close())
}
