package cpu

// The tables of kernels that are Go functions: Concord's own for the catalog,
// and those that programs register.

import (
	"sync"

	"github.com/concord-compute/concord/source"
)

// entry names a Go kernel: the Unit's ID and the kernel's name in it.
type entry struct{ id, kernel string }

// function is a registered Go kernel.
type function struct {
	run            Func
	implementation string
}

// natives, those of them in vector instructions, and references are filled in init functions of this package and never
// change afterwards.
var (
	natives    = map[entry]function{}
	vectorized = map[entry]func(u *source.Unit) Func{}
	references = map[entry]function{}
)

var (
	registeredMu sync.RWMutex
	registered   = map[entry]function{}
)

// native makes f the implementation that cpu:0 has of a catalog kernel.
func native(id, kernel string, f Func) { add(natives, id, kernel, function{f, goKernels}) }

// vector makes what bind returns the implementation of a catalog kernel where the
// device has a simdSet. bind is called with each program once; what it returns is nil
// for those that it does not serve.
func vector(id, kernel string, bind func(u *source.Unit) Func) {
	switch _, taken := vectorized[entry{id, kernel}]; {
	case bind == nil || taken:
		panic("concord: cpu: no function, or a second one, for kernel " + id + "/" + kernel)
	}
	vectorized[entry{id, kernel}] = bind
}

// reference makes f the implementation that cpu:reference has of a catalog kernel.
func reference(id, kernel string, f Func) { add(references, id, kernel, function{f, "reference"}) }

// Register makes f the implementation of a kernel on cpu:0 for programs whose
// Unit.Family is family: a program's own kernels, where no host compiler is or where Go is
// the better language. An implementation that Concord brings for the same kernel
// goes first. It is meant for init functions and panics when f is nil, a name is
// empty or the pair is taken.
func Register(family, kernel string, f Func) {
	registeredMu.Lock()
	defer registeredMu.Unlock()
	add(registered, family, kernel, function{f, goKernels})
}

func add(to map[entry]function, id, kernel string, f function) {
	switch _, taken := to[entry{id, kernel}]; {
	case f.run == nil:
		panic("concord: cpu: no function for kernel " + id + "/" + kernel)
	case id == "" || kernel == "":
		panic("concord: cpu: a Go kernel needs the family of its program and a name")
	case taken:
		panic("concord: cpu: registered twice: kernel " + id + "/" + kernel)
	}
	to[entry{id, kernel}] = f
}

// find returns the Go kernel that a device has for a kernel of a unit.
func (d *device) find(u *source.Unit, kernel string) (function, bool) {
	if u == nil || u.Family() == "" {
		return function{}, false
	}
	at := entry{u.Family(), kernel}
	if d.reference {
		f, ok := references[at]
		return f, ok
	}
	if bind, ok := vectorized[at]; ok && d.simd != nil {
		if run := bind(u); run != nil {
			return function{run: run, implementation: d.simd.name}, true
		}
	}
	if f, ok := natives[at]; ok {
		return f, true
	}
	registeredMu.RLock()
	defer registeredMu.RUnlock()
	f, ok := registered[at]
	return f, ok
}
