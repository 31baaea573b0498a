//go:build !linux

package file

import (
	"io/fs"
	"os"
)

func keepAccess(_ *os.File, _ string, mode fs.FileMode) fs.FileMode { return mode }
