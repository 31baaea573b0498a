package devices

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
)

func TestToolVersions(t *testing.T) {
	nvcc := "nvcc: NVIDIA (R) Cuda compiler driver\nCopyright (c) 2005-2022 NVIDIA Corporation\n" +
		"Cuda compilation tools, release 11.8, V11.8.89\nBuild cuda_11.8.r11.8/compiler.31833905_0\n"
	assert.Equal(t, "11.8", cudaRelease(nvcc))
	assert.Equal(t, "12.0", cudaRelease("release   12.0 , V12"), "trimmed")
	assert.Equal(t, "12.0", cudaRelease("release 12.0\nother, line"), "the comma has to be on the same line")
	assert.Empty(t, cudaRelease("nothing"))
	assert.Equal(t, "5.2.3: a", rocmVersion("x\nROCM-SMI Version:  5.2.3: a \nROCM-SMI-LIB Version: 7"))
	assert.Equal(t, "", rocmVersion("Version without a colon\nVersion: 2"), "the first line counts")
	assert.Equal(t, "535.104", ui.FirstLine("\n 535.104 \n535.104\n"))
}

func TestAskTool(t *testing.T) {
	dir := t.TempDir()
	script := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o700))
	}
	script("good-tool", "echo 'Version: 7'")
	script("bad-tool", "echo broken >&2; exit 3")
	script("slow-tool", "sleep 30")
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	ctx := context.Background()
	if got := ask(ctx, 10*time.Second, "good-tool", nil, rocmVersion); got.Error != "" {
		t.Skip("no shell scripts here: " + got.Error)
	}
	assert.Equal(t, "7", ask(ctx, 10*time.Second, "good-tool", nil, rocmVersion).Version)
	assert.Contains(t, ask(ctx, 10*time.Second, "bad-tool", nil, rocmVersion).Error, "broken")
	assert.Contains(t, ask(ctx, 10*time.Second, "no-such-tool", nil, rocmVersion).Error, "not found")
	start := time.Now()
	assert.Contains(t, ask(ctx, 200*time.Millisecond, "slow-tool", nil, rocmVersion).Error, "no answer")
	assert.Less(t, time.Since(start), 15*time.Second)
}

func TestDoctor(t *testing.T) {
	t.Setenv("CONCORD_DEBUG", "0")
	status, stdout, stderr := apptest.Run("doctor")
	assert.Equal(t, app.ExitOK, status, stderr)
	for _, want := range []string{"PASS  cpu:0", "PASS  cpu:reference", "CONCORD_CACHE_DIR", "CONCORD_DEBUG", "nvidia-smi",
		"Host compiler"} {
		assert.Contains(t, stdout, want)
	}
	assert.False(t, strings.Contains(stdout, "FAIL"), stdout)
	_, stdout, _ = apptest.Run("doctor", "--json")
	doc := apptest.Document(t, stdout)
	assert.Equal(t, true, doc["ok"])
	assert.Len(t, doc["backends"], 6)
	assert.Len(t, doc["tools"], 3)
	for _, r := range doc["remedies"].([]any) {
		assert.NotEmpty(t, r.(map[string]any)["remedy"])
	}
}

// Doctor reports settings that would make a program fail.
func TestDoctorSettings(t *testing.T) {
	t.Setenv("CONCORD_DEVIEC", "cpu")
	t.Setenv("CONCORD_DEVICE", "cpu:7")
	status, stdout, _ := apptest.Run("doctor")
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, stdout, "cpu:7 does not open: ")
	assert.Regexp(t, `CONCORD_DEVIEC +cpu +.*a misspelt CONCORD_DEVICE`, stdout)
	assert.NotContains(t, stdout, "CONCORD_MEMORY_IDLE", "it is not set")
	assert.Regexp(t, `\n  \d+ settings of Concord are unset; `, stdout)
	t.Setenv("CONCORD_DEVICE", "cpu:0")
	status, stdout, _ = apptest.Run("doctor", "--json")
	assert.Equal(t, app.ExitOK, status)
	assert.Equal(t, map[string]any{"setting": "cpu:0", "device": "cpu:0"}, apptest.Document(t, stdout)["auto"])
}

// A device that is there and fails makes doctor fail.
func TestDoctorOutcome(t *testing.T) {
	c := outcome(check{Device: "cuda:0", Result: pass}, context.DeadlineExceeded)
	assert.Equal(t, fail, c.Result)
	assert.Contains(t, c.Error, "deadline")
	assert.Equal(t, pass, outcome(check{Result: pass}, nil).Result)
}
