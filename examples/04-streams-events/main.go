// Streams and events: two queues that run side by side, and an event that makes one
// wait for a point in the other without stopping the program.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/source"
)

const text = `
kernel void fill(global int *x, int first) {
	x[get_global_id(0)] = first + (int)get_global_id(0);
}
kernel void add(global const int *x, global const int *y, global int *sum) {
	size_t i = get_global_id(0);
	sum[i] = x[i] + y[i];
}`

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
	unit, err := source.Parse(text, source.Options{Name: "streams.cl", Features: dev.Features()})
	if err != nil {
		return err
	}
	prog, err := dev.Program(ctx, unit)
	if err != nil {
		return err
	}
	fill, err := prog.Kernel("fill")
	if err != nil {
		return err
	}
	add, err := prog.Kernel("add")
	if err != nil {
		return err
	}

	const n = 4096
	var buffers [3]*runtime.Buffer
	for i := range buffers {
		if buffers[i], err = runtime.Alloc[int32](dev, n); err != nil {
			return err
		}
	}
	x, y, sum := buffers[0], buffers[1], buffers[2]

	first := dev.Stream() // the device's own stream
	side, err := dev.NewStream()
	if err != nil {
		return err
	}
	defer side.Close()

	start, err := side.Record()
	if err != nil {
		return err
	}
	defer start.Close()
	if err := side.Launch(fill, runtime.Items(n), y, int32(1000)); err != nil { // runs side by side with the next launch
		return err
	}
	if err := first.Launch(fill, runtime.Items(n), x, int32(0)); err != nil {
		return err
	}
	filled, err := side.Record() // the point at which y is filled
	if err != nil {
		return err
	}
	defer filled.Close()
	if err := first.Wait(filled); err != nil { // the stream waits, this goroutine does not
		return err
	}
	if err := first.Launch(add, runtime.Items(n), x, y, sum); err != nil {
		return err
	}

	out := make([]int32, n)
	if err := runtime.Read(ctx, sum, out); err != nil {
		return err
	}
	took, err := filled.Elapsed(start)
	if err != nil {
		return err
	}
	fmt.Printf("%s: sum[0] = %d, sum[%d] = %d; the side stream's work was timed: %t\n", dev, out[0], n-1, out[n-1],
		took >= 0)
	return nil
}
