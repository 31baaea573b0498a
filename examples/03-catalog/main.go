// Catalog: a matrix product with the catalog's gemm, specialized by definitions. The
// cpu backend runs an implementation of its own for it and needs no compiler; other
// devices compile the portable text.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/source"
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

	// The families, their kernels and definitions: kernels.Families. The parameters
	// are described at the top of each source: kernels.Sources.
	unit, err := kernels.Unit("gemm", dev.Features(), source.Define{Name: "TRANS_B", Value: "1"})
	if err != nil {
		return err
	}
	prog, err := dev.Program(ctx, unit)
	if err != nil {
		return err
	}
	gemm, err := prog.Kernel("gemm")
	if err != nil {
		return err
	}

	// C = A·Bᵀ, with A 2×3 and B 4×3, in rows.
	const m, n, k = 2, 4, 3
	a, err := runtime.Upload(ctx, dev, []float32{1, 2, 3, 4, 5, 6})
	if err != nil {
		return err
	}
	b, err := runtime.Upload(ctx, dev, []float32{1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1})
	if err != nil {
		return err
	}
	c, err := runtime.Alloc[float32](dev, m*n)
	if err != nil {
		return err
	}
	items, group, err := kernels.Geometry(unit, "gemm", m, n)
	if err != nil {
		return err
	}
	err = dev.Stream().Launch(gemm, runtime.Grid{Items: items, Group: group},
		uint32(m), uint32(n), uint32(k), float32(1), a, uint32(k), b, uint32(k), float32(0), c, uint32(n))
	if err != nil {
		return err
	}
	var out [m * n]float32
	if err := runtime.Read(ctx, c, out[:]); err != nil {
		return err
	}
	fmt.Printf("%s: %v\n%*s  %v\n", dev, out[:n], len(dev.String()), "", out[n:])
	return nil
}
