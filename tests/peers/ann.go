package main

// Searches of package ann, with everything that a call does, beside FAISS, and beside the kernel alone.

import (
	"fmt"
	"math/rand/v2"

	"github.com/concord-compute/concord/ann"
	"github.com/concord-compute/concord/source"
)

// flatSizes are vectors, dimension and queries of a call.
var flatSizes = [][3]int{{10_000, 64, 1}, {100_000, 128, 1}, {l2Vectors, l2Dim, 1}, {l2Vectors, l2Dim, 16}, {l2Vectors, l2Dim, 256}}

// flat measures an index of floats beside FAISS, and indexes of half and bytes and a search with a filter beside that of floats.
func (b *bench) flat() error {
	for _, s := range flatSizes {
		vectors, dim, queries := s[0], s[1], s[2]
		what := fmt.Sprintf("%d of %d × %d", queries, vectors, dim)
		if !b.wanted(what) && !b.wanted(what+" kernel") && !b.wanted(what+" int8") && !b.wanted(what+" fp16") && !b.wanted(what+" 1 %") {
			continue
		}
		rows, asked := uniform(vectors*dim, 1), uniform(queries*dim, 2)
		ids := make([]int64, vectors)
		for i := range ids {
			ids[i] = int64(i)
		}
		index := func(p ann.Precision) (*ann.Flat, error) {
			f, err := ann.NewFlat(b.whole, dim, ann.L2Squared, ann.FlatOptions{Precision: p})
			if err == nil {
				err = f.Add(b.ctx, ids, rows)
			}
			return f, err
		}
		search := func(f *ann.Flat, filter *ann.Filter) func() error {
			dst := make([]ann.Result, 0, l2Nearest)
			return func() error {
				if queries > 1 {
					_, err := f.SearchBatch(b.ctx, asked, l2Nearest, filter)
					return err
				}
				_, err := f.Search(b.ctx, dst, asked, l2Nearest, filter)
				return err
			}
		}
		floats, err := index(ann.FP32)
		if err != nil {
			return err
		}
		defer floats.Close()
		work, name := 3*float64(queries)*float64(vectors)*float64(dim), "Flat"
		if b.wanted(what) {
			faiss, err := b.peer("faiss", map[string]any{"vectors": vectors, "dim": dim, "queries": queries, "k": l2Nearest}, "knn")
			if err != nil {
				return err
			}
			if err := b.compare(subject{what: what, work: work, unit: gflops, name: name, run: search(floats, nil)}, faiss); err != nil {
				return err
			}
		}
		if queries > 16 {
			continue
		}
		p, err := b.prepare("nearest", []source.Define{{Name: "METRIC", Value: "l2"}}, "nearest", 4*queries*dim, 4*vectors*dim,
			4*queries*l2Nearest, 4*queries*l2Nearest, uint32(queries), uint32(vectors), uint32(dim), uint32(l2Nearest), uint32(1))
		if err != nil {
			return err
		}
		for i, x := range p.buffers[:2] {
			components(x, 4, i)
		}
		err = b.compare(subject{what: what + " kernel", work: work, unit: gflops, name: name, run: search(floats, nil)}, inProcess("the kernel", "", p.run))
		p.free()
		if err != nil {
			return err
		}
		for _, c := range []struct {
			what      string
			precision ann.Precision
			filter    *ann.Filter
		}{{"fp16", ann.FP16, nil}, {"int8", ann.INT8, nil}, {"1 %", ann.FP32, ann.Predicate(func(id int64) bool { return id%100 == 7 })}} {
			f := floats
			if c.filter == nil {
				if f, err = index(c.precision); err != nil {
					return err
				}
			}
			err := b.compare(subject{what: what + " " + c.what, work: work, unit: gflops, name: name + " " + c.what, run: search(f, c.filter)},
				inProcess("fp32, all", "", search(floats, nil)))
			if f != floats {
				f.Close()
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// uniform returns numbers from 0 to 1.
func uniform(n int, seed uint64) []float32 {
	r, x := rand.New(rand.NewPCG(seed, seed)), make([]float32, n)
	for i := range x {
		x[i] = r.Float32()
	}
	return x
}
