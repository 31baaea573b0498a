// Profiling: two streams work side by side, an observer keeps what happened and when, and a page shows it.
//
//	go run ./examples/06-profile            what took the time
//	go run ./examples/06-profile page.html  and a page with a timeline
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/runtime/profile"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, pages []string) error {
	dev, err := runtime.Open(ctx, "auto")
	if err != nil {
		return err
	}
	defer dev.Close()

	var recording profile.Recording
	stop := dev.Session().Observe(&recording)
	if err := work(ctx, dev); err != nil {
		return err
	}
	stop()

	trace := profile.Trace{}
	trace.Events, trace.Dropped = recording.Events()
	launches, flops := 0, 0.0
	for _, e := range trace.Events {
		if e.Kind == profile.Launch {
			launches++
			flops += e.Flops // of kernels of the catalog it is known
		}
	}
	fmt.Printf("%s: %d launches, %.0f operations\n", dev, launches, flops)

	summary := profile.Summarize(trace)
	fmt.Fprint(os.Stderr, summary)
	if len(pages) == 0 {
		return nil
	}
	page, err := os.Create(pages[0])
	if err != nil {
		return err
	}
	defer page.Close()
	if err := profile.WriteHTML(page, "06-profile", trace.Events, summary); err != nil {
		return err
	}
	return page.Close()
}

// work multiplies matrices on one stream, and normalizes rows on another one.
func work(ctx context.Context, dev *runtime.Device) error {
	const n = 256
	multiply, err := kernel(ctx, dev, "gemm", "gemm")
	if err != nil {
		return err
	}
	softmax, err := kernel(ctx, dev, "softmax", "softmax")
	if err != nil {
		return err
	}
	var x [5]*runtime.Buffer
	for i := range x {
		if x[i], err = runtime.Alloc[float32](dev, n*n); err != nil {
			return err
		}
		defer x[i].Close()
		if err := dev.Stream().Fill(x[i], float32(1)); err != nil {
			return err
		}
	}
	if err := dev.Sync(ctx); err != nil {
		return err
	}
	side, err := dev.NewStream()
	if err != nil {
		return err
	}
	defer side.Close()

	for step := range 5 {
		_, end := dev.Session().Region(ctx, fmt.Sprintf("step %d", step))
		for range 2 {
			if err := launch(dev.Stream(), multiply, []int{n, n}, uint32(n), uint32(n), uint32(n), float32(1), x[0], uint32(n),
				x[1], uint32(n),
				float32(0), x[2], uint32(n)); err != nil {
				return err
			}
			if err := launch(side, softmax, []int{n}, x[3], x[4], uint32(n), uint32(n)); err != nil {
				return err
			}
		}
		if err := dev.Sync(ctx); err != nil { // waits for all streams
			return err
		}
		end()
	}
	return nil
}

func kernel(ctx context.Context, dev *runtime.Device, family, name string) (*runtime.Kernel, error) {
	unit, err := kernels.Unit(family, dev.Features())
	if err != nil {
		return nil, err
	}
	program, err := dev.Program(ctx, unit)
	if err != nil {
		return nil, err
	}
	return program.Kernel(name)
}

// launch queues a kernel of the catalog, with the grid for results of the given sizes.
func launch(s *runtime.Stream, k *runtime.Kernel, sizes []int, args ...any) error {
	items, group, err := kernels.Geometry(k.Unit(), k.Name(), sizes...)
	if err != nil {
		return err
	}
	return s.Launch(k, runtime.Grid{Items: items, Group: group}, args...)
}
