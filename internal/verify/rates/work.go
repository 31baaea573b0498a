package rates

// What jobs are made of: the memory of one job, its random numbers, and clocks.

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/tensor"
)

// job is one rate to measure.
type job struct {
	area, name, unit string

	flops, bytes float64  // the work of a run: operations, and bytes read and written, each counted once
	count        float64  // of what a run does, where the unit counts or times that
	roof         roofKind // which limit applies

	call string         // of peer.py; "": the peer has no such work
	args map[string]any // of the call

	setUp func(ctx context.Context, p *place) (*work, error)
}

// value converts the nanoseconds of a run to the job's unit.
func (j *job) value(ns float64) float64 {
	switch j.unit {
	case gigabytes:
		return j.bytes / ns
	case gigaflops:
		return j.flops / ns
	case perSecond:
		return j.count * 1e9 / ns
	}
	return ns / 1e3 / j.count
}

// roofKind says which limit of a device a job has.
type roofKind uint8

const (
	fullRoof   roofKind = iota // memory, or multiply-adds of float32
	memoryRoof                 // memory alone
	noRoof                     // the rates that were measured do not limit it
)

// work is a job that is ready.
type work struct {
	run    func(ctx context.Context) error // queues the work once on stream; without a stream it waits, too
	stream *runtime.Stream                 // nil: the host's clock tells the time

	// sample returns the nanoseconds of one of n runs, where they are timed otherwise than by run.
	sample func(ctx context.Context, n int) (ns float64, err error)
	// plain does the same launch by launch, for observers, where run does not.
	plain func(ctx context.Context) error
}

// time runs the work n times and returns the nanoseconds of one run: by the device's clock where it has one.
func (w *work) time(ctx context.Context, n int) (float64, error) {
	if w.sample != nil {
		return w.sample(ctx, n)
	}
	if w.stream == nil {
		start := time.Now()
		err := repeat(ctx, w, n)
		return since(start, n), err
	}
	from, err := w.stream.Record()
	if err != nil {
		return 0, err
	}
	defer from.Close()
	start := time.Now()
	if err := repeat(ctx, w, n); err != nil {
		return 0, err
	}
	to, err := w.stream.Record()
	if err != nil {
		return 0, err
	}
	defer to.Close()
	if err := w.stream.Sync(ctx); err != nil {
		return 0, err
	}
	host := since(start, n)
	if took, err := to.Elapsed(from); err == nil && took > 0 {
		return float64(took.Nanoseconds()) / float64(n), nil
	}
	return host, nil
}

// since returns the nanoseconds of each of n runs that began at a time.
func since(start time.Time, n int) float64 {
	return float64(time.Since(start).Nanoseconds()) / float64(n)
}

// place owns what a job allocates.
type place struct {
	dev     *runtime.Device
	scope   *tensor.Scope
	quick   bool
	closers []io.Closer
}

func newPlace(dev *runtime.Device, quick bool) *place {
	return &place{dev: dev, scope: tensor.NewScope(dev), quick: quick}
}

// keep makes close close c.
func (p *place) keep(c io.Closer) { p.closers = append(p.closers, c) }

// close waits for the work, but not long for what hangs, and frees all memory, also what the device's pool would keep.
func (p *place) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	errs := []error{p.sync(ctx)}
	errs = append(errs, p.scope.Close()) // first, since its tensors are in buffers that others close
	for _, c := range slices.Backward(p.closers) {
		errs = append(errs, c.Close())
	}
	_, err := p.dev.Memory().Trim(0)
	return errors.Join(append(errs, err)...)
}

// sync waits for the work of the place, whichever stream it is on.
func (p *place) sync(ctx context.Context) error { return p.dev.Sync(ctx) }

// block is how many random numbers are made on the host for a buffer, which repeats them.
const block = 1 << 20

// buffer returns a buffer of n random numbers from ½ to 1½, or of random bytes.
func (p *place) buffer(ctx context.Context, t runtime.Type, n int) (*runtime.Buffer, error) {
	b, err := p.dev.Alloc(t, n)
	if err != nil {
		return nil, err
	}
	p.keep(b)
	return b, p.fill(ctx, b)
}

// buffers returns a buffer for each number of elements.
func (p *place) buffers(ctx context.Context, t runtime.Type, numbers ...int) ([]*runtime.Buffer, error) {
	list := make([]*runtime.Buffer, len(numbers))
	for i, n := range numbers {
		var err error
		if list[i], err = p.buffer(ctx, t, n); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (p *place) fill(ctx context.Context, b *runtime.Buffer) error {
	n := b.Len()
	x := make([]float64, min(n, block))
	for i, v := range numbers(len(x)) {
		if x[i] = float64(v); b.Type() == runtime.U8 {
			x[i] = math.Floor(170 * x[i])
		}
	}
	err := p.dev.Stream().Write(ctx, b, 0, kernels.Encode(b.Type().String(), x))
	for have := len(x); have < n && err == nil; have *= 2 {
		err = p.repeat(b, have, min(have, n-have))
	}
	return err
}

// repeat copies the first n elements behind the first ones that there are.
func (p *place) repeat(b *runtime.Buffer, have, n int) error {
	from, err := b.Slice(0, n)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := b.Slice(have, n)
	if err != nil {
		return err
	}
	defer to.Close()
	return p.dev.Stream().Copy(to, from)
}

// numbers returns n random numbers from ½ to 1½.
func numbers(n int) []float32 {
	r := rand.New(rand.NewPCG(rand.Uint64(), 1))
	x := make([]float32, n)
	for i := range x {
		x[i] = r.Float32() + 0.5
	}
	return x
}

// compiled makes the work of a function of random tensors of these shapes.
func compiled(t tensor.Type, f func(x []*tensor.Tensor) *tensor.Tensor,
	shapes ...[]int) func(context.Context, *place) (*work, error) {
	return func(ctx context.Context, p *place) (*work, error) {
		var sizes []int
		for _, shape := range shapes {
			sizes = append(sizes, product(shape))
		}
		buffers, err := p.buffers(ctx, t, sizes...)
		if err != nil {
			return nil, err
		}
		tensors := func(s *tensor.Scope) (list []*tensor.Tensor) {
			for i, b := range buffers {
				list = append(list, tensor.Wrap(s, b, t, shapes[i]...))
			}
			return list
		}
		stream, err := p.scope.Stream()
		if err != nil {
			return nil, err
		}
		c := tensor.Compile(p.scope, func(x ...*tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{f(x)} })
		args := tensors(p.scope)
		return &work{stream: stream, run: func(ctx context.Context) error {
			_, err := c.Call(ctx, args...)
			return err
		}, plain: func(ctx context.Context) error {
			s := p.scope.Scope()
			defer s.Close()
			return f(tensors(s)).Sync(ctx)
		}}, nil
	}
}

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}
