package nn

// Trainer, which trains a model.

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/tensor"
)

// Trainer trains a model. It is used by one goroutine at a time.
type Trainer struct {
	model   *Model
	config  Config
	metrics []Metric
	scope   *tensor.Scope

	step, part, whole, test *tensor.Func
	digest                  *tensor.Func // of vars, by which members compare them
	mistake                 error
	bucket                  int   // bytes of the parts in which gradients are exchanged
	exchanges               int   // of compressed gradients
	widths                  []int // how many sums each metric has
	wide                    int   // and all together

	vars    []*tensor.Tensor // what a step changes, as step.go has it; nil before the first
	names   []string
	zero    *tensor.Tensor            // the sums at the beginning of an epoch
	own     values                    // in whose scope the first of vars are
	loaded  map[string]*tensor.Tensor // of a checkpoint, until the first Fit
	from    *tensor.Scope             // of loaded; nil without a checkpoint
	best    values
	at      position
	history History
	tamper  func(message *tensor.Tensor) *tensor.Tensor // with what is sent; nil but in tests
}

// position says where a training is. With the seeds and the data it determines all that follows.
type position struct {
	Epoch int // that is under way
	Batch int // the next one in it
	Steps int
	Bad   int // epochs since the loss was best
}

// NewTrainer returns a trainer with its own memory for the states of the optimizer, which ends with the model's
// scope or by Close. A configuration that makes no sense is an error that matches [ErrConfig]. All members of a group
// call it, and wait for each other to agree on a precision, as long as [cluster.Options] say.
func NewTrainer(m *Model, c Config) (*Trainer, error) {
	if m == nil {
		return nil, fmt.Errorf("%w: no model", ErrConfig)
	}
	if _, staged := m.net.(stages); staged {
		return nil, fmt.Errorf("%w: training a network of BuildStages", ErrConfig)
	}
	info := m.scope.Device().Info()
	return newTrainer(m, c, &info)
}

// newTrainer is NewTrainer on a device with this information.
func newTrainer(m *Model, c Config, info *runtime.Info) (*Trainer, error) {
	c = c.filled()
	if err := c.check(); err != nil {
		return nil, err
	}
	mode, err := settled(context.Background(), m.scope, c.MixedPrecision, c.MixedPrecision.on(info, m.typ))
	if err != nil {
		return nil, err
	}
	c.MixedPrecision = mode
	switch n := m.scope.Size(); {
	case n == 1 || c.Weights == nil:
	case len(c.Weights) != n:
		return nil, fmt.Errorf("%w: Weights is %v; of %d members each has to have one", ErrConfig, c.Weights, n)
	case m.split:
		return nil, fmt.Errorf("%w: Weights is %v, and the members divide the network, not batches", ErrConfig, c.Weights)
	}
	t := &Trainer{model: m, config: c, metrics: c.metrics(), scope: m.scope.Scope()}
	t.widths, t.bucket = make([]int, len(t.metrics)), bucketBytes
	t.history = History{ParameterCount: elements(whole(m.params)), BestEpoch: -1, TrainMetrics: map[string][]float64{},
		ValMetrics: map[string][]float64{}}
	t.compile()
	return t, nil
}

// Close frees the trainer's memory. The model has the values of the last epoch that was over, or of the last
// call of Fit.
func (t *Trainer) Close() error { return t.scope.Close() }

// MixedPrecision returns the precision of products, which is that of the configuration, or what Auto stands for
// on the device, or on all devices of a group.
func (t *Trainer) MixedPrecision() Mode { return t.config.MixedPrecision }

// History returns what has happened so far.
func (t *Trainer) History() *History { return &t.history }

// Fit trains until the configured number of epochs is over, and returns the history. When it returns, also with
// an error, the model has the trainer's values. A context that ends stops it between two steps; another call
// goes on from there, with the same data. All members of a group call Fit, with the same data.
func (t *Trainer) Fit(ctx context.Context, d Data) (*History, error) {
	train, val, err := t.divided(d)
	if err != nil {
		return nil, err
	}
	if err := t.begin(ctx, train, val); err != nil {
		return nil, err
	}
	start, before := time.Now(), t.history.TotalTime
	for err == nil && t.at.Epoch < t.config.Epochs && t.history.Stopped == "" {
		err = t.epoch(ctx, train, val)
		t.history.TotalTime = before + time.Since(start)
		if err == nil && t.config.MaxTime > 0 && t.at.Epoch < t.config.Epochs {
			over := false
			if over, err = t.agreed(ctx, t.history.TotalTime >= t.config.MaxTime); over {
				t.history.Stopped = "time is over"
			}
		}
		if err == nil {
			err = t.after(context.WithoutCancel(ctx)) // what an epoch ends with belongs to it
		}
	}
	if e := t.publish(context.WithoutCancel(ctx)); err == nil {
		err = e
	}
	return &t.history, err
}

// check returns an error unless data are examples and as many targets.
func (t *Trainer) check(d Data) error {
	if err := t.model.fits(d.X); err != nil {
		return err
	}
	switch {
	case d.Y == nil:
		return fmt.Errorf("%w: no targets", ErrData)
	case d.Y.Err() != nil:
		return d.Y.Err()
	case d.Y.Rank() < 1 || d.Y.Dim(0) != d.X.Dim(0):
		return fmt.Errorf("%w: %d examples and targets of shape %v, whose first dimension has to be the number of examples",
			ErrData, d.X.Dim(0), d.Y.Shape())
	}
	return fitLengths(d.Lengths, d.X.Dim(0))
}

// fits returns an error unless data are examples that network, loss and metrics take, at least one. The first
// of them is number first of the data that was given.
func (t *Trainer) fits(ctx context.Context, d Data, first int) error {
	if err := t.check(d); err != nil {
		return err
	}
	if d.X.Dim(0) == 0 {
		return fmt.Errorf("%w: no examples", ErrData)
	}
	classes, err := t.measure(d)
	if err != nil {
		return err
	}
	return t.labels(ctx, d, first, classes)
}

// divided checks data and returns the examples to train with and those for validation, none of which may be there.
func (t *Trainer) divided(d Data) (train, val Data, err error) {
	if err := t.check(d); err != nil {
		return train, val, err
	}
	n := d.X.Dim(0)
	if t.config.Validation != nil {
		if err := t.check(*t.config.Validation); err != nil {
			return train, val, fmt.Errorf("validation: %w", err)
		}
		train, val = d, *t.config.Validation
	} else {
		v := int(math.Round(float64(n) * *t.config.Split))
		train, val = d.narrow(0, n-v), d.narrow(n-v, v)
	}
	if train.X.Dim(0) == 0 {
		return train, val, fmt.Errorf("%w: no examples to train with", ErrData)
	}
	return train, val, nil
}

func (d Data) narrow(first, n int) Data {
	out := Data{X: d.X.Narrow(0, first, n), Y: d.Y.Narrow(0, first, n)}
	if d.Lengths != nil {
		out.Lengths = d.Lengths.Narrow(0, first, n)
	}
	return out
}

// begin finds out whether the data fits, and makes the first values of what a step changes.
func (t *Trainer) begin(ctx context.Context, train, val Data) (err error) {
	for i, d := range []Data{val, train} { // the last of which says how many sums there are
		first := 0
		if i == 0 && t.config.Validation == nil { // the last of the examples
			first = train.X.Dim(0)
		}
		if d.X.Dim(0) == 0 {
			continue
		}
		if err := t.fits(ctx, d, first); err != nil {
			return err
		}
	}
	if err := t.joined(ctx, train, val); err != nil || t.vars != nil {
		return err
	}
	// since the model gets others at the end of an epoch
	own, err := copied(ctx, t.scope, t.model.values.params, t.model.values.states)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			own.close()
		}
	}()
	list, names := t.zeros(own)
	for i, name := range names {
		if t.loaded == nil || i < atCount {
			continue
		}
		l := t.loaded[name]
		if l == nil && name == residualName && list[i].Len() == 0 { // which older files do not have
			continue
		}
		if l == nil {
			return fmt.Errorf("%w: the checkpoint has no %s", ErrConfig, name)
		}
		if l.Len() != list[i].Len() || l.Type() != list[i].Type() {
			return fmt.Errorf("%w: the checkpoint has %v%v as %s, not %v%v", ErrConfig, l.Type(), l.Shape(), name,
				list[i].Type(), list[i].Shape())
		}
		list[i] = l
	}
	zero := tensor.Zeros(own.scope, t.model.typ, t.wide)
	if err = tensor.Eval(ctx, append(list, zero)...); err != nil {
		return err
	}
	loaded := t.loaded
	t.vars, t.names, t.own, t.loaded, t.zero = list, names, own, nil, zero
	if err = t.align(ctx); err != nil { // one member alone has loaded something else
		t.vars, t.own, t.loaded = nil, values{}, loaded
	}
	return err
}

// labels returns an error if a label is none of the classes.
func (t *Trainer) labels(ctx context.Context, d Data, first, classes int) error {
	switch t.config.Loss.(type) {
	case CrossEntropy, CategoricalCrossEntropy:
	default:
		return nil
	}
	if tensor.IsFloat(d.Y.Type()) || d.Y.Len() == 0 {
		return nil
	}
	work := t.scope.Scope()
	defer work.Close()
	y := d.Y.Flatten().Cast(tensor.I64).Mul(tensor.Ones(work, tensor.I64, 1))
	wrong := y.Lt(0).Or(y.Ge(classes)).Cast(tensor.I32)
	at, most, which := wrong.ArgMax(0), wrong.Max(), (*tensor.Tensor)(nil)
	which = y.Take(0, at)
	if err := tensor.Eval(ctx, at, most, which); err != nil {
		return err
	}
	var list [3]float64
	for i, x := range []*tensor.Tensor{most, at, which} {
		n, err := tensor.Number(ctx, x)
		if err != nil {
			return err
		}
		list[i] = n
	}
	if list[0] != 0 {
		return fmt.Errorf("%w: label %d is %d, of %d classes", ErrData, first+int(list[1]), int(list[2]), classes)
	}
	return nil
}

// between is how many batches are queued before their sums are read.
const between = 32

// epoch trains from the position to the end of its epoch, and evaluates.
func (t *Trainer) epoch(ctx context.Context, train, val Data) error {
	c, n := &t.config, train.X.Dim(0)
	start := time.Now()
	order := t.order(n)
	batches := (n-1)/c.BatchSize + 1
	first := t.at.Batch
	made := first / c.Accumulate
	if first%c.Accumulate != 0 {
		made++
	}
	rate := c.rate(&t.history, t.at.Steps-made) // at the beginning of the epoch
	var sums []float64
	for t.at.Batch < batches {
		stop := t.at.Batch + min(max(between/c.Accumulate, 1)*c.Accumulate, batches-t.at.Batch)
		if err := t.batches(ctx, train, order, stop); err != nil {
			return err
		}
		var err error
		if sums, err = t.read(ctx, t.vars[atSums]); err != nil {
			return err
		}
		if math.IsInf(sums[sumBad], 1) {
			return t.invalid()
		}
		if sums[sumBad] != 0 {
			made, err := tensor.Number(ctx, t.vars[atCount])
			if err != nil {
				return err
			}
			return fmt.Errorf("%w: the loss or the gradient of step %.0f, in epoch %d; the parameters are those before it",
				ErrNumerical, made+1, t.at.Epoch+1)
		}
		if c.Progress != nil {
			done := min(stop*c.BatchSize, n)
			c.Progress(Progress{Epoch: t.at.Epoch, Epochs: c.Epochs, Examples: done, Of: n,
				Loss:              sums[sumLoss] / sums[sumExamples],
				ExamplesPerSecond: float64(done-first*c.BatchSize) / time.Since(start).Seconds()})
		}
	}
	if err := t.align(ctx); err != nil {
		return err
	}
	if sums == nil || t.scope.Size() > 1 { // a checkpoint between the last step and the evaluation, or aligned
		var err error
		if sums, err = t.read(ctx, t.vars[atSums]); err != nil {
			return err
		}
	}
	h := &t.history
	var valLoss float64
	var valMetrics map[string]float64
	if val.X.Dim(0) > 0 {
		var err error
		if valLoss, valMetrics, err = t.evaluate(ctx, val, t.vars[atParams], t.vars[atStates]); err != nil {
			return err
		}
		if math.IsNaN(valLoss) || math.IsInf(valLoss, 0) {
			return fmt.Errorf("%w: the loss of validation is %v in epoch %d", ErrNumerical, valLoss, t.at.Epoch+1)
		}
		h.ValLoss = append(h.ValLoss, valLoss)
		for name, v := range valMetrics {
			h.ValMetrics[name] = append(h.ValMetrics[name], v)
		}
	}
	loss, metrics := t.means(sums)
	h.TrainLoss, h.LearningRate, h.Skipped = append(h.TrainLoss, loss), append(h.LearningRate, rate),
		append(h.Skipped, int(sums[sumSkipped]))
	for name, v := range metrics {
		h.TrainMetrics[name] = append(h.TrainMetrics[name], v)
	}
	t.vars[atSums] = t.zero
	t.at.Epoch, t.at.Batch = t.at.Epoch+1, 0
	h.EpochTimes = append(h.EpochTimes, time.Since(start))
	return nil
}

// order returns the order of n examples in the epoch under way.
func (t *Trainer) order(n int) []uint32 {
	list := make([]uint32, n)
	for i := range list {
		list[i] = uint32(i)
	}
	if !t.config.InOrder {
		r := rand.New(rand.NewPCG(t.config.Seed, uint64(t.at.Epoch)))
		r.Shuffle(n, func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	return list
}

// batches queues the batches from the position up to, without, batch stop.
func (t *Trainer) batches(ctx context.Context, d Data, order []uint32, stop int) error {
	c := &t.config
	work := t.scope.Scope()
	defer work.Close()
	base := t.at.Batch * c.BatchSize
	order = order[base:min(stop*c.BatchSize, len(order))]
	index := tensor.From(work, order, len(order))
	part := func(b int) *tensor.Tensor {
		first := b*c.BatchSize - base
		return index.Narrow(0, first, min(c.BatchSize, index.Len()-first))
	}
	var seeds []*tensor.Tensor // for each batch of a step
	seed := func(i int) *tensor.Tensor {
		for len(seeds) <= i {
			seeds = append(seeds, tensor.From(work, []uint64{mixed(c.Seed, uint64(len(seeds)))}))
		}
		return seeds[i]
	}
	var rates = map[float64]*tensor.Tensor{}
	number := func(x float64) *tensor.Tensor {
		if rates[x] == nil {
			rates[x] = tensor.From(work, []float64{x}).Cast(t.model.typ)
		}
		return rates[x]
	}
	for t.at.Batch < stop {
		if err := ctx.Err(); err != nil {
			return err
		}
		r := c.rate(&t.history, t.at.Steps)
		if !(r >= 0) || math.IsInf(r, 1) {
			return fmt.Errorf("%w: %v has the learning rate %v after %d steps", ErrConfig, c.Schedule, r, t.at.Steps)
		}
		rate := number(r)
		if c.Accumulate == 1 {
			out, err := t.step.CallDonating(ctx, t.donated(),
				append(append(t.list(), rate, seed(0)), d.args(part(t.at.Batch))...)...)
			if err != nil {
				return t.failed(err)
			}
			copy(t.vars, out)
			t.at.Batch, t.at.Steps, t.exchanges = t.at.Batch+1, t.at.Steps+1, t.exchanges+1
			continue
		}
		// The batches of a step are queued as a whole or not at all.
		before := t.list()
		states, sums := t.vars[atStates], t.vars[atSums]
		ctx := context.WithoutCancel(ctx)
		end := t.at.Batch + min(c.Accumulate, stop-t.at.Batch)
		all := min(end*c.BatchSize-base, index.Len()) - (t.at.Batch*c.BatchSize - base)
		for b := t.at.Batch; b < end; b++ {
			weight := number(float64(part(b).Len()) / float64(all))
			out, err := t.part.Call(ctx, append(append(t.list(), weight, seed(b-t.at.Batch)), d.args(part(b))...)...)
			if err != nil {
				copy(t.vars, before)
				return t.failed(err)
			}
			t.vars[atStates], t.vars[atSums], t.vars[atGrads] = out[0], out[1], out[2]
		}
		out, err := t.whole.CallDonating(ctx, t.donated(), append(t.list(), rate, states, sums)...)
		if err != nil {
			copy(t.vars, before)
			return t.failed(err)
		}
		copy(t.vars, out)
		t.at.Batch, t.at.Steps, t.exchanges = end, t.at.Steps+1, t.exchanges+1
	}
	return nil
}

// donated says which of what a step changes it may change where it is: the parameters, the residual and the states of
// the optimizer.
func (t *Trainer) donated() []bool {
	flags := make([]bool, len(t.vars))
	for i := range flags {
		flags[i] = i == atParams || i >= atOptimizer || i == atResidual && t.sent() > 0
	}
	return flags
}

// list returns what a step changes, for a list of arguments.
func (t *Trainer) list() []*tensor.Tensor {
	return append(make([]*tensor.Tensor, 0, len(t.vars)+6), t.vars...)
}

// read returns sums.
func (t *Trainer) read(ctx context.Context, sums *tensor.Tensor) ([]float64, error) {
	if t.model.typ == tensor.F64 {
		return tensor.Read[float64](ctx, sums)
	}
	list, err := tensor.Read[float32](ctx, sums)
	out := make([]float64, len(list))
	for i, x := range list {
		out[i] = float64(x)
	}
	return out, err
}

// means returns the loss and the metrics of sums.
func (t *Trainer) means(sums []float64) (loss float64, metrics map[string]float64) {
	metrics = map[string]float64{}
	at := sumsBefore
	for i, m := range t.metrics {
		metrics[m.String()] = m.Value(sums[at : at+t.widths[i]])
		at += t.widths[i]
	}
	return sums[sumLoss] / sums[sumExamples], metrics
}

// Evaluate returns the loss of examples and the metrics by their names, of the model's values. All members of a group
// call it, with the same examples, of which each computes a part, or all with its parts of the parameters.
func (t *Trainer) Evaluate(ctx context.Context, d Data) (loss float64, metrics map[string]float64, err error) {
	if err := t.fits(ctx, d, 0); err != nil {
		return 0, nil, err
	}
	return t.evaluate(ctx, d, t.model.values.params, t.model.values.states)
}

func (t *Trainer) evaluate(ctx context.Context, d Data, params,
	states *tensor.Tensor) (loss float64, metrics map[string]float64, err error) {
	n := d.X.Dim(0)
	work := t.scope.Scope()
	defer work.Close()
	index := tensor.Iota(work, tensor.U32, n)
	sums := tensor.Zeros(work, t.model.typ, t.wide)
	for first := 0; first < n; first += t.config.BatchSize {
		own := t.share(min(t.config.BatchSize, n-first))
		part := own.of(batch{index: index.Narrow(0, first, own.all)})
		out, err := t.test.Call(ctx, append([]*tensor.Tensor{params, states, sums}, d.args(part.index)...)...)
		if err != nil {
			return 0, nil, t.failed(err)
		}
		if own.rows > 0 { // a member without rows computes the first one, since layers may have collectives
			sums = out[0]
		}
	}
	if t.scope.Size() > 1 {
		sums = sums.Mul(tensor.Ones(work, t.model.typ, 1)) // in work
		if t.model.split {
			sums = sums.Broadcast(0)
		} else {
			sums = sums.AllReduce(cluster.Sum)
		}
	}
	list, err := t.read(ctx, sums)
	if err != nil {
		return 0, nil, err
	}
	loss, metrics = t.means(list)
	return loss, metrics, nil
}

// after ends an epoch: the model's values, the best ones, the checkpoint, and what the configuration wants to be told.
func (t *Trainer) after(ctx context.Context) error {
	c, h := &t.config, &t.history
	if err := t.publish(ctx); err != nil {
		return err
	}
	losses := h.watched()
	loss := losses[len(losses)-1]
	if h.BestEpoch < 0 || loss < h.BestValLoss-*c.MinDelta {
		if *c.Patience > 0 {
			best, err := copied(ctx, t.scope, t.vars[atParams], t.vars[atStates])
			if err != nil {
				return err
			}
			t.best.close()
			t.best = best
		}
		h.BestEpoch, h.BestValLoss, t.at.Bad = h.Epochs()-1, loss, 0
	} else if t.at.Bad++; *c.Patience > 0 && t.at.Bad >= *c.Patience {
		best, err := copied(ctx, t.own.scope, t.best.params, t.best.states) // since further steps would change them
		if err != nil {
			return err
		}
		h.Stopped = fmt.Sprintf("no improvement for %d epochs", *c.Patience)
		t.vars[atParams], t.vars[atStates] = best.params, best.states
		if err := t.publish(ctx); err != nil {
			return err
		}
	}
	if c.Log != nil && t.alone() {
		if _, err := fmt.Fprintln(c.Log, t.line()); err != nil {
			return err
		}
	}
	if c.Checkpoint != "" && (h.Epochs()%c.CheckpointEvery == 0 || t.at.Epoch == c.Epochs || h.Stopped != "") {
		if err := t.Save(ctx, c.Checkpoint); err != nil {
			return err
		}
	}
	if c.OnEpoch != nil {
		return c.OnEpoch(h)
	}
	return nil
}

// publish gives the model the trainer's values.
func (t *Trainer) publish(ctx context.Context) error {
	return t.model.set(ctx, t.vars[atParams], t.vars[atStates])
}

// line describes the last epoch.
func (t *Trainer) line() string {
	h, i := &t.history, t.history.Epochs()-1
	s := fmt.Sprintf("epoch %d/%d  loss %.5g", i+1, t.config.Epochs, h.TrainLoss[i])
	for _, m := range t.metrics {
		s += fmt.Sprintf("  %v %.4f", m, h.TrainMetrics[m.String()][i])
	}
	if len(h.ValLoss) > i {
		s += fmt.Sprintf("  validation loss %.5g", h.ValLoss[i])
		for _, m := range t.metrics {
			s += fmt.Sprintf("  %v %.4f", m, h.ValMetrics[m.String()][i])
		}
	}
	return s + fmt.Sprintf("  rate %.3g  %v", h.LearningRate[i], h.EpochTimes[i].Round(time.Millisecond))
}
