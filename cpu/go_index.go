package cpu

// gather and scatter in Go: copies of rows, which the Go runtime does at the speed of
// memory.

func init() {
	native("gather", "gather", goGather)
	native("scatter", "scatter_last", goScatterLast)
	native("scatter", "scatter", goScatter)
	native("scatter", "scatter_add", goScatterAdd)
}

// rowsOf returns argument i as rows of bytes, at least count of them.
func (c *Call) rowsOf(i, count, bytes int) []byte {
	b := c.Bytes(i)
	if need := c.product(count, bytes); need > len(b) {
		c.fail(i, "%d bytes where %d are used", len(b), need)
	}
	return b
}

// indices returns argument i as numbers, at least count of them.
func (c *Call) indices(i, count int) []uint32 {
	c.rowsOf(i, count, 4)
	return c.U32(i)[:count]
}

func goGather(c *Call) error {
	rows, count := int(c.Int(3)), int(c.Int(4))
	bytes := c.product(int(c.Int(5)), refSize(refType(c, "T")))
	if bytes == 0 {
		return nil
	}
	in, index, out := c.rowsOf(0, rows, bytes), c.indices(1, count), c.rowsOf(2, count, bytes)
	return c.Parallel(count, 1<<14/bytes+1, func(lo, hi int) {
		for i, row := range index[lo:hi] {
			to := out[(lo+i)*bytes:][:bytes]
			if int(row) < rows {
				copy(to, in[int(row)*bytes:])
			} else {
				clear(to)
			}
		}
	})
}

func goScatterLast(c *Call) error {
	rows, count := int(c.Int(2)), int(c.Int(3))
	index, last := c.indices(0, count), c.indices(1, rows)
	return c.serial(count, 1<<20, func(lo, hi int) {
		for i, row := range index[lo:hi] {
			if int(row) < rows {
				last[row] = max(last[row], uint32(lo+i+1))
			}
		}
	})
}

// goScatter writes every row of out once at most, so threads do not meet.
func goScatter(c *Call) error {
	rows, count := int(c.Int(4)), int(c.Int(5))
	bytes := c.product(int(c.Int(6)), refSize(refType(c, "T")))
	if bytes == 0 {
		return nil
	}
	in, index, last, out := c.rowsOf(0, count, bytes), c.indices(1, count), c.indices(2, rows), c.rowsOf(3, rows, bytes)
	return c.Parallel(count, 1<<14/bytes+1, func(lo, hi int) {
		for i, row := range index[lo:hi] {
			if int(row) < rows && last[row] == uint32(lo+i+1) {
				copy(out[int(row)*bytes:][:bytes], in[(lo+i)*bytes:])
			}
		}
	})
}

func goScatterAdd(c *Call) error {
	switch refType(c, "T") {
	case "f32":
		return scatterAdd(c, c.F32(0), c.F32(2))
	case "i32":
		return scatterAdd(c, c.I32(0), c.I32(2))
	}
	return scatterAdd(c, c.U32(0), c.U32(2))
}

// scatterAdd gives each thread rows of out, for which it goes through all indices in
// order: the result is the same with any number of threads.
func scatterAdd[E int32 | uint32 | float32](c *Call, in, out []E) error {
	rows, count, n := int(c.Int(3)), int(c.Int(4)), int(c.Int(5))
	if n == 0 {
		return nil
	}
	index := c.indices(1, count)
	c.rowsOf(0, count, 4*n)
	c.rowsOf(2, rows, 4*n)
	threads := c.device.threads
	if count*n < grain {
		threads = 1
	}
	return c.Parallel(rows, (rows+threads-1)/max(threads, 1), func(lo, hi int) {
		for i, row := range index {
			if i&0xffff == 0xffff && c.ctx.Err() != nil {
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
