package runtime

// Building programs into the kernel cache before they are needed.

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/concord-compute/concord/source"
)

// ProgramRequest names a program that is to be built.
type ProgramRequest struct {
	Unit    *source.Unit
	Options ProgramOptions
}

// Precompile builds programs into the kernel cache, several at a time, so that Program finds them
// there; it loads none. Programs that the device has its own implementations of are skipped. It
// goes on after an error and returns all errors, in the order of the requests; ctx stops it.
//
// progress, if it is not nil, is called after each program, by one goroutine at a time but by
// different ones, and must not call methods of the device. Its panic is an error of the program, which is built
// all the same.
func (d *Device) Precompile(ctx context.Context, requests []ProgramRequest, progress func(done, total int)) error {
	c, err := d.use(ctx, "precompile")
	if err != nil {
		return err
	}
	errs := make([]error, len(requests)+1)
	var group errgroup.Group
	group.SetLimit(goruntime.GOMAXPROCS(0))
	var mu sync.Mutex
	done := 0
	for i, r := range requests {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			if errs[i] = c.programs.precompile(ctx, r); errs[i] != nil && ctx.Err() != nil {
				errs[i] = nil // reported once, below
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			if done++; progress != nil {
				errs[i] = errors.Join(errs[i], c.reported(progress, done, len(requests)))
			}
			return nil
		})
	}
	_ = group.Wait() // each error is in errs
	if ctx.Err() != nil {
		errs[len(requests)] = c.error(fmt.Sprintf("precompile, %d of %d programs done", done, len(requests)), ctx.Err())
	}
	return errors.Join(errs...)
}

// reported calls progress. Its panic is an error, as it would end the process on a goroutine that is not the caller's.
func (c *core) reported(progress func(done, total int), done, total int) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = c.error("precompile", fmt.Errorf("progress panicked: %v: %w", v, ErrInvalidArgument))
		}
	}()
	progress(done, total)
	return nil
}

func (lib *programs) precompile(ctx context.Context, r ProgramRequest) error {
	switch {
	case r.Unit == nil:
		return lib.core.error("precompile", fmt.Errorf("unit is nil: %w", ErrInvalidArgument))
	case r.Options.Implementation == Native, lib.allNative(r.Unit, r.Options.Implementation):
		return nil
	case lib.core.compiler == nil:
		return lib.core.error("precompile "+r.Unit.Name(), fmt.Errorf("the device runs only its own kernels: %w",
			ErrUnsupported))
	}
	key := programKey{r.Unit, r.Options.Implementation, strings.Join(r.Options.Flags, "\x00")}
	_, _, err := lib.binary(ctx, key, r.Options.Flags)
	lib.unneeded(key) // Program notes it again
	return err
}
