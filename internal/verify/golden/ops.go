package golden

// The operations of package tensor by the names of the data.

import (
	"math"

	"github.com/concord-compute/concord/tensor"
)

// T is short for a tensor of package tensor.
type T = tensor.Tensor

// call computes the outputs of a case from its inputs.
type call func(c request, x []*T) []*T

// operations has a function for each operation of the data. It returns nil for a variant that package tensor lacks.
var operations = map[string]call{
	"neg": unary((*T).Neg), "abs": unary((*T).Abs), "sqrt": unary((*T).Sqrt), "rsqrt": unary((*T).Rsqrt),
	"exp":  unary((*T).Exp),
	"exp2": unary((*T).Exp2), "expm1": unary((*T).Expm1), "log": unary((*T).Log), "log2": unary((*T).Log2),
	"log1p": unary((*T).Log1p),
	"sin":   unary((*T).Sin), "cos": unary((*T).Cos), "tan": unary((*T).Tan), "sinh": unary((*T).Sinh),
	"cosh": unary((*T).Cosh),
	"tanh": unary((*T).Tanh), "asin": unary((*T).Asin), "acos": unary((*T).Acos), "asinh": unary((*T).Asinh),
	"acosh": unary((*T).Acosh), "atanh": unary((*T).Atanh), "atan": unary((*T).Atan),
	"erf": unary((*T).Erf), "erfc": unary((*T).Erfc),
	"sigmoid": unary((*T).Sigmoid),
	"floor":   unary((*T).Floor), "ceil": unary((*T).Ceil), "trunc": unary((*T).Trunc), "round": unary((*T).Round),
	"relu": unary((*T).Relu),
	"gelu": unary((*T).GELU), "gelu_tanh": unary((*T).GELUTanh), "silu": unary((*T).SiLU),
	"softplus": unary((*T).Softplus),
	"mish":     unary((*T).Mish), "hard_sigmoid": unary((*T).HardSigmoid), "hard_tanh": unary((*T).HardTanh),
	"square":     unary((*T).Square),
	"reciprocal": unary((*T).Reciprocal), "sign": unary((*T).Sign), "isnan": unary((*T).IsNaN), "not": unary((*T).Not),
	"leaky_relu": one(func(c request, x *T) *T { return x.LeakyRelu(c.Attrs.Float("slope")) }),
	"elu":        one(func(c request, x *T) *T { return x.ELU(c.Attrs.Float("alpha")) }),
	"pow_scalar": one(func(c request, x *T) *T { return x.Pow(c.Attrs.Float("exponent")) }),
	"clamp": one(func(c request, x *T) *T {
		return x.Clamp(c.limit(x, "lo", math.Inf(-1)), c.limit(x, "hi", math.Inf(1)))
	}),
	"cast": func(c request, x []*T) []*T {
		y := x[0]
		for _, name := range c.Attrs.Strings("through") {
			y = y.Cast(c.typeOf(name))
		}
		return []*T{y}
	},

	"add": binary((*T).Add), "sub": binary((*T).Sub), "mul": binary((*T).Mul), "div": binary((*T).Div),
	"quo": binary((*T).Quo),
	"rem": binary((*T).Rem), "minimum": binary((*T).Minimum), "maximum": binary((*T).Maximum), "pow": binary((*T).Pow),
	"atan2": binary((*T).Atan2), "copysign": binary((*T).CopySign), "eq": binary((*T).Eq), "ne": binary((*T).Ne),
	"lt": binary((*T).Lt),
	"le": binary((*T).Le), "gt": binary((*T).Gt), "ge": binary((*T).Ge), "and": binary((*T).And), "or": binary((*T).Or),
	"xor":      binary((*T).Xor),
	"where":    func(c request, x []*T) []*T { return []*T{tensor.Where(x[0], x[1], x[2])} },
	"clamp_by": func(c request, x []*T) []*T { return []*T{x[0].Clamp(x[1], x[2])} },

	"sum": reduction((*T).Sum), "prod": reduction((*T).Prod), "mean": reduction((*T).Mean), "max": reduction((*T).Max),
	"min": reduction((*T).Min), "all": reduction((*T).All), "any": reduction((*T).Any),
	"logsumexp": reduction((*T).LogSumExp),
	"var": func(c request, x []*T) []*T {
		return reduction(func(x *T, axes ...int) *T { return x.Var(c.Attrs.Int("correction"), axes...) })(c, x)
	},
	"std": func(c request, x []*T) []*T {
		return reduction(func(x *T, axes ...int) *T { return x.Std(c.Attrs.Int("correction"), axes...) })(c, x)
	},
	"norm": func(c request, x []*T) []*T {
		return reduction(func(x *T, axes ...int) *T { return x.Norm(c.Attrs.Float("p"), axes...) })(c, x)
	},
	"argmax": along((*T).ArgMax), "argmin": along((*T).ArgMin), "cumsum": along((*T).CumSum),
	"softmax":     along((*T).Softmax),
	"log_softmax": along((*T).LogSoftmax),

	"permute":   one(func(c request, x *T) *T { return x.Permute(c.Attrs.Ints("order")...) }),
	"transpose": one(func(c request, x *T) *T { return x.Transpose(c.Attrs.Int("a"), c.Attrs.Int("b")) }),
	"reshape":   one(func(c request, x *T) *T { return x.Reshape(c.Attrs.Ints("shape")...) }),
	"flip":      one(func(c request, x *T) *T { return x.Flip(c.Attrs.Ints("axes")...) }),
	"expand":    one(func(c request, x *T) *T { return x.Expand(c.Attrs.Ints("shape")...) }),
	"squeeze":   one(func(c request, x *T) *T { return x.Squeeze(c.Attrs.Ints("axes")...) }),
	"unsqueeze": along((*T).Unsqueeze),
	"slice":     one(func(c request, x *T) *T { return x.Slice(c.ranges()...) }),

	"matmul": func(c request, x []*T) []*T {
		a, b := x[0], x[1]
		if c.Attrs.Bool("transpose_a") {
			a = a.T()
		}
		if c.Attrs.Bool("transpose_b") {
			b = b.T()
		}
		return []*T{a.MatMul(b)}
	},
	"einsum": func(c request, x []*T) []*T { return []*T{tensor.Einsum(c.Attrs.String("spec"), x...)} },

	"concat": func(c request, x []*T) []*T { return []*T{tensor.Concat(c.Attrs.Int("axis"), x...)} },
	"stack":  func(c request, x []*T) []*T { return []*T{tensor.Stack(c.Attrs.Int("axis"), x...)} },
	"split":  func(c request, x []*T) []*T { return x[0].Split(c.Attrs.Int("axis"), c.Attrs.Ints("lengths")...) },
	"pad": one(func(c request, x *T) *T {
		var margins [][2]int
		for _, m := range c.Attrs.Rows("margins") {
			margins = append(margins, [2]int{*m[0], *m[1]})
		}
		for _, mode := range []tensor.PadMode{tensor.Replicate, tensor.Reflect, tensor.Symmetric, tensor.Circular} {
			if c.Attrs.String("mode") == mode.String() {
				return x.PadWith(mode, margins...)
			}
		}
		return x.Pad(c.number(x, "value"), margins...)
	}),
	"tile": one(func(c request, x *T) *T { return x.Tile(c.Attrs.Ints("repeats")...) }),
	"roll": one(func(c request, x *T) *T {
		axes := c.Attrs.Ints("axes")
		for i, n := range c.Attrs.Ints("shifts") {
			x = x.Roll(axes[i], n)
		}
		return x
	}),

	"repeat":   one(func(c request, x *T) *T { return x.Repeat(c.Attrs.Int("axis"), c.Attrs.Int("n")) }),
	"tril":     one(func(c request, x *T) *T { return x.Tril(c.Attrs.Int("k")) }),
	"triu":     one(func(c request, x *T) *T { return x.Triu(c.Attrs.Int("k")) }),
	"diagonal": one(func(c request, x *T) *T { return x.Diagonal(c.Attrs.Int("k")) }),
	"diag":     unary((*T).Diag),

	"take":        func(c request, x []*T) []*T { return []*T{x[0].Take(c.Attrs.Int("axis"), x[1])} },
	"take_along":  func(c request, x []*T) []*T { return []*T{x[0].TakeAlong(c.Attrs.Int("axis"), x[1])} },
	"embedding":   func(c request, x []*T) []*T { return []*T{tensor.Embedding(x[0], x[1])} },
	"scatter_add": func(c request, x []*T) []*T { return []*T{x[0].ScatterAdd(c.Attrs.Int("axis"), x[1], x[2])} },
	"scatter":     func(c request, x []*T) []*T { return []*T{x[0].Scatter(c.Attrs.Int("axis"), x[1], x[2])} },
	"index_add":   func(c request, x []*T) []*T { return []*T{x[0].IndexAdd(c.Attrs.Int("axis"), x[1], x[2])} },
	"index_set":   func(c request, x []*T) []*T { return []*T{x[0].IndexSet(c.Attrs.Int("axis"), x[1], x[2])} },
	"one_hot":     one(func(c request, x *T) *T { return x.OneHot(c.Attrs.Int("n"), c.typ) }),

	"sort": func(c request, x []*T) []*T {
		values, indices := x[0].Sort(c.Attrs.Int("axis"), c.Attrs.Bool("descending"))
		return []*T{values, indices}
	},
	"argsort": one(func(c request, x *T) *T { return x.ArgSort(c.Attrs.Int("axis"), c.Attrs.Bool("descending")) }),
	"topk": func(c request, x []*T) []*T {
		values, indices := x[0].TopK(c.Attrs.Int("k"), c.Attrs.Int("axis"), c.Attrs.Bool("largest"))
		return []*T{values, indices}
	},

	"layer_norm": func(c request, x []*T) []*T { return []*T{x[0].LayerNorm(x[1], x[2], c.Attrs.Float("eps"))} },
	"rms_norm":   func(c request, x []*T) []*T { return []*T{x[0].RMSNorm(x[1], c.Attrs.Float("eps"))} },
	"group_norm": func(c request, x []*T) []*T {
		return []*T{x[0].GroupNorm(c.Attrs.Int("groups"), x[1], x[2], c.Attrs.Float("eps"))}
	},
	"batch_norm": func(c request, x []*T) []*T {
		y, _, _ := x[0].BatchNorm(x[1], x[2], c.Attrs.Float("eps"))
		return []*T{y}
	},
	"batch_norm_inference": func(c request, x []*T) []*T {
		return []*T{x[0].BatchNormInference(x[1], x[2], x[3], x[4], c.Attrs.Float("eps"))}
	},

	"conv1d": convolution, "conv2d": convolution, "conv3d": convolution, "conv_transpose1d": transposed,
	"conv_transpose2d": transposed,
	"max_pool1d":       pooling((*T).MaxPool), "max_pool2d": pooling((*T).MaxPool), "max_pool3d": pooling((*T).MaxPool),
	"avg_pool1d": pooling((*T).AvgPool), "avg_pool2d": pooling((*T).AvgPool), "avg_pool3d": pooling((*T).AvgPool),
	"global_max_pool": unary((*T).GlobalMaxPool), "global_avg_pool": unary((*T).GlobalAvgPool),

	"attention": func(c request, x []*T) []*T {
		o := tensor.AttentionOptions{Causal: c.Attrs.Bool("causal"), Offset: c.Attrs.Int("offset")}
		if !c.Attrs.Null("scale") {
			o.Scale = new(c.Attrs.Float("scale"))
		}
		if len(x) > 3 {
			o.Mask = x[3]
		}
		return []*T{tensor.Attention(x[0], x[1], x[2], o)}
	},
}

func unary(f func(*T) *T) call { return func(c request, x []*T) []*T { return []*T{f(x[0])} } }

func binary(f func(*T, any) *T) call {
	return func(c request, x []*T) []*T { return []*T{f(x[0], x[1])} }
}

func one(f func(request, *T) *T) call {
	return func(c request, x []*T) []*T {
		if y := f(c, x[0]); y != nil {
			return []*T{y}
		}
		return nil
	}
}

// along is an operation with the attribute axis.
func along(f func(*T, int) *T) call {
	return one(func(c request, x *T) *T { return f(x, c.Attrs.Int("axis")) })
}

// reduction is an operation with the attributes axes and keepdims.
func reduction(f func(*T, ...int) *T) call {
	return one(func(c request, x *T) *T {
		axes := c.Attrs.Ints("axes")
		y := f(x, axes...)
		if c.Attrs.Bool("keepdims") {
			y = x.KeepDims(y, axes...)
		}
		return y
	})
}

// margins returns the attribute padding, which is the same in front and behind.
func (c request) margins() (list [][2]int) {
	for _, n := range c.Attrs.Ints("padding") {
		list = append(list, [2]int{n, n})
	}
	return list
}

// third returns the third tensor, nil if there is none.
func third(x []*T) *T {
	if len(x) < 3 {
		return nil
	}
	return x[2]
}

func convolution(c request, x []*T) []*T {
	return []*T{tensor.Conv(x[0], x[1], third(x), tensor.ConvOptions{Stride: c.Attrs.Ints("stride"), Pad: c.margins(),
		Dilation: c.Attrs.Ints("dilation"), Groups: c.Attrs.Int("groups")})}
}

func transposed(c request, x []*T) []*T {
	return []*T{
		tensor.ConvTranspose(x[0], x[1], third(x), tensor.ConvTransposeOptions{Stride: c.Attrs.Ints("stride"),
			Pad:       c.margins(),
			OutputPad: c.Attrs.Ints("output_padding"), Dilation: c.Attrs.Ints("dilation"), Groups: c.Attrs.Int("groups")})}
}

func pooling(f func(*T, []int, tensor.PoolOptions) *T) call {
	return one(func(c request, x *T) *T {
		return f(x, c.Attrs.Ints("kernel"), tensor.PoolOptions{Stride: c.Attrs.Ints("stride"), Pad: c.margins()})
	})
}

// number returns a numeric attribute as an element of x's type.
func (c request) number(x *T, name string) any {
	if tensor.IsFloat(x.Type()) {
		return c.Attrs.Float(name)
	}
	return c.Attrs.Int(name)
}

// limit is such a number, or one that stands for null.
func (c request) limit(x *T, name string, none float64) any {
	if c.Attrs.Null(name) {
		return none
	}
	return c.number(x, name)
}

func (c request) ranges() (list []tensor.Range) {
	for _, row := range c.Attrs.Rows("ranges") {
		r := tensor.Range{Start: 0, Stop: tensor.End, Step: 1}
		if row[2] != nil {
			r.Step = *row[2]
		}
		if row[1] != nil {
			r.Stop = *row[1]
		}
		if r.Step < 0 {
			r.Start = tensor.End
		}
		if row[0] != nil {
			r.Start = *row[0]
		}
		list = append(list, r)
	}
	return list
}
