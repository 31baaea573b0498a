package nn

// Training that goes on where a device fails.

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/tensor"
)

// Train trains on all devices of a Runner that were named for it, as a group with these options, and returns the
// history. Config.Checkpoint is required: it has the model at the end ([Model.Load]), and is where training goes on.
// build makes the network and the data on the scope of a member, from data of the host, in the same way each time; one
// of each member is used until that attempt is over.
//
// Where a device fails or is lost, training goes on from the last checkpoint without it, on fewer members, then on one,
// and last on the CPU, as [cluster.Runner.RunGroup] says, if the session's policy allows that; with "require" the error
// is returned. What was trained since the checkpoint is trained again from there, so that no step is in the result
// twice; Log, Progress and OnEpoch tell of these epochs again. The result is that of a training which was not
// disturbed, but for the rounding of other members. A training whose file is there at the beginning goes on from it,
// too, as after [Trainer.Resume]; one that is over only returns the history.
//
// Config.Weights are of the devices that were named for the Runner, in their order: those that are left share each
// batch in proportion, or evenly where all of them have the weight 0. MixedPrecision Auto is what it stands for on the
// first devices. A context that is done ends the call, without a checkpoint of its own.
func Train(ctx context.Context, r *cluster.Runner, o cluster.Options, c Config,
	build func(ctx context.Context, s *tensor.Scope) (*Model, Data, error)) (*History, error) {
	switch {
	case build == nil:
		return nil, fmt.Errorf("%w: no function that builds the network", ErrConfig)
	case c.Checkpoint == "":
		return nil, fmt.Errorf("%w: a training that survives a device needs a Checkpoint", ErrConfig)
	}
	named := r.Named()
	if c.Weights != nil && len(c.Weights) != len(named) {
		return nil, fmt.Errorf("%w: Weights is %v; of the devices %v each has to have one", ErrConfig, c.Weights, named)
	}
	var history *History
	err := r.RunGroup(ctx, "train", o, func(ctx context.Context, g *cluster.Group) error {
		mode, c := &c.MixedPrecision, c
		c.Weights = weighted(g, named, c.Weights)
		return g.Do(ctx, func(ctx context.Context, m *cluster.Member) (err error) {
			s := tensor.NewMemberScope(m)
			defer func() { err = errors.Join(err, s.Close()) }()
			model, data, err := build(ctx, s)
			if err != nil {
				return err
			}
			t, err := NewTrainer(model, c)
			if err != nil {
				return err
			}
			if m.Rank() == 0 { // also where the device is lost before Fit returns
				*mode = t.MixedPrecision()
			}
			if err := t.resumeIfThere(ctx); err != nil {
				return err
			}
			done, err := t.Fit(ctx, data)
			if m.Rank() == 0 && done != nil {
				history = done
			}
			return err
		})
	})
	return history, err
}

// weighted returns the weights of the members of a group among those of the named devices, or nil where one has none,
// or none computes anything.
func weighted(g *cluster.Group, named []string, weights []float64) (list []float64) {
	for _, m := range g.Members() {
		i := slices.Index(named, m.Device().String())
		if i < 0 || weights == nil {
			return nil
		}
		list = append(list, weights[i])
	}
	if slices.Max(list) == 0 {
		return nil
	}
	return list
}

// resumeIfThere resumes the configuration's checkpoint, if there is one.
func (t *Trainer) resumeIfThere(ctx context.Context) error {
	if _, err := os.Stat(t.config.Checkpoint); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return t.Resume(ctx, t.config.Checkpoint)
}
