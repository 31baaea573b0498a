// Package stdio knows how the standard descriptors were when the process began. Go's
// runtime opens /dev/null in the place of one that is closed, before any code in Go
// runs, and what is written there is lost without an error.
package stdio
