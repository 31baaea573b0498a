package quant

// Products of activations with weights of few bits on a device.

import (
	"fmt"
	"sync/atomic"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// Prepared is a matrix of weights in the memory of a device, in the layout that products read fastest. Ternary ones
// have 2 bits for a weight and a factor for each row (the kernel w2a8 of the catalog). Formats with a
// [Format.ProductBlock] have the codes and scales of their blocks (gemm_q). It is safe for concurrent use.
type Prepared struct {
	Rows, Cols int // Rows results of Cols activations each
	dev        *runtime.Device
	stream     *runtime.Stream // on which Mul queues
	k          int             // Cols with padding
	parts      int             // scales of a row of activations
	sums       int             // and its sums
	codes, by  *runtime.Buffer
	closed     atomic.Bool
	program    *runtime.Program
	quantize   *runtime.Kernel // quantize_rows or quantize_blocks
	multiply   *runtime.Kernel // w2a8 or gemm_q
}

// mostCols is a number of columns whose sums of activations and of products, from -127 to 127 each, fit into 32 bits.
const mostCols = 1 << 24

// Bytes returns the device memory of the weights and of their factors.
func (p *Prepared) Bytes() int64 { return p.codes.Bytes() + p.by.Bytes() }

// String is "w2a8 of 4096 × 4096 on cpu:0, 4.0 MiB".
func (p *Prepared) String() string {
	return fmt.Sprintf("%s of %d × %d on %s, %.1f MiB", p.multiply.Name(), p.Rows, p.Cols, p.dev,
		float64(p.Bytes())/(1<<20))
}

// Mul queues y = x·wᵀ on the device's stream, for x of rows × Cols and y of rows × Rows numbers (F32), and does not
// wait. x is rounded to bytes in the same work: with ternary weights each row, as Activations does it, and with blocks
// of weights each block of 32 in the same way. The sums of products of a row, or of a block, are exact. cpu:0 adds
// those of blocks as floats in their order, and rounds each operation, with the same bits in all of its instruction
// sets. A row of x with a NaN or an infinity makes a row of NaN. y and x must not share memory. After Close it is
// driver.ErrClosed.
func (p *Prepared) Mul(y, x *runtime.Buffer, rows int) error {
	switch {
	case p.closed.Load():
		return errOfClosed(p.Rows, p.Cols)
	case y == nil || x == nil || y == x:
		return fmt.Errorf("quant: a product needs activations and other memory for its result: %w", driver.ErrInvalidArgument)
	case rows < 0:
		return fmt.Errorf("quant: product of %d rows: %w", rows, driver.ErrInvalidArgument)
	case rows > x.Len()/p.Cols || rows > y.Len()/p.Rows:
		return fmt.Errorf("quant: product of %d rows of %d activations, of which %d are given, with %d results each, "+
			"for %d: %w", rows, p.Cols, x.Len(), p.Rows, y.Len(), driver.ErrDimension)
	case rows == 0:
		return nil
	}
	q, err := runtime.Alloc[uint32](p.dev, rows*p.k/4)
	if err != nil {
		return err
	}
	defer q.Close() // once the work is done
	bytes, err := q.As(runtime.I8)
	if err != nil {
		return err
	}
	defer bytes.Close()
	scales, err := runtime.Alloc[float32](p.dev, rows*p.parts)
	if err != nil {
		return err
	}
	defer scales.Close()
	sums, err := runtime.Alloc[int32](p.dev, rows*p.sums)
	if err != nil {
		return err
	}
	defer sums.Close()
	if err := p.launch(p.quantize, []int{rows * p.parts}, x, bytes, scales, sums, uint32(rows), uint32(p.Cols),
		uint32(p.k)); err != nil {
		return err
	}
	return p.launch(p.multiply, []int{rows, p.Rows}, q, scales, sums, p.codes, p.by, y, uint32(rows), uint32(p.Rows),
		uint32(p.k))
}

func (p *Prepared) launch(k *runtime.Kernel, sizes []int, args ...any) error {
	items, group, err := kernels.Geometry(k.Unit(), k.Name(), sizes...)
	if err != nil {
		return err
	}
	return p.stream.Launch(k, runtime.Grid{Items: items, Group: group}, args...)
}

func errOfClosed(rows, cols int) error {
	return fmt.Errorf("quant: product with weights of %d × %d: %w", rows, cols, driver.ErrClosed)
}

// Close gives the memory back, once queued products are done; it does not wait. Closing twice does nothing.
func (p *Prepared) Close() error {
	p.closed.Store(true)
	for _, b := range []*runtime.Buffer{p.codes, p.by} {
		if b != nil {
			_ = b.Close()
		}
	}
	if p.program != nil {
		return p.program.Close()
	}
	return nil
}
