package kernels

// Some rows of the result of a launch as a launch of their own, for packages that judge launches of programs.

import (
	"encoding/binary"
	"slices"
)

// Rows says how the result of a launch is divided into rows that do not depend on each other, so that some of
// them can be computed and judged alone: see [Call.Take]. The zero value is a launch that is not divided.
type Rows struct {
	N     int    // rows; 0 if the launch is not divided
	Rest  bool   // the launch has results that belong to no row
	Parts []Part // of the buffers of which a row has a part; the others belong to every row
	// Values returns the bytes of the value arguments, by their positions, that differ in a launch of n rows that lie
	// one after the other.
	Values func(n int) map[int][]byte
}

// Part says where the parts of the rows lie in a buffer, in bytes. That of row i is Count pieces of Len bytes, piece j
// at First + i·Step + j·Jump. In a launch of some rows the pieces of number 0 come first, in the order of the rows.
type Part struct {
	Arg                           int
	First, Step, Len, Count, Jump int
}

// Take returns a launch of rows of c alone, in that order, whose buffers with parts are copies.
func (r *Rows) Take(c *Call, rows []int) *Call {
	t := *c
	t.Args = slices.Clone(c.Args)
	for i, v := range r.Values(len(rows)) {
		t.Args[i].Bytes = v
	}
	for _, p := range r.Parts {
		t.Args[p.Arg].Bytes = p.take(c.Args[p.Arg].Bytes, rows)
	}
	return &t
}

// take returns the parts of rows, aligned as buffers are.
func (p *Part) take(b []byte, rows []int) []byte {
	out := make([]byte, 0, max(p.Count*len(rows)*p.Len, 64))
	for j := range p.Count {
		for _, i := range rows {
			at := p.First + i*p.Step + j*p.Jump
			out = append(out, b[at:at+p.Len]...)
		}
	}
	return out
}

// Place returns the byte of a buffer of the whole launch that is byte at of the buffer in the launch of rows.
func (r *Rows) Place(arg, at int, rows []int) int {
	i := slices.IndexFunc(r.Parts, func(p Part) bool { return p.Arg == arg })
	if i < 0 {
		return at
	}
	p := &r.Parts[i]
	piece := at / p.Len
	return p.First + rows[piece%len(rows)]*p.Step + piece/len(rows)*p.Jump + at%p.Len
}

// sized returns values as the bytes of the arguments of c at their positions.
func sized(c *Call, values map[int]int) map[int][]byte {
	list := map[int][]byte{}
	for i, v := range values {
		list[i] = binary.NativeEndian.AppendUint64(nil, uint64(v))[:len(c.Args[i].Bytes)]
	}
	return list
}

// part returns the part of adjacent rows of n elements of a type.
func part(arg int, typ string, n int) Part {
	size := SizeOf(typ) * n
	return Part{Arg: arg, Step: size, Len: size, Count: 1}
}

// rowsOfArgs returns the rows of a launch whose argument at position count is their number.
func rowsOfArgs(c *Call, count int, parts ...Part) Rows {
	return Rows{N: int(c.Int(count)), Parts: parts, Values: func(n int) map[int][]byte {
		return sized(c, map[int]int{count: n})
	}}
}

// elementRows returns a function for Family.Rows of kernels whose argument at position count is the number of elements
// of type T in each of the buffer arguments buffers.
func elementRows(count int, buffers ...int) func(c *Call) Rows {
	return func(c *Call) Rows {
		var parts []Part
		for _, i := range buffers {
			parts = append(parts, part(i, c.Type("T"), 1))
		}
		return rowsOfArgs(c, count, parts...)
	}
}

// arithRows divides those that are not broadcast.
func arithRows(c *Call) Rows {
	_, broadcast, scalar := arithForm(c.Kernel)
	switch {
	case broadcast:
		return Rows{}
	case scalar >= 0:
		return elementRows(3, 1-scalar, 2)(c)
	}
	return elementRows(3, 0, 1, 2)(c)
}

func normRows(c *Call) Rows {
	to := 2
	if c.Kernel == "layer_norm" {
		to = 3
	}
	n := int(c.Int(to + 2))
	return rowsOfArgs(c, to+1, part(0, c.Type("T"), n), part(to, c.Type("T"), n))
}

func softmaxRows(c *Call) Rows {
	n := int(c.Int(3))
	return rowsOfArgs(c, 2, part(0, c.Type("T"), n), part(1, c.Type("T"), n))
}

func castRows(c *Call) Rows {
	return rowsOfArgs(c, 2, part(0, c.Type("FROM"), 1), part(1, c.Type("TO"), 1))
}

func gatherRows(c *Call) Rows {
	if c.Kernel != "gather" {
		parts, count := int(c.Int(3)), int(c.Int(5))
		out := part(2, c.Type("T"), int(c.Int(6)))
		out.Count, out.Jump = parts, count*out.Len
		return rowsOfArgs(c, 5, part(1, c.Type("INDEX"), 1), out)
	}
	return rowsOfArgs(c, 4, part(1, c.Type("INDEX"), 1), part(2, c.Type("T"), int(c.Int(5))))
}

// fewRows are so few rows of a product that its columns are divided.
const fewRows = 8

// gemmRows divides a batch into its products, and one product into rows or, if these are few, into columns.
func gemmRows(c *Call) Rows {
	types, m, n, k := gemmTypes(c), int(c.Int(0)), int(c.Int(1)), int(c.Int(2))
	lda, ldb, ldc := int(c.Int(5)), int(c.Int(7)), int(c.Int(10))
	if c.Kernel != "gemm_i8" && c.Float(3) == 0 {
		k = 0
	}
	if count, _ := gemmCount(c); count > 1 {
		return batchRows(c, types, m, n, k)
	}
	var values map[int]int // of a launch of one row or column
	var lead int           // the position of the leading dimension that is the number of rows or columns
	rows := Rows{N: m, Parts: []Part{{Arg: 9, Step: ldc * SizeOf(types[2]), Len: n * SizeOf(types[2]), Count: 1}}}
	size := 0 // the position of the number
	if m > fewRows {
		values, lead = map[int]int{10: n}, 0
		if k > 0 {
			p := matrixPart(4, types[0], k, lda, c.Flag("TRANS_A"))
			if rows.Parts = append(rows.Parts, p); c.Flag("TRANS_A") {
				lead = 5
			} else {
				values[5] = k
			}
		}
	} else {
		size, rows.N, values, lead = 1, n, map[int]int{}, 0
		rows.Parts = []Part{matrixPart(9, types[2], m, ldc, true)}
		if c.Kernel == "gemm_bias" {
			rows.Parts = append(rows.Parts, part(11, types[2], 1))
		}
		if k > 0 {
			p := matrixPart(6, types[1], k, ldb, !c.Flag("TRANS_B"))
			if rows.Parts = append(rows.Parts, p); c.Flag("TRANS_B") {
				values[7] = k
			} else {
				lead = 7
			}
		}
	}
	rows.Values = func(n int) map[int][]byte {
		list := map[int]int{size: n}
		for i, v := range values {
			list[i] = v
		}
		if lead > 0 {
			list[lead] = n
		}
		if size == 1 {
			list[10] = n
		}
		return sized(c, list)
	}
	return rows
}

// matrixPart returns the part of a row of k elements of a matrix with a leading dimension, or of a column.
func matrixPart(arg int, typ string, k, ld int, column bool) Part {
	size := SizeOf(typ)
	if column {
		return Part{Arg: arg, Step: size, Len: size, Count: k, Jump: ld * size}
	}
	return Part{Arg: arg, Step: ld * size, Len: k * size, Count: 1}
}

// batchRows divides a batch of several products whose results do not lie between each other.
func batchRows(c *Call, types [3]string, m, n, k int) Rows {
	count, step := gemmCount(c)
	rows := Rows{N: count}
	values := map[int]int{}
	for i, arg := range [3]int{4, 6, 9} {
		shape := [3][2]int{flip(c.Flag("TRANS_A"), m, k), flip(c.Flag("TRANS_B"), k, n), {m, n}}[i]
		if i < 2 && (k == 0 || step[i] == 0) {
			continue // it belongs to all
		}
		elements, size := (shape[0]-1)*int(c.Int(arg+1))+shape[1], SizeOf(types[i])
		if i == 2 && step[2] < elements {
			return Rows{}
		}
		rows.Parts = append(rows.Parts, Part{Arg: arg, Step: step[i] * size, Len: elements * size, Count: 1})
		values[12+i] = elements
	}
	rows.Values = func(n int) map[int][]byte {
		values[11] = n
		return sized(c, values)
	}
	return rows
}

func gemvRows(c *Call) Rows {
	t, k := c.Type("T"), int(c.Int(1))
	rows := rowsOfArgs(c, 0, part(7, c.Type("OUT"), 1))
	if c.Float(2) == 0 || k == 0 {
		return rows
	}
	rows.Parts = append(rows.Parts, matrixPart(3, t, k, int(c.Int(4)), c.Flag("TRANS_A")))
	rows.Values = func(n int) map[int][]byte {
		lead := k
		if c.Flag("TRANS_A") {
			lead = n
		}
		return sized(c, map[int]int{0: n, 4: lead})
	}
	return rows
}

// convRows divides a convolution into images, and one image into filters or, if these are few or in groups, into rows
// of the result.
func convRows(c *Call) Rows {
	s, t := convOf(c), c.Type("T")
	outH, outW := s.out()
	size, outs, across := SizeOf(t), outH*outW, s.cnhw
	plane := s.h * s.w * size
	switch {
	case s.n > 1 && across:
		return rowsOfArgs(c, 0, Part{Arg: 16, Step: plane, Len: plane, Count: s.c, Jump: s.n * plane},
			Part{Arg: 19, Step: outs * size, Len: outs * size, Count: s.k, Jump: s.n * outs * size})
	case s.n > 1:
		return rowsOfArgs(c, 0, part(16, t, s.c*s.h*s.w), part(19, t, s.k*outs))
	case s.n == 0:
		return Rows{}
	case s.groups > 1 || s.k <= fewRows:
		return convResultRows(c, s, t)
	}
	parts := []Part{part(17, t, s.c*s.filter[0]*s.filter[1]), part(19, t, outs)}
	if across {
		places := s.filter[0] * s.filter[1] * size
		parts[0] = Part{Arg: 17, Step: places, Len: places, Count: s.c, Jump: s.k * places}
	}
	if s.nhwc {
		parts[1] = Part{Arg: 19, Step: size, Len: size, Count: outs, Jump: s.k * size}
	}
	if s.bias {
		parts = append(parts, part(18, t, 1))
	}
	return rowsOfArgs(c, 4, parts...)
}

// convResultRows divides the result of one image into the rows whose filters lie on no padding above or below. In a
// launch of some of them, what their filters lie on is stacked.
func convResultRows(c *Call, s convShape, t string) Rows {
	outH, outW := s.out()
	reach := s.dilation[0]*(s.filter[0]-1) + 1
	first := max((s.pad[0]+s.stride[0]-1)/s.stride[0], 0)
	from := first*s.stride[0] - s.pad[0] // the first row of the image that is read
	if s.spread[0] != 1 || reach < 1 || s.h < from+reach {
		return Rows{}
	}
	in, out := SizeOf(t)*s.w, SizeOf(t)*outW
	read := Part{Arg: 16, First: from * in, Step: s.stride[0] * in, Len: reach * in, Count: s.c, Jump: s.h * in}
	stored := Part{Arg: 19, First: first * out, Step: out, Len: out, Count: s.k, Jump: outH * out}
	if s.nhwc {
		read = Part{Arg: 16, First: from * in * s.c, Step: s.stride[0] * in * s.c, Len: reach * in * s.c, Count: 1}
		stored = Part{Arg: 19, First: first * out * s.k, Step: out * s.k, Len: out * s.k, Count: 1}
	}
	return Rows{N: min((s.h-reach-from)/s.stride[0]+1, outH-first), Parts: []Part{read, stored},
		Values: func(n int) map[int][]byte {
			return sized(c, map[int]int{2: n * reach, 7: reach, 9: 0, 14: n})
		}}
}

func l2Rows(c *Call) Rows {
	return rowsOfArgs(c, 3, part(0, l2Types[c.Kernel], int(c.Int(5))), part(2, "f32", int(c.Int(4))))
}
