package profile

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestRoof(t *testing.T) {
	r := Roof{MemoryGBs: 20, GFLOPS: 100}
	for _, c := range []struct {
		roof         Roof
		flops, bytes float64
		ns           time.Duration
		bound        Bound
	}{
		{r, 1e6, 12e6, 600000, MemoryBound}, // vector addition: 1 operation on 12 bytes
		{r, 2e9, 12e6, 2e7, ComputeBound},
		{r, 500, 100, 5, ComputeBound}, // at the ridge
		{r, 0, 100, 5, MemoryBound},
		{r, 100, 0, 1, ComputeBound},
		{r, 0, 0, 0, UnknownBound},
		{r, -1, 5, 0, UnknownBound},
		{r, math.NaN(), 5, 0, UnknownBound},
		{r, 1, math.Inf(1), 0, UnknownBound},
		{r, math.MaxFloat64, 1, 0, UnknownBound},
		{Roof{MemoryGBs: 20}, 0, 100, 5, MemoryBound},
		{Roof{MemoryGBs: 20}, 1, 100, 0, UnknownBound}, // it may take longer than the bytes
		{Roof{GFLOPS: 100}, 100, 1, 0, UnknownBound},
		{Roof{GFLOPS: math.NaN(), MemoryGBs: 1}, 1, 1, 0, UnknownBound},
	} {
		ns, bound := c.roof.Limit(c.flops, c.bytes)
		assert.Equal(t, c.ns, ns, "%+v", c)
		assert.Equal(t, c.bound, bound, "%+v", c)
	}
	assert.Equal(t, "memory 20 GB/s, float32 100 GFLOP/s, float64 unknown, launch 5.1 µs",
		Roof{MemoryGBs: 20, GFLOPS: 100, LaunchNs: 5100}.String())
}
