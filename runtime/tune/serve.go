package tune

// The child: it launches candidates, has their results judged, and times them beside the defaults.

import (
	"bufio"
	"cmp"
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
	Used    map[string]int `json:"used"`             // values in use, which are measured, too; nil: none are
	Seconds float64        `json:"seconds"`          // of measuring a point, about
	Limit   float64        `json:"limit,omitempty"`  // seconds after which no other point begins; 0: none
	Work    float64        `json:"work,omitempty"`   // operations of a result that is judged whole; 0: wholeWork
	Spares  bool           `json:"spares,omitempty"` // points that need more than a part of the free memory are left out
}

// answer is what it found, or the point that is under way.
type answer struct {
	Doing  string        `json:"doing,omitempty"`
	Rates  []choice.Rate `json:"rates,omitempty"`
	Used   []float64     `json:"used,omitempty"`  // the time with the used values, for each of Rates
	Took   []float64     `json:"took,omitempty"`  // seconds of measuring, for each of Rates
	Left   []string      `json:"left,omitempty"`  // points for which there is no memory
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
	// Of launches that take longer than slow in all so few samples are enough.
	slow       = 2 * time.Second
	slowSample = 3
	// Operations of a result that is judged whole. Of one with more random rows are judged.
	wholeWork = 1 << 28
	// spared is by what the free memory is divided that the points of a subject may have together.
	spared = 4
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
	times := func(list ...float64) bool {
		return !slices.ContainsFunc(list, func(t float64) bool { return !(t > 0 && t < infinite) })
	}
	points := slices.DeleteFunc(slices.Clone(q.Points), func(p string) bool { return slices.Contains(a.Left, p) })
	for i, r := range a.Rates {
		if i >= len(points) || r.Name != points[i] || !times(r.Ns, r.Default) {
			return false
		}
	}
	n := len(a.Rates)
	if n == 0 && (len(points) > 0 || len(a.Left) == 0) || a.Took != nil && len(a.Took) != n {
		return false
	}
	return q.Used == nil || len(a.Used) == n && times(a.Used...)
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
		if err = m.run(ctx, &a); err != nil {
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
	bytes   int64 // of the buffers, and of the copies by which they are judged
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

// run measures what is asked for, into the answer.
func (m *measurement) run(ctx context.Context, a *answer) (err error) {
	if now := m.dev.Choices().TunedFor(); now != m.For {
		return fmt.Errorf("tune: the process measures %q, and not %q: %w", now, m.For, runtime.ErrInvalidArgument)
	}
	at := slices.IndexFunc(subjects, func(s Subject) bool { return s.Name == m.Subject })
	if at < 0 {
		return fmt.Errorf("tune: no subject %q: %w", m.Subject, runtime.ErrInvalidArgument)
	}
	sets := make([]*choice.Set, 2)
	if sets[0], err = choice.NewSet(m.Values); err != nil {
		return err
	}
	if m.Used != nil {
		if sets[1], err = choice.NewSet(m.Used); err != nil {
			return err
		}
	}
	if m.of != m.Subject {
		m.free()
		m.of = m.Subject
	}
	if subjects[at].measured {
		a.Costs, err = m.costs(ctx)
		return err
	}
	start, last, ratio := time.Now(), 0.0, 0.0 // the work of the last point, and its seconds for that
	for _, name := range m.Points {
		i := slices.IndexFunc(subjects[at].Points, func(p Point) bool { return p.Name == name })
		if i < 0 {
			continue
		}
		p := &subjects[at].Points[i]
		if m.Limit > 0 && last > 0 && time.Since(start).Seconds()+ratio*p.work() > m.Limit {
			break
		}
		if m.Spares && !m.hasRoom(p) {
			a.Left = append(a.Left, name)
			continue
		}
		if err := m.doing(name); err != nil {
			return err
		}
		if _, err := m.prepare(ctx, p); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		began := time.Now()
		r, used, err := m.point(ctx, p, sets[0], sets[1])
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		took := time.Since(began).Seconds()
		a.Rates, a.Took = append(a.Rates, r), append(a.Took, took)
		if m.Used != nil {
			a.Used = append(a.Used, used)
		}
		if last = p.work(); r.Ns > drop*r.Default {
			break
		}
		ratio = took / last
	}
	return nil
}

// hasRoom reports whether the buffers of a point, with the copies by which it is judged, fit in a part of the device's
// free memory. It frees those of other points for that. Where the free memory is not known, the whole counts.
func (m *measurement) hasRoom(p *Point) bool {
	if m.ready[p.Name] != nil {
		return true
	}
	have := int64(0)
	for _, l := range m.ready {
		have += l.bytes
	}
	info := m.dev.Info()
	free := info.TotalMemory
	if info.FreeMemoryKnown {
		free = info.FreeMemory
	}
	if need := 2 * p.buffers(); free > 0 && have+need > (free+have)/spared {
		m.free()
		return need <= (free+have)/spared
	}
	return true
}

// prepare makes a point ready, unless it is.
func (m *measurement) prepare(ctx context.Context, p *Point) (*launch, error) {
	if l := m.ready[p.Name]; l != nil {
		return l, nil
	}
	l := &launch{bytes: 2 * p.buffers()}
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

// point measures a launch with the values of set and with the defaults, in turn, and with those that are used, unless
// these are nil.
func (m *measurement) point(ctx context.Context, p *Point, set, used *choice.Set) (r choice.Rate, usedNs float64,
	err error) {
	l, err := m.prepare(ctx, p)
	if err != nil {
		return r, 0, err
	}
	usual, args := l.usual, l.args
	own, err := m.build(ctx, p, set)
	if err != nil {
		return r, 0, err
	}
	defer func() { err = errors.Join(err, own.program.Close()) }()
	all := []built{usual, own}
	if used != nil {
		b, err := m.build(ctx, p, used)
		if err != nil {
			return r, 0, err
		}
		defer func() { err = errors.Join(err, b.program.Close()) }()
		all = append(all, b)
	}
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
	err = m.judge(func() error { return once(own) }, cmp.Or(m.Work, wholeWork))
	if errors.Is(err, errUnjudged) {
		err = m.same(ctx, l, func() error { return once(usual) }, func() error { return once(own) })
	}
	if err != nil {
		return r, 0, err
	}
	first, err := launches(usual, 1)
	if err != nil {
		return r, 0, err
	}
	n := max(1, int(float64(tick.Nanoseconds())/max(first, 1)))
	took := make([][]float64, len(all))
	start := time.Now()
	more := func(samples int) bool {
		passed := time.Since(start)
		return samples < enoughSamples && (samples < fewest || passed.Seconds() < m.Seconds) &&
			(samples < slowSample || passed < slow)
	}
	for more(len(took[0])) {
		for i, b := range all {
			ns, err := launches(b, n)
			if err != nil {
				return r, 0, err
			}
			took[i] = append(took[i], ns)
		}
		if len(took[0]) >= slowSample && median(took[1]) > 2*drop*median(took[0]) {
			break
		}
	}
	if used != nil {
		usedNs = median(took[2])
	}
	return choice.Rate{Name: p.Name, Ns: median(took[1]), Default: median(took[0])}, usedNs, nil
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
	case stats.Checked == 0 && stats.Large > 0 && work < wholeWork: // it is not divided into so few rows
		return m.judge(launch, wholeWork)
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
