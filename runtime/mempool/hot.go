package mempool

// Which sizes are asked for, and what to have ready for them; how memory is walked.

import "slices"

// Class is what became of requests up to one size.
type Class struct {
	Bytes   int64 // the largest request; 0: larger than every class
	Gets    int64
	Live    int64 // blocks
	Free    int64 // blocks of about that size: those that this class would take first
	Prewarm int   // blocks that Preallocate should have ready
}

// Utilization is the part of a class's blocks that is live.
func (c *Class) Utilization() float64 {
	if c.Live+c.Free == 0 {
		return 0
	}
	return float64(c.Live) / float64(c.Live+c.Free)
}

// Hot lists the classes of sizes that were asked for, the most wanted first.
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

// Access is how a sequence of offsets walks through memory.
type Access int

// The ways.
const (
	Random     Access = iota
	Sequential        // each behind the one before
	Strided           // by the same step other than 1
)

// String returns the way as a word.
func (a Access) String() string {
	if names := [...]string{"random", "sequential", "strided"}; a >= 0 && int(a) < len(names) {
		return names[a]
	}
	return "unknown"
}

// AccessPattern says how a sequence of offsets, in elements, walks through memory, and
// by which step. Nine of ten steps decide; without two offsets there is no step, which
// counts as Random. Time is linear in the offsets.
func AccessPattern(offsets []int64) (Access, int64) {
	if len(offsets) < 2 {
		return Random, 0
	}
	// The only value that can make up more than half is the one that is left when
	// different ones cancel each other.
	var step, votes int64
	for i := 1; i < len(offsets); i++ {
		switch d := offsets[i] - offsets[i-1]; {
		case votes == 0:
			step, votes = d, 1
		case d == step:
			votes++
		default:
			votes--
		}
	}
	same := 0
	for i := 1; i < len(offsets); i++ {
		if offsets[i]-offsets[i-1] == step {
			same++
		}
	}
	switch {
	case 10*same < 9*(len(offsets)-1):
		return Random, 0
	case step == 1:
		return Sequential, 1
	}
	return Strided, step
}
