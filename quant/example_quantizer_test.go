package quant_test

import (
	"context"
	"fmt"
	"log"

	_ "github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/quant"
	"github.com/concord-compute/concord/runtime"
)

// Weights are encoded by the host and multiplied by the device, and the quantizer says what ran.
func ExampleQuantizer() {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu:0") // or "auto"
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	q, err := quant.NewQuantizer(dev, quant.QuantizerOptions{Codecs: "fallback"}) // Go, for the same receipt everywhere
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	m, err := quant.New(quant.Layout{Format: quant.TQ20, Rows: 1, Cols: 256})
	if err != nil {
		log.Fatal(err)
	}
	if err := q.Encode(ctx, m, append(make([]float32, 254), 0.5, -0.5)); err != nil {
		log.Fatal(err)
	}
	w, err := q.Prepare(ctx, m)
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	y := make([]float32, 1)
	if err := w.Mul(ctx, y, append(make([]float32, 254), 127, 7), 1); err != nil {
		log.Fatal(err)
	}
	s := q.Stats()
	fmt.Println(y, s.QuantizationOperations, s.MatmulOperations, s.GPUOperations, s.FallbackCount)
	fmt.Println(q.Receipt().Kernels)
	// Output:
	// [60] 1 1 0 0
	// [encode TQ2_0 go w2a8/quantize_rows w2a8]
}
