package floats

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
)

// Loops over halves are vectorized: widen and narrow do nothing else, and meet has both conversions in a loop
// of its own.
const conversionsText = `
kernel void widen(global const half *x, global float *y) { size_t i = get_global_id(0); y[i] = vload_half(i, x); }
kernel void narrow(global const float *x, global half *y) { size_t i = get_global_id(0); vstore_half(x[i], i, y); }
kernel void meet(global const half *x, global half *y, uint n) {
	for (uint i = get_global_id(0); i < n; i += get_global_size(0)) vstore_half(vload_half(i, x), i, y);
}`

// GCC vectorizes otherwise where a program has no loop but that over items: here with four lanes.
const conversions4Text = `
kernel void narrow4(global const float *x, global half *y) { size_t i = get_global_id(0); vstore_half4(vload4(i, x), i, y); }`

// conversions converts all halves to float, and to half every float at which the rounding changes, and its neighbours.
func conversions(t *testing.T, d *runtime.Device) {
	kernels := map[string]*runtime.Kernel{}
	for _, text := range []string{conversionsText, conversions4Text} {
		unit, err := source.Parse(text, source.Options{Name: "conversions.cl", Features: d.Features()})
		require.NoError(t, err)
		p, err := d.Program(t.Context(), unit)
		if errors.Is(err, runtime.ErrUnsupported) {
			t.Skip(err)
		}
		require.NoError(t, err)
		defer p.Close()
		for _, k := range unit.Kernels() {
			kernels[k.Name], err = p.Kernel(k.Name)
			require.NoError(t, err)
		}
	}
	var halves []runtime.Float16
	floats := []float32{math.SmallestNonzeroFloat32, math.MaxFloat32, 0x1p-149, 0x1p-126, 0x1.fffffep-127}
	for b := range 1 << 16 {
		h := runtime.Float16(b)
		halves = append(halves, h)
		v := float32(h.Float64())
		next := float32(runtime.Float16(b + 1).Float64())
		if b&0x7fff == 0x7bff { // the midpoint to what would be the next number
			next = float32(math.Copysign(0x1p16, float64(v)))
		}
		middle := v + (next-v)/2
		for _, f := range []float32{v, middle} {
			floats = append(floats, f, math.Nextafter32(f, float32(math.Inf(-1))), math.Nextafter32(f, float32(math.Inf(1))))
		}
	}
	for i := range uint32(30) { // NaNs with other bits
		floats = append(floats, math.Float32frombits(0x7f800000|1<<min(i, 22)), math.Float32frombits(0xff800001|i<<12))
	}
	halves, floats = halves[:len(halves)-3], append(floats, halves32(halves)...) // no multiples of a vector's length
	same := func(want, got runtime.Float16) bool {
		return want == got || math.IsNaN(want.Float64()) && math.IsNaN(got.Float64())
	}
	run := func(kernel string, items int, args ...any) {
		require.NoError(t, d.Stream().Launch(kernels[kernel], runtime.Items(items), args...))
	}
	x, y := upload(t, d, halves), alloc[float32](t, d, len(halves))
	run("widen", len(halves), x, y)
	wide := make([]float32, len(halves))
	require.NoError(t, runtime.Read(t.Context(), y, wide))
	for i, f := range wide {
		if want := halves[i].Float64(); float64(f) != want && !(math.IsNaN(want) && f != f) {
			require.Fail(t, "widen", "%#x: %g", uint16(halves[i]), f)
		}
	}
	for _, items := range []int{1, 7} {
		again := alloc[runtime.Float16](t, d, len(halves))
		run("meet", items, x, again, uint32(len(halves)))
		back := make([]runtime.Float16, len(halves))
		require.NoError(t, runtime.Read(t.Context(), again, back))
		for i := range back {
			if !same(halves[i], back[i]) {
				require.Fail(t, "meet", "%#x: %#x", uint16(halves[i]), uint16(back[i]))
			}
		}
	}
	x32 := upload(t, d, floats)
	for kernel, lanes := range map[string]int{"narrow": 1, "narrow4": 4} {
		narrow := alloc[runtime.Float16](t, d, len(floats))
		items := len(floats) / lanes
		run(kernel, items, x32, narrow)
		got := make([]runtime.Float16, items*lanes)
		require.NoError(t, runtime.Read(t.Context(), narrow, got))
		wrong := 0
		for i := range got {
			if want := runtime.ToFloat16(float64(floats[i])); !same(want, got[i]) {
				if wrong++; wrong < 10 {
					assert.Fail(t, kernel, "%x: %#x, not %#x", floats[i], uint16(got[i]), uint16(want))
				}
			}
		}
		assert.Zero(t, wrong)
	}
}

func halves32(halves []runtime.Float16) []float32 {
	list := make([]float32, len(halves)|1)
	for i := range halves {
		list[i] = float32(halves[i].Float64())
	}
	return list
}

func upload[T runtime.Element](t *testing.T, d *runtime.Device, data []T) *runtime.Buffer {
	b, err := runtime.Upload(t.Context(), d, data)
	require.NoError(t, err)
	return b
}

func alloc[T runtime.Element](t *testing.T, d *runtime.Device, n int) *runtime.Buffer {
	b, err := runtime.Alloc[T](d, n)
	require.NoError(t, err)
	return b
}
