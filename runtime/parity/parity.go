package parity

// The order of a run: choose devices and cases, build the programs, then run one case at a time on
// the reference and on all other devices.

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// Reference is the device whose results the others are compared with.
const Reference = "cpu:reference"

// The verdicts of a case, and Build, which is what Options.Before gets for a program.
const (
	Pass  = "pass"
	Fail  = "fail"
	Skip  = "skip"
	Build = "build"
)

// Result is the verdict on one case on one device. MaxError and Tolerance are
// those of the element nearest to its bound.
type Result struct {
	// "cpu:0"; "cpu:0 (compiled)" for its portable text, "cuda:0 (native)" for its library
	Device    string  `json:"device"`
	Kernel    string  `json:"kernel"` // "family/kernel"
	DType     string  `json:"dtype"`
	Shape     string  `json:"shape"`
	MaxError  float64 `json:"max_error"`
	Tolerance float64 `json:"tolerance"`
	Verdict   string  `json:"verdict"`
	Reason    string  `json:"reason,omitempty"` // of a failed or skipped case
}

// Options choose the cases and devices of a run. The zero value chooses all of them.
type Options struct {
	Session *runtime.Session // nil: the default one
	Devices []string         // names for Open; none: every device but the reference
	Kernels []string         // families or kernels; none: all
	// run instead of those of the catalog, whatever Kernels says; nil: those of the catalog
	Cases []kernels.Case
	Keep  func(*kernels.Case) bool // filters the cases; nil: all
	// Forms filters the devices by the names that results have: "cpu:0", "cpu:0 (compiled)". nil: all forms of Devices.
	Forms func(device string) bool
	// Builders is the number of programs that are built at once; 0: as many as there are processors.
	Builders int
	// Before is called before a case runs, also on the reference, with a Result that has no verdict yet, and before a
	// program is built, with the verdict Build and no shape. So a caller can name what never ends, or ends the process.
	// Calls come one at a time, though two programs may be built at once. nil: nobody wants to know.
	Before   func(next Result)
	Progress func(done, total int, last Result) // is called after each case; nil: nobody wants to know
}

// Run runs the chosen cases on the chosen devices, after it has built all their programs. Results come in the order
// of the catalog. An error means that the run is not possible: a name is wrong, a device does not open, or ctx is
// done, which ends a build or a case. The results up to then come with it. A wrong result of a kernel, and a program
// that cannot be built, is a Result, not an error.
func Run(ctx context.Context, opt Options) ([]Result, error) {
	if ctx == nil {
		return nil, fmt.Errorf("parity: context is nil: %w", runtime.ErrInvalidArgument)
	}
	s := opt.Session
	if s == nil {
		var err error
		if s, err = runtime.Default(); err != nil {
			return nil, err
		}
	}
	cases := slices.Clone(opt.Cases)
	if cases == nil {
		var err error
		if cases, err = choose(opt.Kernels); err != nil {
			return nil, err
		}
	}
	if opt.Keep != nil {
		cases = slices.DeleteFunc(cases, func(c kernels.Case) bool { return !opt.Keep(&c) })
	}
	judge, err := s.Open(ctx, Reference)
	if err != nil {
		return nil, err
	}
	defer judge.Close()
	natives, _ := judge.Driver().(driver.Natives)
	subjects, err := openSubjects(ctx, s, opt.Devices)
	defer closeSubjects(subjects)
	if err != nil {
		return nil, err
	}
	before := func(Result) {}
	if opt.Before != nil {
		var mu sync.Mutex // programs are built by several goroutines
		before = func(r Result) {
			mu.Lock()
			defer mu.Unlock()
			opt.Before(r)
		}
	}
	chosen := slices.Clone(subjects)
	if opt.Forms != nil {
		chosen = slices.DeleteFunc(chosen, func(sub *subject) bool { return !opt.Forms(sub.name) })
	}
	for _, sub := range chosen {
		if err := sub.build(ctx, cases, opt.Builders, before); err != nil {
			return nil, err
		}
	}
	reference := &subject{name: Reference, dev: judge, natives: natives}
	return runCases(ctx, reference, chosen, cases, before, opt.Progress)
}

func runCases(ctx context.Context, judge *subject, subjects []*subject, cases []kernels.Case,
	before func(Result), progress func(int, int, Result)) ([]Result, error) {
	total := 0
	for _, sub := range subjects {
		for i := range cases {
			if _, wanted := sub.how(&cases[i]); wanted {
				total++
			}
		}
	}
	results := make([]Result, 0, total)
	for i := range cases {
		c := &cases[i]
		before(judge.result(c))
		want, broken := judge.run(ctx, c)
		if ctx.Err() != nil {
			return results, ctx.Err()
		}
		for _, sub := range subjects {
			if _, wanted := sub.how(c); !wanted {
				continue
			}
			before(sub.result(c))
			r := sub.judge(ctx, c, want, broken)
			if ctx.Err() != nil {
				return results, ctx.Err()
			}
			results = append(results, r)
			if progress != nil {
				progress(len(results), total, r)
			}
		}
	}
	return results, nil
}

// choose lists the cases of the families and kernels with the given names. No other family builds its cases.
func choose(names []string) ([]kernels.Case, error) {
	var all []kernels.Case
	var ids []string
	found := map[string]bool{}
	for _, f := range kernels.Families() {
		ids = append(ids, f.ID)
		var chosen []string
		for _, k := range f.Kernels {
			match := len(names) == 0
			for _, name := range names {
				if name == f.ID || name == k || name == f.ID+"/"+k {
					match, found[name] = true, true
				}
			}
			if match {
				chosen = append(chosen, k)
			}
		}
		if len(chosen) == 0 {
			continue
		}
		cases := kernels.Cases(f.ID)
		if err := judged(f, cases); err != nil {
			return nil, err
		}
		all = append(all, slices.DeleteFunc(cases, func(c kernels.Case) bool {
			return !slices.Contains(chosen, c.Kernel)
		})...)
	}
	for _, name := range names {
		if !found[name] {
			return nil, fmt.Errorf("parity: no kernel %q; the families are %s: %w", name, strings.Join(ids, ", "),
				runtime.ErrInvalidArgument)
		}
	}
	return all, nil
}

// judged returns an error that names the first kernel or type of a family that has no case, or nil.
func judged(f *kernels.Family, cases []kernels.Case) error {
	missing := func(what string) error {
		return fmt.Errorf("parity: family %s has no case of %s, which nothing would judge: %w", f.ID, what,
			runtime.ErrInvalidArgument)
	}
	for _, k := range f.Kernels {
		if !slices.ContainsFunc(cases, func(c kernels.Case) bool { return c.Kernel == k }) {
			return missing("its kernel " + k)
		}
	}
	for _, name := range f.Defines {
		if name != "T" && name != "FROM" && name != "TO" {
			continue
		}
		for _, t := range f.Types {
			d := source.Define{Name: name, Value: t}
			if !slices.ContainsFunc(cases, func(c kernels.Case) bool { return slices.Contains(c.Defines, d) }) {
				return missing(name + "=" + t)
			}
		}
	}
	return nil
}

// form is the choice of implementations with which a subject runs the kernels of a device.
type form uint8

const (
	usual    form = iota // native implementations that are preferred to the portable text, and the portable text otherwise
	compiled             // the portable text of kernels with a preferred native implementation
	native               // native implementations of some launches, by a library
)

// subject is one form of one device.
type subject struct {
	name    string
	dev     *runtime.Device
	form    form
	natives driver.Natives // nil: portable text only
	absent  error          // why the device cannot compile
	broken  map[*source.Unit]error

	programs []*runtime.Program // kept open, so that the cases find them loaded
}

// openSubjects opens the devices. A device with native implementations that also builds portable
// programs gives two subjects. The native subject is first if it covers the whole catalog, and the
// portable one otherwise.
func openSubjects(ctx context.Context, s *runtime.Session, names []string) ([]*subject, error) {
	if len(names) == 0 {
		infos, err := s.Devices(ctx)
		if err != nil {
			return nil, err
		}
		for _, i := range infos {
			if i.ID != Reference && !i.Fake {
				names = append(names, i.ID)
			}
		}
	}
	var subjects []*subject
	for _, name := range names {
		d, err := s.Open(ctx, name)
		if err != nil {
			return subjects, err
		}
		if cause := d.Fallback(); cause != nil { // results of another device must not appear under this name
			return append(subjects, &subject{dev: d}), fmt.Errorf("parity: %s did not open: %w", name, cause)
		}
		first := &subject{name: d.String(), dev: d}
		subjects = append(subjects, first)
		natives, has := d.Driver().(driver.Natives)
		compiler, compiles := d.Driver().(driver.Compiler)
		owns := has && prefersOwn(d, natives)
		if owns {
			first.natives = natives
		}
		if !has || !compiles || d.String() == Reference {
			continue
		}
		again, err := s.Open(ctx, name)
		if err != nil {
			return subjects, err
		}
		second := &subject{name: d.String() + " (native)", dev: again, form: native, natives: natives}
		if owns {
			second.name, second.form = d.String()+" (compiled)", compiled
			_, second.absent = compiler.Identity(ctx)
			first.absent = second.absent
		}
		subjects = append(subjects, second)
	}
	return subjects, nil
}

// prefersOwn reports whether a device has native implementations that run every launch of some
// kernel of the catalog, as a CPU has. Native implementations for some launches, by a library, do
// not count.
func prefersOwn(d *runtime.Device, natives driver.Natives) bool {
	for _, f := range kernels.Families() {
		u, err := kernels.Unit(f.ID, d.Features())
		if err != nil {
			continue
		}
		for _, k := range u.Kernels() {
			own, ok := natives.Native(u, k.Name)
			if _, selective := own.(driver.Selective); ok && !selective {
				return true
			}
		}
	}
	return false
}

// how returns the implementation for running a case, and whether the subject runs the case.
func (sub *subject) how(c *kernels.Case) (impl runtime.Implementation, wanted bool) {
	own := false
	if sub.natives != nil {
		if u, err := sub.unit(c); err == nil {
			_, own = sub.natives.Native(u, c.Kernel)
		}
	}
	switch {
	case sub.form == compiled:
		return runtime.Portable, own
	case own:
		return runtime.Native, true
	}
	return runtime.Portable, sub.form == usual
}

func closeSubjects(subjects []*subject) {
	for _, sub := range subjects {
		for _, p := range sub.programs {
			_ = p.Close()
		}
		_ = sub.dev.Close() // its errors are in the results
	}
}

// build builds every program that the cases need, several at once. Errors are kept for the verdicts
// of the cases.
func (sub *subject) build(ctx context.Context, cases []kernels.Case, builders int, before func(Result)) error {
	sub.broken = map[*source.Unit]error{}
	if sub.absent != nil {
		return nil
	}
	var units []*source.Unit
	var nexts []Result
	for i := range cases {
		if impl, wanted := sub.how(&cases[i]); !wanted || impl == runtime.Native {
			continue
		}
		if u, err := sub.unit(&cases[i]); err == nil && !slices.Contains(units, u) {
			units = append(units, u)
			nexts = append(nexts, Result{Device: sub.name, Kernel: cases[i].Family, DType: cases[i].DType, Verdict: Build})
		}
	}
	errs := make([]error, len(units))
	sub.programs = make([]*runtime.Program, len(units))
	var g errgroup.Group
	if builders <= 0 { // compilers are processes, or use one processor
		builders = max(2, goruntime.GOMAXPROCS(0))
	}
	g.SetLimit(builders)
	if sub.dev.Info().Simulated {
		g.SetLimit(1) // oclgrind crashes when two programs are built at once
	}
	for i, u := range units {
		g.Go(func() error {
			if errs[i] = ctx.Err(); errs[i] != nil {
				return nil
			}
			before(nexts[i])
			sub.programs[i], errs[i] = sub.dev.Program(ctx, u, runtime.ProgramOptions{Implementation: runtime.Portable})
			return nil
		})
	}
	_ = g.Wait() // no builder returns an error
	for i, u := range units {
		if errs[i] != nil {
			sub.broken[u] = errs[i]
		}
	}
	return ctx.Err()
}

func (sub *subject) unit(c *kernels.Case) (*source.Unit, error) {
	return chosen(sub.dev, c.Family, c.Defines)
}

// result returns the result of a case without a verdict.
func (sub *subject) result(c *kernels.Case) Result {
	return Result{Device: sub.name, Kernel: c.Family + "/" + c.Kernel, DType: c.DType, Shape: c.Shape}
}

// judge runs a case and compares its result with the reference's, want. broken is the reference's error,
// if it failed.
func (sub *subject) judge(ctx context.Context, c *kernels.Case, want [][]byte, broken error) Result {
	r := sub.result(c)
	r.Verdict = Pass
	if !slices.ContainsFunc(c.Args, func(a kernels.Arg) bool { return a.Dir == kernels.Out || a.Dir == kernels.InOut }) {
		r.Verdict, r.Reason = Fail, "the case has no Out or InOut argument, so that there is nothing to compare"
		return r
	}
	if broken != nil {
		r.Verdict, r.Reason = Fail, "the reference failed: "+broken.Error()
		return r
	}
	if reason := sub.lacks(c); reason != "" {
		r.Verdict, r.Reason = Skip, reason
		return r
	}
	got, err := sub.run(ctx, c)
	if sub.form == native && errors.Is(err, runtime.ErrUnsupported) { // the portable text runs such launches
		r.Verdict, r.Reason = Skip, err.Error()
		return r
	}
	// Every kernel of the catalog fits in 32 KiB, which tests/compilers checks, but Mesa's rusticl, which has no more,
	// counts some twice.
	if errors.Is(err, driver.ErrLocalMemory) && sub.dev.Info().LocalMemory <= 32<<10 {
		r.Verdict, r.Reason = Skip, err.Error()
		return r
	}
	if err != nil {
		r.Verdict, r.Reason = Fail, err.Error()
		return r
	}
	plant(c, got)
	arg, v := c.Judge(want, got)
	if r.MaxError, r.Tolerance = v.MaxError, v.Tolerance; !v.OK {
		r.Verdict, r.Reason = Fail, fmt.Sprintf("argument %d: %v (%s)", arg, v, c.Tolerance)
	}
	return r
}

// lacks returns the requirement of a case that the device does not meet, or "".
func (sub *subject) lacks(c *kernels.Case) string {
	has := sub.dev.Features()
	impl, _ := sub.how(c)
	switch {
	case impl == runtime.Portable && sub.absent != nil:
		return sub.absent.Error()
	case c.Needs.FP64 && !has.FP64:
		return "the device has no double precision"
	case c.Needs.FP16 && !has.FP16:
		return "the device has no half precision"
	case c.Needs.Int64Atomic && !has.Int64Atomic:
		return "the device has no 64-bit atomics"
	}
	return ""
}

// errGuard is the error for a write outside a buffer.
var errGuard = errors.New("wrote outside of a buffer")
