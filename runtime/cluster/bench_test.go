package cluster

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

// BenchmarkAllReduce measures all-reduces of 64 MiB among virtual members, and in turn with them copies of as much by
// Stream.CopyFrom on the same device. "bus" is 2·(k-1)/k·n bytes for the time of an all-reduce: what each member
// sends. The members share one memory, so that "moved" is the rate at which all of them together receive.
func BenchmarkAllReduce(b *testing.B) {
	const n = 16 << 20
	for _, size := range []int{2, 4} {
		for _, by := range []Algorithm{Ring, Direct} {
			b.Run(fmt.Sprintf("%d/%v", size, by), func(b *testing.B) {
				g := virtual(b, size, Options{Algorithm: by})
				ctx := context.Background()
				buffers := make([]*runtime.Buffer, size)
				for i, m := range g.Members() {
					x, err := runtime.Upload(ctx, m.Device(), make([]float32, n))
					require.NoError(b, err)
					defer x.Close()
					buffers[i] = x
				}
				reduce := func() time.Duration {
					start := time.Now()
					require.NoError(b, g.Do(ctx, func(ctx context.Context, m *Member) error {
						x := buffers[m.Rank()]
						if err := m.AllReduce(ctx, nil, Sum, x, x); err != nil {
							return err
						}
						return m.Stream().Sync(ctx)
					}))
					return time.Since(start)
				}
				s := g.Members()[0].Stream()
				duplicate := func() time.Duration {
					start := time.Now()
					require.NoError(b, s.CopyFrom(ctx, buffers[1], buffers[0], nil))
					require.NoError(b, s.Sync(ctx))
					return time.Since(start)
				}
				reduce()
				duplicate()
				var reduced, copied time.Duration
				for b.Loop() {
					reduced += reduce()
					copied += duplicate()
				}
				rate := float64(4*n*b.N) / float64(copied.Nanoseconds())
				bus := 2 * float64(size-1) / float64(size) * float64(4*n*b.N) / float64(reduced.Nanoseconds())
				b.ReportMetric(rate, "copy-GB/s")
				b.ReportMetric(bus, "bus-GB/s")
				b.ReportMetric(bus*float64(size), "moved-GB/s")
				b.ReportMetric(bus/rate, "bus/copy")
				b.ReportMetric(bus*float64(size)/rate, "moved/copy")
			})
		}
	}
}

// BenchmarkSmall measures what a collective of one number costs.
func BenchmarkSmall(b *testing.B) {
	for _, size := range []int{1, 2, 4, 8} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			g := virtual(b, size, Options{})
			ctx := context.Background()
			require.NoError(b, g.Do(ctx, func(ctx context.Context, m *Member) error {
				x, err := runtime.Alloc[float32](m.Device(), 1)
				if err != nil {
					return err
				}
				defer x.Close()
				for range b.N {
					if err := m.AllReduce(ctx, nil, Sum, x, x); err != nil {
						return err
					}
				}
				return m.Stream().Sync(ctx)
			}))
		})
	}
}
