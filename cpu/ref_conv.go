package cpu

// References of conv2d and im2col: the formulas, element by element.

func init() {
	reference("conv2d", "conv2d", refConv2D)
	reference("im2col", "im2col", refIm2Col)
}

func refConv2D(c *Call) error {
	t := refType(c, "T")
	s := convolutionOf(c, true)
	x, weight, set := refGet(c, 16, t), refGet(c, 17, t), refSet(c, 19, t)
	bias := func(int) float64 { return 0 }
	if c.define("BIAS") {
		bias = refGet(c, 18, t)
	}
	outs, depth, filters := s.outs(), s.depth(), s.k/s.groups
	for i := range s.n * s.k * outs {
		o, image := i/outs%s.k, i/outs/s.k
		sum := bias(o)
		for p := range depth {
			if at := s.source(image, o/filters, p, i%outs); at >= 0 {
				sum += x(at) * weight(o*depth+p)
			}
		}
		set(i, sum)
	}
	return nil
}

func refIm2Col(c *Call) error {
	size := refSize(refType(c, "T"))
	s := convolutionOf(c, false)
	get, set := refGetBits(c, 14, size), refSetBits(c, 15, size)
	outs, depth := s.outs(), s.depth()
	for i := range s.n * depth * outs {
		v := uint64(0)
		if at := s.source(i/outs/depth, 0, i/outs%depth, i%outs); at >= 0 {
			v = get(at)
		}
		set(i, v)
	}
	return nil
}
