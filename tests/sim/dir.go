package sim

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Dir is where the simulated libraries are: CONCORD_SIM_DIR, or where make sim puts them
// below the repository's root. It skips a test whose library is not there.
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
