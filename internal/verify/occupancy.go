package verify

// The step that compares computed occupancy with the driver's own answer.

import (
	"context"
	"errors"
	"fmt"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/profile"
)

// occupied are families whose kernels differ in registers and local memory.
var occupied = []string{"saxpy", "gemm", "softmax", "conv2d", "nearest", "sort_pairs", "w2a8"}

// stepOccupancy asks for several group sizes of each kernel.
func stepOccupancy(ctx context.Context, e *Env, dev *runtime.Device) error {
	if _, ok := dev.Driver().(driver.Occupier); !ok {
		return skipf("the driver of %s does not tell", dev)
	}
	if err := compiles(ctx, dev); err != nil {
		return err
	}
	limits, err := profile.DeviceLimits(dev.Info())
	if err != nil {
		return skipf("the occupancy of this device is not computed: %v", err)
	}
	for _, id := range occupied {
		unit, err := kernels.Unit(id, dev.Features())
		if err != nil {
			return err
		}
		prog, err := dev.Program(ctx, unit, runtime.ProgramOptions{Implementation: runtime.Portable})
		if err != nil {
			return err
		}
		for _, decl := range unit.Kernels() {
			e.check(ctx, id+"/"+decl.Name, func(context.Context) error {
				k, err := prog.Kernel(decl.Name)
				if err != nil {
					return err
				}
				return residency(limits, k)
			})
		}
		if e.over(ctx) {
			break
		}
		if err := prog.Close(); err != nil {
			return err
		}
	}
	return nil
}

// residency compares the groups of each size that run at a time.
func residency(limits profile.Limits, k *runtime.Kernel) error {
	info := k.Info()
	r := profile.Request{MaxGroup: info.MaxGroup, Registers: info.Registers, Local: info.LocalBytes}
	for _, group := range []int{32, 64, 128, 256, 512, 1024} {
		if info.MaxGroup > 0 && group > info.MaxGroup {
			break
		}
		theirs, err := k.Occupancy(group, 0)
		if errors.Is(err, runtime.ErrUnsupported) {
			return skipf("the driver does not tell: %v", err)
		}
		if err != nil {
			return err
		}
		ours := profile.Occupancy(limits, r, group)
		if ours.Groups != theirs {
			return fmt.Errorf("groups of %d items: %d run at a time by the rules (%v), and %d by the driver; registers %d, "+
				"local memory %d",
				group, ours.Groups, ours, theirs, r.Registers, r.Local)
		}
	}
	return nil
}
