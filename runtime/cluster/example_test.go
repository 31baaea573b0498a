package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/runtime/cluster"
)

// Three members of one device, each with numbers of its own, compute their mean. With several devices
// cluster.Open(ctx, "cuda:*") takes the place of Virtual.
func Example() {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu:0")
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	g, err := cluster.Virtual(dev, 3)
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()
	means := make([][]float32, g.Size())
	err = g.Do(ctx, func(ctx context.Context, m *cluster.Member) error {
		x, err := runtime.Upload(ctx, m.Device(), []float32{float32(m.Rank()), 10, -1})
		if err != nil {
			return err
		}
		defer x.Close()
		if err := m.AllReduce(ctx, nil, cluster.Mean, x, x); err != nil {
			return err
		}
		means[m.Rank()] = make([]float32, x.Len())
		return runtime.Read(ctx, x, means[m.Rank()])
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(means)
	// Output: [[1 10 -1] [1 10 -1] [1 10 -1]]
}

// A device is lost in the middle of a unit of work. With others, one of them would do the whole unit; this one gets
// work again after a rest.
func ExampleRunner() {
	ctx := context.Background()
	r, err := cluster.NewRunner(ctx, "cpu:0")
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	var sum float32
	lost := false
	unit := func(ctx context.Context, dev *runtime.Device) error {
		x, err := runtime.Upload(ctx, dev, []float32{1, 2, 3})
		if err != nil {
			return err
		}
		defer x.Close()
		if !lost { // as it may happen
			lost = true
			if err := dev.Abandon(nil); err != nil {
				return err
			}
		}
		got := make([]float32, x.Len())
		if err := runtime.Read(ctx, x, got); err != nil {
			return err
		}
		sum = got[0] + got[1] + got[2]
		return nil
	}
	err = r.Run(ctx, "sum", unit)
	fmt.Println(errors.Is(err, runtime.ErrDeviceLost)) // there is no other device than the one
	if err := r.Resume("cpu:0"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Run(ctx, "sum", unit), sum, r.Devices()[0].State)
	// Output:
	// true
	// <nil> 6 healthy
}

// A problem goes to the device on which it will finish first; before anything is measured, by its size.
func ExampleRouter() {
	ctx := context.Background()
	near, err := runtime.Open(ctx, "cpu:0")
	if err != nil {
		log.Fatal(err)
	}
	defer near.Close()
	far, err := runtime.Open(ctx, "cpu:reference") // or "cuda:0"
	if err != nil {
		log.Fatal(err)
	}
	defer far.Close()
	r, err := cluster.NewRouter(near, far)
	if err != nil {
		log.Fatal(err)
	}
	for _, n := range []int{10, 100_000} {
		d, err := r.Run(ctx, "double", n, func(ctx context.Context, dev *runtime.Device) error {
			x, err := runtime.Upload(ctx, dev, make([]float32, n))
			if err != nil {
				return err
			}
			return x.Close() // after the work with x
		})
		fmt.Println(d, err)
	}
	// Output:
	// cpu:0: size 10 is less than 1024, not measured yet <nil>
	// cpu:reference: size 100000 is at least 1024, not measured yet <nil>
}

// Ten rows are divided between a device and one that is three times as fast.
func ExampleWeighted() {
	p, err := cluster.Weighted(10, []float64{1, 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, part := range p {
		fmt.Printf("device %d: rows %d to %d\n", i, part.First, part.End()-1)
	}
	fmt.Println("row 4 is on device", p.Of(4))
	// Output:
	// device 0: rows 0 to 2
	// device 1: rows 3 to 9
	// row 4 is on device 1
}
