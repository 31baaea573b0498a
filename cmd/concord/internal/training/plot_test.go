//go:build !nopicture

package training

// The tables and pictures of any history that a checkpoint may have.

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"io"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot/plotter"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/nn"
)

// A long history is drawn with as many points as the picture is wide, among them the ends and all that lie outside.
func TestPlotOfManyEpochs(t *testing.T) {
	list := make([]float64, 200_000)
	for i := range list {
		list[i] = math.Sin(float64(i))
	}
	list[12_345], list[77_777], list[99_999] = 5, -5, math.NaN()
	xys := points(list)
	assert.LessOrEqual(t, len(xys), 4*columns)
	assert.Equal(t, plotter.XY{X: 1, Y: 0}, xys[0])
	assert.Equal(t, plotter.XY{X: 200_000, Y: list[199_999]}, xys[len(xys)-1])
	assert.Contains(t, xys, plotter.XY{X: 12_346, Y: 5})
	assert.Contains(t, xys, plotter.XY{X: 77_778, Y: -5})
	assert.True(t, slices.IsSortedFunc(xys, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) }))
	assert.Len(t, points(list[:columns]), columns, "a short one is drawn as it is")

	var b bytes.Buffer
	h := &nn.History{TrainLoss: list, ValLoss: list, EpochTimes: make([]time.Duration, len(list))}
	require.NoError(t, drawHistory(&b, h, "long", "h.svg"))
	assert.Less(t, b.Len(), 4<<20)
}

func TestPlotAnyHistory(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, list := range [][]float64{nil, {1}, {1, 1}, {nan, nan}, {0, inf, -inf}, {-1e308, 1e308},
		{math.MaxFloat64, -math.MaxFloat64}, {5e-324, 0}} {
		metrics := map[string][]float64{"a<b\x1b[2J": list, "accuracy": list}
		h := &nn.History{TrainLoss: list, ValLoss: list, TrainMetrics: metrics, ValMetrics: metrics,
			EpochTimes: make([]time.Duration, len(list))}
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
		writeHistory(app.New(&b, io.Discard), h)
		assert.NotContains(t, b.String(), "\x1b")
		assert.Contains(t, b.String(), "A<B")
	}
}
