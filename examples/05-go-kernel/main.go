// Go kernel: the cpu backend runs a kernel as a Go function that the program brings,
// where there is no C++ compiler or where Go is the better language. Every other device
// runs the portable text, which also types the parameters.
package main

import (
	"context"
	"fmt"
	"log"
	"math/bits"

	"github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/source"
)

const text = `
// out[i] = the number of ones in x[i]
kernel void count_ones(global const uint *x, global uint *out, uint n) {
	uint i = get_global_id(0);
	if (i < n)
		out[i] = popcount(x[i]);
}`

// id names the program. It is how the cpu backend finds the function.
const id = "example-bits"

func init() { cpu.Register(id, "count_ones", countOnes) }

// countOnes is called once per launch, not once per item. It reads its arguments by
// position; Parallel calls the function for pieces of [0, n) on all threads.
func countOnes(c *cpu.Call) error {
	x, out, n := c.U32(0), c.U32(1), int(c.Int(2))
	return c.Parallel(n, 1024, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			out[i] = uint32(bits.OnesCount32(x[i]))
		}
	})
}

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
	unit, err := source.Parse(text, source.Options{Name: "bits.cl", Features: dev.Features(), Family: id})
	if err != nil {
		return err
	}
	prog, err := dev.Program(ctx, unit)
	if err != nil {
		return err
	}
	ones, err := prog.Kernel("count_ones")
	if err != nil {
		return err
	}

	xs := []uint32{0, 1, 2, 3, 255, 1 << 31, 0xffffffff}
	x, err := runtime.Upload(ctx, dev, xs)
	if err != nil {
		return err
	}
	out, err := runtime.Alloc[uint32](dev, len(xs))
	if err != nil {
		return err
	}
	if err := dev.Stream().Launch(ones, runtime.Cover(len(xs), 64), x, out, uint32(len(xs))); err != nil {
		return err
	}
	counts := make([]uint32, len(xs))
	if err := runtime.Read(ctx, out, counts); err != nil {
		return err
	}
	fmt.Printf("%s: %v\n", dev, counts)
	return nil
}
