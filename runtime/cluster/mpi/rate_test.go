//go:build unix

package mpi

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"
	"unsafe"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
)

// rate measures ring all-reduces of 64 MiB, and in turn with them MPI_Allreduce of the same library.
func rate(ctx context.Context) error {
	const n, bytes = 16 << 20, 64 << 20
	rounds, _ := strconv.Atoi(os.Getenv("MPI_TEST_ROUNDS"))
	rounds = max(rounds, 5)
	dev, err := runtime.Open(ctx, "cpu:0")
	if err != nil {
		return err
	}
	j, err := Init(ctx)
	if err != nil {
		return err
	}
	g, err := cluster.Options{Algorithm: cluster.Ring}.Join(ctx, dev, j.Rank(), j.Size(), j)
	if err != nil {
		return err
	}
	m := g.Members()[0]
	src, err := runtime.Alloc[float32](dev, n)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := runtime.Alloc[float32](dev, n)
	if err != nil {
		return err
	}
	defer dst.Close()
	in, err := runtime.HostBytes(src)
	if err != nil {
		return err
	}
	out, err := runtime.HostBytes(dst)
	if err != nil {
		return err
	}
	elements(in, runtime.F32, j.Rank())
	ring := func() error {
		if err := m.AllReduce(ctx, nil, cluster.Sum, dst, src); err != nil {
			return err
		}
		return m.Stream().Sync(ctx)
	}
	library := func() error {
		j.mu.Lock() // the news wait: MPI_Allreduce does not give way
		defer j.mu.Unlock()
		return j.lib.call(allreduce, address(unsafe.Pointer(&in[0])), address(unsafe.Pointer(&out[0])), n, j.lib.float,
			j.lib.sum, j.mem.data)
	}
	times := [2][]time.Duration{}
	for round := range rounds + 1 {
		for i, f := range []func() error{ring, library} {
			if err := m.Barrier(ctx, nil); err != nil {
				return err
			}
			begin := time.Now()
			if err := f(); err != nil {
				return err
			}
			if round > 0 { // the first is for building and for touching memory
				times[i] = append(times[i], time.Since(begin))
			}
		}
	}
	slices.Sort(times[0])
	slices.Sort(times[1])
	ours, theirs := times[0][rounds/2], times[1][rounds/2]
	bus := float64(2*bytes) * float64(j.Size()-1) / float64(j.Size()) / 1e9
	if j.Rank() == 0 {
		fmt.Printf("%s, %d processes, 64 MiB, %d rounds: ring %v (%.2f GB/s), MPI_Allreduce %v (%.2f GB/s); ratio %.2f\n",
			j.Library(), j.Size(), rounds, ours.Round(10*time.Microsecond), bus/ours.Seconds(),
			theirs.Round(10*time.Microsecond), bus/theirs.Seconds(), float64(theirs)/float64(ours))
	}
	return g.Close()
}
