package runtime

// Operations on a device's memory besides buffers: limits, preallocation, accounts and traces.

import (
	"io"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/mempool"
)

// DeviceMemory administers the memory pool of one device, which all Devices that opened it
// share. Once the Device that returned it is closed, methods with an error answer ErrClosed.
// It is safe for concurrent use.
type DeviceMemory struct{ device *Device }

// Memory returns the administration of the device's memory pool. Most programs never need it:
// see [Device.Alloc] for buffers, [Device.Stats] for accounts and [Config] for limits.
func (d *Device) Memory() DeviceMemory { return DeviceMemory{d} }

// enter returns the shared state of the device and keeps it open until its leave.
func (m DeviceMemory) enter(op string) (*core, error) {
	c, err := m.device.get(op)
	if err != nil {
		return nil, err
	}
	if !c.enter() {
		return nil, c.closedError(op)
	}
	return c, nil
}

// SetLimits sets the limits on memory that the device holds: memory above soft bytes is not kept
// for reuse, and a request that would need more than hard bytes fails (ErrBudget). 0 is the
// default: for soft 70 % of the device's memory, for hard no limit.
func (m DeviceMemory) SetLimits(soft, hard int64) error {
	const op = "set memory limits"
	c, err := m.enter(op)
	if err != nil {
		return err
	}
	defer c.leave()
	if soft == 0 {
		soft = mempool.AdviseLimit(c.info.TotalMemory)
	}
	if err := c.memory.pool.SetLimits(soft, hard); err != nil {
		return c.error(op, err)
	}
	return nil
}

// Preallocate fills the pool, so that buffers of those sizes can be allocated without a call to the
// driver: a warm-up before latency-critical work. It preallocates all or nothing, within the
// limits, and may wait for the driver. Sizes advises how many of each size. With
// Config.NoMemoryPool it does nothing.
func (m DeviceMemory) Preallocate(specs ...mempool.Spec) error {
	const op = "preallocate"
	c, err := m.enter(op)
	if err != nil {
		return err
	}
	defer c.leave()
	if err := c.lost(); err != nil {
		return err
	}
	c.memory.drain()
	return c.named(op, c.noticed(c.memory.pool.Preallocate(specs)))
}

// Trim gives memory that is kept for reuse back to the driver, the least recently used first, until
// at most keep bytes of it are left (0: none), and returns the number of bytes given back. Memory
// of buffers and of queued work is not touched.
func (m DeviceMemory) Trim(keep int64) (freed int64, err error) {
	c, err := m.enter("trim")
	if err != nil {
		return 0, err
	}
	defer c.leave()
	c.memory.drain()
	return c.memory.pool.Trim(max(0, keep)), nil
}

// Sizes lists the requested sizes of buffers, the most frequent first, with the number of buffers
// of each size to preallocate.
func (m DeviceMemory) Sizes() []mempool.Class { return m.device.core.memory.pool.Hot() }

// ResetPeak sets the peaks in Stats to the present values.
func (m DeviceMemory) ResetPeak() error {
	c, err := m.enter("reset peak")
	if err != nil {
		return err
	}
	defer c.leave()
	c.memory.pool.ResetPeak()
	c.memory.mu.Lock()
	defer c.memory.mu.Unlock()
	c.memory.stats.Peak = c.memory.stats.Live
	return nil
}

// Watch sets the parts of the soft limit from which memory counts as short, and a function that is
// called when such a threshold is crossed, once on the way up and once on the way down. A nil
// function ends the watch. The zero Thresholds are the defaults.
//
// tell is called during a call that allocates or frees: it may call Stats and Trim, and must not
// allocate, close anything, or wait for the device.
func (m DeviceMemory) Watch(t mempool.Thresholds, tell func(mempool.Pressure)) error {
	const op = "watch memory"
	c, err := m.enter(op)
	if err != nil {
		return err
	}
	defer c.leave()
	err = c.memory.pool.Watch(t, func(p mempool.Pressure) {
		c.memory.logPressure(p)
		if tell != nil {
			tell(p)
		}
	})
	if err != nil {
		return c.error(op, err)
	}
	c.memory.watched.Store(tell != nil)
	return nil
}

// Track makes the device remember where buffers are allocated, from now on. Out-of-memory errors
// then list the places that hold most, buffers that are still open when the device is closed are
// logged, and the profile "concord_device_memory" of runtime/pprof counts live buffers by the
// stacks that allocated them. An allocation costs about a microsecond more.
func (m DeviceMemory) Track(on bool) error {
	c, err := m.enter("track memory")
	if err != nil {
		return err
	}
	defer c.leave()
	c.memory.pool.Track(on)
	return nil
}

// Holders lists the live buffers, the largest first: grouped by the place that allocated them while
// Track is on, otherwise by size.
func (m DeviceMemory) Holders() []mempool.Holder { return m.device.core.memory.pool.Holders() }

// WriteProfile writes live device memory by the stacks that allocated it, in the format of
// "go tool pprof". It contains allocations since Track was switched on.
func (m DeviceMemory) WriteProfile(w io.Writer) error {
	c, err := m.device.get("write memory profile")
	if err != nil {
		return err
	}
	return c.memory.pool.WriteProfile(w)
}

// Report returns a readable table of the device's memory: live and kept bytes, the limits, the
// savings of the pool, fragmentation, requested sizes, and the largest holders.
func (m DeviceMemory) Report() string {
	text := "memory of " + m.device.String() + "\n" + m.device.core.memory.pool.Report()
	if used, total, known := SystemMemory(); known {
		text += "the machine uses " + driver.FormatBytes(used) + " of " + driver.FormatBytes(total) + "\n"
	}
	return text
}

// Record starts or stops recording the device's memory operations. A recording holds
// mempool.DefaultEvents events at most; the oldest are dropped. An event costs some 100 ns.
// Starting twice changes nothing. With Config.MemoryTrace the device records from its opening to
// its close, and Record does nothing.
func (m DeviceMemory) Record(on bool) error {
	c, err := m.enter("record memory")
	if err != nil {
		return err
	}
	defer c.leave()
	c.memory.mu.Lock()
	defer c.memory.mu.Unlock()
	switch {
	case on && c.memory.recorder == nil:
		c.memory.recorder = mempool.NewRecorder(0)
		c.memory.pool.Record(c.memory.recorder, c.info.ID)
	case !on && c.session.cfg.MemoryTrace == "":
		c.memory.recorder = nil
		c.memory.pool.Record(nil, "")
	}
	return nil
}

// Trace returns the recording since Record, or nil if nothing is recorded. It can be written,
// replayed with other settings and analyzed; see package mempool. With Config.MemoryTrace it
// contains the program's other devices as well.
func (m DeviceMemory) Trace() *mempool.Trace {
	c := m.device.core
	c.memory.mu.Lock()
	defer c.memory.mu.Unlock()
	if c.memory.recorder == nil {
		return nil
	}
	return c.memory.recorder.Trace()
}

// MemoryUsage is the memory that open devices hold, in bytes of whole blocks.
type MemoryUsage struct {
	Devices  int
	Live     int64 // of buffers
	Cached   int64 // kept for reuse
	Reserved int64 // Live + Cached: all memory from the drivers
	Peak     int64 // the sum of each device's largest Live, which may have occurred at different times
}

// MemoryUsage adds up the memory of the session's open devices. Each device's figures are
// consistent with each other.
func (s *Session) MemoryUsage() MemoryUsage {
	var sum MemoryUsage
	for _, c := range s.entered() {
		c.memory.drain()
		st := c.memory.pool.Counters()
		c.leave()
		sum.Devices++
		sum.Live += st.Live
		sum.Cached += st.Cached
		sum.Reserved += st.Reserved
		sum.Peak += st.PeakLive
	}
	return sum
}

// TrimMemory gives all memory that the session's open devices keep for reuse back to the drivers,
// and returns the number of bytes.
func (s *Session) TrimMemory() (freed int64) {
	for _, c := range s.entered() {
		c.memory.drain()
		freed += c.memory.pool.Trim(0)
		c.leave()
	}
	return freed
}

// entered lists the open devices, each kept open until the caller's leave.
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
