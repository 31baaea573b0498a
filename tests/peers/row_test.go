package main

import (
	"context"
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTogether(t *testing.T) {
	shape := func(ms, ratio figure) row {
		return row{Suite: "odd", What: "a shape", Unit: gflops, Work: 2e6 * float64(ms),
			Ours:  result{Name: "go", Median: 2, Ms: ms},
			Peers: []versus{{result: result{Name: "OpenBLAS", Setting: "x", Median: 2 / ratio, Ms: ms * ratio}, Ratio: ratio}}}
	}
	rows := []row{shape(4, 4), shape(1, 1), shape(2, 2)}
	r := together("all", rows)
	assert.Equal(t, "a shape", rows[0].What)
	assert.Equal(t, figure(4), rows[0].Peers[0].Ratio, "the rows stay as they are")
	assert.Equal(t, "all", r.What)
	assert.Equal(t, "x", r.Peers[0].Setting)
	for _, f := range []struct{ want, got figure }{
		{2, r.Ours.Median}, {2, r.Ours.Ms}, {1, r.Peers[0].Median}, {4, r.Peers[0].Ms},
		{2, r.Peers[0].RatioLow}, {2, r.Peers[0].Ratio}, {4, r.Peers[0].RatioHigh}, {4e6, figure(r.Work)},
	} {
		assert.InDelta(t, float64(f.want), float64(f.got), 1e-9*float64(f.want))
	}
}

// If a peer is missing, the row has our result and no number for the peer.
func TestMissingPeer(t *testing.T) {
	b := &bench{ctx: context.Background(), suite: "odd", quiet: true}
	r, err := b.measure(subject{what: "one", work: 1, unit: gflops, name: "go", run: func() error {
		time.Sleep(time.Microsecond)
		return nil
	}},
		0, contender{name: "OpenBLAS", setting: "apt-get install it"})
	require.NoError(t, err)
	b.add(together("all", []row{r, r}))
	assert.Equal(t, "apt-get install it", b.rows[0].Peers[0].Missing)
	assert.True(t, math.IsNaN(float64(b.rows[0].Peers[0].Ratio)))
	assert.Positive(t, float64(b.rows[0].Ours.Median))
	text, err := json.Marshal(b.rows)
	require.NoError(t, err)
	assert.Contains(t, string(text), `"ratio":null`)
	assert.NotContains(t, b.markdown(), "NaN")
	assert.Contains(t, b.markdown(), "OpenBLAS, apt-get install it | not here")
}
