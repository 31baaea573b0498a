package mempool

// The accounts as a readable table.

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
)

// Report returns a readable table of the accounts, the requested sizes and the largest holders.
// Programs should use Stats, Hot and Holders instead.
func (p *Pool) Report() string {
	s := p.Stats()
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	s.rows(w)
	_ = w.Flush() // writes to memory cannot fail
	if hot := p.Hot(); len(hot) > 0 {
		fmt.Fprintln(w, "size up to\tgets\tlive\tfree\tin use\tprewarm")
		for _, c := range hot {
			size := "more"
			if c.Bytes > 0 {
				size = driver.FormatBytes(c.Bytes)
			}
			fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%.0f %%\t%d\n", size, c.Gets, c.Live, c.Free, 100*c.Utilization(), c.Prewarm)
		}
		_ = w.Flush()
	}
	if list := p.Holders(); len(list) > 0 {
		out.WriteString("holders" + lines(list) + "\n")
	}
	return out.String()
}

// rows writes the fields of Stats.
func (s *Stats) rows(w *tabwriter.Writer) {
	bytes := driver.FormatBytes
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	row("live", "%s in %d blocks, %s asked for", bytes(s.Live), s.LiveBlocks, bytes(s.Requested))
	row("kept", "%s in %d blocks, of that %s in use by queued work", bytes(s.Cached), s.CachedBlocks, bytes(s.Waiting))
	row("reserved", "%s in %d allocations of the driver", bytes(s.Reserved), s.Slabs)
	row("largest", "live %s, reserved %s", bytes(s.PeakLive), bytes(s.PeakReserved))
	hard := "none"
	if s.HardLimit > 0 {
		hard = bytes(s.HardLimit)
	}
	row("limits", "soft %s, hard %s; pressure %.3f", bytes(s.SoftLimit), hard, s.Pressure())
	row("gets", "%d, returns %d; %d without the driver (%.2f %%), %d with", s.Allocations, s.Deallocations, s.Hits,
		100*s.Efficiency(), s.Misses)
	row("driver", "%d allocations, %d frees, %d retries", s.DriverAllocs, s.DriverFrees, s.Retries)
	row("fragmentation", "internal %.3f, type diversity %.3f, largest free block %s", s.Internal(), s.TypeDiversity(),
		bytes(s.LargestFree))
	last := "never"
	if !s.LastCleanup.IsZero() {
		last = time.Since(s.LastCleanup).Round(time.Millisecond).String() + " ago"
	}
	row("clean-ups", "%d, the last %s; joined %d times", s.Cleanups, last, s.Coalesces)
	row("leaks", "%d blocks older than %v", s.Leaks, LeakAge)
}
