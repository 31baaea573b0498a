//go:build !unix

package file

// Systems without owners and permissions of this kind: their own rules protect a user's files.

import (
	"io/fs"
	"os"
	"path/filepath"
)

var tempDirs []string

func check(string, fs.FileInfo) error { return nil }

func checkOwnerOf(string, fs.FileInfo) error { return nil }

func hasOtherNames(fs.FileInfo) bool { return false }

// walk follows a path as the system does.
func walk(path string, makeDirs bool) (string, error) {
	if makeDirs {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return "", err
		}
	}
	return filepath.EvalSymlinks(path)
}
