package cluster

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

// router returns a Router between cpu:0 and the float64 reference, by a clock that work sets.
func router(t *testing.T) (*Router, *clock) {
	t.Helper()
	r, err := NewRouter(open(t, "cpu:0"), open(t, "cpu:reference"))
	require.NoError(t, err)
	c := &clock{}
	r.now = c.now
	return r, c
}

// costs is work that takes a time by its size, on the near device and on the far one.
func (c *clock) costs(r *Router, size int, near, far time.Duration) func(context.Context, *runtime.Device) error {
	return func(_ context.Context, dev *runtime.Device) error {
		if dev == r.far {
			c.pass(20*time.Microsecond + time.Duration(size)*far)
		} else {
			c.pass(time.Duration(size) * near)
		}
		return nil
	}
}

// TestRouterLearns has a far device that begins later and is faster: the threshold comes to the size where both take as
// long, and nearly all problems go where they are done first.
func TestRouterLearns(t *testing.T) {
	for _, test := range []struct {
		near, far time.Duration // of an element
		least     int           // the threshold
		most      int
	}{
		{100, 10, 128, 700},          // both take as long at 222 elements
		{10, 1, 1200, 4500},          // at 2222
		{10, 20, 1 << 16, 1<<16 + 1}, // never
		{1000, 1, 0, 128},            // at 20, within the first bucket
	} {
		r, c := router(t)
		late := 0
		for i := range 4000 {
			size := 1 << (i * 7 % 17)
			d, err := r.Run(t.Context(), "op", size, c.costs(r, size, test.near, test.far))
			require.NoError(t, err)
			near, far := time.Duration(size)*test.near, 20*time.Microsecond+time.Duration(size)*test.far
			wrong := (d.Device == r.far) != (near > far) && max(near, far) > 2*min(near, far)
			if i >= 2000 && size >= 128 && !d.Explores && wrong {
				late++
			}
		}
		d := r.Decide("op", 1)
		assert.True(t, d.Learned)
		assert.GreaterOrEqual(t, d.Threshold, test.least, test)
		assert.LessOrEqual(t, d.Threshold, test.most, test)
		assert.Less(t, late, 20, "%v: problems where they take twice as long", test)
	}
}

// TestRouterRule follows the numbers of the rule: how many samples, of which buckets, and how far a threshold moves.
func TestRouterRule(t *testing.T) {
	r, _ := router(t)
	tell := func(size int, dev *runtime.Device, took time.Duration, times int) {
		for range times {
			r.Measured("op", size, dev, took)
		}
	}
	threshold := func() int { return r.Decide("op", 1).Threshold }
	tell(4096, r.near, 110, 9)
	tell(4096, r.far, 100, 10)
	assert.Equal(t, 1024, threshold(), "19 samples")
	tell(4096, r.far, 100, 1)
	assert.Equal(t, 3174, threshold(), "1.1 times as fast is enough: 0.7 of 4096 and 0.3 of 1024")
	before := threshold()
	tell(4096, r.far, 100, 9)
	assert.Equal(t, before, threshold(), "9 samples since")

	r, _ = router(t)
	tell(1<<20, r.near, 100, 18)
	tell(1<<20, r.far, 1, 2)
	assert.Equal(t, 1024, threshold(), "two samples of the far device")
	assert.False(t, r.Decide("op", 1).Learned)

	r, _ = router(t)
	tell(3000, r.near, 109, 10)
	tell(3000, r.far, 100, 10)
	assert.Equal(t, 3001, threshold(), "less than 1.1 times as fast is never faster")
	tell(1<<20, r.near, 100, 5)
	tell(1<<20, r.far, 10, 5)
	assert.Equal(t, 734903, threshold(), "from a bucket on: 0.7 of 2^20 and 0.3 of 3001")

	assert.Equal(t, []int{0, 0, 0, 1, 1, 2},
		[]int{bucket(0), bucket(64), bucket(127), bucket(128), bucket(255), bucket(256)})
	assert.Equal(t, []int{0, 128, 256}, []int{smallest(0), smallest(1), smallest(2)})
	assert.NotPanics(t, func() { tell(1<<62, r.near, 1, 10) })
}

// TestRouterExplores sends one problem in 64 to the other device, none once it is frozen, and none that failed is
// measured.
func TestRouterExplores(t *testing.T) {
	r, c := router(t)
	few := r.op("few")
	for range 24 {
		_, err := r.Run(t.Context(), "few", 10, c.costs(r, 10, 1, 1))
		require.NoError(t, err)
	}
	assert.Len(t, few.buckets[0].times[1], 3, "one in 8")
	r.op("op").buckets[0].times[1] = []time.Duration{time.Hour, time.Hour, time.Hour}
	explored := 0
	for range 640 {
		d, err := r.Run(t.Context(), "op", 10, c.costs(r, 10, 1, 1))
		require.NoError(t, err)
		assert.Equal(t, d.Explores, d.Device == r.far)
		if d.Explores {
			explored++
		}
	}
	assert.Equal(t, 10, explored)
	r.Freeze(true)
	before := *r.ops["op"]
	for range 128 {
		d, err := r.Run(t.Context(), "op", 10, c.costs(r, 10, 1, 1))
		require.NoError(t, err)
		assert.False(t, d.Explores)
	}
	assert.Equal(t, before, *r.ops["op"])
	r.Freeze(false)
	failed := errors.New("planted")
	_, err := r.Run(t.Context(), "fails", 10, func(context.Context, *runtime.Device) error { return failed })
	assert.Equal(t, failed, err)
	assert.Zero(t, r.ops["fails"].samples)
	_, err = r.Run(t.Context(), "op", -1, c.costs(r, 1, 1, 1))
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	_, err = NewRouter(r.near, r.near)
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	_, err = NewRouter(nil, r.near)
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
}

// TestRouterSaves has another Router decide as this one does, unless its devices are others.
func TestRouterSaves(t *testing.T) {
	r, c := router(t)
	for i := range 2000 {
		size := 1 << (i % 17)
		_, err := r.Run(t.Context(), "op", size, c.costs(r, size, 100, 1))
		require.NoError(t, err)
	}
	var text bytes.Buffer
	require.NoError(t, r.Save(&text))
	other, _ := router(t)
	require.NoError(t, other.Load(bytes.NewReader(text.Bytes())))
	assert.Equal(t, r.ops["op"].threshold, other.ops["op"].threshold)
	assert.True(t, other.Decide("op", 3).Learned)
	turned, err := NewRouter(r.far, r.near)
	require.NoError(t, err)
	assert.ErrorIs(t, turned.Load(bytes.NewReader(text.Bytes())), runtime.ErrInvalidArgument)
	for _, damaged := range []string{"", "{", strings.Replace(text.String(), ": 1", ": -1", 1)} {
		err := other.Load(strings.NewReader(damaged))
		if damaged != text.String() {
			assert.ErrorIs(t, err, runtime.ErrInvalidArgument, damaged)
		}
	}
	assert.Equal(t, "cpu:0: size 3 is less than 1024, not measured yet",
		Decision{Device: r.near, Size: 3, Threshold: 1024}.String())
	assert.Equal(t, "cpu:0: size 3 is at least 2, as measured; the other device, all the same",
		Decision{Device: r.near, Size: 3, Threshold: 2, Learned: true, Explores: true}.String())
}

// TestRouterAtOnce is for the race detector.
func TestRouterAtOnce(t *testing.T) {
	r, c := router(t)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 200 {
				size := 1 << ((i + w) % 17)
				_, err := r.Run(t.Context(), "op", size, c.costs(r, size, 10, 1))
				assert.NoError(t, err)
				if i%50 == 0 {
					assert.NoError(t, r.Save(new(bytes.Buffer)))
				}
			}
		})
	}
	wg.Wait()
}
