package sim

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Dir returns the directory of the simulated libraries: CONCORD_SIM_DIR, or the one below the
// repository's root in which make sim builds them. It skips the test if the library is not built.
func Dir(t *testing.T, root, library string) string {
	t.Helper()
	dir := os.Getenv("CONCORD_SIM_DIR")
	if dir == "" {
		dir = filepath.Join(root, "build", "sim")
	}
	dir, err := filepath.Abs(dir)
	require.NoError(t, err)
	if _, err := os.Stat(filepath.Join(dir, library)); err != nil {
		t.Skipf("no simulated library: %v; make sim builds it", err)
	}
	return dir
}
