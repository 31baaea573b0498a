package validate

// Which launches are checked, and the queue of those that wait.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

const (
	usualEvery = 1000
	usualShare = 0.005
	usualBytes = 64 << 20
	usualFiles = 16

	saved     = 100 * time.Millisecond // of the share that can be saved up, and that there is at the start
	copyRate  = 2e9                    // bytes of a second that copies are taken to cost
	mostQueue = 16                     // launches that wait
	patience  = 30 * time.Second       // for a launch to end
)

// Options say how a session is validated. The zero value is the default.
type Options struct {
	Every int     // one in so many launches of each kernel is checked; 0 means 1000
	Share float64 // the part of the time of one thread for checks; 0 means 0.005, and 1 or more sets no limit
	Work  float64 // operations of a launch whose whole result is judged, of those with more some rows; 0 means 65536
	Bytes int64   // of copies of memory that may wait, and so of one launch; 0 means 64 MiB

	// Dir is the directory for the files of differences, which is made if need be; "" means no files. There are at most
	// Files of each Validator; 0 means 16.
	Dir   string
	Files int

	// Report is called for each difference, one at a time, on a goroutine of the Validator. A panic of it is counted. It
	// must not wait for the Validator, nor close it, a device or the session. nil means that differences are logged.
	Report func(d Difference)

	// Device repeats kernels that are not of the catalog. "" means another device, the host's processor before others, or
	// the same device with the portable text where it ran an implementation of its own. Such results may differ by 2⁻¹⁰
	// of the largest magnitude of the buffer, those in double precision by 2⁻³⁰, half by 2⁻⁸ and bfloat16 by 2⁻⁶.
	Device string
	Ignore []string // kernels that are not checked; nil means none
	Seed   uint64   // of the choice of launches and rows; 0 means a random one
}

// check returns an error that names the first value that is not valid, and fills in the defaults.
func (o *Options) check() error {
	bad := func(name string, v any) error {
		return fmt.Errorf("validate: Options.%s is %v: %w", name, v, runtime.ErrInvalidArgument)
	}
	switch {
	case o.Every < 0:
		return bad("Every", o.Every)
	case !(o.Share >= 0):
		return bad("Share", o.Share)
	case !(o.Work >= 0):
		return bad("Work", o.Work)
	case o.Bytes < 0:
		return bad("Bytes", o.Bytes)
	case o.Files < 0:
		return bad("Files", o.Files)
	}
	o.Every, o.Share = cmp.Or(o.Every, usualEvery), cmp.Or(o.Share, usualShare)
	o.Work = cmp.Or(o.Work, mostWork)
	o.Bytes, o.Files = cmp.Or(o.Bytes, usualBytes), cmp.Or(o.Files, usualFiles)
	o.Seed = cmp.Or(o.Seed, rand.Uint64())
	o.Ignore = slices.Clone(o.Ignore)
	return nil
}

// Stats count what a Validator did.
type Stats struct {
	Launches    int64 // while it was on
	Checked     int64
	Divided     int64 // those of Checked of which random rows were judged
	Differences int64
	Budget      int64 // launches that were due while the share of time was used up
	Full        int64 // launches that were due while too many waited
	Large       int64 // launches with more memory, or more work in a row, than a check may have
	Unjudged    int64 // launches of kernels that nothing judges: no bound is known, or no other device runs them
	Failed      int64 // launches of which the copies, the reference or the other device failed
	Panics      int64 // of Options.Report
	Files       int64 // that were written
	// Time of judging, on one thread beside the program's work. Waiting for launches is not in it.
	Time time.Duration
	// Why is why the last launch in Unjudged or Failed was not judged, "" without one.
	Why string
}

// String returns the numbers as text, without those that are 0: "120000 launches, 121 checked, no differences, 0.4 s".
func (s Stats) String() string {
	text := fmt.Sprintf("%d launches, %d checked, ", s.Launches, s.Checked)
	if s.Divided > 0 {
		text += fmt.Sprintf("%d of them in random rows, ", s.Divided)
	}
	if s.Differences == 0 {
		text += "no differences"
	} else {
		text += fmt.Sprintf("%d differ", s.Differences)
	}
	for _, n := range []struct {
		n    int64
		what string
	}{{s.Files, "files"}, {s.Budget, "skipped for time"}, {s.Full, "skipped as others waited"}, {s.Large, "too large"},
		{s.Unjudged, "not judged"}, {s.Failed, "failed"}, {s.Panics, "panics of the report"}} {
		if n.n > 0 {
			text += fmt.Sprintf(", %d %s", n.n, n.what)
		}
	}
	text += fmt.Sprintf(", %.2g s", s.Time.Seconds())
	if s.Why != "" {
		text += " (the last: " + s.Why + ")"
	}
	return text
}

// Validator checks launches of a session. It is safe for concurrent use.
type Validator struct {
	opt      Options
	cfg      runtime.Config // of the session for other devices
	stop     func()
	most     float64 // operations for which a whole result is judged
	launches atomic.Int64
	end      sync.Once

	mu      sync.Mutex
	less    *sync.Cond // a launch was judged
	rand    *rand.Rand
	stats   Stats
	credit  time.Duration // of the share of time; negative if it is used up
	counted time.Time     // until when credit is counted
	pending int           // launches that were admitted and are not judged
	judged  int64         // launches that were
	bytes   int64         // of their copies
	queue   []*driver.Sample
	working bool // a goroutine judges the queue
	closed  bool
	files   int     // written, or being written
	own     *others // of a session for them; nil: none was needed
}

var _ driver.Checker = (*Validator)(nil)

func init() {
	driver.RegisterChecker(func(cfg *driver.Config) (driver.Checker, error) {
		v, err := newValidator(*cfg, Options{Every: cfg.Validate, Dir: cfg.ValidateDir})
		if err != nil {
			return nil, err
		}
		return v, nil
	})
}

// Start begins to validate a session, until Close of the Validator or of the session. A session has one Validator: the
// next takes the place of the last, also of that of CONCORD_VALIDATE, which is closed.
func Start(s *runtime.Session, o Options) (*Validator, error) {
	if s == nil {
		return nil, fmt.Errorf("validate: session is nil: %w", runtime.ErrInvalidArgument)
	}
	v, err := newValidator(s.Config(), o)
	if err != nil {
		return nil, err
	}
	v.stop = s.Check(v)
	return v, nil
}

func newValidator(cfg runtime.Config, o Options) (*Validator, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	cfg.Validate = -1 // the session for other devices is not validated
	if cfg.Tune != "" {
		cfg.Tune = "off" // nor is it the program's work, which is worth tuning, or for whose device a table is pinned
	}
	v := &Validator{opt: o, cfg: cfg, stop: func() {}, most: o.Work, credit: saved, counted: time.Now(),
		rand: rand.New(rand.NewPCG(o.Seed, 0))}
	v.less = sync.NewCond(&v.mu)
	return v, nil
}

// Wants implements driver.Checker.
func (v *Validator) Wants(t *driver.Tally) bool {
	v.launches.Add(1)
	if !t.Due() {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.closed:
		return false
	case v.pending >= mostQueue:
		v.stats.Full++
	case !v.affords():
		v.stats.Budget++
	default:
		t.Again(v.opt.Every, v.rand)
		return true
	}
	t.Again(max(v.opt.Every/16, 1), v.rand) // it is due again soon
	return false
}

// affords reports whether there is time left of the share. The caller holds v.
func (v *Validator) affords() bool {
	if v.opt.Share >= 1 {
		return true
	}
	now := time.Now()
	v.credit = min(v.credit+time.Duration(float64(now.Sub(v.counted))*v.opt.Share), saved)
	v.counted = now
	return v.credit > 0
}

// Admit implements driver.Checker.
func (v *Validator) Admit(bytes int64) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.closed:
		return false
	case bytes > v.opt.Bytes:
		v.stats.Large++
		return false
	case v.pending >= mostQueue || v.bytes > v.opt.Bytes-bytes:
		v.stats.Full++
		return false
	}
	v.pending++
	v.bytes += bytes
	v.credit -= time.Duration(float64(bytes) / copyRate * 1e9)
	return true
}

// Check implements driver.Checker.
func (v *Validator) Check(s *driver.Sample) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.queue = append(v.queue, s)
	if !v.working {
		v.working = true
		go v.work()
	}
}

// work judges the queue, and ends when it is empty.
func (v *Validator) work() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for len(v.queue) > 0 {
		s := v.queue[0]
		v.queue = slices.Delete(v.queue, 0, 1)
		seed := v.rand.Uint64()
		v.mu.Unlock()
		err := s.Err
		if err == nil && slices.Contains(v.opt.Ignore, s.Kernel) {
			s.Close()
			err = errIgnored
		}
		if err == nil {
			err = fetch(s)
		}
		start := time.Now() // the time in which the goroutine waited is no cost
		if !errors.Is(err, errIgnored) {
			v.one(s, seed, err)
		}
		took := time.Since(start)
		v.mu.Lock()
		v.stats.Time += took
		v.credit -= took
		v.bytes -= s.Bytes
		v.pending--
		v.judged++
		v.less.Broadcast()
	}
	v.working = false
}

var errIgnored = errors.New("ignored")

// fetch waits for a launch and fetches its copies.
func fetch(s *driver.Sample) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return s.Read(ctx)
}

// one judges one launch, unless err says why that is not possible.
func (v *Validator) one(s *driver.Sample, seed uint64, err error) {
	var r Result
	if err == nil {
		r, err = v.judge(s, seed)
	}
	if err != nil {
		v.mu.Lock()
		defer v.mu.Unlock()
		switch {
		case errors.Is(err, errLarge):
			v.stats.Large++
			return
		case errors.Is(err, errUnjudged):
			v.stats.Unjudged++
		default:
			v.stats.Failed++
		}
		v.stats.Why = s.Kernel + " on " + s.Device + ": " + err.Error()
		return
	}
	v.mu.Lock()
	v.stats.Checked++
	if r.Rows != nil {
		v.stats.Divided++
	}
	v.mu.Unlock()
	if r.Verdict.OK {
		return
	}
	d := difference(s, seed, r)
	d.File, d.FileErr = v.keep(s, &d)
	v.mu.Lock()
	v.stats.Differences++
	if d.File != "" {
		v.stats.Files++
	}
	v.mu.Unlock()
	v.report(d)
}

// report passes a difference on.
func (v *Validator) report(d Difference) {
	if v.opt.Report == nil {
		slog.Warn("concord: a launch has a wrong result", "difference", d.String(), "file", d.File)
		return
	}
	defer func() {
		if why := recover(); why != nil {
			v.mu.Lock()
			v.stats.Panics++
			v.mu.Unlock()
			slog.Error("concord: the report of a wrong result panicked", "panic", why, "difference", d.String())
		}
	}()
	v.opt.Report(d)
}

// judge judges a launch whose copies were fetched. A panic of a reference is an error.
func (v *Validator) judge(s *driver.Sample, seed uint64) (r Result, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err = reference(ctx, s, seed, v.most)
	if !errors.Is(err, errForeign) {
		return r, err
	}
	if v.own == nil { // only the goroutine that works uses it
		session, err := runtime.New(v.cfg)
		if err != nil {
			return r, err
		}
		v.own = newOthers(session)
	}
	return v.own.judge(ctx, v.opt.Device, s)
}

// Wait waits until all launches are judged that were chosen so far. It does not wait for later ones, as launches are
// judged in their order.
func (v *Validator) Wait() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for until := v.judged + int64(v.pending); v.judged < until; {
		v.less.Wait()
	}
}

// Stats returns the counts so far.
func (v *Validator) Stats() Stats {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.stats
	s.Launches = v.launches.Load()
	return s
}

// String returns Stats as text.
func (v *Validator) String() string { return v.Stats().String() }

// Close ends the validation and waits for the checks under way. Closing again waits for the first Close, and does
// nothing else.
func (v *Validator) Close() (err error) {
	v.stop()
	v.end.Do(func() {
		v.mu.Lock()
		v.closed = true
		v.mu.Unlock()
		v.Wait()
		if v.cfg.Debug >= 1 {
			slog.Info("concord: validated", "launches", v.String())
		}
		if v.own != nil {
			err = errors.Join(v.own.close(), v.own.session.Close())
		}
	})
	return err
}

// Difference is a launch whose result is wrong.
type Difference struct {
	Device         string
	Kernel         string // family and kernel, or the kernel alone
	Defines        []string
	Implementation string // the form of the code that ran
	Grid           runtime.Grid
	Args           []string // the arguments as text: "f32[1024]", "7", "256 bytes of local memory"
	Seed           uint64   // of the choice of rows
	Result                  // what differs from what
	File           string   // from which the launch can be repeated; "" if there is none
	Found          string   // of a launch that was repeated: on what it was wrong, "cpu:0 (go)"
	FileErr        error    // why there is none, nil if there is one, or none was asked for
}

// String names the kernel, its arguments and what is wrong.
func (d Difference) String() string {
	text := fmt.Sprintf("%s on %s (%s) over %v", d.Kernel, d.Device, d.Implementation, d.Grid)
	if len(d.Defines) > 0 {
		text += " with " + strings.Join(d.Defines, " ")
	}
	return fmt.Sprintf("%s, arguments %s: %v, seed %d", text, strings.Join(d.Args, ", "), d.Result, d.Seed)
}
