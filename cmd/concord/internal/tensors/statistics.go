package tensors

// concord tensor: the statistics of elements.

import (
	"context"
	"encoding/binary"
	"math"
	"sync"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/half"
)

// tensorStats are the statistics of the elements of a tensor. The numbers are those of the finite
// elements, and not numbers if there is none.
type tensorStats struct {
	Min   app.Number `json:"min"`
	Max   app.Number `json:"max"`
	Mean  app.Number `json:"mean"`
	Std   app.Number `json:"std"` // of the whole, not of a sample
	NaN   int64      `json:"nan"`
	Inf   int64      `json:"inf"`
	Zeros int64      `json:"zeros"`

	finite int64
}

// statBlock is the number of elements that are converted at a time. They stay in the processor's
// first cache while they are looked at twice.
const statBlock = 2048

// statistics reads the elements once. It calls read after each part of them with its bytes.
func statistics(ctx context.Context, elem driver.Type, data []byte, read func(bytes int)) (*tensorStats, error) {
	s := &tensorStats{Min: app.Null, Max: app.Null, Mean: app.Null, Std: app.Null}
	block := make([]float64, statBlock)
	for len(data) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		part := data[:min(len(data), statBlock*elem.Size())]
		data = data[len(part):]
		values := block[:len(part)/elem.Size()]
		convert(values, part, elem)
		s.add(values)
		read(len(part))
	}
	return s, nil
}

// add takes a block of elements, which it overwrites. The mean of a block is subtracted before
// anything is squared, and blocks are joined by their means and deviations (Chan, Golub and LeVeque), so
// that nothing cancels out where the mean is large. Deviations are kept, not their squares, since
// these could overflow.
func (s *tensorStats) add(values []float64) {
	n := 0 // the finite ones are moved to the front
	for _, x := range values {
		switch {
		case x-x == 0:
			values[n] = x
			n++
			if x == 0 {
				s.Zeros++
			}
		case x != x:
			s.NaN++
		default:
			s.Inf++
		}
	}
	if n == 0 {
		return
	}
	values = values[:n]
	low, high, mean, std := moments(values)
	if s.finite == 0 {
		s.Min, s.Max, s.Mean, s.Std = app.Number(low), app.Number(high), app.Number(mean), app.Number(std)
		s.finite = int64(n)
		return
	}
	all := s.finite + int64(n)
	had, comes := float64(s.finite)/float64(all), float64(n)/float64(all)
	apart := mean/2 - float64(s.Mean)/2 // half of it, since the whole could overflow
	s.Std = app.Number(math.Hypot(math.Hypot(float64(s.Std)*math.Sqrt(had), std*math.Sqrt(comes)),
		apart*(2*math.Sqrt(had*comes))))
	s.Mean += app.Number(apart * comes)
	s.Mean += app.Number(apart * comes)
	s.Min, s.Max = min(s.Min, app.Number(low)), max(s.Max, app.Number(high))
	s.finite = all
}

// moments returns the extremes, the mean and the standard deviation of finite numbers, of which
// there is at least one.
func moments(values []float64) (low, high, mean, std float64) {
	n := float64(len(values))
	low, high = values[0], values[0]
	for _, x := range values {
		if x < low {
			low = x
		}
		if x > high {
			high = x
		}
	}
	if low == high {
		return low, high, low, 0
	}
	sum, _ := deviations(values, 0)
	if mean = sum / n; mean-mean != 0 { // the sum was too large
		mean = 0
		for _, x := range values {
			mean += x / n
		}
	}
	rest, squares := deviations(values, mean)
	if rest /= n; rest-rest == 0 {
		mean += rest // what rounding took from it
	}
	if squares -= rest * rest * n; squares > 1e-280 && squares < math.MaxFloat64 {
		return low, high, mean, math.Sqrt(squares / n)
	}
	// Squares may have overflowed or vanished, and differences have overflowed.
	widest := max(high/2-mean/2, mean/2-low/2)
	if widest == 0 {
		return low, high, mean, 0
	}
	squares = 0
	for _, x := range values {
		d := (x/2 - mean/2) / widest
		squares += d * d
	}
	return low, high, mean, 2 * (widest * math.Sqrt(squares/n))
}

// deviations returns the sum of what numbers differ from another one, and of the squares of that. It
// keeps four sums each, so that no addition waits for the one before it.
func deviations(values []float64, from float64) (sum, squares float64) {
	var s0, s1, s2, s3, q0, q1, q2, q3 float64
	for ; len(values) >= 4; values = values[4:] {
		d0, d1, d2, d3 := values[0]-from, values[1]-from, values[2]-from, values[3]-from
		s0, s1, s2, s3 = s0+d0, s1+d1, s2+d2, s3+d3
		q0, q1, q2, q3 = q0+d0*d0, q1+d1*d1, q2+d2*d2, q3+d3*d3
	}
	for _, x := range values {
		d := x - from
		s0, q0 = s0+d, q0+d*d
	}
	return s0 + s1 + (s2 + s3), q0 + q1 + (q2 + q3)
}

// halves are the values of all 16-bit floating-point numbers.
var halves = sync.OnceValue(func() *[1 << 16]float64 {
	var list [1 << 16]float64
	for i := range list {
		list[i] = half.Float16(i).Float64()
	}
	return &list
})

// convert reads elements of any type. The data may begin anywhere.
func convert(out []float64, data []byte, elem driver.Type) {
	little := binary.LittleEndian
	switch elem {
	case driver.F32:
		for i := range out {
			out[i] = float64(math.Float32frombits(little.Uint32(data[4*i:])))
		}
	case driver.F64:
		for i := range out {
			out[i] = math.Float64frombits(little.Uint64(data[8*i:]))
		}
	case driver.F16:
		values := halves()
		for i := range out {
			out[i] = values[little.Uint16(data[2*i:])]
		}
	case driver.BF16:
		for i := range out {
			out[i] = half.BFloat16(little.Uint16(data[2*i:])).Float64()
		}
	case driver.I8:
		for i := range out {
			out[i] = float64(int8(data[i]))
		}
	case driver.I16:
		for i := range out {
			out[i] = float64(int16(little.Uint16(data[2*i:])))
		}
	case driver.I32:
		for i := range out {
			out[i] = float64(int32(little.Uint32(data[4*i:])))
		}
	case driver.I64:
		for i := range out {
			out[i] = float64(int64(little.Uint64(data[8*i:])))
		}
	case driver.U8:
		for i := range out {
			out[i] = float64(data[i])
		}
	case driver.U16:
		for i := range out {
			out[i] = float64(little.Uint16(data[2*i:]))
		}
	case driver.U32:
		for i := range out {
			out[i] = float64(little.Uint32(data[4*i:]))
		}
	case driver.U64:
		for i := range out {
			out[i] = float64(little.Uint64(data[8*i:]))
		}
	}
}
