package quant

// Encoding and decoding of whole matrices: checks, pieces, processors.

import (
	"encoding/binary"
	"fmt"
	"math"
	goruntime "runtime"
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
// not touched. Sizes that disagree are driver.ErrDimension. After driver.ErrNumerical, and driver.ErrInvalidArgument for
// numbers that a ternary format cannot store, a part of the memory may have been written.
func Encode(m Matrix, x []float32) error { return encodeBy(fastest(), m, x) }

func encodeBy(v *provider, m Matrix, x []float32) error {
	p, err := m.plan(len(x), driver.ErrDimension)
	if err != nil {
		return err
	}
	if p.encode == nil {
		return fmt.Errorf("quant: %s is a format that is only read: %w", p.name, driver.ErrUnsupported)
	}
	given := x
	if m.meant() != m.Cols {
		x = make([]float32, p.total)
		for r := range m.Rows {
			copy(x[r*m.Cols:], given[r*m.K:(r+1)*m.K])
		}
	}
	var scale float32
	if p.tail {
		scale, err = v.largest(x)
	}
	if err == nil {
		err = spread(p.groups, p.numbers, func(lo, hi int) error {
			to, part := p.part(&m, lo, hi), x[lo*p.numbers:min(hi*p.numbers, p.total)]
			to.scale = scale
			if v.encode(p.Format, to, part) {
				return nil
			}
			return at(p.codec.encode(p.Layout, to, part), lo*p.numbers)
		})
	}
	if f, ok := err.(*fault); ok {
		if k := m.meant(); k != m.Cols { // padding is never at fault
			f.at = f.at/m.Cols*k + f.at%m.Cols
		}
		return fmt.Errorf("quant: %s: %w", p.name, f)
	}
	if err == nil && p.tail {
		clear(m.Data[p.data:p.size()])
		binary.LittleEndian.PutUint32(m.Data[p.data:], math.Float32bits(scale))
	}
	return err
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
	to := x
	if m.meant() != m.Cols {
		to = make([]float32, p.total)
	}
	err = spread(p.groups, p.numbers, func(lo, hi int) error {
		from, part := p.part(&m, lo, hi), to[lo*p.numbers:min(hi*p.numbers, p.total)]
		if !v.decode(p.Format, part, from) {
			p.codec.decode(p.Layout, part, from)
		}
		return nil
	})
	if m.meant() != m.Cols {
		for r := range m.Rows {
			copy(x[r*m.K:(r+1)*m.K], to[r*m.Cols:])
		}
	}
	return err
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
			return corrupt("byte %d is no code of the format", lo*p.bytes+at)
		}
		return nil
	})
}

// pieceNumbers are the numbers from which a second processor is worth its start.
const pieceNumbers = 1 << 16

// spread calls f for consecutive ranges of n groups, on several goroutines if these are of many numbers together. It returns
// the error of the first range that fails.
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
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// largest returns the largest magnitude. A number that is not finite is a fault.
func largest(x []float32) (float32, error) {
	most := uint32(0)
	for i, v := range x {
		b := math.Float32bits(v) &^ (1 << 31)
		if b >= 0x7f800000 {
			return 0, &fault{i, fmt.Sprintf("is %v", v), driver.ErrNumerical}
		}
		most = max(most, b)
	}
	return math.Float32frombits(most), nil
}

// reciprocal returns 1/d, or 0 where that does not exist: of zero, and of numbers so small that a stored scale is
// zero.
func reciprocal(d float32) float32 {
	if r := 1 / d; r-r == 0 {
		return r
	}
	return 0
}
