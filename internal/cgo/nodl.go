//go:build !cgo || !unix

package cgo

import (
	"fmt"
	"unsafe"

	"github.com/concord-compute/concord/runtime/driver"
)

// Library is a shared object that the dynamic loader has loaded. This build has
// no loader.
type Library struct{}

var errNoLoader = fmt.Errorf("no dynamic loader in this build (it needs cgo and a Unix system): %w",
	driver.ErrUnsupported)

// Open returns an error that matches driver.ErrUnsupported.
func Open(string) (Library, error) { return Library{}, errNoLoader }

// Lookup returns an error that matches driver.ErrUnsupported.
func (Library) Lookup(string) (unsafe.Pointer, error) { return nil, errNoLoader }

// Close does nothing.
func (Library) Close() error { return nil }
