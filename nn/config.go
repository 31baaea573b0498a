package nn

// What a training is told: data, configuration, and the history that it returns.

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/tensor"
)

// Data are examples, along the first dimension of all tensors, on the device of the model.
type Data struct {
	X *tensor.Tensor // of the type and shape of the model's Spec, after the first dimension
	// Y are the targets. Of the losses for classes these are labels, or a probability for each class in the shape of
	// the results. Labels are whole numbers from 0 on of an integer type, whose shape is that of the results without
	// the last dimension. Of all other losses they are numbers in the shape of the results.
	Y       *tensor.Tensor
	Lengths *tensor.Tensor // [Pass.Lengths], or nil
}

// Config says how to train. The zero value is the usual configuration: at most 100 epochs of batches of 32 in random
// order, the loss MSE, and Adam with a rate of 0.001. A fifth of the data is for validation, and training ends 10
// epochs after the last improvement. A number that makes no sense is refused.
type Config struct {
	Epochs int // 0 is 100
	// BatchSize is of examples, in a group of those of all members; the last batch of an epoch may have fewer. 0 is
	// 32; see RecommendedBatch
	BatchSize int
	// Weights are of the members of a group, by rank: each computes rows of every batch in proportion, and one with the
	// weight 0 none. nil is the same for all. They count in groups alone, and may change when a training is resumed;
	// members that divide a network have none
	Weights []float64
	// Accumulate is of batches whose gradients are added for one step, which equals that of one batch with all
	// their examples; 0 is 1
	Accumulate int

	Loss         Loss      // nil is MSE
	Optimizer    Optimizer // nil is Adam
	LearningRate float64   // positive; 0 is 0.001
	Schedule     Schedule  // of the learning rate; nil is none
	ClipNorm     float64   // the largest norm of all gradients together; 0 is no limit
	ClipValue    float64   // the largest magnitude of an element of gradients; 0 is no limit
	// L1 is the factor of a penalty L1·Σ|w| on all parameters, which the losses of the history do not contain; 0 is
	// none
	L1          float64
	L2          float64 // the same with L2·Σw²; 0 is none
	WeightDecay float64 // WeightDecay·w is added to gradients, after clipping; 0 is none
	// DecoupledWeightDecay decays: LearningRate·DecoupledWeightDecay·w is subtracted from parameters, beside the
	// optimizer's step; 0 is none
	DecoupledWeightDecay float64

	// Compression has members of a group exchange the largest entries of their gradients alone, and add the others to
	// those of later steps; nil is none. Members that divide a network exchange no gradients
	Compression *TopK

	MixedPrecision Mode // of products, in a group the same at all members; "" is Full. See [Trainer.MixedPrecision]

	Split      *float64 // the part of the data, the last round(n·Split) examples, that is for validation; nil is 0.2
	Validation *Data    // data for validation, in place of a Split; nil is none
	InOrder    bool     // the examples of each epoch come as they are in the data; false is in random order
	Seed       uint64   // of all that is random; 0 is a seed like others

	Metrics []Metric // nil is Accuracy where the loss is one of classes, and none otherwise
	// Patience is of epochs without an improvement of the loss, of validation if there is one, after which
	// training ends with the best values; 0 is to go on, nil is 10
	Patience *int
	MinDelta *float64      // the least improvement; nil is 1e-4
	MaxTime  time.Duration // after which no epoch begins, by the clock of rank 0 in a group; 0 is no limit

	// Checkpoint is a file, which is written as training goes on, in a group by rank 0, for which others wait as long
	// as the Timeout of [cluster.Options]; "" is none
	Checkpoint      string
	CheckpointEvery int // epochs; 0 is 1

	Log      io.Writer      // gets one line for each epoch, in a group at rank 0; nil is none
	Progress func(Progress) // is called now and then within epochs; nil is none
	// OnEpoch is called after each epoch; an error ends training and is returned by Fit; nil is none
	OnEpoch func(*History) error
}

// filled returns the configuration with the defaults in place of what is not set.
func (c Config) filled() Config {
	c.Epochs, c.BatchSize, c.Accumulate, c.CheckpointEvery = or(c.Epochs, 100), or(c.BatchSize, 32), or(c.Accumulate, 1),
		or(c.CheckpointEvery, 1)
	c.LearningRate = or(c.LearningRate, 0.001)
	if c.Loss == nil {
		c.Loss = MSE{}
	}
	if c.Optimizer == nil {
		c.Optimizer = Adam{}
	}
	c.Split, c.Patience, c.MinDelta = new(given(c.Split, 0.2)), new(given(c.Patience, 10)), new(given(c.MinDelta, 1e-4))
	return c
}

// Progress says how far an epoch is.
type Progress struct {
	Epoch, Epochs     int // the first epoch is 0
	Examples, Of      int // in this epoch
	Loss              float64
	ExamplesPerSecond float64
}

// History says how a training went, in one element of each list for each epoch.
type History struct {
	TrainLoss, ValLoss, LearningRate []float64
	TrainMetrics, ValMetrics         map[string][]float64
	EpochTimes                       []time.Duration
	Skipped                          []int // steps that an infinite gradient of a loss scaled for F16 ended
	TotalTime                        time.Duration
	ParameterCount                   int
	// of the smallest loss so far, of validation if there is one; -1 before the first epoch
	BestEpoch   int
	BestValLoss float64 // that loss
	Stopped     string  // why training ended before its last epoch, or ""
}

// Epochs returns how many epochs are over.
func (h *History) Epochs() int { return len(h.TrainLoss) }

// watched returns the losses that early stopping and schedules watch.
func (h *History) watched() []float64 {
	if len(h.ValLoss) > 0 {
		return h.ValLoss
	}
	return h.TrainLoss
}

// check returns the first setting of a filled configuration that makes no sense.
func (c *Config) check() error {
	const notNegative = "finite and not negative"
	finite := func(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }
	for _, s := range []struct {
		name string
		ok   bool
		is   any
		want string
	}{
		{"Epochs", c.Epochs >= 1, c.Epochs, "1 or more"}, {"BatchSize", c.BatchSize >= 1, c.BatchSize, "1 or more"},
		{"Accumulate", c.Accumulate >= 1, c.Accumulate, "1 or more"},
		{"LearningRate", c.LearningRate > 0 && finite(c.LearningRate), c.LearningRate, "positive and finite"},
		{"ClipNorm", finite(c.ClipNorm), c.ClipNorm, notNegative},
		{"ClipValue", finite(c.ClipValue), c.ClipValue, notNegative},
		{"L1", finite(c.L1), c.L1, notNegative}, {"L2", finite(c.L2), c.L2, notNegative},
		{"WeightDecay", finite(c.WeightDecay), c.WeightDecay, notNegative},
		{"DecoupledWeightDecay", finite(c.DecoupledWeightDecay), c.DecoupledWeightDecay, notNegative},
		{"Split", *c.Split >= 0 && *c.Split < 1, *c.Split, "a fraction of the examples, at least 0 and less than 1"},
		{"Patience", *c.Patience >= 0, *c.Patience, notNegative}, {"MinDelta", finite(*c.MinDelta), *c.MinDelta, notNegative},
		{"MaxTime", c.MaxTime >= 0, c.MaxTime, notNegative}, {"CheckpointEvery", c.CheckpointEvery >= 1, c.CheckpointEvery,
			"1 or more"},
	} {
		if !s.ok {
			return fmt.Errorf("%w: %s is %v; it has to be %s", ErrConfig, s.name, s.is, s.want)
		}
	}
	if modes := []Mode{Full, F16, BF16, Auto}; !slices.Contains(modes, c.MixedPrecision) {
		return fmt.Errorf("%w: MixedPrecision is %q; it is one of %q", ErrConfig, c.MixedPrecision, modes)
	}
	if c.Compression != nil && !finite(c.Compression.Ratio) {
		return fmt.Errorf("%w: Compression has the ratio %v; it has to be %s", ErrConfig, c.Compression.Ratio, notNegative)
	}
	if c.Weights != nil {
		if _, err := cluster.Weighted(1, c.Weights); err != nil {
			return fmt.Errorf("%w: Weights is %v; each has to be positive or 0, and not all 0", ErrConfig, c.Weights)
		}
	}
	if c.Schedule != nil {
		if err := c.Schedule.Check(); err != nil {
			return err
		}
	}
	seen := map[string]bool{"loss": true}
	for _, m := range c.Metrics {
		if m == nil || seen[m.String()] {
			return fmt.Errorf("%w: metric %v twice, or nil", ErrConfig, m)
		}
		seen[m.String()] = true
	}
	return checkOptimizer(c.Optimizer)
}

// metrics returns the metrics of the configuration, or the usual ones.
func (c *Config) metrics() []Metric {
	if c.Metrics != nil {
		return c.Metrics
	}
	switch c.Loss.(type) {
	case CrossEntropy, CategoricalCrossEntropy, SigmoidCrossEntropy, BinaryCrossEntropy:
		return []Metric{Accuracy{}}
	}
	return nil
}

// rate returns the learning rate after epochs and steps.
func (c *Config) rate(h *History, steps int) float64 {
	switch {
	case c.Schedule == nil:
		return c.LearningRate
	case c.Schedule.PerStep():
		return c.Schedule.Rate(c.LearningRate, steps, h.watched())
	}
	return c.Schedule.Rate(c.LearningRate, h.Epochs(), h.watched())
}
