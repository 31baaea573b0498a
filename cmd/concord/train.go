package main

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

	"github.com/concord-compute/concord/nn"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/tensor"
)

// learning are the flags of train, eval and predict.
type learning struct {
	data, labels, model, device string
	classes, epochs             int
	batch, precision            string
	rate                        float64
	seed                        uint64
	checkpoint                  string
	resume                      bool
	plot                        string

	given func(flag string) bool // reports whether the command line has it
}

// trained is the document of train, and of eval without a history.
type trained struct {
	Device     string `json:"device"`
	Model      string `json:"model"`
	Parameters int    `json:"parameters"`
	Examples   int    `json:"examples"`
	Batch      int    `json:"batch"`
	Precision  string `json:"precision,omitempty"` // of products in training
	// of the examples that the network has not learned from; of eval, of all
	Loss       number      `json:"loss"`
	Accuracy   number      `json:"accuracy"`
	Perplexity number      `json:"perplexity,omitzero"` // of a text: e to the power of the loss
	History    *nn.History `json:"history,omitempty"`
}

// lessonFlags are those of all commands that compute a network.
func (a *app) lessonFlags(cmd *cobra.Command, l *learning) {
	cmd.Flags().StringVar(&l.data, "data", "mnist", "mnist, the 10,000 images in this program, a directory with files "+
		"of MNIST's format, FILE.npy, or a text")
	cmd.Flags().StringVar(&l.model, "model", "mlp", "the network: "+modelNames())
	cmd.Flags().IntVar(&l.classes, "classes", 10, "how many classes there are, if --model is a name; a text has 256, "+
		"the bytes")
	cmd.Flags().StringVar(&l.device, "device", "auto", "the device that computes")
	cmd.Flags().StringVar(&l.batch, "batch", "", "examples in a batch, or for training auto: by the device's free "+
		"memory and the number of examples; default 128, of a text 16")
	l.given = cmd.Flags().Changed
	a.jsonFlag(cmd)
}

func (a *app) labelsFlag(cmd *cobra.Command, l *learning) {
	cmd.Flags().StringVar(&l.labels, "labels", "", "the labels, FILE.npy of integers, if --data is FILE.npy")
}

// aboutModels is the part of the descriptions of commands that says which networks there are.
const aboutModels = `The networks of --model: mlp has dense layers of 512, 256 and the classes; cnn has two
convolutions, a pool and two dense layers; lstm and transformer go through the rows of an image, or
through a text, byte by byte. FILE.json describes another one, as a list of layers with their fields:
  [{"layer": "scale", "factor": 0.0039}, {"layer": "flatten"}, {"layer": "dense", "out": 64, "act": "relu"},
   {"layer": "dense", "out": 10}]
A name or a field that does not exist is refused with a list of those that do.`

func (a *app) trainCommand() *cobra.Command {
	var l learning
	cmd := &cobra.Command{
		Use:   "train",
		Short: "Train a network on images, arrays or a text",
		Long: `Train trains a network with Adam and cross entropy: to read images of digits, to tell classes of
arrays, or to continue a text. The last fifth of the examples is not learned from: accuracy and
perplexity are those of it.

` + aboutModels + `

With --checkpoint the network and all that training needs to go on are written to a safetensors file after
each epoch, and after an interrupt (ctrl-C). With --resume training goes on from that file, to the same
parameters, bit for bit, as if it had not been interrupted. A directory of --data has the files
train-images-idx3-ubyte.gz and train-labels-idx1-ubyte.gz, or those with t10k in front, as MNIST
publishes them. In FILE.npy examples lie along the first dimension, and --labels names the integers
that belong to them. Any other file is a text.`,
		Example: `  concord train --epochs 3
  concord train --model cnn --device cpu:0 --epochs 2 --checkpoint digits.safetensors --plot digits.svg
  concord train --model cnn --device cpu:0 --epochs 4 --checkpoint digits.safetensors --resume
  concord train --device cuda:0 --precision auto --batch auto
  concord train --model transformer --data LICENSE --epochs 30 --checkpoint text.safetensors
  concord train --model network.json --data x.npy --labels y.npy`,
		Args: cobra.ExactArgs(0),
	}
	a.lessonFlags(cmd, &l)
	a.labelsFlag(cmd, &l)
	cmd.Flags().IntVar(&l.epochs, "epochs", 5, "how often to go through the examples")
	cmd.Flags().Float64Var(&l.rate, "rate", 0.001, "the learning rate")
	cmd.Flags().Uint64Var(&l.seed, "seed", 1, "the seed of the first parameters and of the order of the examples")
	cmd.Flags().StringVar(&l.checkpoint, "checkpoint", "", "the file to write after each epoch")
	cmd.Flags().BoolVar(&l.resume, "resume", false, "go on from the file of --checkpoint")
	cmd.Flags().StringVar(&l.precision, "precision", "f32", "of operands of products: f32, f16, bf16, or auto: the "+
		"fastest that the device has")
	cmd.Flags().StringVar(&l.plot, "plot", "", "draw loss and accuracy of the epochs into this file: .svg or .png")
	cmd.RunE = a.do(func(ctx context.Context, _ []string) error { return a.train(ctx, &l) })
	return cmd
}

func (a *app) evalCommand() *cobra.Command {
	var l learning
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
	a.lessonFlags(cmd, &l)
	a.labelsFlag(cmd, &l)
	cmd.RunE = a.do(func(ctx context.Context, args []string) error { return a.eval(ctx, &l, args[0]) })
	return cmd
}

// batchSize returns --batch, or 0 for auto.
func (l *learning) batchSize(text bool) (int, error) {
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
		return 0, usagef("--batch %s: it has to be auto, or a number from 1 on", l.batch)
	}
	return n, nil
}

// mode returns --precision.
func (l *learning) mode() (nn.Mode, error) {
	switch m := nn.Mode(l.precision); m {
	case "f32":
		return nn.Full, nil
	case nn.F16, nn.BF16, nn.Auto:
		return m, nil
	}
	return "", usagef("--precision %s: there are f32, f16, bf16 and auto", l.precision)
}

// student is a network on an open device.
type student struct {
	dev   *runtime.Device
	scope *tensor.Scope
	model *nn.Model
}

// student opens the device, gets data there, and builds the network. On an error nothing stays open.
func (a *app) student(ctx context.Context, l *learning,
	data func(*tensor.Scope) (lesson, error)) (st *student, d lesson, err error) {
	if _, err := a.open(exactly); err != nil {
		return nil, d, err
	}
	st = &student{}
	if st.dev, err = a.session.Open(ctx, l.device); err != nil {
		return nil, d, err
	}
	st.scope = tensor.NewScope(st.dev)
	var layers []nn.Layer
	if d, err = data(st.scope); err == nil {
		layers, err = l.network(ctx, d.in, d.text)
	}
	if err == nil {
		st.model, err = nn.Build(ctx, st.scope, l.seed, d.in, layers...)
		if err != nil && l.described() {
			err = fmt.Errorf("%s: %w", l.model, err)
		}
	}
	if err != nil {
		return nil, d, errors.Join(asUsage(err), st.close())
	}
	return st, d, nil
}

func (st *student) close() error { return errors.Join(st.scope.Close(), st.dev.Close()) }

// asUsage makes a wrong configuration a mistake of usage.
func asUsage(err error) error {
	if errors.Is(err, nn.ErrConfig) {
		return usageError(err)
	}
	return err
}

// taught is a network with its data and a trainer.
type taught struct {
	*student
	lesson
	*nn.Trainer
	batch int
}

// teach opens the device, reads the data and builds the network.
func (a *app) teach(ctx context.Context, l *learning, c nn.Config) (*taught, error) {
	st, d, err := a.student(ctx, l, func(s *tensor.Scope) (lesson, error) { return l.lesson(ctx, s, true) })
	if err != nil {
		return nil, err
	}
	t := &taught{student: st, lesson: d}
	if d.text {
		c.Split, c.Validation = new(0.0), d.unseen
	}
	if c.BatchSize, err = l.batchSize(d.text); err == nil && c.BatchSize == 0 {
		c.BatchSize, err = nn.RecommendedBatch(ctx, st.model, c, t.lessons())
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

// lessons returns what the network learns from, with the last fifth where that is not apart.
func (t *taught) lessons() nn.Data {
	if t.text {
		return t.known
	}
	return t.Data
}

// products names the precision of products in training.
func (t *taught) products() string {
	if p := t.MixedPrecision(); p != nn.Full {
		return string(p)
	}
	if t.in.Type == tensor.F64 {
		return "f64"
	}
	return "f32"
}

// close closes the network. The trainer ends with its scope.
func (t *taught) close() error { return t.student.close() }

// document begins the document of a network.
func (t *taught) document(l *learning, loss, accuracy float64) trained {
	d := trained{Device: t.dev.String(), Model: l.model, Parameters: t.model.Count(), Examples: t.X.Dim(0), Batch: t.batch,
		Loss: number(loss), Accuracy: number(accuracy)}
	if t.text {
		d.Perplexity = number(math.Exp(loss))
	}
	return d
}

func (a *app) train(ctx context.Context, l *learning) error {
	if l.resume && l.checkpoint == "" {
		return usagef("--resume needs the file of --checkpoint")
	}
	if err := checkPicture("--plot", l.plot); err != nil {
		return err
	}
	switch {
	case l.checkpoint != "" && !canReadAgain(l.checkpoint):
		return usagef("--checkpoint %s: it has to be a file, which --resume reads", l.checkpoint)
	case l.checkpoint != "" && l.plot != "" && sameFile(l.checkpoint, l.plot):
		return usagef("--checkpoint and --plot name one file, %s", l.plot)
	}
	if err := a.claim(aPicture, l.plot); err != nil {
		return err
	}
	if !l.resume { // which reads the file, and says what is wrong with it
		if err := a.claim(aCheckpoint, l.checkpoint); err != nil {
			return err
		}
	}
	switch {
	case l.epochs < 1:
		return usagef("--epochs %d: it has to be 1 or more", l.epochs)
	case !(l.rate > 0) || math.IsInf(l.rate, 1):
		return usagef("--rate %v: it has to be positive and finite", l.rate)
	}
	mode, err := l.mode()
	if err != nil {
		return err
	}
	c := nn.Config{Loss: nn.CrossEntropy{}, Epochs: l.epochs, LearningRate: l.rate, Seed: l.seed, Patience: new(0),
		MixedPrecision: mode,
		Checkpoint:     l.checkpoint}
	bar := a.progress(0)
	defer bar.end()
	c.Progress = func(p nn.Progress) {
		bar.at(p.Examples, p.Of)
		bar.doing(fmt.Sprintf("epoch %d, loss %.4f, %.0f examples/s", p.Epoch+1, p.Loss, p.ExamplesPerSecond))
	}
	if !a.json {
		c.Log = io.Writer(a.stdout)
	}
	t, err := a.teach(ctx, l, c)
	if err != nil {
		return err
	}
	if l.resume {
		if err := t.Resume(ctx, l.checkpoint); err != nil {
			return errors.Join(needsCheckpoint(err), t.close())
		}
	}
	if !a.json {
		fmt.Fprintf(a.stdout, "%s on %v, products of %s, batches of %d\n%s", l.model, t.dev, t.products(), t.batch,
			t.model.Summary())
	}
	h, err := t.Fit(ctx, t.lessons())
	if err != nil && ctx.Err() != nil && l.checkpoint != "" {
		// What was learned since the last epoch is not lost.
		saved := t.Save(context.WithoutCancel(ctx), l.checkpoint)
		if saved == nil {
			err = fmt.Errorf("%w; %s has what was learned, from which the same command with --resume goes on", err, l.checkpoint)
		}
		return errors.Join(err, saved, t.close())
	}
	if err != nil {
		return errors.Join(l.aboutClasses(t, err), t.close())
	}
	loss, accuracy := math.NaN(), math.NaN()
	last := h.Epochs() - 1
	unseen := last >= 0 && len(h.ValLoss) > last
	if unseen {
		loss, accuracy = h.ValLoss[last], h.ValMetrics["accuracy"][last]
	}
	d := t.document(l, loss, accuracy)
	d.History, d.Precision = h, t.products()
	if err := t.close(); err != nil {
		return err
	}
	if l.plot != "" {
		if err := a.plotHistory(ctx, h, l.model+" on "+d.Device, l.plot); err != nil {
			return err
		}
	}
	switch took := h.TotalTime.Round(10 * time.Millisecond); {
	case a.json:
		return a.print(d)
	case !unseen:
		fmt.Fprintf(a.stdout, "too few %s to keep some for a test: %d; all of them were learned from, for %s\n", t.noun,
			d.Examples, quantity(last+1, "epoch"))
	case t.text:
		fmt.Fprintf(a.stdout, "perplexity %.2f, and %.2f %% of the next bytes are right, of text that it has not seen, "+
			"after %s in %v\n", d.Perplexity, 100*d.Accuracy, quantity(last+1, "epoch"), took)
	default:
		fmt.Fprintf(a.stdout, "%.2f %% of the %s that it has not seen are read rightly, after %s in %v\n", 100*d.Accuracy,
			t.noun, quantity(last+1, "epoch"), took)
	}
	return nil
}

// aboutClasses adds to the error of labels that are not of the network's classes which flag says how many there are.
func (l *learning) aboutClasses(t *taught, err error) error {
	if !errors.Is(err, nn.ErrData) || t.text || l.described() {
		return err
	}
	return fmt.Errorf("%w; --classes says how many classes there are", err)
}

func (a *app) eval(ctx context.Context, l *learning, file string) error {
	c := nn.Config{Loss: nn.CrossEntropy{}}
	t, err := a.teach(ctx, l, c)
	if err != nil {
		return err
	}
	if err := l.load(ctx, t.model, file); err != nil {
		return errors.Join(err, t.close())
	}
	loss, metrics, err := t.Evaluate(ctx, t.Data)
	if err != nil {
		return errors.Join(l.aboutClasses(t, err), t.close())
	}
	d := t.document(l, loss, metrics["accuracy"])
	if err := t.close(); err != nil {
		return err
	}
	switch {
	case a.json:
		return a.print(d)
	case t.text:
		fmt.Fprintf(a.stdout, "%s on %s: perplexity %.2f, and %.2f %% of the next bytes are right\n", d.Model, d.Device,
			d.Perplexity, 100*d.Accuracy)
	default:
		fmt.Fprintf(a.stdout, "%s on %s: loss %.4f, %.2f %% of %d %s are read rightly\n", d.Model, d.Device, d.Loss,
			100*d.Accuracy, d.Examples, t.noun)
	}
	return nil
}
