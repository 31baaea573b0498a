package runtime

// What a program may ask of memory pools besides buffers: memory ahead of need,
// clean-ups, totals.

import "github.com/concord-compute/concord/runtime/mempool"

// Preallocate fills the device's pool, so that buffers of those sizes can be had without
// the driver: a warm-up before work that must not wait. It is all or nothing, within the
// limits, and may wait for the driver; MemorySizes advises how many. With
// Config.NoMemoryPool it does nothing.
func (d *Device) Preallocate(specs ...mempool.Spec) error {
	const op = "preallocate"
	c, err := d.use(op)
	if err != nil {
		return err
	}
	if !c.enter() {
		return c.ended(op)
	}
	defer c.guests.Done()
	if err := c.lostError(); err != nil {
		return err
	}
	c.drain()
	return c.named(op, c.noticed(c.pool.Preallocate(specs)))
}

// MemorySizes lists which sizes of buffers were asked for, the most wanted first, with
// how many of each to have ready.
func (d *Device) MemorySizes() []mempool.Class { return d.core.pool.Hot() }

// EmergencyCleanup gives the driver all memory that is kept for reuse, and returns how
// many bytes that was. Buffers stay as they are, and so does what queued work uses.
func (d *Device) EmergencyCleanup() (int64, error) {
	return d.clean("emergency cleanup", (*mempool.Pool).EmergencyCleanup)
}

// CleanupFragmented gives back memory that is kept in many sizes and little of each, and
// returns how many bytes that was: see mempool.Pool.CleanupFragmented. The pool does the
// same by itself when it is looked after.
func (d *Device) CleanupFragmented() (int64, error) {
	return d.clean("clean up", (*mempool.Pool).CleanupFragmented)
}

func (d *Device) clean(op string, work func(*mempool.Pool) int64) (int64, error) {
	c, err := d.use(op)
	if err != nil {
		return 0, err
	}
	if !c.enter() {
		return 0, c.ended(op)
	}
	defer c.guests.Done()
	c.drain()
	return work(c.pool), nil
}

// ResetPeak makes the peaks in Stats what they would be if the device were opened now
// with what is live.
func (d *Device) ResetPeak() error {
	c, err := d.use("reset peak")
	if err != nil {
		return err
	}
	c.pool.ResetPeak()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Peak = c.stats.Live
	return nil
}

// MemoryUsage is how much memory open devices hold, in bytes, as they hold it.
type MemoryUsage struct {
	Devices  int
	Live     int64 // of buffers
	Cached   int64 // kept for reuse
	Reserved int64 // both: what the drivers gave
	Peak     int64 // the largest Live of each device, added up: they need not have been at one time
}

// MemoryUsage adds up what the session's open devices hold. Each device's figures are of
// one moment.
func (s *Session) MemoryUsage() MemoryUsage {
	var sum MemoryUsage
	for _, c := range s.entered() {
		c.drain()
		st := c.pool.Counters()
		c.guests.Done()
		sum.Devices++
		sum.Live += st.Live
		sum.Cached += st.Cached
		sum.Reserved += st.Reserved
		sum.Peak += st.PeakLive
	}
	return sum
}

// EmergencyCleanup is Device.EmergencyCleanup on every open device of the session.
func (s *Session) EmergencyCleanup() (freed int64) {
	for _, c := range s.entered() {
		c.drain()
		freed += c.pool.EmergencyCleanup()
		c.guests.Done()
	}
	return freed
}

// entered lists the open devices. None is closed before the caller has let go of its
// guests.
func (s *Session) entered() []*core {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*core, 0, len(s.open))
	for _, c := range s.open {
		if c.enter() {
			list = append(list, c)
		}
	}
	return list
}
