package training

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
)

// A disk that has room for one checkpoint, and not for a second beside it, ends a training with an error, and
// the first one is whole.
func TestTrainOnAFullDisk(t *testing.T) {
	data, dir := apptest.DigitFiles(t, 100), t.TempDir()
	cmd := exec.Command("sh", "-c", `
		mount -t tmpfs -o size=9m tmpfs "$1" || exit 77
		"$0" train --device cpu:0 --batch 32 --data "$2" --epochs 5 --checkpoint "$1/c.safetensors"
		echo "status $?"; ls -A "$1"
		exec "$0" eval "$1/c.safetensors" --device cpu:0 --data "$2"`, os.Args[0], dir, data)
	cmd.Env = append(os.Environ(), apptest.AsCommand+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if e, ok := errors.AsType[*exec.ExitError](err); errors.Is(err, os.ErrPermission) || ok && e.ExitCode() == 77 {
		t.Skipf("no right to mount: %v %s", err, out)
	}
	require.NoError(t, err, "%s", out)
	text := string(out)
	assert.Contains(t, text, "epoch 2/5")
	assert.NotContains(t, text, "epoch 3/5")
	assert.Contains(t, text, "c.safetensors: no space left on device\nstatus 1\nc.safetensors\n", "no other file is left")
	assert.True(t, strings.HasSuffix(text, "of 100 images are read rightly\n"), text)
}
