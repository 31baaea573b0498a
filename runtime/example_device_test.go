package runtime_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
)

// A kernel of the catalog on two arrays: y = 2x + y.
func Example() {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu:0") // "auto" opens the first GPU, else the CPU
	check(err)
	defer dev.Close()
	unit, err := kernels.Unit("saxpy", dev.Features(), source.Define{Name: "T", Value: "f32"})
	check(err)
	prog, err := dev.Program(ctx, unit)
	check(err)
	saxpy, err := prog.Kernel("saxpy")
	check(err)
	x, err := runtime.Upload(ctx, dev, []float32{1, 2, 3})
	check(err)
	defer x.Close()
	y, err := runtime.Upload(ctx, dev, []float32{10, 20, 30})
	check(err)
	defer y.Close()
	check(dev.Stream().Launch(saxpy, runtime.Items(3), float32(2), x, y, uint64(3)))
	out := make([]float32, 3)
	check(runtime.Read(ctx, y, out))
	fmt.Println(out)
	// Output:
	// [12 24 36]
}

// A session has a configuration of its own. A device that is not there is an error,
// never another device.
func ExampleSession() {
	ctx := context.Background()
	session, err := runtime.New(runtime.Config{CacheDir: "off", MemoryLimit: 64 << 20})
	check(err)
	defer session.Close()
	dev, err := session.Open(ctx, "cpu:0")
	check(err)
	_, err = runtime.Alloc[float32](dev, 32<<20)
	fmt.Println(errors.Is(err, runtime.ErrBudget))
	_, err = session.Open(ctx, "cpu:7")
	fmt.Println(errors.Is(err, runtime.ErrDeviceIndex))
	// Output:
	// true
	// true
}

// One stream waits for a point in another, while the program goes on.
func ExampleStream_Wait() {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu:0")
	check(err)
	defer dev.Close()
	side, err := dev.NewStream()
	check(err)
	defer side.Close()
	x, err := runtime.Alloc[int32](dev, 4)
	check(err)
	defer x.Close()
	y, err := runtime.Alloc[int32](dev, 4)
	check(err)
	defer y.Close()

	check(side.Fill(x, int32(7)))
	filled, err := side.Record()
	check(err)
	defer filled.Close()
	check(dev.Stream().Wait(filled))
	check(dev.Stream().Copy(y, x))
	out := make([]int32, 4)
	check(runtime.Read(ctx, y, out))
	fmt.Println(out)
	// Output:
	// [7 7 7 7]
}

// A record tells where a kernel ran.
func ExampleDevice_Run() {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu:0")
	check(err)
	defer dev.Close()
	unit, err := kernels.Unit("fill", dev.Features(), source.Define{Name: "T", Value: "f32"})
	check(err)
	prog, err := dev.Program(ctx, unit)
	check(err)
	fmt.Println(prog.Built().From, unit.Kernels()[0].Name)
	fill, err := prog.Kernel("fill")
	check(err)
	x, err := runtime.Alloc[float32](dev, 4)
	check(err)
	defer x.Close()
	record, err := dev.Run(ctx, fill, runtime.Items(4), x, float32(1), uint64(4))
	check(err)
	fmt.Println(record.Backend, record.KernelID, record.GPUExecuted, record.Fallback)
	// Output:
	// native fill
	// cpu fill false false
}

// Memory of closed buffers is kept for the next ones, until it is given back.
func ExampleDevice_Memory() {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu:0")
	check(err)
	defer dev.Close()
	_, err = dev.Memory().Trim(0)
	check(err)
	x, err := runtime.Alloc[float32](dev, 1<<20)
	check(err)
	check(x.Close())
	fmt.Println(dev.Stats().Memory.Cached >= 4<<20)
	freed, err := dev.Memory().Trim(0)
	check(err)
	fmt.Println(freed >= 4<<20, dev.Stats().Memory.Cached)
	// Output:
	// true
	// true 0
}
