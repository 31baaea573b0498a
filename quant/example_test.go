package quant_test

import (
	"fmt"
	"log"

	"github.com/concord-compute/concord/quant"
)

// Weights become ternary, and 2.06 bits each.
func Example() {
	w := make([]float32, 2*300) // two rows of 300
	for i := range w {
		w[i] = float32(i%7-3) / 10
	}
	s, err := quant.Scale(quant.AbsMean, w)
	if err != nil {
		log.Fatal(err)
	}
	t := make([]float32, len(w))
	if err := quant.Ternary(t, w, s); err != nil {
		log.Fatal(err)
	}
	m, err := quant.Pack(quant.Layout{Format: quant.TQ20, Rows: 2, Cols: 300}, t)
	if err != nil {
		log.Fatal(err)
	}
	back := make([]float32, len(w))
	if err := quant.Decode(back, m); err != nil {
		log.Fatal(err)
	}
	q, err := quant.Measure(w, back)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v: %d × %d stored as %d columns in %d bytes\n", m.Format, m.Rows, m.K, m.Cols, len(m.Data))
	fmt.Printf("%.2f of %.2f, signal to noise %.1f dB\n", back[:4], w[:4], q.SNR)
	// Output:
	// TQ2_0: 2 × 300 stored as 512 columns in 264 bytes
	// [-0.17 -0.17 -0.17 0.00] of [-0.30 -0.20 -0.10 0.00], signal to noise 7.9 dB
}
