package mempool

// The administration of the pool of one device: limits, preallocation, accounts and traces.

import (
	"io"

	"github.com/concord-compute/concord/runtime/driver"
)

// Admin administers the pool of one device, which all handles of the device share: runtime's Device.Memory returns
// it. Once the Device that returned it is closed, methods with an error answer ErrClosed. It is safe for concurrent
// use.
type Admin struct{ Owner Owner }

// Owner is what the device of a pool does for an Admin. It is implemented by package runtime.
type Owner interface {
	// Enter keeps the device open until leave, or says why it is closed or lost.
	Enter(op string) (pool *Pool, leave func(), err error)
	Pool() *Pool // also of a device that is closed
	Name() string
	TotalMemory() int64               // bytes, or 0
	Error(op string, err error) error // names the device, where err does not
	// frees what was closed and is no longer in use, and says why the device is lost, if it is
	Settle() error
	ResetPeak()         // of the device's own accounts
	Pressed(p Pressure) // logs
	Watched(on bool)    // there is a function of Watch
}

// do calls f with the pool of an open device.
func (a Admin) do(op string, f func(*Pool) error) error {
	pool, leave, err := a.Owner.Enter(op)
	if err != nil {
		return err
	}
	defer leave()
	if err := f(pool); err != nil {
		return a.Owner.Error(op, err)
	}
	return nil
}

// SetLimits sets the limits on memory that the device holds: memory above soft bytes is not kept
// for reuse, and a request that would need more than hard bytes fails (ErrBudget). 0 is the
// default: for soft what AdviseLimit returns, for hard no limit.
func (a Admin) SetLimits(soft, hard int64) error {
	if soft == 0 {
		soft = AdviseLimit(a.Owner.TotalMemory())
	}
	return a.do("set memory limits", func(p *Pool) error { return p.SetLimits(soft, hard) })
}

// Preallocate fills the pool, so that buffers of those sizes can be allocated without a call to the
// driver: a warm-up before latency-critical work. It preallocates all or nothing, within the
// limits, and may wait for the driver. Sizes advises how many of each size. With
// Config.NoMemoryPool it does nothing.
func (a Admin) Preallocate(specs ...Spec) error {
	return a.do("preallocate", func(p *Pool) error {
		if err := a.Owner.Settle(); err != nil {
			return err
		}
		return p.Preallocate(specs)
	})
}

// Trim gives memory that is kept for reuse back to the driver, the least recently used first, until at most keep bytes
// of it are left (0: none). It returns the number of bytes given back. Memory of buffers and of queued work is not
// touched.
func (a Admin) Trim(keep int64) (freed int64, err error) {
	err = a.do("trim", func(p *Pool) error {
		_ = a.Owner.Settle() // a lost device has nothing more to free
		freed = p.Trim(max(0, keep))
		return nil
	})
	return freed, err
}

// Sizes lists the requested sizes of buffers, the most frequent first, with the number of buffers
// of each size to preallocate.
func (a Admin) Sizes() []Class { return a.Owner.Pool().Hot() }

// ResetPeak sets the peaks in Stats to the present values.
func (a Admin) ResetPeak() error {
	return a.do("reset peak", func(p *Pool) error {
		p.ResetPeak()
		a.Owner.ResetPeak()
		return nil
	})
}

// Watch sets the parts of the soft limit from which memory counts as short, and a function. It is called when such a
// threshold is crossed, once on the way up and once on the way down. A nil function ends the watch. The zero
// Thresholds are the defaults.
//
// tell is called during a call that allocates or frees: it may call Stats and Trim, and must not
// allocate, close anything, or wait for the device.
func (a Admin) Watch(t Thresholds, tell func(Pressure)) error {
	return a.do("watch memory", func(p *Pool) error {
		err := p.Watch(t, func(p Pressure) {
			a.Owner.Pressed(p)
			if tell != nil {
				tell(p)
			}
		})
		if err == nil {
			a.Owner.Watched(tell != nil)
		}
		return err
	})
}

// Track makes the device remember where buffers are allocated, from now on. Out-of-memory errors then list the places
// that hold most, and buffers that are still open when the device is closed are logged. The profile
// "concord_device_memory" of runtime/pprof counts live buffers by the stacks that allocated them. An allocation costs
// about a microsecond more.
func (a Admin) Track(on bool) error {
	return a.do("track memory", func(p *Pool) error {
		p.Track(on)
		return nil
	})
}

// Holders lists the live buffers, the largest first: grouped by the place that allocated them while
// Track is on, otherwise by size.
func (a Admin) Holders() []Holder { return a.Owner.Pool().Holders() }

// WriteProfile writes live device memory by the stacks that allocated it, in the format of
// "go tool pprof". It contains allocations since Track was switched on.
func (a Admin) WriteProfile(w io.Writer) error {
	return a.do("write memory profile", func(p *Pool) error { return p.WriteProfile(w) })
}

// Report returns a readable table of the device's memory: live and kept bytes, the limits, the
// savings of the pool, fragmentation, requested sizes, and the largest holders.
func (a Admin) Report() string {
	text := "memory of " + a.Owner.Name() + "\n" + a.Owner.Pool().Report()
	if used, total, known := SystemMemory(); known {
		text += "the machine uses " + driver.FormatBytes(used) + " of " + driver.FormatBytes(total) + "\n"
	}
	return text
}

// Record starts or stops recording the device's memory operations. A recording holds
// DefaultEvents events at most; the oldest are dropped. An event costs some 100 ns.
// Starting twice changes nothing. With Config.MemoryTrace the device records from its opening to
// its close, and Record does nothing.
func (a Admin) Record(on bool) error {
	return a.do("record memory", func(p *Pool) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case p.toFile:
		case on && p.trace == nil:
			p.record(NewRecorder(0), a.Owner.Name())
		case !on:
			p.trace = nil
		}
		return nil
	})
}

// Trace returns the recording since Record, or nil if nothing is recorded. It can be written, replayed with other
// settings and analyzed; see the package comment. With Config.MemoryTrace it contains the program's other devices
// as well.
func (a Admin) Trace() *Trace {
	p := a.Owner.Pool()
	p.mu.Lock()
	trace := p.trace
	p.mu.Unlock()
	if trace == nil {
		return nil
	}
	return trace.Trace() // copies many events, and has a lock of its own
}

// Staging are the accounts of a device's staging buffers.
type Staging struct {
	Buffers int64 // pinned buffers held now
	Bytes   int64 // their bytes
	Copies  int64 // copies that went through them so far
	Moved   int64 // bytes of these copies
}
