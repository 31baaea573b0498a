// Package stdio reports whether standard output was closed when the process began. Go's
// runtime opens /dev/null in the place of a closed descriptor, before any code in Go
// runs, and output to it is lost without an error.
package stdio
