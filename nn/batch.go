package nn

// The size of batches.

import (
	"context"

	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/tensor"
)

// The limits of RecommendedBatch: the largest batch, and the number of steps that an epoch should have.
const (
	largestBatch  = 1024
	stepsPerEpoch = 32
)

// RecommendedBatch returns how many examples a batch of a training should have: the largest power of two for which a
// step takes no more than half of the device's free memory. It is at most 1024, and a 32nd of the examples, so that an
// epoch has 32 steps or more. It is 1 or more. What a step takes is planned for two small batches, without computing
// one, and for others follows from those. c.BatchSize does not count. On a device that does not know its free memory,
// it is the total without what this program has there; where that is unknown too, it is no limit. In a group all
// members call it, and get the least of theirs; members of one device in this process divide its memory evenly. What
// other processes take of a device is not known.
func RecommendedBatch(ctx context.Context, m *Model, c Config, d Data) (int, error) {
	n, err := recommended(ctx, m, c, d)
	if err != nil || m.scope.Size() == 1 {
		return n, err
	}
	work := m.scope.Scope()
	defer work.Close()
	least, err := tensor.Number(ctx, tensor.From(work, []int64{int64(n)}).AllReduce(cluster.Min))
	return int(least), err
}

// recommended is RecommendedBatch of this member alone.
func recommended(ctx context.Context, m *Model, c Config, d Data) (int, error) {
	c.BatchSize = 1
	t, err := NewTrainer(m, c)
	if err != nil {
		return 0, err
	}
	defer t.Close()
	train, _, err := t.divided(d)
	if err != nil {
		return 0, err
	}
	limit := 1
	for limit < largestBatch && 2*limit*stepsPerEpoch <= train.X.Dim(0) {
		limit *= 2
	}
	if limit == 1 {
		return 1, nil
	}
	if err := t.begin(ctx, train, train.narrow(0, 0)); err != nil {
		return 0, err
	}
	info := m.scope.Device().Info()
	free := info.FreeMemory
	if !info.FreeMemoryKnown {
		free = info.TotalMemory - m.scope.Device().Stats().Live
		if info.TotalMemory == 0 {
			return limit, nil
		}
	}
	if member := m.scope.Member(); member != nil {
		same := 0
		for _, other := range member.Group().Members() {
			if other.Device().Stream().RunsOn(member.Device()) {
				same++
			}
		}
		free /= int64(same)
	}
	pair := 2 * m.scope.Size() // so that of both batches that are planned members have as many rows
	large := max(min(limit, 32)/pair*pair, pair)
	one, err := t.stepMemory(ctx, train, large/2)
	if err != nil {
		return 0, err
	}
	two, err := t.stepMemory(ctx, train, large)
	if err != nil {
		return 0, err
	}
	slope := func(of func(tensor.Memory) int64, n int) int64 {
		return of(two) + (of(two)-of(one))/int64(large/2)*int64(n-large)
	}
	all := func(b tensor.Memory) int64 { return b.Planned + 2*b.Results + b.Scratch }
	planned := func(b tensor.Memory) int64 { return b.Planned } // which is one allocation
	for n := limit; n > 1; n /= 2 {
		if slope(all, n) <= free/2 && (info.MaxAllocation == 0 || slope(planned, n) <= info.MaxAllocation) {
			return n, nil
		}
	}
	return 1, nil
}

// stepMemory returns what a step with a batch of n examples takes beside what it changes.
func (t *Trainer) stepMemory(ctx context.Context, d Data, n int) (tensor.Memory, error) {
	work := t.scope.Scope()
	defer work.Close()
	step := t.step
	if t.config.Accumulate > 1 {
		step = t.part
	}
	args := append(t.list(), tensor.Zeros(work, t.model.typ, 1), tensor.Zeros(work, tensor.U64, 1))
	p, err := step.Plan(ctx, append(args, d.args(tensor.Iota(work, tensor.U32, n))...)...)
	if err != nil {
		return tensor.Memory{}, t.failed(err)
	}
	return p.Memory, nil
}
