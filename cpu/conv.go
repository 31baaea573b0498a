package cpu

// The arguments of a launch of conv2d or im2col.

import "strconv"

// convolution has the sizes: n images of c channels of h×w, k filters of rows×cols, groups.
type convolution struct {
	n, c, h, w, k, groups int
	rows, cols            int // of a filter
	strideH, strideW      int
	padH, padW            int
	dilationH, dilationW  int
	outH, outW            int
	gapH, gapW            int  // zeros between the elements of the image
	last                  bool // channels are innermost
}

// convolutionOf reads the arguments of conv2d, or, without filters, those of im2col, which has no k and no
// groups. The family has checked them.
func convolutionOf(c *call, filters bool) convolution {
	at := 0
	next := func() int {
		at++
		return int(c.Int(at - 1))
	}
	s := convolution{n: next(), c: next(), h: next(), w: next(), groups: 1, last: c.Flag("NHWC")}
	if filters {
		s.k = next()
	}
	s.rows, s.cols, s.strideH, s.strideW = next(), next(), next(), next()
	s.padH, s.padW, s.dilationH, s.dilationW = next(), next(), next(), next()
	if filters {
		s.groups = next()
	}
	s.outH, s.outW = next(), next()
	gap := func(define string) int {
		v, _ := c.Define(define)
		spread, _ := strconv.Atoi(v) // the family has checked it
		return max(spread, 1) - 1
	}
	s.gapH, s.gapW = gap("SPREAD_H"), gap("SPREAD_W")
	return s
}

// depth returns the number of products that are summed for one element of the output.
func (s *convolution) depth() int { return s.c / s.groups * s.rows * s.cols }

// outs returns the number of elements of the output for one filter and one image.
func (s *convolution) outs() int { return s.outH * s.outW }

// source returns the index in x of the element that element p of a filter of group g is multiplied by for
// element j of the output of an image, or -1 if it is in the padding or between elements. p counts through the
// channels, rows and columns of a filter, or, with channels innermost, through its rows, columns and channels.
func (s *convolution) source(image, g, p, j int) int {
	channels := s.c / s.groups
	q, r, e := p/s.cols/s.rows, p/s.cols%s.rows, p%s.cols
	if s.last {
		q, r, e = p%channels, p/channels/s.cols, p/channels%s.cols
	}
	y, x := j/s.outW*s.strideH+r*s.dilationH-s.padH, j%s.outW*s.strideW+e*s.dilationW-s.padW
	if y < 0 || x < 0 || y%(s.gapH+1) != 0 || x%(s.gapW+1) != 0 {
		return -1
	}
	if y, x = y/(s.gapH+1), x/(s.gapW+1); y >= s.h || x >= s.w {
		return -1
	}
	if s.last {
		return ((image*s.h+y)*s.w+x)*s.c + g*channels + q
	}
	return ((image*s.c+g*channels+q)*s.h+y)*s.w + x
}

// element returns the index in y of element j of the output of an image for a filter.
func (s *convolution) element(image, filter, j int) int {
	if s.last {
		return (image*s.outs()+j)*s.k + filter
	}
	return (image*s.k+filter)*s.outs() + j
}
