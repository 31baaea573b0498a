package cpu

// Products whose left matrix stays in the second cache. Threads pack strips of B and
// multiply all of A with them as it is: nobody waits for what another packs. Who finds no
// strip left helps with the rows of those that are under way.

import (
	"sync/atomic"

	"github.com/concord-compute/concord/internal/simd"
)

// strip is some columns of B, as many as a kernel takes.
type strip struct {
	packed atomic.Int32 // 1 when it is
	next   atomic.Int32 // part of A's rows that nobody has begun with
}

// strips is one product under way.
type strips struct {
	*product
	at     uint64 // packed B
	rows   int    // of A in a part
	list   []strip
	failed atomic.Bool
}

// inStrips says that A stays in the second cache while strips pass, and packed B in the third.
func (p *product) inStrips() bool {
	l2, l3 := cacheSizes()
	return p.m*p.k*p.size <= l2 && p.k*p.strip()*p.size <= l2/8 && p.k*p.n*p.size <= l3/8
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
	q := *p
	s := &strips{product: &q, at: address(b.data), rows: even(p.m, (p.m+4*threads-1)/(4*threads), p.set.rows), list: make([]strip, count)}
	return p.call.ranges(count+threads-1, 1, threads, s.run)
}

// run computes strip i, or, where there are no more, parts of others.
func (s *strips) run(i, _ int) {
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

// columns is where strip i lies in B, and packed.
func (s *strips) columns(i int) (j0, j1 int, at uint64) {
	return i * s.strip(), min((i+1)*s.strip(), s.n), s.at + uint64(i*s.strip()*s.k*s.size)
}

func (s *strips) pack(i int) {
	j0, j1, at := s.columns(i)
	s.set.run(s.op(simd.GemmF32Pack), flag(!s.b.across), uint64(j1-j0), uint64(s.k), s.b.element(0, j0), uint64(s.b.ld), at, uint64(s.strip()))
	s.list[i].packed.Store(1)
}

// multiply computes what nobody has begun with.
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

// help takes part in a strip. All have been begun with: one that is not packed is being packed,
// which takes some microseconds.
func (s *strips) help(i int) {
	if s.call.await(&s.list[i].packed, 1, &s.failed) {
		s.multiply(i)
	}
}
