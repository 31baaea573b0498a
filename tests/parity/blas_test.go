package parity

import (
	"strings"
	"testing"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/parity"
	"github.com/concord-compute/concord/tests/sim"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// vendors are the simulated devices with a BLAS.
var vendors = []struct{ device, library, blas, portable string }{
	{"sim-cuda:0", "libcublas.so.12", "cublas", "cuda"},
	{"sim-rocm:0", "librocblas.so.4", "rocblas", "hip"},
}

// withBLAS runs f for every simulated device whose libraries are built.
func withBLAS(t *testing.T, f func(t *testing.T, s *runtime.Session, device, blas, portable string)) {
	for _, v := range vendors {
		t.Run(v.device, func(t *testing.T) {
			backend, _, _ := strings.Cut(v.device, ":")
			s, err := runtime.New(runtime.Config{Fallback: runtime.Require, SimDir: sim.Dir(t, "../..", backend, v.library)})
			require.NoError(t, err)
			defer func() { assert.NoError(t, s.Close()) }()
			d, err := s.Open(t.Context(), v.device)
			if err != nil {
				sim.Absent(t, backend, err.Error())
			}
			require.NoError(t, d.Close())
			f(t, s, v.device, v.blas, v.portable)
		})
	}
}

// TestBLAS: the vendor's BLAS computes every product of the catalog that it supports, within the
// same bounds as the portable text.
func TestBLAS(t *testing.T) {
	withBLAS(t, func(t *testing.T, s *runtime.Session, device, blas, _ string) {
		results, err := parity.Run(t.Context(), parity.Options{Session: s, Devices: []string{device},
			Kernels: []string{"gemm"},
			Keep:    func(c *kernels.Case) bool { return c.DType != "bf16" || small(c) }})
		require.NoError(t, err)
		native, passed, refused := device+" (native)", map[string]int{}, 0
		for _, r := range results {
			switch r.Verdict {
			case parity.Fail:
				t.Errorf("%+v", r)
			case parity.Pass:
				passed[r.DType+" "+r.Device]++
			case parity.Skip:
				assert.Equal(t, native, r.Device)
				assert.Contains(t, r.Reason, blas+" computes no product")
				refused++
			}
		}
		for _, typ := range []string{"f32", "f64", "f16"} {
			assert.Positive(t, passed[typ+" "+device])
			assert.Positive(t, passed[typ+" "+native])
		}
		assert.Positive(t, passed["bf16 "+device])
		assert.Zero(t, passed["bf16 "+native], "not its type")
		assert.Equal(t, 5, refused, "sizes of 0, and alpha 0")
		t.Log(passed)
	})
}

// TestBLASChoice: the record says which of the two implementations ran, and a program can request
// either.
func TestBLASChoice(t *testing.T) {
	withBLAS(t, func(t *testing.T, s *runtime.Session, device, blas, portable string) {
		d, err := s.Open(t.Context(), device)
		require.NoError(t, err)
		defer d.Close()
		unit, err := kernels.Unit("gemm", d.Features())
		require.NoError(t, err)
		run := func(impl runtime.Implementation, n, k, room int) (string, error) {
			p, err := d.Program(t.Context(), unit, runtime.ProgramOptions{Implementation: impl})
			require.NoError(t, err)
			defer p.Close()
			kernel, err := p.Kernel("gemm")
			require.NoError(t, err)
			stream, err := d.NewStream()
			require.NoError(t, err)
			defer stream.Close()
			m, err := d.Alloc(runtime.F32, room)
			require.NoError(t, err)
			defer m.Close()
			c, err := d.Alloc(runtime.F32, n*n)
			require.NoError(t, err)
			defer c.Close()
			items, group, err := kernels.Geometry(unit, "gemm", n, n)
			require.NoError(t, err)
			rec, err := stream.Run(t.Context(), kernel, runtime.Grid{Items: items, Group: group},
				n, n, k, float32(1), m, k, m, n, float32(0), c, n)
			return rec.Implementation, err
		}
		for _, want := range []struct {
			ran  string
			impl runtime.Implementation
			n, k int
		}{
			{blas, runtime.Fastest, 64, 64}, {portable, runtime.Fastest, 63, 64}, {portable, runtime.Fastest, 8, 0},
			{blas, runtime.Native, 8, 8}, {portable, runtime.Portable, 64, 64},
		} {
			ran, err := run(want.impl, want.n, want.k, 64*64)
			require.NoError(t, err)
			assert.Equal(t, want.ran, ran, "%+v", want)
		}
		_, err = run(runtime.Native, 8, 0, 64)
		assert.ErrorIs(t, err, runtime.ErrUnsupported, "no product of the library")
		_, err = run(runtime.Fastest, 64, 64, 64*64-1)
		assert.ErrorIs(t, err, runtime.ErrBufferOverflow)
	})
}

// TestBLASGraph records products of both kinds in one graph.
func TestBLASGraph(t *testing.T) {
	withBLAS(t, func(t *testing.T, s *runtime.Session, device, _, _ string) {
		d, err := s.Open(t.Context(), device)
		require.NoError(t, err)
		defer d.Close()
		unit, err := kernels.Unit("gemm", d.Features())
		require.NoError(t, err)
		p, err := d.Program(t.Context(), unit)
		require.NoError(t, err)
		defer p.Close()
		kernel, err := p.Kernel("gemm")
		require.NoError(t, err)
		stream, err := d.NewStream()
		require.NoError(t, err)
		defer stream.Close()
		const n = 64
		ones := make([]float32, n*n)
		for i := range ones {
			ones[i] = 1
		}
		var m [3]*runtime.Buffer
		for i := range m {
			m[i], err = runtime.Upload(t.Context(), d, ones)
			require.NoError(t, err)
			defer m[i].Close()
		}
		items, group, err := kernels.Geometry(unit, "gemm", n, n)
		require.NoError(t, err)
		multiply := func(s *runtime.Stream, size int, beta float32) error {
			return s.Launch(kernel, runtime.Grid{Items: items, Group: group}, size, size, size, float32(1), m[0], n, m[1], n,
				beta, m[2], n)
		}
		g, err := stream.Capture(func(s *runtime.Stream) error {
			if err := multiply(s, n, 0); err != nil { // computed by the library: 64 everywhere
				return err
			}
			return multiply(s, 8, 2) // computed by the portable text: 2*64 + 8 in a corner
		})
		require.NoError(t, err)
		defer g.Close()
		for range 2 {
			require.NoError(t, g.Launch(stream))
			require.NoError(t, stream.Sync(t.Context()))
			got := make([]float32, n*n)
			require.NoError(t, runtime.Read(t.Context(), m[2], got))
			assert.Equal(t, float32(136), got[7*n+7])
			assert.Equal(t, float32(64), got[8*n+7])
		}
	})
}
