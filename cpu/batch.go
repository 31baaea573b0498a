//go:build cgo && unix

package cpu

// Several units in one run of the host's compiler, which then starts, reads the prelude and prepares itself
// once, and a shared object for each.

import (
	"context"
	goruntime "runtime"

	"golang.org/x/sync/errgroup"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// A run of the compiler takes at most mostUnits units, at least fewUnits if it is not the only one, and at
// most mostText bytes of their text, which bounds its memory and how much is lost if it fails.
const mostUnits, fewUnits, mostText = 64, 8, 1 << 20

// batch is what one run of the compiler builds.
type batch struct {
	units []int // indices
	parts []source.HostPart
	bytes int
}

// CompileAll implements driver.BatchCompiler.
func (d *device) CompileAll(ctx context.Context, units []*source.Unit, options []string) ([]driver.Binary, []error) {
	bins, errs := make([]driver.Binary, len(units)), make([]error, len(units))
	var group errgroup.Group
	group.SetLimit(goruntime.GOMAXPROCS(0))
	one := func(i int) { bins[i], errs[i] = d.Compile(ctx, units[i], options) }
	c, _, err := d.prepare(ctx, "", options)
	if err != nil || c.linker == "" || len(options) > 0 {
		for i := range units {
			group.Go(func() error { one(i); return nil })
		}
		_ = group.Wait() // each error is in errs
		return bins, errs
	}
	for _, b := range d.batches(ctx, units, errs) {
		group.Go(func() error {
			objects, log, err := c.buildBatch(ctx, b.parts)
			for k, i := range b.units {
				switch {
				case err == nil:
					bins[i] = driver.Binary{Code: programs.Seal(objects[k]), Log: log}
				case ctx.Err() != nil:
					errs[i] = d.notBuilt(ctx, units[i], log, err)
				default:
					one(i) // its own error, if it is the one that failed
				}
			}
			return nil
		})
	}
	_ = group.Wait() // each error is in errs
	return bins, errs
}

// batches renders units and divides them among runs of the compiler. Units that are not rendered
// are in none, and have an error.
func (d *device) batches(ctx context.Context, units []*source.Unit, errs []error) (list []*batch) {
	most := min(mostUnits, max(fewUnits, (len(units)+goruntime.GOMAXPROCS(0)-1)/goruntime.GOMAXPROCS(0)))
	type kind struct{ callsFMA, loops bool } // preludes and the compiler's options differ
	open := map[kind]*batch{}
	for i, u := range units {
		part, err := u.HostPart(ctx)
		if err != nil {
			errs[i] = d.notRendered(ctx, u, err)
			continue
		}
		k := kind{part.CallsFMA, part.Loops}
		b := open[k]
		if b == nil || len(b.units) == most || b.bytes+len(part.Text) > mostText {
			b = &batch{}
			open[k], list = b, append(list, b)
		}
		b.units, b.parts, b.bytes = append(b.units, i), append(b.parts, part), b.bytes+len(part.Text)
	}
	return list
}
