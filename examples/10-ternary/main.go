// Ternary weights: a network that reads digits is trained, then its weights become -s, 0 and s of 2 bits each,
// and both are compared.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log"
	"strconv"
	"time"

	"github.com/concord-compute/concord/nn"
	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/tensor"
	mnistdata "github.com/concord-compute/concord/testdata/mnist"
)

const pixels, tested = 784, 2000 // of an image; images that are not learned

var scale = nn.Scale{Factor: 1.0 / 255} // of the pixels

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	dev, err := runtime.Open(ctx, "auto")
	if err != nil {
		return err
	}
	defer dev.Close()
	results, err := compare(ctx, dev, 8000)
	if err != nil {
		return err
	}
	fmt.Printf("%v: %d images that were not learned\n", dev, tested)
	fmt.Printf("%-8s %9s %9s %9s\n", "weights", "bytes", "accuracy", "images/s")
	for _, r := range results {
		fmt.Printf("%-8s %9d %9.4f %9.0f\n", r.name, r.bytes, r.accuracy, r.rate)
	}
	return nil
}

// result is what a network was measured to be.
type result struct {
	name     string
	bytes    int     // of the weights
	accuracy float64 // the part of the images that it reads right
	rate     float64 // images per second
}

// compare trains both networks with the first images and measures them with the last ones.
func compare(ctx context.Context, dev *runtime.Device, learned int) ([]result, error) {
	s := tensor.NewScope(dev)
	defer s.Close()
	images, err := unpack(mnistdata.Images, 16)
	if err != nil {
		return nil, err
	}
	labels, err := unpack(mnistdata.Labels, 8)
	if err != nil {
		return nil, err
	}
	digits := nn.Data{X: tensor.From(s, images[:learned*pixels], learned, pixels), Y: tensor.From(s, labels[:learned])}
	float, err := train(ctx, s, digits, nil, 2)
	if err != nil {
		return nil, err
	}
	// The ternary network begins with what the other one has learned, and learns to do with fewer values. So it
	// has seen the images more often.
	ternary, err := train(ctx, s, digits, float, 3)
	if err != nil {
		return nil, err
	}
	small, before, after, err := pack(ctx, s, ternary)
	if err != nil {
		return nil, err
	}
	results := []result{{name: "float", bytes: before}, {name: "ternary", bytes: after}}
	x := tensor.From(s, images[len(images)-tested*pixels:], tested, pixels)
	for i, m := range []*nn.Model{float, small} {
		if err := results[i].measure(ctx, m, x, labels[len(labels)-tested:]); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// measure compares what a network says of images with their labels, and notes the fastest of three calls.
func (r *result) measure(ctx context.Context, m *nn.Model, images *tensor.Tensor, labels []byte) error {
	for i := range 4 { // the first call also builds kernels
		start := time.Now()
		logits, err := m.Predict(ctx, images, nil)
		if err != nil {
			return err
		}
		says, err := tensor.Read[int64](ctx, logits.ArgMax(-1))
		if err != nil {
			return err
		}
		if i > 0 {
			r.rate = max(r.rate, tested/time.Since(start).Seconds())
			continue
		}
		right := 0
		for i, digit := range says {
			if digit == int64(labels[i]) {
				right++
			}
		}
		r.accuracy = float64(right) / tested
	}
	return nil
}

// unpack returns a file of MNIST without its header.
func unpack(file []byte, header int) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	return data[header:], nil
}

// train returns a network of float weights, or one of ternary weights that begins with the values of from.
func train(ctx context.Context, s *tensor.Scope, digits nn.Data, from *nn.Model, epochs int) (*nn.Model, error) {
	ternary := from != nil
	m, err := nn.Build(ctx, s, 1, nn.Spec{Type: tensor.U8, Shape: []int{pixels}}, scale,
		nn.Dense{Out: 128, Act: nn.ReLU, Ternary: ternary}, nn.Dense{Out: 64, Act: nn.ReLU, Ternary: ternary},
		nn.Dense{Out: 10, Ternary: ternary})
	if err != nil {
		return nil, err
	}
	if ternary {
		values := map[string]*tensor.Tensor{}
		for _, p := range from.Params() {
			values[p.Name] = from.Value(p.Name)
		}
		if err := m.SetValues(ctx, values); err != nil {
			return nil, err
		}
	}
	c := nn.Config{Loss: nn.CrossEntropy{}, BatchSize: 128, Epochs: epochs, Seed: 1, Split: new(0.0)}
	t, err := nn.NewTrainer(m, c)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	_, err = t.Fit(ctx, digits)
	return m, err
}

// pack returns the network with packed weights in the place of those that it has learned, and the bytes of the
// weights before and after.
func pack(ctx context.Context, s *tensor.Scope, m *nn.Model) (small *nn.Model, before, after int, err error) {
	layers, biases := []nn.Layer{scale}, map[string]*tensor.Tensor{}
	for i, act := range []nn.Activation{nn.ReLU, nn.ReLU, nn.Linear} {
		name := strconv.Itoa(i + 1) // layer 0 scales the pixels
		w := m.Value(name + ".weight")
		matrix, err := nn.PackTernary(ctx, w)
		if err != nil {
			return nil, 0, 0, err
		}
		packed, err := tensor.NewTernary(s, matrix)
		if err != nil {
			return nil, 0, 0, err
		}
		layers, biases[name+".bias"] = append(layers, nn.Packed{Weight: packed, Act: act}), m.Value(name+".bias")
		before, after = before+4*w.Len(), after+len(matrix.Data)
	}
	if small, err = nn.Build(ctx, s, 1, m.In, layers...); err != nil {
		return nil, 0, 0, err
	}
	return small, before, after, small.SetValues(ctx, biases)
}
