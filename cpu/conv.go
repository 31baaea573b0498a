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
	across                bool // images and channels have changed places
}

// convolutionOf reads the arguments of conv2d, or, without filters, those of im2col, which has no k and no
// groups. The family has checked them.
func convolutionOf(c *call, filters bool) convolution {
	at := 0
	next := func() int {
		at++
		return int(c.Int(at - 1))
	}
	s := convolution{n: next(), c: next(), h: next(), w: next(), groups: 1, last: c.Flag("NHWC"), across: c.Flag("CNHW")}
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

// convSteps are the distances of neighbouring groups, outer and inner planes of a tensor, counted in planes.
type convSteps struct{ group, outer, inner int }

// imageSteps returns the steps of x for groups, images and channels.
func (s *convolution) imageSteps() convSteps {
	if s.across {
		return convSteps{s.n, 1, s.groups * s.n}
	}
	return convSteps{s.c / s.groups, s.c, 1}
}

// filterSteps returns the steps of the weights for groups, filters and channels.
func (s *convolution) filterSteps() convSteps {
	if s.across {
		return convSteps{s.k / s.groups, 1, s.k}
	}
	channels := s.c / s.groups
	return convSteps{s.k / s.groups * channels, channels, 1}
}

// outSteps returns the steps of y for groups, images and filters.
func (s *convolution) outSteps() convSteps {
	filters := s.k / s.groups
	if s.across {
		return convSteps{filters * s.n, 1, s.n}
	}
	return convSteps{filters, s.k, 1}
}

// plane returns the index of a plane.
func (s convSteps) plane(group, outer, inner int) int {
	return group*s.group + outer*s.outer + inner*s.inner
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
	return (s.imageSteps().plane(g, image, q)*s.h+y)*s.w + x
}

// weight returns the index of element p of a filter of a group.
func (s *convolution) weight(g, filter, p int) int {
	if s.last {
		return (g*(s.k/s.groups)+filter)*s.depth() + p
	}
	places := s.rows * s.cols
	return s.filterSteps().plane(g, filter, p/places)*places + p%places
}

// element returns the index in y of element j of the output of an image for a filter.
func (s *convolution) element(image, filter, j int) int {
	if s.last {
		return (image*s.outs()+j)*s.k + filter
	}
	filters := s.k / s.groups
	return s.outSteps().plane(filter/filters, image, filter%filters)*s.outs() + j
}
