package conformance

// Errors: each wrong call returns its typed error and changes nothing, and the next valid call
// works.

import (
	"errors"
	"fmt"
	"math"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

var errorChecks = []check{
	{"error/alloc", false, checkAllocErrors},
	{"error/launch", true, checkLaunchErrors},
	{"error/build", true, checkBuildErrors},
	{"error/fault", true, checkFault},
}

func checkAllocErrors(t *row, d *device) {
	for _, n := range []int{0, -1, math.MinInt} {
		_, err := d.Alloc(runtime.F32, n)
		errorIs(t, err, runtime.ErrInvalidArgument, "%d elements", n)
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
	good := d.program(t, saxpyText)
	_, err = good.Kernel("missing")
	errorIs(t, err, runtime.ErrCompile)
	errorSays(t, err, "saxpy", "the entry points that are there are named")
	_, err = d.Program(t.Context(), nil)
	errorIs(t, err, runtime.ErrInvalidArgument)
}

const astrayText = `kernel void astray(global int *x, long at) { x[at] = 1; }`

// checkFault runs a kernel that writes to an invalid address. CPUs and simulators are sure to
// detect that; on a real GPU it may end the whole process.
func checkFault(t *row, d *device) {
	if backend := d.Info().Backend; backend != "cpu" && !driver.IsSimulated(backend) {
		t.skip("%s need not notice a bad address", d)
	}
	name := d.String()
	must(t, d.Close()) // it may share the context that is lost
	d.given = true
	s, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	must(t, err)
	d = &device{Device: OpenIn(t.test, s, name)}
	k := d.kernel(t, astrayText, "astray")
	x := upload(t, d, []int32{0})
	faulty, err := d.NewStream()
	must(t, err)
	must(t, faulty.Launch(k, runtime.Items(1), x, int64(1)<<40), "a failure of queued work is not an error of the launch")
	err = faulty.Sync(t.Context())
	lost := errors.Is(err, runtime.ErrDeviceLost)
	expect(t, lost || errors.Is(err, runtime.ErrLaunch), "neither ErrDeviceLost nor ErrLaunch: %v", err)
	errorSays(t, err, "astray", "the error names the kernel")
	equal(t, fmt.Sprint(err), fmt.Sprint(faulty.Err()), "the stream keeps its first error")
	equal(t, fmt.Sprint(err), fmt.Sprint(faulty.Launch(k, runtime.Items(1), x, int64(0))))
	equal(t, fmt.Sprint(err), fmt.Sprint(faulty.Fill(x, int32(1))))
	if lost {
		errorIs(t, d.Stream().Fill(x, int32(1)), runtime.ErrDeviceLost, "on every stream")
		_, err = d.NewStream()
		errorIs(t, err, runtime.ErrDeviceLost)
		_, err = d.Alloc(runtime.F32, 1)
		errorIs(t, err, runtime.ErrDeviceLost)
	} else {
		must(t, d.Stream().Fill(x, int32(2)), "other streams go on")
		equal(t, []int32{2}, read[int32](t, x))
	}
	noError(t, faulty.Close())
	if !lost {
		must(t, d.Close())
	}
	anew := &device{Device: OpenIn(t.test, s, name)}
	checkSaxpy(t, anew)
	if lost {
		errorIs(t, d.Stream().Fill(x, int32(1)), runtime.ErrDeviceLost, "the old one stays lost")
		noError(t, d.Close())
	}
	anew.end(t)
	must(t, s.Close())
}
