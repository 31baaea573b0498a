package sim

import (
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

// ending is a test that records whether it failed or was skipped.
type ending struct {
	testing.TB
	failed, skipped bool
}

func (e *ending) Fatalf(string, ...any) { e.failed = true; goruntime.Goexit() }
func (e *ending) Skip(...any)           { e.skipped = true; goruntime.Goexit() }

// TestDirRequired checks that a missing library skips a test, and fails it if its backend is required.
func TestDirRequired(t *testing.T) {
	t.Setenv("CONCORD_SIM_DIR", t.TempDir())
	dir := func(required string) *ending {
		t.Setenv("CONCORD_REQUIRE", required)
		e, done := &ending{TB: t}, make(chan struct{})
		go func() {
			defer close(done)
			Dir(e, "../..", "sim-cuda", "libcuda.so.1")
		}()
		<-done
		return e
	}
	assert.True(t, dir("").skipped)
	assert.True(t, dir("cuda,sim-rocm").skipped)
	assert.True(t, dir("sim-rocm,sim-cuda").failed)
}
