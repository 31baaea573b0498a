package cpu

// conv2d and im2col in Go: conv2d as products of filters with gathered columns.

import "github.com/concord-compute/concord/kernels"

func init() {
	native("conv2d", "conv2d", typed(goConv2D[float32], goConv2D[float64]))
	native("im2col", "im2col", func(c *call) error {
		return bySize(c, c.Type("T"), im2col[uint8], im2col[uint16], im2col[uint32], im2col[uint64])
	})
}

func goConv2D[F number](c *call, t string) error {
	s := convolutionOf(c, true)
	x, weight, y := viewOf[F](c, 16, t), viewOf[F](c, 17, t), viewOf[F](c, 19, t)
	var bias view[F]
	if c.Flag("BIAS") {
		bias = viewOf[F](c, 18, t)
	}
	outs, depth, filters := s.outs(), s.depth(), s.k/s.groups
	for z := range s.n * s.groups {
		image, group := z/s.groups, z%s.groups
		column := func(j, p0, p1 int, dst []F) {
			for p := p0; p < p1; p++ {
				dst[p-p0] = 0
				if at := s.source(image, group, p, j); at >= 0 {
					dst[p-p0] = x.at(at)
				}
			}
		}
		row := func(i, p0, p1 int, dst []F) {
			if s.across {
				for p := p0; p < p1; p++ {
					dst[p-p0] = weight.at(s.weight(group, i, p))
				}
				return
			}
			at := (group*filters + i) * depth
			copy(dst, weight.read(at+p0, at+p1, dst))
		}
		err := rowProducts(c, filters, outs, depth, row, column, dots[F], func(i, j int, sums []F) {
			filter, add := group*filters+i, F(0)
			if bias.full != nil || bias.bits != nil {
				add = bias.at(filter)
			}
			for q, v := range sums {
				y.set(s.element(image, filter, j+q), v+add)
			}
		})
		if err != nil {
			return err
		}
	}
	return c.ctx.Err()
}

// im2col fills rows of the output. If neighbours in the output are neighbours in the image, a row is
// copied as a whole.
func im2col[U unsigned](c *call) error {
	s := convolutionOf(c, false)
	x, columns := kernels.Elements[U](&c.Call, 14), kernels.Elements[U](&c.Call, 15)
	depth := s.depth()
	return c.Parallel(s.n*depth*s.outH, max(c.Choose(goGrain)/s.outW, 1), func(lo, hi int) {
		for line := lo; line < hi; line++ {
			image, p, i := line/s.outH/depth, line/s.outH%depth, line%s.outH
			q, r, e := p/s.cols/s.rows, p/s.cols%s.rows, p%s.cols
			to := columns[line*s.outW : (line+1)*s.outW]
			y, first := i*s.strideH+r*s.dilationH-s.padH, e*s.dilationW-s.padW
			if y < 0 || y >= s.h {
				clear(to)
				continue
			}
			from := x[((image*s.c+q)*s.h+y)*s.w:][:s.w]
			if s.strideW == 1 {
				a := min(max(-first, 0), len(to))
				b := min(max(s.w-first, a), len(to))
				clear(to[:a])
				if a < b {
					copy(to[a:b], from[first+a:])
				}
				clear(to[b:])
				continue
			}
			for j := range to {
				to[j] = 0
				if at := first + j*s.strideW; at >= 0 && at < s.w {
					to[j] = from[at]
				}
			}
		}
	})
}
