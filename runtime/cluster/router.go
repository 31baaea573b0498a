package cluster

// Router, which learns where problems of which sizes finish first.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// The numbers of the rule by which a Router learns.
const (
	firstThreshold = 1024 // elements, before anything is measured
	fewestSamples  = 20   // before a threshold is learned
	samplesBetween = 10   // two thresholds
	keptTimes      = 9    // of a bucket of sizes on each device
	fewestTimes    = 3    // on each device, for a bucket to count
	exploreEvery   = 64   // problems of a bucket
	exploreFirst   = 8    // likewise, while the bucket does not count
	newShare       = 0.7  // of a learned threshold in the next one
	longest        = 24 * 365 * time.Hour
)

// Router does problems on the one of two devices on which they finish first: a near one, such as the CPU, which begins
// at once, or a far one, such as a GPU, which is faster for large problems. For each operation it learns a threshold
// from the times of problems, transfers and all: the smallest size from which on the far device is at least 1.1 times
// as fast. It compares medians of the last 9 times of sizes between two powers of 2, where there are 3 on each device.
// It begins with 1024 elements, needs 20 problems, learns anew every 10, and then moves by 0.7 of the way. Of the
// problems of such sizes one in 64 goes to the other device, and one in 8 until 3 of them have, so that both stay
// measured; none while the last one that went there has failed by the device's fault. A device that is lost gets no
// problems.
//
// The results of a problem may differ between devices in the order of rounding, so that a program whose results have to
// be the same in every run calls Freeze. A Router is safe for concurrent use.
type Router struct {
	near, far *runtime.Device
	now       func() time.Time

	mu     sync.Mutex
	frozen bool
	ill    [2]bool // the near device and the far one: the last problem that went there failed by its fault
	ops    map[string]*route
}

// route is what is known of an operation.
type route struct {
	threshold int
	learned   bool
	buckets   [64]sizes
	samples   int
	since     int // samples since the threshold was learned
}

// sizes is what is known of sizes from one power of 2 to the next.
type sizes struct {
	problems int
	largest  int                // that was measured
	times    [2][]time.Duration // the last ones, on the near device and on the far one
}

// Decision says where a [Router] has a problem done, and why.
type Decision struct {
	Device    *runtime.Device
	Size      int
	Threshold int  // from which on the far device has problems of this operation
	Learned   bool // the threshold: otherwise nothing is measured yet
	Explores  bool // it goes to the device that is not the one by the threshold: that is measured, or the other is lost
}

// String returns "cuda:0: size 4096 is at least 2048, as measured".
func (d Decision) String() string {
	than, known := "less than", "not measured yet"
	if d.Size >= d.Threshold {
		than = "at least"
	}
	if d.Learned {
		known = "as measured"
	}
	text := fmt.Sprintf("%v: size %d is %s %d, %s", d.Device, d.Size, than, d.Threshold, known)
	if d.Explores {
		text += "; the other device, all the same"
	}
	return text
}

// NewRouter returns a Router between two open devices, which stay the caller's. nil, or one device twice, is
// [runtime.ErrInvalidArgument].
func NewRouter(near, far *runtime.Device) (*Router, error) {
	if near == nil || far == nil || near.Stream().RunsOn(far) {
		return nil, fmt.Errorf("cluster: a router needs two devices: %w", runtime.ErrInvalidArgument)
	}
	return &Router{near: near, far: far, now: time.Now, ops: map[string]*route{}}, nil
}

// Run has work done on one of the devices, and measures it. op names the operation, all problems of which take about as
// long for one size, in elements. work returns when its result is where the program needs it. Its error is Run's, and
// what fails is not measured.
func (r *Router) Run(ctx context.Context, op string, size int,
	work func(ctx context.Context, dev *runtime.Device) error) (Decision, error) {
	if size < 0 || work == nil || ctx == nil {
		return Decision{}, fmt.Errorf("cluster: %s of size %d: %w", op, size, runtime.ErrInvalidArgument)
	}
	d := r.Decide(op, size)
	start := r.now()
	err := work(ctx, d.Device)
	if err == nil {
		r.Measured(op, size, d.Device, r.now().Sub(start))
	} else if driver.OfDevice(err) {
		r.mu.Lock()
		defer r.mu.Unlock()
		on := 0
		if d.Device == r.far {
			on = 1
		}
		r.ill[on] = true
	}
	return d, err
}

// Decide says on which device a problem goes. Run does, too; Decide is for a program that measures itself.
func (r *Router) Decide(op string, size int) Decision {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.op(op)
	d := Decision{Device: r.near, Size: size, Threshold: o.threshold, Learned: o.learned}
	by := 0
	if size >= o.threshold {
		by = 1
	}
	if b := &o.buckets[bucket(size)]; !r.frozen {
		every := exploreEvery
		if len(b.times[1-by]) < fewestTimes {
			every = exploreFirst
		}
		b.problems++
		d.Explores = b.problems%every == 0 && !r.ill[1-by]
	}
	if devs := [2]*runtime.Device{r.near, r.far}; isLost(devs[by]) {
		d.Explores = true
	} else if d.Explores {
		d.Explores = !isLost(devs[1-by])
	}
	if (by == 1) != d.Explores {
		d.Device = r.far
	}
	return d
}

// isLost reports whether a device is lost.
func isLost(dev *runtime.Device) bool {
	err := dev.Enter("route")
	if err == nil {
		dev.Leave()
	}
	return errors.Is(err, runtime.ErrDeviceLost)
}

// Measured tells the Router how long a problem took on one of its devices. It does nothing once the Router is frozen.
func (r *Router) Measured(op string, size int, dev *runtime.Device, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	on := 0
	switch {
	case dev == nil:
		return
	case dev.Stream().RunsOn(r.far):
		on = 1
	case !dev.Stream().RunsOn(r.near):
		return
	}
	r.ill[on] = false
	if r.frozen || size < 0 || took < 0 || took > longest {
		return
	}
	o := r.op(op)
	b := &o.buckets[bucket(size)]
	times := &b.times[on]
	*times = append((*times)[max(0, len(*times)+1-keptTimes):], took)
	b.largest = max(b.largest, size)
	o.samples++
	if o.since++; o.samples >= fewestSamples && o.since >= samplesBetween {
		o.since = 0
		o.learn()
	}
}

func (r *Router) op(name string) *route {
	o := r.ops[name]
	if o == nil {
		o = &route{threshold: firstThreshold}
		r.ops[name] = o
	}
	return o
}

// bucket returns the number of the bucket of a size, and smallest the smallest size of a bucket.
func bucket(size int) int { return bits.Len(uint(max(1, size/64))) - 1 }

func smallest(bucket int) int {
	if bucket == 0 {
		return 0
	}
	return 64 << bucket
}

// learn finds the threshold anew. Nothing changes where no bucket of sizes has been measured on both devices.
func (o *route) learn() {
	largest, from := -1, -1 // of the sizes that count
	for b := len(o.buckets) - 1; b >= 0; b-- {
		near, far := o.buckets[b].times[0], o.buckets[b].times[1]
		if min(len(near), len(far)) < fewestTimes {
			continue
		}
		largest = max(largest, o.buckets[b].largest)
		if 10*median(near) < 11*median(far) {
			break
		}
		from = b
	}
	switch {
	case largest < 0:
		return
	case from < 0:
		o.threshold = max(o.threshold, largest+1)
	default:
		o.threshold = int(newShare*float64(smallest(from)) + (1-newShare)*float64(o.threshold))
	}
	o.learned = true
}

func median(list []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(list))[len(list)/2]
}

// Freeze stops learning: from now on the decisions depend on operation and size alone. Frozen false goes on with it.
func (r *Router) Freeze(frozen bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frozen = frozen
}

// routes is the file of a Router.
type routes struct {
	Near, Far  string // the devices, and what is known of them
	Thresholds map[string]int
}

func (r *Router) names() (near, far string) {
	name := func(d *runtime.Device) string {
		info := d.Info()
		return fmt.Sprintf("%s, %s, driver %s", info.ID, info.Name, info.DriverVersion)
	}
	return name(r.near), name(r.far)
}

// Save writes the thresholds that were learned, as JSON.
func (r *Router) Save(w io.Writer) error {
	f := routes{Thresholds: map[string]int{}}
	f.Near, f.Far = r.names()
	r.mu.Lock()
	for name, o := range r.ops {
		if o.learned {
			f.Thresholds[name] = o.threshold
		}
	}
	r.mu.Unlock()
	e := json.NewEncoder(w)
	e.SetIndent("", "\t")
	return e.Encode(f)
}

// Load reads thresholds that Save has written for the same devices with the same drivers, and keeps those of operations
// that are not among them. Those of others are [runtime.ErrInvalidArgument], and change nothing.
func (r *Router) Load(from io.Reader) error {
	var f routes
	if err := json.NewDecoder(from).Decode(&f); err != nil {
		return fmt.Errorf("cluster: routes: %w: %w", runtime.ErrInvalidArgument, err)
	}
	if near, far := r.names(); f.Near != near || f.Far != far {
		return fmt.Errorf("cluster: routes between %s and %s, not between %s and %s: %w", f.Near, f.Far, near, far,
			runtime.ErrInvalidArgument)
	}
	for name, t := range f.Thresholds {
		if t < 0 {
			return fmt.Errorf("cluster: routes: threshold %d of %s: %w", t, name, runtime.ErrInvalidArgument)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, t := range f.Thresholds {
		r.ops[name] = &route{threshold: t, learned: true}
	}
	return nil
}
