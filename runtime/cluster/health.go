package cluster

// How members do, and what they have moved.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// State is how a member does.
type State uint8

// The states.
const (
	Healthy   State = iota
	Degraded        // from 3 failures in a row on, until 3 calls in a row succeed
	Unhealthy       // from 5 failures in a row on, likewise
	Lost            // its device is lost, or it did not answer in time
)

var stateNames = [...]string{"healthy", "degraded", "unhealthy", "lost"}

// String returns the state as a word.
func (s State) String() string { return stateNames[min(int(s), len(stateNames)-1)] }

// The numbers of failures and successes in a row that change a state.
const (
	degradedFrom  = 3
	unhealthyFrom = 5
	healthyFrom   = 3
)

// Health is what is known of a member, or of a device of a [Runner]. Failures are those for which it is to blame;
// arguments that are refused and contexts that are done are none.
type Health struct {
	State     State
	Calls     int64 // collectives or units that succeeded, and failures
	Failures  int64
	LastError error     // nil if there was none
	LastTime  time.Time // of LastError
}

// health is a member's Health with its rows of results.
type health struct {
	mu           sync.Mutex
	now          Health
	failed, well int // in a row
}

// Health returns what is known of the member.
func (m *Member) Health() Health { return m.health.get() }

func (h *health) get() Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// did notes the outcome of a call of the member: an error is its own.
func (m *Member) did(err error) {
	if err == nil || !harmless(err) {
		m.health.did(err, time.Now(), errors.Is(err, runtime.ErrDeviceLost) || errors.Is(err, driver.ErrTimeout))
	}
}

// did notes the outcome of a call.
func (h *health) did(err error, now time.Time, lost bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now.Calls++
	if err == nil {
		h.failed = 0
		if h.well++; h.well >= healthyFrom && h.now.State != Lost {
			h.now.State = Healthy
		}
		return
	}
	h.now.Failures++
	h.now.LastError, h.now.LastTime = err, now
	h.well = 0
	h.failed++
	switch {
	case h.now.State == Lost:
	case lost:
		h.now.State = Lost
	case h.failed >= unhealthyFrom:
		h.now.State = Unhealthy
	case h.failed >= degradedFrom:
		h.now.State = Degraded
	}
}

// restore notes that a device which was lost or failed works again.
func (h *health) restore() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now.State, h.failed, h.well = Healthy, 0, 0
}

// harmless reports whether an error says nothing about a device.
func harmless(err error) bool {
	return errors.Is(err, runtime.ErrInvalidArgument) || errors.Is(err, driver.ErrDimension) ||
		errors.Is(err, runtime.ErrClosed) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded)
}

// Stats counts the bytes that members of this process have received in collectives, or that a [Pair] has copied, by the
// way that they took.
type Stats struct {
	Library int64 // by the library of the devices' vendor, which finds its way itself
	Shared  int64 // in memory of one device: copied by it, or read by a kernel in place
	Direct  int64 // from another device, by the driver of the receiving one
	Host    int64 // from another device, through the host
	Link    int64 // from another process

	// Fallbacks counts the calls of members whose collectives another algorithm did because the library did not work,
	// see Group.Library, and the transfers of a Pair that went through the host because its path failed. Failures are
	// a Pair's alone.
	Fallbacks, Failures int64
}

// String returns "12.0 MiB by the library, 4.0 KiB direct", with the ways that were taken.
func (s Stats) String() string {
	var parts []string
	for _, way := range []struct {
		bytes int64
		name  string
	}{{s.Library, "by the library"}, {s.Shared, "in one memory"}, {s.Direct, "direct"}, {s.Host, "through the host"},
		{s.Link, "over the link"}} {
		if way.bytes > 0 {
			parts = append(parts, driver.FormatBytes(way.bytes)+" "+way.name)
		}
	}
	if s.Fallbacks > 0 {
		parts = append(parts, fmt.Sprintf("%d fallbacks", s.Fallbacks))
	}
	if s.Failures > 0 {
		parts = append(parts, fmt.Sprintf("%d failures", s.Failures))
	}
	if parts == nil {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// traffic is Stats that are being counted.
type traffic struct{ library, shared, direct, host, link, fallbacks, failures atomic.Int64 }

// Stats returns what was counted so far.
func (g *Group) Stats() Stats { return g.traffic.get() }

func (t *traffic) get() Stats {
	return Stats{Library: t.library.Load(), Shared: t.shared.Load(), Direct: t.direct.Load(), Host: t.host.Load(),
		Link: t.link.Load(), Fallbacks: t.fallbacks.Load(), Failures: t.failures.Load()}
}

// count counts a copy from one member's device to another one's.
func (g *Group) count(near bool, to, from *runtime.Device, dst, src *runtime.Buffer) {
	switch {
	case near:
		g.traffic.shared.Add(src.Bytes())
	case direct(to, from, dst, src):
		g.traffic.direct.Add(src.Bytes())
	default:
		g.traffic.host.Add(src.Bytes())
	}
}

// direct reports whether the driver of a device copies from another one itself. One whose memory the host sees does so
// only from memory that the host sees as well.
func direct(to, from *runtime.Device, dst, src *runtime.Buffer) bool {
	peers, ok := to.Driver().(driver.PeerCopier)
	if !ok {
		return false
	}
	if can, _ := peers.CanCopyFrom(from.Driver()); !can {
		return false
	}
	_, err := runtime.HostBytes(dst)
	if err == nil {
		_, err = runtime.HostBytes(src)
		return err == nil
	}
	return true
}
