package validate

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/tensor"
)

// TestLarge: of two large products and of two large convolutions little enough is judged, and a wrong result is found.
func TestLarge(t *testing.T) {
	for kernel, arg := range map[string]int{"": 0, "gemm_batch": 9, "conv2d": 19} {
		s := wrongAll(t, kernel, arg)
		d := opened(t, s, "cpu:0")
		v, list := started(t, s, Options{})
		scope := tensor.NewScope(d)
		defer scope.Close()
		numbers := func(n int) []float32 {
			list := make([]float32, n)
			for i := range list {
				list[i] = float32(i*7919%257)/257 - 0.5
			}
			return list
		}
		x := tensor.From(scope, numbers(2*256*256), 2, 256, 256)
		_, err := tensor.Read[float32](t.Context(), x.MatMul(x))
		require.NoError(t, err)
		images := tensor.From(scope, numbers(2*16*64*64), 2, 16, 64, 64)
		filters := tensor.From(scope, numbers(16*16*3*3), 16, 16, 3, 3)
		_, err = tensor.Read[float32](t.Context(), tensor.Conv(images, filters, nil,
			tensor.ConvOptions{Stride: []int{2, 2}, Pad: [][2]int{{1, 1}, {1, 1}}}))
		require.NoError(t, err)
		v.Wait()
		stats := v.Stats()
		t.Log(stats)
		assert.Zero(t, stats.Large)
		assert.EqualValues(t, 2, stats.Divided)
		if kernel == "" {
			assert.Empty(t, *list)
		} else if assert.Len(t, *list, 1, kernel) {
			assert.Contains(t, (*list)[0].Kernel, kernel)
		}
	}
}

// TestUnlimited: a Validator that judges all of each result writes files, too.
func TestUnlimited(t *testing.T) {
	s := wrong(t, "saxpy", 2, 3)
	d := opened(t, s, "cpu:0")
	v, list := started(t, s, Options{Work: math.Inf(1), Dir: t.TempDir()})
	k, x, y := saxpy(t, d, 30)
	require.NoError(t, d.Stream().Launch(k, runtime.Items(64), float32(0.5), x, y, uint64(30)))
	v.Wait()
	require.Len(t, *list, 1)
	found := (*list)[0]
	require.NoError(t, found.FileErr)
	again, err := Repeat(t.Context(), d, found.File)
	require.NoError(t, err)
	assert.Equal(t, found.Result, again.Result)
}

// TestNearestToBound: an output without an error is not nearer to its bound than one with some.
func TestNearestToBound(t *testing.T) {
	one, more := []byte{0, 0, 0x80, 0x3f}, []byte{1, 0, 0x80, 0x3f}
	r := Result{Arg: -1}
	require.False(t, r.output(1, "f32", one, one, nil))
	assert.Equal(t, 1, r.Arg)
	require.False(t, r.output(2, "f32", one, more, []float64{1e-6}))
	assert.Equal(t, 2, r.Arg)
	require.False(t, r.output(3, "f32", one, one, []float64{0}))
	assert.Equal(t, 2, r.Arg)
	assert.NotZero(t, r.Verdict.MaxError)
}

// TestWaitAndClose: Wait does not wait for launches after it, and each Close waits until the checks are over.
func TestWaitAndClose(t *testing.T) {
	v, err := newValidator(runtime.Config{}, Options{})
	require.NoError(t, err)
	check := func(read func(ctx context.Context) error) {
		if v.Admit(1) {
			v.Check(&driver.Sample{Bytes: 1, Read: read})
		}
	}
	var on atomic.Bool
	on.Store(true)
	var again func(context.Context) error
	again = func(context.Context) error {
		if on.Load() {
			check(again)
		}
		return runtime.ErrLaunch
	}
	check(again)
	v.Wait() // there is always one more
	on.Store(false)
	next, ends := make(chan error), make(chan bool, 2)
	check(func(context.Context) error { return <-next })
	for range 2 {
		go func() {
			assert.NoError(t, v.Close())
			ends <- true
		}()
	}
	assert.Never(t, func() bool { return len(ends) > 0 }, 20*time.Millisecond, time.Millisecond)
	next <- runtime.ErrLaunch
	<-ends
	<-ends
	assert.False(t, v.Admit(1))
	assert.Zero(t, v.pending)
}

func TestOptions(t *testing.T) {
	s := wrong(t, "", 0, 0)
	for _, o := range []Options{{Every: -1}, {Share: -1}, {Share: math.NaN()}, {Work: -1}, {Work: math.NaN()},
		{Bytes: -1}, {Files: -1}} {
		_, err := Start(s, o)
		assert.ErrorIs(t, err, runtime.ErrInvalidArgument, "%+v", o)
	}
	_, err := Start(nil, Options{})
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	assert.Equal(t, "10 launches, 2 checked, 1 differ, 3 skipped for time, 1 not judged, 0.5 s (the last: why)",
		Stats{Launches: 10, Checked: 2, Differences: 1, Budget: 3, Unjudged: 1, Time: 5e8, Why: "why"}.String())
}
