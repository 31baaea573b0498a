package trace

import (
	"bytes"
	"encoding/xml"
	"image/png"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
	"github.com/concord-compute/concord/runtime"
)

// recorded is the trace of a program on cpu:0.
func recorded(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "program.trace")
	s, err := runtime.New(runtime.Config{MemoryTrace: path, Fallback: runtime.Require})
	require.NoError(t, err)
	d, err := s.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(5, 6))
	var live []*runtime.Buffer
	for range 300 {
		b, err := d.Alloc(runtime.U8, 1+r.IntN(1<<r.IntN(22)))
		require.NoError(t, err)
		if live = append(live, b); len(live) > 20 {
			i := r.IntN(len(live))
			require.NoError(t, live[i].Close())
			live[i] = live[len(live)-1]
			live = live[:len(live)-1]
		}
	}
	require.NoError(t, s.Close())
	return path
}

func TestTraceMemory(t *testing.T) {
	path := recorded(t)
	dir := t.TempDir()
	status, stdout, stderr := apptest.Run("trace", "memory", path, "--json", "--hard", "1G", "--mode", "split", "--mode",
		"off")
	require.Equal(t, app.ExitOK, status, stderr)
	doc := apptest.Document(t, stdout)
	d := doc["devices"].([]any)[0].(map[string]any)
	assert.Equal(t, "cpu:0", d["device"])
	assert.Equal(t, "exact", d["pool"].(map[string]any)["mode"])
	replays := d["replays"].([]any)
	require.Len(t, replays, 2)
	off := replays[1].(map[string]any)
	assert.EqualValues(t, "off", off["mode"])
	assert.EqualValues(t, 300, off["driver_allocations"])
	assert.EqualValues(t, 300, d["analysis"].(map[string]any)["gets"])
	assert.Zero(t, off["efficiency"])

	drawn := map[string]int{}
	for _, picture := range []string{"a.svg", "b.png", "split.svg", "off.svg"} {
		picture = filepath.Join(dir, picture)
		args := []string{"trace", "memory", path, "--picture", picture}
		name := strings.TrimSuffix(filepath.Base(picture), ".svg")
		if len(name) > 1 && filepath.Ext(picture) == ".svg" {
			args = append(args, "--arena", name, "--device", "cpu:0")
		}
		status, stdout, stderr = apptest.Run(args...)
		require.Equal(t, app.ExitOK, status, stderr)
		assert.Contains(t, stdout, "recorded (exact)")
		assert.Contains(t, stdout, picture)
		data, err := os.ReadFile(picture)
		require.NoError(t, err)
		if filepath.Ext(picture) == ".png" {
			img, err := png.Decode(bytes.NewReader(data))
			require.NoError(t, err)
			colours := map[any]bool{}
			for x := range img.Bounds().Dx() {
				colours[img.At(x, img.Bounds().Dy()/2)] = true
			}
			assert.Greater(t, len(colours), 4, "blocks are there")
			continue
		}
		dec := xml.NewDecoder(bytes.NewReader(data))
		boxes := 0
		for {
			token, err := dec.Token()
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			if e, is := token.(xml.StartElement); is && e.Name.Local == "path" {
				boxes++
			}
		}
		assert.Greater(t, boxes, 300, "every block has a box")
		drawn[name] = boxes
	}
	assert.Greater(t, drawn["off"], drawn["split"]+200, "without a pool every block has an allocation")
}

func TestTraceMemoryRefuses(t *testing.T) {
	path := recorded(t)
	empty := apptest.TextFile(t, "empty.trace", "")
	for _, args := range [][]string{
		{"trace"},
		{"trace", "memory"},
		{"trace", "memory", path, path},
		{"trace", "memory", "--record", path},
		{"trace", "memory", path, "--mode", "soft"},
		{"trace", "memory", path, "--soft", "much"},
		{"trace", "memory", path, "--slack", "-1"},
		{"trace", "memory", path, "--picture", "a.gif"},
		{"trace", "memory", path, "--arena", "mine"},
	} {
		status, _, stderr := apptest.Run(args...)
		assert.Equal(t, app.ExitUsage, status, args)
		assert.Contains(t, stderr, "--help")
	}
	for _, args := range [][]string{
		{"trace", "memory", "missing.trace"},
		{"trace", "memory", empty},
		{"trace", "memory", path, "--device", "cuda:0"},
		{"trace", "memory", path, "--picture", filepath.Join("missing", "a.svg")},
		{"trace", "memory", "--record", filepath.Join(t.TempDir(), "x"), "--", "no-such-program"},
		{"trace", "memory", "--record", filepath.Join(t.TempDir(), "x"), "--", os.Args[0], "-test.run=^$"},
	} {
		status, _, stderr := apptest.Run(args...)
		assert.Equal(t, app.ExitFailed, status, "%v: %s", args, stderr)
	}
}

// --record runs a command of concord itself and analyzes its trace.
func TestTraceMemoryRecords(t *testing.T) {
	cl := apptest.TextFile(t, "k.cl", "kernel void k(global float *x) { x[get_global_id(0)] = 1; }")
	path := filepath.Join(t.TempDir(), "run.trace")
	t.Setenv(apptest.AsCommand, "1") // this binary is then the command
	status, stdout, stderr := apptest.Run("trace", "memory", "--record", path, "--json", "--", "run", "--device", "cpu:0",
		"--global", "1024", "--arg", "zeros:f32:1024", cl)
	if status == app.ExitFailed && (strings.Contains(stderr, "CGO_ENABLED=1") || strings.Contains(stderr,
		"no C++ compiler")) {
		t.Skip(stderr)
	}
	require.Equal(t, app.ExitOK, status, stderr)
	doc := apptest.Document(t, stdout)
	assert.EqualValues(t, 1, doc["devices"].([]any)[0].(map[string]any)["analysis"].(map[string]any)["gets"])
	assert.FileExists(t, path)
}
