package memory

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	catalog "github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
)

// BenchmarkReplay measures 20 launches one by one, as a graph, and as a graph with another buffer each time, in turn,
// each with a wait at the end.
func BenchmarkReplay(b *testing.B) {
	session, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	require.NoError(b, err)
	defer func() { require.NoError(b, session.Close()) }()
	d, err := session.Open(b.Context(), "cpu:0")
	require.NoError(b, err)
	m, err := expr.New(expr.Param(0, expr.F32).Mul(expr.Input(0, expr.F32)).Add(expr.Input(1, expr.F32)))
	require.NoError(b, err)
	for _, text := range []struct {
		name, kernel string
		unit         func() (*source.Unit, error)
	}{
		{"native", "saxpy", func() (*source.Unit, error) { return catalog.Unit("saxpy", d.Features()) }},
		{"compiled", "axpy", func() (*source.Unit, error) {
			return source.Parse(`kernel void axpy(float a, global const float *x, global float *y, ulong n) {
				size_t i = get_global_id(0);
				if (i < n) y[i] += a * x[i];
			}`, source.Options{})
		}},
		{"expression", expr.Kernel, func() (*source.Unit, error) { return m.Unit(d.Features(), 0) }},
	} {
		u, err := text.unit()
		require.NoError(b, err)
		p, err := d.Program(b.Context(), u)
		require.NoError(b, err)
		k, err := p.Kernel(text.kernel)
		require.NoError(b, err)
		for _, n := range []int{256, 1024, 4096} {
			b.Run(fmt.Sprintf("%s/%d", text.name, n), func(b *testing.B) { replay(b, d, k, n) })
		}
	}
}

func replay(b *testing.B, d *runtime.Device, k *runtime.Kernel, n int) {
	var bufs [3]*runtime.Buffer
	for i := range bufs {
		var err error
		bufs[i], err = runtime.Upload(b.Context(), d, make([]float32, n))
		require.NoError(b, err)
	}
	x, y, z := bufs[0], bufs[1], bufs[2]
	s := d.Stream()
	work := func(s *runtime.Stream) error {
		for range 20 {
			var err error
			if k.Name() == expr.Kernel {
				err = s.Launch(k, runtime.Items(n), x, y, y, float32(2), uint64(n))
			} else {
				err = s.Launch(k, runtime.Items(n), float32(2), x, y, uint64(n))
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	g, err := s.Capture(work)
	require.NoError(b, err)
	defer g.Close()
	times := map[string][]time.Duration{}
	for b.Loop() {
		for _, way := range []struct {
			name string
			run  func() error
		}{
			{"launched", func() error { return work(s) }},
			{"replayed", func() error { return g.Launch(s) }},
			{"bound", func() error {
				y, z = z, y
				return g.Launch(s, runtime.WithBuffer(bufs[1], z))
			}},
		} {
			start := time.Now()
			require.NoError(b, way.run())
			require.NoError(b, s.Sync(b.Context()))
			times[way.name] = append(times[way.name], time.Since(start))
		}
		require.NoError(b, g.Launch(s)) // as recorded again, before the next round
	}
	launched := float64(median(times["launched"]))
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(launched, "launched-ns")
	b.ReportMetric(float64(median(times["replayed"]))/launched, "replayed")
	b.ReportMetric(float64(median(times["bound"]))/launched, "bound")
}
