//go:build cgo && opencl && (linux || darwin)

package opencl

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-gl/cl/v1.2/cl"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

const programText = `
kernel void saxpy(float a, global const float *x, global float *y, int n) {
  int i = get_global_id(0);
  if (i < n) y[i] = a * x[i] + y[i];
}
kernel void set(global int *out, int value) { out[get_global_id(0)] = value; }
kernel void nothing(global int *out) {}
kernel void sum(global const int *in, global int *out, local int *part) {
  int l = get_local_id(0);
  part[l] = in[get_global_id(0)];
  for (int n = get_local_size(0) / 2; n > 0; n /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < n) part[l] += part[l + n];
  }
  if (l == 0) out[get_group_id(0)] = part[0];
}
kernel void places(global int *out, int4 v) {
  int i = get_global_id(0) + get_global_size(0) * (get_global_id(1) + get_global_size(1) * get_global_id(2));
  out[i] = get_local_id(0) + 10 * get_local_id(1) + 100 * get_local_id(2) + 1000 * v.w;
}
kernel void copy(global const uchar *a, constant uchar *b, global uchar *c) {
  int i = get_global_id(0);
  c[i] = a[i] + b[i];
}
kernel __attribute__((reqd_work_group_size(4, 1, 1))) void four(global int *out) { out[get_global_id(0)] = 4; }
`

func TestLaunch(t *testing.T) {
	d := open(t)
	s := newStream(t, d)
	m := load(t, d, programText)
	const n = 1000
	x, y := alloc(t, d, 4*n), alloc(t, d, 4*n)
	xs, ys := make([]float32, n), make([]float32, n)
	for i := range xs {
		xs[i], ys[i] = float32(i), float32(-i)
	}
	upload(t, s, x, xs)
	upload(t, s, y, ys)
	require.NoError(t, s.Launch(launch(kernelOf(t, m, "saxpy"), 1024, 32, float32(3), x, y, int32(n))))
	for i, v := range download[float32](t, s, y) {
		require.Equal(t, float32(2*i), v)
	}
}

func TestLocalArguments(t *testing.T) {
	d := open(t)
	s := newStream(t, d)
	m := load(t, d, programText)
	in, out := alloc(t, d, 4*256), alloc(t, d, 4*4)
	v := make([]int32, 256)
	want := make([]int32, 4)
	for i := range v {
		v[i] = int32(i)
		want[i/64] += int32(i)
	}
	upload(t, s, in, v)
	require.NoError(t, s.Launch(launch(kernelOf(t, m, "sum"), 256, 64, in, out, localBytes(256))))
	assert.Equal(t, want, download[int32](t, s, out))
}

func TestThreeDimensions(t *testing.T) {
	d := open(t)
	s := newStream(t, d)
	out := alloc(t, d, 4*4*6*2)
	l := launch(kernelOf(t, load(t, d, programText), "places"), 1, 1, out, [4]int32{1, 2, 3, 4})
	l.Dim, l.Global, l.Local = 3, [3]int{4, 6, 2}, [3]int{2, 3, 1}
	require.NoError(t, s.Launch(l))
	for i, v := range download[int32](t, s, out) {
		require.EqualValues(t, i%2+10*(i/4%3)+4000, v, "item %d", i)
	}
}

func TestRefusedLaunch(t *testing.T) {
	d := open(t)
	s := newStream(t, d)
	m := load(t, d, programText)
	out := alloc(t, d, 4*64)
	err := s.Launch(launch(kernelOf(t, m, "four"), 64, 8, out))
	require.ErrorIs(t, err, driver.ErrLaunch)
	assert.ErrorIs(t, err, driver.ErrInvalidArgument)
	assert.Regexp(t, `opencl:0: launch four: CL_INVALID_WORK_GROUP_SIZE: .*\(code -54\)`, err.Error())

	err = s.Launch(launch(kernelOf(t, m, "set"), 64, 8, out, float64(1)))
	require.ErrorIs(t, err, driver.ErrInvalidArgument)
	assert.Contains(t, err.Error(), "launch set: argument 1: CL_INVALID_ARG_SIZE")
	var op *driver.OpError
	require.ErrorAs(t, err, &op)
	assert.Equal(t, -51, op.Code)

	assert.NoError(t, s.Err(), "a launch that was refused is no failure of the stream")
	require.NoError(t, s.Launch(launch(kernelOf(t, m, "four"), 64, 4, out)))
	assert.EqualValues(t, 4, download[int32](t, s, out)[63])
}

// TestSharedKernel launches one kernel from many goroutines with different
// arguments. OpenCL's kernels remember arguments: without the lock they mix.
func TestSharedKernel(t *testing.T) {
	d := open(t)
	k := kernelOf(t, load(t, d, programText), "set")
	const workers, rounds = 8, 50
	var wg sync.WaitGroup
	for w := range workers {
		s, out := newStream(t, d), alloc(t, d, 4*16)
		wg.Go(func() {
			for r := range rounds {
				value := int32(w*rounds + r)
				if !assert.NoError(t, s.Launch(launch(k, 16, 4, out, value))) {
					return
				}
				got := make([]int32, 16)
				if !assert.NoError(t, s.Download(context.Background(), bytesOf(got), out)) {
					return
				}
				for _, v := range got {
					if !assert.Equal(t, value, v, "worker %d", w) {
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

// TestViews passes views at aligned and odd offsets, mixed, for global and
// constant memory.
func TestViews(t *testing.T) {
	d := open(t)
	s := newStream(t, d)
	m := load(t, d, programText)
	k := kernelOf(t, m, "copy")
	const n = 64
	align := d.info.BaseAlign
	size := 4*align + n
	a, b, c := alloc(t, d, size), alloc(t, d, size), alloc(t, d, size)
	av, bv := make([]byte, size), make([]byte, size)
	for i := range av {
		av[i], bv[i] = byte(i*3), byte(i*5+i/256)
	}
	upload(t, s, a, av)
	upload(t, s, b, bv)
	for _, at := range [][3]int64{
		{0, 0, 0}, {align, 0, 0}, {0, 2 * align, 3 * align}, {align, align, align},
		{1, 0, 0}, {0, 0, 7}, {align, 3, 2 * align}, {align + 1, 2*align + 2, 3*align + 5},
	} {
		require.NoError(t, s.Fill(c, []byte{0xEE}))
		require.NoError(t, s.Launch(launch(k, n, 16, view(a, at[0], n), view(b, at[1], n), view(c, at[2], n))), "%v", at)
		want := make([]byte, size)
		for i := range want {
			want[i] = 0xEE
		}
		for i := range int64(n) {
			want[at[2]+i] = av[at[0]+i] + bv[at[1]+i]
		}
		require.Equal(t, want, download[byte](t, s, c), "offsets %v of %d", at, align)
	}
}

// TestManyViews has more sub-buffers than are kept.
func TestManyViews(t *testing.T) {
	d := open(t)
	k := kernelOf(t, load(t, d, programText), "set")
	align := d.info.BaseAlign
	count := int64(3 * viewLimit)
	m := alloc(t, d, align*count)
	var wg sync.WaitGroup
	for range 2 {
		s := newStream(t, d)
		wg.Go(func() {
			for i := range count {
				assert.NoError(t, s.Launch(launch(k, 4, 4, view(m, i*align, 16), int32(i))))
			}
			assert.NoError(t, s.Sync(context.Background()))
		})
	}
	wg.Wait()
	s := newStream(t, d)
	for i := range count {
		require.EqualValues(t, i, download[int32](t, s, view(m, i*align, 16))[3])
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	assert.LessOrEqual(t, len(d.memory[m.Handle].views), viewLimit)
}

func TestLaunchAllocatesNothing(t *testing.T) {
	d := open(t)
	s := newStream(t, d)
	m := load(t, d, programText)
	x := alloc(t, d, 4*1024)
	y := alloc(t, d, 4*(1024+d.info.BaseAlign))
	for name, y := range map[string]driver.Memory{"whole": view(y, 0, 4096), "aligned": view(y, d.info.BaseAlign, 4096),
		"odd": view(y, 4, 4096)} {
		l := launch(kernelOf(t, m, "saxpy"), 64, 64, float32(1), x, y, int32(64))
		n := testing.AllocsPerRun(100, func() {
			if err := s.Launch(l); err != nil {
				panic(err)
			}
		})
		assert.Zero(t, n, name)
	}
	require.NoError(t, s.Sync(t.Context()))
}

// BenchmarkLaunch compares a launch through the driver, arguments included, with
// clEnqueueNDRangeKernel alone through the binding. best-ns/op is that of the
// quickest batch: the device's threads share the processor with the caller.
func BenchmarkLaunch(b *testing.B) {
	d := open(b)
	s := newStream(b, d)
	m := load(b, d, programText)
	x, y := alloc(b, d, 4*(1024+d.info.BaseAlign)), alloc(b, d, 4*1024)
	k := kernelOf(b, m, "saxpy").(*kernel)
	q := *(*cl.CommandQueue)(ptr(d.StreamHandle(s)))
	batches := func(name string, f func() error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			const size = 32
			best := time.Hour
			for n := 0; n < b.N; n += size {
				start := time.Now()
				for range size {
					if err := f(); err != nil {
						b.Fatal(err)
					}
				}
				best = min(best, time.Since(start))
				b.StopTimer()
				require.NoError(b, s.Sync(context.Background()))
				cl.Finish(q) // the bare ones are not known to the stream
				b.StartTimer()
			}
			b.ReportMetric(float64(best.Nanoseconds())/size, "best-ns/op")
		})
	}
	for _, c := range []struct {
		name string
		at   int64
	}{{"fused", 0}, {"fused view", d.info.BaseAlign}, {"fused offset", 4}} {
		l := launch(k, 1, 1, float32(1), view(x, c.at, 4096), y, int32(0))
		batches(c.name, func() error { return s.Launch(l) })
	}
	one := [3]uint64{1, 1, 1}
	bare := func() error {
		if code := cl.EnqueueNDRangeKernel(q, k.own.k, 1, nil, &one[0], &one[0], 0, nil, nil); code != 0 {
			return opError("", "", code, nil)
		}
		return nil
	}
	batches("bare enqueue", bare)
	a, n := ptr(float32(1)), ptr(int32(0))
	mx, my := ptr(memOf(x.Handle)), ptr(memOf(y.Handle))
	batches("bare arguments and enqueue", func() error {
		cl.SetKernelArg(k.own.k, 0, 4, a)
		cl.SetKernelArg(k.own.k, 1, 8, mx)
		cl.SetKernelArg(k.own.k, 2, 8, my)
		cl.SetKernelArg(k.own.k, 3, 4, n)
		return bare()
	})
	b.Run("launch and sync", func(b *testing.B) {
		l := launch(k, 1, 1, float32(1), x, y, int32(0))
		for range b.N {
			if err := s.Launch(l); err != nil {
				b.Fatal(err)
			}
			if err := s.Sync(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkUpload(b *testing.B) {
	d := open(b)
	s := newStream(b, d)
	for _, n := range []int{64, 4096, stageLimit, 4 * stageLimit} {
		m, data := alloc(b, d, int64(n)), make([]byte, n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for range b.N {
				if err := s.Upload(context.Background(), m, data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAlloc(b *testing.B) {
	d := open(b)
	for _, n := range []int64{4096, touchFrom - 1, touchFrom, 64 * touchFrom} {
		b.Run(driver.FormatBytes(n), func(b *testing.B) {
			for range b.N {
				m, err := d.Alloc(n, driver.OnDevice)
				if err != nil {
					b.Fatal(err)
				}
				if err := d.Free(m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
