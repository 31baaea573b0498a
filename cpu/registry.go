package cpu

// The tables of kernels that are Go functions: Concord's own for the catalog,
// those that families of the catalog bring, and those that programs register.

import (
	"slices"
	"sync"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/source"
)

// Func is a kernel written in Go. It is called once for each launch, from any goroutine;
// its error becomes that of the launch's stream.
type Func = kernels.Func

// Call is one launch of a Func: its arguments and its grid. It is valid until the
// function returns.
type Call = kernels.Call

// goFunc is a Func that also sees the device.
type goFunc func(c *call) error

// plain makes a goFunc of a Func.
func plain(f Func) goFunc { return func(c *call) error { return f(&c.Call) } }

// entry names a Go kernel: the Unit's ID and the kernel's name in it.
type entry struct{ id, kernel string }

// function is a Go kernel of a device.
type function struct {
	run            goFunc
	implementation string
}

// natives and those of them in vector instructions are filled in init functions of this
// package and never change afterwards.
var (
	natives    = map[entry]function{}
	vectorized = map[entry]func(u *source.Unit) goFunc{}
)

var (
	registeredMu sync.RWMutex
	registered   = map[entry]function{}
)

// native makes f the implementation that cpu:0 has of a catalog kernel.
func native(id, kernel string, f goFunc) { add(natives, id, kernel, f) }

// vector makes what bind returns the implementation of a catalog kernel where the
// device has a simdSet. bind is called with each program once; what it returns is nil
// for those that it does not serve.
func vector(id, kernel string, bind func(u *source.Unit) goFunc) {
	switch _, taken := vectorized[entry{id, kernel}]; {
	case bind == nil || taken:
		panic("concord: cpu: no function, or a second one, for kernel " + id + "/" + kernel)
	}
	vectorized[entry{id, kernel}] = bind
}

// Register makes f the implementation of a kernel on cpu:0 for programs whose
// Unit.Family is family: a program's own kernels, where no host compiler is or where Go is
// the better language. A kernel of the catalog has the implementations of its family,
// see kernels.Register, which go first. Register is meant for init functions and panics
// when f is nil, a name is empty or the pair is taken.
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

// find returns the Go kernel that a device has for a kernel of a unit. The family's check of
// the arguments comes before whichever it is.
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
			if !family.Arguments(&c.Call) {
				return nil
			}
			return run(c)
		}
	}
	return f, found
}

// implementation returns the function for a kernel, which is one of a family of the catalog or,
// where that is nil, a program's own.
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
