package quant

// A quantizer: codecs on the host, products on a device, and accounts of what ran where.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/accounts"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/profile"
)

// Provider is an implementation, by its short name: of codecs "avx512", "avx2", "neon" or "fallback", which is
// Go; of products also "cuda", "rocm", "metal" or "opencl".
type Provider string

// longNames are what String returns.
var longNames = map[Provider]string{"cuda": "CudaKernel", "rocm": "RocmKernel", "metal": "MetalKernel",
	"opencl": "OpenCLKernel",
	"avx512": "AVX512Kernel", "avx2": "AVX2Kernel", "neon": "NeonKernel", "fallback": "FallbackKernel"}

// String returns the long name, such as "AVX512Kernel".
func (p Provider) String() string {
	if name, ok := longNames[p]; ok {
		return name
	}
	return string(p)
}

// ParseProvider returns the provider of a short or a long name, in any case; "go" is "fallback". Another name
// is driver.ErrInvalidArgument.
func ParseProvider(name string) (Provider, error) {
	if strings.EqualFold(name, plain.name) {
		return "fallback", nil
	}
	for p, long := range longNames {
		if strings.EqualFold(name, string(p)) || strings.EqualFold(name, long) {
			return p, nil
		}
	}
	return "", fmt.Errorf("quant: %.40q is no provider: %w", name, driver.ErrInvalidArgument)
}

// id is the short name of the codecs' provider.
func (v *provider) id() Provider {
	if v == plain {
		return "fallback"
	}
	return Provider(v.name)
}

// QuantizerOptions are the settings of a Quantizer. The zero value has the defaults.
type QuantizerOptions struct {
	// Budget is the most memory that one call takes beside its arguments and its result, in bytes; 0 means 64 MiB.
	// It is the host's for the padding of rows in Encode and Decode and for the conversion of weights in Prepare,
	// and the device's in Mul. What does not fit is done in pieces of whole groups or rows, with the same result.
	// If one of these alone does not fit, the call is driver.ErrBudget.
	Budget int64
	// Codecs is the provider that encodes and decodes; "" means the fastest that this processor has.
	Codecs Provider
	// Progress is called by Encode and Decode after each piece, on their goroutine, with the numbers that are done
	// and all of them, padding included; nil is not called.
	Progress func(done, all int)
}

// Quantizer encodes, decodes and multiplies for one device, and keeps accounts of it. Codes are made and read
// by the host, whatever the device: no device has kernels for that, so it is no fallback, and counts as work of
// the CPU. Products run on the device. One that fails there for a reason of the device runs on cpu:0 instead if
// Config.Fallback allows it, which is counted, logged and told to observers each time.
//
// It observes its session (runtime.Session.Observe) from NewQuantizer to Close. It tells the session's observers of its
// own work on the host: a region for each function of a codec that ran, such as "encode TQ1_0 avx512". Receipt has the
// names of these and of the kernels that the session told of.
//
// It is safe for concurrent use, except Close. Its methods wait until the work is done. An error of arguments, of the
// budget or of what the device and the policy do not allow changes nothing. If the work had begun to write when it
// failed or the context ended, what it was to write is zeros, so that no part of a result is taken for one.
type Quantizer struct {
	codec    *provider
	budget   int64
	progress func(done, all int)
	main     *side
	session  *runtime.Session
	stats    accounts.Stats
	stop     func()
	forced   atomic.Bool
	closed   atomic.Bool

	opening sync.Mutex // held while host is opened
	host    *side      // where products run that may not run on the device; nil before the first

	noted   sync.Mutex // of what is below; nothing is called with it held
	sides   []*side
	kernels []string // that ran, in the order of their first time
	faked   bool     // one of them ran on a simulated device
}

// side is a device with the stream of a quantizer's products, by whose number its events are known.
type side struct {
	dev    *runtime.Device
	info   runtime.Info
	stream *runtime.Stream
}

const (
	hostName      = "cpu:0" // what stands in for other devices
	defaultBudget = 64 << 20
	stepNumbers   = 1 << 22 // of a piece, for progress: some milliseconds
)

// NewQuantizer returns a quantizer for a device, which has to stay open until Close. A provider of codecs that
// this processor lacks is driver.ErrUnsupported.
func NewQuantizer(dev *runtime.Device, o QuantizerOptions) (*Quantizer, error) {
	if dev == nil {
		return nil, fmt.Errorf("quant: a quantizer of no device: %w", driver.ErrInvalidArgument)
	}
	q := &Quantizer{codec: fastest(), budget: o.Budget, progress: o.Progress, session: dev.Session()}
	switch {
	case q.budget == 0:
		q.budget = defaultBudget
	case q.budget < 0:
		return nil, fmt.Errorf("quant: a budget of %d bytes: %w", q.budget, driver.ErrInvalidArgument)
	}
	if o.Codecs != "" {
		p, err := ParseProvider(string(o.Codecs))
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(providers(), func(v *provider) bool { return v.id() == p })
		if i < 0 {
			return nil, fmt.Errorf("quant: this processor and this build have no codecs of %v: %w", p, driver.ErrUnsupported)
		}
		q.codec = providers()[i]
	}
	var err error
	if q.main, err = q.newSide(dev); err != nil {
		return nil, err
	}
	q.stats.Target(q.main.info, q.mayFallBack(driver.ErrDeviceLost))
	q.stop = q.session.Observe((*observer)(q))
	return q, nil
}

func (q *Quantizer) newSide(dev *runtime.Device) (*side, error) {
	stream, err := dev.NewStream()
	if err != nil {
		return nil, err
	}
	s := &side{dev, dev.Info(), stream}
	q.noted.Lock()
	defer q.noted.Unlock()
	q.sides = append(q.sides, s)
	return s, nil
}

// standIn returns the host's processor, which is opened the first time.
func (q *Quantizer) standIn(ctx context.Context) (*side, error) {
	if q.main.info.ID == hostName {
		return q.main, nil
	}
	q.opening.Lock()
	defer q.opening.Unlock()
	if q.host != nil {
		return q.host, nil
	}
	dev, err := q.session.Open(ctx, hostName)
	if err != nil {
		return nil, err
	}
	if q.host, err = q.newSide(dev); err != nil {
		_ = dev.Close()
	}
	return q.host, err
}

// mayFallBack reports whether the host may do a product that failed with err on the device.
func (q *Quantizer) mayFallBack(err error) bool {
	return q.main.info.ID != hostName && q.session.MayFallBack(err)
}

// open returns driver.ErrClosed after Close.
func (q *Quantizer) open() error {
	if q.closed.Load() {
		return fmt.Errorf("quant: quantizer: %w", driver.ErrClosed)
	}
	return nil
}

// Close ends the observation and closes what the quantizer opened. Its weights are closed before. Closing twice
// does nothing. Later calls that encode, decode, prepare or multiply are driver.ErrClosed.
func (q *Quantizer) Close() error {
	if q.closed.Swap(true) {
		return nil
	}
	q.stop()
	err := q.main.stream.Close()
	if q.host != nil {
		err = errors.Join(err, q.host.stream.Close(), q.host.dev.Close())
	}
	return err
}

// CodecProvider returns what encodes and decodes a format: "fallback" where there are no vector instructions
// for it. Of formats with searched scales, such as Q4K, it is what decodes; Go encodes them.
func (q *Quantizer) CodecProvider(f Format) Provider {
	if c := f.codec(); c == nil || c.vector.decode == 0 {
		return plain.id()
	}
	return q.codec.id()
}

// ActiveProvider returns what multiplies: the device's backend or, on cpu:0, the instructions that its kernels
// are chosen for.
func (q *Quantizer) ActiveProvider() Provider {
	info := q.main.info
	if !info.VectorLoops && !q.forced.Load() {
		return Provider(info.Backend) // also "sim-cuda", which is no name of a real one
	}
	if name := q.session.Config().CPUKernels; name != "" {
		p, _ := ParseProvider(name) // the session has checked it
		return p
	}
	if info.ID != hostName && !q.forced.Load() { // cpu:reference
		return plain.id()
	}
	return fastest().id()
}

// IsGPUActive reports whether products run on a GPU.
func (q *Quantizer) IsGPUActive() bool { return !q.forced.Load() && q.main.info.IsGPU() }

// ForceCPU makes cpu:0 do the products from now on. This is a choice and counts as no fallback.
func (q *Quantizer) ForceCPU() { q.forced.Store(true) }

// elsewhere reports whether products run on the stand-in by choice.
func (q *Quantizer) elsewhere() bool { return q.forced.Load() && q.main.info.ID != hostName }

// Stats returns the accounts: operations that succeeded, by kind and by where they ran, their times, with the
// failed attempts before a fallback, and the last errors.
func (q *Quantizer) Stats() accounts.Counts { return q.stats.Read() }

// Receipt returns the names of all functions and kernels that have run, each once. Its path is "real" unless
// one ran on a simulated device.
func (q *Quantizer) Receipt() accounts.Receipt {
	q.noted.Lock()
	defer q.noted.Unlock()
	records := make([]runtime.Execution, len(q.kernels))
	for i, k := range q.kernels {
		records[i].KernelID = k
	}
	r := accounts.NewReceipt(records)
	if q.faked {
		r.ComputePath = "simulated"
	}
	return r
}

// ResetStats begins the accounts and the receipt anew.
func (q *Quantizer) ResetStats() {
	q.stats.Reset()
	q.noted.Lock()
	defer q.noted.Unlock()
	q.kernels, q.faked = nil, false
}

// observer is the Quantizer as the session sees it.
type observer Quantizer

// Observe notes the kernels of the quantizer's own streams.
func (o *observer) Observe(e profile.Event) {
	if e.Kind != profile.Launch || e.Err != nil {
		return
	}
	q := (*Quantizer)(o)
	q.noted.Lock()
	defer q.noted.Unlock()
	for _, s := range q.sides {
		if s.info.ID == e.Device && s.stream.Number() == e.Stream {
			q.faked = q.faked || s.info.Simulated
			q.note(e.Name)
		}
	}
}

// note adds a kernel, with noted held.
func (q *Quantizer) note(kernel string) {
	if !slices.Contains(q.kernels, kernel) {
		q.kernels = append(q.kernels, kernel)
	}
}

// Encode is the function of that name in pieces, with the context and the accounts of the quantizer.
func (q *Quantizer) Encode(ctx context.Context, m Matrix, x []float32) error {
	p, err := m.planEncode(len(x))
	if err != nil {
		return err
	}
	return q.code(ctx, &p, &m, func(c *coding) error { return c.encode(&p, m, x) }, func() {
		clear(m.Data[:p.size()])
		clear(m.Scales[:p.groups*p.scales])
	})
}

// Decode is the function of that name likewise.
func (q *Quantizer) Decode(ctx context.Context, x []float32, m Matrix) error {
	p, err := m.plan(len(x), driver.ErrCorrupt)
	if err != nil {
		return err
	}
	return q.code(ctx, &p, &m, func(c *coding) error { return c.decode(&p, x, m) }, func() { clear(x) })
}

// code runs a codec on the host, and undo if that fails.
func (q *Quantizer) code(ctx context.Context, p *plan, m *Matrix, f func(*coding) error, undo func()) error {
	var mu sync.Mutex
	var ran []string
	c := &coding{provider: q.codec, ctx: ctx, step: stepNumbers, scratch: q.budget, done: q.progress,
		ran: func(function, format, on string) {
			name := function + " " + format + " " + on
			mu.Lock()
			defer mu.Unlock()
			if !slices.Contains(ran, name) {
				ran = append(ran, name)
			}
		}}
	if err := errors.Join(q.open(), c.live()); err != nil {
		return err
	}
	if _, err := c.groups(p, m); err != nil {
		return err
	}
	start := driver.Now()
	err := f(c)
	if err != nil && c.wrote.Load() {
		undo()
	}
	end := driver.Now()
	for _, name := range ran {
		q.session.Tell(profile.Event{Kind: profile.Region, Name: name, Start: start, End: end, Err: err})
	}
	if err != nil {
		q.stats.Failed(runtime.Info{Kind: driver.CPU}, err)
		return err
	}
	q.noted.Lock()
	defer q.noted.Unlock()
	for _, name := range ran {
		q.note(name)
	}
	q.stats.Count(accounts.QuantizationOp, runtime.Execution{}, time.Duration(end-start))
	return nil
}

// Weights are a matrix that a Quantizer multiplies with. It is safe for concurrent use, except Close.
type Weights struct {
	Rows, Cols int // Rows results of Cols activations each
	q          *Quantizer
	m          Matrix
	main       *Prepared // nil: why says what failed
	why        error

	mu     sync.Mutex
	host   *Prepared // on the stand-in; nil before the first use
	closed atomic.Bool
}

// Prepare copies weights to the device, as the function of that name does, in pieces under the budget. If that
// fails for a reason of the device, and the policy allows it, all products with them are fallbacks to cpu:0.
// The memory of m has to stay as it is until the weights are closed, since a fallback and ForceCPU read it.
func (q *Quantizer) Prepare(ctx context.Context, m Matrix) (*Weights, error) {
	if err := q.open(); err != nil {
		return nil, err
	}
	w := &Weights{Rows: m.Rows, Cols: m.meant(), q: q, m: m}
	if q.elsewhere() {
		if _, _, err := w.onHost(ctx); err != nil {
			q.stats.Failed(runtime.Info{Kind: driver.CPU}, err)
			return nil, err
		}
		return w, nil
	}
	main, err := prepare(ctx, q.main.dev, q.main.stream, m, q.budget)
	if err == nil {
		w.main = main
		return w, nil
	}
	if ctx.Err() == nil && q.mayFallBack(err) {
		if _, _, also := w.onHost(ctx); also == nil {
			w.why = err
			return w, nil
		} else if also.Error() != err.Error() { // numbers that no product takes fail everywhere alike
			err = errors.Join(err, also)
		}
	}
	q.stats.Failed(q.main.info, err)
	return nil, err
}

// onHost returns the weights on the stand-in, which gets them the first time.
func (w *Weights) onHost(ctx context.Context) (*side, *Prepared, error) {
	host, err := w.q.standIn(ctx)
	if err != nil {
		return nil, nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.host == nil {
		w.host, err = prepare(ctx, host.dev, host.stream, w.m, w.q.budget)
	}
	return host, w.host, err
}

// Close gives the memory back. Closing twice does nothing; a product after it is driver.ErrClosed.
func (w *Weights) Close() error {
	w.closed.Store(true)
	var errs []error
	for _, p := range []*Prepared{w.main, w.host} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	return errors.Join(errs...)
}

// Mul computes y = x·wᵀ for rows of x, of Cols numbers each, and of y, of Rows, in the host's memory; see
// Prepared.Mul. What x and y have beyond that is not touched. They must not share memory.
func (w *Weights) Mul(ctx context.Context, y, x []float32, rows int) error {
	q := w.q
	perRow := int64(w.Cols+w.Rows)*4 + int64(w.Cols+kernels.W2A8Group)*5/4 + 8 // bytes, and a scale and a sum for each 32
	switch {
	case q.closed.Load():
		return q.open()
	case w.closed.Load():
		return errOfClosed(w.Rows, w.Cols)
	case rows < 0:
		return fmt.Errorf("quant: product of %d rows: %w", rows, driver.ErrInvalidArgument)
	case rows > len(x)/w.Cols || rows > len(y)/w.Rows:
		return fmt.Errorf("quant: product of %d rows of %d activations, of which %d are given, with %d results each, "+
			"for %d: %w", rows, w.Cols, len(x), w.Rows, len(y), driver.ErrDimension)
	case rows == 0:
		return nil
	case perRow > q.budget:
		return fmt.Errorf("quant: a row of a product takes %d bytes of %v, and the budget is %d: %w", perRow, q.main.dev,
			q.budget, driver.ErrBudget)
	}
	job := product{y: y[:rows*w.Rows], x: x[:rows*w.Cols], rows: rows, piece: int(min(q.budget/perRow, int64(rows)))}
	start := driver.Now()
	err := w.why
	switch {
	case q.elsewhere():
		err = nil // a choice is no fallback
	case err == nil && w.main != nil:
		if err = q.main.multiply(ctx, w.main, &job); err == nil {
			q.multiplied(q.main, start, q.main.dev.Fallback())
			return nil
		}
		if ctx.Err() != nil || !q.mayFallBack(err) {
			return q.failed(q.main.info, &job, err)
		}
	}
	host, p, also := w.onHost(ctx)
	if also == nil {
		also = host.multiply(ctx, p, &job)
	}
	switch {
	case also == nil:
	case err == nil:
		return q.failed(runtime.Info{Kind: driver.CPU}, &job, also)
	default:
		q.stats.Failed(runtime.Info{Kind: driver.CPU}, also)
		return q.failed(q.main.info, &job, errors.Join(err, also))
	}
	if err != nil {
		q.session.FellBack(hostName, "quant product", err)
	}
	q.multiplied(host, start, err)
	return nil
}

// multiplied counts a product.
func (q *Quantizer) multiplied(on *side, start int64, fellBack error) {
	r := runtime.Execution{Backend: on.info.Backend, DeviceName: on.info.Name, GPUExecuted: on.info.IsGPU(),
		Fallback: fellBack != nil}
	if fellBack != nil {
		r.FallbackReason = fellBack.Error()
	}
	q.stats.Count(accounts.MatmulOp, r, time.Duration(driver.Now()-start))
}

// failed notes that a product failed.
func (q *Quantizer) failed(on runtime.Info, job *product, err error) error {
	if job.wrote {
		clear(job.y)
	}
	q.stats.Failed(on, err)
	return err
}

// product is one call of Mul.
type product struct {
	y, x        []float32
	rows, piece int  // piece: rows that are multiplied at a time
	wrote       bool // y has been written to
}

// multiply does a product on a device, piece by piece, in memory for one.
func (s *side) multiply(ctx context.Context, p *Prepared, j *product) error {
	x, err := runtime.Alloc[float32](s.dev, j.piece*p.Cols)
	if err != nil {
		return err
	}
	defer x.Close()
	y, err := runtime.Alloc[float32](s.dev, j.piece*p.Rows)
	if err != nil {
		return err
	}
	defer y.Close()
	for r := 0; r < j.rows; r += j.piece {
		n := min(j.piece, j.rows-r)
		if err := s.stream.Write(ctx, x, 0, bytesOf(j.x[r*p.Cols:(r+n)*p.Cols])); err != nil {
			return err
		}
		if err := p.Mul(y, x, n); err != nil {
			return err
		}
		if err := s.stream.Sync(ctx); err != nil { // its failure leaves the result as it was
			return err
		}
		j.wrote = true
		if err := s.stream.Read(ctx, y, 0, bytesOf(j.y[r*p.Rows:(r+n)*p.Rows])); err != nil {
			return err
		}
	}
	return nil
}

// bytesOf returns the memory of numbers.
func bytesOf[T float32 | uint32](x []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
}
