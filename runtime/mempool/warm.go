package mempool

// Warm blocks: the blocks that were put back last are not filed and joined with their neighbours at
// once, since the next request is often for the same size again. Then nothing has to be cut, joined
// or searched. Operations that need all free blocks cool the warm ones first.

// mostWarm limits the work of cool.
const mostWarm = 256

// warm is a stack of blocks for each bin of sizes, linked by z, and a list of all of them in the
// order in which they were put back, with gaps for blocks that were taken. The field bin of a block
// is its place in that list.
type warm struct {
	top [binLen]*node
	all [mostWarm]*node
	end int32 // the end of the list; the last element is no gap
}

// put takes a block that is whole or free of work, and in no set.
func (w *warm) put(b *node) {
	i := binOf(b.size)
	b.warm, b.bin, b.z = true, w.end, w.top[i]
	w.top[i] = b
	w.all[w.end] = b
	w.end++
}

// take returns the block of that size that was put back last, if it is on top.
func (w *warm) take(size int64) *node {
	i := binOf(size)
	b := w.top[i]
	if b == nil || b.size != size {
		return nil
	}
	w.top[i] = b.z
	b.warm, b.z = false, nil
	w.all[b.bin] = nil
	for w.end > 0 && w.all[w.end-1] == nil {
		w.end--
	}
	return b
}

// mayWarm reports whether a block that was put back is certain to be kept.
func (p *Pool) mayWarm(b *node) bool {
	return b.lane == nil && b.slab.kept && !p.over()
}

// cool files the warm blocks, in the order in which they were put back: the order of use.
func (p *Pool) cool() {
	end := p.warm.end
	p.warm.end = 0
	for i, b := range p.warm.all[:end] {
		if b != nil {
			p.warm.all[i], p.warm.top[binOf(b.size)] = nil, nil
			b.warm, b.z = false, nil
			p.keep(b)
		}
	}
}
