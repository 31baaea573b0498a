package quant

// Encoding and decoding of whole matrices: checks, pieces, processors.

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/concord-compute/concord/runtime/driver"
)

// fault is what is wrong with the number at a place of a codec's input.
type fault struct {
	at   int
	text string
	err  error
}

func (f *fault) Error() string { return fmt.Sprintf("number %d %s: %v", f.at, f.text, f.err) }
func (f *fault) Unwrap() error { return f.err }

// Encode stores Rows × K numbers in m, whose memory it overwrites; what the memory has beyond the layout's sizes is
// not touched. Sizes that disagree are driver.ErrDimension. After driver.ErrNumerical, and
// driver.ErrInvalidArgument for numbers that a ternary format cannot store, a part of the memory may have been
// written.
func Encode(m Matrix, x []float32) error { return encodeBy(fastest(), m, x) }

func encodeBy(v *provider, m Matrix, x []float32) error {
	p, err := m.planEncode(len(x))
	if err != nil {
		return err
	}
	return (&coding{provider: v}).encode(&p, m, x)
}

// planEncode checks a matrix that is to be encoded.
func (m *Matrix) planEncode(numbers int) (plan, error) {
	p, err := m.plan(numbers, driver.ErrDimension)
	if err == nil && p.encode == nil {
		err = fmt.Errorf("quant: %s is a format that is only read: %w", p.name, driver.ErrUnsupported)
	}
	return p, err
}

// coding is how a matrix is encoded or decoded, in one piece or several, which makes no difference for the result.
type coding struct {
	*provider
	ctx     context.Context                          // asked before each range of a piece; nil: not asked
	step    int                                      // numbers of a piece, at least; 0: all
	scratch int64                                    // bytes of memory for padding; 0: any
	done    func(numbers, all int)                   // called after each piece; nil: not
	ran     func(function string, format, on string) // called where a function has run, by several goroutines; nil: not
	wrote   atomic.Bool                              // whether the result has been written to
}

// paddedNumbers are those that are padded at a time, in memory that stays in a cache.
const paddedNumbers = 1 << 20

// groups returns the groups of a piece. A group that alone takes more than the scratch memory is driver.ErrBudget.
func (c *coding) groups(p *plan, m *Matrix) (int, error) {
	n := p.groups
	if c.step > 0 {
		n = min(n, max(1, c.step/p.numbers))
	}
	if m.meant() == m.Cols {
		return n, nil
	}
	n = min(n, max(1, paddedNumbers/p.numbers))
	if c.scratch > 0 {
		fit := c.scratch / 4 / int64(p.numbers)
		if fit == 0 {
			return 0, fmt.Errorf("quant: %s of %d × %d, padded: a group of %d numbers does not fit into %d bytes: %w", p.name,
				m.Rows, m.Cols, p.numbers, c.scratch, driver.ErrBudget)
		}
		n = int(min(int64(n), fit))
	}
	return n, nil
}

// ranges calls f for ranges of groups, of one piece after the other, those of a piece on several goroutines. part are
// the numbers of a range: those of x or, where rows are padded, memory for them.
func (c *coding) ranges(p *plan, m *Matrix, x []float32, f func(lo, hi int, part []float32, padded bool) error) error {
	size, err := c.groups(p, m)
	if err != nil {
		return err
	}
	var memory []float32
	padded := m.meant() != m.Cols
	if padded {
		memory = make([]float32, min(size*p.numbers, p.total))
	}
	for lo := 0; lo < p.groups; lo += size {
		hi, numbers := min(lo+size, p.groups), memory
		if !padded {
			numbers = x[lo*p.numbers:]
		}
		if err := spread(hi-lo, p.numbers, func(a, b int) error {
			if err := c.live(); err != nil {
				return err
			}
			c.wrote.Store(true)
			return f(lo+a, lo+b, numbers[a*p.numbers:min(b*p.numbers, p.total-lo*p.numbers)], padded)
		}); err != nil {
			return err
		}
		if c.done != nil {
			c.done(min(hi*p.numbers, p.total), p.total)
		}
	}
	return nil
}

// live returns why the context has ended, or nil.
func (c *coding) live() error {
	if c.ctx == nil || c.ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("quant: %w", context.Cause(c.ctx))
}

// note notes what ran.
func (c *coding) note(function string, f Format, on string) {
	if c.ran != nil {
		c.ran(function, f.String(), on)
	}
}

func (c *coding) encode(p *plan, m Matrix, x []float32) error {
	var scale float32
	var err error
	if p.tail { // zeros of padding make no difference
		scale, err = c.largest(x)
		c.note("largest", p.Format, c.name)
	}
	if err == nil {
		err = c.ranges(p, &m, x, func(lo, hi int, part []float32, padded bool) error {
			first := lo * p.numbers
			if padded {
				clear(part)
				m.own(first, first+len(part), func(own, in, n int) { copy(part[in:in+n], x[own:]) })
			}
			to := p.part(&m, lo, hi)
			to.scale = scale
			if c.provider.encode(p, to, part) {
				c.note("encode", p.Format, c.name)
				return nil
			}
			c.note("encode", p.Format, plain.name)
			return at(p.codec.encode(p.Layout, to, part), first)
		})
		if f, ok := err.(*fault); ok { // padding is never at fault
			f.at = f.at/m.Cols*m.meant() + f.at%m.Cols
		}
	}
	if f, ok := err.(*fault); ok {
		return fmt.Errorf("quant: %s: %w", p.name, f)
	}
	if err == nil && p.tail {
		clear(m.Data[p.data:p.size()])
		binary.LittleEndian.PutUint32(m.Data[p.data:], math.Float32bits(scale))
	}
	return err
}

// own calls f for the numbers that are meant among those from place lo to hi of the padded matrix: n of them,
// from a place among the meant ones and a place behind lo.
func (m *Matrix) own(lo, hi int, f func(own, in, n int)) {
	for i := lo; i < hi; i += m.Cols - i%m.Cols {
		row, col := i/m.Cols, i%m.Cols
		if n := min(m.meant()-col, hi-i); n > 0 {
			f(row*m.meant()+col, i-lo, n)
		}
	}
}

// at moves the place of a fault.
func at(err error, by int) error {
	if f, ok := err.(*fault); ok {
		f.at += by
	}
	return err
}

// part returns the codes of groups lo to hi.
func (p *plan) part(m *Matrix, lo, hi int) codes {
	c := codes{data: m.Data[lo*p.bytes : min(hi*p.bytes, p.data)]}
	if p.scales > 0 {
		c.scales = m.Scales[lo*p.scales : hi*p.scales]
	}
	if p.tail {
		c.scale = math.Float32frombits(binary.LittleEndian.Uint32(m.Data[p.data:]))
	}
	return c
}

// Decode computes the Rows × K numbers of m. Codes that the format does not have count as zero, and nothing is checked
// but sizes: data that is too short is driver.ErrCorrupt, another size that disagrees is driver.ErrDimension.
func Decode(x []float32, m Matrix) error { return decodeBy(fastest(), x, m) }

func decodeBy(v *provider, x []float32, m Matrix) error {
	p, err := m.plan(len(x), driver.ErrCorrupt)
	if err != nil {
		return err
	}
	return (&coding{provider: v}).decode(&p, x, m)
}

func (c *coding) decode(p *plan, x []float32, m Matrix) error {
	return c.ranges(p, &m, x, func(lo, hi int, part []float32, padded bool) error {
		from, on := p.part(&m, lo, hi), c.name
		if !c.provider.decode(p, part, from) {
			on = plain.name
			p.codec.decode(p.Layout, part, from)
		}
		c.note("decode", p.Format, on)
		if first := lo * p.numbers; padded {
			m.own(first, first+len(part), func(own, in, n int) { copy(x[own:own+n], part[in:]) })
		}
		return nil
	})
}

// Validate checks a matrix that was not made here: its sizes, that every code is one of the format, and that scales are
// finite. What is wrong with the contents is driver.ErrCorrupt.
func Validate(m Matrix) error {
	p, err := m.plan(-1, driver.ErrCorrupt)
	if err != nil {
		return err
	}
	corrupt := func(format string, args ...any) error {
		return fmt.Errorf("quant: %s: %s: %w", p.name, fmt.Sprintf(format, args...), driver.ErrCorrupt)
	}
	all := p.part(&m, 0, p.groups)
	for i, s := range all.scales {
		if s-s != 0 {
			return corrupt("scale %d is %v", i, s)
		}
	}
	if all.scale-all.scale != 0 {
		return corrupt("the scale is %v", all.scale)
	}
	if p.bad == nil {
		return nil
	}
	return spread(p.groups, p.numbers, func(lo, hi int) error {
		if at, ok := p.bad(p.Layout, p.part(&m, lo, hi)); ok {
			return corrupt("byte %d is neither a code of the format nor of a finite scale", lo*p.bytes+at)
		}
		return nil
	})
}

// pieceNumbers are the numbers from which a second processor is worth its start.
const pieceNumbers = 1 << 16

// spread calls f for consecutive ranges of n groups, on several goroutines if these are of many numbers
// together. It returns the error of the first range that fails.
func spread(n, numbers int, f func(lo, hi int) error) error {
	size := max(1, pieceNumbers/numbers)
	pieces := (n + size - 1) / size
	threads := min(goruntime.GOMAXPROCS(0), pieces)
	if threads <= 1 {
		return f(0, n)
	}
	errs := make([]error, pieces)
	var next atomic.Int64
	var failed atomic.Bool
	var all sync.WaitGroup
	for range threads {
		all.Go(func() {
			for !failed.Load() {
				i := int(next.Add(1)) - 1
				if i >= pieces {
					return
				}
				if errs[i] = f(i*size, min((i+1)*size, n)); errs[i] != nil {
					failed.Store(true)
				}
			}
		})
	}
	all.Wait()
	return cmp.Or(errs...)
}

// largest returns the largest magnitude. A number that is not finite is a fault.
func largest(x []float32) (float32, error) {
	var most, other uint32 // bits without the sign
	y := x
	for ; len(y) >= 4; y = y[4:] {
		most = max(most, math.Float32bits(y[0])<<1, math.Float32bits(y[1])<<1)
		other = max(other, math.Float32bits(y[2])<<1, math.Float32bits(y[3])<<1)
	}
	for _, v := range y {
		most = max(most, math.Float32bits(v)<<1)
	}
	if most = max(most, other); most >= 0x7f800000<<1 {
		i := slices.IndexFunc(x, func(v float32) bool { return v-v != 0 })
		return 0, &fault{i, fmt.Sprintf("is %v", x[i]), driver.ErrNumerical}
	}
	return math.Float32frombits(most >> 1), nil
}

// reciprocal returns 1/d, or 0 where that does not exist: of zero, and of numbers so small that a stored scale is
// zero.
func reciprocal(d float32) float32 {
	if r := 1 / d; r-r == 0 {
		return r
	}
	return 0
}
