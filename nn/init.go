package nn

// First values of parameters.

import (
	"math"

	"github.com/concord-compute/concord/tensor"
)

// Init returns the first value of a parameter. in and out, the fan-in and the fan-out, are how many numbers an output
// of the layer is made of, and how many an input is part of. Of matrices [in, out] these are their dimensions, of
// filters [filters, channels, sizes...] channels and filters, each times the volume of a filter. Others have the number
// of their elements as both.
type Init func(s *tensor.Scope, seed any, t tensor.Type, in, out int, shape ...int) *tensor.Tensor

// Constant is a number everywhere.
func Constant(value float64) Init {
	return func(s *tensor.Scope, _ any, t tensor.Type, _, _ int, shape ...int) *tensor.Tensor {
		return tensor.Full(s, t, value, shape...)
	}
}

// Gaussian has a normal distribution around 0 with a standard deviation.
func Gaussian(std float64) Init {
	return func(s *tensor.Scope, seed any, t tensor.Type, _, _ int, shape ...int) *tensor.Tensor {
		return tensor.Normal(s, t, seed, 0, std, shape...)
	}
}

// within draws evenly between -b and b with b² = squared, around with that variance.
func within(squared func(in, out float64) float64) Init {
	return func(s *tensor.Scope, seed any, t tensor.Type, in, out int, shape ...int) *tensor.Tensor {
		b := math.Sqrt(squared(float64(in), float64(out)))
		return tensor.Uniform(s, t, seed, -b, b, shape...)
	}
}

func around(variance func(in, out float64) float64) Init {
	return func(s *tensor.Scope, seed any, t tensor.Type, in, out int, shape ...int) *tensor.Tensor {
		return tensor.Normal(s, t, seed, 0, math.Sqrt(variance(float64(in), float64(out))), shape...)
	}
}

// The usual first values.
var (
	Zeros         Init = Constant(0)
	XavierUniform Init = within(func(in, out float64) float64 { return 6 / (in + out) })
	XavierNormal  Init = around(func(in, out float64) float64 { return 2 / (in + out) })
	HeUniform     Init = within(func(in, _ float64) float64 { return 6 / in })
	HeNormal      Init = around(func(in, _ float64) float64 { return 2 / in })
	LeCunUniform  Init = within(func(in, _ float64) float64 { return 3 / in })
	LeCunNormal   Init = around(func(in, _ float64) float64 { return 1 / in })
)

// fans returns in and out of a shape, as Init has them.
func fans(shape []int) (in, out int) {
	volume := 1
	for _, d := range shape[min(2, len(shape)):] {
		volume *= d
	}
	switch len(shape) {
	case 0:
		return 1, 1
	case 1:
		return shape[0], shape[0]
	case 2:
		return shape[0], shape[1]
	}
	return shape[1] * volume, shape[0] * volume
}

// forAct returns init, or if it is nil the usual one in front of an activation.
func forAct(init Init, a Activation) Init {
	switch {
	case init != nil:
		return init
	case a == ReLU || a == LeakyReLU:
		return HeUniform
	}
	return XavierUniform
}
