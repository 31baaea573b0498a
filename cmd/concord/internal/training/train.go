// Package training has the commands about networks: train, eval, predict and plot.
package training

// concord train and concord eval: networks that learn from images, arrays or texts.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/files"
	"github.com/concord-compute/concord/cmd/concord/internal/picture"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/nn"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/tensor"
)

// flags are the flags of train, eval and predict.
type flags struct {
	data, labels, model, device string
	classes, epochs             int
	batch, precision            string
	rate                        float64
	seed                        uint64
	checkpoint                  string
	resume                      bool
	plot                        string
	devices                     string          // that train together, or ""
	members                     int             // of one device
	mpi                         bool            // this process is one of many that train together
	member                      *cluster.Member // of these, nil if there is one device
	weights                     []float64       // of the devices, nil if they are alike

	given func(flag string) bool // reports whether the command line has it
}

// report is the document of train, and of eval without a history.
type report struct {
	Device     string `json:"device"`
	Members    int    `json:"members,omitempty"` // of a group that has trained
	Model      string `json:"model"`
	Parameters int    `json:"parameters"`
	Examples   int    `json:"examples"`
	Batch      int    `json:"batch"`
	Precision  string `json:"precision,omitempty"` // of products in training
	// of the examples that the network has not learned from; of eval, of all
	Loss       app.Number  `json:"loss"`
	Accuracy   app.Number  `json:"accuracy"`
	Perplexity app.Number  `json:"perplexity,omitzero"` // of a text: e to the power of the loss
	History    *nn.History `json:"history,omitempty"`
}

// networkFlags are those of all commands that compute a network.
func networkFlags(cmd *cobra.Command, l *flags) {
	cmd.Flags().StringVar(&l.data, "data", "mnist", "mnist, the 10,000 images in this program, a directory with files "+
		"of MNIST's format, FILE.npy, or a text")
	cmd.Flags().StringVar(&l.model, "model", "mlp", "the network: "+modelNames())
	cmd.Flags().IntVar(&l.classes, "classes", 10, "how many classes there are, if --model is a name; a text has 256, "+
		"the bytes")
	cmd.Flags().StringVar(&l.device, "device", "auto", "the device that computes")
	cmd.Flags().StringVar(&l.batch, "batch", "", "examples in a batch, or for training auto: by the device's free "+
		"memory and the number of examples; default 128, of a text 16")
	l.given = cmd.Flags().Changed
}

func labelsFlag(cmd *cobra.Command, l *flags) {
	cmd.Flags().StringVar(&l.labels, "labels", "", "the labels, FILE.npy of integers, if --data is FILE.npy")
}

// aboutModels is the part of the descriptions of commands that says which networks there are.
const aboutModels = `The networks of --model: mlp has dense layers of 512, 256 and the classes; cnn has two
convolutions, a pool and two dense layers; lstm and transformer go through the rows of an image, or
through a text, byte by byte. FILE.json describes another one, as a list of layers with their fields:
  [{"layer": "scale", "factor": 0.0039}, {"layer": "flatten"}, {"layer": "dense", "out": 64, "act": "relu"},
   {"layer": "dense", "out": 10}]
A name or a field that does not exist is refused with a list of those that do.`

// Train returns the command train.
func Train(a *app.App) *cobra.Command {
	var l flags
	cmd := &cobra.Command{
		Use:   "train",
		Short: "Train a network on images, arrays or a text",
		Long: `Train trains a network with Adam and cross entropy: to read images of digits, to tell classes of
arrays, or to continue a text. The last fifth of the examples is not learned from: accuracy and
perplexity are those of it.

` + aboutModels + `

With --checkpoint the network and all that training needs to go on are written to a safetensors file after
each epoch, and after an interrupt (ctrl-C), but not then where members divide the network. With
--resume training goes on from that file, to the same parameters, bit for bit, as if it had not been
interrupted. A directory of --data has the files train-images-idx3-ubyte.gz and
train-labels-idx1-ubyte.gz, or those with t10k in front, as MNIST publishes them. In FILE.npy
examples lie along the first dimension, and --labels names the integers that belong to them. Any other file is a text.

With --devices several devices train together: each computes a part of every batch, and has all data. The result is
that of one device with the same batches, but for rounding. Each gets as much of a batch, unless a weight follows its
name: with cuda:0=3,cuda:1 the first computes three of four examples. --members does the same with one device, for
trials.
With --mpi the processes that mpirun has started train together, on one machine or many, each with the device of
--device. The first one prints and writes, in directories that all have; all read --data, and --checkpoint to
resume.`,
		Example: `  concord train --epochs 3
  concord train --model cnn --device cpu:0 --epochs 2 --checkpoint digits.safetensors --plot digits.svg
  concord train --model cnn --device cpu:0 --epochs 4 --checkpoint digits.safetensors --resume
  concord train --device cuda:0 --precision auto --batch auto
  concord train --devices cuda:0,cuda:1 --batch 1024
  mpirun -np 4 concord train --mpi --device cuda:0 --batch 1024
  concord train --model transformer --data LICENSE --epochs 30 --checkpoint text.safetensors
  concord train --model network.json --data x.npy --labels y.npy`,
		Args: cobra.ExactArgs(0),
	}
	networkFlags(cmd, &l)
	labelsFlag(cmd, &l)
	cmd.Flags().IntVar(&l.epochs, "epochs", 5, "how often to go through the examples")
	cmd.Flags().Float64Var(&l.rate, "rate", 0.001, "the learning rate")
	cmd.Flags().Uint64Var(&l.seed, "seed", 1, "the seed of the first parameters and of the order of the examples")
	cmd.Flags().StringVar(&l.checkpoint, "checkpoint", "", "the file to write after each epoch")
	cmd.Flags().BoolVar(&l.resume, "resume", false, "go on from the file of --checkpoint")
	cmd.Flags().StringVar(&l.precision, "precision", "f32", "of operands of products: f32, f16, bf16, or auto: the "+
		"fastest that the device has")
	cmd.Flags().StringVar(&l.devices, "devices", "", "train on these devices together, in place of --device: names with "+
		"commas between them; cuda:* is all of a backend, and cuda:0=3 one that gets three times as much as others")
	cmd.Flags().IntVar(&l.members, "members", 0, "divide the device into so many members that train together; 0: none")
	cmd.Flags().BoolVar(&l.mpi, "mpi", false, "train together with the other processes of an MPI job")
	cmd.Flags().StringVar(&l.plot, "plot", "", "draw loss and accuracy of the epochs into this file: .svg or .png")
	return a.RunnableJSON(cmd, func(ctx context.Context, _ []string) error { return train(ctx, a, &l) })
}

// Eval returns the command eval.
func Eval(a *app.App) *cobra.Command {
	var l flags
	cmd := &cobra.Command{
		Use:   "eval FILE",
		Short: "Report how well a trained network knows examples",
		Long: `Eval reads a network from a file of train, and reports its loss and its accuracy on all examples of --data.
With the data of train that includes those it has learned from, so that the accuracy is higher than that of train.
--model, --data and --classes have to name the same network as with train.`,
		Example: `  concord eval digits.safetensors
  concord eval digits.safetensors --model cnn --data ~/mnist --json
  concord eval text.safetensors --model transformer --data LICENSE`,
		Args: cobra.ExactArgs(1),
	}
	networkFlags(cmd, &l)
	labelsFlag(cmd, &l)
	return a.RunnableJSON(cmd, func(ctx context.Context, args []string) error { return eval(ctx, a, &l, args[0]) })
}

// batchSize returns --batch, or 0 for auto.
func (l *flags) batchSize(text bool) (int, error) {
	switch {
	case l.batch == "auto":
		return 0, nil
	case l.batch == "" && text:
		return 16, nil
	case l.batch == "":
		return 128, nil
	}
	n, err := strconv.Atoi(l.batch)
	if err != nil || n < 1 {
		return 0, app.Usagef("--batch %s: it has to be auto, or a number from 1 on", l.batch)
	}
	return n, nil
}

// mode returns --precision.
func (l *flags) mode() (nn.Mode, error) {
	switch m := nn.Mode(l.precision); m {
	case "f32":
		return nn.Full, nil
	case nn.F16, nn.BF16, nn.Auto:
		return m, nil
	}
	return "", app.Usagef("--precision %s: there are f32, f16, bf16 and auto", l.precision)
}

// network is a network on an open device.
type network struct {
	dev   *runtime.Device
	scope *tensor.Scope
	model *nn.Model
}

// openNetwork opens the device, gets data there, and builds the network. On an error nothing stays open.
func openNetwork(ctx context.Context, a *app.App, l *flags,
	data func(*tensor.Scope) (dataset, error)) (st *network, d dataset, err error) {
	if st, err = openScope(ctx, a, l); err != nil {
		return nil, d, err
	}
	var layers []nn.Layer
	if d, err = data(st.scope); err == nil {
		layers, err = l.layers(ctx, d.In, d.text)
	}
	if err == nil {
		st.model, err = nn.Build(ctx, st.scope, l.seed, d.In, layers...)
		if err != nil && l.described() {
			err = fmt.Errorf("%s: %w", l.model, err)
		}
	}
	if err != nil {
		return nil, d, errors.Join(asUsage(err), st.close())
	}
	return st, d, nil
}

// openScope opens the device, or takes that of the member.
func openScope(ctx context.Context, a *app.App, l *flags) (*network, error) {
	if m := l.member; m != nil {
		return &network{dev: m.Device(), scope: tensor.NewMemberScope(m)}, nil
	}
	if _, err := a.Open(app.Exactly); err != nil {
		return nil, err
	}
	dev, err := a.Session.Open(ctx, l.device)
	if err != nil {
		return nil, err
	}
	return &network{dev: dev, scope: tensor.NewScope(dev)}, nil
}

// close closes the network. A trainer ends with its scope.
func (st *network) close() error {
	err := st.scope.Close()
	if st.scope.Member() != nil { // the group's device is open for all members
		return err
	}
	return errors.Join(err, st.dev.Close())
}

// asUsage makes a wrong configuration a mistake of usage.
func asUsage(err error) error {
	if errors.Is(err, nn.ErrConfig) {
		return app.UsageError(err)
	}
	return err
}

// trainingRun is a network with its data and a trainer.
type trainingRun struct {
	*network
	dataset
	*nn.Trainer
	batch int
}

// newRun opens the device, reads the data and builds the network.
func newRun(ctx context.Context, a *app.App, l *flags, c nn.Config) (*trainingRun, error) {
	st, d, err := openNetwork(ctx, a, l, func(s *tensor.Scope) (dataset, error) { return l.dataset(ctx, s, true) })
	if err != nil {
		return nil, err
	}
	t := &trainingRun{network: st, dataset: d}
	if d.text {
		c.Split, c.Validation = new(0.0), d.heldOut
	}
	if c.BatchSize, err = l.batchSize(d.text); err == nil && c.BatchSize == 0 {
		c.BatchSize, err = nn.RecommendedBatch(ctx, st.model, c, t.trainingSet())
	}
	if err == nil {
		t.batch = c.BatchSize
		t.Trainer, err = nn.NewTrainer(st.model, c)
	}
	if err != nil {
		return nil, errors.Join(asUsage(err), st.close())
	}
	return t, nil
}

// trainingSet returns what the network learns from, with the last fifth where that is not apart.
func (t *trainingRun) trainingSet() nn.Data {
	if t.text {
		return t.training
	}
	return t.Data
}

// products names the precision of products in training.
func (t *trainingRun) products() string {
	if p := t.MixedPrecision(); p != nn.Full {
		return string(p)
	}
	if t.In.Type == tensor.F64 {
		return "f64"
	}
	return "f32"
}

// document begins the document of a network.
func (t *trainingRun) document(l *flags, loss, accuracy float64) report {
	d := report{Device: t.where(l), Model: l.model, Parameters: t.History().ParameterCount,
		Examples: t.X.Dim(0), Batch: t.batch, Loss: app.Number(loss), Accuracy: app.Number(accuracy)}
	if l.member != nil {
		d.Members = l.member.Size()
	}
	if t.text {
		d.Perplexity = app.Number(math.Exp(loss))
	}
	return d
}

func train(ctx context.Context, a *app.App, l *flags) (err error) {
	if l.resume && l.checkpoint == "" {
		return app.Usagef("--resume needs the file of --checkpoint")
	}
	if err := picture.Check("--plot", l.plot); err != nil {
		return err
	}
	switch {
	case l.checkpoint != "" && !files.CanReadAgain(l.checkpoint):
		return app.Usagef("--checkpoint %s: it has to be a file, which --resume reads", l.checkpoint)
	case l.checkpoint != "" && l.plot != "" && files.SameFile(l.checkpoint, l.plot):
		return app.Usagef("--checkpoint and --plot name one file, %s", l.plot)
	}
	if err := a.Claim(files.Picture, l.plot); err != nil {
		return err
	}
	if !l.resume { // which reads the file, and says what is wrong with it
		if err := a.Claim(files.Checkpoint, l.checkpoint); err != nil {
			return err
		}
	}
	switch {
	case l.epochs < 1:
		return app.Usagef("--epochs %d: it has to be 1 or more", l.epochs)
	case !(l.rate > 0) || math.IsInf(l.rate, 1):
		return app.Usagef("--rate %v: it has to be positive and finite", l.rate)
	}
	mode, err := l.mode()
	if err != nil {
		return err
	}
	c := nn.Config{Loss: nn.CrossEntropy{}, Epochs: l.epochs, LearningRate: l.rate, Seed: l.seed, Patience: new(0),
		MixedPrecision: mode,
		Checkpoint:     l.checkpoint}
	// A group has one error for all members, to which what became of the checkpoint is added here.
	var end interrupted
	err = l.everyMember(ctx, a, func(ctx context.Context, l *flags) error { return fit(ctx, a, l, c, &end) })
	switch {
	case end.earlier:
		return fmt.Errorf("%w; %s has what was learned up to the last epoch that was over, as members divide what was "+
			"learned since", err, l.checkpoint)
	case !end.saved:
		return errors.Join(err, end.err)
	}
	return fmt.Errorf("%w; %s has what was learned, from which the same command with --resume goes on", err, l.checkpoint)
}

// interrupted says what became of the checkpoint that is written after an interrupt.
type interrupted struct {
	saved   bool
	earlier bool // none can be written, and there is that of an epoch
	err     error
}

// fit trains on one device, or as a member, of which the first one prints, writes, and fills end.
func fit(ctx context.Context, a *app.App, l *flags, c nn.Config, end *interrupted) (err error) {
	silent := l.member != nil && l.member.Rank() > 0
	c.Weights = l.weights
	if !silent {
		bar := a.Progress(0)
		defer bar.End()
		c.Progress = func(p nn.Progress) {
			bar.At(p.Examples, p.Of)
			bar.Doing(fmt.Sprintf("epoch %d, loss %.4f, %.0f examples/s", p.Epoch+1, p.Loss, p.ExamplesPerSecond))
		}
		if !a.JSON {
			c.Log = io.Writer(a.Stdout)
		}
	}
	t, err := newRun(ctx, a, l, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	if l.resume {
		if err := t.Resume(ctx, l.checkpoint); err != nil {
			return needsCheckpoint(err)
		}
	}
	if !a.JSON && !silent {
		a.Printf("%s on %v, products of %s, batches of %d\n%s", l.model, t.where(l), t.products(), t.batch,
			t.model.Summary())
	}
	h, err := t.Fit(ctx, t.trainingSet())
	// With several processes another one may have got the interrupt first.
	if err != nil && (ctx.Err() != nil || l.mpi && errors.Is(err, context.Canceled)) && l.checkpoint != "" {
		switch {
		case silent:
		case t.SavesTogether(): // which takes members that have failed
			end.earlier = t.History().Epochs() > 0
		default: // what was learned since the last epoch is not lost
			end.err = t.Save(context.WithoutCancel(ctx), l.checkpoint)
			end.saved = end.err == nil
		}
		return err
	}
	if err != nil {
		return l.hintClasses(t, err)
	}
	if silent {
		return nil
	}
	loss, accuracy := math.NaN(), math.NaN()
	last := h.Epochs() - 1
	validated := last >= 0 && len(h.ValLoss) > last
	if validated {
		loss, accuracy = h.ValLoss[last], h.ValMetrics["accuracy"][last]
	}
	d := t.document(l, loss, accuracy)
	d.History, d.Precision = h, t.products()
	if l.plot != "" {
		if err := plotHistory(ctx, a, h, l.model+" on "+d.Device, l.plot); err != nil {
			return err
		}
	}
	switch took := h.TotalTime.Round(10 * time.Millisecond); {
	case a.JSON:
		return a.Document(d)
	case !validated:
		a.Printf("too few %s to keep some for a test: %d; all of them were learned from, for %s\n", t.noun,
			d.Examples, ui.Quantity(last+1, "epoch"))
	case t.text:
		a.Printf("perplexity %.2f, and %.2f %% of the next bytes are right, of text that it has not seen, "+
			"after %s in %v\n", d.Perplexity, 100*d.Accuracy, ui.Quantity(last+1, "epoch"), took)
	default:
		a.Printf("%.2f %% of the %s that it has not seen are read rightly, after %s in %v\n", 100*d.Accuracy,
			t.noun, ui.Quantity(last+1, "epoch"), took)
	}
	return nil
}

// hintClasses adds to the error of labels that are not of the network's classes which flag says how many there are.
func (l *flags) hintClasses(t *trainingRun, err error) error {
	if !errors.Is(err, nn.ErrData) || t.text || l.described() {
		return err
	}
	return fmt.Errorf("%w; --classes says how many classes there are", err)
}

func eval(ctx context.Context, a *app.App, l *flags, file string) (err error) {
	t, err := newRun(ctx, a, l, nn.Config{Loss: nn.CrossEntropy{}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	if err := l.load(ctx, t.model, file); err != nil {
		return err
	}
	loss, metrics, err := t.Evaluate(ctx, t.Data)
	if err != nil {
		return l.hintClasses(t, err)
	}
	d := t.document(l, loss, metrics["accuracy"])
	switch {
	case a.JSON:
		return a.Document(d)
	case t.text:
		a.Printf("%s on %s: perplexity %.2f, and %.2f %% of the next bytes are right\n", d.Model, d.Device,
			d.Perplexity, 100*d.Accuracy)
	default:
		a.Printf("%s on %s: loss %.4f, %.2f %% of %d %s are read rightly\n", d.Model, d.Device, d.Loss,
			100*d.Accuracy, d.Examples, t.noun)
	}
	return nil
}
