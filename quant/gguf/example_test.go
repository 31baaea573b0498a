package gguf_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/concord-compute/concord/quant"
	"github.com/concord-compute/concord/quant/gguf"
)

// A matrix of 4 bits goes into a file and comes out of it.
func Example() {
	dir, err := os.MkdirTemp("", "gguf")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "model.gguf")
	m, err := quant.Pack(quant.Layout{Format: quant.Q40, Rows: 2, Cols: 3}, []float32{1, 2, 4, -8, 0, 7})
	if err != nil {
		log.Fatal(err)
	}
	weight, pairs, err := gguf.NewEntry("weight", m)
	if err != nil {
		log.Fatal(err)
	}
	pairs = append(pairs, gguf.Pair{Key: "general.architecture", Value: "example"})
	if err := gguf.Save(path, pairs, []gguf.Entry{weight}); err != nil {
		log.Fatal(err)
	}

	f, err := gguf.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for _, t := range f.Tensors() {
		x := make([]float32, f.Numbers(t))
		if err := f.Floats(x, t, 0); err != nil {
			log.Fatal(err)
		}
		fmt.Println(t.Name, t.Type, t.Shape, len(t.Data), "bytes", x)
	}
	// Output:
	// weight Q4_0 [2 32] 36 bytes [1 2 4 -8 0 7]
}
