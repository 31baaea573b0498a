package cpu

// A queued launch: the copy of its description, and its execution.

import (
	"errors"
	"fmt"
	"math"
	goruntime "runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// kernel is a driver.Kernel of any origin: a Go function, or an entry point of a
// compiled program.
type kernel struct {
	info   driver.KernelInfo
	device *device
	unit   *source.Unit
	params []source.Param
	run    goFunc    // Go functions
	module *module   // compiled programs
	entry  hostEntry // compiled programs
	pace   pace      // compiled programs
}

// pace is the time that one thread took for a group of a kernel in its last launch, as an estimate
// for the next one.
type pace struct{ bits atomic.Uint64 }

// expects returns the estimated time for a number of groups in nanoseconds of one thread; 0 if unknown.
func (p *pace) expects(groups uint64) float64 {
	return math.Float64frombits(p.bits.Load()) * float64(groups)
}

func (p *pace) note(groups uint64, took time.Duration) {
	p.bits.Store(math.Float64bits(float64(took.Nanoseconds()) / float64(groups)))
}

var _ driver.Kernel = (*kernel)(nil)

func (k *kernel) Info() driver.KernelInfo { return k.info }

// launch is the copy of a driver.Launch that waits in a queue. Copies are reused, so that a
// launch allocates memory only if all copies are in use.
type launch struct {
	kernel *kernel
	call   call
	data   []byte // values of arguments: the part of raw from its first aligned byte
	raw    []byte
	host   hostCall
}

var launches = sync.Pool{New: func() any {
	p := new(launch)
	p.call.Host = &p.call
	return p
}}

// maxAlign is the alignment of the widest OpenCL type, double16.
const maxAlign = 128

// newLaunch copies l. It looks up the buffers, so that the call returns an error for a handle that
// names no memory.
func newLaunch(d *device, k *kernel, l *driver.Launch) (*launch, error) {
	p := launches.Get().(*launch)
	p.kernel = k
	c := &p.call
	c.Unit, c.Kernel, c.Params = k.unit, k.info.Name, k.params
	c.Dim, c.Global, c.Local = l.Dim, l.Global, l.Local
	c.device, c.ctx = d, d.ctx
	if k.module == nil {
		p.data = p.space(len(l.Data))
		copy(p.data, l.Data)
	}
	c.Args = c.Args[:0]
	for i := range l.Args {
		a, arg := &l.Args[i], kernels.Argument{}
		switch a.Kind {
		case driver.ArgMemory:
			b, err := d.memory.bytes(a.Memory)
			if err != nil {
				p.release()
				return nil, fmt.Errorf("argument %d: %w", i, err)
			}
			arg = kernels.Argument{Kind: kernels.BufferArgument, Bytes: b}
		case driver.ArgLocal:
			arg = kernels.Argument{Kind: kernels.LocalArgument, Size: a.Size}
		case driver.ArgValue:
			if k.module == nil { // for a compiled kernel pack copies the values
				arg.Bytes = p.data[a.Offset : a.Offset+a.Size]
			}
		}
		c.Args = append(c.Args, arg)
	}
	if k.module == nil {
		return p, nil
	}
	if err := p.pack(l); err != nil {
		p.release()
		return nil, err
	}
	if err := k.module.use(); err != nil {
		p.release()
		return nil, err
	}
	return p, nil
}

// space returns n bytes that start at a multiple of maxAlign.
func (p *launch) space(n int) []byte {
	if need := n + maxAlign; cap(p.raw) < need {
		p.raw = make([]byte, max(need, 4*maxAlign))
	}
	p.raw = p.raw[:cap(p.raw)]
	skip := int(-address(p.raw) & (maxAlign - 1))
	return p.raw[skip : skip+n]
}

// release returns p for reuse by another launch.
func (p *launch) release() {
	clear(p.call.Args)
	p.call = call{Call: Call{Args: p.call.Args[:0], Host: p.call.Host}}
	p.kernel, p.data = nil, nil
	launches.Put(p)
}

// done releases a launch that was queued.
func (p *launch) done() {
	if m := p.kernel.module; m != nil {
		m.unuse()
	}
	p.release()
}

// execute runs the launch and blocks until it is done. The caller holds a place of the device's
// workers.
func (p *launch) execute() error {
	if err := p.call.ctx.Err(); err != nil {
		return p.failed("the device was closed before it ran", driver.ErrClosed)
	}
	p.call.chosen = p.call.device.workers.chosen.Load()
	if p.kernel.module != nil {
		return p.runHost()
	}
	err := p.runGo()
	if err == nil && p.call.ctx.Err() != nil {
		err = fmt.Errorf("the device was closed while it ran: %w", driver.ErrClosed)
	}
	if err != nil {
		return p.failed("", fmt.Errorf("%w: %w", driver.ErrLaunch, err))
	}
	return nil
}

// errGoexit is the error of a kernel function that ended its goroutine.
var errGoexit = errors.New("the function called runtime.Goexit")

func (p *launch) runGo() (err error) {
	// Assembly code may reach a guard page; that panics instead of ending the process.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch v := recover().(type) {
		case nil:
		case *panicked: // from another goroutine of Parallel
			err = v.error()
		default:
			err = (&panicked{v, panicSite()}).error()
		}
	}()
	return p.kernel.run(&p.call)
}

// panicked has the value of a Go kernel's panic, and the place.
type panicked struct {
	value any
	site  string
}

func (p *panicked) error() error {
	switch v := p.value.(type) {
	case kernels.ArgumentError:
		return fmt.Errorf("%w: %w", v, driver.ErrInvalidArgument)
	case error:
		if errors.Is(v, errGoexit) {
			return v
		}
		return fmt.Errorf("the function panicked at %s: %w", p.site, v)
	}
	return fmt.Errorf("the function panicked at %s: %v", p.site, p.value)
}

// panicSite returns the file and line of the panic; the deferred function that recovers calls it.
func panicSite() string {
	pcs := make([]uintptr, 64)
	frames := goruntime.CallersFrames(pcs[:goruntime.Callers(2, pcs)])
	panicking := false
	for {
		f, more := frames.Next()
		inRuntime := strings.HasPrefix(f.Function, "runtime.")
		if panicking && !inRuntime {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		panicking = panicking || inRuntime
		if !more {
			return "an unknown place"
		}
	}
}

// failed returns an error that names this launch, with details.
func (p *launch) failed(detail string, err error) error {
	return &driver.OpError{Backend: "cpu", Device: p.call.device.id, Op: p.describe(), Detail: detail, Err: err}
}

// describe returns the launch as text, such as "launch saxpy global=(1024,1,1) local=(64,1,1)".
func (p *launch) describe() string {
	g, l := p.call.Global, p.call.Local
	return fmt.Sprintf("launch %s global=(%d,%d,%d) local=(%d,%d,%d)", p.kernel.info.Name, g[0], g[1], g[2], l[0], l[1],
		l[2])
}
