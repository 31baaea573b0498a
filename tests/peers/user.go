package main

// Kernels of a user, compiled by the host's compiler, compared with the same loops written in C.
// All times include a whole launch and a Sync, also for the native saxpy.

import (
	"fmt"
	"unsafe"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
)

const userText = `
kernel void saxpy(float a, global const float *x, global float *y, ulong n) {
  size_t i = get_global_id(0);
  if (i < n) y[i] = a * x[i] + y[i];
}
kernel void saxpy_int(float a, global const float *x, global float *y, int n) {
  int i = get_global_id(0);
  if (i < n) y[i] = a * x[i] + y[i];
}
#define FIVE 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - w] + in[i + w])
kernel void line_int(global const float *in, global float *out, int w, int n) {
  int i = get_global_id(0);
  if (i >= w && i < n - w) out[i] = FIVE;
}
kernel void line_size(global const float *in, global float *out, ulong w, ulong n) {
  size_t i = get_global_id(0);
  if (i >= w && i < n - w) out[i] = FIVE;
}
kernel void plane_int(global const float *in, global float *out, int w, int h) {
  int x = get_global_id(0), y = get_global_id(1);
  if (x > 0 && x < w - 1 && y > 0 && y < h - 1) { int i = y * w + x; out[i] = FIVE; }
}
kernel void plane_size(global const float *in, global float *out, ulong w, ulong h) {
  size_t x = get_global_id(0), y = get_global_id(1);
  if (x > 0 && x < w - 1 && y > 0 && y < h - 1) { size_t i = y * w + x; out[i] = FIVE; }
}
kernel void sum_own(global const float *x, global float *y, int n) {
  int i = get_global_id(0), step = get_global_size(0);
  float s = 0;
  for (int k = i; k < n; k += step) s += x[k];
  y[i] = s;
}
kernel void sum_rows(global const float *x, global float *y, int len) {
  int i = get_global_id(0);
  float s = 0;
  for (int k = 0; k < len; k++) s += x[i * len + k];
  y[i] = s;
}
kernel void dot_own(global const float *x, global float *y, int n) {
  int i = get_global_id(0), step = get_global_size(0);
  float s = 0;
  for (int k = i + step; k < n; k += step) s += x[k] * y[k];
  y[i] = s;
}
kernel void sum_tree(global const float *x, global float *y, int n, local float *t) {
  int l = get_local_id(0), from = get_group_id(0) * 65536, end = min(n, from + 65536);
  float s = 0;
  for (int k = from + l; k < end; k += get_local_size(0)) s += x[k];
  t[l] = s;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int w = get_local_size(0) / 2; w > 0; w /= 2) {
    if (l < w) t[l] += t[l + w];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (l == 0) y[get_group_id(0)] = t[0];
}
`

// userRow is one launch on two buffers of n floats.
type userRow struct {
	what, kernel string
	n            int
	bytes        int // read and written, per float
	grid         runtime.Grid
	args         func(x, y *runtime.Buffer) []any
	loop         func(x, y []byte)
	native       *source.Unit
}

func (b *bench) user() error {
	native, err := kernels.Unit("saxpy", nil, source.Define{Name: "T", Value: "f32"})
	if err != nil {
		return err
	}
	var rows []userRow
	for _, n := range []int{1 << 16, 1 << 18, 1 << 20, 1 << 26} {
		loop := func(x, y []byte) { saxpyLoop(b.threads, 0, x, y) }
		args := func(x, y *runtime.Buffer) []any { return []any{float32(0), x, y, uint64(n)} }
		rows = append(rows, userRow{fmt.Sprintf("saxpy %d", n), "saxpy", n, 12, runtime.Items(n), args, loop, native})
	}
	for _, w := range []int{256, 1024, 4096} {
		n := w * w
		loop := func(x, y []byte) { stencilLoop(b.threads, w, x, y) }
		narrow := func(last int) func(x, y *runtime.Buffer) []any {
			return func(x, y *runtime.Buffer) []any { return []any{x, y, int32(w), int32(last)} }
		}
		wide := func(last int) func(x, y *runtime.Buffer) []any {
			return func(x, y *runtime.Buffer) []any { return []any{x, y, uint64(w), uint64(last)} }
		}
		rows = append(rows,
			userRow{fmt.Sprintf("stencil %d², 1-D int", w), "line_int", n, 8, runtime.Items(n), narrow(n), loop, nil},
			userRow{fmt.Sprintf("stencil %d², 1-D size_t", w), "line_size", n, 8, runtime.Items(n), wide(n), loop, nil},
			userRow{fmt.Sprintf("stencil %d², 2-D int", w), "plane_int", n, 8, runtime.Items(w, w), narrow(w), loop, nil},
			userRow{fmt.Sprintf("stencil %d², 2-D size_t", w), "plane_size", n, 8, runtime.Items(w, w), wide(w), loop, nil})
	}
	for _, n := range []int{1 << 20, 1 << 24} {
		loop := func(x, _ []byte) { readLoop(b.threads, x) }
		rows = append(rows,
			userRow{fmt.Sprintf("sum %d, own", n), "sum_own", n, 4, runtime.Items(4096), func(x, y *runtime.Buffer) []any {
				return []any{x, y, int32(n)}
			}, loop, nil},
			userRow{fmt.Sprintf("sum %d, tree", n), "sum_tree", n, 4, runtime.Items(n / 65536 * 256).InGroups(256),
				func(x, y *runtime.Buffer) []any { return []any{x, y, int32(n), runtime.Local(1024)} }, loop, nil},
			userRow{fmt.Sprintf("sum %d, rows of 4096", n), "sum_rows", n, 4, runtime.Items(n / 4096),
				func(x, y *runtime.Buffer) []any { return []any{x, y, int32(4096)} }, loop, nil},
			userRow{fmt.Sprintf("dot %d, own", n), "dot_own", n, 8, runtime.Items(4096), func(x, y *runtime.Buffer) []any {
				return []any{x, y, int32(n)}
			},
				func(x, y []byte) { readLoop(b.threads, x); readLoop(b.threads, y) }, nil})
	}
	u, err := source.Parse(userText, source.Options{Name: "user.cl"})
	if err != nil {
		return err
	}
	for i := range rows {
		if !b.wanted(rows[i].what) {
			continue
		}
		if err := b.userRow(&rows[i], u); err != nil {
			return fmt.Errorf("%s: %w", rows[i].what, err)
		}
	}
	return nil
}

func (b *bench) userRow(r *userRow, u *source.Unit) error {
	var bufs [2]*runtime.Buffer
	var views [2][]byte
	for i := range bufs {
		data := make([]float32, r.n)
		for k := range data {
			data[k] = float32(k%17) / 16
		}
		buf, err := runtime.Upload(b.ctx, b.whole, data)
		if err != nil {
			return err
		}
		defer buf.Close()
		bufs[i] = buf
		floats, err := runtime.Host[float32](buf)
		if err != nil {
			return err
		}
		views[i] = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(floats))), 4*r.n)
	}
	launch := func(u *source.Unit) (func() error, func(), error) {
		p, err := b.whole.Program(b.ctx, u)
		if err != nil {
			return nil, nil, err
		}
		k, err := p.Kernel(r.kernel)
		if err != nil {
			return nil, nil, err
		}
		args := r.args(bufs[0], bufs[1])
		return func() error {
			if err := b.whole.Stream().Launch(k, r.grid, args...); err != nil {
				return err
			}
			return b.whole.Sync(b.ctx)
		}, func() { _ = p.Close() }, nil
	}
	run, free, err := launch(u)
	if err != nil {
		return err
	}
	defer free()
	others := []contender{b.loop(func() { r.loop(views[0], views[1]) })}
	if r.native != nil {
		native, free, err := launch(r.native)
		if err != nil {
			return err
		}
		others = append(others, inProcess("built-in", "", native))
		others[1].free = free
	}
	return b.compare(subject{what: r.what, work: float64(r.bytes * r.n), unit: gbps, name: "c++", run: run}, others...)
}
