package cpu

// The kernels that are Go functions: those of this package for the catalog, the natives of the
// catalog's families, and those that programs register.

import (
	"slices"
	"sync"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/source"
)

// Func is a kernel written in Go. It is called once for each launch, from any goroutine, and
// computes the whole grid. If it returns an error, the stream of the launch fails with that error.
type Func = kernels.Func

// Call is one launch of a Func: its arguments and its grid. It is valid until the
// function returns.
type Call = kernels.Call

// goFunc is a Func that also sees the device.
type goFunc func(c *call) error

// plain converts a Func to a goFunc.
func plain(f Func) goFunc { return func(c *call) error { return f(&c.Call) } }

// entry is the key of a Go kernel: the family of its unit and the name of the kernel.
type entry struct{ id, kernel string }

// function is a Go kernel of a device.
type function struct {
	run            goFunc
	implementation string
}

// natives has the kernels in Go, and vectorized those in vector instructions. Init functions of this
// package fill them, and they never change afterwards.
var (
	natives    = map[entry]function{}
	vectorized = map[entry]func(u *source.Unit) goFunc{}
)

var (
	registeredMu sync.RWMutex
	registered   = map[entry]function{}
)

// native makes f the implementation in Go of a catalog kernel on cpu:0.
func native(id, kernel string, f goFunc) { add(natives, id, kernel, f) }

// vector sets the implementation of a catalog kernel for devices with a simdSet. bind returns it
// for the definitions of a program, or nil if there is none for these. find calls bind each time
// that it looks for the kernel.
func vector(id, kernel string, bind func(u *source.Unit) goFunc) {
	switch _, taken := vectorized[entry{id, kernel}]; {
	case bind == nil || taken:
		panic("concord: cpu: no function, or more than one, for kernel " + id + "/" + kernel)
	}
	vectorized[entry{id, kernel}] = bind
}

// Register makes f the implementation of a kernel on cpu:0 for units whose Unit.Family is family. It
// is for kernels of a program that are to run without a host compiler, or that are better written
// in Go. For a kernel of the catalog, the implementations of this package and of its family (see
// kernels.Register) take precedence. Register is meant for init functions. It panics
// if f is nil, a name is empty, or the kernel has been registered before.
func Register(family, kernel string, f Func) {
	registeredMu.Lock()
	defer registeredMu.Unlock()
	var run goFunc
	if f != nil {
		run = plain(f)
	}
	add(registered, family, kernel, run)
}

func add(to map[entry]function, id, kernel string, f goFunc) {
	switch _, taken := to[entry{id, kernel}]; {
	case f == nil:
		panic("concord: cpu: no function for kernel " + id + "/" + kernel)
	case id == "" || kernel == "":
		panic("concord: cpu: a Go kernel needs the family of its program and a name")
	case taken:
		panic("concord: cpu: registered twice: kernel " + id + "/" + kernel)
	}
	to[entry{id, kernel}] = function{f, goKernels}
}

// find returns the Go function with which a device runs a kernel of a unit, and whether it has one.
func (d *device) find(u *source.Unit, kernel string) (function, bool) {
	if u == nil || u.Family() == "" {
		return function{}, false
	}
	at := entry{u.Family(), kernel}
	family, ok := kernels.Find(at.id)
	if ok = ok && slices.Contains(family.Kernels, kernel); !ok {
		family = nil
	}
	f, found := d.implementation(u, at, family)
	if found && ok && family.Arguments != nil {
		run := f.run
		f.run = func(c *call) error {
			if c.checked == unchecked {
				found := nothing // kept only if Arguments returns: a wrong argument panics each time
				if family.Arguments(&c.Call) {
					found = work
				}
				c.checked = found
			}
			if c.checked == nothing {
				return nil
			}
			return run(c)
		}
	}
	return f, found
}

// implementation returns the function of the device for a kernel, and whether it has one. family is nil
// if the kernel is not of a family of the catalog.
func (d *device) implementation(u *source.Unit, at entry, family *kernels.Family) (function, bool) {
	if d.reference {
		if family == nil {
			return function{}, false
		}
		return function{plain(family.Reference), "reference"}, true
	}
	if bind := vectorized[at]; bind != nil && d.simd != nil {
		if run := bind(u); run != nil {
			return function{run, d.simd.name}, true
		}
	}
	if f, ok := natives[at]; ok {
		return f, true
	}
	if family != nil && family.Native != nil {
		if f := family.Native(u, at.kernel); f != nil {
			return function{plain(f), goKernels}, true
		}
	}
	registeredMu.RLock()
	defer registeredMu.RUnlock()
	f, ok := registered[at]
	return f, ok
}
