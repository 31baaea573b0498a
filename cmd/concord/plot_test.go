//go:build !nopicture

package main

// The tables and pictures of any history that a checkpoint may have.

import (
	"bytes"
	"encoding/xml"
	"io"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/nn"
)

func TestPlotAnyHistory(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, list := range [][]float64{nil, {1}, {1, 1}, {nan, nan}, {0, inf, -inf}, {-1e308, 1e308}, {math.MaxFloat64, -math.MaxFloat64}, {5e-324, 0}} {
		metrics := map[string][]float64{"a<b\x1b[2J": list, "accuracy": list}
		h := &nn.History{TrainLoss: list, ValLoss: list, TrainMetrics: metrics, ValMetrics: metrics, EpochTimes: make([]time.Duration, len(list))}
		var b bytes.Buffer
		require.NoError(t, drawHistory(&b, h, "title\x01", "h.png"), "%v", list)
		b.Reset()
		require.NoError(t, drawHistory(&b, h, "title\x01", "h.svg"), "%v", list)
		d := xml.NewDecoder(&b)
		var err error
		for err == nil {
			_, err = d.Token()
		}
		require.ErrorIs(t, err, io.EOF, "%v", list)
		newApp(&b, io.Discard).tellHistory(h)
		assert.NotContains(t, b.String(), "\x1b")
		assert.Contains(t, b.String(), "A<B")
	}
}
