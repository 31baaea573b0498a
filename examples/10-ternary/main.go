// Ternary weights: a network that reads digits is trained, then its weights become -s, 0 and s of 2 bits each, and both are compared.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log"
	"time"

	"github.com/concord-compute/concord/nn"
	"github.com/concord-compute/concord/quant"
	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/tensor"
	mnistdata "github.com/concord-compute/concord/testdata/mnist"
)

const pixels, tested = 784, 2000 // of an image; images that are not learned

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
	// The ternary network begins with what the other one has learned, and learns to do with fewer values.
	ternary, err := train(ctx, s, digits, float, 3)
	if err != nil {
		return nil, err
	}
	packed, err := pack(ctx, dev, ternary)
	if err != nil {
		return nil, err
	}
	defer packed.Close()

	x := tensor.From(s, images[len(images)-tested*pixels:], tested, pixels)
	numbers, err := tensor.Read[float32](ctx, x.Cast(tensor.F32).Mul(1.0/255))
	if err != nil {
		return nil, err
	}
	results := []result{{name: "float", bytes: packed.before}, {name: "ternary", bytes: packed.bytes}}
	for i, predict := range []func() ([]int64, error){
		func() ([]int64, error) {
			logits, err := float.Predict(ctx, x, nil)
			if err != nil {
				return nil, err
			}
			return tensor.Read[int64](ctx, logits.ArgMax(-1))
		},
		func() ([]int64, error) { return packed.predict(ctx, s, numbers) },
	} {
		if err := results[i].measure(labels[len(labels)-tested:], predict); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// measure compares what predict says with the labels, and notes the fastest of three calls.
func (r *result) measure(labels []byte, predict func() ([]int64, error)) error {
	says, err := predict() // the first call also builds kernels
	if err != nil {
		return err
	}
	for i, digit := range says {
		if digit == int64(labels[i]) {
			r.accuracy += 1.0 / tested
		}
	}
	for range 3 {
		start := time.Now()
		if _, err := predict(); err != nil {
			return err
		}
		r.rate = max(r.rate, tested/time.Since(start).Seconds())
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
	m, err := nn.Build(ctx, s, 1, nn.Spec{Type: tensor.U8, Shape: []int{pixels}}, nn.Scale{Factor: 1.0 / 255},
		nn.Dense{Out: 128, Act: nn.ReLU, Ternary: ternary}, nn.Dense{Out: 64, Act: nn.ReLU, Ternary: ternary}, nn.Dense{Out: 10, Ternary: ternary})
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
	c := nn.Defaults()
	c.Loss, c.BatchSize, c.Epochs, c.Seed, c.Split = nn.CrossEntropy{}, 128, epochs, 1, 0
	t, err := nn.NewTrainer(m, c)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	_, err = t.Fit(ctx, digits)
	return m, err
}

// network is a network of packed weights on a device.
type network struct {
	dev           *runtime.Device
	weights       []*quant.Prepared
	biases        []*tensor.Tensor
	bytes, before int // of the weights, and of as many float32
}

// pack packs the weights of the three layers for products on a device.
func pack(ctx context.Context, dev *runtime.Device, m *nn.Model) (*network, error) {
	n := &network{dev: dev}
	for _, layer := range []string{"1", "2", "3"} { // layer 0 scales the pixels
		w := m.Value(layer + ".weight")
		packed, err := nn.PackTernary(ctx, w)
		if err == nil {
			var p *quant.Prepared
			if p, err = quant.Prepare(ctx, dev, packed); err == nil {
				n.weights = append(n.weights, p)
			}
		}
		if err != nil {
			n.Close()
			return nil, err
		}
		n.biases = append(n.biases, m.Value(layer+".bias"))
		n.bytes, n.before = n.bytes+len(packed.Data), n.before+4*w.Len()
	}
	return n, nil
}

// predict returns the digits that images show.
func (n *network) predict(ctx context.Context, s *tensor.Scope, images []float32) ([]int64, error) {
	step := s.Scope()
	defer step.Close()
	x, rows := images, len(images)/pixels
	for i, w := range n.weights {
		y, err := multiply(ctx, n.dev, w, x, rows)
		if err != nil {
			return nil, err
		}
		t := tensor.From(step, y, rows, w.Rows).Add(n.biases[i])
		if i == len(n.weights)-1 {
			return tensor.Read[int64](ctx, t.ArgMax(-1))
		}
		if x, err = tensor.Read[float32](ctx, t.Relu()); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// multiply returns the product of rows of activations, which the device rounds to 8 bits, with packed weights.
func multiply(ctx context.Context, dev *runtime.Device, w *quant.Prepared, x []float32, rows int) ([]float32, error) {
	in, err := runtime.Upload(ctx, dev, x)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	out, err := runtime.Alloc[float32](dev, rows*w.Rows)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	if err := w.Mul(out, in, rows); err != nil {
		return nil, err
	}
	y := make([]float32, rows*w.Rows)
	return y, runtime.Read(ctx, out, y)
}

// Close gives the memory of the weights back.
func (n *network) Close() {
	for _, w := range n.weights {
		w.Close()
	}
}
