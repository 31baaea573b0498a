package runtime

// The best group sizes, as the device reports them.

import (
	"fmt"

	"github.com/concord-compute/concord/runtime/driver"
)

// Occupancy returns how many groups of that many items, each with local bytes of local memory
// besides the kernel's own, run on one compute unit at a time. 0 means that such a group cannot
// run. It is ErrUnsupported where the device does not report it.
func (k *Kernel) Occupancy(group int, local int64) (int, error) {
	const op = "occupancy"
	d, err := k.occupier(op, local)
	if err != nil {
		return 0, err
	}
	c := k.program.device
	if most := k.maxGroup(); group <= 0 || most > 0 && group > most {
		return 0, c.error(op, fmt.Errorf("groups of %d items, 1 to %d possible: %w", group, most, ErrInvalidArgument))
	}
	n, err := d.Occupancy(k.drv, group, local)
	return n, c.noticed(err)
}

// SuggestGroup returns the number of items of a group that keeps the most items running, where each
// group has local bytes of local memory besides the kernel's own. It is ErrUnsupported where the
// device does not report it.
func (k *Kernel) SuggestGroup(local int64) (int, error) {
	d, err := k.occupier("suggest group", local)
	if err != nil {
		return 0, err
	}
	n, err := d.SuggestGroup(k.drv, local)
	return n, k.program.device.noticed(err)
}

func (k *Kernel) occupier(op string, local int64) (driver.Occupier, error) {
	if k == nil || k.program == nil {
		return nil, fmt.Errorf("%s: kernel is nil: %w", op, ErrInvalidArgument)
	}
	c := k.program.device
	if k.program.gone.Load() || c.isAbandoned() {
		return nil, c.closedError(op)
	}
	if local < 0 {
		return nil, c.error(op, fmt.Errorf("%d bytes of local memory: %w", local, ErrInvalidArgument))
	}
	d, ok := c.drv.(driver.Occupier)
	if !ok || k.info.Native {
		return nil, c.error(op, fmt.Errorf("nothing is known of %s: %w", k.decl.Name, ErrUnsupported))
	}
	return d, nil
}
