package rocm

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

func TestHipcc(t *testing.T) {
	if _, err := findHipcc(); err != nil {
		t.Skipf("no hipcc: %v", err)
	}
	f := features("gfx90a")
	unit, err := kernels.Unit("saxpy", &f)
	require.NoError(t, err)
	built, err := CompileWithHipcc(context.Background(), unit, "gfx90a")
	require.NoError(t, err)
	require.Len(t, built.Kernels, len(unit.Kernels()))
	assert.Equal(t, unit.Kernels()[0].Name, built.Kernels[0].Name)
	assert.Positive(t, built.Kernels[0].Registers)
	text, err := unit.Render(source.HIP)
	require.NoError(t, err)

	_, err = buildWithHipcc(context.Background(), "extern \"C\" __global__ void k() {\n  nonsense;\n}\n", "gfx90a")
	var build *driver.BuildError
	require.ErrorAs(t, err, &build)
	assert.Contains(t, build.Log, "program.hip:2:3")
	_, err = buildWithHipcc(context.Background(), text, "gfx9999")
	assert.ErrorIs(t, err, driver.ErrCompile)

	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err = buildWithHipcc(ctx, text, "gfx90a")
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestHipccRefuses(t *testing.T) {
	_, err := buildWithHipcc(context.Background(), "", "gfx90a")
	assert.ErrorIs(t, err, driver.ErrInvalidArgument)
	for _, arch := range []string{"", "sm_80", "gfx90a;reboot", "gfx90a -o x", "-x", "gfx90a:x=1"} {
		_, err = buildWithHipcc(context.Background(), "text", arch)
		assert.ErrorIs(t, err, driver.ErrInvalidArgument, "%q", arch)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := os.Stat("/opt/rocm/bin/hipcc"); err == nil {
		t.Skip("ROCm is here")
	}
	_, err = buildWithHipcc(context.Background(), "text", "gfx90a")
	assert.ErrorIs(t, err, driver.ErrUnsupported)
	assert.ErrorContains(t, err, "install hipcc")
}

// TestHipccEnvironment: hipcc gets fixed arguments, PATH and HOME, and a private directory for
// temporary files.
func TestHipccEnvironment(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\nenv >\"" + dir + "/env\"\necho \"$@\" >\"" + dir +
		"/args\"\nfor a; do out=$last; last=$a; done\nprintf code >\"$out\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "hipcc"), []byte(script), 0o700))
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	t.Setenv("HIPCC_COMPILE_FLAGS_APPEND", "-DEVIL")
	bin, err := buildWithHipcc(context.Background(), "text", "gfx90a")
	require.NoError(t, err)
	assert.Equal(t, "code", string(bin.Code))
	env, err := os.ReadFile(filepath.Join(dir, "env"))
	require.NoError(t, err)
	assert.NotContains(t, string(env), "EVIL")
	assert.Contains(t, string(env), "HOME=")
	args, err := os.ReadFile(filepath.Join(dir, "args"))
	require.NoError(t, err)
	assert.Contains(t, string(args), "--genco")
	assert.Contains(t, string(args), "--offload-arch=gfx90a -std=c++17 -O3 -ffp-contract=off")
}
