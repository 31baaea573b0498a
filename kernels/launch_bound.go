package kernels

// The bounds of launches with any arguments, from those of the cases of the same sizes.

// boundFunc is the type of Case.Bound.
type boundFunc = func(arg int, in [][]float64, ref []float64) []float64

// none is the family of cases that only tell their bound.
var none = &Family{}

// exactly is Family.Bound of kernels whose results have to be equal to the reference's.
func exactly(*Call) (boundFunc, bool) { return nil, true }

// knows returns a function for Family.Bound, from one that is always known.
func knows(bound func(c *Call) boundFunc) func(c *Call) (boundFunc, bool) {
	return func(c *Call) (boundFunc, bool) { return bound(c), true }
}

func saxpyLaunch(c *Call) boundFunc {
	return saxpyCase(none, c.Type("T"), "", int(c.Int(3)), 0, nil, nil).Bound
}

func arithLaunch(c *Call) boundFunc {
	if _, broadcast, _ := arithForm(c.Kernel); broadcast {
		return arithBound(Case{}, c.Kernel, c.Type("T"), -1, -1).Bound
	}
	return arithBound(Case{}, c.Kernel, c.Type("T"), 0, 1).Bound
}

func vectorAddLaunch(c *Call) boundFunc { return arithBound(Case{}, "add", c.Type("T"), 0, 1).Bound }

func activationLaunch(c *Call) boundFunc {
	return activationCase(none, c.Kernel, c.Type("T"), "", int(c.Int(2)), nil).Bound
}

func castLaunch(c *Call) boundFunc {
	return castCase(none, c.Type("FROM"), c.Type("TO"), "", int(c.Int(2)), nil).Bound
}

func softmaxLaunch(c *Call) boundFunc {
	return softmaxCase(none, c.Type("T"), "", int(c.Int(2)), int(c.Int(3)), nil).Bound
}

func normLaunch(c *Call) boundFunc {
	at := 3
	if c.Kernel == "layer_norm" {
		at = 4
	}
	return normCase(none, c.Kernel, c.Type("T"), "", int(c.Int(at)), int(c.Int(at+1)), c.Float(at+2), nil).Bound
}

func reduceLaunch(c *Call) boundFunc { return reductionOf(c).bounded(Case{}).Bound }

func scanLaunch(c *Call) boundFunc {
	return scanCase(none, c.Type("T"), "", int(c.Int(3)), int(c.Int(4)), int(c.Int(5)), nil).Bound
}

func segmentLaunch(c *Call) boundFunc {
	return segmentCase(none, c.Kernel, c.Type("T"), [4]int{int(c.Int(4)), int(c.Int(5)), int(c.Int(6)), int(c.Int(7))},
		inOrder(c), "").Bound
}

func scatterLaunch(c *Call) boundFunc {
	if c.Kernel != "scatter_add" {
		return nil
	}
	return scatterAdd(Case{DType: c.Type("T")}, int(c.Int(3)), int(c.Int(4)), int(c.Int(5))).Bound
}

func l2Launch(c *Call) boundFunc {
	s := [3]int{int(c.Int(3)), int(c.Int(4)), int(c.Int(5))}
	return l2Case(none, c.Kernel, l2Types[c.Kernel], "", s, nil, nil).Bound
}

// nearestLaunch knows only the bound of nearest_merge: which vectors are the nearest depends on the rounding of
// distances that are almost equal.
func nearestLaunch(c *Call) (boundFunc, bool) { return nil, c.Kernel == "nearest_merge" }

func w2a8Launch(c *Call) boundFunc {
	if c.Kernel == "quantize_rows" || c.Type("OUT") == "i32" {
		return nil
	}
	return relative("f32", 9, nil)
}

func gemmQLaunch(c *Call) boundFunc {
	if c.Kernel != "gemm_q" {
		return nil
	}
	return gemmQBound(gemmQFormOf(c), int(c.Int(6)), int(c.Int(7)), int(c.Int(8)))
}

// gemmOf returns the sizes and the layout of a product. Where alpha is 0, A and B are not read.
func gemmOf(c *Call) (s gemmShape, p gemmPlace) {
	s = gemmShape{m: int(c.Int(0)), n: int(c.Int(1)), k: int(c.Int(2)), alpha: c.Float(3), beta: c.Float(8),
		transA: c.Flag("TRANS_A"), transB: c.Flag("TRANS_B")}
	if s.alpha == 0 {
		s.k = 0
	}
	p.count, p.stride = gemmCount(c)
	p.ld = [3]int{int(c.Int(5)), int(c.Int(7)), int(c.Int(10))}
	return s, p
}

func gemmLaunch(c *Call) boundFunc {
	t, result := c.Type("T"), c.Type("OUT")
	if c.Kernel == "gemm_i8" || !IsFloat(t) {
		return nil
	}
	s, p := gemmOf(c)
	return func(_ int, in [][]float64, ref []float64) []float64 {
		if c.Kernel == "gemm_bias" {
			act, _ := c.Define("ACT")
			return biasBound(t, result, act, s, p, in, ref)
		}
		return gemmBound(t, result, s, p, in, ref)
	}
}

func gemvLaunch(c *Call) boundFunc {
	s := gemmShape{m: int(c.Int(0)), n: 1, k: int(c.Int(1)), alpha: c.Float(2), beta: c.Float(6),
		transA: c.Flag("TRANS_A")}
	if s.alpha == 0 {
		s.k = 0
	}
	p := gemmPlace{count: 1, ld: [3]int{int(c.Int(4)), 1, 1}}
	return func(_ int, in [][]float64, ref []float64) []float64 {
		return gemmBound(c.Type("T"), c.Type("OUT"), s, p, [][]float64{4: in[3], 6: in[5], 9: in[7]}, ref)
	}
}

// convOf returns the shape of a launch. The padding at the end is such that the output has the given size.
func convOf(c *Call) convShape {
	v := func(i int) int { return int(c.Int(i)) }
	s := convShape{n: v(0), c: v(1), h: v(2), w: v(3), k: v(4), filter: [2]int{v(5), v(6)}, stride: [2]int{v(7), v(8)},
		pad: [2]int{v(9), v(10)}, dilation: [2]int{v(11), v(12)}, groups: v(13), bias: c.Flag("BIAS"), nhwc: c.Flag("NHWC"),
		cnhw: c.Flag("CNHW"), spread: [2]int{c.number("SPREAD_H", 1), c.number("SPREAD_W", 1)}}
	for d, n := range [2]int{s.h, s.w} {
		reach := (v(14+d)-1)*s.stride[d] + s.dilation[d]*(s.filter[d]-1) + 1 // elements that the filters lie on
		s.more[d] = reach - max((n-1)*s.spread[d]+1, 0) - 2*s.pad[d]
	}
	return s
}

func convLaunch(c *Call) boundFunc {
	s := convOf(c)
	return func(_ int, in [][]float64, ref []float64) []float64 { return convBound(c.Type("T"), s, in, ref) }
}
