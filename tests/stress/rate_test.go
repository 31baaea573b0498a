package stress

// Rates of user kernels on cpu:0, which show how well the host compiler optimizes the item loops,
// with and without fibers. Benchmarks only; go test -bench Rate ./tests/stress

import (
	"fmt"
	"io/fs"
	"testing"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
	"github.com/stretchr/testify/require"
)

const rateText = `
kernel void saxpy(float a, global const float *x, global float *y, ulong n) {
  size_t i = get_global_id(0);
  if (i < n) y[i] = a * x[i] + y[i];
}
kernel void stencil(global const float *in, global float *out, int w, int h) {
  int x = get_global_id(0), y = get_global_id(1);
  if (x > 0 && x < w - 1 && y > 0 && y < h - 1) {
    int i = y * w + x;
    out[i] = 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - w] + in[i + w]);
  }
}
kernel void twice(global const float *in, global float *out, int w) {
  int i = get_global_id(1) * w + get_global_id(0);
  out[i] = 2 * in[i] + 1;
}
kernel void total(global const float *x, global float *y, uint n, local float *t) {
  uint l = get_local_id(0);
  float s = 0;
  for (uint i = get_group_id(0) * 65536 + l, end = min(n, (uint)get_group_id(0) * 65536 + 65536); i < end; i += get_local_size(0))
    s += x[i];
  t[l] = s;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint w = get_local_size(0) / 2; w > 0; w /= 2) {
    if (l < w) t[l] += t[l + w];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (l == 0) y[get_group_id(0)] = t[0];
}
#define T 16
kernel void tile(int m, int n, int k, global const float *a, global const float *b, global float *c) {
  local float as[T][T], bs[T][T];
  const int tx = get_local_id(0), ty = get_local_id(1);
  const int col = get_global_id(0), row = get_global_id(1);
  float acc = 0;
  for (int t = 0; t < (k + T - 1) / T; t++) {
    const int ac = t * T + tx, br = t * T + ty;
    as[ty][tx] = row < m && ac < k ? a[row * k + ac] : 0;
    bs[ty][tx] = br < k && col < n ? b[br * n + col] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = 0; e < T; e++) acc += as[ty][e] * bs[e][tx];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (row < m && col < n) c[row * n + col] = acc;
}
`

// forced returns the definition that forces fibers, or none.
func forced(fibers bool) []source.Define {
	if fibers {
		return []source.Define{{Name: "CONCORD_HOST_FIBERS", Value: "1"}}
	}
	return nil
}

func rateDevice(b testing.TB) *runtime.Device {
	d, err := runtime.Open(b.Context(), "cpu:0")
	require.NoError(b, err)
	b.Cleanup(func() { d.Close() })
	return d
}

func build(b testing.TB, d *runtime.Device, u *source.Unit) *runtime.Program {
	p, err := d.Program(b.Context(), u)
	require.NoError(b, err)
	b.Cleanup(func() { p.Close() })
	return p
}

// catalog returns the portable text of a family, whose native implementation is not used.
func catalog(b testing.TB, id, typ string, fibers bool) *source.Unit {
	u, err := kernels.Unit(id, nil, source.Define{Name: "T", Value: typ})
	require.NoError(b, err)
	text, err := fs.ReadFile(kernels.Sources(), id+".cl")
	require.NoError(b, err)
	v, err := source.Parse(string(text), source.Options{
		Name: id + ".cl", Defines: append(u.Defines(), forced(fibers)...), Includes: []fs.FS{kernels.Sources()},
	})
	require.NoError(b, err)
	return v
}

func rate(b *testing.B, d *runtime.Device, k *runtime.Kernel, g runtime.Grid, per float64, unit string, args ...any) {
	launch := func() {
		require.NoError(b, d.Stream().Launch(k, g, args...))
		require.NoError(b, d.Sync(b.Context()))
	}
	launch()
	for b.Loop() {
		launch()
	}
	b.ReportMetric(per/b.Elapsed().Seconds()*float64(b.N)/1e9, unit)
}

func floats(b testing.TB, d *runtime.Device, n int) *runtime.Buffer {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i%17) / 16
	}
	buf, err := runtime.Upload(b.Context(), d, x)
	require.NoError(b, err)
	b.Cleanup(func() { buf.Close() })
	return buf
}

func BenchmarkRate(b *testing.B) {
	d := rateDevice(b)
	for _, fibers := range []bool{false, true} {
		u, err := source.Parse(rateText, source.Options{Name: "rate.cl", Defines: forced(fibers)})
		require.NoError(b, err)
		p := build(b, d, u)
		form := map[bool]string{false: "cut", true: "fibers"}[fibers]
		kernel := func(p *runtime.Program, name string) *runtime.Kernel {
			k, err := p.Kernel(name)
			require.NoError(b, err)
			return k
		}
		if !fibers {
			native, err := kernels.Unit("saxpy", nil, source.Define{Name: "T", Value: "f32"})
			require.NoError(b, err)
			pn := build(b, d, native)
			for _, n := range []int{1 << 12, 1 << 16, 1 << 18, 1 << 20, 1 << 26} {
				x, y := floats(b, d, n), floats(b, d, n)
				for _, v := range []struct {
					name string
					p    *runtime.Program
				}{{"user", p}, {"built-in", pn}} {
					b.Run(fmt.Sprintf("saxpy/%d/%s", n, v.name), func(b *testing.B) {
						rate(b, d, kernel(v.p, "saxpy"), runtime.Items(n), float64(12*n), "GB/s", float32(0), x, y, uint64(n))
					})
				}
			}
			for _, size := range [][2]int{{10, 2097143}, {16, 2097152}, {13, 1000003}, {101, 100003}, {112, 100096},
				{1009, 10007}, {1024, 10112}, {2097143, 10}, {2097152, 10}} {
				in, out := floats(b, d, size[0]*size[1]), floats(b, d, size[0]*size[1])
				b.Run(fmt.Sprintf("items/%dx%d", size[0], size[1]), func(b *testing.B) {
					rate(b, d, kernel(p, "twice"), runtime.Items(size[0], size[1]), float64(8*size[0]*size[1]), "GB/s", in, out,
						int32(size[0]))
				})
			}
			for _, n := range []int{256, 4096} {
				in, out := floats(b, d, n*n), floats(b, d, n*n)
				b.Run(fmt.Sprintf("stencil/%d", n), func(b *testing.B) {
					rate(b, d, kernel(p, "stencil"), runtime.Items(n, n), float64(8*n*n), "GB/s", in, out, int32(n), int32(n))
				})
			}
		}
		for _, n := range []int{1 << 20, 1 << 24} {
			x, y := floats(b, d, n), floats(b, d, n/65536)
			b.Run(fmt.Sprintf("total/%d/%s", n, form), func(b *testing.B) {
				rate(b, d, kernel(p, "total"), runtime.Items(n/65536*256).InGroups(256), float64(4*n), "GB/s", x, y, uint32(n),
					runtime.Local(1024))
			})
		}
		n := 512
		x, y, z := floats(b, d, n*n), floats(b, d, n*n), floats(b, d, n*n)
		b.Run("tile/"+form, func(b *testing.B) {
			rate(b, d, kernel(p, "tile"), runtime.Items(n, n).InGroups(16, 16), 2*float64(n*n*n), "GFLOP/s", int32(n), int32(n),
				int32(n), x, y, z)
		})
		pg := build(b, d, catalog(b, "gemm", "f32", fibers))
		b.Run("gemm/"+form, func(b *testing.B) {
			rate(b, d, kernel(pg, "gemm"), runtime.Items(n/8, n/8).InGroups(8, 8), 2*float64(n*n*n), "GFLOP/s",
				uint32(n), uint32(n), uint32(n), float32(1), x, uint32(n), y, uint32(n), float32(0), z, uint32(n))
		})
		pr := build(b, d, catalog(b, "reduce", "f32", fibers))
		rows, long := 1024, 4096
		in, out := floats(b, d, rows*long), floats(b, d, rows)
		for _, name := range []string{"reduce_sum", "reduce_max"} {
			b.Run(name+"/"+form, func(b *testing.B) {
				rate(b, d, kernel(pr, name), runtime.Items(rows*128).InGroups(128), float64(4*rows*long), "GB/s",
					in, out, uint32(rows), uint32(long), uint32(1))
			})
		}
	}
}
