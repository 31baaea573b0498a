package main

// Products of few rows with a large matrix, whose weights are floats or of 16 bits, beside PyTorch and beside
// reading the weights. PyTorch multiplies no floats with weights of 16 bits: it widens these, or rounds the
// rows.

import (
	"fmt"

	"github.com/concord-compute/concord/source"
)

// fewCols and fewDepth are the sizes of the weights.
const fewCols, fewDepth = 8000, 3200

// fewTypes are the types of rows and weights.
var fewTypes = [][2]string{{"f32", "f32"}, {"bf16", "bf16"}, {"f16", "f16"}, {"f32", "bf16"}, {"f32", "f16"}}

func (b *bench) fewRows() error {
	for _, types := range fewTypes {
		for _, turned := range []bool{false, true} {
			for _, rows := range []int{1, 2, 4, 8, 16} {
				if err := b.few(rows, types[0], types[1], turned); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// few measures a product of rows of type x with weights of type w, which are stored as fewDepth rows, or turned.
func (b *bench) few(rows int, x, w string, turned bool) error {
	what, ldb, trans := fmt.Sprintf("%d %s rows by %s %d×%d", rows, x, w, fewDepth, fewCols), fewCols, "0"
	if turned {
		what, ldb, trans = what+" turned", fewDepth, "1"
	}
	if !b.wanted(what) {
		return nil
	}
	size := map[string]int{"f32": 4, "bf16": 2, "f16": 2}
	defs, calls := defines("T", x, "TRANS_B", trans), []string{"few_rows"}
	if w != x {
		defs = append(defs, source.Define{Name: "TYPE_B", Value: w})
		calls = []string{"few_rows_widened", "few_rows_rounded"}
	}
	p, err := b.prepare("gemm", defs, "gemm", uint32(rows), uint32(fewCols), uint32(fewDepth), float32(1),
		size[x]*rows*fewDepth, uint32(fewDepth),
		size[w]*fewDepth*fewCols, uint32(ldb), float32(0), size[x]*rows*fewCols, uint32(fewCols))
	if err != nil {
		return b.absent(what, err)
	}
	defer p.free()
	components(p.buffers[0], size[x], 1)
	components(p.buffers[1], size[w], 2)
	peer, err := b.peer("torch", map[string]any{"rows": rows, "cols": fewCols, "depth": fewDepth, "x": x, "w": w,
		"turned": turned}, calls...)
	if err != nil {
		return err
	}
	return b.compare(subject{what: what, work: float64(len(p.buffers[1])), unit: gbps, name: p.name, run: p.run}, peer,
		b.loop(func() { readLoop(b.threads, p.buffers[1]) }))
}
