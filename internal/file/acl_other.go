//go:build !linux

package file

import (
	"io/fs"
	"os"
)

func keepAccess(_, _ *os.File, mode fs.FileMode) fs.FileMode { return mode }
