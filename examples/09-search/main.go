// Search: of each digit, an image that the index does not hold is searched for among 9,000 others, and a
// contact sheet shows what is nearest.
//
//	go run ./examples/09-search            how many of the nearest show the same digit
//	go run ./examples/09-search sheet.png  and a picture of them
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"log"
	"os"

	"github.com/concord-compute/concord/ann"
	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	mnistdata "github.com/concord-compute/concord/testdata/mnist"
)

const (
	side  = 28 // pixels of an image in each direction
	dim   = side * side
	base  = 9000 // images in the index; the queries are among the others
	k     = 9
	frame = 2 // pixels around each image of the sheet
	cell  = side + 2*frame
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, sheets []string) error {
	images, err := unpack(mnistdata.Images, 16)
	if err != nil {
		return err
	}
	labels, err := unpack(mnistdata.Labels, 8)
	if err != nil {
		return err
	}
	queries := oneOfEach(labels)

	dev, err := runtime.Open(ctx, "auto")
	if err != nil {
		return err
	}
	defer dev.Close()
	index, err := ann.NewFlat(dev, dim, ann.Euclidean, ann.FlatOptions{})
	if err != nil {
		return err
	}
	defer index.Close()
	ids := make([]int64, base) // here the places of the images
	for i := range ids {
		ids[i] = int64(i)
	}
	if err := index.Add(ctx, ids, floats(images[:base*dim])); err != nil {
		return err
	}
	var points []float32
	for _, q := range queries {
		points = append(points, floats(images[q*dim:(q+1)*dim])...)
	}
	found, err := index.SearchBatch(ctx, points, k, nil)
	if err != nil {
		return err
	}

	same := 0
	for i, q := range queries {
		for _, r := range found[i] {
			if labels[r.ID] == labels[q] {
				same++
			}
		}
	}
	fmt.Printf("%s: %d of %d neighbours show the digit of their query\n", dev, same, k*len(queries))
	if len(sheets) == 0 {
		fmt.Println("no picture is written: sheet.png as an argument makes one of them there")
		return nil
	}
	file, err := os.Create(sheets[0])
	if err != nil {
		return err
	}
	defer file.Close()
	if err := png.Encode(file, sheet(images, labels, queries, found)); err != nil {
		return err
	}
	fmt.Println("the picture is", sheets[0])
	return file.Close()
}

// unpack returns what follows the header of one of MNIST's files: a byte for each pixel, or for each label.
func unpack(file []byte, header int) ([]byte, error) {
	zip, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(zip)
	if err != nil {
		return nil, err
	}
	return data[header:], nil
}

// oneOfEach returns the first image of each digit that is not in the index, in the order of the digits.
func oneOfEach(labels []byte) []int {
	queries := make([]int, 10)
	for i := len(labels) - 1; i >= base; i-- {
		queries[labels[i]] = i
	}
	return queries
}

func floats(pixels []byte) []float32 {
	x := make([]float32, len(pixels))
	for i, p := range pixels {
		x[i] = float32(p)
	}
	return x
}

// sheet draws a row for each query: the query itself in a white frame, and then what was found, in a red frame
// where it is another digit.
func sheet(images, labels []byte, queries []int, found [][]ann.Result) image.Image {
	white, red := color.RGBA{255, 255, 255, 255}, color.RGBA{230, 40, 40, 255}
	s := image.NewRGBA(image.Rect(0, 0, (1+k)*cell, len(queries)*cell))
	put := func(column, row, i int, around color.RGBA) {
		at := image.Rect(column*cell, row*cell, (column+1)*cell, (row+1)*cell)
		draw.Draw(s, at, image.NewUniform(around), image.Point{}, draw.Src)
		digit := &image.Gray{Pix: images[i*dim : (i+1)*dim], Stride: side, Rect: image.Rect(0, 0, side, side)}
		draw.Draw(s, at.Inset(frame), digit, image.Point{}, draw.Src)
	}
	for row, q := range queries {
		put(0, row, q, white)
		for i, r := range found[row] {
			around := color.RGBA{A: 255}
			if labels[r.ID] != labels[q] {
				around = red
			}
			put(1+i, row, int(r.ID), around)
		}
	}
	return s
}
