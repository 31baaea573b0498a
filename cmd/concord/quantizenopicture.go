//go:build nopicture

package main

import "io"

func drawErrors(io.Writer, *errorCounts, string, string) error { return errNoPictures }
