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
// name in the network, such as "0.weight". Your own layers are layers like all others. [LayersFromJSON] reads a
// network that JSON describes.
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
// more or less, or in proportion to [Config.Weights], and none where there are fewer rows than members. Gradients,
// losses, metrics and running statistics are added up with the rows as weights, so that all make the same step and the
// same decisions. Gradients are exchanged in buckets of 25 MiB, from the last layers on, while those of earlier layers
// are computed.
//
// The result is that of one device with the same batches, but for rounding, and so are the masks of [Dropout] and the
// statistics of [BatchNorm], unless it is Local. The same number of members gives the same bits. Random numbers that
// your own layers make of [Pass.Seed] are the same at all members. Layers may have collectives: a member without rows
// computes one, which does not count. Steps of second order compute all that they make of the gradients at every
// member.
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
// With [Config.Compression] members exchange only the entries of gradients with the largest magnitudes, and add the
// rest to the gradients of later steps. Training is not that of one device then. Checkpoints have what every member
// has kept: with as many members a training goes on bit for bit, and with others nothing of it is lost. All members
// call [Trainer.Save]. A gradient that is not finite at one member is [ErrNumerical], and changes nothing that was
// kept; what is no message of entries is an error that matches [cluster.ErrSync].
//
// # Large networks
//
// Where parameters do not fit one device, members of a group can divide them (tensor parallel), in training and in
// predictions: a [Dense] with Divided set to [Columns] and one with [Rows] behind it, the heads of an [Attention],
// both in a [Transformer], and the rows of an [Embedding]. Each pair takes one all-reduce forward and one backward.
// Everything else all members compute alike, for the whole batch: a network is either divided or its batches are.
// There are no groups within groups, which could do both.
//
// The result is that of one device, but for rounding. A member's part of a parameter is that of what one device would
// have, also if members cannot divide evenly ([Param] says the whole shape). [Model.Save] and [Trainer.Save], which
// all members call, write the file that one device would write, and [Model.Load] and [Trainer.Resume] read it with
// any number of members, also with layers that are not divided. Loss, metrics and decisions are rank 0's. Without a
// group the same layers are like others. Steps of second order are refused. Besides its parts a member's device needs
// memory for one whole parameter when a network is built, read or written, and rank 0's host for all of them when it
// is written. All members have the loss of the whole batch, while gradients of [tensor.Tensor.AllReduce] in layers of
// your own are those of the sum of all members' losses: as many times as large.
//
// For predictions members can also have consecutive layers each ([BuildStages], model parallel). Examples are then
// computed in parts, so that members work at the same time, and results have the bits of one device that computes the
// same parts.
//
// # Failures
//
// A step whose loss or gradient is not finite changes nothing, nor do those queued behind it, and Fit returns
// [ErrNumerical]; the trainer then has the parameters of the step before. So it does where the loss of
// validation is not finite. A context that ends stops Fit between two steps, and Fit may be called again, but not in a
// group.
package nn
