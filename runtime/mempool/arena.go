package mempool

// The arena of a trace: the addresses in use over time, ready to be drawn.

import "time"

// Box is a block or a slab: a range of addresses for a span of time.
type Box struct {
	From, Until   time.Duration
	Address, Size int64
	Asked         int64 // requested bytes; Size for slabs
	Tag           string
}

// Arena is a device's memory over time. Addresses are made up so that slabs of the same time do not
// overlap; traces do not contain the driver's own addresses.
type Arena struct {
	Slabs   []Box
	Blocks  []Box
	Height  int64 // the end of the highest slab
	Until   time.Duration
	Samples []Sample // without LargestFree

	PeakLive     int64
	PeakReserved int64
	PeakAt       time.Duration // when Reserved became largest
}

// walker reads a trace of one device.
type walker struct {
	a      Arena
	extent map[int64]int64 // sizes of slabs whose allocation was dropped from the trace
	slabs  map[int64]int   // open ones: in a.Slabs
	blocks map[ID]int      // open ones: in a.Blocks
	space  space
	now    Sample
}

// Arena lays out a trace of one device. A slab whose allocation was dropped from the trace gets the
// size that its blocks show.
func (t *Trace) Arena() *Arena {
	w := walker{extent: map[int64]int64{}, slabs: map[int64]int{}, blocks: map[ID]int{}, space: newSpace()}
	for i := range t.Events {
		e := &t.Events[i]
		w.extent[e.Slab] = max(w.extent[e.Slab], e.extent())
	}
	every := max(1, len(t.Events)/samples)
	for i := range t.Events {
		e := &t.Events[i]
		w.now.At = e.At
		w.see(e)
		w.a.PeakLive = max(w.a.PeakLive, w.now.Live)
		if w.now.Reserved > w.a.PeakReserved {
			w.a.PeakReserved, w.a.PeakAt = w.now.Reserved, e.At
		}
		if i%every == 0 || i == len(t.Events)-1 {
			w.a.Samples = append(w.a.Samples, w.now)
		}
	}
	w.a.Until = w.now.At
	for _, i := range w.slabs {
		w.a.Slabs[i].Until = w.now.At
	}
	for _, i := range w.blocks {
		w.a.Blocks[i].Until = w.now.At
	}
	return &w.a
}

func (w *walker) see(e *Event) {
	switch e.Kind {
	case Grow:
		if _, open := w.slabs[e.Slab]; !open {
			w.open(e.Slab, e.Size)
		}
	case Shrink:
		w.shut(e.Slab)
	case Hit, Miss, Live:
		w.begin(e)
	case Tagged:
		if i, open := w.blocks[e.ID]; open {
			w.a.Blocks[i].Tag = e.Tag
		}
	case Free:
		w.end(e.ID)
	}
}

// open places a slab in the gap that fits best.
func (w *walker) open(slab, size int64) {
	b := Box{From: w.now.At, Address: w.space.take(size), Size: size, Asked: size}
	w.slabs[slab] = len(w.a.Slabs)
	w.a.Slabs = append(w.a.Slabs, b)
	w.a.Height = max(w.a.Height, b.Address+size)
	w.now.Reserved += size
}

func (w *walker) shut(slab int64) {
	i, open := w.slabs[slab]
	if !open {
		return
	}
	b := &w.a.Slabs[i]
	b.Until = w.now.At
	delete(w.slabs, slab)
	w.space.give(b.Address, b.Size)
	w.now.Reserved -= b.Size
}

func (w *walker) begin(e *Event) {
	w.end(e.ID) // in case its Free was dropped from the trace
	if _, open := w.slabs[e.Slab]; !open {
		w.open(e.Slab, w.extent[e.Slab])
	}
	slab := &w.a.Slabs[w.slabs[e.Slab]]
	w.blocks[e.ID] = len(w.a.Blocks)
	w.a.Blocks = append(w.a.Blocks, Box{From: e.At, Address: slab.Address + e.Offset, Size: e.Size, Asked: e.Bytes,
		Tag: e.Tag})
	w.now.Live += e.Size
	w.now.Requested += e.Bytes
	switch e.Kind {
	case Hit:
		w.now.Hits++
	case Miss:
		w.now.Misses++
	}
}

func (w *walker) end(id ID) {
	i, open := w.blocks[id]
	if !open {
		return
	}
	delete(w.blocks, id)
	b := &w.a.Blocks[i]
	b.Until = w.now.At
	w.now.Live -= b.Size
	w.now.Requested -= b.Asked
}
