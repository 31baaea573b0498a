package tune

// What keeps processes from tuning at the same time, and from losing what another one keeps.

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/runtime"
)

const (
	lockName = "lock"                 // beside the tables of a cache directory
	lockLook = 100 * time.Millisecond // between looks of Lock at a lock that another process has
)

// Lock waits until no other process tunes a device, or changes what is kept for one, with the same cache directory, and
// keeps others from it until unlock is called or the process ends. Tuning at first use takes the same lock, for at most
// two minutes at a time. Between the two calls a program may read what is kept, add to it and keep that, and nothing of
// others is lost:
//
//	unlock, err := tune.Lock(ctx, dev, nil)
//	if err != nil {
//		return err
//	}
//	defer unlock()
//	kept := dev.TuneTarget().Tuned()
//	err = dev.KeepTuned(ctx, dev.Choices().Merged(kept, table))
//
// If it has to wait it calls waiting before, unless that is nil, with the file that stands for the lock. It returns at
// once where nothing is kept, as the cache is off, and on systems without file locks. The error is that of ctx or of
// the file system. A goroutine that has the lock does not call Lock again.
func Lock(ctx context.Context, dev *runtime.Device, waiting func(file string)) (unlock func(), err error) {
	dir, _, _ := dev.TuneTarget().TunedFiles()
	if dir == "" {
		return func() {}, nil
	}
	once, stop := context.WithCancel(ctx)
	stop() // so that it does not wait
	unlock, err = file.Lock(once, dir, lockName, lockLook)
	if errors.Is(err, context.Canceled) && ctx.Err() == nil {
		if waiting != nil {
			waiting(filepath.Join(dir, lockName))
		}
		unlock, err = file.Lock(ctx, dir, lockName, lockLook)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		return func() {}, nil
	}
	return unlock, err
}
