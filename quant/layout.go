package quant

// Shapes and sizes.

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/concord-compute/concord/runtime/driver"
)

// Layout says how the numbers of a matrix are stored. A vector is one row.
type Layout struct {
	Format Format
	// as stored: Cols is a multiple of the format's group unless its last group may be short; Pack takes the Cols
	// that are meant
	Rows, Cols int
	// numbers per scale where a format leaves a choice, 0 for its default; rows per scale of W2A8M4, 0 for all
	Block      int
	Tile       Tile // of MTL1 and MTL2
	Asymmetric bool // of RTL1Q and RTL2Q: the levels of a block go from its minimum to its maximum
}

// Tile is the blocking of the table formats, which a file's producer chose for its kernels: blocks of BM rows and BY
// columns and, in MTL1, sub-blocks of Sub rows, 32 or 64. MTL2 has sub-blocks of 32 rows.
type Tile struct {
	BM, BY, Sub int
}

// plan is a layout with its sizes.
type plan struct {
	Layout
	*codec
	groups                 int
	numbers, bytes, scales int // of a group
	total                  int // numbers
	data                   int // bytes of all groups, without the tail
}

// tailBytes is the room of a scale behind the groups.
const tailBytes = 32

func (l Layout) plan() (plan, error) {
	c := l.Format.codec()
	if c == nil {
		return plan{}, fmt.Errorf("quant: %v is no format: %w", l.Format, driver.ErrInvalidArgument)
	}
	fail := func(err error, format string, args ...any) (plan, error) {
		return plan{}, fmt.Errorf("quant: %s of %d × %d: %s: %w", c.name, l.Rows, l.Cols, fmt.Sprintf(format, args...), err)
	}
	if l.Rows < 1 || l.Cols < 1 {
		return fail(driver.ErrInvalidArgument, "a matrix has at least one row and one column")
	}
	// No format has as many bytes as numbers, with scales, eight times.
	if high, low := bits.Mul(uint(l.Rows), uint(l.Cols)); high != 0 || low > math.MaxInt/8 {
		return fail(driver.ErrTooLarge, "more numbers than fit into an address space")
	}
	var err error
	if c.check != nil {
		err = c.check(l)
	} else if l.Block != 0 || l.Tile != (Tile{}) || l.Asymmetric {
		err = fmt.Errorf("the format has no Block, Tile or Asymmetric: %w", driver.ErrInvalidArgument)
	}
	if err != nil {
		return plan{}, fmt.Errorf("quant: %s of %d × %d: %w", c.name, l.Rows, l.Cols, err)
	}
	p := plan{Layout: l, codec: c, total: l.Rows * l.Cols}
	p.numbers, p.bytes, p.scales = c.group(l)
	rest := p.total % p.numbers
	switch {
	case rest != 0 && !c.short:
		return fail(driver.ErrDimension, "%d numbers are not a multiple of %d", p.total, p.numbers)
	case l.Rows > 1 && !c.cross && l.Cols%p.numbers != 0:
		return fail(driver.ErrDimension, "rows of %d numbers are not a multiple of %d, and rows do not share a group", l.Cols,
			p.numbers)
	}
	p.groups = p.total / p.numbers
	p.data = p.groups * p.bytes
	if rest != 0 {
		p.groups++
		p.data += (rest*p.bytes + p.numbers - 1) / p.numbers
	}
	return p, nil
}

// Sizes returns the bytes and the separate scales of a matrix. A shape that the format cannot store is
// driver.ErrDimension, wrong parameters are driver.ErrInvalidArgument.
func (l Layout) Sizes() (bytes, scales int, err error) {
	p, err := l.plan()
	if err != nil {
		return 0, 0, err
	}
	return p.size(), p.groups * p.scales, nil
}

func (p *plan) size() int {
	if p.tail {
		return p.data + tailBytes
	}
	return p.data
}

// Matrix is a quantized matrix. Its memory is the caller's, and may be that of a mapped file, which is only read.
type Matrix struct {
	Layout
	K    int    // columns that are meant, at most Cols; those after them are padding; 0: Cols
	Data []byte // bytes beyond those of the layout are ignored
	// of formats that keep them apart, block by block; for asymmetric blocks each is followed by the code of zero
	Scales []float32
}

// New returns a matrix of zero bytes with the memory that its layout needs.
func New(l Layout) (Matrix, error) {
	bytes, scales, err := l.Sizes()
	if err != nil {
		return Matrix{}, err
	}
	m := Matrix{Layout: l, Data: make([]byte, bytes)}
	if scales > 0 {
		m.Scales = make([]float32, scales)
	}
	return m, nil
}

// Padded returns the layout with as many more columns as rows of whole groups have.
func (l Layout) Padded() (Layout, error) {
	if c := l.Format.codec(); c != nil && l.Cols > 0 {
		unit := 1
		switch n := 0; l.Format {
		case I2SM3, I8Rows, I8All:
		case W2A8M4:
			unit = 32
		case MTL1:
			unit = l.Tile.BY
		case MTL2: // the last columns are pairs, in groups of 32
			unit = 32
		default:
			if n, _, _ = c.group(l); !c.short || l.Rows > 1 {
				unit = n
			}
		}
		if unit > 1 && l.Cols <= math.MaxInt-unit {
			l.Cols = (l.Cols + unit - 1) / unit * unit
		}
		for tries := l.Tile.BY; l.Format == MTL2 && tries > 0 && l.Cols%l.Tile.BY%32 != 0; tries-- {
			l.Cols += 32
		}
	}
	_, err := l.plan()
	return l, err
}

// Pack encodes rows of any length: l.Cols numbers each, which it pads with zeros to whole groups. The result's K is
// l.Cols.
func Pack(l Layout, x []float32) (Matrix, error) {
	padded, err := l.Padded()
	if err != nil {
		return Matrix{}, err
	}
	m, err := New(padded)
	if err != nil {
		return Matrix{}, err
	}
	m.K = l.Cols
	return m, Encode(m, x)
}

// meant returns K, or Cols for 0.
func (m *Matrix) meant() int {
	if m.K == 0 {
		return m.Cols
	}
	return m.K
}

// plan checks the matrix against its layout, and numbers that go in or out against its shape. The error is short
// for missing bytes.
func (m *Matrix) plan(numbers int, short error) (plan, error) {
	p, err := m.Layout.plan()
	if err != nil {
		return plan{}, err
	}
	fail := func(err error, format string, args ...any) (plan, error) {
		shape := fmt.Sprintf("%d × %d", m.Rows, m.Cols)
		if 0 < m.K && m.K < m.Cols {
			shape = fmt.Sprintf("%d × %d, padded to %d columns", m.Rows, m.K, m.Cols)
		}
		return plan{}, fmt.Errorf("quant: %s of %s: %s: %w", p.name, shape, fmt.Sprintf(format, args...), err)
	}
	switch want := p.groups * p.scales; {
	case m.K < 0 || m.K > m.Cols:
		return fail(driver.ErrInvalidArgument, "%d columns that are meant", m.K)
	case numbers >= 0 && numbers != m.Rows*m.meant():
		return fail(driver.ErrDimension, "%d numbers needed, %d given", m.Rows*m.meant(), numbers)
	case len(m.Scales) < want:
		return fail(driver.ErrDimension, "%d scales needed, %d given", want, len(m.Scales))
	case len(m.Data) < p.size():
		return fail(short, "%d bytes needed, %d given", p.size(), len(m.Data))
	}
	return p, nil
}
