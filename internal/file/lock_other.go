//go:build !unix || aix

package file

// Systems without flock.

import (
	"errors"
	"os"
)

// TryLock returns errors.ErrUnsupported: there are no locks here.
func TryLock(*os.File) error { return errors.ErrUnsupported }
