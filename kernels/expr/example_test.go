package expr_test

import (
	"context"
	"fmt"
	"log"

	_ "github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/runtime"
)

// relu((v·1.5 + 0.25)·v − 0.5) of every element in one launch, on a CPU without a compiler.
func Example() {
	v := expr.Input(0, expr.F32)
	y := v.Mul(v.Number(1.5)).Add(v.Number(0.25)).Mul(v).Sub(v.Number(0.5)).Relu()
	m, err := expr.New(y)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu:0")
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	unit, err := m.Unit(dev.Features(), 0)
	if err != nil {
		log.Fatal(err)
	}
	p, err := dev.Program(ctx, unit)
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	k, err := p.Kernel(expr.Kernel)
	if err != nil {
		log.Fatal(err)
	}
	x, err := runtime.Upload(ctx, dev, []float32{-2, -1, 0, 1, 2})
	if err != nil {
		log.Fatal(err)
	}
	defer x.Close()
	stream, err := dev.NewStream()
	if err != nil {
		log.Fatal(err)
	}
	defer stream.Close()
	if err := stream.Launch(k, runtime.Items(x.Len()), x, x, uint64(x.Len())); err != nil {
		log.Fatal(err)
	}
	if err := stream.Sync(ctx); err != nil {
		log.Fatal(err)
	}
	got := make([]float32, x.Len())
	if err := runtime.Read(ctx, x, got); err != nil {
		log.Fatal(err)
	}
	fmt.Println(got)
	// Output: [5 0.75 0 1.25 6]
}

// The gradient of an expression is an expression, of which New makes a map like any other.
func ExampleGradient() {
	x := expr.Input(0, expr.F32)
	d := expr.Gradient(x.Mul(x).Mul(x), x.Number(1), x)[0]
	m, err := expr.New(d)
	if err != nil {
		log.Fatal(err)
	}
	at2 := m.Eval([]expr.Value{{Float: 2}}, nil, 0)[0]
	fmt.Println(at2.Float)
	// Output: 12
}

// An outer product: a column and a row, each broadcast to the shape of the result.
func ExampleMap_Layout() {
	m, err := expr.New(expr.Input(0, expr.F32).Mul(expr.Input(1, expr.F32)))
	if err != nil {
		log.Fatal(err)
	}
	shape := []int{2, 3}
	column, err := expr.Rows(2, 1).Broadcast([]int{2, 1}, shape)
	if err != nil {
		log.Fatal(err)
	}
	row, err := expr.Rows(3).Broadcast([]int{3}, shape)
	if err != nil {
		log.Fatal(err)
	}
	l, err := m.Layout(expr.Layout{Dims: shape, Operands: []expr.Operand{column, row, expr.Rows(shape...)}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(l.Rank(), l.Operands[0].Steps, l.Operands[1].Steps, m.Work(&l))
	// Output: 2 [1 0] [0 1] {6 44}
}

// The softmax of each row: reductions are over the last dimension.
func ExampleSum() {
	x := expr.Input(0, expr.F32)
	e := x.Sub(x.Largest()).Exp()
	m, err := expr.New(e.Div(e.Sum()))
	if err != nil {
		log.Fatal(err)
	}
	shape := []int{2, 4}
	l, err := m.Layout(expr.Layout{Dims: shape, Operands: []expr.Operand{expr.Rows(shape...), expr.Rows(shape...)}})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu:0")
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	unit, err := m.Unit(dev.Features(), l.Rank())
	if err != nil {
		log.Fatal(err)
	}
	p, err := dev.Program(ctx, unit)
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	kernel, size := m.Entry(&l)
	global, local, err := kernels.Geometry(unit, kernel, size)
	if err != nil {
		log.Fatal(err)
	}
	k, err := p.Kernel(kernel)
	if err != nil {
		log.Fatal(err)
	}
	b, err := runtime.Upload(ctx, dev, []float32{1, 1, 1, 1, 0, 0, 1000, 1000})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	stream, err := dev.NewStream()
	if err != nil {
		log.Fatal(err)
	}
	defer stream.Close()
	if err := stream.Launch(k, runtime.Grid{Items: global, Group: local}, b, b, l.Argument()); err != nil {
		log.Fatal(err)
	}
	if err := stream.Sync(ctx); err != nil {
		log.Fatal(err)
	}
	got := make([]float32, b.Len())
	if err := runtime.Read(ctx, b, got); err != nil {
		log.Fatal(err)
	}
	fmt.Println(got)
	// Output: [0.25 0.25 0.25 0.25 0 0 0.5 0.5]
}
