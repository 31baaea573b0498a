package golden

// Layers, losses and optimizers of package nn, by the names of the data.

import (
	"maps"

	"github.com/concord-compute/concord/nn"
	"github.com/concord-compute/concord/tensor"
)

func init() { maps.Copy(operations, layers) }

// layers are operations by package nn: every layer with given parameters.
var layers = map[string]call{
	"layer_activation": func(c request, x []*T) []*T {
		return applied(activation(c.Attrs.String("name")), false, x[0], nil)
	},
	"layer_prelu": func(c request, x []*T) []*T { return applied(nn.PReLU{}, false, x[0], nil, "slope", x[1]) },
	"layer_dense": func(c request, x []*T) []*T {
		l := nn.Dense{Out: x[2].Len(), Act: activation(c.Attrs.String("act"))}
		return applied(l, false, x[0], nil, "weight", x[1], "bias", x[2])
	},
	"layer_conv": func(c request, x []*T) []*T {
		l := nn.Conv{Filters: x[1].Dim(0), Size: x[1].Shape()[2:], Stride: c.Attrs.Ints("stride"),
			Pad: c.Attrs.Ints("padding"), Same: c.Attrs.Null("padding"),
			Dilation: c.Attrs.Ints("dilation"), Groups: c.Attrs.Int("groups")}
		return applied(l, false, x[0], nil, "weight", x[1], "bias", x[2])
	},
	"layer_batch_norm": func(c request, x []*T) []*T {
		return applied(nn.BatchNorm{}, true, x[0], nil, "weight", x[1], "bias", x[2], "running_mean", x[3], "running_var",
			x[4])
	},
	"layer_batch_norm_inference": func(c request, x []*T) []*T {
		return applied(nn.BatchNorm{}, false, x[0], nil, "weight", x[1], "bias", x[2], "running_mean", x[3], "running_var",
			x[4])
	},
	"layer_embedding": func(c request, x []*T) []*T {
		return applied(nn.Embedding{Count: x[0].Dim(0), Width: x[0].Dim(1)}, false, x[1], nil, "weight", x[0])
	},
	"layer_rnn": func(c request, x []*T) []*T {
		return applied(nn.RNN{Units: x[2].Dim(0), Sequences: c.Attrs.Bool("sequences")}, true, x[0], lengths(x[4:]), "weight",
			x[1], "recurrent", x[2], "bias", x[3])
	},
	"layer_gru": func(c request, x []*T) []*T {
		return applied(nn.GRU{Units: x[2].Dim(0), Sequences: c.Attrs.Bool("sequences")}, true, x[0], lengths(x[5:]), "weight",
			x[1], "recurrent", x[2], "bias", x[3],
			"recurrent_bias", x[4])
	},
	"layer_lstm": func(c request, x []*T) []*T {
		return applied(nn.LSTM{Units: x[2].Dim(0), Sequences: c.Attrs.Bool("sequences")}, true, x[0], lengths(x[4:]),
			"weight", x[1], "recurrent", x[2], "bias", x[3])
	},
	"layer_attention": func(c request, x []*T) []*T {
		l := nn.Attention{Heads: c.Attrs.Int("heads"), Causal: c.Attrs.Bool("causal")}
		return applied(l, true, x[0], lengths(x[8:]), projections("", x[1:8])...)
	},
	"layer_transformer": func(c request, x []*T) []*T {
		l := nn.Transformer{Heads: c.Attrs.Int("heads"), Hidden: x[12].Dim(1), Causal: true, After: c.Attrs.Bool("after")}
		named := append(projections("attention.", x[3:10]), "norm1.weight", x[1], "norm1.bias", x[2], "norm2.weight", x[10],
			"norm2.bias", x[11],
			"wide.weight", x[12], "wide.bias", x[13], "narrow.weight", x[14], "narrow.bias", x[15])
		return applied(l, true, x[0], nil, named...)
	},
	"loss_weighted_softmax_cce": func(c request, x []*T) []*T {
		l := nn.CrossEntropy{Smoothing: c.Attrs.Float("smoothing"), Weights: attr[[]float64](c.Attrs, "weights")}
		return lost(l, x)
	},
	// Losses, which formulas has once more.
	"loss_mse": by(nn.MSE{}), "loss_mae": by(nn.MAE{}), "loss_bce": by(nn.BinaryCrossEntropy{}),
	"loss_cce": by(nn.CategoricalCrossEntropy{}), "loss_sparse_cce": by(nn.CategoricalCrossEntropy{}),
	"loss_softmax_cce": smoothed, "loss_sparse_softmax_cce": smoothed, "loss_sigmoid_bce": by(nn.SigmoidCrossEntropy{}),
	"loss_huber": func(c request, x []*T) []*T { return lost(nn.Huber{Delta: c.Attrs.Float("delta")}, x) },
	"loss_hinge": by(nn.Hinge{}), "loss_squared_hinge": by(nn.SquaredHinge{}), "loss_kl": by(nn.KLDivergence{}),
	"loss_poisson": by(nn.Poisson{}), "loss_cosine": by(nn.CosineSimilarity{}), "loss_log_cosh": by(nn.LogCosh{}),
	"loss_quantile": func(c request, x []*T) []*T { return lost(nn.Quantile{Q: c.Attrs.Float("q")}, x) },

	"optimizer": optimized,
}

func activation(name string) nn.Activation {
	if name == "linear" {
		return nn.Linear
	}
	return nn.Activation(name)
}

// applied returns a layer's results for parameters and statistics with their names in front, and behind them
// the next statistics.
func applied(l nn.Layer, training bool, x, lengths *T, named ...any) []*T {
	values := map[string]*T{}
	for i := 0; i < len(named); i += 2 {
		values[named[i].(string)] = named[i+1].(*T)
	}
	if len(values) == 0 {
		values["x"] = x // which says what the type is
	}
	p := nn.NewPass(values, nil)
	p.Training, p.Lengths = training, lengths
	y := l.Apply(p, x)
	if p.Err() != nil {
		panic(p.Err())
	}
	out := []*T{y}
	for _, name := range []string{"running_mean", "running_var"} {
		if t := p.States()[name]; t != nil {
			out = append(out, t)
		}
	}
	return out
}

// lengths is the input that a case may have behind all others.
func lengths(x []*T) *T {
	if len(x) == 0 {
		return nil
	}
	return x[0]
}

// projections are the parameters of attention with their names.
func projections(prefix string, x []*T) (named []any) {
	for i, name := range []string{"query.weight", "query.bias", "key.weight", "value.weight", "value.bias", "out.weight",
		"out.bias"} {
		named = append(named, prefix+name, x[i])
	}
	return append(named, prefix+"key.bias", tensor.Full(x[0].Scope(), x[0].Type(), 0.5, x[0].Dim(1)))
}

// by is a loss without attributes.
func by(l nn.Loss) call { return func(_ request, x []*T) []*T { return lost(l, x) } }

func smoothed(c request, x []*T) []*T {
	return lost(nn.CrossEntropy{Smoothing: c.Attrs.Float("smoothing")}, x)
}

func lost(l nn.Loss, x []*T) []*T {
	y, err := l.Of(x[0], x[1])
	if err != nil {
		panic(err)
	}
	return []*T{y.Reshape()}
}

// optimizers by their names in the data.
var optimizers = map[string]nn.Optimizer{"sgd": nn.SGD{}, "momentum": nn.Momentum{}, "nesterov": nn.Nesterov{},
	"adagrad": nn.Adagrad{}, "adadelta": nn.Adadelta{},
	"rmsprop": nn.RMSprop{}, "adam": nn.Adam{}, "adamax": nn.AdaMax{}, "nadam": nn.Nadam{}, "amsgrad": nn.AMSGrad{},
	"adabound": nn.AdaBound{}}

// optimized makes ten steps with all tensors as one.
func optimized(c request, x []*T) []*T {
	o := optimizers[c.Attrs.String("name")]
	var flat []*T
	for _, a := range x[:3] {
		flat = append(flat, a.Flatten())
	}
	w := tensor.Concat(0, flat...)
	rate := tensor.Full(w.Scope(), w.Type(), c.Attrs.Float("rate"), 1)
	states := make([]*T, len(o.States()))
	for i := range states {
		states[i] = tensor.Zeros(w.Scope(), w.Type(), w.Len())
	}
	parts := func(w *T) (list []*T) {
		at := 0
		for _, a := range x[:3] {
			list = append(list, w.Narrow(0, at, a.Len()).Reshape(a.Shape()...))
			at += a.Len()
		}
		return list
	}
	for step := 1; step <= 10; step++ {
		loss := tensor.Zeros(w.Scope(), w.Type())
		for i, p := range parts(w) {
			q := x[3+i]
			loss = loss.Add(p.Sub(q).Cos().Neg().Add(1).Sum()).Add(p.Mul(q).Square().Sum().Div(8))
		}
		w, states = o.Update(w, tensor.Grad(loss, w)[0], states, rate, tensor.Full(w.Scope(), w.Type(), step, 1))
	}
	return parts(w)
}
