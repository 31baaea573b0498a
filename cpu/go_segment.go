package cpu

// Rows combined by segments, in Go.

import (
	"sort"

	"github.com/concord-compute/concord/kernels"
)

func init() {
	run := typedAll(goSegment[float32], goSegment[float64], goSegment[int8], goSegment[int16], goSegment[int32],
		goSegment[int64],
		goSegment[uint8], goSegment[uint16], goSegment[uint32], goSegment[uint64])
	for _, op := range []string{"add", "max", "min"} {
		native("segment", "segment_"+op, run)
	}
}

// goSegment combines the rows of ranges of segments. Sums of rows are added in blocks, so that their rounding
// errors stay small.
func goSegment[F element](c *call) error {
	const block = 128
	t, rows, count, segments, n := c.Type("T"), int(c.Int(4)), int(c.Int(5)), int(c.Int(6)), int(c.Int(7))
	in, out, id, order := viewOf[F](c, 0, t), viewOf[F](c, 3, t), c.U32(1), []uint32(nil)
	if v, ok := c.Define("ORDER"); !ok || v == "1" {
		order = c.U32(2)
	}
	sums := c.Kernel == "segment_add"
	combine := map[string]func(to, x []F){"segment_add": addTo[F], "segment_max": raiseTo[F],
		"segment_min": lowerTo[F]}[c.Kernel]
	some := max(1, min(1+c.Choose(goGrain)/n, segments/(c.Choose(goShares)*c.device.threads)))
	return c.Parallel(segments, some, func(lo, hi int) {
		scratch, sum, wide := make([]F, n), make([]F, n), make([]F, n)
		k := sort.Search(count, func(k int) bool { return int(id[k]) >= lo })
		for k < count && int(id[k]) < hi && int(id[k]) >= lo {
			s, several, total := int(id[k]), 0, []F(nil)
			for begin := k; k < count && int(id[k]) == s; k++ {
				row := k
				if order != nil {
					row = int(order[k])
				}
				if row < rows {
					x := in.read(row*n, row*n+n, scratch)
					switch {
					case total == nil:
						total = out.target(s*n, s*n+n, wide)
						copy(total, out.read(s*n, s*n+n, wide))
						fallthrough
					case !sums:
						combine(total, x)
					case several == 0:
						copy(sum, x)
						several++
					default:
						addTo(sum, x)
						several++
					}
				}
				if several > 0 && (k-begin)%block == block-1 {
					addTo(total, sum)
					several = 0
				}
			}
			if several > 0 {
				addTo(total, sum)
			}
			if total != nil {
				out.write(s*n, total)
			}
		}
	})
}

func addTo[F kernels.Elem](to, x []F) {
	to = to[:len(x)]
	for i, v := range x {
		to[i] += v
	}
}

func raiseTo[F kernels.Elem](to, x []F) {
	to = to[:len(x)]
	for i, v := range x {
		if !(v <= to[i]) && to[i] == to[i] {
			to[i] = v
		}
	}
}

func lowerTo[F kernels.Elem](to, x []F) {
	to = to[:len(x)]
	for i, v := range x {
		if !(v >= to[i]) && to[i] == to[i] {
			to[i] = v
		}
	}
}
