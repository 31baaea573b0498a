package mempool

// Warm blocks: those that came back last wait a moment before they are filed and joined
// with their neighbours, since the next request is often for the same size again. Then
// nothing has to be cut, joined or looked for. Whoever needs the whole picture cools
// them first.

// mostWarm bounds the work of whoever cools.
const mostWarm = 256

// warm is stacks of blocks by the bin of their size, linked by z, and all of them in the
// order in which they came back, with gaps where one was taken. A block's place there
// is its bin.
type warm struct {
	top [binLen]*node
	all [mostWarm]*node
	end int32 // of all; the last one is no gap
}

// put takes a block that is whole or free of work, and in no set.
func (w *warm) put(b *node) {
	i := binOf(b.size)
	b.warm, b.bin, b.z = true, w.end, w.top[i]
	w.top[i] = b
	w.all[w.end] = b
	w.end++
}

// take returns the block of that size that came last, if it is on top.
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

// mayWarm reports whether a block that came back is kept for sure.
func (p *Pool) mayWarm(b *node) bool {
	return b.lane == nil && b.slab.kept && !p.over()
}

// cool files what is warm, in the order in which it came back: the order of use.
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
