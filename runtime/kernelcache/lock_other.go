//go:build !unix || aix

package kernelcache

// Systems without flock: each process compiles for itself.

import (
	"errors"
	"os"
)

func flock(*os.File) error { return errors.ErrUnsupported }
