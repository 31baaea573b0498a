package tune

// The child: it launches candidates, has their results judged, and times them beside the defaults.

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/concord-compute/concord/internal/group"
	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/choice"
	"github.com/concord-compute/concord/runtime/parity"
	"github.com/concord-compute/concord/runtime/validate"
)

// request is what a child is asked to measure.
type request struct {
	Subject string         `json:"subject"`
	For     string         `json:"for"` // what the device is tuned for
	Points  []string       `json:"points"`
	Values  map[string]int `json:"values"`
	Seconds float64        `json:"seconds"` // of measuring a point, about
}

// answer is what it found, or the point that is under way.
type answer struct {
	Doing  string        `json:"doing,omitempty"`
	Rates  []choice.Rate `json:"rates,omitempty"`
	Costs  []choice.Cost `json:"costs,omitempty"` // in place of rates
	Failed string        `json:"failed,omitempty"`
	Done   bool          `json:"done,omitempty"`
}

const (
	fewest        = 5  // samples of a point
	enoughSamples = 21 // of a point
	// Times as slow as the defaults: larger sizes are not measured then, and from twice that on not this one to its end.
	drop = 1.5
	tick = 500 * time.Microsecond
)

// answers reports whether the rates are of the points that were asked for, or of the first of them, and are times; or
// whether there are all costs, and they are times.
func (a *answer) answers(q request) bool {
	if q.Subject == costsName {
		names := costNames()
		for i, c := range a.Costs {
			if i >= len(names) || c.Name != names[i] || !(c.Ns > 0 && c.Ns < infinite) {
				return false
			}
		}
		return len(a.Costs) == len(names)
	}
	for i, r := range a.Rates {
		asked := i < len(q.Points) && r.Name == q.Points[i]
		if !asked || !(r.Ns > 0 && r.Default > 0 && r.Ns < infinite && r.Default < infinite) {
			return false
		}
	}
	return len(a.Rates) > 0
}

// Serve is the child of [Run]: it answers requests, one line of JSON each, until in ends. A program calls it in the
// process that Options.Command starts, with a device of a session that has nothing else to do. The error is that of
// writing, or of a request that is none. If in is closed during a measurement, Serve kills its own process and the
// process group: the caller is gone, and a candidate may never end.
func Serve(ctx context.Context, s *runtime.Session, dev *runtime.Device, in io.Reader, out io.Writer) error {
	busy.Add(1)
	defer busy.Add(-1)
	lines := make(chan []byte)
	over, failed := make(chan struct{}), error(nil)
	defer close(over)
	go func() {
		defer close(lines)
		scan := bufio.NewScanner(in)
		scan.Buffer(nil, 1<<20)
		for scan.Scan() {
			select {
			case lines <- slices.Clone(scan.Bytes()):
			case <-over:
				return
			}
		}
		failed = scan.Err()
	}()
	m := &measurement{session: s, dev: dev}
	defer m.free()
	write := json.NewEncoder(out)
	for line := range lines {
		var q request
		if err := json.Unmarshal(line, &q); err != nil {
			return fmt.Errorf("tune: a request: %w: %w", runtime.ErrFormat, err)
		}
		done, gone := make(chan struct{}), make(chan bool)
		go func() { // there is no other request before the answer: what comes is the end
			select {
			case _, early := <-lines:
				if !early {
					group.End()
				}
				gone <- early
			case <-done:
				gone <- false
			}
		}()
		a := answer{Done: true}
		m.request = q
		m.doing = func(point string) error { return write.Encode(answer{Doing: point}) }
		var err error
		if a.Rates, a.Costs, err = m.run(ctx); err != nil {
			a.Failed = err.Error()
		}
		close(done)
		if early := <-gone; early {
			return fmt.Errorf("tune: a request before the answer to the last one: %w", runtime.ErrFormat)
		}
		if err := write.Encode(a); err != nil {
			return err
		}
	}
	return failed
}

// measurement is one request under way, and what it can use again of the last one.
type measurement struct {
	request
	session *runtime.Session
	dev     *runtime.Device
	doing   func(point string) error

	of    string // the subject of these
	ready map[string]*launch
}

// launch is a point that is ready: its buffers, and its kernel as it is with the defaults.
type launch struct {
	args    []any
	buffers []io.Closer
	usual   built
}

// free closes what is ready.
func (m *measurement) free() {
	for _, l := range m.ready {
		l.close()
	}
	m.ready = map[string]*launch{}
}

func (l *launch) close() {
	for _, b := range l.buffers {
		b.Close()
	}
	if l.usual.program != nil {
		l.usual.program.Close()
	}
}

func (m *measurement) run(ctx context.Context) (rates []choice.Rate, costs []choice.Cost, err error) {
	if now := m.dev.Choices().TunedFor(); now != m.For {
		return nil, nil, fmt.Errorf("tune: the process measures %q, and not %q: %w", now, m.For, runtime.ErrInvalidArgument)
	}
	i := slices.IndexFunc(subjects, func(s Subject) bool { return s.Name == m.Subject })
	if i < 0 {
		return nil, nil, fmt.Errorf("tune: no subject %q: %w", m.Subject, runtime.ErrInvalidArgument)
	}
	set, err := choice.NewSet(m.Values)
	if err != nil {
		return nil, nil, err
	}
	if m.of != m.Subject {
		m.free()
		m.of = m.Subject
	}
	if subjects[i].measured {
		costs, err = m.costs(ctx)
		return nil, costs, err
	}
	for _, p := range subjects[i].Points {
		if !slices.Contains(m.Points, p.Name) {
			continue
		}
		if err := m.doing(p.Name); err != nil {
			return nil, nil, err
		}
		r, err := m.point(ctx, &p, set)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		if rates = append(rates, r); r.Ns > drop*r.Default {
			break
		}
	}
	return rates, nil, nil
}

// prepare makes a point ready, unless it is.
func (m *measurement) prepare(ctx context.Context, p *Point) (*launch, error) {
	if l := m.ready[p.Name]; l != nil {
		return l, nil
	}
	l := &launch{}
	var err error
	if l.usual, err = m.build(ctx, p, nil); err == nil {
		l.args, l.buffers, err = m.arguments(ctx, p)
	}
	if err != nil {
		l.close()
		return nil, err
	}
	m.ready[p.Name] = l
	return l, nil
}

// built is a kernel of a point with the tile of a set of choices, and its grid.
type built struct {
	set     *choice.Set
	kernel  *runtime.Kernel
	program *runtime.Program
	grid    runtime.Grid
}

func (m *measurement) build(ctx context.Context, p *Point, set *choice.Set) (b built, err error) {
	var opt runtime.ProgramOptions
	if p.Portable {
		opt.Implementation = runtime.Portable
	}
	b.set = set // and not what the device has, as parity.Kernel does
	unit, err := kernels.Unit(p.Family, m.dev.Features(), kernels.Chosen(p.Family, p.Defines, set.Of)...)
	if err != nil {
		return b, err
	}
	if b.program, err = m.dev.Program(ctx, unit, opt); err != nil {
		return b, err
	}
	if b.kernel, err = b.program.Kernel(p.Kernel); err == nil {
		b.grid, err = parity.Grid(b.kernel, p.Sizes...)
	}
	if err != nil {
		err = errors.Join(err, b.program.Close())
		b.program = nil
	}
	return b, err
}

// point measures a launch with the values of set and with the defaults, in turn.
func (m *measurement) point(ctx context.Context, p *Point, set *choice.Set) (r choice.Rate, err error) {
	l, err := m.prepare(ctx, p)
	if err != nil {
		return r, err
	}
	usual, args := l.usual, l.args
	own, err := m.build(ctx, p, set)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, own.program.Close()) }()
	stream := m.dev.Stream()
	launches := func(b built, n int) (float64, error) {
		m.dev.Choices().Try(b.set)
		start := time.Now()
		for range n {
			if err := stream.Launch(b.kernel, b.grid, args...); err != nil {
				return 0, err
			}
		}
		err := stream.Sync(ctx)
		return float64(time.Since(start).Nanoseconds()) / float64(n), err
	}
	defer m.dev.Choices().Try(nil)
	once := func(b built) error { _, err := launches(b, 1); return err }
	err = m.judge(func() error { return once(own) }, 1<<28)
	if errors.Is(err, errUnjudged) {
		err = m.same(ctx, l, func() error { return once(usual) }, func() error { return once(own) })
	}
	if err != nil {
		return r, err
	}
	first, err := launches(usual, 1)
	if err != nil {
		return r, err
	}
	n := max(1, int(float64(tick.Nanoseconds())/max(first, 1)))
	var took [2][]float64 // with the defaults, and with the candidate
	for start := time.Now(); len(took[1]) < enoughSamples &&
		(len(took[1]) < fewest || time.Since(start).Seconds() < m.Seconds); {
		for i, b := range []built{usual, own} {
			ns, err := launches(b, n)
			if err != nil {
				return r, err
			}
			took[i] = append(took[i], ns)
		}
		if len(took[1]) >= 3 && median(took[1]) > 2*drop*median(took[0]) {
			break
		}
	}
	return choice.Rate{Name: p.Name, Ns: median(took[1]), Default: median(took[0])}, nil
}

// judge runs a launch whose results are compared with those of the float64 reference; of more work than that some rows
// are.
func (m *measurement) judge(launch func() error, work float64) error {
	wrong := ""
	v, err := validate.Start(m.session, validate.Options{Every: 1, Share: 1, Bytes: 1 << 31, Work: work,
		Report: func(d validate.Difference) { wrong = d.String() }})
	if err != nil {
		return err
	}
	err = launch()
	v.Wait()
	stats := v.Stats()
	err = errors.Join(err, v.Close())
	switch {
	case err != nil:
		return err
	case wrong != "":
		return fmt.Errorf("wrong result: %s", wrong)
	case stats.Unjudged > 0:
		return fmt.Errorf("%w: %v", errUnjudged, stats)
	case stats.Checked == 0:
		return fmt.Errorf("the result was not judged: %v", stats)
	}
	return nil
}

// arguments uploads the buffers of a launch.
func (m *measurement) arguments(ctx context.Context, p *Point) (args []any, closers []io.Closer, err error) {
	random := rand.New(rand.NewPCG(1, uint64(len(p.Args))))
	for _, a := range p.Args {
		b, ok := a.(Buffer)
		if !ok {
			args = append(args, a)
			continue
		}
		numbers := b.numbers(random)
		buf, err := m.dev.Alloc(b.Type, b.Len)
		if err != nil {
			return nil, closers, err
		}
		closers = append(closers, buf)
		if err := m.dev.Stream().Write(ctx, buf, 0, kernels.Encode(b.Type.String(), numbers)); err != nil {
			return nil, closers, err
		}
		args = append(args, buf)
	}
	return args, closers, nil
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}
