package main

import (
	"encoding/xml"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A kernel of 100 operations on 50 bytes in 2 ns, on a device that could do it in 1.
func drawn(name string) benched {
	r := benchResult{Suite: "gemm", Name: name, Device: "cpu:0", Median: 50, Spread: 1, Unit: "GFLOP/s", Limit: 100, Ratio: 0.5,
		flops: 100, bytes: 50, ns: 2, roof: 100}
	return benched{label: "cpu:0", name: "a <processor>", peak: 100, bandwidth: 50, results: []benchResult{r}}
}

func TestRoofline(t *testing.T) {
	svg := string(roofline(drawn("f32 <8>")))
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else {
			require.NoError(t, err)
		}
	}
	assert.Equal(t, 1, strings.Count(svg, "<circle"))
	assert.Contains(t, svg, "gemm f32 &lt;8&gt;: 50 GFLOP/s")
	a := axes{0, 2, 0, 2}
	assert.InDelta(t, roofLeft, a.x(1), 1e-9)
	assert.InDelta(t, roofWidth-roofRight, a.x(100), 1e-9)
	assert.InDelta(t, roofHeight-roofBottom, a.y(1), 1e-9)
	assert.InDelta(t, roofTop, a.y(100), 1e-9)

	for _, lacking := range []func(d *benched){
		func(d *benched) { d.peak = unknown }, func(d *benched) { d.bandwidth = unknown }, func(d *benched) { d.results = nil },
		func(d *benched) { d.bandwidth = 0 }, func(d *benched) { d.results[0].ns = math.Inf(1) },
	} {
		d := drawn("x")
		lacking(&d)
		assert.Empty(t, roofline(d))
	}
}

func TestReport(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.html")
	require.NoError(t, writeReport(file, []benched{drawn("f32"), {label: "cpu:1", peak: unknown, bandwidth: unknown}}, repeatBench([]string{"gemm"}, []string{"cpu:0"}, file)))
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	page := string(data)
	assert.Contains(t, page, "concord bench gemm --device cpu:0 --report "+file)
	assert.Contains(t, page, "a &lt;processor&gt;")
	assert.Contains(t, page, "<td>50 %")
	assert.Equal(t, 1, strings.Count(page, "<svg"))
	assert.Contains(t, page, "No roofline")
	assert.NotContains(t, page, "NaN")
	assert.NotContains(t, page, "http", "the page needs nothing else")

	status, stdout, stderr := concord("bench", "launch", "--device", "cpu:0", "--json", "--report", file)
	require.Equal(t, exitOK, status, stderr)
	assert.Contains(t, document(t, stdout), "results")
	status, _, stderr = concord("bench", "launch", "--device", "cpu:0", "--report", filepath.Join(t.TempDir(), "no", "dir"))
	assert.Equal(t, exitFailed, status)
	assert.Contains(t, stderr, "report:")
}
