package devices

// The self-check of a device: copy in, run a kernel with scalar arguments, copy out, and compare
// with the same computation in Go. It takes milliseconds.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/parity"
)

// check is the outcome of one self-check.
type check struct {
	Device         string  `json:"device"`
	Name           string  `json:"name"`
	Result         string  `json:"result"` // PASS, FAIL or SKIP
	Implementation string  `json:"implementation,omitempty"`
	N              int     `json:"n"`
	MS             float64 `json:"ms"` // total time, a compile included
	Error          string  `json:"error,omitempty"`
	Remedy         string  `json:"remedy,omitempty"`
}

// The results of a check.
const (
	pass = "PASS"
	fail = "FAIL"
	skip = "SKIP"
)

// smokeN is prime, so that no group size divides it.
const smokeN = 10007

// smoke runs both ways to have a kernel on a device: the fastest one, which must
// work, and the portable text through the device's compiler, which may be absent.
func smoke(ctx context.Context, s *runtime.Session, device string) []check {
	dev, err := s.Open(ctx, device)
	if err != nil {
		return []check{outcome(check{Device: device, Name: "open", Result: pass}, err)}
	}
	defer dev.Close()
	fast := runCheck(ctx, dev, "saxpy", runtime.ProgramOptions{})
	if device == "cpu:reference" || !isNative(fast.Implementation) {
		return []check{fast}
	}
	portable := runCheck(ctx, dev, "saxpy compiled", runtime.ProgramOptions{Implementation: runtime.Portable})
	return []check{fast, portable}
}

// isNative reports whether an implementation is the device's own, in which case its compiler has
// not been tried.
func isNative(implementation string) bool {
	return implementation != "" && implementation != "c++" && implementation != "opencl"
}

func runCheck(ctx context.Context, dev *runtime.Device, name string, opt runtime.ProgramOptions) check {
	start := time.Now()
	c := check{Device: dev.String(), Name: name, N: smokeN, Result: pass}
	var err error
	c.Implementation, err = saxpyCheck(ctx, dev, opt)
	c.MS = ui.Milliseconds(time.Since(start))
	if opt.Implementation == runtime.Portable && errors.Is(err, runtime.ErrUnsupported) {
		c.Result, c.Error = skip, err.Error() // no compiler: a missing requirement, not a failure
		return c
	}
	return outcome(c, err)
}

func outcome(c check, err error) check {
	if err != nil {
		c.Result, c.Error, c.Remedy = fail, err.Error(), runtime.Remedy(err)
		if b, ok := errors.AsType[*runtime.BuildError](err); ok {
			c.Error += "\n" + b.Log
		}
	}
	return c
}

// saxpyCheck computes with whole numbers, which are exact in every rounding mode.
func saxpyCheck(ctx context.Context, dev *runtime.Device,
	opt runtime.ProgramOptions) (implementation string, err error) {
	k, prog, err := parity.Kernel(ctx, dev, "saxpy", "saxpy", opt)
	if err != nil {
		return "", err
	}
	defer prog.Close()
	const a = float32(3)
	x, y := make([]float32, smokeN), make([]float32, smokeN)
	for i := range x {
		x[i], y[i] = float32(i%1009), float32(i%53)-26
	}
	bx, err := runtime.Upload(ctx, dev, x)
	if err != nil {
		return "", err
	}
	defer bx.Close()
	by, err := runtime.Upload(ctx, dev, y)
	if err != nil {
		return "", err
	}
	defer by.Close()
	grid, err := parity.Grid(k, smokeN)
	if err != nil {
		return "", err
	}
	rec, err := dev.Stream().Run(ctx, k, grid, a, bx, by, uint64(smokeN))
	if err != nil {
		return "", err
	}
	got := make([]float32, smokeN)
	if err := runtime.Read(ctx, by, got); err != nil {
		return "", err
	}
	for i := range got {
		if want := a*x[i] + y[i]; got[i] != want {
			return rec.Implementation, fmt.Errorf("%s: saxpy of %d: element %d is %v, not %v", dev, smokeN, i, got[i], want)
		}
	}
	return rec.Implementation, nil
}
