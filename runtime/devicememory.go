package runtime

// What the administration of a device's memory pool needs of the device.

import (
	"github.com/concord-compute/concord/runtime/mempool"
)

// Memory returns the administration of the device's memory pool. Most programs never need it:
// see [Device.Alloc] for buffers, [Device.Stats] for accounts and [Config] for limits.
func (d *Device) Memory() mempool.Admin { return mempool.Admin{Owner: poolOwner{d}} }

// poolOwner implements mempool.Owner.
type poolOwner struct{ device *Device }

func (o poolOwner) memory() *memory     { return &o.device.core.memory }
func (o poolOwner) Pool() *mempool.Pool { return o.memory().pool }
func (o poolOwner) Name() string        { return o.device.String() }
func (o poolOwner) TotalMemory() int64  { return o.device.core.info.TotalMemory }

func (o poolOwner) Settle() error {
	o.memory().drain()
	return o.device.core.lost()
}

func (o poolOwner) Enter(op string) (*mempool.Pool, func(), error) {
	c, err := o.device.get(op)
	if err != nil {
		return nil, nil, err
	}
	if !c.enter() {
		return nil, nil, c.closedError(op)
	}
	return c.memory.pool, c.leave, nil
}

func (o poolOwner) Error(op string, err error) error {
	return o.device.core.named(op, o.device.core.noticed(err))
}

func (o poolOwner) ResetPeak() {
	m := o.memory()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats.Peak = m.stats.Live
}

func (o poolOwner) Pressed(p mempool.Pressure) { o.memory().logPressure(p) }
func (o poolOwner) Watched(on bool)            { o.memory().watched.Store(on) }
