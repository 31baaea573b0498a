package kernels

import "github.com/concord-compute/concord/source"

// The natives of gather and scatter copy rows, for which Go's copy is as fast as the memory.

func gatherNative(u *source.Unit, kernel string) Func {
	if kernel == "gather" {
		return nativeGather
	}
	t, _ := u.Define("T")
	return map[int]Func{1: nativeGatherParts[uint8], 2: nativeGatherParts[uint16], 4: nativeGatherParts[uint32],
		8: nativeGatherParts[uint64]}[SizeOf(t)]
}

func scatterNative(_ *source.Unit, kernel string) Func {
	switch kernel {
	case "scatter_last":
		return nativeScatterLast
	case "scatter_add":
		return nativeScatterAdd
	case "scatter_runs":
		return nativeScatterRuns
	}
	return nativeScatter
}

// someIndices is the number of indices that natives read at a time.
const someIndices = 512

func nativeGather(c *Call) error {
	rows, count, bytes := int(c.Int(3)), int(c.Int(4)), int(c.Int(5))*SizeOf(c.Type("T"))
	in, read, out := c.Bytes(0), rowsOf(c, 1, rows), c.Bytes(2)
	return c.Parallel(count, 1<<14/bytes+1, func(lo, hi int) {
		var list [someIndices]int
		for ; lo < hi; lo += someIndices {
			some := list[:min(hi-lo, someIndices)]
			read(lo, some)
			for i, row := range some {
				to := out[(lo+i)*bytes:][:bytes]
				if row >= 0 {
					copy(to, in[row*bytes:])
				} else {
					clear(to)
				}
			}
		}
	})
}

func nativeGatherParts[E Elem](c *Call) error {
	parts, rows, count, n := int(c.Int(3)), int(c.Int(4)), int(c.Int(5)), int(c.Int(6))
	part, step := int(c.Int(7)), int(c.Int(8))
	in, read, out := Elements[E](c, 0), rowsOf(c, 1, rows), Elements[E](c, 2)
	return c.Parallel(parts*count, 1<<13/n+1, func(lo, hi int) {
		var list [someIndices]int
		for lo < hi {
			first := lo / count * part
			some := list[:min(hi-lo, someIndices, count-lo%count)] // of one part
			read(lo%count, some)
			for i, row := range some {
				to := out[(lo+i)*n:][:n]
				switch {
				case row < 0:
					clear(to)
				case n == 1:
					to[0] = in[first+row*step]
				default:
					copy(to, in[first+row*step:])
				}
			}
			lo += len(some)
		}
	})
}

// nativeScatterRuns writes every row of out at most once, as nativeScatter does.
func nativeScatterRuns(c *Call) error {
	rows, count, bytes := int(c.Int(4)), int(c.Int(5)), int(c.Int(6))*SizeOf(c.Type("T"))
	in, index, order, out := c.Bytes(0), c.U32(1)[:count], c.U32(2)[:count], c.Bytes(3)
	return c.Parallel(count, 1<<14/bytes+1, func(lo, hi int) {
		for k := lo; k < hi; k++ {
			if row, from := int(index[k]), int(order[k]); row < rows && from < count &&
				(k+1 == count || index[k+1] != index[k]) {
				copy(out[row*bytes:][:bytes], in[from*bytes:])
			}
		}
	})
}

func nativeScatterLast(c *Call) error {
	rows, count := int(c.Int(2)), int(c.Int(3))
	index, last := c.U32(0)[:count], c.U32(1)
	for i, row := range index {
		if i&0xfffff == 0xfffff && c.Context().Err() != nil {
			return c.Context().Err()
		}
		if int(row) < rows {
			last[row] = max(last[row], uint32(i+1))
		}
	}
	return nil
}

// nativeScatter writes every row of out at most once, so that no two threads write the same row.
func nativeScatter(c *Call) error {
	rows, count, bytes := int(c.Int(4)), int(c.Int(5)), int(c.Int(6))*SizeOf(c.Type("T"))
	in, index, last, out := c.Bytes(0), c.U32(1)[:count], c.U32(2), c.Bytes(3)
	return c.Parallel(count, 1<<14/bytes+1, func(lo, hi int) {
		for i, row := range index[lo:hi] {
			if int(row) < rows && last[row] == uint32(lo+i+1) {
				copy(out[int(row)*bytes:][:bytes], in[(lo+i)*bytes:])
			}
		}
	})
}

func nativeScatterAdd(c *Call) error {
	switch c.Type("T") {
	case "f32":
		return addRows(c, c.F32(0), c.F32(2))
	case "i32":
		return addRows(c, c.I32(0), c.I32(2))
	}
	return addRows(c, c.U32(0), c.U32(2))
}

// addRows gives each thread a range of rows of out. For these the thread goes through all indices
// in order, so that the result is the same with any number of threads.
func addRows[E int32 | uint32 | float32](c *Call, in, out []E) error {
	rows, count, n := int(c.Int(3)), int(c.Int(4)), int(c.Int(5))
	index, threads := c.U32(1)[:count], c.Threads()
	if count*n < 4096 {
		threads = 1
	}
	return c.Parallel(rows, (rows+threads-1)/max(threads, 1), func(lo, hi int) {
		for i, row := range index {
			if i&0xffff == 0xffff && c.Context().Err() != nil {
				return
			}
			if r := int(row); r >= lo && r < hi {
				from, to := in[i*n:i*n+n], out[r*n:r*n+n]
				for j, x := range from {
					to[j] += x
				}
			}
		}
	})
}
