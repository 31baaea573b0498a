package runtime

// Implementations of catalog kernels that are a device's own.

import (
	"fmt"
	"slices"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// allNative reports whether the device has an implementation of its own for every
// launch of every kernel of the unit, so that nothing needs to be compiled. Where
// nothing else is wanted, one of the kernels is enough.
func (lib *programs) allNative(unit *source.Unit, impl Implementation) bool {
	if impl == Native {
		return slices.ContainsFunc(unit.Kernels(), func(k source.Kernel) bool { return lib.native(unit, k.Name, impl) != nil })
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

// native returns the device's own implementation of a kernel, nil if there is none
// or nobody wants it.
func (lib *programs) native(unit *source.Unit, name string, impl Implementation) driver.Kernel {
	if lib.core.natives == nil || unit.Family() == "" || impl == Portable {
		return nil
	}
	k, _ := lib.core.natives.Native(unit, name)
	return k
}

// noNative says that the device has no implementation of its own of kernels, and why if
// it knows.
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
