package main

// Convolution, compared with PyTorch, which uses oneDNN for it.

import (
	"fmt"

	"github.com/concord-compute/concord/kernels"
)

// convSize is one convolution of n images that are square, with square filters.
type convSize struct{ n, c, side, k, filter, stride, pad, dilation, groups int }

// convSizes begin with the one that PyTorch also computes with channels last inside; the others are
// typical layers of networks.
var convSizes = []convSize{
	{8, 64, 56, 64, 3, 1, 1, 1, 1},
	{8, 64, 56, 64, 1, 1, 0, 1, 1},
	{8, 64, 56, 64, 3, 2, 1, 1, 1},
	{8, 3, 224, 64, 7, 2, 3, 1, 1},
	{8, 64, 28, 64, 5, 1, 2, 1, 1},
	{8, 256, 14, 256, 3, 1, 1, 1, 1},
	{8, 512, 7, 512, 3, 1, 1, 1, 1},
	{8, 64, 28, 64, 3, 1, 4, 4, 1},
	{8, 128, 28, 128, 3, 1, 1, 1, 32},
	{8, 64, 56, 64, 3, 1, 1, 1, 64},
}

func (s *convSize) String() string {
	text := fmt.Sprintf("%d×%d×%d×%d by %d×%d", s.n, s.c, s.side, s.side, s.filter, s.filter)
	for _, part := range []struct {
		name     string
		n, usual int
	}{{"stride", s.stride, 1}, {"dilation", s.dilation, 1}, {"groups", s.groups, 1}} {
		if part.n != part.usual {
			text += fmt.Sprintf(", %s %d", part.name, part.n)
		}
	}
	return text
}

func (b *bench) convolution() error {
	for i := range convSizes {
		if !b.wanted(convSizes[i].String()) {
			continue
		}
		if err := b.convolve(&convSizes[i], i == 0); err != nil {
			return err
		}
	}
	return nil
}

// convolve measures one size in both of PyTorch's memory orders, and, if inside is set, with x and y converted to and
// from channels last. These are separate rows, because PyTorch's channels-last form is slower in a process that also
// has the other calls.
func (b *bench) convolve(s *convSize, inside bool) error {
	out := kernels.ConvOut(s.side, s.filter, s.stride, s.pad, s.pad, s.dilation)
	args := []any{uint32(s.n), uint32(s.c), uint32(s.side), uint32(s.side), uint32(s.k)}
	for _, v := range []int{s.filter, s.stride, s.pad, s.dilation} {
		args = append(args, uint32(v), uint32(v))
	}
	weights := s.k * s.c / s.groups * s.filter * s.filter
	args = append(args, uint32(s.groups), uint32(out), uint32(out), 4*s.n*s.c*s.side*s.side, 4*weights, 4,
		4*s.n*s.k*out*out)
	p, err := b.prepare("conv2d", nil, "conv2d", args...)
	if err != nil {
		return b.absent(s.String(), err)
	}
	defer p.free()
	for _, x := range p.buffers[:3] {
		randomize(x, false)
	}
	calls := []struct{ name, text string }{{"conv2d", ""}, {"conv2d_last", ", data in another order, channels last"},
		{"conv2d_converted", ", channels last, x and y converted"}}
	if !inside {
		calls = calls[:2]
	}
	for _, call := range calls {
		peer, err := b.peer("torch", map[string]any{"n": s.n, "c": s.c, "h": s.side, "w": s.side, "out": s.k,
			"kernel": s.filter,
			"stride": s.stride, "pad": s.pad, "dilation": s.dilation, "groups": s.groups}, call.name)
		if err != nil {
			return err
		}
		peer.name += call.text
		row := subject{what: s.String(), work: 2 * float64(s.n*weights*out*out), unit: gflops, name: p.name, run: p.run}
		if err := b.compare(row, peer, b.peak(4)); err != nil {
			return err
		}
	}
	return nil
}
