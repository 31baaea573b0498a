package precise

// Numbers of twice the digits: unevaluated sums of two float64.

import "math"

// pair is hi + lo, where lo is at most half a unit in the last place of hi.
type pair struct{ hi, lo float64 }

// sum returns a + b exactly.
func sum(a, b float64) pair {
	s := a + b
	t := s - a
	return pair{s, (a - (s - t)) + (b - t)}
}

// normal returns a + b, of which b is the smaller one.
func normal(a, b float64) pair {
	s := a + b
	return pair{s, b - (s - a)}
}

func (a pair) add(b pair) pair {
	s := sum(a.hi, b.hi)
	return normal(s.hi, s.lo+(a.lo+b.lo))
}

func (a pair) mul(b pair) pair {
	p := a.hi * b.hi
	return normal(p, math.FMA(a.hi, b.hi, -p)+(a.hi*b.lo+a.lo*b.hi))
}

// over returns a / b.
func over(a float64, b pair) pair {
	q := a / b.hi
	return normal(q, (math.FMA(-q, b.hi, a)-q*b.lo)/b.hi)
}

// times returns a·2^k, where nothing is rounded.
func (a pair) times(k int) pair { return pair{math.Ldexp(a.hi, k), math.Ldexp(a.lo, k)} }

var ln2 = pair{math.Ln2, 2.3190468138462996e-17}

// logarithm returns ln x of a positive finite number: of x = m·2^k, ln m = 2·artanh((m-1)/(m+1)).
func logarithm(x float64) pair {
	m, k := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, k = 2*m, k-1
	}
	s := over(m-1, sum(m, 1))
	square, series := s.mul(s), pair{}
	for n := 39.0; n > 0; n -= 2 {
		series = series.mul(square).add(over(1, pair{n, 0}))
	}
	return s.mul(series).times(1).add(ln2.mul(pair{float64(k), 0}))
}

// exponential returns m and k with e^x = m·2^k, of a finite x.
func exponential(x pair) (m float64, k int) {
	const halvings = 8 // of what remains of x, so that few terms of the series of e^r - 1 are enough
	n := math.RoundToEven(x.hi / math.Ln2)
	r, series := x.add(ln2.mul(pair{-n, 0})).times(-halvings), pair{}
	for i := 9.0; i > 0; i-- {
		series = series.add(pair{1, 0}).mul(r).mul(over(1, pair{i, 0}))
	}
	for range halvings {
		series = series.times(1).add(series.mul(series))
	}
	return series.add(pair{1, 0}).hi, int(n)
}
