package cpu

// Codes of vectors: by vector functions (csrc/cpu/codes.h), or the same in Go.

import (
	"math"

	"github.com/concord-compute/concord/internal/simd"
	"github.com/concord-compute/concord/kernels"
)

// mostStep is the largest number in a table.
const mostStep = 127

// EncodeRows implements kernels.CodeRanker.
func (d *device) EncodeRows(b *kernels.CodeBook, points []float32, codes []byte) {
	n := len(points) / b.Dim
	if d.simd != nil {
		d.simd.run(simd.CodesEncode, pointer(points), uint64(n), uint64(b.Dim), uint64(b.Bytes), pointer(b.Values),
			pointer(codes))
		return
	}
	clear(codes[:n*b.Bytes])
	for i := range n {
		point, code := points[i*b.Dim:(i+1)*b.Dim], codes[i*b.Bytes:(i+1)*b.Bytes]
		for p := range 2 * b.Bytes {
			far, at := goFar(b, point, p), 0
			for c, x := range far {
				if x < far[at] {
					at = c
				}
			}
			code[p/2] |= byte(at << (p % 2 * 4))
		}
	}
}

// goFar returns the squared distances of a part of a point from its 16 values. Products are rounded before they
// are added, as in C.
func goFar(b *kernels.CodeBook, point []float32, part int) (far [16]float32) {
	for i := b.Part(part); i < b.Part(part+1); i++ {
		for c, v := range b.Values[16*i : 16*i+16] {
			v = point[i] - v
			far[c] += float32(v * v)
		}
	}
	return far
}

// CodeTable implements kernels.CodeRanker.
func (d *device) CodeTable(b *kernels.CodeBook, point []float32, table []byte) (base, step float32) {
	if d.simd != nil {
		d.simd.run(simd.CodesTable, pointer(point), uint64(b.Dim), uint64(b.Bytes), pointer(b.Values), pointer(table))
		end := elementsOf[float32](table[32*b.Bytes:])
		return end[0], end[1]
	}
	far, least := make([][16]float32, 2*b.Bytes), make([]float32, 2*b.Bytes)
	for p := range far {
		far[p] = goFar(b, point, p)
		most := far[p][0]
		least[p] = most
		for _, x := range far[p] {
			least[p], most = min(least[p], x), max(most, x)
		}
		base += least[p]
		if r := most - least[p]; r > step {
			step = r
		}
	}
	by := float32(0)
	if step > 1e-30 {
		by = mostStep / step
	}
	for p := range far {
		for c, x := range far[p] {
			table[16*p+c] = byte(math.RoundToEven(float64((x - least[p]) * by)))
		}
	}
	return base, step / mostStep
}

// RankCodes implements kernels.CodeRanker.
func (d *device) RankCodes(b *kernels.CodeBook, table, blocks []byte, n, limit int, found []uint32) []uint32 {
	if d.simd != nil {
		d.simd.run(simd.CodesScan, pointer(table), uint64(b.Bytes), pointer(blocks), uint64(n), uint64(limit), pointer(found))
		return found[1 : 1+found[0]]
	}
	found = found[:0]
	for i := range n {
		block, sum := blocks[i/kernels.CodeBlock*kernels.CodeBlock*b.Bytes:], 0
		for j := range b.Bytes {
			code := block[j*kernels.CodeBlock+i%kernels.CodeBlock]
			sum += int(table[32*j+int(code&15)]) + int(table[32*j+16+int(code>>4)])
		}
		if sum <= limit {
			found = append(found, uint32(i<<16|sum))
		}
	}
	return found
}
