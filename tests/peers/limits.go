package main

// The limits of the machine, measured in the same run, and the choice of the fastest kernels of
// OpenBLAS.

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
)

// limits are medians of hand-written loops.
type limits struct {
	Peak figure `json:"fma_gflops"` // multiply-adds of float in registers; of double it is half
	Read figure `json:"read_gbps"`
	Copy figure `json:"copy_gbps"` // read and written
}

// limitBytes is the length of the arrays: 256 MiB, several times the caches.
const limitBytes = 256 << 20

// alloc allocates memory like that of kernels and fills it.
func (b *bench) alloc(n int) (data []byte, free func(), err error) {
	m, err := b.device.Alloc(int64(n), driver.OnDevice)
	if err != nil {
		return nil, nil, err
	}
	data, _ = b.device.(driver.HostVisible).HostBytes(m)
	randomize(data, false)
	return data, func() { _ = b.device.Free(m) }, nil // the process ends soon
}

func (b *bench) measureLimits() error {
	nan := figure(math.NaN())
	b.limits = limits{nan, nan, nan}
	if !haveLoops {
		return nil
	}
	from, free, err := b.alloc(limitBytes)
	if err != nil {
		return err
	}
	defer free()
	to, free, err := b.alloc(limitBytes)
	if err != nil {
		return err
	}
	defer free()
	flops := peakLoop(b.threads, b.features.lanes())
	times, err := rounds(time.Second, []contender{
		inProcess("", "", func() error { _ = peakLoop(b.threads, b.features.lanes()); return nil }),
		inProcess("", "", func() error { readLoop(b.threads, from); return nil }),
		inProcess("", "", func() error { copyLoop(b.threads, from, to); return nil }),
	})
	if err != nil {
		return err
	}
	b.limits = limits{figure(flops / quantile(times[0], 0.5)), figure(limitBytes / quantile(times[1], 0.5)),
		figure(2 * limitBytes / quantile(times[2], 0.5))}
	b.say("limits, by hand: multiply-adds %v GFLOP/s (f32), reading %v GB/s, copying %v GB/s", b.limits.Peak,
		b.limits.Read, b.limits.Copy)
	return nil
}

// peak is the contender that does the largest possible number of operations; size is the size of a
// number in bytes.
func (b *bench) peak(size int) contender {
	c := inProcess("multiply-adds by hand", "", func() error { _ = peakLoop(b.threads, b.features.lanes()); return nil })
	if !haveLoops {
		c.sample, c.setting = nil, "loops are for cgo on Linux"
		return c
	}
	c.work = peakLoop(1, b.features.lanes()) * float64(b.threads) * 4 / float64(size)
	return c
}

// loop returns a contender for a hand-written loop.
func (b *bench) loop(f func()) contender {
	c := inProcess("by hand", "", func() error { f(); return nil })
	if !haveLoops {
		c.sample, c.setting = nil, "loops are for cgo on Linux"
	}
	return c
}

// blasThreadTimeout lets OpenBLAS' threads sleep after spinning for 2^20 clocks, not 2^26, so that
// they do not disturb the next measurement. Consecutive calls are closer together than that.
const blasThreadTimeout = "OPENBLAS_THREAD_TIMEOUT=20"

const blasLibrary = "libopenblas.so.0"

// probed is the result of a process that tries kernels.
type probed struct {
	Core         string
	Sgemm, Dgemm float64 // GFLOP/s
}

// openPeers opens OpenBLAS with its fastest kernels. Each set of kernels is tried in a separate
// process, because kernels that the processor does not support end the process.
func (b *bench) openPeers() error {
	name, value, _ := strings.Cut(blasThreadTimeout, "=")
	os.Setenv(name, value)
	cores := b.features.blasCores()
	if core := os.Getenv("OPENBLAS_CORETYPE"); core != "" {
		cores = []string{core}
	}
	best, rate := "", 0.0
	b.noBLAS = "apt-get install libopenblas0-pthread"
	for _, core := range cores {
		p, err := b.tryCore(core)
		if err != nil {
			b.noBLAS = err.Error()
			b.say("no OpenBLAS as %q: %v", core, err)
			continue
		}
		b.say("OpenBLAS as %s: sgemm %.0f, dgemm %.0f GFLOP/s", p.Core, p.Sgemm, p.Dgemm)
		if r := math.Sqrt(p.Sgemm * p.Dgemm); r > rate {
			best, rate = core, r
		}
	}
	if rate == 0 {
		return b.ctx.Err()
	}
	if best != "" {
		os.Setenv("OPENBLAS_CORETYPE", best)
	}
	core, err := openBLAS(blasLibrary, b.threads)
	if err != nil {
		b.noBLAS = err.Error()
		b.say("no OpenBLAS: %v", err)
		return nil
	}
	b.blas, b.core = true, core
	b.say("OpenBLAS with its kernels for %s", core)
	return nil
}

func (b *bench) tryCore(core string) (p probed, err error) {
	self, err := os.Executable()
	if err != nil {
		return p, err
	}
	cmd := exec.CommandContext(b.ctx, self, "--probe-openblas", fmt.Sprint(b.threads))
	if cmd.Env = os.Environ(); core != "" {
		cmd.Env = append(cmd.Env, "OPENBLAS_CORETYPE="+core)
	}
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if !exit.Exited() {
			return p, fmt.Errorf("it died: %w", err)
		}
		return p, fmt.Errorf("apt-get install libopenblas0-pthread (%s)",
			strings.TrimPrefix(strings.TrimSpace(string(exit.Stderr)), "peers: "))
	}
	if err != nil {
		return p, err
	}
	return p, json.Unmarshal(out, &p)
}

// probeOpenBLAS is the work of such a process.
func probeOpenBLAS(threads int) error {
	const n = 1024
	core, err := openBLAS(blasLibrary, threads)
	if err != nil {
		return err
	}
	p, data := probed{Core: core}, [3][]byte{}
	for i := range data {
		data[i] = make([]byte, 8*n*n)
	}
	for _, f64 := range []bool{false, true} {
		for i := range data {
			randomize(data[i], f64)
		}
		best := math.Inf(1)
		for end := time.Now().Add(400 * time.Millisecond); time.Now().Before(end); {
			start := time.Now()
			blasGemm(f64, n, n, n, data[0], data[1], data[2])
			best = min(best, float64(time.Since(start).Nanoseconds()))
		}
		if f64 {
			p.Dgemm = 2 * n * n * n / best
		} else {
			p.Sgemm = 2 * n * n * n / best
		}
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	fmt.Println(string(text))
	return nil
}
