package parity

// The order of a run: choose devices and cases, build the programs, then run one case at a time on
// the reference and on all other devices.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// Reference is the device whose results the others are compared with.
const Reference = "cpu:reference"

// The verdicts of a case.
const (
	Pass = "pass"
	Fail = "fail"
	Skip = "skip"
)

// Result is the verdict on one case on one device. MaxError and Tolerance are
// those of the element nearest to its bound.
type Result struct {
	Device    string  `json:"device"` // "cpu:0"; "cpu:0 (compiled)" for its portable text, "cuda:0 (native)" for its library
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
	Session  *runtime.Session         // nil: the default one
	Devices  []string                 // names for Open; none: every device but the reference
	Kernels  []string                 // families or kernels; none: all
	Keep     func(*kernels.Case) bool // filters the cases; nil: all
	Progress func(done, total int, last Result)
}

// Run runs the chosen cases on the chosen devices. Results come in the order of the catalog. An
// error means that the run is not possible: a name is wrong, a device does not open, ctx is done. A
// wrong result of a kernel is a Result, not an error.
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
	cases, err := choose(opt.Kernels)
	if err != nil {
		return nil, err
	}
	if opt.Keep != nil {
		cases = slices.DeleteFunc(cases, func(c kernels.Case) bool { return !opt.Keep(&c) })
	}
	judge, err := s.Open(ctx, Reference)
	if err != nil {
		return nil, err
	}
	defer judge.Close()
	subjects, err := openSubjects(ctx, s, opt.Devices)
	defer closeSubjects(subjects)
	if err != nil {
		return nil, err
	}
	for _, sub := range subjects {
		if err := sub.build(ctx, cases); err != nil {
			return nil, err
		}
	}
	return runCases(ctx, &subject{name: Reference, dev: judge}, subjects, cases, opt.Progress)
}

func runCases(ctx context.Context, judge *subject, subjects []*subject, cases []kernels.Case, progress func(int, int, Result)) ([]Result, error) {
	total := 0
	for _, sub := range subjects {
		for i := range cases {
			if sub.wants(&cases[i]) {
				total++
			}
		}
	}
	results := make([]Result, 0, total)
	for i := range cases {
		c := &cases[i]
		want, err := judge.run(ctx, c)
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, fmt.Errorf("%s: %w", c.Name(), err)
		}
		for _, sub := range subjects {
			if !sub.wants(c) {
				continue
			}
			r := sub.judge(ctx, c, want)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			results = append(results, r)
			if progress != nil {
				progress(len(results), total, r)
			}
		}
	}
	return results, nil
}

// choose lists the cases of families or kernels by name.
func choose(names []string) ([]kernels.Case, error) {
	var all []kernels.Case
	found := map[string]bool{}
	for _, f := range kernels.Families() {
		for _, c := range kernels.Cases(f.ID) {
			match := len(names) == 0
			for _, name := range names {
				if name == f.ID || name == c.Kernel || name == f.ID+"/"+c.Kernel {
					match, found[name] = true, true
				}
			}
			if match {
				all = append(all, c)
			}
		}
	}
	for _, name := range names {
		if !found[name] {
			var ids []string
			for _, f := range kernels.Families() {
				ids = append(ids, f.ID)
			}
			return nil, fmt.Errorf("parity: no kernel %q; the families are %s: %w", name, strings.Join(ids, ", "), runtime.ErrInvalidArgument)
		}
	}
	return all, nil
}

// subject is one implementation on one device.
type subject struct {
	name   string
	dev    *runtime.Device
	impl   runtime.Implementation
	some   driver.Natives // if set, only the kernels that it has are tested
	absent error          // why the subject cannot run at all
	broken map[*source.Unit]error

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
		natives, has := d.Driver().(driver.Natives)
		compiler, compiles := d.Driver().(driver.Compiler)
		all := has && hasAll(d, natives)
		first := &subject{name: d.String(), dev: d, impl: runtime.Portable}
		if all {
			first.impl = runtime.Native
		}
		subjects = append(subjects, first)
		if !has || !compiles || d.String() == Reference {
			continue
		}
		again, err := s.Open(ctx, name)
		if err != nil {
			return subjects, err
		}
		second := &subject{name: d.String() + " (compiled)", dev: again, impl: runtime.Portable}
		if !all {
			second.name, second.impl, second.some = d.String()+" (native)", runtime.Native, natives
		} else if _, err := compiler.Identity(ctx); err != nil {
			second.absent = err
		}
		subjects = append(subjects, second)
	}
	return subjects, nil
}

// hasAll reports whether a device has an implementation of its own of every kernel of
// the catalog.
func hasAll(d *runtime.Device, natives driver.Natives) bool {
	for _, f := range kernels.Families() {
		u, err := kernels.Unit(f.ID, d.Features())
		if err != nil {
			return false
		}
		for _, k := range u.Kernels() {
			if _, ok := natives.Native(u, k.Name); !ok {
				return false
			}
		}
	}
	return true
}

// wants reports whether the subject runs a case.
func (sub *subject) wants(c *kernels.Case) bool {
	if sub.some == nil {
		return true
	}
	u, err := sub.unit(c)
	if err != nil {
		return false
	}
	_, ok := sub.some.Native(u, c.Kernel)
	return ok
}

func closeSubjects(subjects []*subject) {
	for _, sub := range subjects {
		for _, p := range sub.programs {
			_ = p.Close()
		}
		_ = sub.dev.Close() // its errors are in the results
	}
}

// builders is the number of programs that are built at once: compilers are processes.
const builders = 2

// build builds every program that the cases need, several at once. Errors are kept for the verdicts
// of the cases.
func (sub *subject) build(ctx context.Context, cases []kernels.Case) error {
	sub.broken = map[*source.Unit]error{}
	if sub.absent != nil || sub.impl == runtime.Native {
		return nil
	}
	var units []*source.Unit
	for i := range cases {
		if u, err := sub.unit(&cases[i]); err == nil && !slices.Contains(units, u) {
			units = append(units, u)
		}
	}
	errs := make([]error, len(units))
	sub.programs = make([]*runtime.Program, len(units))
	var g errgroup.Group
	g.SetLimit(builders)
	if sub.dev.Info().Simulated {
		g.SetLimit(1) // oclgrind crashes when two programs are built at once
	}
	for i, u := range units {
		g.Go(func() error {
			sub.programs[i], errs[i] = sub.dev.Program(ctx, u, runtime.ProgramOptions{Implementation: sub.impl})
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
	return kernels.Unit(c.Family, sub.dev.Features(), c.Defines...)
}

// judge runs a case and compares the results with those of the reference.
func (sub *subject) judge(ctx context.Context, c *kernels.Case, want *outcome) Result {
	r := Result{Device: sub.name, Kernel: c.Family + "/" + c.Kernel, DType: c.DType, Shape: c.Shape, Verdict: Pass}
	if reason := sub.lacks(c); reason != "" {
		r.Verdict, r.Reason = Skip, reason
		return r
	}
	got, err := sub.run(ctx, c)
	if sub.some != nil && errors.Is(err, runtime.ErrUnsupported) { // the native implementation leaves this case to the portable text
		r.Verdict, r.Reason = Skip, err.Error()
		return r
	}
	if err != nil {
		r.Verdict, r.Reason = Fail, err.Error()
		return r
	}
	worst := 0.0 // error as a share of what is allowed; 0/0 compares false and changes nothing
	for arg := range c.Args {
		if got.numbers[arg] == nil {
			continue
		}
		v := c.Compare(arg, want.before, want.numbers[arg], got.numbers[arg])
		if c.Bound == nil && wide(c.Args[arg].Type) && !slices.Equal(want.bytes[arg], got.bytes[arg]) {
			v.OK = false
		}
		if share := v.MaxError / v.Tolerance; !v.OK || share >= worst {
			worst, r.MaxError, r.Tolerance = share, v.MaxError, v.Tolerance
		}
		if !v.OK {
			r.Verdict, r.Reason = Fail, fmt.Sprintf("argument %d: %v (%s)", arg, v, c.Tolerance)
			return r
		}
	}
	return r
}

// wide reports whether float64 cannot hold every value of a type.
func wide(typ string) bool { return typ == "i64" || typ == "u64" }

// lacks returns the requirement of a case that the device does not meet, or "".
func (sub *subject) lacks(c *kernels.Case) string {
	has := sub.dev.Features()
	switch {
	case sub.absent != nil:
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
