package nn

// Convolutions and pooling, of images [examples, channels, [[depth,] height,] width].

import (
	"fmt"

	"github.com/concord-compute/concord/tensor"
)

// Conv is a convolution in one to three dimensions, as many as Size has lengths.
type Conv struct {
	Filters int   // required
	Size    []int // of a filter; required
	Stride  []int // distance of neighbouring places of a filter; nil is 1 in each dimension
	Pad     []int // zeros on both sides of each dimension; nil is none
	// zeros such that there are ⌈length/stride⌉ results in each dimension, without Pad; false is those of Pad
	Same     bool
	Dilation []int      // distance of neighbouring elements of a filter; nil is 1 in each dimension
	Groups   int        // of channels, and of filters; 0 is 1
	Act      Activation // behind it; "" is Linear
	Init     Init       // of the filters; nil is as Dense's
	NoBias   bool       // nothing is added; false is that "bias" is
}

// Apply returns [examples, Filters, ...]. Its parameters are "weight" [Filters, channels/Groups, Size...] and
// "bias" [Filters].
func (l Conv) Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	n, groups := len(l.Size), or(l.Groups, 1)
	if l.Filters < 1 || n < 1 || n > 3 || x.Rank() != n+2 || groups < 1 || x.Dim(1)%groups != 0 || l.Filters%groups != 0 {
		return p.Fail(x, "%d filters of %v in %d groups for images %v", l.Filters, l.Size, groups, x.Shape())
	}
	pads, ok := margins(l.Pad, n)
	if !ok || l.Same && l.Pad != nil || l.Stride != nil && len(l.Stride) != n || l.Dilation != nil &&
		len(l.Dilation) != n {
		return p.Fail(x, "stride %v, padding %v (same: %t), dilation %v for %d dimensions", l.Stride, l.Pad, l.Same,
			l.Dilation, n)
	}
	if l.Same {
		pads = make([][2]int, n)
		for i, size := range l.Size {
			stride, dilation, length := 1, 1, x.Dim(i+2)
			if l.Stride != nil {
				stride = max(l.Stride[i], 1)
			}
			if l.Dilation != nil {
				dilation = l.Dilation[i]
			}
			all := max(((length+stride-1)/stride-1)*stride+dilation*(size-1)+1-length, 0)
			pads[i] = [2]int{all / 2, all - all/2}
		}
	}
	w := p.Param("weight", forAct(l.Init, l.Act), append([]int{l.Filters, x.Dim(1) / groups}, l.Size...)...)
	var bias *tensor.Tensor
	if !l.NoBias {
		bias = p.Param("bias", Zeros, l.Filters)
	}
	o := tensor.ConvOptions{Stride: l.Stride, Pad: pads, Dilation: l.Dilation, Groups: groups}
	if p.low == Full {
		return l.Act.Apply(p, tensor.Conv(x, w, bias, o))
	}
	y := tensor.Conv(p.lower(x), p.lower(w), nil, o).Cast(p.typ)
	if bias != nil {
		y = y.Add(alongChannels(bias, y))
	}
	return l.Act.Apply(p, y)
}

// String says how many filters there are, and how large they are.
func (l Conv) String() string {
	same := ""
	if l.Same {
		same = "same"
	}
	return joined(fmt.Sprintf("conv %d %v", l.Filters, l.Size), same) + l.Act.and()
}

// margins returns the same margin on both sides.
func margins(pad []int, dims int) ([][2]int, bool) {
	if pad == nil {
		return nil, true
	}
	var list [][2]int
	for _, n := range pad {
		if n < 0 {
			return nil, false
		}
		list = append(list, [2]int{n, n})
	}
	return list, len(list) == dims
}

// MaxPool returns the maxima of windows, as [tensor.Tensor.MaxPool] does.
type MaxPool struct {
	Size   []int // of a window; required
	Stride []int // distance of neighbouring windows; nil is Size, so that they lie side by side
	Pad    []int // margin on both sides of each dimension; nil is none
}

// AvgPool returns the averages of windows, as [tensor.Tensor.AvgPool] does. Elements of the margins are not counted.
// Its settings are those of [MaxPool].
type AvgPool MaxPool

// Apply returns the maxima.
func (l MaxPool) Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	return l.pooled(p, x, x.MaxPool)
}

// Apply returns the averages.
func (l AvgPool) Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	return MaxPool(l).pooled(p, x, x.AvgPool)
}

func (l MaxPool) pooled(p *Pass, x *tensor.Tensor,
	f func([]int, tensor.PoolOptions) *tensor.Tensor) *tensor.Tensor {
	pads, ok := margins(l.Pad, len(l.Size))
	if !ok || len(l.Size) == 0 || x.Rank() != len(l.Size)+2 {
		return p.Fail(x, "windows of %v with padding %v for images %v", l.Size, l.Pad, x.Shape())
	}
	return f(l.Size, tensor.PoolOptions{Stride: l.Stride, Pad: pads})
}

// String says how large the windows are.
func (l MaxPool) String() string { return fmt.Sprintf("max pool %v", l.Size) }

// String says how large the windows are.
func (l AvgPool) String() string { return fmt.Sprintf("average pool %v", l.Size) }

// GlobalMaxPool returns the largest element of each channel: rows [examples, channels].
type GlobalMaxPool struct{}

// GlobalAvgPool returns the average of each channel: rows [examples, channels].
type GlobalAvgPool struct{}

// Apply returns the maxima.
func (GlobalMaxPool) Apply(_ *Pass, x *tensor.Tensor) *tensor.Tensor {
	return x.GlobalMaxPool().Reshape(x.Dim(0), -1)
}

// Apply returns the averages.
func (GlobalAvgPool) Apply(_ *Pass, x *tensor.Tensor) *tensor.Tensor {
	return x.GlobalAvgPool().Reshape(x.Dim(0), -1)
}

// String names the layer.
func (GlobalMaxPool) String() string { return "global max pool" }

// String names the layer.
func (GlobalAvgPool) String() string { return "global average pool" }
