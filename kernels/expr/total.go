package expr

// The float64 evaluation of reductions, with its bound.

import "math"

// total is a reduction in progress.
type total struct {
	n           int
	sum, lost   float64 // of a floating reduction, and what rounding the sum has lost
	bits        uint64  // of a reduction of integers
	low, high   float64 // the ends of what a device may have
	size, small float64 // the sum of |x|, or products of |x| that are above and below 1
	bound       float64 // the sum of bounds
	nan, open   bool    // an element is a NaN; an element has no bound
	place       int     // of the extreme, of a reduction to places
	best        Value   // which is there
	zeros       [2]bool // there is a zero with and one without a sign
	infinities  [2]bool
}

// depth returns in how many operations one of n elements takes part at most: items of a group, and lanes of a
// tile, each combine a 128th of the elements or less, or blocks of 128, and then a tree or another 128 follows.
func depth(n int) float64 { return float64(min(n, 256+n/128)) }

// add adds an element, of type from.
func (s *total) add(n *node, from Type, v Value) {
	if s.n == 0 {
		s.bits = identityOf(n.op, n.typ)
		s.low, s.high, s.sum = 1, 1, 0
		if n.op == Smallest || n.op == All {
			s.low, s.high = math.Inf(1), math.Inf(1)
		} else if n.op == Largest || n.op == Any {
			s.low, s.high = math.Inf(-1), math.Inf(-1)
		}
		if n.op == Product {
			s.sum, s.size, s.small = 1, 1, 1
		}
	}
	s.n++
	s.open = s.open || math.IsInf(v.Bound, 1)
	s.bound += v.Bound
	if n.op.locates() {
		s.locate(n.op, from, v)
		return
	}
	if !n.typ.IsFloat() {
		s.addInt(n, v)
		return
	}
	x, abs := v.Float, math.Abs(v.Float)
	s.nan = s.nan || x != x
	switch n.op {
	case Sum:
		if math.IsInf(x, 0) {
			s.infinities[int(truthBits(x > 0))] = true
			return
		}
		t := s.sum + x // Neumaier's sum
		if math.Abs(s.sum) >= abs {
			s.lost += (s.sum - t) + x
		} else {
			s.lost += (x - t) + s.sum
		}
		s.sum = t
		s.size += abs + v.Bound
	case Product:
		s.sum *= x
		s.high *= abs + v.Bound
		s.size *= max(abs+v.Bound, 1)
		s.small *= min(max(abs-v.Bound, 0), 1)
	default:
		if x == 0 {
			s.zeros[int(truthBits(math.Signbit(x)))] = true
		}
		s.extreme(n.op, x, v.Bound)
	}
}

// extreme keeps the ends between which a minimum or maximum lies.
func (s *total) extreme(op Op, x, e float64) {
	if op == Smallest || op == All {
		if s.n == 1 || x < s.sum || x != x {
			s.sum = x
		}
		s.low, s.high = min(s.low, x-e), min(s.high, x+e)
		return
	}
	if s.n == 1 || x > s.sum || x != x {
		s.sum = x
	}
	s.low, s.high = max(s.low, x-e), max(s.high, x+e)
}

// locate keeps the place of the extreme. It is not known if the bounds of elements leave open which one comes first.
func (s *total) locate(op Op, from Type, v Value) {
	if s.n == 1 {
		s.best = v
		return
	}
	pair := [3]Value{s.best, v}
	if op == ArgSmallest {
		pair[0], pair[1] = v, s.best
	}
	beyond := compute(&node{op: Lt, typ: Bool}, from, &pair)
	s.open = s.open || beyond.Bound > 0
	if nan := v.Float != v.Float && s.best.Float == s.best.Float; beyond.Int != 0 || nan {
		s.best, s.place = v, s.n-1
	}
}

func (s *total) addInt(n *node, v Value) {
	node := node{op: combines[n.op], typ: n.typ}
	s.bits = computeInt(&node, n.typ, Value{Int: s.bits}, Value{Int: v.Int}).Int
	if n.op == Smallest || n.op == Largest || n.typ == Bool {
		s.extreme(n.op, asFloat(n.typ, v.Int), v.Bound)
	}
}

// value returns the result.
func (s *total) value(n *node) Value {
	t := n.typ
	if s.n == 0 {
		return valueOf(t, identityOf(n.op, t))
	}
	if n.op.locates() {
		v := Value{Int: uint64(s.place)}
		if s.open {
			v.Bound = math.Inf(1)
		}
		return v
	}
	if !t.IsFloat() {
		v := Value{Int: s.bits}
		switch {
		case s.bound == 0:
		case t == Bool:
			if s.open || s.low <= 0 && s.high >= 1 {
				v.Bound = 1
			}
		case !s.open && (n.op == Smallest || n.op == Largest):
			v.Bound = max(s.high-s.low, 1)
		default:
			v.Bound = math.Inf(1)
		}
		return v
	}
	v := s.floating(n)
	if s.open {
		v.Bound = math.Inf(1)
	}
	return v
}

func (s *total) floating(n *node) Value {
	t, many := n.typ, depth(s.n)
	switch n.op {
	case Sum:
		x := s.sum + s.lost
		switch over := !(s.size*(1+many*unit(t)) < largest(t)); {
		case s.nan || s.infinities[0] && s.infinities[1]:
			return Value{Float: math.NaN()}
		case s.infinities[1] && !over:
			return Value{Float: math.Inf(1)}
		case s.infinities[0] && !over:
			return Value{Float: math.Inf(-1)}
		case over:
			return Value{Float: x, Bound: math.Inf(1)}
		}
		if s.n == 1 {
			return Value{Float: x, Bound: s.bound}
		}
		e := s.bound + 1.01*many*unit(t)*s.size
		if s.size > 0 { // partial sums may be flushed to zero
			e += float64(s.n) * smallest(t)
		}
		return rounded(t, x, e, 0)
	case Product:
		switch {
		case s.nan:
			return Value{Float: math.NaN()}
		case s.n == 1:
			return Value{Float: s.sum, Bound: s.bound}
		case !(s.size*(1+2*float64(s.n)*unit(t)) < largest(t)):
			return Value{Float: s.sum, Bound: math.Inf(1)}
		}
		e := max(s.high-math.Abs(s.sum), 0) + 4*float64(s.n)*0x1p-53*s.high
		e += 1.01 * float64(s.n) * unit(t) * s.high
		if s.small < smallest(t) { // partial products may be flushed to zero
			e += 2 * s.size * smallest(t)
		}
		return rounded(t, s.sum, e, 0)
	}
	if s.nan {
		return Value{Float: math.NaN()}
	}
	v := Value{Float: s.sum}
	if s.bound > 0 {
		v.Bound = farther(s.sum, s.low, s.high)
	}
	if s.sum == 0 && s.zeros[0] && s.zeros[1] { // either zero may be the result
		v.Bound = max(v.Bound, smallest(t))
	}
	return v
}
