package verify

// The step that multiplies with weights in few bits, beside sums in float64.

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/concord-compute/concord/quant"
	"github.com/concord-compute/concord/runtime"
)

// stepQuantized multiplies with weights of each format that products read.
func stepQuantized(ctx context.Context, e *Env, dev *runtime.Device) error {
	const outputs, inputs = 192, 512
	r := rand.New(rand.NewPCG(33, 1))
	some, ternary := make([]float32, outputs*inputs), make([]float32, outputs*inputs)
	for i := range some {
		some[i] = float32(r.NormFloat64())
		ternary[i] = 0.25 * float32(r.IntN(3)-1)
	}
	for _, f := range quant.Formats() {
		weights := ternary
		if f.ProductBlock() == 0 && !slices.Contains([]quant.Format{quant.TQ20, quant.TQ10, quant.I2SM1}, f) {
			continue
		}
		if f.ProductBlock() != 0 {
			weights = some
		}
		for _, rows := range []int{1, 5, 33} {
			x := make([]float32, rows*inputs)
			for i := range x {
				x[i] = float32(r.NormFloat64())
			}
			e.check(ctx, fmt.Sprintf("%v, %d × %d by %d", f, outputs, inputs, rows), func(ctx context.Context) error {
				w, err := quant.Pack(quant.Layout{Format: f, Rows: outputs, Cols: inputs}, weights)
				if err != nil {
					return err
				}
				got, err := multiply(ctx, dev, w, x, rows)
				if err != nil {
					return err
				}
				return product(got, w, x, rows)
			})
		}
	}
	return nil
}

// multiply computes x·wᵀ on a device.
func multiply(ctx context.Context, dev *runtime.Device, w quant.Matrix, x []float32, rows int) ([]float32, error) {
	p, err := quant.Prepare(ctx, dev, w)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	in, err := runtime.Upload(ctx, dev, x)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	got := make([]float32, rows*w.Rows)
	out, err := runtime.Upload(ctx, dev, got)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	if err := p.Mul(out, in, rows); err != nil {
		return nil, err
	}
	return got, runtime.Read(ctx, out, got)
}

// product compares with the sum of products in float64, with activations that are rounded to bytes as quant's
// documentation says: block by block for weights in blocks, and row by row for ternary ones.
func product(got []float32, w quant.Matrix, x []float32, rows int) error {
	cols := len(x) / rows
	numbers := make([]float32, w.Rows*w.Cols)
	if err := quant.Decode(numbers, w); err != nil {
		return err
	}
	piece := w.Format.ProductBlock()
	if piece == 0 {
		piece = cols
	}
	rounded := make([]float64, len(x))
	for at := 0; at < len(x); at += piece {
		most := float32(1e-5)
		for _, v := range x[at : at+piece] {
			most = max(most, float32(math.Abs(float64(v))))
		}
		for i, v := range x[at : at+piece] {
			rounded[at+i] = math.RoundToEven(float64(v*(127/most))) * float64(most) / 127
		}
	}
	// (2·blocks + 9)·2⁻²⁴ of the magnitudes is the documented bound; decoded weights and the scales here are rounded, too.
	bound := float64(2*(cols/32)+24) * 0x1p-24
	for i := range rows {
		for j := range w.Rows {
			want, size := 0.0, 0.0
			for c := range cols {
				term := float64(numbers[j*w.Cols+c]) * rounded[i*cols+c]
				want, size = want+term, size+math.Abs(term)
			}
			if g := float64(got[i*w.Rows+j]); !(math.Abs(g-want) <= bound*size) {
				return fmt.Errorf("row %d, output %d is %v, not %v: off by %.3g, and the bound is %.3g", i, j, g, want,
					math.Abs(g-want), bound*size)
			}
		}
	}
	return nil
}
