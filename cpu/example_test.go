package cpu_test

import (
	"context"
	"fmt"
	"log"

	"github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
)

// The portable text declares the types of the parameters. Other devices compile it.
const squares = `
kernel void squares(global float *x, uint n) {
	uint i = get_global_id(0);
	if (i < n)
		x[i] *= x[i];
}`

// In a program this call would be in an init function.
var _ = func() bool {
	cpu.Register("example", "squares", func(c *cpu.Call) error {
		x := c.F32(0)
		return c.Parallel(int(c.Int(1)), 1024, func(lo, hi int) { // ranges of [0, n), on all threads
			for i := lo; i < hi; i++ {
				x[i] *= x[i]
			}
		})
	})
	return true
}()

// A kernel as a Go function, which runs without a C++ compiler.
func ExampleRegister() {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu:0")
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	unit, err := source.Parse(squares, source.Options{Family: "example", Features: dev.Features()})
	if err != nil {
		log.Fatal(err)
	}
	prog, err := dev.Program(ctx, unit)
	if err != nil {
		log.Fatal(err)
	}
	kernel, err := prog.Kernel("squares")
	if err != nil {
		log.Fatal(err)
	}
	x, err := runtime.Upload(ctx, dev, []float32{1, 2, 3})
	if err != nil {
		log.Fatal(err)
	}
	if err := dev.Stream().Launch(kernel, runtime.Items(3), x, uint32(3)); err != nil {
		log.Fatal(err)
	}
	var out [3]float32
	if err := runtime.Read(ctx, x, out[:]); err != nil {
		log.Fatal(err)
	}
	fmt.Println(out, kernel.Info().Implementation)
	// Output:
	// [1 4 9] go
}
