package sim

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/config"
)

// Absent skips a test because the machine lacks something that the tests of a backend need, or fails it
// if CONCORD_REQUIRE names the backend.
func Absent(t testing.TB, backend, why string) {
	t.Helper()
	if required(t, backend) {
		t.Fatalf("CONCORD_REQUIRE names %s: %s", backend, why)
	}
	t.Skip(why)
}

func required(t testing.TB, backend string) bool {
	t.Helper()
	env, err := config.ParseEnv(os.Environ())
	require.NoError(t, err)
	yes, err := config.Requires(env, backend)
	require.NoError(t, err)
	return yes
}

// Dir is where the simulated libraries are: CONCORD_SIM_DIR, or where make sim puts them
// below the repository's root. If a library of the backend is missing, it calls Absent.
func Dir(t testing.TB, root, backend, library string) string {
	t.Helper()
	dir := os.Getenv("CONCORD_SIM_DIR")
	if dir == "" {
		dir = filepath.Join(root, "build", "sim")
	}
	dir, err := filepath.Abs(dir)
	require.NoError(t, err)
	if _, err := os.Stat(filepath.Join(dir, library)); err != nil {
		Absent(t, backend, "no simulated library: "+err.Error()+"; make sim builds it")
	}
	return dir
}
