// Package nn has networks of layers, and trains them on any device: losses, optimizers, schedules, metrics,
// early stopping and checkpoints, by compiled functions of package tensor.
//
// # Basics
//
//	s := tensor.NewScope(dev)
//	defer s.Close()
//	m, err := nn.Build(ctx, s, 1, nn.Spec{Type: tensor.F32, Shape: []int{784}},
//		nn.Dense{Out: 512, Act: nn.ReLU}, nn.Dense{Out: 256, Act: nn.ReLU}, nn.Dense{Out: 10})
//	c := nn.Config{Loss: nn.CrossEntropy{}, BatchSize: 128, Epochs: 10}
//	t, err := nn.NewTrainer(m, c)
//	history, err := t.Fit(ctx, nn.Data{X: images, Y: labels})
//	logits, err := m.Predict(ctx, images, nil)
//
// # Layers
//
// A layer is plain data with two methods, of which one names it. [Layer.Apply] says what it computes, asks the [Pass]
// for its parameters where it needs them ([Pass.Param]), and gives what it consists of a name ([Pass.Layer]). [Build]
// calls it once to learn which parameters there are; shapes follow from the operations, and a mistake in them is an
// error of Build. One layer value may be part of many networks, or several times of one: its parameters belong to its
// name in the network, such as "0.weight". Your own layers are layers like all others. [LayersFromJSON] reads a network
// that JSON describes.
//
// # Settings
//
// The zero value of a setting stands for the default that its documentation names. Where zero is also a setting
// of its own, the field is a pointer: Adam{} has Beta1 = 0.9, and Adam{Beta1: new(0.0)} has 0. A field without
// a sensible default, such as [Dense.Out], is required.
//
// # One buffer
//
// All parameters of a network are windows of one tensor, its gradients are computed into one, and so is each
// state of the optimizer. A step of an optimizer is an expression over these: one kernel, one norm, one copy of
// each for a checkpoint. A whole training step is one compiled function, whose results are the arguments of the
// next call; the data stays on the device, and a step reads its examples by their numbers.
//
// # Mixed precision
//
// [Config.MixedPrecision] lets products and convolutions of a training read operands of half or bfloat16;
// [Auto] chooses by what the device has. Parameters, sums, normalization, losses and the optimizer stay as they
// are, and so do evaluation and [Model.Predict].
//
// # Determinism
//
// What is random comes from the seeds and from counters: the first parameters from [Build]'s seed, the order of
// examples from the trainer's and the epoch, dropout from that and the step. So the same seeds on the same
// device give the same bytes, and a training that was interrupted and goes on from a checkpoint has the
// parameters of one that was not, bit for bit.
//
// # Groups
//
// On scopes of a group's members ([tensor.NewMemberScope]) a training is divided among them (data parallel). Each
// member builds the same network, makes a trainer with the same configuration and calls Fit with the same data. The
// first parameters are those of rank 0. Each member computes its rows of every batch, as many as the others' or one
// more or less, and none where there are fewer rows than members. Gradients, losses, metrics and running statistics
// are added up with the rows as weights, so that all make the same step and the same decisions. Gradients are
// exchanged in buckets of 25 MiB, from the last layers on, while those of earlier layers are computed.
//
// The result is that of one device with the same batches, but for rounding, and so are the masks of [Dropout] and the
// statistics of [BatchNorm], unless it is Local. The same number of members gives the same bits. Random numbers that
// your own layers make of [Pass.Seed] are the same at all members. Layers may have collectives in training: a member
// without rows computes one with the weight 0. In evaluations they may not. Steps of second order compute all that they
// make of the gradients at every member.
//
// Fit compares configuration, shapes of data, position and all values of the members when it begins, and their values
// at the end of each epoch. Members on devices of one kind have the same bits. Others may differ by half of the type's
// bits, relative to the largest value of a kind, and then get what rank 0 has. What differs otherwise is an error that
// matches [cluster.ErrSync]. NewTrainer compares precisions: all members have the same.
//
// Rank 0 alone writes the log and checkpoints, which any number of members can resume, each of which reads the file.
// Others wait meanwhile, no longer than the Timeout of [cluster.Options]: it has to be enough for a checkpoint.
// [Config.Progress] and [Config.OnEpoch] are called at every member. An error or the end of a context at one member
// ends all members' Fit, with a [*cluster.MemberError] that names it. The group has failed then. A training goes on
// from its checkpoint, in a new group: [Train] does that by itself, on the devices of a [cluster.Runner].
//
// # Failures
//
// A step whose loss or gradient is not finite changes nothing, nor do those queued behind it, and Fit returns
// [ErrNumerical]; the trainer then has the parameters of the step before. So it does where the loss of
// validation is not finite. A context that ends stops Fit between two steps, and Fit may be called again, but not in a
// group.
package nn
