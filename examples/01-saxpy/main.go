// Saxpy: the whole path once. Open a device, parse a kernel, build it, upload two
// vectors, launch, read the result.
//
//	go run ./examples/01-saxpy
//	CONCORD_DEVICE=opencl go run -tags opencl ./examples/01-saxpy
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all" // every backend registers itself
	"github.com/concord-compute/concord/source"
)

const text = `
kernel void saxpy(float a, global const float *x, global float *y, uint n) {
	uint i = get_global_id(0);
	if (i < n)
		y[i] += a * x[i];
}`

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	// "auto" is the device of CONCORD_DEVICE, or else the first GPU, or else the CPU.
	dev, err := runtime.Open(ctx, "auto")
	if err != nil {
		return err
	}
	defer dev.Close() // also closes everything that is still open on it

	// Parsing finds every mistake that can be found without a device, with line and
	// column, and gives the kernel's parameters their types.
	unit, err := source.Parse(text, source.Options{Name: "saxpy.cl", Features: dev.Features()})
	if err != nil {
		return err
	}
	prog, err := dev.Program(ctx, unit) // compiled once per machine: the cache keeps it
	if err != nil {
		return err
	}
	saxpy, err := prog.Kernel("saxpy")
	if err != nil {
		return err
	}

	const n = 1000
	xs, ys := make([]float32, n), make([]float32, n)
	for i := range xs {
		xs[i], ys[i] = float32(i), 1
	}
	x, err := runtime.Upload(ctx, dev, xs)
	if err != nil {
		return err
	}
	y, err := runtime.Upload(ctx, dev, ys)
	if err != nil {
		return err
	}

	// Arguments are checked against the parameters; 1000 items are rounded up to
	// whole groups of 64, which is why the kernel has an n. Launch does not wait.
	if err := dev.Stream().Launch(saxpy, runtime.Cover(n, 64), float32(2), x, y, uint32(n)); err != nil {
		return err
	}
	// Read waits for the work before it. If the kernel has failed, Read returns its error.
	if err := runtime.Read(ctx, y, ys); err != nil {
		return err
	}
	fmt.Printf("%s: y[0] = %g, y[1] = %g, y[999] = %g\n", dev, ys[0], ys[1], ys[n-1])
	return nil
}
