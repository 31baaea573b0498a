package verify

// The parent: one process after the other, and the report after each.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/internal/group"
	"github.com/concord-compute/concord/runtime"
)

// Options are those of a run.
type Options struct {
	Device  string
	Dir     string        // for the report; it is made if it is not there
	Limit   time.Duration // of the whole run; 0 is Full for a card, and half of it for others
	Only    []string      // steps, beside the first, which describes the device; none: all
	Failed  bool          // the steps that the report in Dir calls failed, cut off or not run
	HTML    string        // a file for the page; "": none
	Program string        // the version of the program, for the report
	// Command returns a process that calls Child with its standard input and output.
	Command func() *exec.Cmd
	// Progress is called when a check begins, and when a step begins and ends. May be nil.
	Progress func(Progress)
}

// Progress says where a run is.
type Progress struct {
	Result         *Result // of the step that is under way or has just ended
	Number         int     // of the step, from 1
	Steps          int
	Doing          string // the check that is under way; "": none
	Ended          bool   // the step has
	Elapsed, Limit time.Duration
}

// ErrUsage is the error of options that make no sense: an unknown step, a report of another device.
var ErrUsage = errors.New("verify: wrong options")

// ErrNothing is the error of a run for which no step is left.
var ErrNothing = errors.New("verify: nothing to do")

// runner is a run in progress.
type runner struct {
	opt     Options
	start   time.Time
	clock   *clock
	report  *Report
	logs    *archive
	written time.Time         // when the report was written last
	env     []string          // what the processes have in their environment beside that of this one
	quick   bool              // the device is no card: less of everything
	oldLogs map[string][]byte // of the run whose report this one replaces
	failed  error             // of writing the report: the run goes on, since its lines on the terminal are worth having
}

// tempName begins the name of the folder of a run's temporary files.
const tempName = "concord-verify-"

// Run runs the plan, or a part of it, and writes the report. A device that fails is a report with OK false, not an
// error: errors are mistakes in the options, a folder that cannot be written, and a context that is done, which ends
// the step that is under way. What was shown by then is in the report. It blocks until the end of the limit at most,
// plus a second or two.
func Run(ctx context.Context, opt Options) (*Report, error) {
	usual := opt.Limit <= 0
	if usual {
		opt.Limit = Full
	}
	old, err := previous(opt)
	if err != nil {
		return nil, err
	}
	if opt.Failed {
		opt.Only = old.open()
		if len(opt.Only) == 0 {
			return nil, fmt.Errorf("%w: every step of %s passed", ErrNothing, filepath.Join(opt.Dir, jsonFile))
		}
	}
	list, err := choose(opt.Only)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(opt.Dir, 0o755); err != nil {
		return nil, err
	}
	r := &runner{opt: opt, start: time.Now(), logs: &archive{}}
	r.clock = newClock(r.start, opt.Limit, list)
	r.report = &Report{Schema: schema, Program: opt.Program, Device: opt.Device, Started: r.start,
		Limit: opt.Limit.Seconds()}
	for _, s := range list {
		r.report.Steps = append(r.report.Steps, Result{Step: s.Name, Title: s.Title, Area: s.Area, State: NotRun,
			Reason: "not begun"})
	}
	if err := r.setAside(old); err != nil {
		return nil, err
	}
	if err := r.write(); err != nil {
		return nil, err
	}
	// Temporary files of processes that are killed are removed with the folder; where this process was killed, by the
	// process of a step (endWith). It stays out of the folder of the report, unless there is no other.
	temp, err := os.MkdirTemp("", tempName)
	if err != nil {
		temp, err = os.MkdirTemp(opt.Dir, tempName)
	}
	if err == nil {
		temp, err = filepath.Abs(temp)
	}
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	r.env = []string{"TMPDIR=" + temp}
	// Caches of its own: a kernel that was compiled before would hide that the compiler is not there. Drivers have theirs
	// below XDG_CACHE_HOME, and CUDA's has a variable.
	if os.Getenv("CONCORD_CACHE_DIR") == "" {
		r.env = append(r.env, "CONCORD_CACHE_DIR="+filepath.Join(temp, "cache"), "XDG_CACHE_HOME="+temp, "CUDA_CACHE_PATH="+
			filepath.Join(temp, "cuda"))
	}
	for i, s := range list {
		if r.step(ctx, i+1, len(list), s); ctx.Err() != nil {
			break
		}
		if r.result(s).State == NoDevice { // no other step can do anything
			r.giveUp("the device does not open: see the step " + s.Name)
			break
		}
		about := r.report.About
		if i > 0 || about == nil {
			continue
		}
		r.keep(old)
		if about.Info.IsGPU() {
			defer loadTorch()()
			continue
		}
		if r.quick = true; usual {
			r.opt.Limit = Full / 2
			r.report.Limit = r.opt.Limit.Seconds()
			r.clock = newClock(r.start, r.opt.Limit, list)
		}
	}
	if ctx.Err() != nil {
		r.giveUp("interrupted")
	}
	r.report.Over = ctx.Err() == nil
	_ = r.write() // its error is kept
	return r.report, errors.Join(ctx.Err(), r.failed)
}

// loadTorch lets Python load PyTorch, so that the system has read its files when the step rates needs them: the first
// time that takes half a minute. The function that it returns ends that.
func loadTorch() (stop func()) {
	cmd := exec.Command("python3", "-c", "import torch")
	group.Own(cmd)
	if cmd.Start() != nil {
		return func() {}
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // whether there is a PyTorch is for the step to find out
		close(ended)
	}()
	return func() {
		group.Kill(cmd)
		<-ended
	}
}

// previous reads the report that is in the folder, if there is one of the same device.
func previous(opt Options) (*Report, error) {
	path := filepath.Join(opt.Dir, jsonFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) && !opt.Failed {
		return nil, nil
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: there is no report in %s whose failed steps could be repeated: run without --only first",
			ErrUsage, opt.Dir)
	}
	if err != nil {
		return nil, err
	}
	var old Report
	err = json.Unmarshal(text, &old)
	if err == nil && old.Schema != schema {
		err = errors.New("it is no report of concord verify")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if old.Device != opt.Device {
		if opt.Failed {
			return nil, fmt.Errorf("%w: %s is a report of %s, not of %s", ErrUsage, path, old.Device, opt.Device)
		}
		return nil, nil
	}
	return &old, nil
}

// open lists the steps that have still to be shown.
func (r *Report) open() (names []string) {
	for i := range r.Steps {
		if s := &r.Steps[i]; s.Open() {
			names = append(names, s.Step)
		}
	}
	return names
}

// setAside copies the report that is in the folder to another name, and takes its logs, since this run replaces both.
func (r *runner) setAside(old *Report) error {
	if old == nil {
		return nil
	}
	r.oldLogs = unpack(filepath.Join(r.opt.Dir, logsFile))
	return file.Replace(filepath.Join(r.opt.Dir, earlierFile), old.writeJSON)
}

// keep puts what an earlier run in the same folder showed of the same device into the report, for the steps that are
// not of this run.
func (r *runner) keep(old *Report) {
	if old == nil {
		return
	}
	if old.Program != r.report.Program || old.About == nil || !sameDevice(&old.About.Info, &r.report.About.Info) {
		r.report.Note = "The report that was in the folder is of another device, driver or program: it is " + earlierFile +
			" now."
		return
	}
	var list []Result
	for _, s := range steps {
		if at := r.report.at(s.Name); at >= 0 {
			list = append(list, r.report.Steps[at])
		} else if at := old.at(s.Name); at >= 0 {
			res := old.Steps[at]
			res.Earlier = true
			list = append(list, res)
			r.logs.keep(r.oldLogs, s.Name)
		}
	}
	r.report.Steps = list
}

// sameDevice reports whether results of one device are those of the other: a name such as cuda:0 can mean a simulated
// one, too.
func sameDevice(a, b *runtime.Info) bool {
	return a.ID == b.ID && a.Name == b.Name && a.UUID == b.UUID && a.Arch == b.Arch &&
		a.DriverVersion == b.DriverVersion &&
		a.Simulated == b.Simulated && a.Fake == b.Fake
}

// at returns the place of a step's result, or -1.
func (r *Report) at(name string) int {
	return slices.IndexFunc(r.Steps, func(s Result) bool { return s.Step == name })
}

func (r *runner) result(s Step) *Result { return &r.report.Steps[r.report.at(s.Name)] }

// giveUp gives the steps that were not begun a reason.
func (r *runner) giveUp(why string) {
	for i := range r.report.Steps {
		if s := &r.report.Steps[i]; s.State == NotRun && !s.Earlier {
			s.Reason = why
		}
	}
}

// mostProcesses bounds how often a step begins anew. One that ends at once would otherwise spend its budget on
// starting.
const mostProcesses = 25

// step runs one step, with as many processes as it takes.
func (r *runner) step(ctx context.Context, number, all int, s Step) {
	res := r.result(s)
	budget := r.clock.budget(time.Now(), s)
	if budget == 0 {
		res.Reason = "no time was left"
		_ = r.write() // its error is kept
		return
	}
	res.Begun, res.Budget = time.Now(), budget.Seconds()
	res.State, res.Reason = Cut, "the run was ended while it was under way" // true if nothing else is written
	p := &process{runner: r, step: s, res: res, number: number, all: all, end: res.Begun.Add(budget),
		log: r.logs.log(s.Name)}
	p.tell("", false)
	for n := 0; n < mostProcesses; n++ {
		how := p.run(ctx)
		res.State, res.Reason = how.State, how.Reason
		unfinished := how.State == Hung || how.State == Crashed || how.State == Lost
		if unfinished {
			res.Endings = append(res.Endings, Ending{how.State, p.doing, p.log.lastWords()})
		}
		// Another process begins behind the check that ended this one. Where there was none, it would end in the same way.
		if !unfinished || ctx.Err() != nil || p.doing == "" && how.State != Lost || time.Until(p.end) < least {
			break
		}
		p.over = append(p.over, p.doing)
	}
	if ctx.Err() != nil && res.State != Done {
		res.State, res.Reason = Cut, "interrupted"
	}
	res.Seconds = time.Since(res.Begun).Seconds()
	r.clock.used(budget, time.Since(res.Begun))
	_ = r.write() // its error is kept
	p.tell("", true)
}
