package nn

// Activations.

import (
	"maps"
	"slices"
	"strings"

	"github.com/concord-compute/concord/tensor"
)

// Activation is a function of each element, or of each row: a layer without parameters. The zero value is the
// default of the layer that has it: Linear, which changes nothing, unless the layer says another one.
type Activation string

// The activations. Softmax is one of the last dimension, and SwiGLU returns swish(a)·b of the halves a and b of
// the last dimension.
const (
	Linear      Activation = "linear"
	Sigmoid     Activation = "sigmoid"
	Tanh        Activation = "tanh"
	ReLU        Activation = "relu"
	LeakyReLU   Activation = "leaky_relu" // 0.01·x below 0
	ELU         Activation = "elu"
	Swish       Activation = "swish"
	GELU        Activation = "gelu" // the form with tanh
	GELUErf     Activation = "gelu_erf"
	Softplus    Activation = "softplus"
	Mish        Activation = "mish"
	HardSigmoid Activation = "hard_sigmoid"
	HardTanh    Activation = "hard_tanh"
	Softmax     Activation = "softmax"
	LogSoftmax  Activation = "log_softmax"
	SwiGLU      Activation = "swiglu"
)

var activations = map[Activation]func(x *tensor.Tensor) *tensor.Tensor{
	Linear:      func(x *tensor.Tensor) *tensor.Tensor { return x },
	Sigmoid:     (*tensor.Tensor).Sigmoid,
	Tanh:        (*tensor.Tensor).Tanh,
	ReLU:        (*tensor.Tensor).Relu,
	LeakyReLU:   func(x *tensor.Tensor) *tensor.Tensor { return x.LeakyRelu(0.01) },
	ELU:         func(x *tensor.Tensor) *tensor.Tensor { return x.ELU(1) },
	Swish:       (*tensor.Tensor).SiLU,
	GELU:        (*tensor.Tensor).GELUTanh,
	GELUErf:     (*tensor.Tensor).GELU,
	Softplus:    (*tensor.Tensor).Softplus,
	Mish:        (*tensor.Tensor).Mish,
	HardSigmoid: (*tensor.Tensor).HardSigmoid,
	HardTanh:    (*tensor.Tensor).HardTanh,
	Softmax:     func(x *tensor.Tensor) *tensor.Tensor { return x.Softmax(-1) },
	LogSoftmax:  func(x *tensor.Tensor) *tensor.Tensor { return x.LogSoftmax(-1) },
	SwiGLU: func(x *tensor.Tensor) *tensor.Tensor {
		n := x.Dim(-1) / 2
		half := x.Split(-1, n, n)
		return half[0].SiLU().Mul(half[1])
	},
}

// Activations returns the names of all activations, in alphabetical order.
func Activations() []Activation { return slices.Sorted(maps.Keys(activations)) }

// Apply returns the function of x.
func (a Activation) Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	f := activations[or(a, Linear)]
	if f == nil {
		return p.Fail(x, "no activation %q; there are %v", string(a), Activations())
	}
	return f(x)
}

// String returns the name.
func (a Activation) String() string { return string(or(a, Linear)) }

// and is how a layer's description ends that has the activation.
func (a Activation) and() string {
	if or(a, Linear) == Linear {
		return ""
	}
	return " " + string(a)
}

// PReLU returns x where it is positive, else a·x, with a learned number for each channel, dimension 1.
type PReLU struct {
	Start *float64 // the first value of a; nil is 0.01
}

// Apply returns the function of x. Its parameter is "slope".
func (l PReLU) Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	if x.Rank() < 2 {
		return p.Fail(x, "inputs without channels")
	}
	a := alongChannels(p.Param("slope", Constant(given(l.Start, 0.01)), x.Dim(1)), x)
	return tensor.Where(x.Gt(0), x, x.Mul(a))
}

// String names the layer.
func (l PReLU) String() string { return "prelu" }

// alongChannels returns a vector so that it stretches along dimension 1 of x.
func alongChannels(v, x *tensor.Tensor) *tensor.Tensor {
	shape := slices.Repeat([]int{1}, max(x.Rank()-1, 1))
	shape[0] = v.Len()
	return v.Reshape(shape...)
}

// or returns x, or if it is zero what stands for that.
func or[T comparable](x, otherwise T) T {
	var zero T
	if x == zero {
		return otherwise
	}
	return x
}

// given returns what p points to, or where p is nil what stands for that.
func given[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// joined are words with a space between those that are not empty.
func joined(words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}
