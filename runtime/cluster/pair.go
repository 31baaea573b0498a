package cluster

// How data gets from one device to another.

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// Path is the way that data takes from one device to another.
type Path uint8

// The paths, the slowest first.
const (
	ThroughHost   Path = iota // the host reads the one device and writes to the other
	ThroughDriver             // the receiving device's driver copies, without direct access
	Peer                      // the receiving device reads the other one's memory
	OneDevice                 // there is no way to go
)

var pathNames = [...]string{"through the host", "through the driver", "direct", "one device"}

// String returns the path in words.
func (p Path) String() string { return pathNames[min(int(p), len(pathNames)-1)] }

// Pair says how data gets from one device to another: what [runtime.Stream.CopyFrom] does, and copies. Path is Peer
// where the receiving device accesses the other one's memory. Its methods but Measure may be called concurrently.
type Pair struct {
	To, From *runtime.Device
	Path     Path
	Rate     float64 // in bytes per second, by the last Measure; 0 before

	traffic *traffic
}

// PairOf asks the receiving device's driver how data gets to it from another device. Open devices of any backends are a
// pair; it copies nothing, but allocates a byte on each, since what a host sees of memory decides, too. One that is
// closed or lost is
// [runtime.ErrClosed] or [runtime.ErrDeviceLost].
func PairOf(to, from *runtime.Device) (Pair, error) {
	p := Pair{To: to, From: from, traffic: new(traffic)}
	for _, d := range []*runtime.Device{to, from} {
		if d == nil {
			return p, fmt.Errorf("cluster: pair: a device is nil: %w", runtime.ErrInvalidArgument)
		}
		if err := d.Enter("pair"); err != nil {
			return p, err
		}
		defer d.Leave()
	}
	if to.Stream().RunsOn(from) {
		p.Path = OneDevice
		return p, nil
	}
	peers, ok := to.Driver().(driver.PeerCopier)
	if !ok {
		return p, nil
	}
	can, directly := peers.CanCopyFrom(from.Driver())
	if !can {
		return p, nil
	}
	src, err := runtime.Alloc[uint8](from, 1)
	if err != nil {
		return p, err
	}
	defer src.Close()
	dst, err := runtime.Alloc[uint8](to, 1)
	if err != nil {
		return p, err
	}
	defer dst.Close()
	switch {
	case !direct(to, from, dst, src):
	case directly:
		p.Path = Peer
	default:
		p.Path = ThroughDriver
	}
	return p, nil
}

// Measure copies a number of bytes from the one device to the other, several times, and sets Rate to the median rate.
// It waits for the copies, and fails where there is no memory for them.
func (p *Pair) Measure(ctx context.Context, bytes int) error {
	if bytes <= 0 {
		return fmt.Errorf("cluster: pair: %d bytes: %w", bytes, runtime.ErrInvalidArgument)
	}
	src, err := p.From.Alloc(runtime.U8, bytes)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := p.To.Alloc(runtime.U8, bytes)
	if err != nil {
		return err
	}
	defer dst.Close()
	s, err := p.To.NewStream()
	if err != nil {
		return err
	}
	defer s.Close()
	var took []time.Duration
	for i := range 8 { // of which the first makes what later ones use again
		start := time.Now()
		if err := s.CopyFrom(ctx, dst, src, nil); err != nil {
			return err
		}
		if err := s.Sync(ctx); err != nil {
			return err
		}
		if i > 0 {
			took = append(took, time.Since(start))
		}
	}
	slices.Sort(took)
	p.Rate = float64(bytes) / max(took[len(took)/2].Seconds(), 1e-9)
	return nil
}

// String returns "cuda:1 from cuda:0: direct, 48.3 GB/s".
func (p Pair) String() string {
	text := fmt.Sprintf("%v from %v: %v", p.To, p.From, p.Path)
	if p.Rate > 0 {
		text += fmt.Sprintf(", %.1f GB/s", p.Rate/1e9)
	}
	return text
}
