package validate

// Launches that are repeated on a device: those of kernels that are not of the catalog, and those of files.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// others are the devices of a session that repeat launches. Each is opened once, since that takes long.
type others struct {
	session *runtime.Session
	open    map[string]*runtime.Device
}

func newOthers(s *runtime.Session) *others { return &others{s, map[string]*runtime.Device{}} }

// device opens a device, unless it is open.
func (o *others) device(ctx context.Context, name string) (*runtime.Device, error) {
	if d := o.open[name]; d != nil {
		return d, nil
	}
	d, err := o.session.Open(ctx, name)
	if err == nil {
		o.open[name] = d
	}
	return d, err
}

// close closes the devices, but not the session.
func (o *others) close() error {
	var errs []error
	for _, d := range o.open {
		errs = append(errs, d.Close())
	}
	clear(o.open)
	return errors.Join(errs...)
}

// judge judges a launch of a kernel that is not of the catalog by repeating it on a device: the one with that name or,
// if it is "", the first one that runs it.
func (o *others) judge(ctx context.Context, name string, s *driver.Sample) (r Result, err error) {
	candidates := []candidate{{name, runtime.Fastest}}
	if name == "" {
		if candidates, err = besides(ctx, o.session, s); err != nil {
			return r, err
		}
	}
	errs := []error{errUnjudged}
	for _, c := range candidates {
		r, err := c.judge(ctx, o, s)
		if !errors.Is(err, runtime.ErrUnsupported) {
			return r, err
		}
		errs = append(errs, err)
	}
	return r, errors.Join(errs...)
}

// candidate is a device that may repeat a launch.
type candidate struct {
	name string
	impl runtime.Implementation
}

// besides returns the devices that are not that of a launch, the least preferred first, as that is the host's own
// processor, and the launch's own if it ran an implementation of its own, for the portable text.
func besides(ctx context.Context, session *runtime.Session, s *driver.Sample) (list []candidate, err error) {
	infos, err := session.Devices(ctx)
	for _, i := range slices.Backward(infos) {
		if i.ID != s.Device && !i.Fake && !i.Simulated {
			list = append(list, candidate{i.ID, runtime.Portable})
		}
	}
	if s.Native {
		list = append(list, candidate{s.Device, runtime.Portable})
	}
	return list, err
}

// judge repeats a launch on the device.
func (c candidate) judge(ctx context.Context, o *others, s *driver.Sample) (r Result, err error) {
	dev, err := o.device(ctx, c.name)
	if err != nil {
		return r, err
	}
	defer func() {
		// A lost device may come back. One that has not answered in time may still be at work, and the next check would
		// wait for that.
		if errors.Is(err, runtime.ErrDeviceLost) || errors.Is(err, context.DeadlineExceeded) {
			delete(o.open, c.name)
			err = errors.Join(err, dev.Close())
		}
	}()
	if dev.String() == s.Device {
		if !s.Native {
			return r, fmt.Errorf("%w: it ran on %s itself", errUnjudged, dev)
		}
		c.impl = runtime.Portable
	}
	want, _, err := launch(ctx, dev, c.impl, s)
	if err != nil {
		return r, err
	}
	r = Result{Reference: dev.String(), Arg: -1, First: -1, Verdict: kernels.Verdict{OK: true}}
	got := regions(s, true)
	for _, i := range outputs(s) {
		a := &s.Args[i]
		end := a.Offset + a.Bytes/a.Type.Size()*a.Type.Size()
		ref := want[a.Region][a.Offset:end]
		if r.output(i, a.Type.String(), ref, got[a.Region][a.Offset:end], loose(a.Type, ref)) {
			break
		}
	}
	return r, nil
}

// loose returns the bound of results without a reference: see Options.Device.
func loose(t driver.Type, want []byte) []float64 {
	if !t.IsFloat() {
		return nil
	}
	part := 0x1p-10
	switch t {
	case driver.F64:
		part = 0x1p-30
	case driver.BF16:
		part = 0x1p-6
	case driver.F16:
		part = 0x1p-8
	}
	numbers := kernels.Decode(t.String(), want)
	largest := kernels.Smallest(t.String())
	for _, x := range numbers {
		if x = math.Abs(x); x > largest && !math.IsInf(x, 0) {
			largest = x
		}
	}
	for i := range numbers {
		numbers[i] = part * largest
	}
	return numbers
}

// launch repeats a launch on a device, and returns the memory of its regions after it, and the form of the code that
// ran.
func launch(ctx context.Context, dev *runtime.Device, impl runtime.Implementation, s *driver.Sample) (after [][]byte,
	form string, err error) {
	p, err := dev.Program(ctx, s.Unit, runtime.ProgramOptions{Implementation: impl})
	if err != nil {
		return nil, "", err
	}
	defer p.Close()
	k, err := p.Kernel(s.Kernel)
	if err != nil {
		return nil, "", err
	}
	stream, err := dev.NewStream() // so that a launch that fails does not fail others
	if err != nil {
		return nil, "", err
	}
	defer stream.Close()
	var all []*runtime.Buffer
	defer func() {
		for _, b := range slices.Backward(all) {
			_ = b.Close() // Close of a buffer reports nothing
		}
	}()
	keep := func(b *runtime.Buffer, err error) (*runtime.Buffer, error) {
		if err == nil {
			all = append(all, b)
		}
		return b, err
	}
	memory := make([]*runtime.Buffer, len(s.Regions))
	for i, r := range s.Regions {
		if memory[i], err = keep(dev.Alloc(runtime.U8, r.Bytes)); err != nil {
			return nil, "", err
		}
		if err := stream.Write(ctx, memory[i], 0, r.Before); err != nil {
			return nil, "", err
		}
	}
	args := make([]any, len(s.Args))
	for i := range s.Args {
		a := &s.Args[i]
		switch {
		case a.Kind == driver.ArgValue:
			args[i] = a.Value
			continue
		case a.Kind == driver.ArgLocal:
			args[i] = runtime.Local(a.Local)
			continue
		}
		var b *runtime.Buffer
		if a.Bytes == 0 {
			b, err = keep(dev.Alloc(anyOf(k.Params()[i].Kind), 0))
		} else if b, err = keep(memory[a.Region].Slice(a.Offset, a.Bytes)); err == nil {
			b, err = keep(b.As(a.Type))
		}
		if err != nil {
			return nil, "", fmt.Errorf("argument %d: %w", i, err)
		}
		args[i] = b
	}
	ran, err := stream.Run(ctx, k, grid(s), args...)
	if err != nil {
		return nil, "", err
	}
	out := make([][]byte, len(s.Regions))
	for i, r := range s.Regions {
		out[i] = make([]byte, r.Bytes)
		if err := stream.Read(ctx, memory[i], 0, out[i]); err != nil {
			return nil, "", err
		}
	}
	return out, ran.Implementation, nil
}

// anyOf returns a type of elements of a kind, for buffers without elements.
func anyOf(kind source.Kind) runtime.Type {
	for _, t := range driver.Types() {
		if t.Kind() == kind {
			return t
		}
	}
	return runtime.U8
}
