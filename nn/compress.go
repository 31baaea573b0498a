package nn

// Gradients of which members of a group exchange the largest entries alone, and keep the rest for later steps.

import (
	"context"
	"fmt"
	"math"

	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/tensor"
)

// TopK has each member of a group send the entries of its gradient that have the largest magnitudes, of equal ones
// those with the lowest indices, as F32. It keeps the rest, the residual, and adds it to the gradient of the next
// step, so that nothing is lost (error feedback). A training is not that of one device then. Without other members
// all is sent.
type TopK struct {
	// Ratio is the part of the entries that is sent, at least one entry, and not less than 1e-4. 0 is 0.001; from 1 on
	// gradients are exchanged as without TopK
	Ratio float64
}

// leastRatio is the smallest part of the entries of a gradient that is sent, and usualRatio the default.
const (
	leastRatio = 1e-4
	usualRatio = 0.001
)

// of returns how many of n entries are sent, or 0 without compression.
func (c *TopK) of(n int) int {
	if c == nil || n == 0 || c.Ratio >= 1 {
		return 0
	}
	return max(1, int(float64(n)*max(or(c.Ratio, usualRatio), leastRatio)))
}

// CompressionStats is what a member has sent of its gradients, and what is left. Without [Config.Compression],
// or without other members, it is zero.
type CompressionStats struct {
	Exchanges       int     // of gradients, in this trainer
	Entries, Of     int     // that are sent in each, of how many
	OriginalBytes   int64   // of all gradients
	CompressedBytes int64   // that were sent
	Ratio           float64 // of the two; 0 before the first exchange
	ResidualNorm    float64 // of what this member has kept
}

// Compression returns what compression has done at this member.
func (t *Trainer) Compression(ctx context.Context) (CompressionStats, error) {
	n := t.model.Count()
	k := t.sent()
	if k == 0 || t.vars == nil || t.scope.Size() == 1 {
		return CompressionStats{}, nil
	}
	s := CompressionStats{Exchanges: t.exchanges, Entries: k, Of: n,
		OriginalBytes:   int64(t.exchanges) * int64(n*t.model.typ.Size()),
		CompressedBytes: int64(t.exchanges) * int64((headWords+k)*tensor.U32.Size()+k*tensor.F32.Size())}
	if s.OriginalBytes > 0 {
		s.Ratio = float64(s.CompressedBytes) / float64(s.OriginalBytes)
	}
	work := t.scope.Scope()
	defer work.Close()
	own := t.vars[atResidual].Cast(tensor.F64).Mul(tensor.Ones(work, tensor.F64, 1))
	norm, err := tensor.Number(ctx, own.Square().Sum().Sqrt())
	s.ResidualNorm = norm
	return s, err
}

// sent is how many entries of a gradient are sent in a step, or 0 without compression.
func (t *Trainer) sent() int {
	if t.model.split {
		return 0
	}
	return t.config.Compression.of(t.model.Count())
}

// headWords are in front of the indices in a message: how many there are, and of how many entries.
const headWords = 2

// feedback is what an exchange of a compressed gradient leaves; nil of others.
type feedback struct {
	residual *tensor.Tensor // the next one
	valid    *tensor.Tensor // Bool: the messages of all members are right
}

// exchange is reduced, with or without compression. Residuals are those of gradients as they are, so that a factor
// that the loss has is taken out of these first.
func (t *Trainer) exchange(vars []*tensor.Tensor, r *result,
	scaled bool) (grad *tensor.Tensor, all *result, f *feedback) {
	k := t.sent()
	if k == 0 {
		if grad, all = t.reduced(r); scaled {
			grad = t.unscaled(vars, grad)
		}
		return grad, all, nil
	}
	if grad = together(t.scope, t.model.typ, r.grads); scaled {
		grad = t.unscaled(vars, grad)
	}
	f = new(feedback)
	// What is not finite counts as largest, so that it is sent, and the sum is not finite either.
	grad, f.residual, f.valid = t.compressed(vars[atResidual].Add(grad), k)
	return grad, t.known(r), f
}

// compressed returns the sum of the k largest entries of all members' gradients, what is left of this one's, and
// whether all messages are right. A message is the count of its entries, that of the gradient's, the indices, which
// ascend, and as many values.
func (t *Trainer) compressed(own *tensor.Tensor, k int) (grad, residual, valid *tensor.Tensor) {
	s, n, members := t.scope, own.Len(), t.scope.Size()
	if members == 1 {
		return own, tensor.Zeros(s, own.Type(), n), tensor.Full(s, tensor.Bool, true, 1)
	}
	_, at := own.Abs().TopK(k, 0, true)
	at, _ = at.Cast(tensor.U32).Sort(0, false)
	values := own.Take(0, at).Cast(tensor.F32)
	residual = own.IndexAdd(0, at, values.Neg())
	message := tensor.Concat(0, tensor.From(s, []uint32{uint32(k), uint32(n)}), at)
	if t.tamper != nil {
		message = t.tamper(message)
	}
	heads := message.AllGather().Reshape(members, headWords+k)
	values = values.AllGather()
	at = heads.Narrow(1, headWords, k)
	valid = heads.Narrow(1, 0, 1).Eq(k).And(heads.Narrow(1, 1, 1).Eq(n)).And(at.Narrow(1, k-1, 1).Lt(n)).All().Reshape(1)
	if k > 1 {
		ascending := at.Narrow(1, 1, k-1).Gt(at.Narrow(1, 0, k-1))
		valid = valid.And(ascending.All().Reshape(1))
	}
	return tensor.Zeros(s, own.Type(), n).IndexAdd(0, at.Flatten(), values), residual, valid
}

// good returns ok, if also what members have sent is good.
func (f *feedback) good(ok *tensor.Tensor) *tensor.Tensor {
	if f == nil {
		return ok
	}
	return ok.And(f.valid)
}

// left returns the next residual: after a step that changes nothing it is the old one.
func (f *feedback) left(old, ok *tensor.Tensor) *tensor.Tensor {
	if f == nil {
		return old
	}
	return tensor.Where(ok, f.residual, old)
}

// marked returns sums in which an infinite number of bad steps stands for a message that is not right, which no sum of
// steps is.
func (f *feedback) marked(sums *tensor.Tensor) *tensor.Tensor {
	if f == nil {
		return sums
	}
	wrong := tensor.Iota(sums.Scope(), tensor.I32, sums.Len()).Eq(sumBad).And(f.valid.Not())
	return tensor.Where(wrong, math.Inf(1), sums)
}

// invalid returns the error of a message that is not right.
func (t *Trainer) invalid() error {
	return fmt.Errorf("%w: a compressed gradient that is none of %d entries, in epoch %d", cluster.ErrSync,
		t.model.Count(), t.at.Epoch+1)
}

// residuals returns the bytes of those of all members one after the other, at rank 0; the others send theirs.
func (t *Trainer) residuals(ctx context.Context) (data []byte, err error) {
	own := t.vars[atResidual]
	for rank := range t.scope.Size() {
		one := Param{Shape: own.Shape(), Whole: own.Shape(), axis: -1, parts: make([]cluster.Part, t.scope.Size())}
		one.parts[rank].Count = own.Len()
		if rank != t.scope.Rank() {
			one.Shape = []int{0}
		}
		part, err := contents(ctx, t.scope, []Param{one}, own)
		if err != nil {
			return nil, err
		}
		data = append(data, part...)
	}
	return data, nil
}

// residual returns this member's of a checkpoint's. Where there were as many members, it is its own; otherwise rank 0
// has the sum of all, so that nothing is lost.
func (t *Trainer) residual(all *tensor.Tensor) *tensor.Tensor {
	n := t.model.Count()
	// Neither one device nor members that divide a network keep anything back: a file of one is for the other, too.
	switch {
	case t.sent() == 0 && all.Len() == elements(whole(t.model.params)):
		return tensor.Zeros(all.Scope(), all.Type(), 0)
	case t.sent() > 0 && all.Len() == 0:
		return tensor.Zeros(all.Scope(), t.model.typ, n)
	}
	if n == 0 || all.Rank() != 1 || all.Len() == 0 || all.Len()%n != 0 {
		return all
	}
	rows := all.Reshape(-1, n)
	switch {
	case rows.Dim(0) == t.scope.Size():
		return rows.Narrow(0, t.scope.Rank(), 1).Flatten()
	case t.scope.Rank() == 0:
		return rows.Sum(0).Flatten()
	}
	return tensor.Zeros(all.Scope(), all.Type(), n)
}
