package driver

// What tunes the choices of devices while a program uses them. Package runtime/tune has one.

import (
	"fmt"
	"sync/atomic"

	"github.com/concord-compute/concord/runtime/choice"
	"github.com/concord-compute/concord/source"
)

// TuneFirst is the value of Config.Tune with which a session has a [Tuner].
const TuneFirst = "first"

// Tuner is told of launches of a session's devices, and tunes what they compute in the background. It is called from
// any goroutine that launches.
type Tuner interface {
	// Launched is told of a launch that was queued, among the first ones of its kernel, and those that are recorded in
	// a graph. It returns at once, keeps neither l nor what it points to, and calls nothing of the device's streams. It
	// reports whether it wants to know of later launches of the kernel.
	Launched(on TuneTarget, u *source.Unit, kernel string, l *Launch) bool
	// Close ends what is under way, with the processes that were started for it, and keeps nothing of it.
	Close() error
}

// TuneTarget is a device of the session as a [Tuner] sees it. It may be used after the device was closed. It is safe
// for concurrent use.
type TuneTarget interface {
	ID() string // its Info.ID, by which another process opens it
	Choices() *choice.State
	// TunedFiles returns the directory of what is kept for the device, and there the names of its table and of the
	// tuner's notes; "" if nothing is kept. No other user may be able to write the directory.
	TunedFiles() (dir, table, notes string)
	// Tuned returns the table that is kept for the device now, or nil: what other processes have kept counts, and tables
	// of bundles and those that Concord comes with do not.
	Tuned() *choice.Table
	// Carried returns the table that the device has if none is kept: of a bundle, or one that Concord comes with, or nil.
	Carried() *choice.Table
	// Keep keeps a table for sessions to come, and uses it from now on if it differs from what is in use only in
	// choices that the backend reads at each launch and that change no bit of a result.
	Keep(t *choice.Table) (used bool, err error)
}

// newTuner is what RegisterTuner has set.
var newTuner atomic.Pointer[func(cfg *Config) (Tuner, error)]

// RegisterTuner sets what makes the tuner of a session whose Config.Tune is TuneFirst, nil for nothing. Package
// runtime/tune calls it.
func RegisterTuner(start func(cfg *Config) (Tuner, error)) { newTuner.Store(&start) }

// NewTuner makes the tuner of a session. It is ErrUnsupported in a program without one.
func NewTuner(cfg *Config) (Tuner, error) {
	start := newTuner.Load()
	if start == nil || *start == nil {
		return nil, fmt.Errorf("the program does not call FirstUse of package runtime/tune, which CONCORD_TUNE=first and "+
			"Config.Tune need: %w", ErrUnsupported)
	}
	return (*start)(cfg)
}
