package conformance

// Errors: each wrong call has its typed error, changes nothing, and the next good
// call works.

import (
	"errors"
	"math"
	"testing"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var errorChecks = []check{
	{"error/alloc", false, checkAllocErrors},
	{"error/launch", true, checkLaunchErrors},
	{"error/build", true, checkBuildErrors},
	{"error/fault", true, checkFault},
}

func checkAllocErrors(t *testing.T, d *device) {
	for _, n := range []int{0, -1, math.MinInt} {
		_, err := d.Alloc(runtime.F32, n)
		assert.ErrorIs(t, err, runtime.ErrInvalidArgument, "%d elements", n)
	}
	for _, n := range []int{math.MaxInt, math.MaxInt / 4, 1 << 50} {
		_, err := d.Alloc(runtime.F32, n)
		assert.ErrorIs(t, err, runtime.ErrTooLarge, "%d elements", n)
		assert.NotErrorIs(t, err, runtime.ErrOutOfMemory, "what can never fit is no lack of room")
	}
	assert.Equal(t, []uint8{1, 2}, read[uint8](t, upload(t, d, []uint8{1, 2})), "the next good call works")
}

func checkLaunchErrors(t *testing.T, d *device) {
	k := d.kernel(t, saxpyText, "saxpy")
	x, y := upload(t, d, []float32{1, 2, 3, 4}), upload(t, d, []float32{0, 0, 0, 0})
	ints := upload(t, d, []int32{1})
	a, n := float32(2), uint32(4)
	huge := d.Info().MaxThreadsPerBlock
	if most := d.Info().MaxWorkGroup[0]; most > huge {
		huge = most
	}
	require.Positive(t, huge, "a device says how large groups can be")
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
		"no divisor":         {runtime.Items(5).In(2), []any{a, x, y, n}, runtime.ErrInvalidArgument},
		"huge grid":          {runtime.Items(math.MaxInt), []any{a, x, y, n}, runtime.ErrTooLarge},
		"huge volume":        {runtime.Items(1<<31, 1<<31, 1<<31), []any{a, x, y, n}, runtime.ErrTooLarge},
		"oversized group":    {runtime.Items(2 * huge).In(2 * huge), []any{a, x, y, n}, runtime.ErrTooLarge},
	} {
		assert.ErrorIs(t, d.Stream().Launch(k, c.g, c.args...), c.want, what)
	}
	assert.ErrorIs(t, d.Stream().Launch(nil, runtime.Items(1)), runtime.ErrInvalidArgument)
	assert.NoError(t, d.Stream().Err(), "a refused launch is no failure of the stream")
	require.NoError(t, d.Stream().Launch(k, runtime.Items(4), a, x, y, n))
	assert.Equal(t, []float32{2, 4, 6, 8}, read[float32](t, y), "the next good launch works, and the wrong ones wrote nothing")
}

func checkBuildErrors(t *testing.T, d *device) {
	_, err := source.Parse("kernel void k(global int *p) {\n\tp[0] = no_such_name;\n}", source.Options{Name: "broken.cl"})
	require.Error(t, err)
	assert.ErrorContains(t, err, "broken.cl:2:", "an error of the text names file and line")
	good := d.program(t, saxpyText)
	_, err = good.Kernel("missing")
	assert.ErrorIs(t, err, runtime.ErrCompile)
	assert.ErrorContains(t, err, "saxpy", "the entry points that are there are named")
	_, err = d.Program(t.Context(), nil)
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
}

const astrayText = `kernel void astray(global int *x, long at) { x[at] = 1; }`

// checkFault runs a kernel that writes where nothing is. A CPU and a simulator
// notice that for sure; a real GPU may take the whole process with it.
func checkFault(t *testing.T, d *device) {
	if backend := d.Info().Backend; backend != "cpu" && !driver.IsSimulated(backend) {
		t.Skipf("%s need not notice a bad address", d)
	}
	name := d.String()
	require.NoError(t, d.Close()) // it may share what is lost
	d.given = true
	s, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	require.NoError(t, err)
	d = &device{Device: OpenIn(t, s, name)}
	k := d.kernel(t, astrayText, "astray")
	x := upload(t, d, []int32{0})
	faulty, err := d.NewStream()
	require.NoError(t, err)
	require.NoError(t, faulty.Launch(k, runtime.Items(1), x, int64(1)<<40), "what fails later is no error of the launch")
	err = faulty.Sync(t.Context())
	lost := errors.Is(err, runtime.ErrDeviceLost)
	assert.True(t, lost || errors.Is(err, runtime.ErrLaunch), "%v", err)
	assert.ErrorContains(t, err, "astray", "the error names what failed")
	assert.EqualError(t, faulty.Err(), err.Error(), "the stream keeps its first error")
	assert.EqualError(t, faulty.Launch(k, runtime.Items(1), x, int64(0)), err.Error())
	assert.EqualError(t, runtime.Fill(faulty, x, int32(1)), err.Error())
	if lost {
		assert.ErrorIs(t, runtime.Fill(d.Stream(), x, int32(1)), runtime.ErrDeviceLost, "on every stream")
		_, err = d.NewStream()
		assert.ErrorIs(t, err, runtime.ErrDeviceLost)
		_, err = d.Alloc(runtime.F32, 1)
		assert.ErrorIs(t, err, runtime.ErrDeviceLost)
	} else {
		require.NoError(t, runtime.Fill(d.Stream(), x, int32(2)), "other streams go on")
		assert.Equal(t, []int32{2}, read[int32](t, x))
	}
	assert.NoError(t, faulty.Close())
	if !lost {
		require.NoError(t, d.Close())
	}
	anew := &device{Device: OpenIn(t, s, name)}
	checkSaxpy(t, anew)
	if lost {
		assert.ErrorIs(t, runtime.Fill(d.Stream(), x, int32(1)), runtime.ErrDeviceLost, "the old one stays lost")
		assert.NoError(t, d.Close())
	}
	anew.end(t)
	require.NoError(t, s.Close())
}
