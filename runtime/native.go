package runtime

// A device's own implementations of catalog kernels.

import (
	"fmt"
	"slices"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// allNative reports whether the device has an implementation of its own for every launch of every
// kernel of the unit, so that nothing needs to be compiled. If the program asks for native kernels
// only, one such kernel is enough.
func (lib *programs) allNative(unit *source.Unit, impl Implementation) bool {
	if impl == Native {
		return slices.ContainsFunc(unit.Kernels(), func(k source.Kernel) bool {
			return lib.native(unit, k.Name, impl) != nil
		})
	}
	for _, k := range unit.Kernels() {
		own := lib.native(unit, k.Name, impl)
		_, selective := own.(driver.Selective)
		if own == nil || selective {
			return false
		}
	}
	return true
}

// native returns the device's own implementation of a kernel, or nil if there is none or the
// program does not want it.
func (lib *programs) native(unit *source.Unit, name string, impl Implementation) driver.Kernel {
	if lib.core.natives == nil || unit.Family() == "" || impl == Portable {
		return nil
	}
	k, _ := lib.core.natives.Native(unit, name)
	return k
}

// noNative returns the error that the device has no implementation of its own of the kernels, with
// the reason if the device knows it.
func (lib *programs) noNative(op string, unit *source.Unit, kernels ...source.Kernel) error {
	err := fmt.Errorf("the device has no implementation of its own: %w", ErrUnsupported)
	if d, ok := lib.core.drv.(driver.NoNative); ok {
		for _, k := range kernels {
			if why := d.WhyNotNative(unit, k.Name); why != nil {
				return lib.core.error(op, fmt.Errorf("%w: %w", err, why))
			}
		}
	}
	return lib.core.error(op, err)
}
