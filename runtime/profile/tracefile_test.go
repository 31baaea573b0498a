package profile

import (
	"os"
	"path/filepath"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Users that come and go share one goroutine that writes the file, and it ends with the last.
func TestTraceFileUsers(t *testing.T) {
	file, err := OpenTraceFile(filepath.Join(t.TempDir(), "trace.json"))
	require.NoError(t, err)
	before := goruntime.NumGoroutine()
	for range 200 {
		file.Use(func() {})()
	}
	assert.Less(t, goruntime.NumGoroutine(), before+50)
	assert.NoFileExists(t, file.name, "nothing happened")
	assert.Eventually(t, func() bool {
		traceFiles.Lock()
		defer traceFiles.Unlock()
		return !file.kept
	}, 10*time.Second, time.Millisecond)
	end := file.Use(func() { file.Observe(Event{Kind: Region, Name: "late"}) }) // writing begins again
	defer end()
	assert.Eventually(t, func() bool {
		_, err := os.Stat(file.name)
		return err == nil
	}, 10*time.Second, time.Millisecond)
}

// A trace has a roof that is measured while it is written, also again, though nothing else happens.
func TestTraceFileRoof(t *testing.T) {
	file, err := OpenTraceFile(filepath.Join(t.TempDir(), "trace.json"))
	require.NoError(t, err)
	same, err := OpenTraceFile(file.name)
	require.NoError(t, err)
	assert.Same(t, file, same)
	k := KeepRoof(t.Name(), "")
	file.AddRoof("cpu:0", k)
	file.Write()
	assert.NoFileExists(t, file.name)
	for _, want := range []float64{1, 2} {
		_, err := k.Get(t.Context(), true, func() (Roof, error) { return Roof{GFLOPS: want}, nil })
		require.NoError(t, err)
		file.Write()
		in, err := os.Open(file.name)
		require.NoError(t, err)
		trace, err := ReadTrace(in)
		require.NoError(t, err)
		require.NoError(t, in.Close())
		assert.Equal(t, map[string]Roof{"cpu:0": {GFLOPS: want}}, trace.Roofs)
	}
}
