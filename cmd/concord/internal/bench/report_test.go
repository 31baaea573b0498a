package bench

import (
	"encoding/xml"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/profile"
	"github.com/concord-compute/concord/runtime/roof"
)

// A kernel of 100 operations on 50 bytes in 2 ns, on a device that could do it in 1.
func drawn(name string) benched {
	r := benchResult{Suite: "gemm", Name: name, Device: "cpu:0", Median: 50, Spread: 1, Unit: "GFLOP/s", Limit: 100,
		Ratio: 0.5, Implementation: "avx512",
		flops: 100, bytes: 50, ns: 2, roof: 100}
	return benched{Label: "cpu:0", Name: "a <processor>", Roof: &profile.Roof{GFLOPS: 100, MemoryGBs: 50},
		Results: []benchResult{r}}
}

func TestRoofline(t *testing.T) {
	svg := string(drawn("f32 <8>").Roofline())
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
		func(d *benched) { d.Roof = nil }, func(d *benched) { d.Roof.GFLOPS = 0 }, func(d *benched) { d.Results = nil },
		func(d *benched) { d.Roof.MemoryGBs = 0 }, func(d *benched) { d.Results[0].ns = math.Inf(1) },
	} {
		d := drawn("x")
		lacking(&d)
		assert.Empty(t, d.Roofline())
	}
}

func TestLabels(t *testing.T) {
	var l labels
	assert.InDelta(t, 10, l.place(0, 50, 10), 0)
	assert.InDelta(t, 10, l.place(50, 90, 10), 0, "beside it")
	assert.InDelta(t, 23, l.place(40, 60, 12), 0, "below both")
	assert.InDelta(t, -3, l.place(0, 99, 11), 0, "above all three: what is below is farther")
}

func TestReport(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.html")
	var text strings.Builder
	require.NoError(t, writeReport(&text, []benched{drawn("f32"), {Label: "cpu:1"}},
		repeatBench([]string{"gemm"}, []string{"cpu:0"}, file)))
	page := text.String()
	assert.Contains(t, page, "concord bench gemm --device cpu:0 --report "+file)
	assert.Contains(t, page, "a &lt;processor&gt;")
	assert.Contains(t, page, "<td>50 %<td>avx512</tr>")
	assert.Equal(t, 1, strings.Count(page, "<svg"))
	assert.Contains(t, page, "No roofline")
	assert.NotContains(t, page, "NaN")
	assert.NotContains(t, page, "http", "the page needs nothing else")

	t.Setenv("CONCORD_CPU_KERNELS", "go")
	status, stdout, stderr := apptest.Run("bench", "launch", "--device", "cpu:0", "--json", "--report", file)
	require.Equal(t, app.ExitOK, status, stderr)
	results, _ := apptest.Document(t, stdout)["results"].([]any)
	require.NotEmpty(t, results)
	first, _ := results[0].(map[string]any)
	assert.Equal(t, "go", first["implementation"])
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Contains(t, string(data), "<td>go</tr>")
	status, _, stderr = apptest.Run("bench", "launch", "--device", "cpu:0", "--report",
		filepath.Join(t.TempDir(), "no", "dir"))
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, stderr, "--report")
}

// Several suites are measured in one run, each once; a wrong name is answered with the
// right ones.
func TestBenchSeveral(t *testing.T) {
	status, stdout, stderr := apptest.Run("bench", "copy", "launch", "copy", "--device", "cpu:0", "--json")
	require.Equal(t, app.ExitOK, status, stderr)
	var got []string
	seen := map[string]int{}
	for _, r := range apptest.Document(t, stdout)["results"].([]any) {
		r := r.(map[string]any)
		name := r["device"].(string) + " " + r["suite"].(string)
		if seen[name+r["name"].(string)]++; seen[name+r["name"].(string)] > 1 {
			assert.Fail(t, "measured twice", "%v", r)
		}
		if !slices.Contains(got, name) {
			got = append(got, name)
		}
	}
	assert.Equal(t, []string{"cpu:0 launch", "cpu:0 copy", "cpu:0 (compiled) launch", "cpu:0 (compiled) copy"}, got,
		"in their own order")
	status, stdout, stderr = apptest.Run("bench", "gemm", "conv", "--device", "cpu:0")
	assert.Equal(t, app.ExitUsage, status)
	assert.Empty(t, stdout)
	assert.Contains(t, stderr, `"conv": there are launch, copy, saxpy, memory, gemm, l2, conv2d`)
}

func TestBenchNothing(t *testing.T) {
	require.ErrorIs(t, finishBench(app.New(io.Discard, io.Discard), nil), runtime.ErrNoDevice)
}

// Every suite completes, and names the implementation that ran its kernels.
func TestBenchSuites(t *testing.T) {
	t.Setenv("CONCORD_CPU_KERNELS", "go")
	s, err := runtime.New(app.Exactly)
	require.NoError(t, err)
	defer s.Close()
	dev, err := s.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	b := &bencher{dev: dev, roof: &profile.Roof{MemoryGBs: 1, GFLOPS: 1},
		sizes: benchSizes{copyBytes: 64, saxpyN: 2 * rowLength, gemmN: []int{8}, l2: [][2]int{{1, 8}}, convImages: 1}}
	for _, suite := range suites {
		b.suite = suite.name
		require.NoError(t, suite.run(b, t.Context()), suite.name)
		last := b.results[len(b.results)-1]
		assert.Equal(t, suite.name, last.Suite)
		if suite.name == "copy" {
			assert.Empty(t, last.Implementation)
		} else {
			assert.Equal(t, "go", last.Implementation, suite.name)
		}
	}
	var out strings.Builder
	writeBench(app.New(&out, &out), b.results)
	assert.Regexp(t, `memory +softmax .* go\n`, out.String())
	assert.Equal(t, len(b.results)-4,
		strings.Count(string(benched{Roof: &profile.Roof{GFLOPS: 1e9, MemoryGBs: 1}, Results: b.results}.Roofline()),
			"<circle"),
		"all but launch and copy are drawn")
}

// The limits are those of package roof, measured once.
func TestBenchRoof(t *testing.T) {
	s, err := runtime.New(app.Exactly)
	require.NoError(t, err)
	defer s.Close()
	dev, err := s.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	first, err := roof.Of(t.Context(), dev)
	require.NoError(t, err)
	assert.Positive(t, first.MemoryGBs)
	if _, ok := dev.Driver().(driver.MultiplyAdder).MultiplyAdds(); ok {
		assert.Positive(t, first.GFLOPS, "vector kernels know the rate of multiply-adds without a compiler")
	}
	for range 2 {
		b := &bencher{dev: dev}
		got, err := b.limits(t.Context())
		require.NoError(t, err)
		assert.Equal(t, first, got)
	}
	b := &bencher{dev: dev, newRoof: true}
	again, err := b.limits(t.Context())
	require.NoError(t, err)
	kept, err := roof.Of(t.Context(), dev)
	require.NoError(t, err)
	assert.Equal(t, again, kept)
}
