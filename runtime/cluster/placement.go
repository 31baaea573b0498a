package cluster

// Which rows of a whole belong to which member.

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/concord-compute/concord/runtime"
)

// Part is a range of rows: Count of them from First on.
type Part struct{ First, Count int }

// End returns the first row after the part.
func (p Part) End() int { return p.First + p.Count }

// Placement divides the rows from 0 on among members: part i belongs to member i. The parts are in order,
// without a gap and without an overlap; a member may have none.
type Placement []Part

// Even gives each of the members the same number of rows, and the last one the remainder as well. A negative
// number of rows, or less than one member, is [runtime.ErrInvalidArgument].
func Even(rows, members int) (Placement, error) {
	if rows < 0 || members < 1 {
		return nil, fmt.Errorf("cluster: %d rows for %d members: %w", rows, members, runtime.ErrInvalidArgument)
	}
	p := make(Placement, members)
	each := rows / members
	for i := range p {
		p[i] = Part{i * each, each}
	}
	p[members-1].Count = rows - p[members-1].First
	return p, nil
}

// Weighted gives the members rows in proportion to their weights, each within one row of its share. The rows that
// rounding down leaves go to those with the largest remainders, of equal ones to the first. A negative number of rows,
// no weights, or weights that are negative, not finite or all 0 are [runtime.ErrInvalidArgument].
func Weighted(rows int, weights []float64) (Placement, error) {
	largest := 0.0
	for _, w := range weights {
		if !(w >= 0) || math.IsInf(w, 0) {
			return nil, fmt.Errorf("cluster: a weight of %v: %w", w, runtime.ErrInvalidArgument)
		}
		largest = max(largest, w)
	}
	if rows < 0 || largest == 0 {
		return nil, fmt.Errorf("cluster: %d rows for weights %v: %w", rows, weights, runtime.ErrInvalidArgument)
	}
	sum := 0.0
	for _, w := range weights {
		sum += w / largest // which cannot overflow
	}
	p := make(Placement, len(weights))
	rest := make([]float64, len(weights))
	order := make([]int, len(weights))
	left := rows
	for i, w := range weights {
		share := float64(rows) * (w / largest / sum)
		p[i].Count = left
		if share < float64(left) {
			p[i].Count = int(share)
		}
		rest[i], order[i] = share-float64(p[i].Count), i
		left -= p[i].Count
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rest[b], rest[a]) })
	for i := 0; left > 0; i++ {
		if member := order[i%len(order)]; weights[member] > 0 {
			p[member].Count++
			left--
		}
	}
	first := 0
	for i := range p {
		p[i].First = first
		first += p[i].Count
	}
	return p, nil
}

// Rows returns the number of rows of all members.
func (p Placement) Rows() int {
	if len(p) == 0 {
		return 0
	}
	return p[len(p)-1].End()
}

// Of returns the member that a row belongs to. The row is one of the placement's.
func (p Placement) Of(row int) int {
	return sort.Search(len(p), func(i int) bool { return p[i].End() > row })
}

// Check returns [runtime.ErrInvalidArgument] unless the parts are in order, without a gap and without an
// overlap: for a placement that was edited.
func (p Placement) Check() error {
	first := 0
	for i, part := range p {
		if part.First != first || part.Count < 0 || part.Count > math.MaxInt-first {
			return fmt.Errorf("cluster: member %d has %d rows from %d on, where %d is next: %w", i, part.Count, part.First,
				first, runtime.ErrInvalidArgument)
		}
		first = part.End()
	}
	return nil
}
