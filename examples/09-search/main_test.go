package main

import (
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	mnistdata "github.com/concord-compute/concord/testdata/mnist"
)

// TestSheet reads the picture back: a frame is red exactly where the image in it has another label, and the
// images are those of MNIST.
func TestSheet(t *testing.T) {
	t.Setenv("CONCORD_DEVICE", "cpu:0")
	path := filepath.Join(t.TempDir(), "sheet.png")
	require.NoError(t, run(t.Context(), []string{path}))
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	s, err := png.Decode(file)
	require.NoError(t, err)
	images, err := unpack(mnistdata.Images, 16)
	require.NoError(t, err)
	labels, err := unpack(mnistdata.Labels, 8)
	require.NoError(t, err)
	places := map[string]int{}
	for i := range labels {
		places[string(images[i*dim:(i+1)*dim])] = i
	}
	require.Equal(t, (1+k)*cell, s.Bounds().Dx())
	require.Equal(t, 10*cell, s.Bounds().Dy())
	wrong := 0
	for digit := range 10 {
		for column := range 1 + k {
			x, y := column*cell, digit*cell
			pixels := make([]byte, 0, dim)
			for i := range dim {
				pixels = append(pixels, color.GrayModel.Convert(s.At(x+frame+i%side, y+frame+i/side)).(color.Gray).Y)
			}
			place, ok := places[string(pixels)]
			require.True(t, ok, "row %d, column %d is no image", digit, column)
			assert.Equal(t, column > 0, place < base)
			r, g, _, _ := s.At(x, y).RGBA()
			red := r > g
			assert.Equal(t, int(labels[place]) != digit, red, "row %d, column %d", digit, column)
			if red {
				wrong++
			}
		}
	}
	assert.Positive(t, wrong, "the test needs a neighbour of another digit")
}
