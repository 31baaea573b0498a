package tune

// What the tuner measures: launches of kernels whose speed depends on choices.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/choice"
	"github.com/concord-compute/concord/source"
)

// Subject is an operation at several sizes that are tuned together, since they read the same choices.
type Subject struct {
	Name   string   // "gemm f32"
	Reads  []string // the choices that are tried, or what their names begin with before a dot
	Points []Point

	measured bool // the choices are costs, which follow from what is measured: points have names only
}

// Point is a launch of a kernel of the catalog. Buffers have random numbers between -1 and 1.
type Point struct {
	Name           string // "1024"
	Family, Kernel string
	Defines        []source.Define
	Portable       bool  // the kernel is compiled from its text, also where the device has an implementation of its own
	Sizes          []int // of the grid, see kernels.Geometry
	// Args are numbers as a launch takes them, and a Buffer for each buffer.
	Args  []any
	Flops float64 // the operations of a launch, and the bytes that it reads and writes, each once
	Bytes float64
}

// Buffer is a buffer of a Point.
type Buffer struct {
	Type runtime.Type
	Len  int
}

// subjects are those of [Subjects], in the order in which they are tuned.
var subjects []Subject

// Register adds a subject. It is meant for init functions. It panics if the subject has no name, no choices or no
// points, or the name is taken.
func Register(s Subject) {
	if s.Name == "" || len(s.Reads) == 0 || len(s.Points) == 0 ||
		slices.ContainsFunc(subjects, func(o Subject) bool { return o.Name == s.Name }) {
		panic(fmt.Sprintf("tune: subject %q has no name, reads no choices, has no points, or is registered twice", s.Name))
	}
	subjects = append(subjects, s)
}

// Subjects returns what the tuner can measure on a device that has the given choices.
func Subjects(choices []*choice.Choice) []Subject {
	return slices.DeleteFunc(slices.Clone(subjects), func(s Subject) bool { return len(s.choices(choices)) == 0 })
}

// choices returns those of the given choices that the subject reads.
func (s *Subject) choices(all []*choice.Choice) []*choice.Choice {
	return slices.DeleteFunc(slices.Clone(all), func(c *choice.Choice) bool {
		return !slices.ContainsFunc(s.Reads, func(p string) bool { return c.Name == p || strings.HasPrefix(c.Name, p+".") })
	})
}

func init() {
	for _, t := range []runtime.Type{runtime.F32, runtime.F64} {
		s := Subject{Name: "gemm " + t.String(), Reads: []string{"cpu.gemm.depth", "cpu.gemm.panel", "cpu.gemm.cols",
			"cpu.gemm.chunk", "cpu.gemm.block", "cpu.gemm.tall", "cpu.gemm.tasks", "cpu.gemm.direct", "cpu.gemm.strips"}}
		for _, n := range []int{64, 128, 256, 512, 1024, 2048, 4096} {
			s.Points = append(s.Points, product(t, n, n, n))
		}
		Register(s)
	}
	tiled := Subject{Name: "portable gemm f32", Reads: []string{"kernels.gemm"}}
	for _, n := range []int{64, 256, 1024} {
		p := product(runtime.F32, n, n, n)
		p.Portable = true
		tiled.Points = append(tiled.Points, p)
	}
	Register(tiled)
	s := Subject{Name: "gemm of few rows", Reads: []string{"cpu.gemm.few"}}
	for _, m := range []int{1, 2, 4, 8, 16, 32} {
		s.Points = append(s.Points, product(runtime.F32, m, 4096, 4096))
	}
	Register(s)
	s = Subject{Name: "conv2d f32", Reads: []string{"cpu.conv", "cpu.winograd"}}
	for _, c := range []image{
		{64, 56, 64, 3, 1, 1, 1, 1}, {64, 56, 64, 1, 1, 0, 1, 1}, {64, 56, 64, 3, 2, 1, 1, 1}, {3, 224, 64, 7, 2, 3, 1, 1},
		{64, 28, 64, 5, 1, 2, 1, 1}, {256, 14, 256, 3, 1, 1, 1, 1}, {512, 7, 512, 3, 1, 1, 1, 1}, {64, 28, 64, 3, 1, 4, 4, 1},
		{128, 28, 128, 3, 1, 1, 1, 32}, {64, 56, 64, 3, 1, 1, 1, 64},
	} {
		s.Points = append(s.Points, c.convolution())
	}
	Register(s)
	const rows, cols = 4096, 4096
	Register(Subject{Name: "transpose f32", Reads: []string{"cpu.transpose"}, Points: []Point{{Name: "4096x4096",
		Family: "transpose", Kernel: "transpose", Sizes: []int{rows, cols},
		Args:  []any{Buffer{runtime.F32, rows * cols}, Buffer{runtime.F32, rows * cols}, uint32(rows), uint32(cols)},
		Bytes: 8 * rows * cols}}})
}

// image is a convolution of eight square images: channels, side, filters, their side, stride, padding, dilation,
// groups.
type image struct{ c, side, k, filter, stride, pad, dilation, groups int }

// convolution is a layer of a network.
func (i image) convolution() Point {
	const images = 8
	out := kernels.ConvOut(i.side, i.filter, i.stride, i.pad, i.pad, i.dilation)
	args := []any{uint32(images), uint32(i.c), uint32(i.side), uint32(i.side), uint32(i.k)}
	for _, v := range []int{i.filter, i.stride, i.pad, i.dilation} {
		args = append(args, uint32(v), uint32(v))
	}
	weights := i.k * i.c / i.groups * i.filter * i.filter
	x, y := images*i.c*i.side*i.side, images*i.k*out*out
	args = append(args, uint32(i.groups), uint32(out), uint32(out), Buffer{runtime.F32, x}, Buffer{runtime.F32, weights},
		Buffer{runtime.F32, 1}, Buffer{runtime.F32, y})
	name := fmt.Sprintf("%dx%dx%d by %dx%d", i.c, i.side, i.k, i.filter, i.filter)
	for _, part := range []struct {
		name     string
		n, usual int
	}{{"stride", i.stride, 1}, {"dilation", i.dilation, 1}, {"groups", i.groups, 1}} {
		if part.n != part.usual {
			name += fmt.Sprintf(" %s %d", part.name, part.n)
		}
	}
	return Point{Name: name, Family: "conv2d", Kernel: "conv2d", Sizes: []int{images, i.groups, i.k / i.groups, out * out},
		Args:  args,
		Flops: 2 * float64(images*weights*out*out), Bytes: 4 * float64(x+weights+y)}
}

// product is a product of an m x k and a k x n matrix.
func product(t runtime.Type, m, n, k int) Point {
	u := func(v int) uint32 { return uint32(v) }
	name := fmt.Sprint(n)
	if m != n || n != k {
		name = fmt.Sprintf("%dx%dx%d", m, n, k)
	}
	return Point{Name: name, Family: "gemm", Kernel: "gemm", Defines: []source.Define{{Name: "T", Value: t.String()}},
		Sizes: []int{m, n}, Args: []any{u(m), u(n), u(k), one(t, 1), Buffer{t, m * k}, u(k), Buffer{t, k * n}, u(n),
			one(t, 0), Buffer{t, m * n}, u(n)},
		Flops: 2 * float64(m) * float64(n) * float64(k), Bytes: float64(t.Size() * (m*k + k*n + m*n))}
}

// one returns a number as kernels take alpha and beta: in double precision where matrices are.
func one(t runtime.Type, v float64) any {
	if t == runtime.F64 {
		return v
	}
	return float32(v)
}
