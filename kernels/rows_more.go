package kernels

// The rows of products of quantized matrices, and of kernels that combine, sort or move elements.

// quantizedRows divides a product of quantized rows into its rows or, if these are few, into pieces of width columns
// each, of which weights are side by side in argument 3 and their scales in argument 4: those of a piece have so many
// bytes. Columns beyond the last whole piece belong to no row then. of has the bytes of a row of the arguments 0 to 2.
func quantizedRows(c *Call, result string, of [3]int, width, weights, scales int) Rows {
	m, n := int(c.Int(6)), int(c.Int(7))
	size := SizeOf(result)
	if m > fewRows {
		parts := []Part{part(5, result, n)}
		for arg, bytes := range of {
			parts = append(parts, Part{Arg: arg, Step: bytes, Len: bytes, Count: 1})
		}
		return rowsOfArgs(c, 6, parts...)
	}
	return Rows{N: n / width, Rest: n%width > 0, Parts: []Part{{Arg: 3, Step: weights, Len: weights, Count: 1},
		{Arg: 4, Step: scales, Len: scales, Count: 1},
		{Arg: 5, Step: width * size, Len: width * size, Count: m, Jump: n * size}},
		Values: func(pieces int) map[int][]byte { return sized(c, map[int]int{7: pieces * width}) }}
}

func gemmQRows(c *Call) Rows {
	if c.Kernel == "quantize_blocks" {
		cols, k := int(c.Int(5)), int(c.Int(6))
		return rowsOfArgs(c, 4, part(0, "f32", cols), part(1, "i8", k), part(2, "f32", k/GemmQBlock), part(3, "i32", k/16))
	}
	form, k := gemmQFormOf(c), int(c.Int(8))
	blocks := k / GemmQBlock
	return quantizedRows(c, "f32", [3]int{k, 4 * blocks, 8 * blocks}, GemmQRows, 4*GemmQRows*blocks*form.bits,
		2*blocks*GemmQScales(form.factors))
}

func w2a8Rows(c *Call) Rows {
	if c.Kernel == "quantize_rows" {
		cols, k := int(c.Int(5)), int(c.Int(6))
		return rowsOfArgs(c, 4, part(0, "f32", cols), part(1, "i8", k), part(2, "f32", 1), part(3, "i32", 1))
	}
	k := int(c.Int(8))
	return quantizedRows(c, c.Type("OUT"), [3]int{k, 4, 4}, 1, k/4, 4)
}

// column returns the part of position i of the innermost of several dimensions: an element of each of count rows, which
// are n elements long.
func column(arg int, typ string, count, n int) Part {
	size := SizeOf(typ)
	return Part{Arg: arg, Step: size, Len: size, Count: count, Jump: n * size}
}

// reduceRows divides by the outer dimension or, if there is one, by the inner one. A single row is not divided.
func reduceRows(c *Call) Rows {
	r := reductionOf(c)
	switch {
	case r.outer > 1:
		return rowsOfArgs(c, 2, part(0, r.typ, r.axis*r.inner), part(1, r.result(), r.inner))
	case r.inner > 1:
		return rowsOfArgs(c, 4, column(0, r.typ, r.axis, r.inner), column(1, r.result(), 1, r.inner))
	}
	return Rows{}
}

func scanRows(c *Call) Rows {
	t, n, parts := c.Type("T"), int(c.Int(4)), int(c.Int(5))
	return rowsOfArgs(c, 3, part(0, t, n), part(1, partialType(t), parts-1), part(2, t, n))
}

// segmentRows divides the rows that are combined into their elements: what these become depends on all entries.
func segmentRows(c *Call) Rows {
	t, n := c.Type("T"), int(c.Int(7))
	return rowsOfArgs(c, 7, column(0, t, int(c.Int(4)), n), column(3, t, int(c.Int(6)), n))
}

// scatterRows divides the rows that are stored or added into their elements.
func scatterRows(c *Call) Rows {
	t, to, size := c.Type("T"), 3, 4 // the rows that change, and the argument with their number
	switch c.Kernel {
	case "scatter_last":
		return Rows{}
	case "scatter_add":
		to, size = 2, 3
	}
	n := int(c.Int(size + 2))
	return rowsOfArgs(c, size+2, column(0, t, int(c.Int(size+1)), n), column(to, t, int(c.Int(size)), n))
}

// sortRows divides by rows and, if there is one, into the blocks of it that are sorted, or the pairs of runs that are
// merged. What lies behind the last whole one of these belongs to no row then.
func sortRows(c *Call) Rows {
	keys, values, rows, n, width := c.Type("T"), c.Type("VALUE"), int(c.Int(4)), int(c.Int(5)), SortBlock
	parts := func(n int) []Part {
		return []Part{part(0, keys, n), part(1, values, n), part(2, keys, n), part(3, values, n)}
	}
	if rows > 1 {
		return rowsOfArgs(c, 4, parts(n)...)
	}
	if c.Kernel == "sort_merge" {
		width = 2 * int(c.Int(6))
	}
	return Rows{N: n / width, Rest: n%width > 0, Parts: parts(width), Values: func(n int) map[int][]byte {
		return sized(c, map[int]int{5: n * width})
	}}
}

func topkRows(c *Call) Rows {
	t, k := c.Type("T"), int(c.Int(5))
	return rowsOfArgs(c, 3, part(0, t, int(c.Int(4))), part(1, t, k), part(2, "u32", k))
}

// takeRows divides by the outer dimension or, if there is one, by the middle one of the indices.
func takeRows(c *Call) Rows {
	t, index, axis, count, inner := c.Type("T"), c.Type("INDEX"), int(c.Int(4)), int(c.Int(5)), int(c.Int(6))
	if c.Int(3) > 1 {
		return rowsOfArgs(c, 3, part(0, t, axis*inner), part(1, index, count*inner), part(2, t, count*inner))
	}
	return rowsOfArgs(c, 5, part(1, index, inner), part(2, t, inner))
}

// transposeRows divides all matrices of a batch by their rows, which are columns of the results.
func transposeRows(c *Call) Rows {
	t, rows, cols, batch := c.Type("T"), int(c.Int(2)), int(c.Int(3)), c.Global[2]
	row := part(0, t, cols)
	row.Count, row.Jump = batch, rows*row.Len
	return rowsOfArgs(c, 2, row, column(1, t, batch*cols, rows))
}
