package quant

// Products of activations with weights of few bits on a device.

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"sync/atomic"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// Prepared is a matrix of weights in the memory of a device, in the layout that products read fastest: ternary ones with 2 bits for a
// weight and a factor for each row (the kernel w2a8 of the catalog), Q8_0, Q4_0, Q4_K and Q6_K with the codes and scales of their blocks
// (gemm_q). It is safe for concurrent use.
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

// Prepare copies weights to a device: those of Q8_0, Q4_0, Q4_K and Q6_K with their codes and scales, and those of other formats as Words has them.
// Its errors are those of Words, but blocks need not be ternary. m is not kept.
func Prepare(ctx context.Context, dev *runtime.Device, m Matrix) (*Prepared, error) {
	p := &Prepared{Rows: m.Rows, Cols: m.meant(), dev: dev, stream: dev.Stream()}
	var err error
	if f, ok := m.Format.blockForm(); ok {
		err = p.blocks(ctx, m, f)
	} else {
		err = p.ternary(ctx, m)
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Prepared) ternary(ctx context.Context, m Matrix) error {
	codes, by, err := Words(m)
	if err != nil {
		return err
	}
	p.k, p.parts, p.sums = len(codes)/m.Rows*16, 1, 1
	return open(ctx, p, "w2a8", "quantize_rows", codes, by)
}

// blocks puts the blocks of 16 rows beside each other, word by word, and their scales.
func (p *Prepared) blocks(ctx context.Context, m Matrix, f blockForm) error {
	const rows, numbers = kernels.GemmQRows, kernels.GemmQBlock
	if err := multiplied(m); err != nil {
		return err
	}
	p.k = padded(p.Cols, f.numbers)
	p.parts = p.k / numbers
	p.sums = 2 * p.parts
	scales, groups := rows, m.Cols/f.numbers // 16-bit numbers of a block of a panel, on average
	if f.numbers == kernels.GemmQLarge {
		scales += rows / 4
	}
	panels := padded(p.Rows, rows) / rows
	codes, by := make([]uint32, panels*p.parts*f.bits*rows), make([]byte, 2*panels*p.parts*scales)
	if err := spread(p.Rows, p.Cols, func(lo, hi int) error {
		for r := lo; r < hi; r++ {
			for g := range p.k / f.numbers {
				data, at := m.Data[(r*groups+g)*f.bytes:][:f.bytes], r/rows*p.parts+g*f.numbers/numbers
				f.scales(data, by[2*at*scales:], r%rows)
				for b := range f.numbers / numbers {
					var words [numbers]byte
					f.codes(data, b, words[:])
					for i := range f.bits {
						codes[((at+b)*f.bits+i)*rows+r%rows] = binary.LittleEndian.Uint32(words[4*i:])
					}
				}
			}
		}
		return nil
	}); err != nil {
		return err
	}
	defines := []source.Define{{Name: "BITS", Value: strconv.Itoa(f.bits)}}
	if f.numbers == kernels.GemmQLarge {
		defines = append(defines, source.Define{Name: "K", Value: "1"})
	}
	if err := open(ctx, p, "gemm_q", "quantize_blocks", codes, by, defines...); err != nil {
		return err
	}
	bytes := p.by
	defer bytes.Close()
	var err error
	p.by, err = bytes.As(runtime.U16)
	return err
}

// blockForm is a format as the kernel gemm_q reads it.
type blockForm struct {
	bits, numbers, bytes int                                 // of a code, in a group, and of it
	scales               func(data, by []byte, row int)      // copies those of a group to the place of a row of a panel
	codes                func(data []byte, b int, to []byte) // makes the words of block b of a group, from zeros
}

// blockForm returns how products read a format of blocks, and whether it is one.
func (f Format) blockForm() (blockForm, bool) {
	scale := func(data, by []byte, row int) { copy(by[2*row:], data[:2]) }
	switch f {
	case Q80: // codes become those of numbers from -128 on
		return blockForm{8, 32, 34, scale, func(data []byte, _ int, to []byte) {
			for i, c := range data[2:] {
				to[i] = c ^ 0x80
			}
		}}, true
	case Q40:
		return blockForm{4, 32, 18, scale, func(data []byte, _ int, to []byte) { copy(to, data[2:]) }}, true
	case Q4K:
		return blockForm{4, 256, q4kBytes, scalesOfQ4K, func(data []byte, b int, to []byte) {
			from, shift := data[16+b/2*32:], b%2*4
			for i := range 16 {
				to[i] = from[i]>>shift&15 | from[16+i]>>shift<<4
			}
		}}, true
	case Q6K:
		return blockForm{6, 256, q6kBytes, scalesOfQ6K, func(data []byte, b int, to []byte) {
			for e := range 32 {
				low, high, bit := q6place(32*b + e)
				to[e%16] |= data[low] >> (bit / 4 * 4) & 15 << (e / 16 * 4)
				to[16+e/16*4+e%4] |= data[high] >> bit & 3 << (e % 16 / 4 * 2)
			}
		}}, true
	}
	return blockForm{}, false
}

// multiplied checks a matrix of weights.
func multiplied(m Matrix) error {
	if _, err := m.plan(-1, driver.ErrCorrupt); err != nil {
		return err
	}
	if cols := m.meant(); cols > mostCols || m.Rows > math.MaxInt32 {
		return fmt.Errorf("quant: products with %s of %d × %d: more than %d rows, or more than %d columns, whose sums may need more than 32 bits: %w",
			m.Format, m.Rows, cols, math.MaxInt32, mostCols, driver.ErrTooLarge)
	}
	return nil
}

// padded returns the least multiple of unit that is not below n.
func padded(n, unit int) int { return (n + unit - 1) / unit * unit }

// Words returns weights as the kernel w2a8 of the catalog reads them: for each row words of 16 codes, padded with zeros to whole kernels.W2A8Group of them,
// and a factor. Every row of m has to consist of -s, 0 and s for an s of its own; for others the error is
// driver.ErrUnsupported and names the row. Rows whose sums could leave 32 bits, of more than 2^24 columns, are driver.ErrTooLarge.
// In the meantime, the numbers of m take four bytes each.
func Words(m Matrix) (codes []uint32, factors []float32, err error) {
	if err := multiplied(m); err != nil {
		return nil, nil, err
	}
	rows, cols := m.Rows, m.meant()
	words := padded(cols, kernels.W2A8Group) / 16
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
			return 0, fmt.Errorf("number %d is %v in a row of magnitude %v: products take weights of Q8_0, Q4_0, Q4_K and Q6_K, and ternary ones with one scale for a row; others have to be decoded: %w", i, v, s, driver.ErrUnsupported)
		}
		group, e := i/kernels.W2A8Group, i%kernels.W2A8Group
		codes[group*(kernels.W2A8Group/16)+e%64/4] |= code << (8*(e%4) + e/64*2)
	}
	return s, nil
}

// open copies the layout to the device and compiles the kernels of a family: one for activations, and one with the family's name.
func open[T float32 | byte](ctx context.Context, p *Prepared, family, quantize string, codes []uint32, by []T, defines ...source.Define) error {
	unit, err := kernels.Unit(family, p.dev.Features(), defines...)
	if err != nil {
		return err
	}
	if p.program, err = p.dev.Program(ctx, unit); err != nil {
		return err
	}
	if p.quantize, err = p.program.Kernel(quantize); err != nil {
		return err
	}
	if p.multiply, err = p.program.Kernel(family); err != nil {
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
	return fmt.Sprintf("%s of %d × %d on %s, %.1f MiB", p.multiply.Name(), p.Rows, p.Cols, p.dev, float64(p.Bytes())/(1<<20))
}

// Mul queues y = x·wᵀ on the device's stream, for x of rows × Cols and y of rows × Rows numbers (F32), and does not wait. x is
// rounded to bytes in the same work: with ternary weights each row, as Activations does it, and with blocks of weights each block of 32 in the same
// way. The sums of products of a row, or of a block, are exact; cpu:0 adds those of blocks as floats in their order, and rounds each
// operation, with the same bits in all of its instruction sets. A row of x with a NaN or an infinity makes a row of NaN. y and x must not
// share memory. After Close it is driver.ErrClosed.
func (p *Prepared) Mul(y, x *runtime.Buffer, rows int) error {
	switch {
	case p.closed.Load():
		return errOfClosed(p.Rows, p.Cols)
	case y == nil || x == nil || y == x:
		return fmt.Errorf("quant: a product needs activations and other memory for its result: %w", driver.ErrInvalidArgument)
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
	if err := p.launch(p.quantize, []int{rows * p.parts}, x, bytes, scales, sums, uint32(rows), uint32(p.Cols), uint32(p.k)); err != nil {
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
