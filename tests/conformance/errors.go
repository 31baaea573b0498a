package conformance

// Errors: each wrong call has its typed error, changes nothing, and the next good
// call works.

import (
	"math"
	"testing"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var errorChecks = []check{
	{"error/alloc", false, checkAllocErrors},
	{"error/launch", true, checkLaunchErrors},
	{"error/build", true, checkBuildErrors},
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
