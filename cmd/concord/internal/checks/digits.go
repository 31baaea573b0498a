package checks

// Nearest neighbours of handwritten digits: the data, the computation on one
// device, and the comparison with the reference.

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/concord-compute/concord/cmd/concord/internal/devices"
	"github.com/concord-compute/concord/internal/mnist"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/parity"
)

// digits is the problem: images as points, one coordinate per pixel.
type digits struct {
	base, query           []float32
	baseLabel, queryLabel []uint8
	dim, k                int
}

const (
	demoBase = 9000 // images to search in; the rest are searched for
	demoK    = 5
)

func loadDigits() (*digits, error) {
	images, err := mnist.Images()
	if err != nil {
		return nil, err
	}
	labels, err := mnist.Labels()
	if err != nil {
		return nil, err
	}
	dim := images.Rows * images.Cols
	pixels := make([]float32, len(images.Pixels))
	for i, p := range images.Pixels {
		pixels[i] = float32(p)
	}
	return &digits{
		base: pixels[:demoBase*dim], query: pixels[demoBase*dim:],
		baseLabel: labels[:demoBase], queryLabel: labels[demoBase:],
		dim: dim, k: demoK,
	}, nil
}

func (d *digits) vectors() int { return len(d.baseLabel) }
func (d *digits) queries() int { return len(d.queryLabel) }

// batches returns the number of batches of that size for all queries.
func (d *digits) batches(size int) int { return (d.queries() + size - 1) / size }

// accuracy is the share of queries whose nearest neighbour has the same label.
func (d *digits) accuracy(indices []uint32) float64 {
	right := 0
	for q, label := range d.queryLabel {
		if i := indices[q*d.k]; int(i) < len(d.baseLabel) && d.baseLabel[i] == label {
			right++
		}
	}
	return float64(right) / float64(d.queries())
}

// neighbours is the result of one device, and the time it took.
type neighbours struct {
	distances []float32 // of every query to every vector
	values    []float32 // the k smallest of each query, ascending
	indices   []uint32  // their vectors

	built                    string
	compile, upload, kernels time.Duration
}

// runNeighbours solves the problem on one device, with batches of that many queries.
func runNeighbours(ctx context.Context, s *runtime.Session, t devices.Target, data *digits, batch int,
	step func()) (*neighbours, error) {
	dev, err := s.Open(ctx, t.Device)
	if err != nil {
		return nil, err
	}
	n, err := (&search{dev: dev, data: data}).run(ctx, t.Options, batch, step)
	if ctx.Err() == nil { // otherwise closing could wait for ever
		dev.Close()
	}
	return n, err
}

// search solves the problem on an open device. It closes everything that it opens on it.
type search struct {
	dev            *runtime.Device
	data           *digits
	distance, topk *runtime.Kernel

	base, query, distances, values, indices *runtime.Buffer
}

func (s *search) run(ctx context.Context, opt runtime.ProgramOptions, batch int, step func()) (*neighbours, error) {
	n := &neighbours{}
	start := time.Now()
	if err := s.compile(ctx, opt, n); err != nil {
		return nil, err
	}
	n.compile = time.Since(start)
	start = time.Now()
	if err := s.upload(ctx); err != nil {
		return nil, err
	}
	n.upload = time.Since(start)
	// Some drivers finish compiling at the first launch.
	start = time.Now()
	if _, err := s.batch(ctx, 0, 1); err != nil {
		return nil, err
	}
	n.compile += time.Since(start)
	for first := 0; first < s.data.queries(); first += batch {
		took, err := s.batch(ctx, first, min(batch, s.data.queries()-first))
		if err != nil {
			return nil, err
		}
		n.kernels += took
		step()
	}
	return n, s.download(ctx, n)
}

func (s *search) compile(ctx context.Context, opt runtime.ProgramOptions, n *neighbours) error {
	var from []string
	for _, k := range []struct {
		family, name string
		to           **runtime.Kernel
	}{{"l2_distance", "l2_distance_fp32", &s.distance}, {"topk", "topk", &s.topk}} {
		kernel, prog, err := parity.Kernel(ctx, s.dev, k.family, k.name, opt)
		if err != nil {
			return err
		}
		*k.to = kernel
		from = append(from, prog.Built().From)
	}
	n.built = slowest(from)
	return nil
}

// slowest names the most expensive of several programs' origins.
func slowest(from []string) string {
	for _, f := range []string{"compiled", "disk", "memory"} {
		if slices.Contains(from, f) {
			return f
		}
	}
	return driverNative
}

func (s *search) upload(ctx context.Context) (err error) {
	d := s.data
	if s.base, err = runtime.Upload(ctx, s.dev, d.base); err != nil {
		return err
	}
	if s.query, err = runtime.Upload(ctx, s.dev, d.query); err != nil {
		return err
	}
	if s.distances, err = runtime.Alloc[float32](s.dev, d.queries()*d.vectors()); err != nil {
		return err
	}
	if s.values, err = runtime.Alloc[float32](s.dev, d.queries()*d.k); err != nil {
		return err
	}
	s.indices, err = runtime.Alloc[uint32](s.dev, d.queries()*d.k)
	return err
}

// batch finds the neighbours of n queries from the first on, and returns the
// device's time.
func (s *search) batch(ctx context.Context, first, n int) (time.Duration, error) {
	d := s.data
	var views []*runtime.Buffer
	defer func() {
		for _, v := range views {
			v.Close()
		}
	}()
	for _, part := range []struct {
		of  *runtime.Buffer
		row int
	}{{s.query, d.dim}, {s.distances, d.vectors()}, {s.values, d.k}, {s.indices, d.k}} {
		v, err := part.of.Slice(first*part.row, n*part.row)
		if err != nil {
			return 0, err
		}
		views = append(views, v)
	}
	query, distances, values, indices := views[0], views[1], views[2], views[3]
	grid, err := parity.Grid(s.distance, n, d.vectors())
	if err != nil {
		return 0, err
	}
	one, err := s.dev.Stream().Run(ctx, s.distance, grid, query, s.base, distances, uint32(n), uint32(d.vectors()),
		uint32(d.dim))
	if err != nil {
		return 0, err
	}
	if grid, err = parity.Grid(s.topk, n); err != nil {
		return 0, err
	}
	two, err := s.dev.Stream().Run(ctx, s.topk, grid, distances, values, indices, uint32(n), uint32(d.vectors()),
		uint32(d.k))
	return time.Duration(one.DeviceTimeNs + two.DeviceTimeNs), err
}

func (s *search) download(ctx context.Context, n *neighbours) error {
	n.distances = make([]float32, s.distances.Len())
	n.values = make([]float32, s.values.Len())
	n.indices = make([]uint32, s.indices.Len())
	return cmp.Or(runtime.Read(ctx, s.distances, n.distances), runtime.Read(ctx, s.values, n.values),
		runtime.Read(ctx, s.indices, n.indices))
}

// exactBelow is the limit below which whole numbers are exact in float. A sum of squares of pixels
// below it is exact in any order of addition.
const exactBelow = 1 << 24

// compare returns the largest difference of a distance, and the reason why the result is wrong, or
// "". Neighbours and exact distances must be equal; sums above exactBelow may have the error of
// sums of that many terms.
func (n *neighbours) compare(ref *neighbours, d *digits) (largest float64, reason string) {
	for i, want := range ref.distances {
		diff := math.Abs(float64(n.distances[i]) - float64(want))
		allowed := 0.0
		if want >= exactBelow {
			allowed = float64(d.dim+4) * 0x1p-24 * float64(want)
		}
		if !(diff <= allowed) && reason == "" { // NaN is wrong too
			reason = fmt.Sprintf("distance of query %d to vector %d is %v, not %v", i/d.vectors(), i%d.vectors(), n.distances[i],
				want)
		}
		if !(diff <= largest) {
			largest = diff
		}
	}
	for q := 0; q < d.queries() && reason == ""; q++ {
		from, to := q*d.k, (q+1)*d.k
		switch {
		case !slices.Equal(n.indices[from:to], ref.indices[from:to]):
			reason = fmt.Sprintf("neighbours of query %d are %v, not %v", q, n.indices[from:to], ref.indices[from:to])
		case !slices.Equal(n.values[from:to], ref.values[from:to]):
			reason = fmt.Sprintf("distances of query %d are %v, not %v", q, n.values[from:to], ref.values[from:to])
		}
	}
	return largest, reason
}
