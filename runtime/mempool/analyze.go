package mempool

// Fragmentation in a trace, and advice against it.

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
)

// Analysis is the result of AnalyzeFragmentation.
type Analysis struct {
	Events  int   `json:"events"`
	Dropped int64 `json:"dropped"`
	Gets    int64 `json:"gets"`
	Hits    int64 `json:"hits"`

	PeakLive     int64 `json:"peak_live"`
	PeakReserved int64 `json:"peak_reserved"`

	Worst   Moment   `json:"worst"` // when Reserved was largest
	Keys    []KeyUse `json:"keys"`  // the sizes with the most bytes from the driver, at most 10
	Advice  []string `json:"advice"`
	Samples []Sample `json:"samples"` // Live over time
}

// Moment is the state of a device's memory at one time.
type Moment struct {
	At            time.Duration `json:"t"`
	Live          int64         `json:"live"`
	Requested     int64         `json:"requested"`
	Reserved      int64         `json:"reserved"`
	LargestFree   int64         `json:"largest_free"`
	FreeRanges    int           `json:"free_ranges"`
	Internal      float64       `json:"internal"`       // 1 - Requested/Live
	TypeDiversity float64       `json:"type_diversity"` // sizes of free ranges / free ranges
	External      float64       `json:"external"`       // 1 - LargestFree/free bytes
}

// KeyUse sums up the requests for blocks of one size.
type KeyUse struct {
	Size   int64 `json:"size"`
	Gets   int64 `json:"gets"`
	Misses int64 `json:"misses"`
	Wasted int64 `json:"wasted"`    // bytes of blocks beyond the requests, summed over the gets
	Most   int64 `json:"most_live"` // most live blocks at one time
	live   int64
}

// AnalyzeFragmentation analyzes a trace of one device.
func AnalyzeFragmentation(t *Trace) *Analysis {
	arena := t.Arena()
	a := &Analysis{Events: len(t.Events), Dropped: t.Dropped, Samples: arena.Samples}
	keys := map[int64]*KeyUse{}
	open := map[ID]*KeyUse{}
	for i := range t.Events {
		count(keys, open, &t.Events[i])
	}
	if n := len(arena.Samples); n > 0 {
		last := arena.Samples[n-1]
		a.Gets, a.Hits = last.Hits+last.Misses, last.Hits
	}
	a.PeakLive, a.PeakReserved = arena.PeakLive, arena.PeakReserved
	a.Worst = arena.moment(arena.PeakAt)
	for _, k := range keys {
		a.Keys = append(a.Keys, *k)
	}
	slices.SortFunc(a.Keys, func(x, y KeyUse) int {
		return cmp.Or(cmp.Compare(y.Misses*y.Size, x.Misses*x.Size), cmp.Compare(y.Wasted, x.Wasted),
			cmp.Compare(x.Size, y.Size))
	})
	a.advise(t)
	a.Keys = a.Keys[:min(10, len(a.Keys))]
	return a
}

func count(keys map[int64]*KeyUse, open map[ID]*KeyUse, e *Event) {
	switch e.Kind {
	case Hit, Miss, Live:
		k := keys[e.Size]
		if k == nil {
			k = &KeyUse{Size: e.Size}
			keys[e.Size] = k
		}
		if e.Kind != Live {
			k.Gets++
			k.Wasted += e.Size - e.Bytes
		}
		if e.Kind == Miss {
			k.Misses++
		}
		k.live++
		k.Most = max(k.Most, k.live)
		open[e.ID] = k
	case Free:
		if k := open[e.ID]; k != nil {
			k.live--
			delete(open, e.ID)
		}
	}
}

// moment returns the state of the arena just after a time.
func (a *Arena) moment(at time.Duration) Moment {
	m := Moment{At: at}
	there := func(b Box) bool { return b.From <= at && (at < b.Until || b.Until == a.Until) }
	var slabs, blocks []Box
	for _, b := range a.Slabs {
		if there(b) {
			slabs = append(slabs, b)
			m.Reserved += b.Size
		}
	}
	for _, b := range a.Blocks {
		if there(b) {
			blocks = append(blocks, b)
			m.Live += b.Size
			m.Requested += b.Asked
		}
	}
	byAddress := func(x, y Box) int { return cmp.Compare(x.Address, y.Address) }
	slices.SortFunc(slabs, byAddress)
	slices.SortFunc(blocks, byAddress)
	sizes := map[int64]bool{}
	var free int64
	gap := func(n int64) {
		if n > 0 {
			sizes[n] = true
			m.FreeRanges++
			m.LargestFree = max(m.LargestFree, n)
			free += n
		}
	}
	for _, s := range slabs {
		from := s.Address
		for len(blocks) > 0 && blocks[0].Address < s.Address+s.Size {
			gap(blocks[0].Address - from)
			from = max(from, blocks[0].Address+blocks[0].Size)
			blocks = blocks[1:]
		}
		gap(s.Address + s.Size - from)
	}
	if m.Live > 0 {
		m.Internal = 1 - float64(m.Requested)/float64(m.Live)
	}
	if m.FreeRanges > 0 {
		m.TypeDiversity = float64(len(sizes)) / float64(m.FreeRanges)
		m.External = 1 - float64(m.LargestFree)/float64(free)
	}
	return m
}

// advise adds advice on conspicuous figures of the analysis.
func (a *Analysis) advise(t *Trace) {
	say := func(format string, args ...any) { a.Advice = append(a.Advice, fmt.Sprintf(format, args...)) }
	bytes := driver.FormatBytes
	if a.Dropped > 0 {
		say("%d events before the first one were dropped: record more events; the figures are those of the end of the run",
			a.Dropped)
	}
	if a.Gets == 0 {
		say("nothing was allocated")
		return
	}
	k := a.Keys[0]
	// the first blocks of a size have to come from the driver
	if misses := a.Gets - a.Hits; float64(misses) > 0.05*float64(a.Gets) && k.Misses > k.Most {
		say("%.1f %% of the allocations went to the driver, for most bytes those of %s: Preallocate %d of them, or keep "+
			"more (a higher soft limit)",
			100*float64(misses)/float64(a.Gets), bytes(k.Size), k.Most)
	}
	if a.Worst.Internal > 0.25 {
		say("%.0f %% of the live memory was not requested: sizes are just above a class; split or exact blocks would "+
			"fit better", 100*a.Worst.Internal)
	}
	if float64(a.PeakReserved) > 1.35*float64(a.PeakLive) && a.PeakReserved-a.PeakLive > keptWhole {
		say("at most %s were live and %s reserved: a lower soft limit, less Slack or a Trim between phases gives memory back",
			bytes(a.PeakLive), bytes(a.PeakReserved))
	}
	free := a.Worst.Reserved - a.Worst.Live
	if a.Worst.TypeDiversity > 0.5 && a.Worst.FreeRanges > 8 && free > a.Worst.Reserved/8 {
		say("%s are free in %d ranges of nearly as many sizes: request fewer different sizes, or use split blocks",
			bytes(free), a.Worst.FreeRanges)
	}
	split := len(t.Pools) == 0 || t.Pools[0].Mode == Split
	if split && a.Worst.External > 0.5 && free > a.Worst.Reserved/4 {
		say("of %s of free memory the largest range has %s: allocate long-lived memory first", bytes(free),
			bytes(a.Worst.LargestFree))
	}
	retries := 0
	for i := range t.Events {
		if t.Events[i].Kind == Retry {
			retries++
		}
	}
	if retries > 0 {
		say("the driver was out of memory %d times: this program or others fill the device", retries)
	}
	if len(a.Advice) == 0 {
		say("no figure is conspicuous")
	}
}
