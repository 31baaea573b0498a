// Package roof measures the rates that bound every kernel on a device, once for each device, driver and compiler.
//
//	r, err := roof.Of(ctx, dev)
//	fmt.Println(r) // memory 21.3 GB/s, float32 174 GFLOP/s, float64 87 GFLOP/s, launch 5.1 µs
//
// [profile.Roof] says what follows for a kernel of so much work.
package roof

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/managed"
	"github.com/concord-compute/concord/runtime/profile"
	"github.com/concord-compute/concord/source"
)

// Of returns the rates that bound every kernel on a device: of memory, of multiply-adds in registers, and of launches.
// They are measured once, which takes a few seconds on the device, and then kept as [runtime.Device.KeptRoof] says.
// Files that others could have written are not read.
//
// What cannot be measured is 0. Without a compiler for the device, memory is measured by copies alone and the other
// rates are unknown, but for a device whose driver measures its multiply-adds itself (driver.MultiplyAdder), such as
// cpu:0. Each rate is nearly the best of several runs, as other work on the machine lowers it.
//
// Concurrent calls share one measurement; a call that waits ends with ctx. Errors are those of allocating, copying
// and launching. It is safe for concurrent use.
func Of(ctx context.Context, d *runtime.Device) (profile.Roof, error) { return get(ctx, d, false) }

// Measure measures what Of returns again, and replaces what was kept. Use it where Of was first called while the
// machine was busy.
func Measure(ctx context.Context, d *runtime.Device) (profile.Roof, error) { return get(ctx, d, true) }

func get(ctx context.Context, d *runtime.Device, again bool) (profile.Roof, error) {
	kept, err := d.KeptRoof(ctx)
	if err != nil {
		return profile.Roof{}, err
	}
	r, err := kept.Get(ctx, again, func() (profile.Roof, error) { return measure(ctx, d) })
	if err != nil {
		return profile.Roof{}, fmt.Errorf("roof of %s: %w", d, err)
	}
	return r, nil
}

// text are the kernels that measure. scale and triad read each number once and write it once.
// multiply_add has as many multiply-adds under way as hardware can take, without loads and stores;
// V is a vector of LANES numbers of type T, each of which counts in the result. nothing is for the
// time of a launch.
const text = `
kernel void scale(float a, global float *y) {
  size_t i = get_global_id(0);
  y[i] = a * y[i];
}
kernel void triad(float a, global const float *x, global float *y) {
  size_t i = get_global_id(0);
  y[i] = a * x[i] + y[i];
}
kernel void nothing(global float *y) {
}
#define MULTIPLY_ADD(NAME, T, V, FIRST, SUM) \
kernel void NAME(global T *out, T a, T b) { \
  V x = (V)((T)get_global_id(0)) * FIRST; \
  V y0 = x, y1 = x + (T)1, y2 = x + (T)2, y3 = x + (T)3, y4 = x + (T)4, y5 = x + (T)5, y6 = x + (T)6, y7 = x + (T)7; \
  V va = a, vb = b; \
  for (int i = 0; i < 1024; i++) { \
    y0 = fma(y0, va, vb); y1 = fma(y1, va, vb); y2 = fma(y2, va, vb); y3 = fma(y3, va, vb); \
    y4 = fma(y4, va, vb); y5 = fma(y5, va, vb); y6 = fma(y6, va, vb); y7 = fma(y7, va, vb); \
  } \
  x = y0 + y1 + y2 + y3 + y4 + y5 + y6 + y7; \
  out[get_global_id(0)] = SUM; \
}
#define SUM8(x) (((x).s0 + (x).s1) + ((x).s2 + (x).s3)) + (((x).s4 + (x).s5) + ((x).s6 + (x).s7))
MULTIPLY_ADD(multiply_add, float, float16,
             ((float16)(1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f, 8.0f, 9.0f, 10.0f, 11.0f, 12.0f, 13.0f, 14.0f, 15.0f, 16.0f)),
             SUM8(x.lo + x.hi))
#ifdef DOUBLE
MULTIPLY_ADD(multiply_add_double, double, double8, ((double8)(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)), SUM8(x))
#endif
`

// multiplyAdds is the number of operations of an item of multiply_add for each lane.
const multiplyAdds = 2 * 8 * 1024

// Sizes of a measurement: arrays that fit no cache, and items that fill the device.
func sizes(info *runtime.Info) (elements, items int) {
	elements, items = 1<<25, 1<<14
	if info.IsGPU() {
		elements, items = 1<<27, 1<<18
	}
	// two arrays of floats: an eighth
	for info.TotalMemory > 0 && elements > 1<<16 && int64(elements) > info.TotalMemory/64 {
		elements /= 2
	}
	return elements, min(items, elements)
}

// measure measures on a stream of its own.
func measure(ctx context.Context, d *runtime.Device) (r profile.Roof, err error) {
	info := d.Info()
	elements, items := sizes(&info)
	s, err := d.NewStream()
	if err != nil {
		return r, err
	}
	defer s.Close()
	batch := managed.NewBatch(d)
	defer batch.Close()
	var arrays [2]*runtime.Buffer
	for i := range arrays {
		if arrays[i], err = batch.Alloc(runtime.F32, elements); err != nil {
			return r, err
		}
		if err := s.Fill(arrays[i], float32(1)); err != nil { // memory that was never written may not be there yet
			return r, err
		}
	}
	x, y := arrays[0], arrays[1]
	size := float64(4 * elements)
	r.MemoryGBs, err = best(ctx, func() (float64, error) {
		start := time.Now()
		if err := s.Copy(y, x); err != nil {
			return 0, err
		}
		err := s.Sync(ctx)
		return 2 * size / float64(time.Since(start)), err
	})
	if err != nil {
		return r, err
	}
	r.Measured = time.Now().UTC().Round(time.Second)
	if own, ok := d.Driver().(driver.MultiplyAdder); ok {
		if _, ok := own.MultiplyAdds(); ok {
			if r.GFLOPS, err = best(ctx, func() (float64, error) {
				rate, _ := own.MultiplyAdds()
				return rate, nil
			}); err != nil {
				return r, err
			}
		}
	}
	var defines []source.Define
	if info.Features.FP64 {
		defines = []source.Define{{Name: "DOUBLE", Value: "1"}}
	}
	unit, err := source.Parse(text, source.Options{Name: "roof.cl", Defines: defines, Features: d.Features()})
	if err != nil {
		return r, err
	}
	prog, err := d.Program(ctx, unit)
	if errors.Is(err, runtime.ErrUnsupported) { // no compiler
		return r, nil
	}
	if err != nil {
		return r, err
	}
	defer prog.Close()
	rate := func(kernel string, grid runtime.Grid, work float64, args ...any) (float64, error) {
		k, err := prog.Kernel(kernel)
		if err != nil {
			return 0, err
		}
		return best(ctx, func() (float64, error) {
			ran, err := s.Run(ctx, k, grid, args...)
			if err != nil || ran.DeviceTimeNs <= 0 { // too short to be timed
				return 0, err
			}
			return work / float64(ran.DeviceTimeNs), nil
		})
	}
	for _, loop := range []struct {
		kernel string
		bytes  float64
		args   []any
	}{{"scale", 2 * size, []any{float32(1), y}}, {"triad", 3 * size, []any{float32(0), x, y}}} {
		// with these factors y does not change
		got, err := rate(loop.kernel, runtime.Items(elements), loop.bytes, loop.args...)
		if err != nil {
			return r, err
		}
		r.MemoryGBs = max(r.MemoryGBs, got)
	}
	got, err := rate("multiply_add", runtime.Items(items), float64(items)*16*multiplyAdds, y, float32(0.999),
		float32(0.001))
	if err != nil {
		return r, err
	}
	r.GFLOPS = max(r.GFLOPS, got)
	if len(defines) > 0 {
		z, err := batch.Alloc(runtime.F64, items)
		if err != nil {
			return r, err
		}
		if r.DoubleGFLOPS, err = rate("multiply_add_double", runtime.Items(items), float64(items)*8*multiplyAdds, z, 0.999,
			0.001); err != nil {
			return r, err
		}
	}
	r.LaunchNs, err = launchTime(ctx, s, prog, y)
	return r, err
}

// launchTime returns the median time from queueing a kernel that does nothing to the end of the wait.
func launchTime(ctx context.Context, s *runtime.Stream, prog *runtime.Program, y *runtime.Buffer) (float64, error) {
	k, err := prog.Kernel("nothing")
	if err != nil {
		return 0, err
	}
	var all []float64
	_, err = best(ctx, func() (float64, error) {
		for range 20 {
			start := time.Now()
			if err := s.Launch(k, runtime.Items(1), y); err != nil {
				return 0, err
			}
			if err := s.Sync(ctx); err != nil {
				return 0, err
			}
			all = append(all, float64(time.Since(start)))
		}
		return 0, nil
	})
	if err != nil {
		return 0, err
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}

// best returns nearly the largest of several samples, without the first, which includes one-time costs.
// The largest itself may be due to a clock that jumped.
func best(ctx context.Context, sample func() (float64, error)) (float64, error) {
	const fewest, often, long = 8, 50, 250 * time.Millisecond
	var all []float64
	start := time.Now()
	for n := 0; n <= fewest || n < often && time.Since(start) < long; n++ {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		v, err := sample()
		if err != nil {
			return 0, err
		}
		if n > 0 {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	return all[len(all)-1-max(1, len(all)/10)], nil
}
