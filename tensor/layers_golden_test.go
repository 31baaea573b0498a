package tensor

import "github.com/concord-compute/concord/tests/golden"

// bothEnds returns the same margins in front and behind.
func bothEnds(pad []int) (list [][2]int) {
	for _, n := range pad {
		list = append(list, [2]int{n, n})
	}
	return list
}

func init() {
	third := func(x []*Tensor) *Tensor {
		if len(x) < 3 {
			return nil
		}
		return x[2]
	}
	for _, dims := range []string{"1d", "2d", "3d"} {
		goldens["conv"+dims] = one(func(a golden.Attrs, x []*Tensor) *Tensor {
			return Conv(x[0], x[1], third(x), ConvOptions{Stride: a.Ints("stride"), Pad: bothEnds(a.Ints("padding")), Dilation: a.Ints("dilation"), Groups: a.Int("groups")})
		})
		goldens["conv_transpose"+dims] = one(func(a golden.Attrs, x []*Tensor) *Tensor {
			return ConvTranspose(x[0], x[1], third(x), ConvTransposeOptions{Stride: a.Ints("stride"), Pad: bothEnds(a.Ints("padding")),
				OutputPad: a.Ints("output_padding"), Dilation: a.Ints("dilation"), Groups: a.Int("groups")})
		})
		pool := func(a golden.Attrs) ([]int, PoolOptions) {
			return a.Ints("kernel"), PoolOptions{Stride: a.Ints("stride"), Pad: bothEnds(a.Ints("padding"))}
		}
		goldens["max_pool"+dims] = one(func(a golden.Attrs, x []*Tensor) *Tensor { return x[0].MaxPool(pool(a)) })
		goldens["avg_pool"+dims] = one(func(a golden.Attrs, x []*Tensor) *Tensor { return x[0].AvgPool(pool(a)) })
	}
	goldens["global_max_pool"] = one(func(_ golden.Attrs, x []*Tensor) *Tensor { return x[0].GlobalMaxPool() })
	goldens["global_avg_pool"] = one(func(_ golden.Attrs, x []*Tensor) *Tensor { return x[0].GlobalAvgPool() })
	goldens["layer_norm"] = one(func(a golden.Attrs, x []*Tensor) *Tensor { return x[0].LayerNorm(x[1], x[2], a.Float("eps")) })
	goldens["rms_norm"] = one(func(a golden.Attrs, x []*Tensor) *Tensor { return x[0].RMSNorm(x[1], a.Float("eps")) })
	goldens["group_norm"] = one(func(a golden.Attrs, x []*Tensor) *Tensor {
		return x[0].GroupNorm(a.Int("groups"), x[1], x[2], a.Float("eps"))
	})
	goldens["batch_norm"] = one(func(a golden.Attrs, x []*Tensor) *Tensor {
		y, _, _ := x[0].BatchNorm(x[1], x[2], a.Float("eps"))
		return y
	})
	goldens["batch_norm_inference"] = one(func(a golden.Attrs, x []*Tensor) *Tensor {
		return x[0].BatchNormInference(x[1], x[2], x[3], x[4], a.Float("eps"))
	})
	goldens["attention"] = one(func(a golden.Attrs, x []*Tensor) *Tensor {
		o := AttentionOptions{Causal: a.Bool("causal"), Offset: a.Int("offset")}
		if !a.Null("scale") {
			o.Scale = a.Float("scale")
		}
		if len(x) > 3 {
			o.Mask = x[3]
		}
		return Attention(x[0], x[1], x[2], o)
	})
}
