package cgo

import (
	"os"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

func TestNotBuilt(t *testing.T) {
	how := "-tags npu"
	if !enabled {
		how = "CGO_ENABLED=1, a C compiler and -tags npu"
	}
	assert.Equal(t, "not in this build: rebuild with "+how, NotBuilt("-tags npu", "plan9", goruntime.GOOS))
	assert.Equal(t, "not in this build: rebuild with "+how+" on plan9 or js", NotBuilt("-tags npu", "plan9", "js"))
}

func TestDialect(t *testing.T) {
	d := Dialect{Instead: map[string][]string{"-a": {"x", "y"}, "-b": nil}, Own: regexp.MustCompile(`^-o=.+$`),
		Ignored: regexp.MustCompile(`^-i$`)}
	got, err := d.Translate([]string{"-a", "-i", "-o=1", "-b", "-a"})
	require.NoError(t, err)
	assert.Equal(t, []string{"x", "y", "-o=1", "x", "y"}, got)
	for _, bad := range []string{"-o=", "-ii", "", "-A"} {
		_, err = d.Translate([]string{"-a", bad})
		require.ErrorIs(t, err, driver.ErrInvalidArgument)
		assert.ErrorContains(t, err, `option "`+bad+`"`)
	}
}

// Relative directories are left out, since libraries are not loaded from the working directory.
func TestHomes(t *testing.T) {
	t.Setenv("NPU_HOME", "/opt/npu/")
	t.Setenv("NPU_PATH", "relative")
	dirs := Homes("/usr/npu", "NPU_HOME", "NPU_PATH", "NPU_UNSET")
	assert.Equal(t, []string{"/opt/npu", "/usr/npu"}, dirs)
	assert.Equal(t, []string{"/opt/npu/a", "/opt/npu/b/c", "/usr/npu/a", "/usr/npu/b/c"}, Below(dirs, "a", "b/c"))
	t.Setenv("NPU_PATH", "/usr/npu")
	assert.Equal(t, dirs, Homes("/usr/npu", "NPU_HOME", "NPU_PATH"), "each once")
}

func TestSimFile(t *testing.T) {
	cfg := &driver.Config{SimDir: t.TempDir()}
	at := func(name string) []string { return []string{filepath.Join(cfg.SimDir, name)} }
	assert.Equal(t, at("old"), SimFile(cfg, "new", "old"))
	require.NoError(t, os.WriteFile(at("new")[0], nil, 0o600))
	assert.Equal(t, at("new"), SimFile(cfg, "new", "old"))
	assert.True(t, filepath.IsAbs(SimFile(&driver.Config{}, "old")[0]), "never one that the loader searches for")
}
