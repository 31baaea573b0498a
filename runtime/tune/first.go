package tune

// Tuning at first use: what a program computes is tuned beside it, in a process of the same program.

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/exec"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/internal/group"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/choice"
	"github.com/concord-compute/concord/runtime/config"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

const (
	firstTime  = 2 * time.Minute // of the tuning of an operation for a size, at most
	firstPause = 5 * time.Second // between looks at a lock that another process has
	// firstGap is between two tunings, so that a process that waits for the lock gets it.
	firstGap = 3 * lockLook
	// near is by which factor each size of a launch may differ from that of a point.
	near = 4
)

// firstVariable makes a process the one that measures. It is not one of the CONCORD_ variables, which belong to the
// user.
const firstVariable = "_CONCORD_TUNE_FIRST"

// measurer is what the process that measures is told.
type measurer struct {
	Device string         `json:"device"`
	Config runtime.Config `json:"config"` // of the session, without what only its process has
}

// busy counts the calls of Run and Serve: what they launch is no use of the program's.
var busy atomic.Int32

// FirstUse makes a program able to tune at first use: sessions with Config.Tune first, or CONCORD_TUNE=first, do then.
// A program calls it as the first statement of main. The process that measures is the program itself, started once more
// with no arguments: there FirstUse measures until the program's own process ends, and does not return. In a program
// that does not call it no process is started, and such a session warns that nothing is tuned.
//
// Among the first thousand launches of each kernel of the catalog, those are tuned that one of [Subjects] computes and
// whose sizes are each within a factor of 4 of those of a point, unless that was tuned on this machine before, or the
// table in use has values for it. It takes at most two minutes for each size, one after the other, in a process of the
// lowest priority, which has the device beside the program, and up to a quarter of its free memory: sizes that need
// more are left out. Processes that have the same cache directory wait for each other. Values are kept if the sizes
// that were used are computed 1.05 times as fast as with the defaults and with what is in use, and no other size of the
// subject, nor one of another subject that reads the same choices, takes 5 % longer than with what is in use.
//
// No launch waits, and results stay the same bits: the values are for processes to come. A process uses them at once
// only where all that changes is read at each launch and keeps every bit. What is under way when the session is closed,
// or the process ends, ends with it, and begins again in the next process; what was not found in its time is not looked
// for again until concord tune reset. If the program's file was replaced since the program began, it is not started,
// and a warning says so. With a pinned table, with CONCORD_TUNE=off, with the cache off, in sessions with
// Config.Backends and on systems without file locks nothing is tuned.
func FirstUse() {
	if text := os.Getenv(firstVariable); text != "" {
		if err := measure(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	began.Do(remember)
	driver.RegisterTuner(func(cfg *driver.Config) (driver.Tuner, error) {
		f, err := newBackground(cfg)
		if err != nil {
			return nil, err
		}
		return f, nil
	})
}

// measure is the process that measures.
func measure(text string) error {
	group.Nice()
	_ = os.Unsetenv(firstVariable) // compilers that this process starts do not measure
	for _, v := range config.Variables() {
		_ = os.Unsetenv(v.Name) // they are in the session's configuration
	}
	var m measurer
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return fmt.Errorf("%s: %w", firstVariable, err)
	}
	s, err := runtime.New(m.Config)
	if err != nil {
		return err
	}
	ctx := context.Background()
	dev, err := s.Open(ctx, m.Device)
	if err == nil {
		err = Serve(ctx, s, dev, os.Stdin, os.Stdout)
	}
	return errors.Join(err, s.Close())
}

// background is the tuner of a session.
type background struct {
	cfg         driver.Config
	time, pause time.Duration
	ctx         context.Context
	stop        context.CancelFunc
	working     sync.WaitGroup

	mu     sync.Mutex
	lists  map[driver.TuneTarget][]Subject // that have choices of the device
	seen   map[use]bool
	queue  []use
	works  bool // a goroutine tunes the queue
	closed bool
}

// use is a point of a subject that was launched on a device.
type use struct {
	on             driver.TuneTarget
	subject, point string
}

func newBackground(cfg *driver.Config) (*background, error) {
	if cfg.Backends != nil {
		return nil, fmt.Errorf("the session has backends of its own, which another process has not: %w",
			runtime.ErrUnsupported)
	}
	f := &background{cfg: *cfg, time: firstTime, pause: firstPause, lists: map[driver.TuneTarget][]Subject{},
		seen: map[use]bool{}}
	f.ctx, f.stop = context.WithCancel(context.Background())
	return f, nil
}

// Launched implements driver.Tuner.
func (f *background) Launched(on driver.TuneTarget, u *source.Unit, kernel string, l *driver.Launch) bool {
	if busy.Load() > 0 {
		return true
	}
	known := func(s Subject) bool {
		return slices.ContainsFunc(s.Points, func(p Point) bool { return p.Family == u.Family() && p.Kernel == kernel })
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	list, ok := f.lists[on]
	if !ok {
		list = Subjects(on.Choices().Choices())
		f.lists[on] = list
	}
	if !slices.ContainsFunc(list, known) {
		return false
	}
	s, p := nearestPoint(list, u, kernel, l)
	if s == nil {
		return true
	}
	w := use{on, s.Name, p.Name}
	if f.closed || f.seen[w] {
		return true
	}
	f.seen[w] = true
	f.queue = append(f.queue, w)
	if !f.works {
		f.works = true
		f.working.Go(f.work)
	}
	return true
}

// nearestPoint returns the point whose sizes are nearest to those of a launch, and its subject; nil if none is near.
func nearestPoint(list []Subject, u *source.Unit, kernel string, l *driver.Launch) (of *Subject, at *Point) {
	native, least := l.Kernel.Info().Native, math.Inf(1)
	for i := range list {
		for j := range list[i].Points {
			p := &list[i].Points[j]
			if p.Family != u.Family() || p.Kernel != kernel || p.Portable == native || !p.typed(u) {
				continue
			}
			if d := p.distance(l); d < least {
				of, at, least = &list[i], p, d
			}
		}
	}
	return of, at
}

// typed reports whether a program is for the types of the point, and has the definitions of the point. Others than
// those of gaps between elements may be added.
func (p *Point) typed(u *source.Unit) bool {
	const usual = "f32"
	want := usual
	for _, d := range p.Defines {
		if got, _ := u.Define(d.Name); d.Name == "T" {
			want = d.Value
		} else if got != d.Value {
			return false
		}
	}
	got, ok := u.Define("T")
	if !ok {
		got = usual
	}
	return got == want && !slices.ContainsFunc(u.Defines(), func(d source.Define) bool {
		return strings.HasPrefix(d.Name, "SPREAD") && !slices.Contains(p.Defines, d)
	})
}

// distance is how much the sizes of a launch differ from those of the point; infinite if one does by more than near.
func (p *Point) distance(l *driver.Launch) (sum float64) {
	if len(p.Args) != len(l.Args) {
		return infinite
	}
	for i, a := range p.Args {
		given := &l.Args[i]
		var size, got float64
		switch a := a.(type) {
		case uint32:
			if given.Kind != driver.ArgValue || given.Size != 4 {
				return infinite
			}
			size, got = float64(a), float64(binary.NativeEndian.Uint32(l.Data[given.Offset:]))
		case uint64:
			if given.Kind != driver.ArgValue || given.Size != 8 {
				return infinite
			}
			size, got = float64(a), float64(binary.NativeEndian.Uint64(l.Data[given.Offset:]))
		default:
			continue
		}
		ratio := (got + 1) / (size + 1) // one more, as paddings may be 0
		if ratio > near || ratio < 1.0/near {
			return infinite
		}
		sum += math.Abs(math.Log2(ratio))
	}
	return sum
}

// Close implements driver.Tuner.
func (f *background) Close() error {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.stop()
	f.working.Wait()
	return nil
}

// work tunes the queue, and ends when it is empty.
func (f *background) work() {
	for {
		f.mu.Lock()
		if f.closed || len(f.queue) == 0 {
			f.works = false
			f.mu.Unlock()
			return
		}
		w := f.queue[0]
		f.queue = f.queue[1:]
		f.mu.Unlock()
		said, err := f.tune(w)
		if f.cfg.Debug >= 1 && (said != "" || err != nil) {
			slog.Info("concord: tuning at first use", "device", w.on.ID(), "subject", w.subject, "size", w.point,
				"result", said, "error", err)
		}
		if said != "" || err != nil {
			select {
			case <-f.ctx.Done():
			case <-time.After(firstGap):
			}
		}
	}
}

// tune tunes a point that was launched, unless it was, and says what came of it.
func (f *background) tune(w use) (said string, err error) {
	dir, _, notes := w.on.TunedFiles()
	choices := w.on.Choices().Choices()
	all := Subjects(choices)
	i := slices.IndexFunc(all, func(s Subject) bool { return s.Name == w.subject })
	if i < 0 {
		return "", nil
	}
	s := all[i]
	switch {
	case dir == "":
		return "", fmt.Errorf("nothing is kept, as the cache is off: %w", runtime.ErrUnsupported)
	case s.tuned(w.on.Choices().Table(), w.point, choices), readTried(dir, notes).has(&s, w.point, choices):
		return "", nil
	}
	unlock, err := file.Lock(f.ctx, dir, lockName, f.pause)
	if err != nil {
		return "", err
	}
	defer unlock()
	before, done := w.on.Tuned(), readTried(dir, notes)
	if s.tuned(before, w.point, choices) || done.has(&s, w.point, choices) { // while this process waited
		if before == nil {
			return "another process found nothing faster", nil
		}
		return f.keep(w.on, before)
	}
	done = done.with(&s, w.point, choices)
	now := before
	if now == nil {
		now = w.on.Choices().Table()
	}
	table, said, err := f.search(w.on, &s, done.points(&s), now)
	if err != nil {
		return "", err
	}
	if table != nil { // what others have kept or forgotten meanwhile stays so
		if said, err = f.keep(w.on, w.on.Choices().Merged(w.on.Tuned(), table)); err != nil {
			return "", err
		}
	}
	return said, readTried(dir, notes).with(&s, w.point, choices).write(dir, notes)
}

// keep keeps a table, and says so.
func (f *background) keep(on driver.TuneTarget, t *choice.Table) (said string, err error) {
	used, err := on.Keep(t)
	if err != nil {
		return "", err
	}
	if used {
		return fmt.Sprintf("%v, in use from now on", t), nil
	}
	return fmt.Sprintf("%v, for the next process", t), nil
}

// tuned reports whether a table has values of the subject, or what they were measured with at the point.
func (s *Subject) tuned(t *choice.Table, point string, choices []*choice.Choice) bool {
	if t == nil {
		return false
	}
	measured, tried := false, false
	for i := range t.Trials {
		if t.Trials[i].Subject == s.Name && t.Trials[i].Version == s.version(choices) {
			tried = true
			measured = measured || slices.ContainsFunc(t.Trials[i].Rates, func(r choice.Rate) bool { return r.Name == point })
		}
	}
	valued := slices.ContainsFunc(s.choices(choices), func(c *choice.Choice) bool {
		_, ok := t.Values[c.Name]
		return ok
	})
	return measured || valued && !tried
}

// search looks for values of the subject that are better for some points and harmless for the others. The table is nil
// if there are none, or the time was over before that was known. The error is that of the session's end, or why nothing
// can be measured.
func (f *background) search(on driver.TuneTarget, s *Subject, points []string,
	before *choice.Table) (found *choice.Table, said string, err error) {
	command, err := f.command(on.ID())
	if err != nil {
		return nil, "", err
	}
	ctx, stop := context.WithTimeout(f.ctx, f.time)
	defer stop()
	now := (*choice.Set)(nil)
	if before != nil {
		if now, err = before.Set(); err != nil {
			return nil, "", err
		}
	}
	state := on.Choices()
	t := &tuner{opt: Options{Patience: f.time / 4}, state: state, now: now.Of, kept: before, first: true,
		start: time.Now(), children: &children{command: command}, values: map[string]int{}}
	defer t.children.stop()
	used := *s
	used.Points = slices.DeleteFunc(slices.Clone(s.Points), func(p Point) bool { return !slices.Contains(points, p.Name) })
	t.tune(ctx, &used, state.Choices(), t.start.Add(f.time*3/5)) // the rest is for the last trial and the other sizes
	switch {
	case f.ctx.Err() != nil:
		return nil, "", f.ctx.Err()
	case ctx.Err() != nil || len(t.trials) == 0:
		return nil, "nothing was found in time", nil
	case t.trials[0].Failed != "":
		return nil, "", errors.New(t.trials[0].Failed)
	case t.refused != "":
		return nil, "what was found is not kept: " + t.refused, nil
	case len(t.values) == 0 && before == nil:
		return nil, "nothing is faster than the defaults", nil
	}
	table := state.New(t.values)
	table.Trials = t.trials
	return table, "", nil
}

// command returns what starts the process that measures a device.
func (f *background) command(device string) (func() *exec.Cmd, error) {
	self, err := thisProgram()
	if err != nil {
		return nil, err
	}
	m := measurer{Device: device, Config: f.cfg}
	c := &m.Config
	c.Tune, c.Validate, c.Debug, c.Strict, c.Bundles = "off", -1, 0, false, nil
	c.Device, c.Fallback, c.Trace, c.MemoryTrace = "", runtime.Require, "", ""
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return func() *exec.Cmd {
		cmd := exec.Command(self)
		if _, err := thisProgram(); err != nil { // replaced since the last candidate
			cmd.Err = err
		}
		cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GOMAXPROCS=") }),
			"GOMAXPROCS="+strconv.Itoa(goruntime.GOMAXPROCS(0)), firstVariable+"="+string(text))
		return cmd
	}, nil
}
