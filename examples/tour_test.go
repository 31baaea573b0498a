package examples_test

// The code of docs/tour.md. It runs on cpu:0 without a compiler, by kernels of the catalog.

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/managed"
	"github.com/concord-compute/concord/source"
)

func Example_devices() {
	ctx := context.Background()
	devices, err := runtime.Devices(ctx) // in the order of preference
	check(err)
	for _, d := range devices {
		if d.Backend == "cpu" {
			fmt.Println(d.ID, d.Kind)
		}
	}
	dev, err := runtime.Open(ctx, "cpu:0") // "auto": the first GPU, else the CPU
	check(err)
	defer dev.Close()
	fmt.Println("opened", dev)
	// Output:
	// cpu:0 cpu
	// cpu:reference cpu
	// opened cpu:0
}

func Example_parse() {
	unit, err := source.Parse(`
		kernel void saxpy(float a, global const float *x, global float *y, uint n) {
			uint i = get_global_id(0); // which item of the grid this one is
			if (i < n)
				y[i] += a * x[i];
		}`, source.Options{Name: "saxpy.cl"})
	check(err)
	for _, p := range unit.Kernels()[0].Params {
		fmt.Println(p.Name, p.Kind, p.Pointer)
	}
	// Output:
	// a float false
	// x float true
	// y float true
	// n uint false
}

func Example_launch() {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu:0")
	check(err)
	defer dev.Close()
	unit, err := kernels.Unit("saxpy", dev.Features(), source.Define{Name: "T", Value: "f32"})
	check(err)
	prog, err := dev.Program(ctx, unit) // from the kernel cache, or compiled
	check(err)
	saxpy, err := prog.Kernel("saxpy")
	check(err)

	x, err := runtime.Upload(ctx, dev, []float32{1, 2, 3})
	check(err)
	defer x.Close()
	y, err := runtime.Upload(ctx, dev, []float32{10, 20, 30})
	check(err)
	defer y.Close()
	// One item for each element; then the arguments, in the order of the parameters.
	check(dev.Stream().Launch(saxpy, runtime.Items(3), float32(2), x, y, uint64(3)))

	out := make([]float32, 3)
	check(runtime.Read(ctx, y, out)) // waits for the launch
	fmt.Println(out)
	// Output:
	// [12 24 36]
}

func Example_views() {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu:0")
	check(err)
	defer dev.Close()
	x, err := runtime.Upload(ctx, dev, []float32{1, 2, 3, 4})
	check(err)
	defer x.Close()

	middle, err := x.Slice(1, 2) // a view: the same memory
	check(err)
	defer middle.Close()
	check(dev.Stream().Fill(middle, float32(9)))

	out := make([]float32, 4)
	check(runtime.Read(ctx, x, out))
	fmt.Println(out, x)
	// Output:
	// [1 9 9 4] f32[4] on cpu:0
}

func Example_managed() {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu:0")
	check(err)
	defer dev.Close()
	mul := catalog(ctx, dev, "arith", "mul")

	x, err := managed.New(dev, runtime.F32, 3, managed.Options{})
	check(err)
	defer x.Close()
	y, err := managed.New(dev, runtime.F32, 3, managed.Options{})
	check(err)
	defer y.Close()
	check(managed.Write(ctx, x, []float32{1, 2, 3})) // the host's side is newer now
	check(managed.Launch(dev.Stream(), mul, runtime.Items(3), x, x, managed.Overwrite(y), uint64(3)))
	out := make([]float32, 3)
	check(managed.Read(ctx, y, out)) // fetches what the kernel wrote
	fmt.Println(out)
	// Output:
	// [1 4 9]
}

func Example_streams() {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu:0")
	check(err)
	defer dev.Close()
	add := catalog(ctx, dev, "arith", "add")
	var buffers [3]*runtime.Buffer
	for i := range buffers {
		buffers[i], err = runtime.Alloc[float32](dev, 1000)
		check(err)
		defer buffers[i].Close()
	}
	x, y, sum := buffers[0], buffers[1], buffers[2]

	first := dev.Stream()
	side, err := dev.NewStream()
	check(err)
	defer side.Close()

	check(side.Fill(y, float32(40))) // these two lines may run at the same time
	check(first.Fill(x, float32(2)))
	filled, err := side.Record()
	check(err)
	defer filled.Close()
	check(first.Wait(filled)) // the stream waits, this goroutine does not
	check(first.Launch(add, runtime.Items(1000), x, y, sum, uint64(1000)))

	out := make([]float32, 1000)
	check(runtime.Read(ctx, sum, out))
	fmt.Println(out[0], out[999])
	// Output:
	// 42 42
}

func Example_graph() {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu:0")
	check(err)
	defer dev.Close()
	saxpy := catalog(ctx, dev, "saxpy", "saxpy")
	x, err := runtime.Upload(ctx, dev, []float32{1, 2, 3})
	check(err)
	defer x.Close()
	y, err := runtime.Upload(ctx, dev, []float32{0, 0, 0})
	check(err)
	defer y.Close()
	z, err := runtime.Upload(ctx, dev, []float32{0, 0, 0})
	check(err)
	defer z.Close()

	graph, err := dev.Stream().Capture(func(s *runtime.Stream) error {
		return s.Launch(saxpy, runtime.Items(3), float32(1), x, y, uint64(3))
	}) // recorded and checked; nothing has run yet
	check(err)
	defer graph.Close()
	for range 10 {
		check(graph.Launch(dev.Stream()))
	}

	a := runtime.NewParam(float32(1))
	scaled, err := dev.Stream().Capture(func(s *runtime.Stream) error {
		return s.Launch(saxpy, runtime.Items(3), a, x, y, uint64(3))
	})
	check(err)
	defer scaled.Close()
	check(scaled.Launch(dev.Stream(), runtime.WithBuffer(y, z), runtime.WithValue(a, float32(5)))) // z += 5·x

	out := make([]float32, 3)
	check(runtime.Read(ctx, y, out))
	fmt.Println(out)
	check(runtime.Read(ctx, z, out))
	fmt.Println(out)
	// Output:
	// [10 20 30]
	// [5 10 15]
}

func Example_record() {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu:0")
	check(err)
	defer dev.Close()
	saxpy := catalog(ctx, dev, "saxpy", "saxpy")
	x, err := runtime.Upload(ctx, dev, []float32{1, 2, 3})
	check(err)
	defer x.Close()

	record, err := dev.Run(ctx, saxpy, runtime.Items(3), float32(1), x, x, uint64(3))
	check(err)
	fmt.Println(record.Backend, record.KernelID, "on a GPU:", record.GPUExecuted)
	fmt.Println("instead of another device:", dev.Fallback() != nil)
	// Output:
	// cpu saxpy on a GPU: false
	// instead of another device: false
}

func Example_errors() {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu:0")
	check(err)
	defer dev.Close()
	saxpy := catalog(ctx, dev, "saxpy", "saxpy")
	x, err := runtime.Upload(ctx, dev, []float32{1, 2, 3})
	check(err)
	defer x.Close()

	err = dev.Stream().Launch(saxpy, runtime.Items(3), 2, x, x, uint64(3)) // 2 is an int, a is a float
	fmt.Println(errors.Is(err, runtime.ErrInvalidArgument))
	fmt.Println(err)
	_, err = x.Slice(2, 5)
	fmt.Println(errors.Is(err, runtime.ErrBufferOverflow))
	// Output:
	// true
	// cpu:0: launch saxpy: argument 0 (float a): takes a float32, not int: invalid argument
	// true
}

// catalog returns a kernel of the catalog for float32.
func catalog(ctx context.Context, dev *runtime.Device, family, kernel string) *runtime.Kernel {
	unit, err := kernels.Unit(family, dev.Features(), source.Define{Name: "T", Value: "f32"})
	check(err)
	prog, err := dev.Program(ctx, unit)
	check(err)
	k, err := prog.Kernel(kernel)
	check(err)
	return k
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
