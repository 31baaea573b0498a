// Package rates measures how fast a device does what the packages of the module do on it, beside the device's own
// limits and beside PyTorch, which does the same work on the same device, in turn.
//
// Measure measures, Names lists what it measures, Once does only the work, for a profiler around it, and Bound runs
// that.
package rates

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/profile"
	"github.com/concord-compute/concord/runtime/roof"
)

// Rate is one measured rate or time, beside the device's limit and a peer's rate of the same work.
type Rate struct {
	Area    string  `json:"area"`    // "products"
	Name    string  `json:"name"`    // "gemm f16 4096"
	Unit    string  `json:"unit"`    // "GB/s", "GFLOP/s", "/s" or "µs", the only one of which less is better
	Median  float64 `json:"median"`  // of the samples
	Spread  float64 `json:"spread"`  // their 90th minus their 10th percentile
	Samples int     `json:"samples"` // their number
	// Roof is what the measured roof of the device allows, in the same unit; 0: unknown, also where matrix units multiply.
	Roof float64 `json:"roof,omitempty"`

	Peer       string  `json:"peer,omitempty"`        // "PyTorch 2.11.0+cu130"; "": none
	PeerMedian float64 `json:"peer_median,omitempty"` // of the same work, whose samples alternated with ours
	PeerNote   string  `json:"peer_note,omitempty"`   // in what the peer's work differs, or why it has no rate

	// Implementation names the kernels that took the most time, and what each was: "gemm cublas".
	Implementation string `json:"implementation,omitempty"`
	// Resources says what the slowest kernel takes of the device, as its compiler reports it, if the rate is slow.
	Resources string `json:"resources,omitempty"`
	// Bound is for the result of the function Bound, which the caller calls where it is worth it.
	Bound string `json:"bound,omitempty"`

	Reason string `json:"reason,omitempty"` // why it was not measured; Median is 0 then
	Failed bool   `json:"failed,omitempty"` // it should have been
}

// Units of a Rate.
const (
	gigabytes = "GB/s"
	gigaflops = "GFLOP/s"
	perSecond = "/s"
	micros    = "µs"
)

// Slow reports whether the rate is below half of the roof or, where that is unknown, of the peer's.
func (r *Rate) Slow() bool {
	limit := r.Roof
	if limit == 0 {
		limit = r.PeerMedian
	}
	if r.Unit == micros {
		return limit > 0 && r.Median > 2*limit
	}
	return r.Median < limit/2
}

// Options say what to measure. The zero value is everything, at the sizes of a large GPU.
type Options struct {
	Quick bool     // sizes for processors, and few samples
	Only  []string // names or areas; nil: all
	// Peer is the Python interpreter that has PyTorch; "": the python3 of PATH, then that of the system; "none": no peer.
	Peer  string
	Doing func(name string) // called before each rate; may be nil
	Each  func(Rate)        // called after each rate; may be nil
}

// Measure measures one rate after the other on the device, and waits for all of its work. A rate that cannot be
// measured is one with a reason, and the others go on. The error is that of a context that ended, of a lost device, or
// of a name in Options.Only that there is none of. Nothing is left on the device, nor is the peer's process.
func Measure(ctx context.Context, dev *runtime.Device, opt Options) error {
	list, err := chosen(dev, opt)
	if err != nil {
		return err
	}
	b := &bench{dev: dev, opt: opt, quick: opt.Quick || dev.Info().Simulated, peer: newPeer(dev, opt.Peer)}
	defer b.peer.stop()
	if err := b.measureRoof(ctx); err != nil {
		return err
	}
	for i := range list {
		b.doing(list[i].name)
		r := Rate{Area: list[i].area, Name: list[i].name, Unit: list[i].unit}
		err := b.measure(ctx, &list[i], &r)
		if err != nil && ends(ctx, err) {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
		if err != nil {
			r = Rate{Area: r.Area, Name: r.Name, Unit: r.Unit, PeerNote: r.PeerNote, Reason: err.Error(), Failed: !absent(err)}
			_ = dev.Stream().Reset() // a stream that failed would fail all that follows
		}
		b.each(r)
	}
	return nil
}

// roofs are rates that are measured before all others, which they limit.
var roofs = []struct {
	name, unit string
	of         func(profile.Roof) float64
}{
	{"roof memory", gigabytes, func(r profile.Roof) float64 { return r.MemoryGBs }},
	{"roof f32", gigaflops, func(r profile.Roof) float64 { return r.GFLOPS }},
	{"roof f64", gigaflops, func(r profile.Roof) float64 { return r.DoubleGFLOPS }},
}

const roofArea = "roof"

// measureRoof learns the limits of the device. Without them, rates have none. The time of a simulated device is
// nobody's limit.
func (b *bench) measureRoof(ctx context.Context) (err error) {
	if b.dev.Info().Simulated {
		return nil
	}
	for i, limit := range roofs {
		is := wanted(roofArea, limit.name, b.opt.Only)
		if is {
			b.doing(limit.name)
		}
		if i == 0 { // all at once
			if b.roof, err = roof.Of(ctx, b.dev); err != nil && ends(ctx, err) {
				return fmt.Errorf("%s: %w", limit.name, err)
			}
		}
		r := Rate{Area: roofArea, Name: limit.name, Unit: limit.unit, Median: limit.of(b.roof), Samples: 1}
		if r.Median == 0 {
			r.Samples, r.Reason = 0, "the device did not tell"
		}
		if err != nil {
			r.Reason, r.Failed = err.Error(), !absent(err)
		}
		if is {
			b.each(r)
		}
	}
	return nil
}

// Names returns the names of what Measure measures with the options, in its order: the most valuable first. What
// Options.Only has and is no name is left out.
func Names(dev *runtime.Device, opt Options) (names []string) {
	for _, r := range roofs {
		if !dev.Info().Simulated && wanted(roofArea, r.name, opt.Only) {
			names = append(names, r.name)
		}
	}
	for _, j := range jobs(sizesOf(dev, opt.Quick)) {
		if wanted(j.area, j.name, opt.Only) {
			names = append(names, j.name)
		}
	}
	return names
}

// Once does the work of a rate so many times, without a clock, and waits for it. The name is one of Names, with or
// without Options.Quick.
func Once(ctx context.Context, dev *runtime.Device, name string, times int) error {
	for _, quick := range []bool{false, true} {
		for _, j := range jobs(sizesOf(dev, quick)) {
			if j.name != name {
				continue
			}
			p := newPlace(dev, quick)
			w, err := j.setUp(ctx, p)
			if err == nil {
				err = repeat(ctx, w, times)
			}
			return errors.Join(err, p.close(ctx))
		}
	}
	return fmt.Errorf("no rate is named %q: %w", name, runtime.ErrInvalidArgument)
}

// chosen returns the jobs that the options ask for.
func chosen(dev *runtime.Device, opt Options) (list []job, err error) {
	all := jobs(sizesOf(dev, opt.Quick))
	for _, name := range opt.Only {
		if len(Names(dev, Options{Quick: opt.Quick, Only: []string{name}})) == 0 {
			return nil, fmt.Errorf("no rate or area is named %q: %w", name, runtime.ErrInvalidArgument)
		}
	}
	return slices.DeleteFunc(all, func(j job) bool { return !wanted(j.area, j.name, opt.Only) }), nil
}

func wanted(area, name string, only []string) bool {
	return only == nil || slices.Contains(only, name) || slices.Contains(only, area)
}

// ends reports whether an error is one after which nothing else can be measured.
func ends(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, runtime.ErrDeviceLost) || errors.Is(err, runtime.ErrClosed)
}

// absent reports whether an error says that the device, or this machine, lacks what a rate needs.
func absent(err error) bool {
	return errors.Is(err, runtime.ErrUnsupported) || errors.Is(err, runtime.ErrOutOfMemory) ||
		errors.Is(err, runtime.ErrBudget) || errors.Is(err, runtime.ErrTooLarge)
}

// bench is one measurement.
type bench struct {
	dev   *runtime.Device
	opt   Options
	quick bool
	roof  profile.Roof
	peer  *peer
}

func (b *bench) doing(name string) {
	if b.opt.Doing != nil {
		b.opt.Doing(name)
	}
}

func (b *bench) each(r Rate) {
	if b.opt.Each != nil {
		b.opt.Each(r)
	}
}

// measure measures a rate. What it allocated is freed when it returns.
func (b *bench) measure(ctx context.Context, j *job, r *Rate) (err error) {
	p := newPlace(b.dev, b.quick)
	defer func() {
		if e := p.close(ctx); err == nil { // else it is likely to say the same
			err = e
		}
	}()
	w, err := j.setUp(ctx, p)
	if err != nil {
		return err
	}
	if err := w.run(ctx); err != nil { // whatever is compiled is compiled now
		return err
	}
	if err := p.sync(ctx); err != nil {
		return err
	}
	ran, err := b.observe(ctx, w, p)
	if err != nil {
		return err
	}
	other := b.peer.ready(ctx, j, r)
	defer other.drop()
	if err := b.sample(ctx, j, w, other, r); err != nil {
		return err
	}
	r.Implementation = ran.String()
	if limit := b.limit(j); limit > 0 {
		r.Roof = j.value(limit)
	}
	if r.Slow() {
		r.Resources = ran.resources(b.dev.Info())
	}
	return nil
}

// limit returns the least nanoseconds that the roof allows a run of the job, or 0.
func (b *bench) limit(j *job) float64 {
	flops, bytes := j.flops, j.bytes
	switch j.roof {
	case noRoof:
		return 0
	case memoryRoof:
		flops = 0
	}
	least, _ := b.roof.Limit(flops, bytes)
	return float64(least.Nanoseconds())
}

// Limits of sampling.
const (
	fewest, fewestQuick = 9, 5
	longest             = 4 * time.Second // of all samples of a rate: beyond it there are at least three
	mostRuns            = 1000            // in a sample

	// A sample repeats shorter work, for so long.
	span, spanQuick = 10 * time.Millisecond, 2 * time.Millisecond
)

// sample takes samples of the work and of the peer's in turn, after one of each to warm up, which also says how often a
// sample repeats the work.
func (b *bench) sample(ctx context.Context, j *job, w *work, other *call, r *Rate) error {
	most, length := fewest, span
	if b.quick {
		most, length = fewestQuick, spanQuick
	}
	mine, theirs := 1, 1
	var ours, peers []float64
	start := time.Now()
	for i := 0; i <= most; i++ {
		if i > 3 && time.Since(start) > longest {
			break
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		ns, err := w.time(ctx, mine)
		if err != nil {
			return err
		}
		peerNs := other.time(ctx, theirs, r)
		if i == 0 {
			mine, theirs = runs(length, ns), runs(length, peerNs)
			continue
		}
		ours = append(ours, j.value(ns))
		if peerNs > 0 {
			peers = append(peers, j.value(peerNs))
		}
	}
	r.Median, r.Spread, r.Samples = median(ours), spread(ours), len(ours)
	if math.IsInf(r.Median, 0) || math.IsNaN(r.Median) || r.Median <= 0 {
		return fmt.Errorf("the clock measured no time: %w", runtime.ErrUnsupported)
	}
	if len(peers) == len(ours) { // the peer lived to the end
		r.PeerMedian = median(peers)
	}
	return nil
}

// runs returns how many runs of so many nanoseconds fill a sample.
func runs(length time.Duration, ns float64) int {
	if ns <= 0 {
		return 1
	}
	return int(min(max(float64(length.Nanoseconds())/ns, 1), mostRuns))
}

func median(list []float64) float64 {
	slices.Sort(list)
	return at(list, 0.5)
}

func spread(list []float64) float64 {
	slices.Sort(list)
	return at(list, 0.9) - at(list, 0.1)
}

// at returns the element of a sorted list below which lies that share of it.
func at(list []float64, share float64) float64 { return list[int(share*float64(len(list)-1)+0.5)] }
