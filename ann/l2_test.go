package ann

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

// TestL2Batch compares distances with float64, on every device, for shapes that no block fits.
func TestL2Batch(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	for _, name := range devices {
		dev := open(t, name)
		for _, p := range []Precision{FP32, FP16, INT8, INT8Scaled} {
			for _, s := range [][3]int{{1, 1, 1}, {3, 1025, 7}, {25, 409, 33}} {
				nq, nv, dim := s[0], s[1], s[2]
				corpus, queries := random(r, nv, dim), random(r, nq, dim)
				c, err := UploadCorpus(t.Context(), dev, corpus, dim, p)
				require.NoError(t, err)
				held, asked := stored(p, corpus, corpus), stored(p, corpus, queries)
				for range 2 {
					squared, err := c.L2Batch(t.Context(), queries)
					require.NoError(t, err)
					rooted, err := c.L2SqrtBatch(t.Context(), queries)
					require.NoError(t, err)
					require.Len(t, squared, nq*nv)
					for i, got := range squared {
						want := L2Squared.distance(asked[i/nv*dim:(i/nv+1)*dim], held[i%nv*dim:(i%nv+1)*dim])
						require.InDelta(t, want, got, tolerance(L2Squared, dim, want), fmt.Sprint(name, p, s, i))
						require.Equal(t, float32(math.Sqrt(float64(got))), rooted[i])
					}
				}
				require.NoError(t, c.Close())
				_, err = c.L2Batch(t.Context(), queries)
				assert.ErrorIs(t, err, runtime.ErrClosed)
			}
		}
	}
}

// TestL2Errors makes several mistakes at once: the first in the order of the specification is the error.
func TestL2Errors(t *testing.T) {
	ctx := t.Context()
	x := []float32{1, 2, 3, 4}
	for _, c := range []struct {
		queries, corpus     []float32
		dim, nq, nv, device int
		p                   Precision
		want                error
	}{
		{nil, nil, 0, 0, 0, -1, 9, runtime.ErrDeviceIndex},
		{nil, nil, 0, 0, 0, 99, 9, runtime.ErrDeviceIndex},
		{nil, nil, 0, 0, 0, 0, 9, driver.ErrUnsupportedPrecision},
		{nil, x, 0, 0, 0, 0, FP32, runtime.ErrInvalidArgument},
		{x, x, 0, 1, 1, 0, FP32, runtime.ErrInvalidArgument},
		{x, x, 4, 1, -1, 0, FP32, runtime.ErrInvalidArgument},
		{x, x, 1 << 40, 1 << 40, 1, 0, FP32, runtime.ErrTooLarge},
		{x, x, 4, math.MaxUint32, math.MaxUint32, 0, FP32, runtime.ErrTooLarge},
		{x, x, 3, 1, 1, 0, FP32, runtime.ErrDimension},
		{x, x, 4, 1, 2, 0, FP32, runtime.ErrDimension},
	} {
		_, err := L2Batch(ctx, c.queries, c.corpus, c.dim, c.nq, c.nv, c.device, c.p)
		assert.ErrorIs(t, err, c.want, "%+v", c)
		_, err = L2SqrtBatch(ctx, c.queries, c.corpus, c.dim, c.nq, c.nv, c.device, c.p)
		assert.ErrorIs(t, err, c.want, "%+v", c)
	}
	got, err := L2(ctx, x, []float32{1, 2, 0, 0}, 2, 2, 2)
	require.NoError(t, err)
	assert.Equal(t, []float32{0, 5, 8, 25}, got)
	got, err = L2SqrtBatch(ctx, x, []float32{1, 2, 0, 0}, 2, 2, 2, 0, FP32)
	require.NoError(t, err)
	assert.Equal(t, []float32{0, float32(math.Sqrt(5)), float32(math.Sqrt(8)), 5}, got)
	dev := open(t, "cpu:0")
	_, err = UploadCorpus(ctx, dev, x, 3, FP32)
	assert.ErrorIs(t, err, runtime.ErrDimension)
	_, err = UploadCorpus(ctx, dev, nil, 3, FP32)
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	c, err := UploadCorpus(ctx, dev, x, 2, FP32)
	require.NoError(t, err)
	defer c.Close()
	_, err = c.L2Batch(ctx, x[:3])
	assert.ErrorIs(t, err, runtime.ErrDimension)
	_, err = c.L2Batch(ctx, nil)
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
}
