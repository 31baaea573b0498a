package main

// Pictures that commands draw, into files.

import (
	"errors"
	"path/filepath"
	"strings"
)

// errNoPictures is what a build with the tag nopicture says.
var errNoPictures = errors.New("this build draws no pictures (it has the tag nopicture)")

// checkPicture returns an error if a flag names a file that is no picture, or that this build cannot draw. It
// is called before the work.
func checkPicture(flag, name string) error {
	switch ext := strings.ToLower(filepath.Ext(name)); {
	case name == "":
		return nil
	case ext != ".png" && ext != ".svg":
		return usagef("%s: %s is neither .png nor .svg", flag, name)
	case !pictures:
		return errNoPictures
	}
	return nil
}
