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

// BenchmarkMemory measures the time to allocate and free memory: a block of the pool, a buffer, and
// memory of the driver. For the driver the time includes the first use, since many drivers allocate
// only then, and the time of using existing memory is subtracted. The three are measured in turn, a
// few at a time, and the results are medians, because waiting for a device takes longer and varies
// by more than the times to be measured.
func BenchmarkMemory(b *testing.B) {
	for _, size := range []int64{4 << 10, 1 << 20, 16 << 20} {
		b.Run(driver.FormatBytes(size), func(b *testing.B) {
			devices(b, func(tb testing.TB, d *runtime.Device) { compare(tb.(*testing.B), d, size) })
		})
	}
}

func compare(b *testing.B, d *runtime.Device, size int64) {
	some := int(min(32, max(4, 64<<20/size)))
	// small sizes are requested often, so that the processor's caches are warm
	rounds := int(max(1, 1<<20/(size*int64(some))))
	dev := d.Driver()
	s, err := dev.NewStream()
	require.NoError(b, err)
	defer s.Close()
	touch := func(list []driver.Memory) {
		for _, m := range list {
			require.NoError(b, s.Fill(m, []byte{1, 2, 3, 4}))
		}
		require.NoError(b, s.Sync(b.Context()))
	}
	kept, fresh := make([]driver.Memory, some), make([]driver.Memory, some)
	alloc := func(list []driver.Memory) {
		for i := range list {
			m, err := dev.Alloc(size, driver.OnDevice)
			require.NoError(b, err)
			list[i] = m
		}
	}
	free := func(list []driver.Memory) {
		for _, m := range list {
			require.NoError(b, dev.Free(m))
		}
	}
	alloc(kept)
	defer free(kept)
	p := mempool.New(dev, mempool.Options{Mode: modeOf(b, d)})
	blocks, buffers := make([]mempool.Block, some), make([]*runtime.Buffer, some)
	var use, all, block, buffer []time.Duration
	for b.Loop() {
		touch(kept) // wakes the device up; otherwise the first of two uses takes longer
		t0 := time.Now()
		for range rounds {
			touch(kept)
		}
		t1 := time.Now()
		for range rounds {
			alloc(fresh)
			touch(fresh)
			free(fresh)
		}
		t2 := time.Now()
		for range rounds {
			for i := range blocks {
				if blocks[i], err = p.Get(size, driver.OnDevice, nil); err != nil {
					b.Fatal(err)
				}
			}
			for _, x := range blocks {
				if err := p.Put(x.ID, nil, 0); err != nil {
					b.Fatal(err)
				}
			}
		}
		t3 := time.Now()
		for range rounds {
			for i := range buffers {
				if buffers[i], err = d.Alloc(runtime.U8, int(size)); err != nil {
					b.Fatal(err)
				}
			}
			for _, x := range buffers {
				x.Close()
			}
		}
		t4 := time.Now()
		use, all = append(use, t1.Sub(t0)), append(all, t2.Sub(t1))
		block, buffer = append(block, t3.Sub(t2)), append(buffer, t4.Sub(t3))
	}
	require.NoError(b, p.Close())
	each := func(d []time.Duration) float64 { return float64(median(d)) / float64(some*rounds) }
	byDriver, byPool := each(all)-each(use), each(block)
	b.ReportMetric(0, "ns/op") // the time of all three together has no meaning
	b.ReportMetric(byDriver, "driver-ns")
	b.ReportMetric(byPool, "block-ns")
	b.ReportMetric(each(buffer), "buffer-ns")
	b.ReportMetric(byDriver/byPool, "times")
}

// modeOf returns the mode of the device's pool.
func modeOf(b *testing.B, d *runtime.Device) mempool.Mode {
	require.NoError(b, d.Memory().Record(true))
	pools := d.Memory().Trace().Pools
	require.NoError(b, d.Memory().Record(false))
	return pools[len(pools)-1].Mode
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
