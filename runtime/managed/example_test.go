package managed_test

import (
	"context"
	"fmt"

	_ "github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/managed"
	"github.com/concord-compute/concord/source"
)

// A buffer with two sides needs no copies in the program: a launch uploads what the
// host wrote, Read downloads what the kernel wrote.
func ExampleNew() {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu:0")
	check(err)
	defer dev.Close()
	x, err := managed.New(dev, runtime.F32, 4, managed.Options{})
	check(err)
	defer x.Close()

	check(managed.Write(ctx, x, []float32{1, 2, 3, 4}))
	fmt.Println(x.Dirty())
	check(x.ToDevice(ctx)) // as a launch does
	fmt.Println(x.Dirty())

	// Calls that take no managed buffer take its device side.
	side, err := x.DeviceSide(dev.Stream(), runtime.ForWriting)
	check(err)
	middle, err := side.Slice(1, 2)
	check(err)
	check(dev.Stream().Fill(middle, float32(9)))
	fmt.Println(x.Dirty())

	out := make([]float32, 4)
	check(managed.Read(ctx, x, out))
	fmt.Println(out)
	// Output:
	// true false
	// false false
	// false true
	// [1 9 9 4]
}

// A step that a device cannot do is done on the host, with Map. The next launch uses its result.
func ExampleMap() {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu:0")
	check(err)
	defer dev.Close()
	y, err := managed.New(dev, runtime.I32, 3, managed.Options{})
	check(err)
	defer y.Close()

	window, err := managed.Map[int32](ctx, y, runtime.ForOverwriting)
	check(err)
	for i := range window {
		window[i] = int32(i * i)
	}
	check(y.Unmap())
	host, device := y.Dirty()
	fmt.Println("newer on the host:", host, "on the device:", device)
	// Output:
	// newer on the host: true on the device: false
}

// Overwrite says that a kernel replaces all of a buffer, so that nothing is uploaded.
func ExampleOverwrite() {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu:0")
	check(err)
	defer dev.Close()
	unit, err := kernels.Unit("arith", dev.Features(), source.Define{Name: "T", Value: "f32"})
	check(err)
	prog, err := dev.Program(ctx, unit)
	check(err)
	mul, err := prog.Kernel("mul")
	check(err)
	x, err := managed.New(dev, runtime.F32, 4, managed.Options{})
	check(err)
	defer x.Close()
	y, err := managed.New(dev, runtime.F32, 4, managed.Options{})
	check(err)
	defer y.Close()

	check(managed.Write(ctx, x, []float32{1, 2, 3, 4}))
	check(managed.Launch(dev.Stream(), mul, runtime.Items(4), x, x, managed.Overwrite(y), uint64(4)))
	out := make([]float32, 4)
	check(managed.Read(ctx, y, out))
	fmt.Println(out)
	// Output:
	// [1 4 9 16]
}

// The buffers of a step are freed together.
func ExampleArena() {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu:0")
	check(err)
	defer dev.Close()
	arena, err := managed.NewArena(dev, dev.Stream())
	check(err)
	defer arena.Close()
	for step := range 2 {
		var sum float32
		for i := range 3 {
			x, err := arena.Alloc(runtime.F32, 100)
			check(err)
			check(dev.Stream().Fill(x, float32(i)))
			one := make([]float32, 1)
			check(runtime.Read(ctx, x, one))
			sum += one[0]
		}
		fmt.Println("step", step, "sum", sum, "blocks", dev.Stats().LiveBuffers)
		check(arena.Reset())
	}
	// Output:
	// step 0 sum 3 blocks 1
	// step 1 sum 3 blocks 1
}

// Everything in a batch is closed with it, the last first.
func ExampleBatch() {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu:0")
	check(err)
	defer dev.Close()
	batch := managed.NewBatch(dev)
	_, err = batch.Alloc(runtime.F32, 250)
	check(err)
	_, err = batch.AddHost(ctx, []byte{1, 0, 2, 0}, 2, runtime.U16)
	check(err)
	fmt.Println(batch.Len(), "buffers,", dev.Stats().Live, "bytes")
	check(batch.Close())
	fmt.Println(dev.Stats().Live, "bytes")
	// Output:
	// 2 buffers, 1004 bytes
	// 0 bytes
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
