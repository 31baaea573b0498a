//go:build cgo

package nn

// Training of the convolutional network. The Go kernels take seven minutes for it, so the build without cgo
// leaves it out.

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDigitsByConvolutions(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute on a busy machine")
	}
	s := scopeOn(t, "cpu:0")
	c := Config{Loss: CrossEntropy{}, BatchSize: 128, Epochs: 2, Log: t.Output()}
	tr, err := NewTrainer(cnn(t, s), c)
	require.NoError(t, err)
	h, err := tr.Fit(t.Context(), digits(t, s, 10000, 1, 28, 28))
	require.NoError(t, err)
	assert.GreaterOrEqual(t, h.ValMetrics["accuracy"][1], 0.97)
}
