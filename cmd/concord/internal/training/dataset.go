package training

// What networks learn from: images in MNIST's files, arrays of NumPy, and texts.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/files"
	"github.com/concord-compute/concord/internal/mnist"
	"github.com/concord-compute/concord/nn"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/tensor"
)

// textSteps is the number of bytes in a piece of a text. A network learns to predict the byte behind each of them.
// When it learns, pieces begin every textStride bytes.
const (
	textSteps  = 64
	textStride = 16
)

// dataset is the data of a network. The tensors belong to the scope in which it was made.
type dataset struct {
	noun string // what an example is called, in the plural
	text bool
	In   nn.Spec
	nn.Data
	training nn.Data  // of a text: the pieces to learn from, which overlap, so that a byte is seen at several places
	heldOut  *nn.Data // and those of its last fifth; nil if that is too short
}

// isText reports whether a name of --data is that of a text.
func isText(data string) bool {
	info, err := os.Stat(data)
	return data != "mnist" && !files.IsArray(data) && err == nil && !info.IsDir()
}

// textSpec is a piece of a text.
func textSpec() nn.Spec { return nn.Spec{Type: tensor.U8, Shape: []int{textSteps}} }

// dataset reads --data, with labels or without.
func (l *flags) dataset(ctx context.Context, s *tensor.Scope, labels bool) (dataset, error) {
	if _, err := os.Stat(l.data); l.data != "mnist" && err != nil {
		return dataset{}, err
	}
	switch {
	case l.labels != "" && !files.IsArray(l.data):
		return dataset{}, app.Usagef("--labels %s: they belong to --data FILE.npy, not to %s", l.labels, l.data)
	case files.IsArray(l.data):
		return l.arrays(ctx, s, labels)
	case isText(l.data):
		return textDataset(ctx, s, l.data)
	}
	images, digits, err := readDigits(ctx, l.data, labels)
	if err != nil {
		return dataset{}, err
	}
	d := dataset{noun: "images", In: nn.Spec{Type: tensor.U8, Shape: []int{images.Rows, images.Cols}}}
	d.X = tensor.From(s, images.Pixels, images.N, images.Rows, images.Cols)
	if labels {
		d.Y = tensor.From(s, digits, len(digits))
	}
	return d, nil
}

// arrays reads examples along the first dimension of an array, and their labels from --labels.
func (l *flags) arrays(ctx context.Context, s *tensor.Scope, labels bool) (d dataset, err error) {
	if labels && l.labels == "" {
		return d, app.Usagef("--data %s needs the array with its labels: --labels FILE.npy", l.data)
	}
	if d.X, err = loadArray(ctx, s, l.data); err != nil {
		return d, err
	}
	if d.X.Rank() < 2 {
		return d, fmt.Errorf("%s: an array of shape %v, where examples lie along the first of two or more dimensions: %w",
			l.data, d.X.Shape(), nn.ErrData)
	}
	if labels {
		if d.Y, err = loadArray(ctx, s, l.labels); err != nil {
			return d, err
		}
	}
	d.noun, d.In = "examples", nn.Spec{Type: d.X.Type(), Shape: d.X.Shape()[1:]}
	return d, nil
}

// loadArray reads an array into a scope, as files.Wait does.
func loadArray(ctx context.Context, s *tensor.Scope, path string) (*tensor.Tensor, error) {
	if err := files.Fits(path); err != nil {
		return nil, err
	}
	return files.Wait(ctx, func() (*tensor.Tensor, error) { return tensor.LoadNPY(s, path) })
}

// readText reads a text. A device or a pipe, which may have no end, is refused.
func readText(ctx context.Context, path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: it is no regular file: %w", path, runtime.ErrUnsupported)
	}
	return files.Contents(ctx, path, files.MostText)
}

// textDataset makes pieces of a text, each with what follows its bytes.
func textDataset(ctx context.Context, s *tensor.Scope, path string) (d dataset, err error) {
	text, err := readText(ctx, path)
	if err != nil {
		return d, err
	}
	if len(text) <= textSteps {
		return d, fmt.Errorf("%s: a text of %d bytes; it needs more than %d: %w", path, len(text), textSteps, nn.ErrData)
	}
	d = dataset{noun: "pieces of text", text: true, In: textSpec()}
	d.Data = pieces(s, text, textSteps)
	known, unseen := text[:len(text)-len(text)/5], text[len(text)-len(text)/5:]
	if d.training = d.Data; len(unseen) > textSteps {
		data := pieces(s, unseen, textSteps)
		d.training, d.heldOut = pieces(s, known, textStride), &data
	}
	return d, nil
}

// pieces cuts a text into pieces that begin every stride bytes, each with what follows its bytes.
func pieces(s *tensor.Scope, text []byte, stride int) nn.Data {
	var x, y []byte
	n := 0
	for first := 0; first+textSteps < len(text); first += stride {
		x, y = append(x, text[first:first+textSteps]...), append(y, text[first+1:first+textSteps+1]...)
		n++
	}
	return nn.Data{X: tensor.From(s, x, n, textSteps), Y: tensor.From(s, y, n, textSteps)}
}

// readDigits returns images and labels of MNIST's format: those of this program, or of a directory.
func readDigits(ctx context.Context, dir string, withLabels bool) (images mnist.Set, labels []uint8, err error) {
	if dir == "mnist" {
		if images, err = mnist.Images(); err == nil && withLabels {
			labels, err = mnist.Labels()
		}
		return images, labels, err
	}
	name := "train"
	if _, err := os.Stat(filepath.Join(dir, name+"-images-idx3-ubyte.gz")); errors.Is(err, os.ErrNotExist) {
		name = "t10k"
	}
	file, err := files.Contents(ctx, filepath.Join(dir, name+"-images-idx3-ubyte.gz"), files.MostImages)
	if err == nil {
		images, err = mnist.ParseImages(file)
	}
	if err != nil || !withLabels {
		return images, nil, err
	}
	if file, err = files.Contents(ctx, filepath.Join(dir, name+"-labels-idx1-ubyte.gz"), files.MostImages); err == nil {
		labels, err = mnist.ParseLabels(file)
	}
	if err == nil && len(labels) != images.N {
		err = fmt.Errorf("%s: %d images and %d labels", dir, images.N, len(labels))
	}
	return images, labels, err
}
