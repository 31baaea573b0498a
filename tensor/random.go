package tensor

// Random numbers. They come from Philox4x32-10, a function of a seed, the number of the element, and what they
// are for: the same ones on every device, in any order of computation, and again when they are computed again.
// Element i of a tensor is made from the four words of 32 bits for the counter i; which of them are used is
// stated below, so that the numbers stay those that they are.

import (
	"fmt"
	"math"
	"slices"

	"github.com/concord-compute/concord/kernels/expr"
)

// What random numbers are for: those of different uses are independent also where seeds are equal.
const (
	forUniform = iota
	forNormal
	forBernoulli
	forIntegers
	forPermutation
)

// The functions below take a seed: an integer of Go that is not negative, or a U64 tensor of one element, which
// a compiled function can change from call to call. Equal seeds give equal numbers. There is no state: a
// program that wants other numbers gives another seed, such as Seeds makes from one.

// drawn returns a tensor of random numbers: e makes an element of type t from a function that returns word lane
// of the element's four.
func drawn(s *Scope, name string, t Type, seed any, use uint32, shape []int,
	e func(word func(lane int) *expr.Expr) *expr.Expr) *Tensor {
	if err := checkShape(shape); err != nil {
		return fail(s, name, err)
	}
	key, ok := seed.(*Tensor)
	if !ok { // data, not a number in the program, so that another seed needs no other kernel
		n, is := number(seed)
		if !is || n.isFloat || n.negative {
			return failf(s, name, ErrType, "a seed of %v, which is a %T", seed, seed)
		}
		key = From(s, []uint64{n.size})
	}
	if bad := check(name, Full(s, U64, 0), key); bad != nil {
		return bad
	}
	if key.typ != U64 || key.Len() != 1 {
		return failf(s, name, ErrType, "a seed of type %v and shape %v", key.typ, key.shape)
	}
	word := func(lane int) *expr.Expr { return expr.Random(expr.Input(0, U64), use, lane) }
	x := apply(name, e(word), t, slices.Clone(shape), key.Reshape().Expand(shape...))
	if x.err == nil && x.scope.depth < s.depth {
		x.scope = s
	}
	return x
}

// fraction returns a number in [0, 1) of the type in which t is computed, which t holds exactly: from word 0,
// and of F64 from 53 bits of words 0 and 1.
func fraction(t Type, hi, lo *expr.Expr) *expr.Expr {
	if t == F64 {
		high, low := expr.Apply(expr.Shr, hi, expr.Int(U32, 5)).Cast(F64),
			expr.Apply(expr.Shr, lo, expr.Int(U32, 6)).Cast(F64)
		return high.Mul(high.Number(1 << 26)).Add(low).Mul(high.Number(1.0 / (1 << 53)))
	}
	bits := map[Type]int64{F32: 24, F16: 11, BF16: 8}[t]
	x := expr.Apply(expr.Shr, hi, expr.Int(U32, 32-bits)).Cast(F32)
	return x.Mul(x.Number(1 / float64(int64(1)<<bits)))
}

// floating returns a tensor with a mistake if t is not a floating type.
func floating(s *Scope, name string, t Type) *Tensor {
	if !IsFloat(t) {
		return failf(s, name, ErrType, "numbers of type %v", t)
	}
	return nil
}

// Uniform returns random numbers of a floating type from lo to hi: lo + (hi-lo)·u with u in [0, 1), in steps of
// 2^-24, of F64 2^-53, of F16 2^-11 and of BF16 2^-8. They are made from word 0, of F64 from words 0 and 1, and
// have the same bits on every device.
func Uniform(s *Scope, t Type, seed any, lo, hi float64, shape ...int) *Tensor {
	if bad := floating(s, "uniform", t); bad != nil {
		return bad
	}
	return drawn(s, "uniform", t, seed, forUniform, shape, func(word func(int) *expr.Expr) *expr.Expr {
		u := fraction(t, word(0), word(1))
		return u.Mul(u.Number(hi - lo)).Add(u.Number(lo))
	})
}

// Normal returns random numbers of a floating type with the normal distribution, mean + std·√(-2 ln u)·cos 2πv. u and v
// are made from words 0 and 1, of F64 from words 0 and 1 and words 2 and 3. They differ between devices by what
// logarithm and cosine do. They lie within 6.8 standard deviations, of F64 within 8.7.
func Normal(s *Scope, t Type, seed any, mean, std float64, shape ...int) *Tensor {
	if bad := floating(s, "normal", t); bad != nil {
		return bad
	}
	return drawn(s, "normal", t, seed, forNormal, shape, func(word func(int) *expr.Expr) *expr.Expr {
		var u, v *expr.Expr
		if t == F64 {
			u, v = fraction(F64, word(0), word(1)), fraction(F64, word(2), word(3))
			u = u.Add(u.Number(1.0 / (1 << 54)))
		} else {
			u, v = word(0).Cast(F32), fraction(F32, word(1), nil)
			u = u.Add(u.Number(0.5)).Mul(u.Number(1.0 / (1 << 32)))
		}
		r := expr.Apply(expr.Sqrt, expr.Apply(expr.Log, u).Mul(u.Number(-2)))
		z := r.Mul(expr.Apply(expr.Cos, v.Mul(v.Number(2*math.Pi))))
		return z.Mul(z.Number(std)).Add(z.Number(mean))
	})
}

// Bernoulli returns random Bools that are true with probability p: where word 0 is below p·2^32.
func Bernoulli(s *Scope, seed any, p float64, shape ...int) *Tensor {
	if !(p >= 0 && p <= 1) {
		return failf(s, "bernoulli", ErrType, "a probability of %v", p)
	}
	return drawn(s, "bernoulli", Bool, seed, forBernoulli, shape, func(word func(int) *expr.Expr) *expr.Expr {
		return word(0).Cast(I64).Lt(expr.Int(I64, int64(math.Round(p*(1<<32)))))
	})
}

// RandInt returns random integers from lo to hi-1 of an integer type that holds these. They are made from words
// 0 and 1 as one number of 64 bits: for up to 2^32 possible results the high bits of its product with their
// number, else its remainder. So the probabilities of n results differ by a factor of at most 1 + n/2^63.
func RandInt(s *Scope, t Type, seed any, lo, hi int64, shape ...int) *Tensor {
	const name = "randint"
	if IsFloat(t) || t == Bool || t < F32 || t > Bool {
		return failf(s, name, ErrType, "integers of type %v", t)
	}
	if lo >= hi || !fits(t, lo) || !fits(t, hi-1) {
		return failf(s, name, ErrType, "integers from %d to below %d of type %v", lo, hi, t)
	}
	return drawn(s, name, t, seed, forIntegers, shape, func(word func(int) *expr.Expr) *expr.Expr {
		high, low := word(0).Cast(U64), word(1).Cast(U64)
		n, bits := expr.Int(U64, hi-lo), expr.Int(U64, 32)
		var x *expr.Expr
		if uint64(hi-lo) <= 1<<32 {
			x = expr.Apply(expr.Shr, high.Mul(n).Add(expr.Apply(expr.Shr, low.Mul(n), bits)), bits)
		} else {
			x = expr.Apply(expr.Rem, expr.Apply(expr.Shl, high, bits).Add(low), n)
		}
		return x.Bits(I64).Add(expr.Int(I64, lo)).Cast(t)
	})
}

// Permutation returns the integers from 0 to n-1, of type I64, in a random order: that of random numbers of 64
// bits, words 0 and 1.
func Permutation(s *Scope, seed any, n int) *Tensor {
	keys := drawn(s, "permutation", U64, seed, forPermutation, []int{n}, func(word func(int) *expr.Expr) *expr.Expr {
		return expr.Apply(expr.Shl, word(0).Cast(U64), expr.Int(U64, 32)).Add(word(1).Cast(U64))
	})
	return keys.ArgSort(0, false)
}

// Seeds returns n seeds made from one: a U64 tensor, of which each element, by Index, is a seed.
func Seeds(s *Scope, seed any, n int) *Tensor {
	return drawn(s, "seeds", U64, seed, forPermutation, []int{n}, func(word func(int) *expr.Expr) *expr.Expr {
		return expr.Apply(expr.Shl, word(2).Cast(U64), expr.Int(U64, 32)).Add(word(3).Cast(U64))
	})
}

// Dropout returns t with each element replaced by 0 with probability rate, which is at least 0 and below 1, and
// the others divided by 1 - rate. The gradient passes the elements that stay.
func (t *Tensor) Dropout(rate float64, seed any) *Tensor {
	const name = "dropout"
	if bad := check(name, t); bad != nil {
		return bad
	}
	if bad := floating(t.scope, name, t.typ); bad != nil {
		return bad
	}
	if !(rate >= 0 && rate < 1) {
		return fail(t.scope, name, fmt.Errorf("%w: a rate of %v", ErrType, rate))
	}
	return Where(Bernoulli(t.scope, seed, 1-rate, t.shape...), t.Mul(1/(1-rate)), 0)
}
