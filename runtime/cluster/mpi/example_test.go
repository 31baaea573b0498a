package mpi_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster/mpi"
)

// A process without the library that it asks for is told so, and may go on alone.
func ExampleInit() {
	job, err := mpi.Options{Library: "/opt/none/libmpi.so"}.Init(context.Background())
	if errors.Is(err, runtime.ErrUnsupported) {
		fmt.Println("no MPI: this process computes alone")
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(job.Rank(), "of", job.Size())
	if err := job.Close(); err != nil {
		fmt.Println(err)
	}
	// Output: no MPI: this process computes alone
}
