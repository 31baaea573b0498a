package gomlx_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/gomlx"
)

// several opens a backend for tests.
func several(t *testing.T, devices string) *gomlx.Backend {
	t.Helper()
	b, err := gomlx.New(devices)
	if err != nil && strings.Contains(devices, "opencl") {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(b.Finalize)
	return b
}

// shared executes a computation of arrays of float32, device by device, and returns the results of each.
func shared(t *testing.T, b *gomlx.Backend, x compute.Executable, on []int, shape shapes.Shape,
	in ...[]float32) [][]float32 {
	t.Helper()
	var inputs []compute.Buffer
	for i, data := range in {
		buf, err := b.BufferFromFlatData(compute.DeviceNum(on[i]), data, shape)
		require.NoError(t, err)
		inputs = append(inputs, buf)
	}
	outs, err := x.Execute(inputs, nil, 0)
	require.NoError(t, err)
	var results [][]float32
	for _, o := range outs {
		s, err := o.Shape()
		require.NoError(t, err)
		data := make([]float32, s.Size())
		require.NoError(t, o.ToFlatData(data))
		results = append(results, data)
		require.NoError(t, o.Finalize())
	}
	for _, i := range inputs {
		require.NoError(t, i.Finalize())
	}
	return results
}

// must fails the test for an error.
func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

// TestAllReduce compares sums, products and extremes of groups of devices with those of Go, on devices in another order
// than theirs. It fails if a device gets what belongs to another one, or to another group.
func TestAllReduce(t *testing.T) {
	shape := shapes.Make(dtypes.Float32, 3)
	for _, devices := range []string{"cpu:0,cpu:0", "cpu:0,cpu:0,cpu:0,cpu:0", "cpu:0,opencl:0"} {
		t.Run(devices, func(t *testing.T) {
			b := several(t, devices)
			n := b.NumDevices()
			on := make([]int, n)
			var assigned []compute.DeviceNum
			for i := range on {
				on[i] = n - 1 - i
				assigned = append(assigned, compute.DeviceNum(n-1-i))
			}
			groups := map[string][][]int{"all": nil, "named": {seq(n)}}
			if n == 4 {
				groups["pairs"] = [][]int{{0, 2}, {3, 1}}
				groups["uneven"] = [][]int{{1}, {3, 0, 2}}
			}
			for name, groups := range groups {
				for op, f := range map[compute.ReduceOpType]func(a, b float32) float32{
					compute.ReduceOpSum:     func(a, b float32) float32 { return a + b },
					compute.ReduceOpProduct: func(a, b float32) float32 { return a * b },
					compute.ReduceOpMax:     func(a, b float32) float32 { return max(a, b) },
					compute.ReduceOpMin:     func(a, b float32) float32 { return min(a, b) },
				} {
					w := b.Builder("test")
					require.NoError(t, w.DistributedSPMD(n))
					require.NoError(t, w.DeviceAssignment(assigned...))
					x := must[compute.Value](t)(w.Main().Parameter("x", shape, nil))
					y := must[compute.Value](t)(w.Main().Neg(x))
					r := must[[]compute.Value](t)(w.Main().AllReduce([]compute.Value{x, y}, op, groups))
					require.NoError(t, w.Main().Return([]compute.Value{r[0], r[1], x}, nil))
					e := must[compute.Executable](t)(w.Compile())
					var in [][]float32
					for i := range n {
						in = append(in, []float32{float32(i + 1), float32(2*i - 3), 0.5})
					}
					for range 3 {
						got := shared(t, b, e, on, shape, in...)
						require.Len(t, got, 3*n)
						for i := range n {
							members := seq(n)
							for _, g := range groups {
								if slices.Contains(g, i) {
									members = g
								}
							}
							for k := range shape.Size() {
								want, negative := in[members[0]][k], -in[members[0]][k]
								for _, m := range members[1:] {
									want, negative = f(want, in[m][k]), f(negative, -in[m][k])
								}
								assert.Equal(t, want, got[3*i][k], "%s %v: %d of device %d", name, op, k, i)
								assert.Equal(t, negative, got[3*i+1][k], "%s %v: %d of device %d", name, op, k, i)
							}
							assert.Equal(t, in[i], got[3*i+2])
						}
					}
					e.Finalize()
				}
			}
		})
	}
}

func seq(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// TestPortable runs one computation on each device: its inputs and results stay there, and copies arrive elsewhere.
func TestPortable(t *testing.T) {
	for _, devices := range []string{"cpu:0,cpu:0", "cpu:0,opencl:0"} {
		t.Run(devices, func(t *testing.T) { portable(t, several(t, devices)) })
	}
}

func portable(t *testing.T, b *gomlx.Backend) {
	shape := shapes.Make(dtypes.Float32, 2)
	w := b.Builder("test")
	x := must[compute.Value](t)(w.Main().Parameter("x", shape, nil))
	y := must[compute.Value](t)(w.Main().Exp(x))
	require.NoError(t, w.Main().Return([]compute.Value{y}, nil))
	e := must[compute.Executable](t)(w.Compile())
	for _, n := range []compute.DeviceNum{1, 0, 1} {
		in := must[compute.Buffer](t)(b.BufferFromFlatData(n, []float32{1, -1}, shape))
		out := must[[]compute.Buffer](t)(e.Execute([]compute.Buffer{in}, []bool{true}, n))
		assert.Equal(t, n, must[compute.DeviceNum](t)(out[0].DeviceNum()))
		there := must[compute.Buffer](t)(out[0].CopyToDevice(1 - n))
		assert.Equal(t, 1-n, must[compute.DeviceNum](t)(there.DeviceNum()))
		got := make([]float32, 2)
		require.NoError(t, there.ToFlatData(got))
		assert.InDeltaSlice(t, []float32{math.E, 1 / math.E}, got, 1e-6)
		_, err := e.Execute([]compute.Buffer{there}, nil, n)
		assert.ErrorContains(t, err, fmt.Sprintf("input 0 is on device %d", 1-n))
		require.NoError(t, out[0].Finalize())
		require.NoError(t, there.Finalize())
	}
}

// TestCopyThenDonate copies an array to another device, and donates it. It fails if the copy reads what the computation
// stores in its place.
func TestCopyThenDonate(t *testing.T) {
	b := several(t, "cpu:0,cpu:0")
	const n = 1 << 22
	shape := shapes.Make(dtypes.Float32, n)
	w := b.Builder("test")
	x := must[compute.Value](t)(w.Main().Parameter("x", shape, nil))
	y := must[compute.Value](t)(w.Main().Neg(x))
	require.NoError(t, w.Main().Return([]compute.Value{y}, nil))
	e := must[compute.Executable](t)(w.Compile())
	ones := slices.Repeat([]float32{1}, n)
	for range 5 {
		in := must[compute.Buffer](t)(b.BufferFromFlatData(0, ones, shape))
		there := must[compute.Buffer](t)(in.CopyToDevice(1))
		out := must[[]compute.Buffer](t)(e.Execute([]compute.Buffer{in}, []bool{true}, 0))
		got := make([]float32, n)
		require.NoError(t, there.ToFlatData(got))
		require.Equal(t, ones, got)
		require.NoError(t, there.Finalize())
		require.NoError(t, out[0].Finalize())
	}
}

// TestTeamFails has one of two executions fail on a team: the next one, of the same executable and of others, works.
func TestTeamFails(t *testing.T) {
	b := several(t, "cpu:0,cpu:0")
	shape := shapes.Make(dtypes.Float32, 3)
	build := func(device0 bool) compute.Executable {
		w := b.Builder("test")
		require.NoError(t, w.DistributedSPMD(2))
		x := must[compute.Value](t)(w.Main().Parameter("x", shape, nil))
		r := must[[]compute.Value](t)(w.Main().AllReduce([]compute.Value{x}, compute.ReduceOpSum, nil))
		require.NoError(t, w.Main().Return(r, nil))
		return must[compute.Executable](t)(w.Compile())
	}
	one, other := build(true), build(false)
	sum := func(e compute.Executable) { // twice, so that results and inputs are used again
		for range 2 {
			got := shared(t, b, e, []int{0, 1}, shape, []float32{1, 2, 3}, []float32{10, 20, 30})
			assert.Equal(t, [][]float32{{11, 22, 33}, {11, 22, 33}}, got)
		}
	}
	sum(one)
	sum(other)
	in := must[compute.Buffer](t)(b.BufferFromFlatData(0, []float32{1, 2, 3}, shape))
	closed := must[compute.Buffer](t)(b.BufferFromFlatData(1, []float32{1, 2, 3}, shape))
	require.NoError(t, closed.Finalize())
	_, err := one.Execute([]compute.Buffer{in, closed}, nil, 0)
	assert.Error(t, err)
	sum(one)
	gomlx.FailTeams(b, errors.New("planted"))
	_, err = one.Execute([]compute.Buffer{in, in}, nil, 0)
	assert.Error(t, err, "an input of another device")
	sum(other)
	sum(one)
	b.Finalize()
	_, err = one.Execute([]compute.Buffer{in, in}, nil, 0)
	assert.ErrorContains(t, err, "finalized")
}

// TestSharding divides arrays of random shapes by random meshes, and compares what each device gets with the part that
// Go cuts out. It fails if a part goes to another device, or the whole is put together in another order.
func TestSharding(t *testing.T) {
	b := several(t, "cpu:0,cpu:0,cpu:0,cpu:0,cpu:0,cpu:0")
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		sizes := [][]int{{2}, {3}, {2, 3}, {3, 2}, {6}, {2, 2}, {1, 2}}[rnd.IntN(7)]
		mesh := compute.Mesh{Name: "mesh", AxesSizes: sizes}
		devices := 1
		for i, n := range sizes {
			mesh.AxesNames = append(mesh.AxesNames, fmt.Sprint("axis", i))
			devices *= n
		}
		if rnd.IntN(2) == 0 {
			mesh.LogicalDeviceAssignment = rnd.Perm(devices)
		}
		// in and out are how the parameter and the result are divided.
		rank := 1 + rnd.IntN(3)
		spec := func() *compute.ShardingSpec {
			s := &compute.ShardingSpec{Mesh: mesh.Name, Axes: make([][]string, rank)}
			for _, name := range mesh.AxesNames {
				if d := rnd.IntN(rank + 1); d < rank {
					s.Axes[d] = append(s.Axes[d], name)
				}
			}
			return s
		}
		in, out := spec(), spec()
		dims := make([]int, rank)
		for d := range dims {
			dims[d] = 6 * (1 + rnd.IntN(2))
			if len(in.Axes[d]) > 1 || len(out.Axes[d]) > 1 {
				dims[d] = 12
			}
		}
		shape := shapes.Make(dtypes.Float32, dims...)
		whole := make([]float32, shape.Size())
		for i := range whole {
			whole[i] = float32(i)
		}
		// part is what a device has of the whole, and its dimensions.
		part := func(s *compute.ShardingSpec, device int) ([]float32, []int) {
			place := device
			if p := mesh.LogicalDeviceAssignment; p != nil {
				place = slices.Index(p, device)
			}
			along := map[string]int{}
			for i := len(sizes) - 1; i >= 0; i-- {
				along[mesh.AxesNames[i]], place = place%sizes[i], place/sizes[i]
			}
			first, length := make([]int, rank), slices.Clone(dims)
			for d, names := range s.Axes {
				at := 0
				for _, name := range names {
					n := sizes[slices.Index(mesh.AxesNames, name)]
					at, length[d] = at*n+along[name], length[d]/n
				}
				first[d] = at * length[d]
			}
			var data []float32
			for i := range whole {
				inside, rest := true, i
				for d := rank - 1; d >= 0; d-- {
					at := rest % dims[d]
					rest /= dims[d]
					inside = inside && at >= first[d] && at < first[d]+length[d]
				}
				if inside {
					data = append(data, whole[i])
				}
			}
			return data, length
		}
		w := b.Builder("test")
		require.NoError(t, w.DistributedAutoSharding(mesh))
		x := must[compute.Value](t)(w.Main().Parameter("x", shape, in))
		y := must[compute.Value](t)(w.Main().Neg(x))
		require.NoError(t, w.Main().Return([]compute.Value{y}, []*compute.ShardingSpec{out}))
		e := must[compute.Executable](t)(w.Compile())
		var given [][]float32
		var local []int
		for device := range devices {
			data, dims := part(in, device)
			given, local = append(given, data), dims
		}
		results := shared(t, b, e, seq(devices), shapes.Make(dtypes.Float32, local...), given...)
		require.Len(t, results, devices)
		for device, got := range results {
			want, _ := part(out, device)
			for i := range want {
				want[i] = -want[i]
			}
			require.Equal(t, want, got, "seed %d: device %d of %v, %v to %v of %v", seed, device, mesh, in.Axes, out.Axes, dims)
		}
		e.Finalize()
	}
}

// TestDistributedRefuses has computations that make no sense.
func TestDistributedRefuses(t *testing.T) {
	b := several(t, "cpu:0,cpu:0")
	shape := shapes.Make(dtypes.Float32, 3)
	for _, n := range []int{0, -1, 3} {
		assert.Error(t, b.Builder("test").DistributedSPMD(n), n)
	}
	w := b.Builder("test")
	require.NoError(t, w.DistributedSPMD(2))
	assert.Error(t, w.DistributedSPMD(2))
	assert.Error(t, w.DeviceAssignment(0))
	assert.Error(t, w.DeviceAssignment(1, 1))
	assert.Error(t, w.DeviceAssignment(0, 2))
	x := must[compute.Value](t)(w.Main().Parameter("x", shape, nil))
	for _, groups := range [][][]int{{{0}}, {{0, 1}, {1}}, {{0, 2}}} {
		_, err := w.Main().AllReduce([]compute.Value{x}, compute.ReduceOpSum, groups)
		assert.ErrorContains(t, err, "groups", groups)
	}
	_, err := w.Main().AllReduce([]compute.Value{x}, compute.ReduceOpUndefined, nil)
	assert.Error(t, err)
	truth := must[compute.Value](t)(w.Main().Parameter("truth", shapes.Make(dtypes.Bool, 3), nil))
	_, err = w.Main().AllReduce([]compute.Value{truth}, compute.ReduceOpMax, nil)
	assert.Error(t, err)
	_, err = w.Main().Parameter("y", shape, &compute.ShardingSpec{Mesh: "none"})
	assert.ErrorContains(t, err, "none")

	w = b.Builder("test")
	for _, m := range []compute.Mesh{{AxesNames: []string{"a"}}, {AxesNames: []string{"a"}, AxesSizes: []int{0}},
		{AxesNames: []string{"a"}, AxesSizes: []int{3}},
		{AxesNames: []string{"a"}, AxesSizes: []int{2}, LogicalDeviceAssignment: []int{1, 1}}} {
		assert.Error(t, w.DistributedAutoSharding(m), m)
	}
	require.NoError(t, w.DistributedAutoSharding(compute.Mesh{Name: "m", AxesNames: []string{"a"}, AxesSizes: []int{2}}))
	for _, axes := range [][][]string{{{"a"}}, {{"b"}}, {{"a", "a"}}, {nil, {"a"}}} {
		_, err := w.Main().Parameter("x", shape, &compute.ShardingSpec{Mesh: "m", Axes: axes})
		assert.Error(t, err, axes)
	}
	for _, devices := range []string{"cpu:0,abacus:0", "abacus:*", "cpu:99", "cpu:0,cpu:0,cpu:reference",
		"cpu:0,cpu:reference,cpu:0", "cpu:reference,cpu:0,cpu:0"} {
		_, err := gomlx.New(devices)
		assert.Error(t, err, devices)
	}
	_, err = b.BufferFromFlatData(2, []float32{1}, shapes.Make(dtypes.Float32, 1))
	assert.ErrorContains(t, err, "device 2")
}
