package nn

// Training on a group of devices: each member has a replica of the model and computes its part of every batch, the
// gradients are added up, and all make the same step.

import (
	"context"
	"fmt"
	"hash/fnv"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/tensor"
)

// bucketBytes is how large the parts are in which gradients are exchanged: the first of them goes while others are
// still computed. One closes once it is full, or where the next parameter does not fit and it is three quarters full,
// or that parameter is larger than a bucket. Otherwise the next one goes into it, too, so that it may be larger.
const bucketBytes = 25 << 20

// share is a member's part of a batch: rows from first on, of all.
type share struct{ first, rows, all int }

// share returns the part of this member, which may be none, and is all where members have parts of parameters. Without
// weights the parts of two members differ by one row at most.
func (t *Trainer) share(all int) share {
	size := t.scope.Size()
	if t.model.split {
		return share{0, all, all}
	}
	parts := partsOf(all, size)
	if size > 1 && t.config.Weights != nil {
		parts, _ = cluster.Weighted(all, t.config.Weights) // which newTrainer has checked
	}
	own := parts[t.scope.Rank()]
	return share{own.First, own.Count, all}
}

// weight is the part of the batch that the share is.
func (s share) weight() float64 { return float64(s.rows) / float64(s.all) }

// of returns the member's part of a batch, or the first row where it has none.
func (s share) of(b batch) batch {
	first := s.first
	if s.rows == 0 {
		first = 0
	}
	b.index = b.index.Narrow(0, first, max(s.rows, 1))
	return b
}

// buckets divides parameters of so many bytes, from the last one to the first, since the last layers' gradients are
// known first, into buckets of size bytes. Each is a range of parameters.
func buckets(bytes []int, size int) (list []cluster.Part) {
	end, sum := len(bytes), 0
	for i := len(bytes) - 1; i >= 0; i-- {
		fits := sum+bytes[i] <= size
		if sum > 0 && !fits && (4*sum >= 3*size || bytes[i] > size) {
			list = append(list, cluster.Part{First: i + 1, Count: end - i - 1})
			end, sum = i+1, 0
		}
		if sum += bytes[i]; sum >= size {
			list = append(list, cluster.Part{First: i, Count: end - i})
			end, sum = i, 0
		}
	}
	if end > 0 {
		list = append(list, cluster.Part{Count: end})
	}
	return list
}

// reduced returns the gradient in one tensor, and the rest of a result, of all members together. The gradient is
// exchanged in buckets, of which the last one takes the rest with it. Where members have parts of parameters, each has
// the gradients of its own already.
func (t *Trainer) reduced(r *result) (grad *tensor.Tensor, all *result) {
	typ := t.model.typ
	if t.scope.Size() == 1 || t.model.split {
		return together(t.scope, typ, r.grads), t.known(r)
	}
	bytes := make([]int, len(r.grads))
	for i, g := range r.grads {
		bytes[i] = g.Len() * typ.Size()
	}
	list, rest := buckets(bytes, t.bucket), r.rest()
	if len(list) == 0 {
		return together(t.scope, typ, nil), t.known(r)
	}
	parts := make([]*tensor.Tensor, len(list)) // by the parameters, the first ones first
	for i, b := range list {
		own := r.grads[b.First:b.End():b.End()]
		if i < len(list)-1 {
			parts[len(list)-1-i] = together(t.scope, typ, own).AllReduce(cluster.Sum)
			continue
		}
		n := elements(t.model.params[:b.End()])
		sum := together(t.scope, typ, append(own, rest...)).AllReduce(cluster.Sum)
		parts[0], all = sum.Narrow(0, 0, n), r.with(sum.Narrow(0, n, sum.Len()-n))
	}
	return together(t.scope, typ, parts), all
}

// known returns a result without its gradients, of all members together: the sum of what they have of a divided batch,
// or rank 0's where each has computed all of it, on a device that may round otherwise.
func (t *Trainer) known(r *result) *result {
	if t.scope.Size() == 1 {
		return r
	}
	rest := together(t.scope, t.model.typ, r.rest())
	if t.model.split {
		return r.with(rest.Broadcast(0))
	}
	return r.with(rest.AllReduce(cluster.Sum))
}

// layout returns the parameters or statistics of which a row of what a step changes is made, or nil of another row.
func (t *Trainer) layout(i int) []Param {
	switch {
	case i == atStates:
		return t.model.states
	case i == atParams, i == atGrads && t.config.Accumulate > 1, i >= atOptimizer:
		return t.model.params
	}
	return nil
}

// divided returns a gradient in one tensor as one of each parameter.
func (m *Model) divided(grad *tensor.Tensor) (grads []*tensor.Tensor) {
	for _, v := range m.params {
		grads = append(grads, grad.Narrow(0, v.First, v.Len()))
	}
	return grads
}

// kindOf describes what decides how a device rounds: members of one kind have the same bits.
func kindOf(dev *runtime.Device) string {
	info, c := dev.Info(), dev.Choices()
	list := []any{info.Backend, info.Vendor, info.Name, info.DriverVersion, info.ComputeUnits, c.TunedFor()}
	for _, one := range c.Choices() {
		list = append(list, c.Of(one))
	}
	return fmt.Sprintf("%q", list)
}

// align compares what all members have, but for the sums, which the next step replaces or does not depend on, and for
// the parts of parameters that members divide. Members on devices of one kind have the same bits: their digests are
// compared, and nothing changes. Those on others round otherwise, and replicas would drift apart: within the limit of
// drifted they get what the first one has.
func (t *Trainer) align(ctx context.Context) error {
	if t.scope.Size() == 1 {
		return nil
	}
	alike, err := t.alike(ctx)
	if err != nil || alike {
		return err
	}
	next := t.scope.Scope()
	vars, err := t.aligned(ctx, next)
	if err != nil {
		next.Close()
		return err
	}
	zero := tensor.Zeros(next, t.model.typ, t.wide)
	if err := tensor.Eval(ctx, zero); err != nil {
		next.Close()
		return err
	}
	t.own.close()
	t.vars, t.zero, t.own = vars, zero, values{scope: next}
	return nil
}

// alike reports whether the members are on devices of one kind. If they are, and one has other bits, the error is that
// of all.
func (t *Trainer) alike(ctx context.Context) (bool, error) {
	list, err := t.digest.Call(ctx, t.vars...)
	if err != nil {
		return false, err
	}
	digests, err := tensor.Read[uint64](ctx, list[0])
	if err != nil {
		return false, err
	}
	ranks, err := unlikeNumbers(ctx, t.scope, append(digests, hashed(kindOf(t.scope.Device()))))
	if err != nil || ranks[len(digests)] != 0 {
		return false, err
	}
	for i, rank := range ranks {
		if rank != 0 {
			return false, differs(rank, cluster.ErrSync, "other values of "+t.names[i])
		}
	}
	return true, nil
}

// digests returns a number for what members have alike of each of vars, but for the sums: that of one which differs in
// one element differs, and that of one which differs in several does but for one case in 2⁶³. The sign of zero does not
// count.
func (t *Trainer) digests(vars ...*tensor.Tensor) []*tensor.Tensor {
	list := make([]*tensor.Tensor, len(vars))
	for i, v := range vars {
		list[i] = tensor.Zeros(v.Scope(), tensor.U64, 1)
		if i == atSums || i == atResidual {
			continue
		}
		if v = common(t.layout(i), v); v.Len() == 0 {
			continue
		}
		if tensor.IsFloat(v.Type()) {
			v = tensor.Where(v.Eq(0), 0, v)
			if v.Type() == tensor.F64 {
				v = v.Bits(tensor.U64)
			} else {
				v = v.Cast(tensor.F32).Bits(tensor.U32)
			}
		}
		// An odd factor has an inverse, so that no difference of one element is lost.
		odd := tensor.Iota(v.Scope(), tensor.U64, v.Len()).Mul(digestFactor).Or(1)
		list[i] = v.Cast(tensor.U64).Mul(odd).Sum().Reshape(1)
	}
	return []*tensor.Tensor{tensor.Concat(0, list...)}
}

// digestFactor has bits without a pattern, those of the golden ratio, so that the factors of elements have none either.
const digestFactor = uint64(0x9e3779b97f4a7c15)

// aligned returns what the first member has, in scope s, but for what each member has of its own. Where another one has
// drifted too far, the error is that of all.
func (t *Trainer) aligned(ctx context.Context, s *tensor.Scope) (vars []*tensor.Tensor, err error) {
	other := -1 // the first that has
	for i, v := range t.vars {
		if i == atResidual { // each member's own
			if v, err = copyTo(ctx, s, v); err != nil {
				return nil, err
			}
			vars = append(vars, v)
			continue
		}
		work, list := s.Scope(), t.layout(i)
		own := common(list, v)
		all, err := copyTo(ctx, s, merged(list, v, own.Broadcast(0)))
		n := 0.0
		if err == nil && i != atSums && own.Len() > 0 {
			n, err = tensor.Number(ctx, drifted(own, common(list, all)).Mul(tensor.Ones(work, tensor.I32, 1)))
		}
		if work.Close(); err != nil {
			return nil, err
		}
		if vars = append(vars, all); n != 0 && other < 0 {
			other = i
		}
	}
	work := s.Scope()
	defer work.Close()
	mine := []int32{0, int32(other)}
	if other >= 0 {
		mine[0] = int32(t.scope.Rank())
	}
	list, err := tensor.Read[int32](ctx, tensor.From(work, mine).AllReduce(cluster.Max))
	if err == nil && list[0] != 0 {
		err = differs(int(list[0]), cluster.ErrSync, "other values of "+t.names[list[1]])
	}
	return vars, err
}

// drifted is 1 if x is farther away from first than half of the type's bits, relative to the largest element, or
// differs where it is no floating-point number. What members add up is the same for all, so that only the steps of
// their optimizers round otherwise.
func drifted(x, first *tensor.Tensor) *tensor.Tensor {
	same := x.Eq(first).Or(x.Ne(x).And(first.Ne(first))).All() // or both are NaN
	if tensor.IsFloat(x.Type()) {
		half := 0x1p-11
		if x.Type() == tensor.F64 {
			half = 0x1p-26
		}
		same = same.Or(x.Sub(first).Abs().Max().Le(first.Abs().Max().Mul(half)))
	}
	return same.Not().Cast(tensor.I32)
}

// agreed returns what the first member says.
func (t *Trainer) agreed(ctx context.Context, says bool) (bool, error) {
	if t.scope.Size() == 1 {
		return says, nil
	}
	work := t.scope.Scope()
	defer work.Close()
	n, err := tensor.Number(ctx, tensor.From(work, []bool{says}).Broadcast(0))
	return n != 0, err
}

// alone reports whether the trainer is the one that writes: the first member of a group, or without one.
func (t *Trainer) alone() bool { return t.scope.Rank() == 0 }

// differs returns the error of all members where one is not as the first one is.
func differs(rank int, kind error, what string) error {
	return &cluster.MemberError{Rank: rank, Err: fmt.Errorf("%w: %s than member 0", kind, what)}
}

// unlike returns, of each text, the first member that has another one than the first member, or 0. All members call
// it, with as many texts.
func unlike(ctx context.Context, s *tensor.Scope, texts ...string) ([]int, error) {
	own := make([]uint64, len(texts))
	for i, text := range texts {
		own[i] = hashed(text)
	}
	return unlikeNumbers(ctx, s, own)
}

func hashed(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return h.Sum64()
}

// unlikeNumbers is unlike of numbers.
func unlikeNumbers(ctx context.Context, s *tensor.Scope, own []uint64) ([]int, error) {
	ranks := make([]int, len(own))
	if s.Size() == 1 {
		return ranks, nil
	}
	work := s.Scope()
	defer work.Close()
	list, err := tensor.Read[uint64](ctx, tensor.From(work, own).AllGather())
	if err != nil {
		return nil, err
	}
	for at := len(list) - 1; at >= 0; at-- {
		if i := at % len(own); list[at] != list[i] {
			ranks[i] = at / len(own)
		}
	}
	return ranks, nil
}

// settled returns the precision of all members: own, what the asked one stands for here, if that is every member's,
// and otherwise Full, since members add up gradients of losses that are scaled or not.
func settled(ctx context.Context, s *tensor.Scope, asked, own Mode) (Mode, error) {
	ranks, err := unlike(ctx, s, string(asked), string(own))
	switch {
	case err != nil:
		return "", err
	case ranks[0] != 0:
		return "", differs(ranks[0], ErrConfig, "another MixedPrecision")
	case ranks[1] != 0:
		return Full, nil
	}
	return own, nil
}

// joined returns an error unless all members begin with the same configuration, data and position. With others they
// could not even call the same collectives.
func (t *Trainer) joined(ctx context.Context, train, val Data) error {
	c, h := &t.config, &t.history
	shapes := ""
	for _, d := range []Data{train, val} {
		for _, x := range []*tensor.Tensor{d.X, d.Y, d.Lengths} {
			if x != nil {
				shapes += fmt.Sprint(x.Type(), x.Shape())
			}
			shapes += ";"
		}
	}
	network := t.model.about().Network
	for _, v := range t.model.params { // layers do not say how members divide them
		network = append(network, fmt.Sprint(v.Whole, v.parts))
	}
	saved := ""
	if t.SavesTogether() && c.Checkpoint != "" {
		saved = fmt.Sprint("checkpoint every ", c.CheckpointEvery)
	}
	texts := []string{fmt.Sprintf("%q", network),
		fmt.Sprintf("%q", append(t.same(), fmt.Sprint(c.Epochs, *c.Patience, *c.MinDelta, c.MaxTime > 0, c.Weights),
			saved)), shapes,
		fmt.Sprint(t.at, h.Stopped, h.BestEpoch, h.BestValLoss, h.TrainLoss, h.ValLoss, t.vars == nil,
			t.loaded == nil)}
	ranks, err := unlike(ctx, t.scope, texts...)
	for i, what := range []string{"another network", "another configuration", "data of another shape",
		"another checkpoint or epoch"} {
		if err == nil && ranks[i] != 0 {
			err = differs(ranks[i], ErrConfig, what)
		}
	}
	return err
}
