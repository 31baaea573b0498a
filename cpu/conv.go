package cpu

// The arguments of a launch of conv2d or im2col.

// convolution has the sizes: n images of c channels of h×w, k filters of rows×cols, groups.
type convolution struct {
	n, c, h, w, k, groups int
	rows, cols            int // of a filter
	strideH, strideW      int
	padH, padW            int
	dilationH, dilationW  int
	outH, outW            int
}

// convolutionOf reads the arguments of conv2d, or, without filters, those of im2col, which has no k and no
// groups. The family has checked them.
func convolutionOf(c *call, filters bool) convolution {
	at := 0
	next := func() int {
		at++
		return int(c.Int(at - 1))
	}
	s := convolution{n: next(), c: next(), h: next(), w: next(), groups: 1}
	if filters {
		s.k = next()
	}
	s.rows, s.cols, s.strideH, s.strideW = next(), next(), next(), next()
	s.padH, s.padW, s.dilationH, s.dilationW = next(), next(), next(), next()
	if filters {
		s.groups = next()
	}
	s.outH, s.outW = next(), next()
	return s
}

// depth returns the number of products that are summed for one element of the output.
func (s *convolution) depth() int { return s.c / s.groups * s.rows * s.cols }

// outs returns the number of elements of the output for one filter and one image.
func (s *convolution) outs() int { return s.outH * s.outW }

// source returns the index in x of the element that element p of a filter of group g is multiplied by for
// element j of the output of an image, or -1 if it is in the padding. p counts through the
// channels, rows and columns of a filter.
func (s *convolution) source(image, g, p, j int) int {
	q, r, e := p/s.cols/s.rows, p/s.cols%s.rows, p%s.cols
	y, x := j/s.outW*s.strideH+r*s.dilationH-s.padH, j%s.outW*s.strideW+e*s.dilationW-s.padW
	if y < 0 || y >= s.h || x < 0 || x >= s.w {
		return -1
	}
	return ((image*s.c+g*(s.c/s.groups)+q)*s.h+y)*s.w + x
}
