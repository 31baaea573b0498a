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
		{"dilations", draw(2, 9, 11, 3), draw(3, 3, 3, 4), func(x, k *Node) *Node { return Convolve(x, k).Dilations(2).Done() }},
		{"a line", draw(2, 30, 3), draw(4, 3, 2), func(x, k *Node) *Node { return Convolve(x, k).PadSame().Done() }},
		{"a volume", draw(1, 5, 6, 7, 2), draw(2, 3, 2, 2, 3), func(x, k *Node) *Node { return Convolve(x, k).Done() }},
		{"a filter as large as the image", draw(2, 6, 5, 2), draw(6, 5, 2, 3), func(x, k *Node) *Node { return Convolve(x, k).Done() }},
		{"groups", draw(2, 8, 8, 4), draw(3, 3, 2, 6), func(x, k *Node) *Node { return Convolve(x, k).ChannelGroupCount(2).PadSame().Done() }},
		{"maxima", draw(2, 9, 8, 3), draw(), func(x, k *Node) *Node { return Mul(MaxPool(x).Window(2).Done(), k) }},
		{"maxima that overlap", draw(2, 9, 8, 3), draw(), func(x, k *Node) *Node { return Mul(MaxPool(x).Window(3).Strides(2).PadSame().Done(), k) }},
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
