package runtime

// The measured limits of a device.

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"sync"
	"time"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/profile"
	"github.com/concord-compute/concord/source"
)

// Roof returns the rates that bound every kernel on the device: of memory, of multiply-adds in
// registers, and of launches. They are measured once for each device, driver and compiler, which takes a
// few seconds on the device, and then kept in the process and beside the kernel cache on disk
// (directory roofs; nowhere if the cache is off). Files that others could have written are not read.
// What cannot be measured is 0: without a compiler for the device, memory is measured by copies alone
// and the other rates are unknown, but for a device whose driver measures its multiply-adds itself
// (driver.MultiplyAdder), such as cpu:0.
//
// Each rate is nearly the best of several runs, as other work on the machine lowers it. Concurrent
// calls share one measurement; a call that waits ends with ctx. Errors are those of allocating, copying
// and launching. It is safe for concurrent use.
func (d *Device) Roof(ctx context.Context) (profile.Roof, error) { return d.roof(ctx, true) }

// MeasureRoof measures what Roof returns again, and replaces what was kept. Use it where Roof was first
// called while the machine was busy.
func (d *Device) MeasureRoof(ctx context.Context) (profile.Roof, error) { return d.roof(ctx, false) }

// keptRoof is the roof of a device, or nil before it is measured. turn has room for one value and is its lock:
// a call puts a value in, reads or sets the roof, and takes the value out. A call can stop waiting for a
// channel when its context ends, which it could not for a mutex.
type keptRoof struct {
	turn chan struct{}
	roof *profile.Roof

	key string // roofKey
	dir string // where it is on disk; "": nowhere
}

// roofs are those of this process, by roofKey and directory.
var roofs = struct {
	sync.Mutex
	kept map[[2]string]*keptRoof
}{kept: map[[2]string]*keptRoof{}}

func (d *Device) roof(ctx context.Context, kept bool) (profile.Roof, error) {
	const op = "roof"
	if err := checkContext(ctx, op); err != nil {
		return profile.Roof{}, err
	}
	c, err := d.get(op)
	if err != nil {
		return profile.Roof{}, err
	}
	k := c.keptRoof(ctx)
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return profile.Roof{}, c.error(op, context.Cause(ctx))
	}
	if kept && k.find() {
		c.session.trace.learn(c.info.ID, *k.roof)
		return *k.roof, nil
	}
	r, err := d.measureRoof(ctx)
	if err != nil {
		return profile.Roof{}, fmt.Errorf("roof of %s: %w", d, err)
	}
	k.roof = &r
	if k.dir != "" { // a directory that cannot be written costs a measurement by the next process
		_ = writeRoof(k.dir, k.key, r)
	}
	c.session.trace.learn(c.info.ID, r)
	return r, nil
}

// learnRoof gives the roof to the session's trace if it was measured before. It waits for no measurement.
func (c *core) learnRoof(ctx context.Context) {
	k := c.keptRoof(ctx)
	select {
	case k.turn <- struct{}{}:
		if k.find() {
			c.session.trace.learn(c.info.ID, *k.roof)
		}
		<-k.turn
	default: // it is being measured, and learned then
	}
}

// keptRoof returns the place of the device's roof in this process.
func (c *core) keptRoof(ctx context.Context) *keptRoof {
	key, dir := c.roofKey(ctx), cacheDir(c.session.cfg)
	roofs.Lock()
	defer roofs.Unlock()
	k := roofs.kept[[2]string{key, dir}]
	if k == nil {
		k = &keptRoof{turn: make(chan struct{}, 1), key: key}
		if dir != "" {
			k.dir = filepath.Join(dir, "roofs")
		}
		roofs.kept[[2]string{key, dir}] = k
	}
	return k
}

// find reports whether the roof is known, in the process or on disk, with the turn taken.
func (k *keptRoof) find() bool {
	if k.roof == nil && k.dir != "" {
		if r, err := readRoof(k.dir, k.key); err == nil {
			k.roof = &r
		}
	}
	return k.roof != nil
}

// roofKey names what a measurement depends on.
func (c *core) roofKey(ctx context.Context) string {
	i, cfg := &c.info, &c.session.cfg
	fields := []string{i.ID, i.Backend, i.Name, i.Vendor, i.UUID, i.PCI, i.Arch, i.DriverVersion,
		fmt.Sprint(i.ComputeUnits, i.ClockMHz, i.TotalMemory>>30, i.Simulated, cfg.CPUThreads, goruntime.GOMAXPROCS(0)),
		cfg.CPUKernels}
	if c.compiler != nil {
		if identity, err := c.compiler.Identity(ctx); err == nil {
			fields = append(fields, identity...)
		}
	}
	h := sha256.New()
	for _, f := range fields {
		_ = binary.Write(h, binary.LittleEndian, uint64(len(f)))
		_, _ = io.WriteString(h, f)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// roofVersion is part of every file, and changes with its format and with what is measured.
const roofVersion = 1

// roofFile is the content of a file, beside a checksum of it.
type roofFile struct {
	Version int          `json:"version"`
	Key     string       `json:"key"`
	Roof    profile.Roof `json:"roof"`
}

func roofName(key string) string { return key + ".json" }

// readRoof reads a roof that writeRoof wrote, from a trusted directory.
func readRoof(dir, key string) (profile.Roof, error) {
	root, err := file.OpenRoot(dir)
	if err != nil {
		return profile.Roof{}, err
	}
	defer root.Close()
	f, info, err := file.OpenIn(root, roofName(key))
	if err != nil {
		return profile.Roof{}, err
	}
	defer f.Close()
	const most = 1 << 16
	if info.Size() > most {
		return profile.Roof{}, fmt.Errorf("roof of %d bytes: %w", info.Size(), ErrFormat)
	}
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return profile.Roof{}, err
	}
	sum, text, ok := bytes.Cut(data, []byte("\n"))
	if want := sha256.Sum256(text); !ok || string(sum) != hex.EncodeToString(want[:]) {
		return profile.Roof{}, fmt.Errorf("roof: %w", ErrCorrupt)
	}
	var r roofFile
	if err := json.Unmarshal(text, &r); err != nil || r.Version != roofVersion || r.Key != key {
		return profile.Roof{}, fmt.Errorf("roof: %w", ErrFormat)
	}
	return r.Roof, nil
}

// writeRoof writes a file as a whole or not at all: the checksum of the text, and the text.
func writeRoof(dir, key string, r profile.Roof) error {
	root, err := file.OpenRoot(dir)
	if err != nil {
		return err
	}
	root.Close()
	text, err := json.MarshalIndent(roofFile{roofVersion, key, r}, "", "  ")
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	return file.Replace(filepath.Join(dir, roofName(key)), func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%x\n%s", sum, text)
		return err
	})
}

// roofText are the kernels that measure. scale and triad read each number once and write it once.
// multiply_add has as many multiply-adds under way as hardware can take, without loads and stores;
// V is a vector of LANES numbers of type T, each of which counts in the result. nothing is for the
// time of a launch.
const roofText = `
kernel void scale(float a, global float *y) {
  size_t i = get_global_id(0);
  y[i] = a * y[i];
}
kernel void triad(float a, global const float *x, global float *y) {
  size_t i = get_global_id(0);
  y[i] = a * x[i] + y[i];
}
kernel void nothing(global float *y) {
}
#define MULTIPLY_ADD(NAME, T, V, FIRST, SUM) \
kernel void NAME(global T *out, T a, T b) { \
  V x = (V)((T)get_global_id(0)) * FIRST; \
  V y0 = x, y1 = x + (T)1, y2 = x + (T)2, y3 = x + (T)3, y4 = x + (T)4, y5 = x + (T)5, y6 = x + (T)6, y7 = x + (T)7; \
  V va = a, vb = b; \
  for (int i = 0; i < 1024; i++) { \
    y0 = fma(y0, va, vb); y1 = fma(y1, va, vb); y2 = fma(y2, va, vb); y3 = fma(y3, va, vb); \
    y4 = fma(y4, va, vb); y5 = fma(y5, va, vb); y6 = fma(y6, va, vb); y7 = fma(y7, va, vb); \
  } \
  x = y0 + y1 + y2 + y3 + y4 + y5 + y6 + y7; \
  out[get_global_id(0)] = SUM; \
}
#define SUM8(x) (((x).s0 + (x).s1) + ((x).s2 + (x).s3)) + (((x).s4 + (x).s5) + ((x).s6 + (x).s7))
MULTIPLY_ADD(multiply_add, float, float16,
             ((float16)(1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f, 8.0f, 9.0f, 10.0f, 11.0f, 12.0f, 13.0f, 14.0f, 15.0f, 16.0f)),
             SUM8(x.lo + x.hi))
#ifdef DOUBLE
MULTIPLY_ADD(multiply_add_double, double, double8, ((double8)(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)), SUM8(x))
#endif
`

// multiplyAdds is the number of operations of an item of multiply_add for each lane.
const multiplyAdds = 2 * 8 * 1024

// Sizes of a measurement: arrays that fit no cache, and items that fill the device.
func roofSizes(info *Info) (elements, items int) {
	elements, items = 1<<25, 1<<14
	if info.IsGPU() {
		elements, items = 1<<27, 1<<18
	}
	// two arrays of floats: an eighth
	for info.TotalMemory > 0 && elements > 1<<16 && int64(elements) > info.TotalMemory/64 {
		elements /= 2
	}
	return elements, min(items, elements)
}

// measureRoof measures on a stream of its own.
func (d *Device) measureRoof(ctx context.Context) (r profile.Roof, err error) {
	info := d.Info()
	elements, items := roofSizes(&info)
	s, err := d.NewStream()
	if err != nil {
		return r, err
	}
	defer s.Close()
	var open []*Buffer
	defer func() {
		for _, b := range open {
			b.Close()
		}
	}()
	buffer := func(t Type, n int, fill func(b *Buffer) error) (*Buffer, error) {
		b, err := d.Alloc(t, n)
		if err != nil {
			return nil, err
		}
		open = append(open, b)
		return b, fill(b)
	}
	ones := func(b *Buffer) error { return s.Fill(b, float32(1)) } // memory that was never written may not be there yet
	x, err := buffer(F32, elements, ones)
	if err != nil {
		return r, err
	}
	y, err := buffer(F32, elements, ones)
	if err != nil {
		return r, err
	}
	size := float64(4 * elements)
	r.MemoryGBs, err = best(ctx, func() (float64, error) {
		start := time.Now()
		if err := s.Copy(y, x); err != nil {
			return 0, err
		}
		err := s.Sync(ctx)
		return 2 * size / float64(time.Since(start)), err
	})
	if err != nil {
		return r, err
	}
	r.Measured = time.Now().UTC().Round(time.Second)
	if own, ok := d.Driver().(driver.MultiplyAdder); ok {
		if _, ok := own.MultiplyAdds(); ok {
			if r.GFLOPS, err = best(ctx, func() (float64, error) {
				rate, _ := own.MultiplyAdds()
				return rate, nil
			}); err != nil {
				return r, err
			}
		}
	}
	var defines []source.Define
	if info.Features.FP64 {
		defines = []source.Define{{Name: "DOUBLE", Value: "1"}}
	}
	unit, err := source.Parse(roofText, source.Options{Name: "roof.cl", Defines: defines, Features: d.Features()})
	if err != nil {
		return r, err
	}
	prog, err := d.Program(ctx, unit)
	if errors.Is(err, ErrUnsupported) { // no compiler
		return r, nil
	}
	if err != nil {
		return r, err
	}
	defer prog.Close()
	rate := func(kernel string, grid Grid, work float64, args ...any) (float64, error) {
		k, err := prog.Kernel(kernel)
		if err != nil {
			return 0, err
		}
		return best(ctx, func() (float64, error) {
			rec, err := s.Run(ctx, k, grid, args...)
			if err != nil || rec.DeviceTimeNs <= 0 { // too short to be timed
				return 0, err
			}
			return work / float64(rec.DeviceTimeNs), nil
		})
	}
	for _, loop := range []struct {
		kernel string
		bytes  float64
		args   []any
	}{{"scale", 2 * size, []any{float32(1), y}}, {"triad", 3 * size, []any{float32(0), x, y}}} {
		// with these factors y does not change
		got, err := rate(loop.kernel, Items(elements), loop.bytes, loop.args...)
		if err != nil {
			return r, err
		}
		r.MemoryGBs = max(r.MemoryGBs, got)
	}
	got, err := rate("multiply_add", Items(items), float64(items)*16*multiplyAdds, y, float32(0.999), float32(0.001))
	if err != nil {
		return r, err
	}
	r.GFLOPS = max(r.GFLOPS, got)
	if len(defines) > 0 {
		z, err := buffer(F64, items, func(*Buffer) error { return nil })
		if err != nil {
			return r, err
		}
		if r.DoubleGFLOPS, err = rate("multiply_add_double", Items(items), float64(items)*8*multiplyAdds, z, 0.999,
			0.001); err != nil {
			return r, err
		}
	}
	r.LaunchNs, err = launchTime(ctx, s, prog, y)
	return r, err
}

// launchTime returns the median time from queueing a kernel that does nothing to the end of the wait.
func launchTime(ctx context.Context, s *Stream, prog *Program, y *Buffer) (float64, error) {
	k, err := prog.Kernel("nothing")
	if err != nil {
		return 0, err
	}
	var all []float64
	_, err = best(ctx, func() (float64, error) {
		for range 20 {
			start := time.Now()
			if err := s.Launch(k, Items(1), y); err != nil {
				return 0, err
			}
			if err := s.Sync(ctx); err != nil {
				return 0, err
			}
			all = append(all, float64(time.Since(start)))
		}
		return 0, nil
	})
	if err != nil {
		return 0, err
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}

// best returns nearly the largest of several samples, without the first, which includes one-time costs.
// The largest itself may be due to a clock that jumped.
func best(ctx context.Context, sample func() (float64, error)) (float64, error) {
	const fewest, often, long = 8, 50, 250 * time.Millisecond
	var all []float64
	start := time.Now()
	for n := 0; n <= fewest || n < often && time.Since(start) < long; n++ {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		v, err := sample()
		if err != nil {
			return 0, err
		}
		if n > 0 {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	return all[len(all)-1-max(1, len(all)/10)], nil
}
