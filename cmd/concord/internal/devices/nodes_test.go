//go:build unix

package devices

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDeviceNodes(t *testing.T) {
	dir := t.TempDir()
	open, shut := filepath.Join(dir, "renderD128"), filepath.Join(dir, "renderD129")
	require.NoError(t, os.WriteFile(open, nil, 0o600))
	require.NoError(t, os.WriteFile(shut, nil, 0o000))
	list := nodesAt([]string{filepath.Join(dir, "renderD*"), filepath.Join(dir, "none*")})
	require.Len(t, list, 2)
	assert.Equal(t, "ok", list[0].access())
	assert.Contains(t, list[0].Owner, ":")
	assert.Empty(t, list[0].Remedy)
	if os.Geteuid() == 0 {
		t.Skip("nothing is shut for root")
	}
	assert.Equal(t, "permission denied", list[1].access())
	assert.Contains(t, list[1].Remedy, "group")
}
