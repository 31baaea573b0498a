package ann

// The interface of indexes, and making one by name.

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/runtime/driver"
)

// Result is a vector that was found.
type Result struct {
	ID       int64   `json:"id"`
	Distance float64 `json:"distance"` // in the unit of the metric
}

// compare orders results: by distance, NaN last, then by id.
func (a Result) compare(b Result) int {
	// cmp.Compare has NaN first
	return cmp.Or(cmp.Compare(-b.Distance, -a.Distance), cmp.Compare(a.ID, b.ID))
}

// Index finds the nearest of the vectors that it holds. It may be used from any goroutine. After Close every
// method but Info and Close returns [runtime.ErrClosed].
type Index interface {
	// Add adds vectors, one row of the index's dimension for each id. A negative id, or one that the index or the
	// call has already, is runtime.ErrInvalidArgument, a number of components that does not fit
	// runtime.ErrDimension. A call that fails changes nothing.
	Add(ctx context.Context, ids []int64, vectors []float32) error
	// Remove removes vectors. An id that the index does not have, or that is there twice, is
	// runtime.ErrInvalidArgument, and nothing is removed.
	Remove(ctx context.Context, ids []int64) error
	// Search appends the k nearest of the vectors that the filter admits to dst, in order; all of them if there
	// are fewer. k below 1 is runtime.ErrInvalidArgument. If it fails, dst is returned as it was.
	Search(ctx context.Context, dst []Result, query []float32, k int, filter *Filter) ([]Result, error)
	// SearchBatch returns for each of several queries, one after the other in queries, what Search finds.
	SearchBatch(ctx context.Context, queries []float32, k int, filter *Filter) ([][]Result, error)
	// Info describes the index.
	Info() Info
	// WriteTo writes the index in the format that Open reads. If the index was opened from a file that is damaged,
	// that is runtime.ErrCorrupt, and what was written is no whole file.
	io.WriterTo
	// Close releases the index's memory. Closing twice does nothing.
	Close() error
}

// Info describes an index.
type Info struct {
	Kind         string `json:"kind"`
	Metric       string `json:"metric"`
	Dim          int    `json:"dim"`
	Len          int    `json:"len"` // vectors
	Precision    string `json:"precision"`
	Device       string `json:"device"`             // "cpu:0", or several, separated by commas
	Fallback     string `json:"fallback,omitempty"` // why the index is not on the device that was asked for
	DeviceMemory int64  `json:"device_memory"`      // bytes of vectors in the device's memory; -1 if that is not known
	// the device has no room for the vectors: each search copies them from the host's memory
	Streams bool `json:"streams,omitempty"`

	Shards int `json:"shards,omitempty"` // of an index in shards: their number

	HNSW *HNSWOptions `json:"hnsw,omitempty"` // of kind hnsw: the options in force
	IVF  *IVFOptions  `json:"ivf,omitempty"`  // of kinds ivf and pq: the same, with the number of lists that there are
}

// String describes the index in one line, such as "ivf of 10000 vectors of 128 components, cosine, fp32 on
// cpu:0, 16 of 400 lists".
func (i Info) String() string {
	s := fmt.Sprintf("%s of %d vectors of %d components, %s, %s on %s", i.Kind, i.Len, i.Dim, i.Metric, i.Precision,
		cmp.Or(i.Device, "no device"))
	if i.HNSW != nil {
		s += fmt.Sprintf(", m %d, ef-construction %d", i.HNSW.M, i.HNSW.EfConstruction)
	}
	if i.IVF != nil {
		s += fmt.Sprintf(", %d of %d lists", i.IVF.Probes, i.IVF.Lists)
	}
	if i.Shards > 0 {
		s += fmt.Sprintf(", in %d shards", i.Shards)
	}
	return s
}

// KindError is the error of [New] for a kind of index that there is not. It matches [driver.ErrUnknownBackend].
type KindError struct{ Kind string }

// Error implements error.
func (e *KindError) Error() string {
	return fmt.Sprintf("ann: there is no kind of index %.40q: the kinds are brute, flat, gpu, hnsw, ivf and pq", e.Kind)
}

// Is implements errors.Is.
func (e *KindError) Is(target error) bool { return target == driver.ErrUnknownBackend }

// Options are what [New] takes beside the kind. The zero value has the defaults.
type Options struct {
	Precision Precision // of kinds gpu, flat, ivf and pq; 0 is FP32
	// of kind gpu, as runtime.Open names it; "" is the active device, and of kinds flat, ivf and pq the CPU;
	// several, but for ivf and pq, are separated by commas
	Device  string
	MaxDim  int              // the largest dimension; 0 is 4096
	MaxRows int              // the largest number of vectors; 0 is no limit
	Session *runtime.Session // that opens the device; nil is the default session
	// has the devices of an index that survives them, a [*Moving], without Device, Session and Weights; nil is none
	Runner *cluster.Runner
	// shares of the vectors, one for each of several devices or for each member of a group, in proportion to these
	// positive numbers; nil is equal shares
	Weights []float64
	// is called now and then while vectors are added, one call at a time, with the index locked; nil: nobody wants to
	// know
	Progress func(Progress)
	HNSW     HNSWOptions // of kind hnsw; its MaxDim and MaxRows are those above. The zero value has the defaults
	// of kinds ivf and pq; its Precision, MaxDim and MaxRows are those above. The zero value has the defaults
	IVF IVFOptions
}

const mostDim = 4096

// kinds has for each kind of index whether it takes a device and a precision, and several devices.
var kinds = map[string]struct{ device, several bool }{"brute": {}, "bruteforce": {}, "hnsw": {},
	"flat": {device: true, several: true}, "gpu": {device: true, several: true},
	"ivf": {device: true}, "pq": {device: true}}

// New makes an empty index by the name of its kind, in any case. Kind brute or bruteforce compares each query
// with all vectors on the CPU, gpu does that on the active device, flat on the device that is named or else on
// the CPU. Kind ivf is [IVF] there, and pq the same with codes, of a bit for each component unless
// IVFOptions.Codes is set. Kind hnsw is [HNSW] on the CPU. Another kind is a [*KindError], a precision or a
// device with brute or hnsw, or several devices with ivf or pq, [runtime.ErrUnsupported]. Without a GPU, gpu is
// [runtime.ErrNoDevice] if the session's policy is to require devices, and otherwise the CPU stands in, which
// Info tells. With a Runner every kind but brute, bruteforce and hnsw is on its devices, and survives them.
func New(ctx context.Context, kind string, dim int, metric string, o Options) (Index, error) {
	if err := checkContext(ctx); err != nil {
		return nil, err
	}
	kind, m, o, err := o.parsed(kind, dim, metric)
	if err != nil {
		return nil, err
	}
	if o.Runner != nil {
		x, err := o.moving(ctx, kind, dim, m, nil, nil)
		if err != nil {
			return nil, err
		}
		return x, nil
	}
	if o.Weights != nil && !kinds[kind].several {
		return nil, fmt.Errorf("ann: weights for an index of kind %s, which is on one device: %w", kind,
			runtime.ErrUnsupported)
	}
	c, err := o.empty(ctx, kind, dim, m)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// parsed checks the kind, the dimension and the metric of an index, and sets the options that follow from the kind.
func (o Options) parsed(kind string, dim int, metric string) (string, Metric, Options, error) {
	kind = strings.ToLower(strings.TrimSpace(kind))
	if t, ok := kinds[kind]; !ok {
		return kind, Metric{}, o, &KindError{kind}
	} else if !t.device && (o.Precision != FP32 || o.Device != "") {
		return kind, Metric{}, o, fmt.Errorf("ann: a precision or a device for an index of kind %s: %w", kind,
			runtime.ErrUnsupported)
	}
	m, err := ParseMetric(metric)
	if err == nil {
		err = o.check(dim)
	}
	if kind == "pq" && o.IVF.Codes == 0 {
		o.IVF.Codes = min(max(dim/8, 1), mostCode)
	}
	return kind, m, o, err
}

// empty makes an empty index of a kind.
func (o Options) empty(ctx context.Context, kind string, dim int, m Metric) (c contents, err error) {
	var devices []*runtime.Device
	defer func() {
		for _, dev := range devices {
			dev.Close() // the index has handles of its own
		}
	}()
	why, names := "", []string{o.Device}
	if kinds[kind].several {
		names = strings.Split(o.Device, ",")
	}
	for _, name := range names {
		if o.Device = strings.TrimSpace(name); o.Device == "" && len(names) > 1 {
			return nil, fmt.Errorf("ann: devices %q, of which one has no name: %w", names, runtime.ErrInvalidArgument)
		}
		dev, reason, err := o.open(ctx, kind)
		if err != nil {
			return nil, err
		}
		devices, why = append(devices, dev), cmp.Or(why, reason)
	}
	if c, err = o.on(devices, kind, dim, m); err == nil {
		c.base().fallback = why
	}
	return c, err
}

// on makes an empty index of a kind on open devices. The index opens its own handles of them.
func (o Options) on(devices []*runtime.Device, kind string, dim int, m Metric) (c contents, err error) {
	switch kind {
	case "ivf", "pq":
		o.IVF.Precision, o.IVF.MaxDim, o.IVF.MaxRows = o.Precision, o.MaxDim, o.MaxRows
		c, err = NewIVF(devices[0], dim, m, o.IVF)
	case "hnsw":
		o.HNSW.MaxDim, o.HNSW.MaxRows = o.MaxDim, o.MaxRows
		c, err = NewHNSW(devices[0], dim, m, o.HNSW)
	default:
		c, err = NewFlat(devices[0], dim, m, FlatOptions{Precision: o.Precision, MaxDim: o.MaxDim, MaxRows: o.MaxRows,
			Devices: devices[1:], Weights: o.Weights})
	}
	if err != nil {
		return nil, err
	}
	if c.base().progress = o.Progress; kind != "ivf" { // which has codes if the options say so
		c.base().kind = kind
	}
	return c, nil
}

func (o Options) check(dim int) error {
	return cmp.Or(within("MaxDim", o.MaxDim, 0, math.MaxInt), within("MaxRows", o.MaxRows, 0, math.MaxInt),
		within("the dimension", dim, 1, cmp.Or(o.MaxDim, mostDim)), o.Precision.check())
}

// within refuses a number that is too small or too large.
func within(name string, n, least, most int) error {
	if n >= least && n <= most {
		return nil
	}
	if most == math.MaxInt {
		return fmt.Errorf("ann: %s is %d, which has to be at least %d: %w", name, n, least, runtime.ErrInvalidArgument)
	}
	return fmt.Errorf("ann: %s is %d, which has to be from %d to %d: %w", name, n, least, most, runtime.ErrInvalidArgument)
}

// open opens the device of an index, and says why it is not a GPU if one was asked for.
func (o Options) open(ctx context.Context, kind string) (dev *runtime.Device, why string, err error) {
	s := o.Session
	if s == nil {
		if s, err = runtime.Default(); err != nil {
			return nil, "", err
		}
	}
	if kind != "gpu" && (!kinds[kind].device || o.Device == "") {
		dev, err = s.Open(ctx, "cpu:0")
		return dev, "", err
	}
	if !kinds[kind].several && strings.Contains(o.Device, ",") {
		return nil, "", fmt.Errorf("ann: devices %q for an index of kind %s, which is on one: %w", o.Device, kind,
			runtime.ErrUnsupported)
	}
	if dev, err = s.Open(ctx, cmp.Or(o.Device, "auto")); err != nil {
		return nil, "", err
	}
	switch info := dev.Info(); {
	case dev.Fallback() != nil:
		return dev, dev.Fallback().Error(), nil
	case info.IsGPU() || o.Device != "":
		return dev, "", nil
	case s.Config().Fallback == runtime.Require || s.Config().Strict:
		dev.Close()
		return nil, "", fmt.Errorf("ann: an index of kind gpu without a GPU: %w", runtime.ErrNoDevice)
	}
	return dev, "there is no GPU", nil
}

// Update replaces the vector of an id. An id that the index does not have is [runtime.ErrInvalidArgument].
func Update(ctx context.Context, ix Index, id int64, vector []float32) error {
	u, ok := ix.(interface {
		Update(ctx context.Context, id int64, vector []float32) error
	})
	if !ok {
		return fmt.Errorf("ann: update of an index of type %T: %w", ix, runtime.ErrUnsupported)
	}
	return u.Update(ctx, id, vector)
}

// Exact returns what a search finds that compares the query with every vector that the filter admits, whatever
// the kind of the index: for its recall.
func Exact(ctx context.Context, ix Index, query []float32, k int, filter *Filter) ([]Result, error) {
	if e, ok := ix.(interface {
		Exact(ctx context.Context, dst []Result, query []float32, k int, filter *Filter) ([]Result, error)
	}); ok {
		return e.Exact(ctx, nil, query, k, filter)
	}
	if f, ok := ix.(*Flat); ok {
		return f.Search(ctx, nil, query, k, filter)
	}
	return nil, fmt.Errorf("ann: exact search of an index of type %T: %w", ix, runtime.ErrUnsupported)
}
