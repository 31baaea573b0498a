// Package file writes files that are there as a whole or as they were before
// ([Replace], [Create]).
//
// All functions may be called from any goroutine.
package file
