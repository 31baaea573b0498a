package gomlx_test

// Convolutions and pooling with their gradients, beside GoMLX's Go backend.

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/concord-compute/concord/gomlx"
)

func TestWindows(t *testing.T) {
	plain, err := compute.NewWithConfig("go")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Finalize()
	random := rand.New(rand.NewPCG(3, 4))
	draw := func(dims ...int) any {
		n := 1
		for _, d := range dims {
			n *= d
		}
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(random.IntN(9) - 4) // many are equal, so that maxima have to be the first ones
		}
		return tensors.FromFlatDataAndDimensions(x, dims...).Value()
	}
	for _, c := range []struct {
		name string
		x, k any
		f    func(x, k *Node) *Node
	}{
		{"same", draw(2, 9, 8, 3), draw(3, 3, 3, 4), func(x, k *Node) *Node { return Convolve(x, k).PadSame().Done() }},
		{"one channel", draw(3, 12, 12, 1), draw(5, 5, 1, 2), func(x, k *Node) *Node { return Convolve(x, k).Done() }},
		{"strides", draw(2, 9, 11, 3), draw(3, 3, 3, 4), func(x, k *Node) *Node { return Convolve(x, k).Strides(2).Done() }},
		{"dilations", draw(2, 9, 11, 3), draw(3, 3, 3, 4), func(x, k *Node) *Node {
			return Convolve(x, k).Dilations(2).Done()
		}},
		{"a line", draw(2, 30, 3), draw(4, 3, 2), func(x, k *Node) *Node { return Convolve(x, k).PadSame().Done() }},
		{"a volume", draw(1, 5, 6, 7, 2), draw(2, 3, 2, 2, 3), func(x, k *Node) *Node { return Convolve(x, k).Done() }},
		{"a filter as large as the image", draw(2, 6, 5, 2), draw(6, 5, 2, 3), func(x, k *Node) *Node {
			return Convolve(x, k).Done()
		}},
		{"groups", draw(2, 8, 8, 4), draw(3, 3, 2, 6), func(x, k *Node) *Node {
			return Convolve(x, k).ChannelGroupCount(2).PadSame().Done()
		}},
		{"maxima", draw(2, 9, 8, 3), draw(), func(x, k *Node) *Node { return Mul(MaxPool(x).Window(2).Done(), k) }},
		{"maxima that overlap", draw(2, 9, 8, 3), draw(), func(x, k *Node) *Node {
			return Mul(MaxPool(x).Window(3).Strides(2).PadSame().Done(), k)
		}},
		{"minima", draw(2, 9, 8, 3), draw(), func(x, k *Node) *Node { return Mul(MinPool(x).Window(2).Done(), k) }},
		{"sums", draw(2, 9, 8, 3), draw(), func(x, k *Node) *Node { return Mul(SumPool(x).Window(3).Done(), k) }},
	} {
		f := func(x, k *Node) []*Node {
			y := c.f(x, k)
			return append(Gradient(ReduceAllSum(Mul(y, AddScalar(Sign(y), 2))), x, k), y)
		}
		want, err := MustNewExec(plain, f).Call(c.x, c.k)
		if err != nil {
			t.Errorf("%s in Go: %v", c.name, err)
			continue
		}
		onDevices(t, func(t *testing.T, b *gomlx.Backend) {
			got, err := MustNewExec(b, f).Call(c.x, c.k)
			if err != nil {
				t.Fatalf("%s: %+v", c.name, err)
			}
			for i := range want {
				expected := tensors.MustCopyFlatData[float32](want[i])
				for j, v := range tensors.MustCopyFlatData[float32](got[i]) {
					if math.Abs(float64(v-expected[j])) > 1e-2 {
						t.Fatalf("%s, result %d: element %d is %v, not %v", c.name, i, j, v, expected[j])
					}
				}
			}
		})
	}
}

// Windows of truths.
func TestWindowsOfTruths(t *testing.T) {
	f := func(x []*Node) []*Node {
		return []*Node{BackendReduceWindow(x[0], compute.ReduceOpMax, []int{2}, []int{1}, nil, nil, nil),
			BackendReduceWindow(x[0], compute.ReduceOpMin, []int{2}, []int{1}, nil, nil, [][2]int{{1, 0}})}
	}
	onDevices(t, func(t *testing.T, b *gomlx.Backend) {
		want := []any{[]bool{true, true, false}, []bool{true, true, false, false}}
		equal(t, want, values(t, b, f, []bool{true, true, false, false}))
	})
}

// Windows of all axes, of which those in the last one are read as runs of elements, and others are moved into
// the array.
func TestGatherOfWindows(t *testing.T) {
	random := rand.New(rand.NewPCG(34, 17))
	type gather struct {
		x, starts any
		sizes     []int
		want      []float32
	}
	var list []gather
	for range 12 {
		dims := []int{1 + random.IntN(4), 1 + random.IntN(6), 1 + random.IntN(8)}
		sizes := []int{1 + random.IntN(dims[0]), 1 + random.IntN(dims[1]), 1 + random.IntN(dims[2])}
		count := 1 + random.IntN(5)
		x, starts := make([]float32, dims[0]*dims[1]*dims[2]), make([]int32, 3*count)
		for i := range x {
			x[i] = float32(i)
		}
		for i := range starts {
			starts[i] = int32(random.IntN(10) - 2)
		}
		c := gather{tensors.FromFlatDataAndDimensions(x, dims...).Value(),
			tensors.FromFlatDataAndDimensions(starts, count, 3).Value(), sizes, nil}
		for w := range count {
			var at [3]int
			for axis := range at {
				at[axis] = min(max(int(starts[3*w+axis]), 0), dims[axis]-sizes[axis])
			}
			for i := range sizes[0] {
				for j := range sizes[1] {
					first := ((at[0]+i)*dims[1]+at[1]+j)*dims[2] + at[2]
					c.want = append(c.want, x[first:first+sizes[2]]...)
				}
			}
		}
		list = append(list, c)
	}
	onDevices(t, func(t *testing.T, b *gomlx.Backend) {
		for _, c := range list {
			got := values(t, b, func(in []*Node) []*Node {
				return []*Node{Reshape(GatherSlices(in[0], []int{0, 1, 2}, in[1], c.sizes, false), -1)}
			}, c.x, c.starts)
			equal(t, []any{c.want}, got)
		}
	})
}
