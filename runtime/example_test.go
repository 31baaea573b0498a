package runtime_test

import (
	"context"
	"fmt"
	"log"

	_ "github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
)

// A step that is repeated is recorded once. Its data changes between launches, in
// the same buffers; its arguments change with an update.
func ExampleStream_Capture() {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu:0")
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
	y, err := runtime.Alloc[float32](dev, 3)
	check(err)
	step := func(a float32) func(s *runtime.Stream) error {
		return func(s *runtime.Stream) error {
			if err := s.Fill(y, float32(100)); err != nil {
				return err
			}
			return s.Launch(saxpy, runtime.Items(3), a, x, y, uint64(3))
		}
	}

	graph, err := dev.Stream().Capture(step(10)) // nothing runs yet
	check(err)
	defer graph.Close()
	out := make([]float32, 3)
	for _, in := range [][]float32{{1, 2, 3}, {4, 5, 6}} {
		check(runtime.Write(ctx, x, in))
		check(graph.Launch(dev.Stream()))
		check(runtime.Read(ctx, y, out))
		fmt.Println(out)
	}
	check(graph.Update(step(-10)))
	check(graph.Launch(dev.Stream()))
	check(runtime.Read(ctx, y, out))
	fmt.Println(out)
	// Output:
	// [110 120 130]
	// [140 150 160]
	// [60 50 40]
}

// The devices may be of different backends: "cuda:0" and "cpu:0".
func ExampleCopyAcross() {
	ctx := context.Background()
	here, err := runtime.Open(ctx, "cpu:0")
	check(err)
	defer here.Close()
	there, err := runtime.Open(ctx, "cpu:reference")
	check(err)
	defer there.Close()
	src, err := runtime.Upload(ctx, here, []float64{1, 2, 3, 4})
	check(err)
	dst, err := runtime.Alloc[float64](there, 4)
	check(err)
	check(there.Stream().Fill(dst, 9.5))

	middle, err := src.Slice(1, 2)
	check(err)
	check(runtime.CopyAcross(ctx, dst, middle))
	out := make([]float64, 4)
	check(runtime.Read(ctx, dst, out))
	fmt.Println(out, "on", there)
	// Output:
	// [2 3 9.5 9.5] on cpu:reference
}

// Pinned memory lets the host read and write data in place, while the device copies from and to it.
func ExampleHost() {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu:0")
	check(err)
	defer dev.Close()
	pinned, err := dev.AllocKind(runtime.Pinned, runtime.F32, 4)
	check(err)
	defer pinned.Close() // and no use of view after it
	onDevice, err := runtime.Alloc[float32](dev, 4)
	check(err)

	view, err := runtime.Host[float32](pinned)
	check(err)
	for i := range view {
		view[i] = float32(i * i)
	}
	s := dev.Stream()
	check(s.Copy(onDevice, pinned)) // returns at once
	check(s.Copy(pinned, onDevice))
	check(s.Sync(ctx)) // from here on the program may use view again
	fmt.Println(view)
	// Output:
	// [0 1 4 9]
}

// A program that learns types only at run time moves bytes, as a framework does.
func ExampleHostBytes() {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu:0")
	check(err)
	defer dev.Close()
	t := runtime.I16 // from a file's header, say
	pinned, err := dev.AllocKind(runtime.Pinned, t, 3)
	check(err)
	defer pinned.Close() // and no use of view after it
	view, err := runtime.HostBytes(pinned)
	check(err)
	copy(view, []byte{1, 0, 2, 0, 3, 0})

	b, err := dev.Alloc(t, 3)
	check(err)
	s := dev.Stream()
	check(s.Copy(b, pinned))
	last := make([]byte, t.Size())
	check(s.Read(ctx, b, int64(2*t.Size()), last)) // any part of any buffer, as bytes
	fmt.Println(len(view), last)
	// Output:
	// 6 [3 0]
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
