package cluster

// What a collective computes, and by which algorithm.

import (
	"fmt"

	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/runtime"
)

// Op is how the elements of several members become one.
type Op uint8

// The operations. Those of f16 and bf16 are computed in f32 and rounded once, at the end. Integers wrap modulo 2^bits.
const (
	Sum  Op = iota
	Mean    // the sum, divided by the number of members once, at the end; of integers toward zero
	Max     // NaN if an element is
	Min     // NaN if an element is
	Product
)

var opNames = [...]string{"sum", "mean", "max", "min", "product"}

// String returns the operation's name, such as "sum".
func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return fmt.Sprintf("Op(%d)", uint8(o))
}

// of returns the expression that combines two elements.
func (o Op) of(x, y *expr.Expr) *expr.Expr {
	switch o {
	case Max:
		return x.Max(y)
	case Min:
		return x.Min(y)
	case Product:
		return x.Mul(y)
	}
	return x.Add(y)
}

// between returns the type of what is combined so far of elements of a type: f32 for sums and products of halves, which
// are rounded once, at the end.
func (o Op) between(t runtime.Type) runtime.Type {
	if o == Max || o == Min {
		return t
	}
	return t.Computed()
}

// Algorithm is the order in which members exchange data.
type Algorithm uint8

// The algorithms. All but Library combine the elements of one place at one member, in an order that depends on the
// number of members alone, so that all members get the same bits, in every run. With n bytes and k members, each member
// of an [Member.AllReduce] sends
//
//   - Direct: n·(k-1)/k bytes to the members that combine them, and as many to those that need the result, in two
//     rounds
//   - Tree: n bytes at most up a binomial tree, and n·log₂k at most down, in 2·log₂k rounds
//   - Ring: n·(k-1)/k bytes twice to its neighbour alone, in 2·(k-1) rounds
//
// On their way sums and products of f16 and bf16 are f32, but not with Direct, where no sum is on its way before it is
// complete.
//
// By the library of the devices' vendor (NCCL, RCCL), where all members are devices of one backend that has it, are
// done with BySize and Library: collectives of all types, but none that combine integers of 16 bits, and of floats no
// Max and Min, in which it may lose a NaN; and neither Send nor Recv nor SendRecv. Sums and products of f16 and bf16
// travel as f32. The result has the same bits at all members; those of floats are the same in every run as far as the
// library says so. The host waits until such a collective is done. All else, and all where the library is missing or
// does not start, is done by the others: see [Group.Library].
const (
	BySize Algorithm = iota // the library, or else the next ones, as [Options] say
	Direct
	Tree // of AllReduce, Reduce and Broadcast; others are Direct
	Ring
	Library // as BySize, but a library that is here and does not start is an error
)

var algorithmNames = [...]string{"by size", "direct", "tree", "ring", "library"}

// String returns the algorithm's name, such as "ring".
func (a Algorithm) String() string {
	if int(a) < len(algorithmNames) {
		return algorithmNames[a]
	}
	return fmt.Sprintf("Algorithm(%d)", uint8(a))
}

// choose returns the algorithm of a collective of so many bytes, which has a tree or not.
func (o *Options) choose(members int, bytes int64, tree bool) Algorithm {
	switch {
	case o.Algorithm == Tree && !tree:
		return Direct
	case o.Algorithm != BySize && o.Algorithm != Library:
		return o.Algorithm
	case members == 2 || bytes < o.DirectBelow:
		return Direct
	case bytes < o.TreeBelow && tree:
		return Tree
	case bytes < o.TreeBelow:
		return Direct
	}
	return Ring
}
