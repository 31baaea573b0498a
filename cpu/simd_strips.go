package cpu

// Products whose left matrix fits into the second-level cache. Each thread packs strips of B and
// multiplies all of A, which is not packed, with them, so that no thread waits for another. A thread that
// finds no strip left helps others with rows of A.

import (
	"sync/atomic"

	"github.com/concord-compute/concord/internal/simd"
)

// strip is a number of columns of B for which a kernel is called.
type strip struct {
	packed atomic.Int32 // 1 when the strip is packed
	next   atomic.Int32 // the first part of A's rows that no thread has taken
}

// strips is the state of one product while it is computed.
type strips struct {
	*product
	at     uint64 // packed B
	rows   int    // of A in a part
	list   []strip
	failed atomic.Bool
}

// inStrips reports whether A and a strip fit into the second-level cache, and packed B into the third.
func (p *product) inStrips() bool {
	l2, l3 := cacheSizes()
	c, left := p.call, stripsLeft
	if p.a.across {
		left = stripsTurned
	}
	return p.m*p.k*p.size <= c.share(left, l2) && p.k*p.strip()*p.size <= c.share(stripsDeep, l2) &&
		p.k*p.n*p.size <= c.share(stripsRight, l3)
}

func (p *product) runStrips() error {
	count := (p.n + p.strip() - 1) / p.strip()
	b, err := p.call.device.scratch.take(int64(count * p.strip() * p.k * p.size))
	if err != nil {
		return err
	}
	defer p.call.device.scratch.give(b)
	threads := 1
	if p.threadsPay() {
		threads = p.call.device.threads
	}
	q, parts := *p, p.call.Choose(stripsParts)*threads
	s := &strips{product: &q, at: address(b.data), rows: even(p.m, (p.m+parts-1)/parts, p.set.rows),
		list: make([]strip, count)}
	return p.call.ranges(count+threads-1, 1, threads, s.run)
}

// run computes strip i, or, if there are no more strips, parts of others.
func (s *strips) run(_ *call, i, _ int) {
	whole := false
	defer func() {
		if !whole {
			s.failed.Store(true)
		}
	}()
	if i < len(s.list) {
		s.pack(i)
		s.multiply(i)
	}
	for j := len(s.list) - 1; i >= len(s.list) && j >= 0; j-- {
		s.help(j)
	}
	whole = true
}

// columns returns the columns of B that are strip i, and the address of the packed strip.
func (s *strips) columns(i int) (j0, j1 int, at uint64) {
	return i * s.strip(), min((i+1)*s.strip(), s.n), s.at + uint64(i*s.strip()*s.k*s.size)
}

func (s *strips) pack(i int) {
	j0, j1, at := s.columns(i)
	s.set.run(s.op(simd.GemmF32Pack), flag(!s.b.across), uint64(j1-j0), uint64(s.k), s.b.element(0, j0), uint64(s.b.ld),
		at, uint64(s.strip()))
	s.list[i].packed.Store(1)
}

// multiply multiplies strip i with parts of A until all are taken.
func (s *strips) multiply(i int) {
	j0, j1, at := s.columns(i)
	q := *s.product
	q.b, q.out.at, q.finish = matrix{at: at, ld: s.strip(), size: s.size}, s.out.element(0, j0), s.finish.from(j0, s.size)
	for {
		i0 := int(s.list[i].next.Add(1)-1) * s.rows
		if i0 >= s.m {
			return
		}
		q.directPart(i0, min(i0+s.rows, s.m), 0, j1-j0)
	}
}

// help takes part in the multiplication of strip i. A thread has begun with each strip, so that one
// that is not packed is being packed; help waits for that, for some microseconds.
func (s *strips) help(i int) {
	if s.call.await(&s.list[i].packed, 1, &s.failed) {
		s.multiply(i)
	}
}
