package cpu

// The backend: describing the devices without opening one, and opening them.

import (
	"context"
	"fmt"
	goruntime "runtime"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

func init() { driver.Register(backend{}) }

type backend struct{}

var (
	_ driver.Backend   = backend{}
	_ driver.Describer = backend{}
)

// The two devices, by NativeIndex.
const (
	fastIndex = iota
	referenceIndex
	deviceCount
)

const (
	// maxGroup is the executor's limit for kernels that synchronize, where each
	// item of a group has a stack of its own.
	maxGroup = 4096
	// maxLocal is the number of bytes of local memory that a group may use. It is ordinary memory
	// here, and slow if it does not fit into the second-level cache.
	maxLocal = 1 << 20
)

// Name implements driver.Backend.
func (backend) Name() string { return "cpu" }

// Describe implements driver.Describer.
func (backend) Describe() driver.Description {
	return driver.Description{Title: "CPU", Preference: -1, Host: true}
}

// Probe implements driver.Backend. The processor is always available. If there is no host
// compiler, Tried says so.
func (backend) Probe(ctx context.Context, cfg *driver.Config) driver.Probe {
	start := time.Now()
	p := driver.Probe{Backend: "cpu", State: driver.Available, RuntimeVersion: goruntime.Version()}
	for i := range deviceCount {
		p.Devices = append(p.Devices, describe(i))
	}
	p.CompilerVersion, p.Tried = probeCompiler(ctx)
	p.Elapsed = time.Since(start)
	return p
}

// Open implements driver.Backend.
func (backend) Open(_ context.Context, index int, cfg *driver.Config) (driver.Device, error) {
	if index < 0 || index >= deviceCount {
		return nil, &driver.OpError{Backend: "cpu", Op: fmt.Sprintf("open %d of %d devices", index, deviceCount),
			Err: driver.ErrDeviceIndex}
	}
	threads := goruntime.GOMAXPROCS(0)
	if cfg != nil && cfg.CPUThreads > 0 {
		threads = cfg.CPUThreads
	}
	d := newDevice(describe(index), threads, index == referenceIndex)
	if index == fastIndex {
		var err error
		if d.simd, err = chooseSIMD(cfg); err != nil {
			return nil, &driver.OpError{Backend: "cpu", Device: d.id, Op: "open", Err: err}
		}
	}
	return d, nil
}

// describe asks the operating system about the processor and its memory.
func describe(index int) driver.Info {
	info := driver.Info{
		ID:               "cpu:0",
		Backend:          "cpu",
		NativeIndex:      index,
		Name:             cpuName(),
		Vendor:           cpuVendor(),
		Kind:             driver.CPU,
		Arch:             cpuArch(),
		BaseAlign:        baseAlign,
		ComputeUnits:     goruntime.NumCPU(),
		ClockMHz:         cpuClockMHz(),
		MaxGroupSize:     maxGroup,
		MaxGroupSizes:    [3]int{maxGroup, maxGroup, maxGroup},
		LocalMemory:      maxLocal,
		LocalMemoryOptIn: maxLocal,
		UnifiedMemory:    true,
		Suballocation:    true,
		VectorLoops:      true,
		Features:         source.Features{FP64: true, FP16: true, Int64Atomic: true},
		SupportsFP16:     true, // computed in float and rounded: correct, but not fast
	}
	if index == referenceIndex {
		info.ID = "cpu:reference"
		info.Name += " (float64 reference)"
	}
	c := cpuCaches()
	info.L1Cache, info.L2Cache, info.L3Cache, info.CacheLine, info.CachesKnown = c.l1, c.l2, c.l3, c.line, c.known
	info.MemoryChannels = systemChannels()
	info.TotalMemory, _ = systemMemory()
	info.MaxAllocation = info.TotalMemory
	info.FreeMemory, info.FreeMemoryKnown = freeMemory()
	return info
}

// freeMemory returns the bytes that a program can still allocate, if the system reports them.
func freeMemory() (n int64, known bool) {
	_, n = systemMemory()
	return n, n > 0
}
