// Tuning at first use: what a program computes is measured beside it, for the next time that it runs.
//
//	go run ./examples/11-tuning     multiplies matrices, and ends: what was not found until then is looked for again
//	go run ./examples/11-tuning 3m  multiplies until so much time is over, or something was found
//
// With CONCORD_TUNE=first a program is tuned that leaves Config.Tune empty; the call of FirstUse it needs in any case.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/runtime/tune"
)

func main() {
	tune.FirstUse() // the process that measures is this program, too: it does not return from here
	if err := run(context.Background(), os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string) error {
	var limit time.Duration
	if len(args) > 0 {
		var err error
		if limit, err = time.ParseDuration(args[0]); err != nil {
			return err
		}
	}
	session, err := runtime.New(runtime.Config{Tune: "first"})
	if err != nil {
		return err
	}
	defer session.Close() // ends the tuning
	dev, err := session.Open(ctx, "auto")
	if err != nil {
		return err
	}

	last, err := multiply(ctx, dev)
	for start := time.Now(); err == nil && time.Since(start) < limit && dev.TuneTarget().Tuned() == nil; {
		time.Sleep(100 * time.Millisecond) // a program does something else here
		last, err = multiply(ctx, dev)
	}
	if err != nil {
		return err
	}
	values := "the defaults"
	if table := dev.Choices().Table(); table != nil && len(table.Values) > 0 {
		values = table.String()
	}
	fmt.Printf("%s: the last of 65536 sums is %v, with %s\n", dev, last, values)
	return nil
}

// multiply returns the last number of the product of two matrices of 256 rows and columns.
func multiply(ctx context.Context, dev *runtime.Device) (float32, error) {
	const n = 256
	unit, err := kernels.Unit("gemm", dev.Features())
	if err != nil {
		return 0, err
	}
	program, err := dev.Program(ctx, unit)
	if err != nil {
		return 0, err
	}
	defer program.Close()
	gemm, err := program.Kernel("gemm")
	if err != nil {
		return 0, err
	}
	var x [3]*runtime.Buffer
	for i := range x {
		if x[i], err = runtime.Alloc[float32](dev, n*n); err != nil {
			return 0, err
		}
		defer x[i].Close()
		if err := dev.Stream().Fill(x[i], float32(i)); err != nil {
			return 0, err
		}
	}
	items, group, err := kernels.Geometry(unit, "gemm", n, n)
	if err != nil {
		return 0, err
	}
	if err := dev.Stream().Launch(gemm, runtime.Grid{Items: items, Group: group}, uint32(n), uint32(n), uint32(n),
		float32(1), x[1], uint32(n), x[2], uint32(n), float32(0), x[0], uint32(n)); err != nil {
		return 0, err
	}
	result := make([]float32, n*n)
	if err := runtime.Read(ctx, x[0], result); err != nil {
		return 0, err
	}
	return result[n*n-1], nil
}
