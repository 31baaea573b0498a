// Reduction: a sum in two launches of one kernel. The items of a group add up their
// part in local memory, where a barrier keeps them in step; the second launch adds up
// the groups' results.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/source"
)

const text = `
// out[group] = the sum of x[0..n) over the items of each group, which stride over x
// together. The group's size is a power of two.
kernel void sum(global const float *x, uint n, global float *out, local float *part) {
	uint me = get_local_id(0);
	float s = 0;
	for (uint i = get_global_id(0); i < n; i += get_global_size(0))
		s += x[i];
	part[me] = s;
	for (uint half_size = get_local_size(0) / 2; half_size > 0; half_size /= 2) {
		barrier(CLK_LOCAL_MEM_FENCE);
		if (me < half_size)
			part[me] += part[me + half_size];
	}
	if (me == 0)
		out[get_group_id(0)] = part[0];
}`

const (
	n      = 1_000_000
	group  = 128
	groups = 64
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	dev, err := runtime.Open(ctx, "auto")
	if err != nil {
		return err
	}
	defer dev.Close()
	unit, err := source.Parse(text, source.Options{Name: "sum.cl", Features: dev.Features()})
	if err != nil {
		return err
	}
	prog, err := dev.Program(ctx, unit)
	if err != nil {
		return err
	}
	sum, err := prog.Kernel("sum")
	if err != nil {
		return err
	}

	xs := make([]float32, n)
	for i := range xs {
		xs[i] = float32(i % 10) // every partial sum is a whole number that a float holds exactly
	}
	x, err := runtime.Upload(ctx, dev, xs)
	if err != nil {
		return err
	}
	partial, err := runtime.Alloc[float32](dev, groups)
	if err != nil {
		return err
	}
	total, err := runtime.Alloc[float32](dev, 1)
	if err != nil {
		return err
	}

	// Work on one stream is in order: the second launch sees what the first wrote.
	// Local memory is given as its size in bytes.
	s, local := dev.Stream(), runtime.Local(group*4)
	if err := s.Launch(sum, runtime.Items(groups*group).InGroups(group), x, uint32(n), partial, local); err != nil {
		return err
	}
	if err := s.Launch(sum, runtime.Items(group).InGroups(group), partial, uint32(groups), total, local); err != nil {
		return err
	}
	var result [1]float32
	if err := runtime.Read(ctx, total, result[:]); err != nil {
		return err
	}
	fmt.Printf("%s: the sum of %d numbers is %.0f\n", dev, n, result[0])
	return nil
}
