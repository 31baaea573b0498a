package runtime

// How large groups should be: what the device says of a kernel, and the rule for
// tiles of two-dimensional problems.

import (
	"fmt"

	"github.com/concord-compute/concord/runtime/driver"
)

// Occupancy returns how many groups of that many items, each with local bytes of
// local memory besides the kernel's own, run on one multiprocessor at a time. 0
// means that such a group cannot run. ErrUnsupported where the device does not
// tell.
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

// SuggestGroup returns the number of items of a group that keeps the most items
// running, where each group has local bytes of local memory besides the kernel's
// own. ErrUnsupported where the device does not tell.
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
	if k.program.gone.Load() {
		return nil, c.ended(op)
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

// LaunchParams2D returns how to launch a kernel over m rows and n columns in square
// tiles: b x b items in a group, which has b*b 4-byte elements of local memory, and
// the number of groups. b is 32, 16 or 8, the largest that the device allows, and
// 8 where nothing is known. The x axis runs over columns:
//
//	b, rows, cols, err := runtime.LaunchParams2D(dev.Info(), m, n)
//	grid := runtime.Items(cols*b, rows*b).InGroups(b, b)
//
// The last tiles reach over the edge, so the kernel checks its bounds.
func LaunchParams2D(info Info, m, n int) (b, gridRows, gridCols int, err error) {
	return params2D(tile(&info), m, n)
}

// LaunchParams2D is the function of that name for the kernel and its device: where
// the kernel as compiled allows smaller groups only, b is halved, though not
// below 8.
func (k *Kernel) LaunchParams2D(m, n int) (b, gridRows, gridCols int, err error) {
	if k == nil || k.program == nil {
		return 0, 0, 0, fmt.Errorf("launch parameters: kernel is nil: %w", ErrInvalidArgument)
	}
	b = tile(&k.program.device.info)
	for most := k.maxGroup(); most > 0 && b > 8 && b*b > most; {
		b /= 2
	}
	return params2D(b, m, n)
}

func tile(info *Info) int {
	for _, b := range []int{32, 16} {
		if info.SharedPerBlock >= int64(4*b*b) && info.MaxThreadsPerBlock >= b*b {
			return b
		}
	}
	return 8
}

func params2D(b, m, n int) (int, int, int, error) {
	if m < 1 || n < 1 {
		return 0, 0, 0, fmt.Errorf("launch parameters for %d rows and %d columns: %w", m, n, ErrInvalidArgument)
	}
	return b, (m-1)/b + 1, (n-1)/b + 1, nil
}
