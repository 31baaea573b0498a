package quant

// Products of activations with ternary weights on a device.

import (
	"context"
	"fmt"
	"math"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// Prepared is a matrix of ternary weights in the memory of a device, in the layout that products read fastest: 2 bits for a
// weight, and a factor for each row (the kernel w2a8 of the catalog). It is safe for concurrent use.
type Prepared struct {
	Rows, Cols int // Rows results of Cols activations each
	dev        *runtime.Device
	stream     *runtime.Stream // on which Mul queues
	k          int             // Cols with padding
	codes, by  *runtime.Buffer
	program    *runtime.Program
	quantize   *runtime.Kernel // quantize_rows
	multiply   *runtime.Kernel // w2a8
}

// mostCols is a number of columns whose sums of activations and of products, from -127 to 127 each, fit into 32 bits.
const mostCols = 1 << 24

// Prepare copies weights to a device, as Words has them and with its errors. m is not kept.
func Prepare(ctx context.Context, dev *runtime.Device, m Matrix) (*Prepared, error) {
	codes, by, err := Words(m)
	if err != nil {
		return nil, err
	}
	p := &Prepared{Rows: m.Rows, Cols: m.meant(), dev: dev, stream: dev.Stream(), k: len(codes) / m.Rows * 16}
	if err := p.open(ctx, codes, by); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Words returns weights as the kernel w2a8 of the catalog reads them: for each row words of 16 codes, padded with zeros to whole kernels.W2A8Group of them,
// and a factor. Every row of m has to consist of -s, 0 and s for an s of its own; for others the error is
// driver.ErrUnsupported and names the row. Rows whose sums could leave 32 bits, of more than 2^24 columns, are driver.ErrTooLarge.
// In the meantime, the numbers of m take four bytes each.
func Words(m Matrix) (codes []uint32, factors []float32, err error) {
	if _, err := m.plan(-1, driver.ErrCorrupt); err != nil {
		return nil, nil, err
	}
	rows, cols := m.Rows, m.meant()
	if cols > mostCols || rows > math.MaxInt32 {
		return nil, nil, fmt.Errorf("quant: products with %s of %d × %d: more than %d rows, or more than %d columns, whose sums may need more than 32 bits: %w",
			m.Format, rows, cols, math.MaxInt32, mostCols, driver.ErrTooLarge)
	}
	words := (cols + kernels.W2A8Group - 1) / kernels.W2A8Group * kernels.W2A8Group / 16
	x := make([]float32, rows*cols)
	if err := Decode(x, m); err != nil {
		return nil, nil, err
	}
	codes, factors = make([]uint32, rows*words), make([]float32, rows)
	err = spread(rows, cols, func(lo, hi int) error {
		for r := lo; r < hi; r++ {
			var err error
			if factors[r], err = prepareRow(codes[r*words:(r+1)*words], x[r*cols:(r+1)*cols]); err != nil {
				return fmt.Errorf("quant: row %d of %s of %d × %d: %w", r, m.Format, rows, cols, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return codes, factors, nil
}

// prepareRow writes the codes of a row, those of -s, 0 and s being 0, 1 and 2, and returns s.
func prepareRow(codes []uint32, x []float32) (float32, error) {
	s := float32(0)
	for _, v := range x {
		s = max(s, float32(math.Abs(float64(v))))
	}
	for i, v := range x {
		code := uint32(1)
		switch {
		case v == 0:
		case v == s:
			code = 2
		case v == -s:
			code = 0
		default:
			return 0, fmt.Errorf("number %d is %v in a row of magnitude %v: products take ternary weights with one scale for a row: %w", i, v, s, driver.ErrUnsupported)
		}
		group, e := i/kernels.W2A8Group, i%kernels.W2A8Group
		codes[group*(kernels.W2A8Group/16)+e%64/4] |= code << (8*(e%4) + e/64*2)
	}
	return s, nil
}

func (p *Prepared) open(ctx context.Context, codes []uint32, by []float32) (err error) {
	unit, err := kernels.Unit("w2a8", p.dev.Features())
	if err != nil {
		return err
	}
	if p.program, err = p.dev.Program(ctx, unit); err != nil {
		return err
	}
	if p.quantize, err = p.program.Kernel("quantize_rows"); err != nil {
		return err
	}
	if p.multiply, err = p.program.Kernel("w2a8"); err != nil {
		return err
	}
	if p.codes, err = runtime.Upload(ctx, p.dev, codes); err != nil {
		return err
	}
	p.by, err = runtime.Upload(ctx, p.dev, by)
	return err
}

// Bytes returns the device memory of the weights and of their factors.
func (p *Prepared) Bytes() int64 { return p.codes.Bytes() + p.by.Bytes() }

// String is "w2a8 of 4096 × 4096 on cpu:0, 4.0 MiB".
func (p *Prepared) String() string {
	return fmt.Sprintf("w2a8 of %d × %d on %s, %.1f MiB", p.Rows, p.Cols, p.dev, float64(p.Bytes())/(1<<20))
}

// Mul queues y = x·wᵀ on the device's stream, for x of rows × Cols and y of rows × Rows numbers (F32), and does not wait. Each row of x is
// rounded to bytes, as Activations does it, in the same work; the sums of products are exact. A row of x with a NaN or an
// infinity makes a row of NaN. y and x must not share memory.
func (p *Prepared) Mul(y, x *runtime.Buffer, rows int) error {
	switch {
	case rows < 0:
		return fmt.Errorf("quant: product of %d rows: %w", rows, driver.ErrInvalidArgument)
	case rows > x.Len()/p.Cols || rows > y.Len()/p.Rows:
		return fmt.Errorf("quant: product of %d rows of %d activations, of which %d are given, with %d results each, for %d: %w", rows, p.Cols, x.Len(), p.Rows, y.Len(), driver.ErrDimension)
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
	scales, err := runtime.Alloc[float32](p.dev, rows)
	if err != nil {
		return err
	}
	defer scales.Close()
	sums, err := runtime.Alloc[int32](p.dev, rows)
	if err != nil {
		return err
	}
	defer sums.Close()
	if err := p.launch(p.quantize, []int{rows}, x, bytes, scales, sums, uint32(rows), uint32(p.Cols), uint32(p.k)); err != nil {
		return err
	}
	return p.launch(p.multiply, []int{rows, p.Rows}, q, scales, sums, p.codes, p.by, y, uint32(rows), uint32(p.Rows), uint32(p.k))
}

func (p *Prepared) launch(k *runtime.Kernel, sizes []int, args ...any) error {
	items, group, err := kernels.Geometry(k.Unit(), k.Name(), sizes...)
	if err != nil {
		return err
	}
	return p.stream.Launch(k, runtime.Grid{Items: items, Group: group}, args...)
}

// Close gives the memory back, once queued products are done; it does not wait. Closing twice does nothing.
func (p *Prepared) Close() error {
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
