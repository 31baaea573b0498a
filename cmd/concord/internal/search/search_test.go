package search

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/ann"
	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
	"github.com/concord-compute/concord/internal/npy"
	"github.com/concord-compute/concord/runtime/driver"
)

// integers returns the bytes of numbers in a file.
func integers[T any](list ...T) []byte {
	data, err := binary.Append(nil, binary.LittleEndian, list)
	if err != nil {
		panic(err)
	}
	return data
}

// TestSearch builds indexes of files, searches them, and measures them.
func TestSearch(t *testing.T) {
	dir := t.TempDir()
	name := func(file string) string { return filepath.Join(dir, file) }
	vectors := []float32{0, 0, 3, 4, 6, 8, 9, 12}
	require.NoError(t, ann.SaveVectors(name("base.fvecs"), vectors, 2))
	require.NoError(t, ann.SaveVectors(name("query.npy"), vectors[2:6], 2))
	require.NoError(t, ann.SaveVectors(name("ids.npy"), []float32{40, 30, 20, 10}, 1))
	// 1 and, wrongly, 0
	require.NoError(t, os.WriteFile(name("truth.ivecs"), []byte{1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, 0o600))
	run := func(args ...string) map[string]any {
		status, stdout, stderr := apptest.Run(append(append([]string{"search"}, args...), "--json")...)
		require.Equal(t, app.ExitOK, status, stderr)
		return apptest.Document(t, stdout)
	}
	for _, more := range [][]string{nil, {"--kind", "gpu", "--device", "cpu:0", "--precision", "int8scaled"},
		{"--kind", "hnsw", "--m", "5", "--codes"},
		{"--kind", "flat", "--precision", "fp16"}, {"--kind", "ivf", "--lists", "2", "--probes", "1", "--seed", "3"},
		{"--kind", "pq", "--lists", "1", "--code-bytes", "1", "--refine", "4", "--seed", "3"}} {
		built := run(append([]string{"build", "--vectors", name("base.fvecs"), "--out", name("base.ann")}, more...)...)
		assert.EqualValues(t, 4, built["len"])
		assert.Equal(t, "euclidean", run("info", name("base.ann"))["metric"])
		assert.EqualValues(t, 2, run("verify", name("base.ann"))["dim"])
		var where []string
		if slices.Contains(more, "gpu") {
			where = []string{"--device", "cpu:0"}
		}
		speed := run(append([]string{"bench", name("base.ann"), "--queries", name("query.npy"), "--k", "1"}, where...)...)
		assert.Equal(t, 1.0, speed["recall"])
		assert.Positive(t, speed["queries_per_second"])
		assert.Equal(t, 0.5, run(append([]string{"bench", name("base.ann"), "--queries", name("query.npy"), "--k", "1",
			"--truth", name("truth.ivecs")}, where...)...)["recall"])
	}
	require.NoError(t, npy.WriteFile(name("truth.npy"),
		npy.Array{Type: driver.I64, Shape: []int{2, 2}, Data: integers[int64](1, 9, 0, 9)}))
	require.NoError(t, npy.WriteFile(name("cube.npy"), npy.Array{Type: driver.I64, Shape: []int{1, 2, 2},
		Data: integers[int64](1, 9, 0, 9)}))
	require.NoError(t, npy.WriteFile(name("none.npy"), npy.Array{Type: driver.F32, Shape: []int{0, 2}}))
	run("build", "--vectors", name("none.npy"), "--out", name("empty.ann"))
	run("build", "--vectors", name("base.fvecs"), "--kind", "ivf", "--out", name("lists.ann"))
	bench := func(args ...string) any {
		return run(append([]string{"bench", name("tied.ann"), "--queries", name("query.npy"), "--k", "1"},
			args...)...)["recall"]
	}
	run("build", "--vectors", name("base.fvecs"), "--out", name("tied.ann"))
	assert.Equal(t, 0.5, bench("--truth", name("truth.npy")))
	run("build", "--vectors", name("base.fvecs"), "--metric", "hamming", "--out", name("tied.ann"))
	require.NoError(t, npy.WriteFile(name("ties.npy"),
		npy.Array{Type: driver.U32, Shape: []int{2}, Data: integers[uint32](0, 3)}))
	require.NoError(t, ann.SaveVectors(name("query.npy"), []float32{-1, -1, -2, -2}, 2))
	assert.Equal(t, 1.0, bench("--truth", name("ties.npy")), "all vectors are at the same distance")
	require.NoError(t, ann.SaveVectors(name("query.npy"), vectors[2:6], 2))
	_, stdout, _ := apptest.Run("search", "build", "--vectors", name("base.fvecs"), "--kind", "ivf", "--lists", "2",
		"--out",
		name("base.ann"))
	assert.Contains(t, stdout, "fewer than 16 for each of 2 lists")
	_, stdout, _ = apptest.Run("search", "build", "--vectors", name("base.fvecs"), "--kind", "flat", "--precision", "int8",
		"--out", name("base.ann"))
	assert.Contains(t, stdout, "6 of 8 components are beyond -1 and 1")
	require.NoError(t, ann.SaveVectors(name("odd.npy"), []float32{1, 2, -3, 3e38, float32(math.NaN()), 0}, 2))
	for precision, want := range map[string]string{"fp32": "1 of 6 components are NaN or infinite: a vector with a NaN " +
		"comes last", "int8": "1 of 6 components are NaN or infinite: bytes store them as 0",
		"int8scaled": "3 of 6 components are stored as 0, since the largest, 3e+38, is more than 254 times as large"} {
		_, stdout, _ = apptest.Run("search", "build", "--vectors", name("odd.npy"), "--kind", "flat", "--precision",
			precision,
			"--out", name("odd.ann"))
		assert.Contains(t, stdout, want)
	}
	run("build", "--vectors", name("base.fvecs"), "--ids", name("ids.npy"), "--metric", "l2sq", "--out", name("base.ann"))
	assert.Equal(t, map[string]any{"metric": "l2sq", "k": 2.0, "results": []any{
		map[string]any{"query": 0.0, "ids": []any{30.0, 20.0}, "distances": []any{0.0, 25.0}},
		map[string]any{"query": 1.0, "ids": []any{20.0, 10.0}, "distances": []any{0.0, 25.0}},
	}}, run("query", name("base.ann"), "--queries", name("query.npy"), "--k", "2"))
	for _, a := range []npy.Array{
		{Type: driver.I64, Shape: []int{4}, Data: integers[int64](1<<40+1, 1<<24+1, 7, 8)},
		{Type: driver.U32, Shape: []int{4, 1}, Data: integers[uint32](1<<32-1, 1<<24+1, 7, 8)},
		{Type: driver.I32, Shape: []int{4}, Data: integers[int32](1<<31-1, 1<<24+1, 7, 8)},
	} {
		require.NoError(t, npy.WriteFile(name("large.npy"), a))
		run("build", "--vectors", name("base.fvecs"), "--ids", name("large.npy"), "--out", name("large.ann"))
		first := run("query", name("large.ann"), "--queries", name("base.fvecs"), "--k", "1")["results"].([]any)
		for i, want := range []float64{
			map[driver.Type]float64{driver.I64: 1<<40 + 1, driver.U32: 1<<32 - 1, driver.I32: 1<<31 - 1}[a.Type], 1<<24 + 1} {
			assert.Equal(t, []any{want}, first[i].(map[string]any)["ids"])
		}
	}
	require.NoError(t, npy.WriteFile(name("halves.npy"),
		npy.Array{Type: driver.F32, Shape: []int{4}, Data: integers[float32](1, 2, 3.5, 4)}))
	require.NoError(t, npy.WriteFile(name("bytes.npy"),
		npy.Array{Type: driver.U8, Shape: []int{4}, Data: integers[uint8](1, 2, 3, 4)}))
	status, stdout, stderr := apptest.Run("search", "query", name("base.ann"), "--queries", name("query.npy"), "--ids",
		"30:99", "--limit", "1")
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Equal(t, "0: 30 (0) 40 (25)\n", stdout)

	damaged, err := os.ReadFile(name("base.ann"))
	require.NoError(t, err)
	damaged[len(damaged)-100] ^= 1 // in the list of sections
	require.NoError(t, os.WriteFile(name("damaged.ann"), damaged, 0o600))
	for says, c := range map[string]struct {
		status int
		args   []string
	}{
		"needs a command":     {app.ExitUsage, []string{}},
		"--vectors and --out": {app.ExitUsage, []string{"build", "--vectors", "mnist"}},
		"is none of euclidean": {
			app.ExitUsage, []string{"build", "--vectors", "mnist", "--metric", "l3", "--out", name("x")}},
		"it is a file that is read, too": {
			app.ExitUsage, []string{"build", "--vectors", name("base.fvecs"), "--out", name("base.fvecs")}},
		"--device is for an index of kind gpu": {
			app.ExitUsage, []string{"query", name("base.ann"), "--queries", name("query.npy"), "--device", "cpu:0"}},
		`unknown command "quer"`: {app.ExitUsage, []string{"quer", name("base.ann")}},
		"are for --kind gpu": {
			app.ExitUsage, []string{"build", "--vectors", "mnist", "--precision", "fp16", "--out", name("x")}},
		"for --kind hnsw": {
			app.ExitUsage, []string{"build", "--vectors", "mnist", "--m", "5", "--out", name("x")}},
		"kind hnsw": {
			app.ExitUsage, []string{"query", name("base.ann"), "--queries", name("query.npy"), "--ef-search", "9"}},
		"--probes is for": {
			app.ExitUsage, []string{"query", name("base.ann"), "--queries", name("query.npy"), "--probes", "9"}},
		"--refine is for": {
			app.ExitUsage, []string{"query", name("base.ann"), "--queries", name("query.npy"), "--refine", "9"}},
		"are for --kind pq": {
			app.ExitUsage, []string{"build", "--vectors", "mnist", "--kind", "ivf", "--refine", "9", "--out", name("x")}},
		"are for --kind ivf": {
			app.ExitUsage, []string{"build", "--vectors", "mnist", "--lists", "9", "--out", name("x")}},
		"--kind is": {
			app.ExitUsage, []string{"build", "--vectors", "mnist", "--kind", "tree", "--out", name("x")}},
		"precision \"fp8\"": {
			app.ExitUsage, []string{"build", "--vectors", "mnist", "--kind", "gpu", "--precision", "fp8", "--out", name("x")}},
		"M is 1, which has": {
			app.ExitUsage, []string{"build", "--vectors", name("none"), "--kind", "hnsw", "--m", "1", "--out", name("x")}},
		"--queries is missing": {app.ExitUsage, []string{"query", name("base.ann")}},
		"--k is 0": {
			app.ExitUsage, []string{"query", name("base.ann"), "--queries", "mnist", "--k", "0"}},
		"FIRST:LAST": {
			app.ExitUsage, []string{"query", name("base.ann"), "--queries", "mnist", "--ids", "7"}},
		"of 784 components": {app.ExitFailed, []string{"query", name("base.ann"), "--queries", "mnist"}},
		"ends before it begins": {
			app.ExitUsage, []string{"query", name("base.ann"), "--queries", name("query.npy"), "--ids", "7:1"}},
		"no such file":         {app.ExitFailed, []string{"info", name("none.ann")}},
		"data is corrupt":      {app.ExitFailed, []string{"verify", name("damaged.ann")}},
		"the mark of an index": {app.ExitFailed, []string{"verify", name("base.fvecs")}},
		"1 columns of 4 ids in all, and 2": {
			app.ExitFailed, []string{"build", "--vectors", name("query.npy"), "--ids", name("ids.npy"), "--out", name("x")}},
		"1 columns of 2 ids": {
			app.ExitFailed, []string{"build", "--vectors", name("base.fvecs"), "--ids", name("truth.ivecs"), "--out",
				name("x")}},
		"3.5 is not an integer": {
			app.ExitFailed, []string{"build", "--vectors", name("base.fvecs"), "--ids", name("halves.npy"), "--out", name("x")}},
		"ids of type u8": {
			app.ExitFailed, []string{"build", "--vectors", name("base.fvecs"), "--ids", name("bytes.npy"), "--out", name("x")}},
		"is no index of vectors": {
			app.ExitFailed, []string{"build", "--vectors", name("base.fvecs"), "--out", name("ids.npy")}},
		"there are no queries in it": {
			app.ExitFailed, []string{"bench", name("base.ann"), "--queries", name("none.npy")}},
		"an index without vectors": {
			app.ExitFailed, []string{"bench", name("empty.ann"), "--queries", name("query.npy")}},
		"of kind ivf is on one device": {
			app.ExitUsage, []string{"build", "--vectors", name("base.fvecs"), "--kind", "ivf", "--device", "cpu:0,cpu:0",
				"--out",
				name("x")}},
		"such as " + name("lists.ann"): {
			app.ExitUsage, []string{"query", name("lists.ann"), "--queries", name("query.npy"), "--device", "cpu:0,cpu:0"}},
		"shape [1, 2, 2] is no list of ids": {
			app.ExitFailed, []string{"bench", name("base.ann"), "--queries", name("query.npy"), "--k", "1", "--truth",
				name("cube.npy")}},
		"1 neighbours of 2 que": {
			app.ExitFailed, []string{"bench", name("base.ann"), "--queries", name("query.npy"), "--k", "2", "--truth",
				name("truth.ivecs")}},
	} {
		status, _, stderr := apptest.Run(append([]string{"search"}, c.args...)...)
		assert.Equal(t, c.status, status, says)
		assert.Contains(t, stderr, says)
	}
}
