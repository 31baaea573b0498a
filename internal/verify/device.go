package verify

// The step that describes the device and the machine.

import (
	"context"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// stepDevice opens the device, copies there and back, and tells what is known.
func stepDevice(ctx context.Context, e *Env, dev *runtime.Device) error {
	info := dev.Info()
	about := About{Info: info, System: goruntime.GOOS + " " + goruntime.GOARCH, Processor: processor(),
		Cores: goruntime.NumCPU()}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		about.System += " " + strings.TrimSpace(string(release))
	}
	e.out.put(record{About: &about})
	e.doing("looking for the libraries")
	probes, err := e.session.Discover(ctx)
	if err != nil {
		return err
	}
	for _, p := range probes {
		if p.Backend != info.Backend {
			continue
		}
		about.Libraries = p.Libraries
		e.fact("driver", "%s", p.DriverVersion)
		e.fact("runtime", "%s", p.RuntimeVersion)
		e.fact("compiler", "%s", p.CompilerVersion)
		for _, line := range p.Tried {
			e.fact("looked for", "%s", line)
		}
	}
	e.out.put(record{About: &about})
	if info.FreeMemoryKnown {
		e.fact("memory free", "%s of %s", gib(info.FreeMemory), gib(info.TotalMemory))
	}
	if info.CachesKnown || info.L2Cache > 0 || info.MemoryCache > 0 {
		e.fact("bytes of caches", "L1 %d, L2 %d, L3 %d, of an unnamed level %d; 0 is none or unknown", info.L1Cache,
			info.L2Cache, info.L3Cache, info.MemoryCache)
	}
	e.fact("threads of Go", "%d", goruntime.GOMAXPROCS(0))
	e.check(ctx, "open, write and read", func(ctx context.Context) error { return there(ctx, dev) })
	e.check(ctx, "a compiler", func(ctx context.Context) error {
		err := compiles(ctx, dev)
		if info.Kind == driver.CPU { // it computes much without one
			return err
		}
		if s, ok := errors.AsType[skip](err); ok {
			err = errors.New(string(s))
		}
		return err
	})
	if e.tools.Doctor != nil {
		e.check(ctx, "doctor", func(ctx context.Context) error { return e.tools.Doctor(ctx, info.ID, os.Stderr) })
	}
	return nil
}

// compiles returns why the device compiles no programs, as the error of a check that does not apply, or nil.
func compiles(ctx context.Context, dev *runtime.Device) error {
	c, ok := dev.Driver().(driver.Compiler)
	if !ok {
		return skipf("%s compiles no programs", dev)
	}
	if _, err := c.Identity(ctx); errors.Is(err, runtime.ErrUnsupported) {
		return skipf("there is no compiler on this machine: %s", reason(err))
	} else if err != nil {
		return err
	}
	return nil
}

// there copies numbers to the device and back.
func there(ctx context.Context, dev *runtime.Device) error {
	data := make([]uint32, 100_003)
	for i := range data {
		data[i] = uint32(i) * 2654435761
	}
	b, err := runtime.Upload(ctx, dev, data)
	if err != nil {
		return err
	}
	defer b.Close()
	back := make([]uint32, len(data))
	if err := runtime.Read(ctx, b, back); err != nil {
		return err
	}
	if !slices.Equal(data, back) {
		return fmt.Errorf("%d numbers are not the same after a copy there and back", len(data))
	}
	return nil
}

// processor names the machine's processor.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return goruntime.GOARCH
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return goruntime.GOARCH
}
