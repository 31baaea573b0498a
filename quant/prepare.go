package quant

// Weights as products read them, made in pieces.

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// Prepare copies weights to a device: those with a [Format.ProductBlock] with their codes and scales, and those of
// other formats as Words has them. Its errors are those of Words, but blocks need not be ternary. m is not kept. Rows
// are converted some at a time, in about 20 MiB of the host's memory, or more if the fewest rows with bytes of their
// own need more. That is up to the whole matrix in W2A8_M4 with blocks that are no multiple of a row.
func Prepare(ctx context.Context, dev *runtime.Device, m Matrix) (*Prepared, error) {
	return prepare(ctx, dev, dev.Stream(), m, math.MaxInt64)
}

// prepare is Prepare in pieces that take no more than the budget, by a stream on which products are queued, too.
func prepare(ctx context.Context, dev *runtime.Device, stream *runtime.Stream, m Matrix,
	budget int64) (*Prepared, error) {
	layout, err := checkWeights(&m)
	if err != nil {
		return nil, err
	}
	f := ternaryForm(&m, &layout)
	if b := m.Format.products(); b != nil {
		f = b.form(&m)
	}
	p := &Prepared{Rows: m.Rows, Cols: m.meant(), dev: dev, stream: stream, k: f.k, parts: f.parts, sums: f.sums}
	if err := p.load(ctx, &f, budget); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// load compiles the kernels of a family, one for activations and one with the family's name, and copies the
// weights to the device.
func (p *Prepared) load(ctx context.Context, f *form, budget int64) error {
	rows, err := f.atOnce(budget)
	if err != nil {
		return err
	}
	unit, err := kernels.Unit(f.family, p.dev.Features(), f.defines...)
	if err != nil {
		return err
	}
	if p.program, err = p.dev.Program(ctx, unit); err != nil {
		return err
	}
	if p.quantize, err = p.program.Kernel(f.quantize); err != nil {
		return err
	}
	if p.multiply, err = p.program.Kernel(f.family); err != nil {
		return err
	}
	if p.codes, err = runtime.Alloc[uint32](p.dev, f.rows*f.words); err != nil {
		return err
	}
	if p.by, err = p.dev.Alloc(f.by, f.rows*f.bytes/f.by.Size()); err != nil {
		return err
	}
	return f.pieces(ctx, rows, func(lo int, codes []uint32, by []byte) error {
		if err := p.stream.Write(ctx, p.codes, 4*int64(lo)*int64(f.words), bytesOf(codes)); err != nil {
			return err
		}
		return p.stream.Write(ctx, p.by, int64(lo)*int64(f.bytes), by)
	})
}

// form is what products read of a matrix, and how it is made of bands of rows.
type form struct {
	name             string // of the matrix
	family, quantize string // the kernels
	defines          []source.Define
	by               runtime.Type // of the scales
	k, parts, sums   int          // see Prepared
	rows, band       int          // of the result, and of a band, which has codes of its own
	words, bytes     int          // of a row: words of codes and bytes of scales
	numbers          int          // of a row, which are decoded in the meantime
	// fill makes rows lo to hi, which are whole bands, of zeros.
	fill func(lo, hi int, codes []uint32, by []byte, x []float32) error
}

// atOnce returns how many rows are made at once. If a band alone takes more than the budget, in bytes, that is
// driver.ErrBudget.
func (f *form) atOnce(budget int64) (int, error) {
	band := int64(f.band) * int64(4*f.words+f.bytes+4*f.numbers)
	if band > budget {
		return 0, fmt.Errorf("quant: %s: preparing takes %d rows at once, of %d bytes together, and the budget is %d: %w",
			f.name, f.band, band, budget, driver.ErrBudget)
	}
	bands := min(budget/band, max(1, stepNumbers/(int64(f.band)*int64(max(f.k, f.numbers)))),
		int64(padded(f.rows, f.band)/f.band))
	return min(int(bands)*f.band, f.rows), nil
}

// pieces calls f for pieces of so many rows in order, with the first row of each, in memory that is used again.
func (f *form) pieces(ctx context.Context, rows int, each func(lo int, codes []uint32, by []byte) error) error {
	codes, by, x := make([]uint32, rows*f.words), make([]byte, rows*f.bytes), make([]float32, rows*f.numbers)
	for lo := 0; lo < f.rows; lo += rows {
		if ctx.Err() != nil {
			return fmt.Errorf("quant: %w", context.Cause(ctx))
		}
		n := min(rows, f.rows-lo)
		if err := spread(padded(n, f.band)/f.band, f.band*f.k, func(a, b int) error {
			a, b = a*f.band, min(b*f.band, n)
			codes, by := codes[a*f.words:b*f.words], by[a*f.bytes:b*f.bytes]
			clear(codes)
			clear(by)
			return f.fill(lo+a, lo+b, codes, by, x[a*f.numbers:b*f.numbers])
		}); err != nil {
			return err
		}
		if err := each(lo, codes[:n*f.words], by[:n*f.bytes]); err != nil {
			return err
		}
	}
	return nil
}

// checkWeights checks a matrix of weights.
func checkWeights(m *Matrix) (plan, error) {
	p, err := m.plan(-1, driver.ErrCorrupt)
	if cols := m.meant(); err == nil && (cols > mostCols || m.Rows > math.MaxInt32) {
		err = fmt.Errorf("quant: products with %s: more than %d rows, or more than %d columns, whose sums may need more "+
			"than 32 bits: %w",
			m.weights(), math.MaxInt32, mostCols, driver.ErrTooLarge)
	}
	return p, err
}

// weights is "TQ2_0 of 64 × 300".
func (m *Matrix) weights() string { return fmt.Sprintf("%s of %d × %d", m.Format, m.Rows, m.meant()) }

// ternaryForm is that of rows with one scale each.
func ternaryForm(m *Matrix, p *plan) form {
	k := padded(m.meant(), kernels.W2A8Group)
	f := form{name: m.weights(), family: "w2a8", quantize: "quantize_rows", by: runtime.F32, k: k, parts: 1, sums: 1,
		rows: m.Rows, band: p.band(), words: k / 16, bytes: 4, numbers: m.Cols}
	f.fill = func(lo, hi int, codes []uint32, by []byte, x []float32) error {
		q, from := p.rows(m, lo, hi)
		if !fastest().decode(&q, x, from) {
			q.codec.decode(q.Layout, x, from)
		}
		for r := range hi - lo {
			s, err := prepareRow(codes[r*f.words:(r+1)*f.words], x[r*m.Cols:][:m.meant()])
			if err != nil {
				return fmt.Errorf("quant: row %d of %s: %w", lo+r, f.name, err)
			}
			binary.NativeEndian.PutUint32(by[4*r:], math.Float32bits(s))
		}
		return nil
	}
	return f
}

// band returns a number of rows such that each so many of them have bytes of their own.
func (p *plan) band() int {
	rows, apart := 1, func(int) bool { return true }
	switch p.Format {
	case I2SM1, I2SM2:
		apart = func(rows int) bool { return rows*p.Cols%p.numbers == 0 }
	case I2SM3:
		rows = 4
	case W2A8M4:
		rows, apart = tileRows, func(rows int) bool { return p.groups*p.scales == 1 || rows%p.Block == 0 }
	case MTL1, MTL2:
		rows = p.Tile.BM
	}
	n := rows
	for n < p.Rows && !apart(n) {
		n += rows
	}
	return n
}

// rows returns the plan and the codes of rows lo to hi, which are whole bands.
func (p *plan) rows(m *Matrix, lo, hi int) (plan, codes) {
	l, c := p.Layout, p.part(m, 0, p.groups)
	l.Rows = hi - lo
	q, _ := l.plan()
	l.Rows = lo
	if m.Format == MTL2 { // its three parts follow each other
		_, indices, signs, _ := parts(p.Layout)
		_, i, s, r := parts(l)
		_, di, ds, dr := parts(q.Layout)
		c.data = slices.Concat(c.data[i:i+di], c.data[indices+s:][:ds], c.data[indices+signs+r:][:dr])
		return q, c
	}
	before, _ := l.plan() // of no rows: zero
	c.data = c.data[before.data:][:q.data]
	if len(c.scales) > 1 {
		c.scales = c.scales[before.groups*before.scales:][:q.groups*q.scales]
	}
	return q, c
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
			return 0, fmt.Errorf("number %d is %v in a row of magnitude %v: products take weights of %s, and ternary ones "+
				"with one scale for a row; others have to be decoded: %w", i, v, s, inProducts(), driver.ErrUnsupported)
		}
		group, e := i/kernels.W2A8Group, i%kernels.W2A8Group
		codes[group*(kernels.W2A8Group/16)+e%64/4] |= code << (8*(e%4) + e/64*2)
	}
	return s, nil
}

// Words returns weights as the kernel w2a8 of the catalog reads them: for each row words of 16 codes, padded
// with zeros to whole kernels.W2A8Group of them, and a factor. Every row of m has to consist of -s, 0 and s for
// an s of its own; for others the error is driver.ErrUnsupported and names the row. Rows whose sums could leave
// 32 bits, of more than 2^24 columns, are driver.ErrTooLarge.
func Words(m Matrix) (codes []uint32, factors []float32, err error) {
	p, err := checkWeights(&m)
	if err != nil {
		return nil, nil, err
	}
	f := ternaryForm(&m, &p)
	rows, err := f.atOnce(math.MaxInt64)
	if err != nil {
		return nil, nil, err
	}
	codes, factors = make([]uint32, 0, f.rows*f.words), make([]float32, 0, f.rows)
	err = f.pieces(context.Background(), rows, func(_ int, words []uint32, by []byte) error {
		codes = append(codes, words...)
		for ; len(by) > 0; by = by[4:] {
			factors = append(factors, math.Float32frombits(binary.NativeEndian.Uint32(by)))
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return codes, factors, nil
}

// padded returns the least multiple of unit that is not below n.
func padded(n, unit int) int { return (n + unit - 1) / unit * unit }
