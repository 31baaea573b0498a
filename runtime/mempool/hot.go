package mempool

// Requested sizes, and the number of blocks to preallocate of each.

import "slices"

// Class sums up the requests of one range of sizes.
type Class struct {
	Bytes   int64 // the largest request; 0: larger than every class
	Gets    int64
	Live    int64 // blocks
	Free    int64 // free blocks of about that size, which this class would use first
	Prewarm int   // blocks that should be preallocated
}

// Utilization is the part of a class's blocks that is live.
func (c *Class) Utilization() float64 {
	if c.Live+c.Free == 0 {
		return 0
	}
	return float64(c.Live) / float64(c.Live+c.Free)
}

// Hot lists the classes with requests, the most frequent first.
func (p *Pool) Hot() []Class {
	list := make([]Class, len(p.hot))
	p.mu.Lock()
	for i := range list {
		list[i].Gets = p.hot[i]
		if i < len(classes) {
			list[i].Bytes = classes[i]
		}
	}
	for _, b := range p.table {
		switch {
		case b.live:
			list[classOf(b.asked)].Live++
		case b.slab != nil:
			list[classOf(b.size)].Free++
		}
	}
	p.mu.Unlock()
	list = slices.DeleteFunc(list, func(c Class) bool { return c.Gets == 0 })
	for i := range list {
		list[i].Prewarm = list[i].prewarm()
	}
	slices.SortStableFunc(list, func(a, b Class) int { return int(b.Gets - a.Gets) })
	return list
}

func (c *Class) prewarm() int {
	switch u := c.Utilization(); {
	case u > 0.8:
		return int(c.Live/2) + 2
	case u > 0.5:
		return 2
	}
	return 1
}
