package ann

// What every index has that may be of a file.

import (
	"context"
	"fmt"

	"github.com/concord-compute/concord/runtime"
)

// backing is the life of an index. One of a file has the file's contents checked when they are first needed, and
// compared with the file's checksums before its first change. The locks of the index guard it.
type backing struct {
	closed bool
	// checks the contents of a file and takes what is to be computed from them, once; nil if it is of none
	late func() error
	kept sums // what the file's sections have to be until the first change; nil if there is no file
}

// check returns why the index cannot be used, or nil.
func (b *backing) check(ctx context.Context) error {
	if err := checkContext(ctx); err != nil {
		return err
	}
	if b.closed {
		return fmt.Errorf("ann: %w", runtime.ErrClosed)
	}
	if b.late != nil {
		return b.late()
	}
	return nil
}

// unchanged compares what is as it was in a file with the file's checksums, and forgets them: a change follows.
func (b *backing) unchanged(sections func() []section) error {
	if b.kept == nil {
		return nil
	}
	err := b.kept.check(sections()...)
	if err == nil {
		b.kept = nil
	}
	return err
}
