package validate_test

import (
	"context"
	"fmt"
	"log"

	_ "github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/parity"
	"github.com/concord-compute/concord/runtime/validate"
)

// One in a hundred launches is checked while the program goes on.
func Example() {
	ctx := context.Background()
	session, err := runtime.New(runtime.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	v, err := validate.Start(session, validate.Options{
		Every:  100,
		Report: func(d validate.Difference) { log.Print(d) },
	})
	if err != nil {
		log.Fatal(err)
	}
	dev, err := session.Open(ctx, "cpu:0")
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	k, program, err := parity.Kernel(ctx, dev, "saxpy", "saxpy", runtime.ProgramOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer program.Close()
	x, err := runtime.Upload(ctx, dev, []float32{1, 2, 3})
	if err != nil {
		log.Fatal(err)
	}
	defer x.Close()
	y, err := runtime.Upload(ctx, dev, []float32{4, 5, 6})
	if err != nil {
		log.Fatal(err)
	}
	defer y.Close()
	for range 1000 {
		if err := dev.Stream().Launch(k, runtime.Items(64), float32(2), x, y, uint64(3)); err != nil {
			log.Fatal(err)
		}
	}
	if err := v.Close(); err != nil {
		log.Fatal(err)
	}
	s := v.Stats()
	fmt.Println(s.Launches, "launches,", s.Checked > 0, s.Differences)
	// Output:
	// 1000 launches, true 0
}
