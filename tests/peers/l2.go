package main

// The nearest of a million vectors, compared with FAISS.

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/concord-compute/concord/source"
)

const (
	l2Vectors = 1_000_000
	l2Dim     = 128
	l2Nearest = 10
)

// searches measures one launch that finds the nearest, of every storage type, compared with reading the vectors.
func (b *bench) searches() error {
	for _, queries := range []int{1, 4} {
		for _, kind := range l2Kinds {
			bytes := l2Vectors * l2Dim * kind.size
			p, err := b.prepare("nearest", []source.Define{{Name: "T", Value: kind.name}}, "nearest", queries*l2Dim*kind.size,
				bytes,
				4*queries*l2Nearest, 4*queries*l2Nearest, uint32(queries), uint32(l2Vectors), uint32(l2Dim), uint32(l2Nearest),
				uint32(1))
			if err != nil {
				return err
			}
			defer p.free()
			for i, x := range p.buffers[:2] {
				components(x, kind.size, i)
			}
			read := b.loop(func() { readLoop(b.threads, p.buffers[1]) })
			if err := b.compare(subject{what: fmt.Sprintf("10 nearest %s, %d queries", kind.name, queries), work: float64(bytes),
				unit: gbps,
				name: p.name, run: p.run}, read); err != nil {
				return err
			}
		}
	}
	return nil
}

// l2Kinds are the storage types of vectors.
var l2Kinds = []struct {
	name, kernel string
	size         int
}{{"f32", "l2_distance_fp32", 4}, {"f16", "l2_distance_fp16", 2}, {"i8", "l2_distance_int8", 1}}

func (b *bench) distances() error {
	return errors.Join(b.nearest(1), b.nearest(16))
}

func (b *bench) manyDistances() error { return b.nearest(256) }

// nearest measures the search of FAISS' IndexFlatL2 as two launches: all distances, and from them
// the nearest. It then measures the distances alone, for every storage type, compared with reading
// the vectors and with float vectors.
func (b *bench) nearest(queries int) error {
	ops := float64(3 * queries * l2Vectors * l2Dim)
	name := fmt.Sprintf("%d queries", queries)
	if queries == 1 {
		name = "1 query"
	}
	var floats *prepared
	for _, kind := range l2Kinds {
		bytes := l2Vectors * l2Dim * kind.size
		var out any = 4 * queries * l2Vectors
		if floats != nil {
			out = floats.memory[2]
		}
		p, err := b.prepare("l2_distance", nil, kind.kernel, queries*l2Dim*kind.size, bytes, out,
			uint32(queries), uint32(l2Vectors), uint32(l2Dim))
		if err != nil {
			return err
		}
		defer p.free()
		for i, x := range p.buffers[:2] {
			components(x, kind.size, i)
		}
		if queries == 1 {
			read := b.loop(func() { readLoop(b.threads, p.buffers[1]) })
			if err := b.compare(subject{what: "reading " + kind.name + ", 1 query", work: float64(bytes), unit: gbps,
				name: p.name, run: p.run}, read); err != nil {
				return err
			}
		}
		if floats != nil {
			if err := b.compare(subject{what: "distances " + kind.name + ", " + name, work: ops, unit: gflops, name: p.name,
				run: p.run},
				inProcess("ours, f32", "", floats.run)); err != nil {
				return err
			}
			continue
		}
		floats = p
		if err := b.besideFAISS(name, queries, p, ops); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) besideFAISS(name string, queries int, p *prepared, ops float64) error {
	if !b.wanted("10 nearest, "+name) && !b.wanted("10 nearest alone, "+name) {
		return nil
	}
	t, err := b.prepare("topk", nil, "topk", p.memory[2], 4*queries*l2Nearest, 4*queries*l2Nearest, uint32(queries),
		uint32(l2Vectors), uint32(l2Nearest))
	if err != nil {
		return err
	}
	defer t.free()
	faiss, err := b.peer("faiss", map[string]any{"vectors": l2Vectors, "dim": l2Dim, "queries": queries, "k": l2Nearest},
		"knn")
	if err != nil {
		return err
	}
	if err := b.compare(subject{what: "10 nearest, " + name, series: "10 nearest of 10⁶ × 128", size: float64(queries),
		work: ops, unit: gflops,
		name: p.name, run: func() error {
			if err := p.run(); err != nil {
				return err
			}
			return t.run()
		}}, faiss); err != nil {
		return err
	}
	return b.compare(subject{what: "10 nearest alone, " + name, work: float64(4 * queries * l2Vectors), unit: gbps,
		name: t.name, run: t.run})
}

// components fills b with numbers of size bytes that are typical of data.
func components(b []byte, size, seed int) {
	if size != 2 {
		randomize(b, false)
		return
	}
	for j := 0; j < len(b); j += 2 { // random bits could be NaN
		binary.NativeEndian.PutUint16(b[j:], uint16(0x3800+(j*7+seed)&0x3ff))
	}
}
