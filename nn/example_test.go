package nn_test

import (
	"context"
	"fmt"
	"log"

	_ "github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/nn"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/tensor"
)

// A network learns the exclusive or.
func Example() {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu:0")
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	s := tensor.NewScope(dev)
	defer s.Close()

	m, err := nn.Build(ctx, s, 1, nn.Spec{Type: tensor.F32, Shape: []int{2}}, nn.Dense{Out: 8, Act: nn.Tanh},
		nn.Dense{Out: 1})
	if err != nil {
		log.Fatal(err)
	}
	x := tensor.From(s, []float32{0, 0, 0, 1, 1, 0, 1, 1}, 4, 2)
	y := tensor.From(s, []float32{0, 1, 1, 0}, 4, 1)
	c := nn.Config{Loss: nn.SigmoidCrossEntropy{}, LearningRate: 0.05, Epochs: 200, Split: new(0.0), Patience: new(0)}
	t, err := nn.NewTrainer(m, c)
	if err != nil {
		log.Fatal(err)
	}
	h, err := t.Fit(ctx, nn.Data{X: x, Y: y})
	if err != nil {
		log.Fatal(err)
	}
	logits, err := m.Predict(ctx, x, nil)
	if err != nil {
		log.Fatal(err)
	}
	says, err := tensor.Read[float32](ctx, logits.Sigmoid().Round().Flatten())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Count(), "parameters, accuracy", h.TrainMetrics["accuracy"][199], "says", says)
	// Output: 33 parameters, accuracy 1 says [0 1 1 0]
}

// A layer of your own: its parameters have the names that it gives them.
type gate struct{}

func (gate) Apply(p *nn.Pass, x *tensor.Tensor) *tensor.Tensor {
	return x.Mul(p.Layer("open", nn.Dense{Out: x.Dim(-1), Act: nn.Sigmoid}, x)).Add(p.Param("shift", nn.Zeros, x.Dim(-1)))
}

func (gate) String() string { return "gate" }

func ExampleLayer() {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu:0")
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	s := tensor.NewScope(dev)
	defer s.Close()
	m, err := nn.Build(ctx, s, 1, nn.Spec{Type: tensor.F32, Shape: []int{4}}, gate{}, nn.Residual{Body: gate{}},
		nn.Dense{Out: 2})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(m.Summary())
	// Output:
	// NAME             LAYER            RESULT  PARAMETERS
	//                  input f32        [4]     0
	// 0                gate             [4]     24
	//   0.open         dense 4 sigmoid  [4]     20
	// 1                residual         [4]     24
	//   1.body         gate             [4]     24
	//     1.body.open  dense 4 sigmoid  [4]     20
	// 2                dense 2          [2]     10
	// 58 parameters of type f32
}
