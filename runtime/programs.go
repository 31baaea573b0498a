package runtime

// Several programs at once.

import (
	"context"
	"fmt"
	goruntime "runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/kernelcache"
	"github.com/concord-compute/concord/source"
)

// ProgramErrors is the error of Programs: for each unit the reason why it was not built, or nil.
// errors.Is and errors.As look at all of them.
type ProgramErrors []error

// Error returns the number of units that were not built, and the first reason.
func (e ProgramErrors) Error() string {
	if failed := e.Unwrap(); len(failed) > 0 {
		return fmt.Sprintf("%d of %d programs: %v", len(failed), len(e), failed[0])
	}
	return "no program failed"
}

// Unwrap returns the reasons in the order of the units.
func (e ProgramErrors) Unwrap() (failed []error) {
	for _, err := range e {
		if err != nil {
			failed = append(failed, err)
		}
	}
	return failed
}

// Programs is Program for several units, which devices such as cpu:0 compile together in about two thirds of
// the processor time; others compile several at a time. Each unit is looked up and kept in the kernel cache by itself.
//
// The programs are in the order of the units. A unit that is not built has a nil Program, and the error is a
// ProgramErrors with its reason; the caller owns the other programs, also in that case. ctx
// stops all that are not built yet.
func (d *Device) Programs(ctx context.Context, units []*source.Unit, options ...ProgramOptions) ([]*Program, error) {
	c, err := d.use(ctx, "programs")
	if err != nil {
		return nil, err
	}
	if len(options) > 1 {
		return nil, c.error("programs", fmt.Errorf("%d option structs, at most one: %w", len(options), ErrInvalidArgument))
	}
	var opt ProgramOptions
	if len(options) == 1 {
		opt = options[0]
	}
	start, flags := time.Now(), strings.Join(opt.Flags, "\x00")
	programs, errs := make([]*Program, len(units)), make(ProgramErrors, len(units))
	ready := map[programKey]*fetched{}
	var keys []programKey
	for i, u := range units {
		key := programKey{u, opt.Implementation, flags}
		switch {
		case u == nil:
			errs[i] = c.error("programs", fmt.Errorf("unit %d is nil: %w", i, ErrInvalidArgument))
		case ready[key] != nil:
		case opt.Implementation == Native, c.compiler == nil, c.programs.allNative(u, opt.Implementation):
			ready[key] = nil // build answers without a binary
		default:
			if programs[i] = c.programs.shared(key, nil); programs[i] == nil {
				ready[key] = &fetched{}
				keys = append(keys, key)
			}
		}
	}
	c.programs.fetch(ctx, keys, opt.Flags, ready)
	failed := false
	for i, u := range units {
		if programs[i] == nil && errs[i] == nil {
			key := programKey{u, opt.Implementation, flags}
			programs[i], errs[i] = c.programs.program(ctx, key, opt, start, ready[key])
		}
		failed = failed || errs[i] != nil
	}
	if failed {
		return programs, errs
	}
	return programs, nil
}

// fetched is what the kernel cache or the compiler returned for a program.
type fetched struct {
	entry kernelcache.Entry
	hit   kernelcache.Hit
	err   error
}

// fetch gets the compiled bytes of several programs with the same flags.
func (lib *programs) fetch(ctx context.Context, keys []programKey, flags []string, ready map[programKey]*fetched) {
	var wanted []programKey
	var cacheKeys []kernelcache.Key
	for _, key := range keys {
		f := ready[key]
		k, err := lib.cacheKey(ctx, key, flags)
		if err == nil {
			wanted, cacheKeys = append(wanted, key), append(cacheKeys, k)
			continue
		}
		var ok bool
		if f.entry, f.hit, ok = lib.prebuilt(key, flags, err); !ok {
			f.err = err
		}
	}
	results := lib.core.session.cache().GetAll(ctx, cacheKeys,
		func(ctx context.Context, missing []int) ([]kernelcache.Entry, []error) {
			units := make([]*source.Unit, len(missing))
			for i, m := range missing {
				units[i] = wanted[m].unit
			}
			bins, errs := lib.compileAll(ctx, units, flags)
			entries := make([]kernelcache.Entry, len(missing))
			for i, m := range missing {
				if errs[i] == nil {
					entries[i] = lib.entry(wanted[m], flags, bins[i])
				}
			}
			return entries, errs
		})
	for i, r := range results {
		*ready[wanted[i]] = fetched{r.Entry, r.Hit, r.Err}
	}
}

// compileAll compiles units together if the device can, else several at a time.
func (lib *programs) compileAll(ctx context.Context, units []*source.Unit, flags []string) ([]driver.Binary, []error) {
	if batch, ok := lib.core.compiler.(driver.BatchCompiler); ok && len(units) > 1 {
		return batch.CompileAll(ctx, units, flags)
	}
	bins, errs := make([]driver.Binary, len(units)), make([]error, len(units))
	var group errgroup.Group
	group.SetLimit(goruntime.GOMAXPROCS(0))
	for i, u := range units {
		group.Go(func() error {
			if errs[i] = context.Cause(ctx); errs[i] == nil {
				bins[i], errs[i] = lib.core.compiler.Compile(ctx, u, flags)
			}
			return nil
		})
	}
	_ = group.Wait() // each error is in errs
	return bins, errs
}
