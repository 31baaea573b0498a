package ann

// Distances of every query to every vector.

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/concord-compute/concord/runtime"
)

// L2Batch returns the squared distance of every query to every vector of a corpus: out[q*nVectors+v]. Both are
// float, row after row, and are converted to the precision. The device is that of a merged index, as
// runtime.Devices lists them.
//
// The first of these that is wrong is the error:
//
//   - the device's index: [runtime.ErrDeviceIndex]
//   - the precision: driver.ErrUnsupportedPrecision
//   - an input without elements, or a size below 1: [runtime.ErrInvalidArgument]
//   - sizes whose products are too large: [runtime.ErrTooLarge]
//   - lengths that are not those of the sizes: [runtime.ErrDimension]
//   - a device that does not open: [runtime.ErrNoDevice]
//   - memory: [runtime.ErrBudget], [runtime.ErrTooLarge], [runtime.ErrOutOfMemory]
func L2Batch(ctx context.Context, queries, corpus []float32, dim, nQueries, nVectors, device int,
	p Precision) ([]float32, error) {
	if err := checkContext(ctx); err != nil {
		return nil, err
	}
	s, err := runtime.Default()
	if err != nil {
		return nil, err
	}
	list, err := s.Devices(ctx)
	if err != nil {
		return nil, err
	}
	if device < 0 || device >= len(list) {
		return nil, fmt.Errorf("ann: device %d of %d: %w", device, len(list), runtime.ErrDeviceIndex)
	}
	return l2(ctx, s, strconv.Itoa(device), queries, corpus, dim, nQueries, nVectors, p)
}

// L2SqrtBatch is [L2Batch] with the root of each distance.
func L2SqrtBatch(ctx context.Context, queries, corpus []float32, dim, nQueries, nVectors, device int,
	p Precision) ([]float32, error) {
	out, err := L2Batch(ctx, queries, corpus, dim, nQueries, nVectors, device, p)
	return roots(out), err
}

// L2 is [L2Batch] on the active device with [FP32]: distances are squared.
func L2(ctx context.Context, queries, corpus []float32, dim, nQueries, nVectors int) ([]float32, error) {
	s, err := runtime.Default()
	if err != nil {
		return nil, err
	}
	return l2(ctx, s, "auto", queries, corpus, dim, nQueries, nVectors, FP32)
}

func l2(ctx context.Context, s *runtime.Session, device string, queries, corpus []float32, dim, nQueries, nVectors int,
	p Precision) ([]float32, error) {
	if err := cmp.Or(checkContext(ctx), p.check()); err != nil {
		return nil, err
	}
	if err := checkProduct(len(queries), len(corpus), dim, nQueries, nVectors); err != nil {
		return nil, err
	}
	dev, err := s.Open(ctx, device)
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	c, err := UploadCorpus(ctx, dev, corpus, dim, p)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.L2Batch(ctx, queries)
}

// checkProduct makes checks 3 to 6 of L2Batch.
func checkProduct(queries, corpus, dim, nQueries, nVectors int) error {
	most := func(a, b int) bool { return a <= math.MaxUint32 && b <= math.MaxUint32 && a <= math.MaxInt/8/b }
	switch {
	case queries == 0 || corpus == 0:
		return fmt.Errorf("ann: an input is empty: %d components of queries, %d of the corpus: %w", queries, corpus,
			runtime.ErrInvalidArgument)
	case dim < 1 || nQueries < 1 || nVectors < 1:
		return fmt.Errorf("ann: %d components, %d queries and %d vectors have to be at least 1: %w", dim, nQueries, nVectors,
			runtime.ErrInvalidArgument)
	case !most(nQueries, dim) || !most(nVectors, dim) || !most(nQueries, nVectors):
		return fmt.Errorf("ann: %d queries and %d vectors of %d components: %w", nQueries, nVectors, dim, runtime.ErrTooLarge)
	case queries != nQueries*dim:
		return fmt.Errorf("ann: %d components for %d queries of %d: %w", queries, nQueries, dim, runtime.ErrDimension)
	case corpus != nVectors*dim:
		return fmt.Errorf("ann: %d components for %d vectors of %d: %w", corpus, nVectors, dim, runtime.ErrDimension)
	}
	return nil
}

func roots(x []float32) []float32 {
	for i, v := range x {
		x[i] = float32(math.Sqrt(float64(v)))
	}
	return x
}

// Corpus is vectors in a device's memory, for the distances of any number of queries. It may be used from any
// goroutine. The device stays open while the corpus is.
type Corpus struct {
	flat   *Flat
	kernel kernel
	rows   int
}

// UploadCorpus brings vectors to a device, row after row, converted to a precision. A corpus without vectors or
// a dimension below 1 is [runtime.ErrInvalidArgument], a length that is no multiple of the dimension
// [runtime.ErrDimension].
func UploadCorpus(ctx context.Context, dev *runtime.Device, corpus []float32, dim int, p Precision) (*Corpus, error) {
	if err := cmp.Or(checkContext(ctx), p.check()); err != nil {
		return nil, err
	}
	if len(corpus) == 0 || dim < 1 {
		return nil, fmt.Errorf("ann: a corpus of %d components, with %d for each vector: %w", len(corpus), dim,
			runtime.ErrInvalidArgument)
	}
	if len(corpus)%dim != 0 {
		return nil, fmt.Errorf("ann: a corpus of %d components is no number of vectors of %d: %w", len(corpus), dim,
			runtime.ErrDimension)
	}
	e, err := newEngine(dev, dim, L2Squared, p)
	if err != nil {
		return nil, err
	}
	e.code = p.scaleOf(corpus)
	c := &Corpus{flat: &Flat{storage: storage{e: e, stores: []*store{newStore(e)}}}, rows: len(corpus) / dim}
	if c.kernel, err = e.distanceKernel(ctx); err == nil {
		err = c.flat.stores[0].grow(ctx, 0, c.rows)
	}
	if err == nil {
		err = c.flat.stores[0].put(ctx, e.code, 0, corpus, nil)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// distanceKernel returns the kernel of the family l2_distance for the precision.
func (e *engine) distanceKernel(ctx context.Context) (kernel, error) {
	p, err := e.unit(ctx, "l2_distance")
	if err != nil {
		return kernel{}, err
	}
	return kernelOf(p, map[runtime.Type]string{runtime.F32: "l2_distance_fp32", runtime.F16: "l2_distance_fp16",
		runtime.I8: "l2_distance_int8"}[e.code.typ()])
}

// Close frees the corpus. Closing twice does nothing.
func (c *Corpus) Close() error { return c.flat.Close() }

// L2Batch returns the squared distance of every query to every vector: out[q·n+v], where n is the number of
// vectors. Only the queries are converted and copied to the device. Queries of a length that is no multiple of
// the dimension are [runtime.ErrDimension], none [runtime.ErrInvalidArgument], more distances than an int
// counts [runtime.ErrTooLarge].
func (c *Corpus) L2Batch(ctx context.Context, queries []float32) ([]float32, error) {
	f := c.flat
	if err := reading(ctx, &f.mu); err != nil {
		return nil, err
	}
	defer f.mu.RUnlock()
	if err := f.asked(ctx, len(queries), 1, false); err != nil {
		return nil, err
	}
	dim := f.e.dim
	nq := len(queries) / dim
	if err := checkProduct(len(queries), c.rows*dim, dim, nq, c.rows); err != nil {
		return nil, err
	}
	w, err := f.stores[0].works.take(ctx, f.e)
	if err != nil {
		return nil, err
	}
	defer f.stores[0].works.give(w)
	w.late = true
	out := make([]float32, nq*c.rows)
	if err := w.ask(ctx, queries); err != nil {
		return nil, err
	}
	result, err := f.e.dev.Alloc(runtime.F32, len(out))
	if err != nil {
		return nil, err
	}
	defer result.Close()
	grid, err := c.kernel.grid(nq, c.rows)
	if err != nil {
		return nil, err
	}
	if err := w.stream.Launch(c.kernel.Kernel, grid, w.queries.buf, f.stores[0].base, result, uint32(nq), uint32(c.rows),
		uint32(dim)); err != nil {
		return nil, err
	}
	if err := w.stream.Read(ctx, result, 0, bytesOf(out)); err != nil {
		return nil, err
	}
	w.late = false
	if f.e.code.Precision == INT8Scaled { // the kernel divides by 127²
		for i, d := range out {
			out[i] = float32(float64(d) * 16129 * f.e.code.unit())
		}
	}
	return out, nil
}

// L2SqrtBatch is [Corpus.L2Batch] with the root of each distance.
func (c *Corpus) L2SqrtBatch(ctx context.Context, queries []float32) ([]float32, error) {
	out, err := c.L2Batch(ctx, queries)
	return roots(out), err
}
