package verify

// The steps that run kernels of the catalog beside the reference.

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/parity"
)

// firsts are kernels with which a device shows that it works at all: element by element, a reduction, local memory,
// barriers, a function, and many registers.
var firsts = []string{"saxpy", "reduce", "transpose", "softmax", "gemm"}

// stepFirst runs one case of each. Afterwards the libraries are open that a device opens when they are needed, such as
// the vendor's BLAS.
func stepFirst(ctx context.Context, e *Env, dev *runtime.Device) error {
	if err := judgeable(dev); err != nil {
		return err
	}
	for _, id := range firsts {
		f, ok := kernels.Find(id)
		if !ok {
			return fmt.Errorf("there is no family %s", id)
		}
		best := representative(f)
		seen := false
		if err := e.cases(ctx, f, func(c *kernels.Case) bool {
			mine := !seen && c.DType == "f32" && best[kind(c)] == caseName(c)
			seen = seen || mine
			return mine
		}); err != nil {
			return err
		}
	}
	if l, ok := dev.Driver().(driver.LibraryLister); ok {
		e.out.put(record{Libraries: l.Libraries()})
	}
	return nil
}

// stepCatalog runs one case of each kernel and type.
func stepCatalog(ctx context.Context, e *Env, dev *runtime.Device) error {
	return e.catalog(ctx, dev, true)
}

// stepParity runs the others.
func stepParity(ctx context.Context, e *Env, dev *runtime.Device) error {
	return e.catalog(ctx, dev, false)
}

// judgeable refuses the judge itself.
func judgeable(dev *runtime.Device) error {
	if dev.Info().ID == parity.Reference {
		return skipf("%s is what others are compared with", dev)
	}
	return nil
}

// catalog runs the representative cases of all families, or the others. The device stays open, since opening a card
// takes a tenth of a second and more.
func (e *Env) catalog(ctx context.Context, dev *runtime.Device, representatives bool) error {
	if err := judgeable(dev); err != nil {
		return err
	}
	for _, f := range kernels.Families() {
		best := representative(f)
		err := e.cases(ctx, f, func(c *kernels.Case) bool { return (best[kind(c)] == caseName(c)) == representatives })
		if err != nil {
			return err
		}
	}
	return nil
}

// kind is what the catalog has one representative case of.
func kind(c *kernels.Case) string { return fmt.Sprint(c.Kernel, c.DType, c.Defines) }

// caseName names a case as the results of parity do.
func caseName(c *kernels.Case) string {
	return c.Family + "/" + c.Kernel + " " + c.DType + " " + c.Shape
}

// buildName names the compilation of the programs of a family for a type.
func buildName(family, dtype string) string { return "compile " + family + " " + dtype }

// enough is the number of elements above which a case says nothing new, and takes long on the reference.
const enough = 1 << 16

// representative returns the name of the case of each kernel and type that shows the most: the largest that is not too
// large.
func representative(f *kernels.Family) map[string]string {
	names, sizes := map[string]string{}, map[string]int{}
	for _, c := range kernels.Cases(f.ID) {
		n := 0
		for _, a := range c.Args {
			n += a.Len
		}
		k := kind(&c)
		old, ok := sizes[k]
		if !ok || (n <= enough) != (old <= enough) && n <= enough || n <= enough && n > old || old > enough && n < old {
			names[k], sizes[k] = caseName(&c), n
		}
	}
	return names
}

// builders is the number of programs that are compiled at once: where a process has ended, one, so that the program
// that ended it is known.
func (e *Env) builders() int {
	if len(e.done) > 0 {
		return 1
	}
	return 0
}

// cases runs those cases of a family that keep chooses.
func (e *Env) cases(ctx context.Context, f *kernels.Family, keep func(*kernels.Case) bool) error {
	if e.over(ctx) {
		return nil
	}
	start := time.Now()
	opt := parity.Options{Session: e.session, Devices: []string{e.Device}, Kernels: []string{f.ID}, Builders: e.builders(),
		Keep: func(c *kernels.Case) bool {
			return keep(c) && e.wanted(caseName(c)) && e.wanted(buildName(c.Family, c.DType))
		},
		Before: func(next parity.Result) {
			start = time.Now()
			if next.Verdict == parity.Build {
				e.doing(buildName(next.Kernel, next.DType))
			} else {
				e.doing(next.Kernel + " " + next.DType + " " + next.Shape)
			}
		},
		Progress: func(_, _ int, last parity.Result) {
			name := last.Kernel + " " + last.DType + " " + last.Shape
			if _, form, found := strings.Cut(last.Device, " ("); found {
				name += " (" + form
			}
			c := Check{Name: name, Verdict: last.Verdict, Reason: last.Reason, Seconds: time.Since(start).Seconds()}
			e.out.put(record{Check: &c})
			e.lost = e.lost || strings.Contains(last.Reason, runtime.ErrDeviceLost.Error())
		}}
	_, err := parity.Run(ctx, opt)
	return err
}
