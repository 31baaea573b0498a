package main

// concord train and concord eval: networks that read handwritten digits.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/internal/mnist"
	"github.com/concord-compute/concord/nn"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/tensor"
)

// learning are the flags of train and eval.
type learning struct {
	data, model, device string
	epochs, batch       int
	rate                float64
	seed                uint64
	checkpoint          string
	resume              bool
}

// trained is the document of train, and of eval without a history.
type trained struct {
	Device     string      `json:"device"`
	Model      string      `json:"model"`
	Parameters int         `json:"parameters"`
	Examples   int         `json:"examples"`
	Loss       number      `json:"loss"` // of the examples that the network has not learned from; of eval, of all
	Accuracy   number      `json:"accuracy"`
	History    *nn.History `json:"history,omitempty"`
}

// models are the networks by their names, for images of a size.
var models = map[string]func(rows, cols int) []nn.Layer{
	"mlp": func(rows, cols int) []nn.Layer {
		return []nn.Layer{nn.Scale{Factor: 1. / 255}, nn.Flatten{}, nn.Dense{Out: 512, Act: nn.ReLU}, nn.Dense{Out: 256, Act: nn.ReLU}, nn.Dense{Out: 10}}
	},
	"cnn": func(rows, cols int) []nn.Layer {
		three, two := []int{3, 3}, []int{2, 2}
		return []nn.Layer{nn.Scale{Factor: 1. / 255}, nn.Reshape{Shape: []int{1, rows, cols}}, nn.Conv{Filters: 32, Size: three, Act: nn.ReLU},
			nn.Conv{Filters: 64, Size: three, Act: nn.ReLU}, nn.MaxPool{Size: two}, nn.Flatten{}, nn.Dense{Out: 128, Act: nn.ReLU}, nn.Dense{Out: 10}}
	},
}

func (a *app) learningFlags(cmd *cobra.Command, l *learning) {
	cmd.Flags().StringVar(&l.data, "data", "mnist", "mnist, the 10,000 images in this program, or a directory with files of MNIST's format")
	cmd.Flags().StringVar(&l.model, "model", "mlp", "the network: "+strings.Join(slices.Sorted(maps.Keys(models)), " or "))
	cmd.Flags().StringVar(&l.device, "device", "auto", "the device that computes")
	cmd.Flags().IntVar(&l.batch, "batch", 128, "examples in a batch")
	a.jsonFlag(cmd)
}

func (a *app) trainCommand() *cobra.Command {
	var l learning
	cmd := &cobra.Command{
		Use:   "train",
		Short: "Train a network to read handwritten digits",
		Long: `Train trains a network on images of digits, with Adam and cross entropy. The last fifth of the images is
not learned from: accuracy is that of these. mlp has dense layers of 512, 256 and 10; cnn has two convolutions,
a pool and two dense layers.

With --checkpoint the network and all that training needs to go on are written to a safetensors file after
each epoch, and after an interrupt (ctrl-C). With --resume training goes on from that file, with the same
bytes as if it had not been interrupted. A directory of --data has the files train-images-idx3-ubyte.gz and
train-labels-idx1-ubyte.gz, or those with t10k in front, as MNIST publishes them.`,
		Example: `  concord train --epochs 3
  concord train --model cnn --device cpu:0 --epochs 2 --checkpoint digits.safetensors
  concord train --model cnn --device cpu:0 --epochs 4 --checkpoint digits.safetensors --resume
  concord eval digits.safetensors --model cnn`,
		Args: cobra.NoArgs,
	}
	a.learningFlags(cmd, &l)
	cmd.Flags().IntVar(&l.epochs, "epochs", 5, "how often to go through the images")
	cmd.Flags().Float64Var(&l.rate, "rate", 0.001, "the learning rate")
	cmd.Flags().Uint64Var(&l.seed, "seed", 1, "the seed of the first parameters and of the order of the images")
	cmd.Flags().StringVar(&l.checkpoint, "checkpoint", "", "the file to write after each epoch")
	cmd.Flags().BoolVar(&l.resume, "resume", false, "go on from the file of --checkpoint")
	cmd.RunE = a.do(func(ctx context.Context, _ []string) error { return a.train(ctx, l) })
	return cmd
}

func (a *app) evalCommand() *cobra.Command {
	var l learning
	cmd := &cobra.Command{
		Use:   "eval FILE",
		Short: "Report how well a trained network reads handwritten digits",
		Long: `Eval reads a network from a file of train, and reports its loss and its accuracy on all images of --data.
With mnist that includes those it has learned from, so that the accuracy is higher than that of train.`,
		Example: `  concord eval digits.safetensors
  concord eval digits.safetensors --model cnn --data ~/mnist --json`,
		Args: cobra.ExactArgs(1),
	}
	a.learningFlags(cmd, &l)
	cmd.RunE = a.do(func(ctx context.Context, args []string) error { return a.eval(ctx, l, args[0]) })
	return cmd
}

// images returns the images and labels of --data.
func (l learning) images() (mnist.Set, []uint8, error) {
	var images mnist.Set
	var labels []uint8
	var err error
	if l.data == "mnist" {
		if images, err = mnist.Images(); err == nil {
			labels, err = mnist.Labels()
		}
		return images, labels, err
	}
	name := "train"
	if _, err := os.Stat(filepath.Join(l.data, name+"-images-idx3-ubyte.gz")); errors.Is(err, os.ErrNotExist) {
		name = "t10k"
	}
	file, err := os.ReadFile(filepath.Join(l.data, name+"-images-idx3-ubyte.gz"))
	if err == nil {
		images, err = mnist.ParseImages(file)
	}
	if err == nil {
		file, err = os.ReadFile(filepath.Join(l.data, name+"-labels-idx1-ubyte.gz"))
	}
	if err == nil {
		labels, err = mnist.ParseLabels(file)
	}
	if err == nil && len(labels) != images.N {
		err = fmt.Errorf("%s: %d images and %d labels", l.data, images.N, len(labels))
	}
	return images, labels, err
}

// taught is a network with its data and a trainer.
type taught struct {
	dev   *runtime.Device
	scope *tensor.Scope
	model *nn.Model
	data  nn.Data
	*nn.Trainer
}

// teach opens the device and builds the network.
func (a *app) teach(ctx context.Context, l learning, c nn.Config) (*taught, error) {
	layers := models[l.model]
	if layers == nil {
		return nil, usagef("no model %q: there are %s", l.model, strings.Join(slices.Sorted(maps.Keys(models)), " and "))
	}
	images, labels, err := l.images()
	if err != nil {
		return nil, err
	}
	if _, err := a.open(exactly); err != nil {
		return nil, err
	}
	t := &taught{}
	if t.dev, err = a.session.Open(ctx, l.device); err != nil {
		return nil, err
	}
	t.scope = tensor.NewScope(t.dev)
	t.data = nn.Data{X: tensor.From(t.scope, images.Pixels, images.N, images.Rows, images.Cols), Y: tensor.From(t.scope, labels)}
	in := nn.Spec{Type: tensor.U8, Shape: []int{images.Rows, images.Cols}}
	if t.model, err = nn.Build(ctx, t.scope, l.seed, in, layers(images.Rows, images.Cols)...); err == nil {
		t.Trainer, err = nn.NewTrainer(t.model, c)
	}
	if errors.Is(err, nn.ErrConfig) {
		err = usage{err}
	}
	if err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

func (t *taught) close() error { return errors.Join(t.scope.Close(), t.dev.Close()) }

func (a *app) train(ctx context.Context, l learning) (err error) {
	if l.resume && l.checkpoint == "" {
		return usagef("--resume needs the file of --checkpoint")
	}
	c := nn.Defaults()
	c.Loss, c.Epochs, c.BatchSize, c.LearningRate, c.Seed, c.Patience, c.Checkpoint = nn.CrossEntropy{}, l.epochs, l.batch, l.rate, l.seed, 0, l.checkpoint
	bar := a.progress(0)
	defer bar.end()
	c.Progress = func(p nn.Progress) {
		bar.at(p.Examples, p.Of)
		bar.doing(fmt.Sprintf("epoch %d, loss %.4f, %.0f images/s", p.Epoch+1, p.Loss, p.ExamplesPerSecond))
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
			return errors.Join(err, t.close())
		}
	}
	if !a.json {
		fmt.Fprintf(a.stdout, "%s on %v\n%s", l.model, t.dev, t.model.Summary())
	}
	h, err := t.Fit(ctx, t.data)
	if err != nil && ctx.Err() != nil && l.checkpoint != "" {
		// What was learned since the last epoch is not lost.
		return errors.Join(err, t.Save(context.WithoutCancel(ctx), l.checkpoint), t.close())
	}
	if err != nil {
		return errors.Join(err, t.close())
	}
	d := trained{Device: t.dev.String(), Model: l.model, Parameters: t.model.Count(), Examples: t.data.X.Dim(0), History: h,
		Loss: number(math.NaN()), Accuracy: number(math.NaN())}
	last := h.Epochs() - 1
	unseen := last >= 0 && len(h.ValLoss) > last
	if unseen {
		d.Loss, d.Accuracy = number(h.ValLoss[last]), number(h.ValMetrics["accuracy"][last])
	}
	if err := t.close(); err != nil {
		return err
	}
	if a.json {
		return a.print(d)
	}
	if !unseen {
		fmt.Fprintf(a.stdout, "%d images are too few to keep some for a test; all of them were learned from, for %d epochs\n", d.Examples, last+1)
		return nil
	}
	fmt.Fprintf(a.stdout, "%.2f %% of the images that it has not seen are read rightly, after %d epochs in %v\n", 100*d.Accuracy, last+1, h.TotalTime.Round(10*time.Millisecond))
	return nil
}

func (a *app) eval(ctx context.Context, l learning, file string) error {
	c := nn.Defaults()
	c.Loss, c.BatchSize = nn.CrossEntropy{}, l.batch
	t, err := a.teach(ctx, l, c)
	if err != nil {
		return err
	}
	if err := t.model.Load(ctx, file); err != nil {
		return errors.Join(err, t.close())
	}
	loss, metrics, err := t.Evaluate(ctx, t.data)
	if err != nil {
		return errors.Join(err, t.close())
	}
	d := trained{Device: t.dev.String(), Model: l.model, Parameters: t.model.Count(), Examples: t.data.X.Dim(0), Loss: number(loss), Accuracy: number(metrics["accuracy"])}
	if err := t.close(); err != nil {
		return err
	}
	if a.json {
		return a.print(d)
	}
	fmt.Fprintf(a.stdout, "%s on %s: loss %.4f, %.2f %% of %d images are read rightly\n", d.Model, d.Device, d.Loss, 100*d.Accuracy, d.Examples)
	return nil
}
