package nn

// The functions that a training compiles: a step, its two halves where gradients are put together from several
// batches, and the evaluation of a batch.

import (
	"errors"
	"fmt"
	"slices"

	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/tensor"
)

// What a training changes at every step, in this order; the states of the optimizer follow. Each is one tensor.
const (
	atParams = iota
	atStates // running statistics
	atCount  // I64: the steps that were made
	atSums   // sums over the examples of an epoch: the loss, the examples, bad and skipped steps, and those of the metrics
	atGrads  // the gradients of the batches of a step so far; empty where a step is one batch
	atScale  // with F16: the factor of the loss, and the steps since it changed or a gradient was infinite; else empty
	// what this member has not sent of its gradients yet; empty without compression
	atResidual
	atOptimizer
)

// The sums before those of the metrics.
const (
	sumLoss = iota
	sumExamples
	sumBad
	sumSkipped // steps that an infinite gradient of a scaled loss ended
	sumsBefore
)

// batch are the arguments of a function beside what it changes.
type batch struct {
	x, y, lengths *tensor.Tensor // all examples
	index         *tensor.Tensor // those of the batch
}

func (t *Trainer) batch(a []*tensor.Tensor) batch {
	b := batch{index: a[0], x: a[1], y: a[2]}
	if len(a) > 3 {
		b.lengths = a[3]
	}
	return b
}

// args returns the arguments for examples of data.
func (d Data) args(index *tensor.Tensor) []*tensor.Tensor {
	if d.Lengths == nil {
		return []*tensor.Tensor{index, d.X, d.Y}
	}
	return []*tensor.Tensor{index, d.X, d.Y, d.Lengths}
}

// forward returns the mean loss of a batch, what the network says, and the targets.
func (t *Trainer) forward(p *Pass, b batch) (loss, says, target *tensor.Tensor, err error) {
	take := func(x *tensor.Tensor) *tensor.Tensor { return x.Take(0, b.index) }
	if b.lengths != nil {
		p.Lengths = take(b.lengths)
	}
	says, target = t.model.apply(p, take(b.x)), take(b.y)
	if p.err != nil {
		return nil, nil, nil, p.err
	}
	if says.Err() != nil {
		return nil, nil, nil, says.Err()
	}
	loss, err = t.config.Loss.Of(says, target)
	if err == nil {
		err = loss.Err()
	}
	if err == nil && loss.Len() != 1 {
		err = fmt.Errorf("%w: %v has the shape %v", ErrConfig, t.config.Loss, loss.Shape())
	}
	if err != nil {
		return nil, nil, nil, err
	}
	return loss.Reshape(1).Cast(t.model.typ), says, target, nil
}

// counted returns what a batch of n examples adds to the sums.
func (t *Trainer) counted(loss, says, target *tensor.Tensor, n int) *tensor.Tensor {
	typ, s := t.model.typ, loss.Scope()
	list := []*tensor.Tensor{loss.Mul(n), tensor.Full(s, typ, n), tensor.Full(s, typ, 0), tensor.Full(s, typ, 0)}
	for i, m := range t.metrics {
		t.widths[i] = 0
		for _, x := range m.Sums(t.said(says), target) {
			list = append(list, x.Cast(typ).StopGradient())
			t.widths[i] += x.Len()
		}
	}
	wide, at := 0, 0
	for _, x := range list {
		wide += x.Len()
	}
	place := tensor.Iota(s, tensor.I32, wide)
	all := tensor.Full(s, typ, 0, wide)
	for _, x := range list {
		if x.Len() == 1 { // in the same kernel as all others
			all = tensor.Where(place.Eq(at), x.Reshape(1), all)
		} else {
			all = all.Add(x.Flatten().Pad(0, [2]int{at, wide - at - x.Len()}))
		}
		at += x.Len()
	}
	return all
}

// said returns what metrics compare with targets.
func (t *Trainer) said(says *tensor.Tensor) *tensor.Tensor {
	if l, ok := t.config.Loss.(interface {
		probabilities(p *tensor.Tensor) *tensor.Tensor
	}); ok {
		return l.probabilities(says)
	}
	return says
}

// result is what comes of a batch: the gradients of its parameters, and in one tensor after the other its loss, what it
// adds to the sums, and the next values of the statistics that it has set. Of a member of a group it is that of its
// part of the batch, with the weight of that, so that the sum of all members' results is the batch's.
type result struct {
	grads              []*tensor.Tensor
	loss, sums, states *tensor.Tensor
	set                map[string]*tensor.Tensor // this member's statistics, by their names
}

// next returns all statistics after a step: those that it has not set stay as they are.
func (r *result) next(m *Model, old *tensor.Tensor) *tensor.Tensor {
	if len(r.set) == len(m.states) {
		return r.states
	}
	var parts []*tensor.Tensor
	at := 0
	for _, v := range m.states {
		if r.set[v.Name] == nil {
			parts = append(parts, old.Narrow(0, v.First, v.Len()))
			continue
		}
		parts = append(parts, r.states.Narrow(0, at, v.Len()))
		at += v.Len()
	}
	return together(old.Scope(), m.typ, parts)
}

// rest returns all but the gradients.
func (r *result) rest() []*tensor.Tensor {
	if r.loss == nil {
		return nil
	}
	return []*tensor.Tensor{r.loss, r.sums, r.states}
}

// with returns the result of which the rest is in one tensor.
func (r *result) with(rest *tensor.Tensor) *result {
	if r.loss == nil {
		return r
	}
	at := 0
	next := func(x *tensor.Tensor) *tensor.Tensor {
		at += x.Len()
		return rest.Narrow(0, at-x.Len(), x.Len())
	}
	return &result{loss: next(r.loss), sums: next(r.sums), states: next(r.states), set: r.set}
}

// compute computes a batch, or a member's part of it. A member without rows computes the first one, with the weight 0,
// since layers may have collectives.
func (t *Trainer) compute(vars []*tensor.Tensor, b batch, seed *tensor.Tensor) (*result, error) {
	m, s := t.model, t.share(b.index.Len())
	b = s.of(b)
	p := m.pass(vars[atParams], vars[atStates], seed.Add(vars[atCount].Cast(tensor.U64)))
	if p.Training, p.low = true, t.config.MixedPrecision; !m.split {
		p.share = s
	}
	loss, says, target, err := t.forward(p, b)
	if err != nil {
		return nil, err
	}
	weigh := func(x *tensor.Tensor) *tensor.Tensor {
		if s.rows == s.all {
			return x
		}
		return x.Mul(s.weight())
	}
	r := &result{loss: weigh(loss), sums: t.counted(loss, says, target, s.rows)}
	if s.rows == 0 {
		r.sums = r.sums.Mul(0)
	}
	of := r.loss
	if t.config.MixedPrecision == F16 {
		of = of.Mul(vars[atScale].Narrow(0, 0, 1))
	}
	r.grads = m.gradients(p, of)
	var next []*tensor.Tensor
	r.set = p.next
	for _, v := range m.states {
		if x := p.next[v.Name]; x != nil {
			next = append(next, weigh(x.Flatten()))
		}
	}
	r.states = together(p.scope, m.typ, next)
	return r, nil
}

// unscaled returns a gradient of a loss that was scaled.
func (t *Trainer) unscaled(vars []*tensor.Tensor, grad *tensor.Tensor) *tensor.Tensor {
	if t.config.MixedPrecision == F16 {
		return grad.Mul(vars[atScale].Narrow(0, 0, 1).Reciprocal())
	}
	return grad
}

// finite is the Bool that is true if a number is neither infinite nor NaN.
func finite(x *tensor.Tensor) *tensor.Tensor { return x.Sub(x).Eq(0) }

// update returns the next parameters and the optimizer's states, where ok is true, for a step with this gradient.
func (t *Trainer) update(vars []*tensor.Tensor, grad, norm2, rate,
	ok *tensor.Tensor) (params, count *tensor.Tensor, states []*tensor.Tensor) {
	c, w := &t.config, vars[atParams]
	if c.L1 > 0 {
		grad = grad.Add(w.Sign().Mul(c.L1))
	}
	if c.L2 > 0 {
		grad = grad.Add(w.Mul(2 * c.L2))
	}
	if c.L1 > 0 || c.L2 > 0 {
		norm2 = t.square(grad)
	}
	if c.ClipNorm > 0 {
		grad = grad.Mul(norm2.Sqrt().Reciprocal().Mul(c.ClipNorm).Minimum(1))
	}
	if c.ClipValue > 0 {
		grad = grad.Clamp(-c.ClipValue, c.ClipValue)
	}
	if c.WeightDecay > 0 {
		grad = grad.Add(w.Mul(c.WeightDecay))
	}
	count = vars[atCount].Add(1)
	old := vars[atOptimizer:]
	next, states := c.Optimizer.Update(w, grad, old, rate, count.Cast(t.model.typ))
	if c.DecoupledWeightDecay > 0 {
		next = next.Sub(w.Mul(rate.Mul(c.DecoupledWeightDecay)))
	}
	for i := range states {
		states[i] = tensor.Where(ok, states[i], old[i])
	}
	return tensor.Where(ok, next, w), tensor.Where(ok, count, vars[atCount]), states
}

// mostScale is the largest factor of the loss. With it the least gradient that a half can be is 1 already. Without a
// limit a long training without an infinite gradient would arrive at an infinite factor, from which no halving leads
// back.
const mostScale = 1 << 24

// rescaled returns the next factor of the loss, and the steps since it changed.
func rescaled(scale, ok *tensor.Tensor) *tensor.Tensor {
	factor, clean := scale.Narrow(0, 0, 1), scale.Narrow(0, 1, 1).Add(1)
	grown := clean.Ge(2000)
	factor = tensor.Where(ok, tensor.Where(grown, factor.Mul(2).Minimum(mostScale), factor), factor.Mul(0.5))
	return tensor.Concat(0, factor, tensor.Where(ok.And(grown.Not()), clean, 0))
}

// added returns sums with what a batch adds, where ok is true, and otherwise with one more bad step.
func added(sums, more, ok *tensor.Tensor) *tensor.Tensor {
	return sums.Add(tensor.Where(ok, more, oneMore(sums, sumBad)))
}

// oneMore is what adds 1 to one of the sums.
func oneMore(sums *tensor.Tensor, which int) *tensor.Tensor {
	return tensor.Iota(sums.Scope(), tensor.I32, sums.Len()).Eq(which).Cast(sums.Type())
}

// skippable returns the next sums, after a step from the sums old, and the next scale. With F16 a step that is
// not ok is skipped, unless numbers say that no smaller scale would help; without, and then, it is bad. The
// loss and the metrics of a step that is skipped count: they are finite, and it may be the only one.
func (t *Trainer) skippable(old, after, scale, ok *tensor.Tensor,
	numbers ...*tensor.Tensor) (next, nextScale *tensor.Tensor) {
	if t.config.MixedPrecision != F16 {
		return tensor.Where(ok, after, old.Add(oneMore(old, sumBad))), scale
	}
	loud := isGood(after, append(numbers, scale.Narrow(0, 0, 1).Reciprocal())...)
	skipped := tensor.Where(loud, after.Add(oneMore(old, sumSkipped)), old.Add(oneMore(old, sumBad)))
	return tensor.Where(ok, after, skipped), rescaled(scale, ok)
}

// isGood is the Bool that is true if no step of the epoch was bad, and these numbers are finite.
func isGood(sums *tensor.Tensor, numbers ...*tensor.Tensor) *tensor.Tensor {
	ok := sums.Narrow(0, sumBad, 1).Eq(0)
	for _, x := range numbers {
		ok = ok.And(finite(x))
	}
	return ok
}

// square returns the square of the norm of a gradient, the same at all members: where they have parts of parameters,
// what all have alike counts at rank 0.
func (t *Trainer) square(grad *tensor.Tensor) *tensor.Tensor {
	m := t.model
	if !m.split {
		return grad.Square().Sum().Reshape(1)
	}
	if t.scope.Rank() != 0 {
		var own []*tensor.Tensor
		for _, v := range m.params {
			if v.Whole != nil {
				own = append(own, grad.Narrow(0, v.First, v.Len()))
			}
		}
		grad = together(t.scope, m.typ, own)
	}
	return grad.Square().Sum().Reshape(1).AllReduce(cluster.Sum)
}

// compile makes the functions for the shapes of data. mistake gets an error of one that is traced, of which
// package tensor sees only that it has no result.
func (t *Trainer) compile() {
	n := atOptimizer + len(t.config.Optimizer.States())
	// step: vars..., rate, seed, examples... -> vars...
	t.step = tensor.Compile(t.scope, func(a ...*tensor.Tensor) []*tensor.Tensor {
		vars, rate := a[:n], a[n]
		r, err := t.compute(vars, t.batch(a[n+2:]), a[n+1])
		if t.mistake = err; err != nil {
			return nil
		}
		grad, r, f := t.exchange(vars, r, true)
		loss, states, sums := r.loss, r.next(t.model, vars[atStates]), r.sums
		norm2 := t.square(grad)
		old := vars[atSums]
		ok := f.good(isGood(old, loss, norm2))
		next, scale := t.skippable(old, old.Add(sums), vars[atScale], ok, loss)
		params, count, opt := t.update(vars, grad, norm2, rate, ok)
		return append([]*tensor.Tensor{params, where(ok, states, vars[atStates]), count, f.marked(next), vars[atGrads], scale,
			f.left(vars[atResidual], ok)}, opt...)
	})
	// part: vars..., weight, seed, examples... -> states, sums, grads
	t.part = tensor.Compile(t.scope, func(a ...*tensor.Tensor) []*tensor.Tensor {
		vars, weight := a[:n], a[n]
		r, err := t.compute(vars, t.batch(a[n+2:]), a[n+1])
		if t.mistake = err; err != nil {
			return nil
		}
		grad := t.unscaled(vars, together(t.scope, t.model.typ, r.grads)) // the member's own; whole adds them up
		r = t.known(r)
		ok := isGood(vars[atSums], r.loss)
		return []*tensor.Tensor{where(ok, r.next(t.model, vars[atStates]), vars[atStates]), added(vars[atSums], r.sums, ok),
			vars[atGrads].Add(grad.Mul(weight))}
	})
	// whole: vars..., rate, statistics and sums before the first of its batches -> vars...
	t.whole = tensor.Compile(t.scope, func(a ...*tensor.Tensor) []*tensor.Tensor {
		vars, rate, states, old := a[:n], a[n], a[n+1], a[n+2]
		grad := vars[atGrads]
		var f *feedback
		if t.scope.Size() > 1 || t.sent() > 0 {
			grad, _, f = t.exchange(vars, &result{grads: t.model.divided(grad)}, false)
		}
		norm2 := t.square(grad)
		ok := f.good(isGood(vars[atSums], norm2))
		next, scale := t.skippable(old, vars[atSums], vars[atScale], ok)
		params, count, opt := t.update(vars, grad, norm2, rate, ok)
		return append([]*tensor.Tensor{params, where(ok, vars[atStates], states), count, f.marked(next),
			tensor.Zeros(t.scope, t.model.typ, grad.Len()), scale, f.left(vars[atResidual], ok)}, opt...)
	})
	t.digest = tensor.Compile(t.scope, t.digests)
	// test: params, states, sums, examples... -> sums
	t.test = tensor.Compile(t.scope, func(a ...*tensor.Tensor) []*tensor.Tensor {
		b := t.batch(a[3:])
		loss, says, target, err := t.forward(t.model.pass(a[0], a[1], nil), b)
		if t.mistake = err; err != nil {
			return nil
		}
		return []*tensor.Tensor{a[2].Add(t.counted(loss, says, target, b.index.Len()))}
	})
}

// where is tensor.Where, also of tensors without elements.
func where(ok, x, y *tensor.Tensor) *tensor.Tensor {
	if x.Len() == 0 {
		return x
	}
	return tensor.Where(ok, x, y)
}

// failed returns the mistake behind an error of a compiled function.
func (t *Trainer) failed(err error) error {
	if t.mistake != nil && !errors.Is(err, t.mistake) {
		err, t.mistake = t.mistake, nil
	}
	return err
}

// measure finds out whether network, loss and metrics take data, how many sums there are, and how many results
// a row has.
func (t *Trainer) measure(d Data) (classes int, err error) {
	work := t.scope.Scope()
	defer work.Close()
	p := t.model.pass(t.model.values.params, t.model.values.states, nil)
	b := batch{index: tensor.Zeros(work, tensor.U32, 1), x: d.X, y: d.Y, lengths: d.Lengths}
	loss, says, target, err := t.forward(p, b)
	if err != nil {
		return 0, err
	}
	for _, m := range t.metrics {
		for _, x := range m.Sums(t.said(says), target) {
			if x == nil || x.Err() != nil {
				return 0, fmt.Errorf("%w: metric %v of results %v and targets %v", ErrConfig, m, says.Shape(), target.Shape())
			}
		}
	}
	t.wide = t.counted(loss, says, target, 1).Len()
	return says.Dim(-1), nil
}

// zeros returns the first values of what a step changes, for a model with these values, and in their scope.
func (t *Trainer) zeros(v values) (list []*tensor.Tensor, names []string) {
	m, typ := t.model, t.model.typ
	grads := 0
	if t.config.Accumulate > 1 {
		grads = m.Count()
	}
	residual := 0
	if t.sent() > 0 {
		residual = m.Count()
	}
	scale := tensor.Zeros(v.scope, typ, 0)
	if t.config.MixedPrecision == F16 {
		scale = tensor.Full(v.scope, typ, 65536, 2).Mul(tensor.From(v.scope, []float64{1, 0}).Cast(typ))
	}
	list = []*tensor.Tensor{v.params, v.states, tensor.Zeros(v.scope, tensor.I64, 1), tensor.Zeros(v.scope, typ, t.wide),
		tensor.Zeros(v.scope, typ, grads), scale, tensor.Zeros(v.scope, typ, residual)}
	names = []string{"params", "states", "count", "sums", "grads", "scale", residualName}
	for _, name := range t.config.Optimizer.States() {
		list, names = append(list, tensor.Zeros(v.scope, typ, m.Count())), append(names, optimizerPrefix+name)
	}
	return list, slices.Clip(names)
}
