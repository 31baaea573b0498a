package memory

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/mempool"
)

// BenchmarkMemory is what memory costs from the pool, as a block and as a buffer, and
// what it costs by the driver: there the first use belongs to it, since many drivers
// allocate only then, and a use of memory that is there is subtracted. All are measured
// in turn, and the medians are told, as a use takes longer than what is asked.
func BenchmarkMemory(b *testing.B) {
	for _, size := range []int64{4 << 10, 1 << 20, 16 << 20} {
		b.Run(driver.FormatBytes(size), func(b *testing.B) {
			devices(b, func(tb testing.TB, d *runtime.Device) { compare(tb.(*testing.B), d, size) })
		})
	}
}

const some = 32 // one is too short for the clock

func compare(b *testing.B, d *runtime.Device, size int64) {
	dev := d.Driver()
	s, err := dev.NewStream()
	require.NoError(b, err)
	defer s.Close()
	touch := func(m driver.Memory) {
		require.NoError(b, s.Fill(m, []byte{1, 2, 3, 4}))
		require.NoError(b, s.Sync(b.Context()))
	}
	kept, err := dev.Alloc(size, driver.OnDevice)
	require.NoError(b, err)
	touch(kept)
	p := mempool.New(dev, mempool.Options{Mode: mempool.Exact})
	var use, all, block, buffer []time.Duration
	for b.Loop() {
		t0 := time.Now()
		touch(kept)
		t1 := time.Now()
		m, err := dev.Alloc(size, driver.OnDevice)
		require.NoError(b, err)
		touch(m)
		require.NoError(b, dev.Free(m))
		t2 := time.Now()
		for range some {
			if x, err := p.Get(size, driver.OnDevice, nil); err != nil || p.Put(x.ID, nil, 0) != nil {
				b.Fatal(err)
			}
		}
		t3 := time.Now()
		for range some {
			x, err := d.Alloc(runtime.U8, int(size))
			if err != nil {
				b.Fatal(err)
			}
			x.Close()
		}
		use, all = append(use, t1.Sub(t0)), append(all, t2.Sub(t1))
		block, buffer = append(block, t3.Sub(t2)/some), append(buffer, time.Since(t3)/some)
	}
	require.NoError(b, dev.Free(kept))
	require.NoError(b, p.Close())
	byDriver, byPool := median(all)-median(use), median(block)
	b.ReportMetric(0, "ns/op") // of all three, which says nothing
	b.ReportMetric(float64(byDriver), "driver-ns")
	b.ReportMetric(float64(byPool), "block-ns")
	b.ReportMetric(float64(median(buffer)), "buffer-ns")
	b.ReportMetric(float64(byDriver)/float64(byPool), "times")
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
