//go:build cgo && opencl && (linux || darwin)

package opencl

// The path of a launch.

import (
	"fmt"

	"github.com/go-gl/cl/v1.2/cl"

	"github.com/concord-compute/concord/runtime/driver"
)

// Launch is one call into C, which gets the runtime's table of arguments without a copy, under the
// lock of the kernel. Only launches with views cost more.
func (s *stream) Launch(l *driver.Launch) error {
	k, ok := l.Kernel.(*kernel)
	if !ok {
		return s.d.errorf("launch", driver.ErrInvalidArgument, "kernel is a %T", l.Kernel)
	}
	for i := range l.Args {
		if needsView(&l.Args[i]) {
			return s.launchViews(k, l)
		}
	}
	return s.enqueue(&k.own, k.op, l, l.Args, false)
}

// enqueue launches one cl_kernel. A cl_kernel holds the arguments that were set last, so setting
// them and enqueueing is one step under the kernel's lock.
func (s *stream) enqueue(e *entry, op string, l *driver.Launch, args []driver.Arg, offsets bool) error {
	if err := s.begin(op); err != nil {
		return err
	}
	e.mu.Lock()
	if e.k == nil {
		e.mu.Unlock()
		s.mu.Unlock()
		return s.d.errorf(op, driver.ErrClosed, "program")
	}
	code := s.q.launch(e.k, l, args, offsets)
	e.mu.Unlock()
	if code != cl.SUCCESS {
		return s.refused(op, code)
	}
	return s.end(op, code)
}

// refused ends a launch that the driver did not accept. The error names the argument if one was the
// reason.
func (s *stream) refused(op string, code cl.ErrorCode) error {
	at := s.q.badArg()
	err := s.end(op, code)
	if told, ok := err.(*driver.OpError); ok && at >= 0 && s.err.Load() == nil {
		told.Detail = fmt.Sprintf("argument %d: %s", at, told.Detail)
	}
	return err
}

// launchViews launches a kernel with arguments that do not begin at the start of their allocation:
// with sub-buffers if OpenCL allows them, and otherwise with the rendering of the program that
// takes offsets.
func (s *stream) launchViews(k *kernel, l *driver.Launch) error {
	d := s.d
	d.mu.RLock()
	if d.aligned(l.Args) {
		// Calls on one stream never overlap, so the scratch slice needs no lock.
		s.args = append(s.args[:0], l.Args...)
		if d.replaceViews(s.args) {
			defer d.mu.RUnlock()
			return s.enqueue(&k.own, k.op, l, s.args, false)
		}
		d.mu.RUnlock()
		if done, err := s.launchNewViews(k, l); done {
			return err
		}
	} else {
		d.mu.RUnlock()
	}
	e, err := k.offsets()
	if err != nil {
		return d.errorf(k.op, driver.ErrInvalidArgument,
			"a view does not begin at a multiple of %d bytes, and the program has no rendering that takes offsets: %v",
			d.info.BaseAlign, err)
	}
	return s.enqueue(e, k.op, l, l.Args, true)
}

// launchNewViews makes the missing sub-buffers and then launches. done is false if the driver
// refuses to make them.
func (s *stream) launchNewViews(k *kernel, l *driver.Launch) (done bool, err error) {
	d := s.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.aligned(l.Args) || d.makeViews(l.Args) != cl.SUCCESS {
		return false, nil
	}
	s.args = append(s.args[:0], l.Args...)
	if !d.replaceViews(s.args) {
		return false, nil
	}
	return true, s.enqueue(&k.own, k.op, l, s.args, false)
}
