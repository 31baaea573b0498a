package render_test

// The catalog in the Metal Shading Language: every program of every family, for every type
// but double, compiles for the simulated Metal.

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/source"
)

func TestMetalCatalog(t *testing.T) {
	driver := metalDriver(t, "driver")
	dir := t.TempDir()
	var g errgroup.Group
	g.SetLimit(goruntime.NumCPU())
	programs, all := 0, os.Getenv("COMPILERS") == "all"
	for _, f := range kernels.Families() {
		seen := map[string]bool{}
		for _, c := range kernels.Cases(f.ID) {
			key := fmt.Sprint(c.Defines)
			if c.Needs.FP64 || seen[key] || !all && len(seen) > 0 {
				continue
			}
			seen[key] = true
			u, err := kernels.Unit(f.ID, &source.MetalFeatures, c.Defines...)
			require.NoError(t, err, key)
			msl, err := u.Render(source.Metal)
			require.NoError(t, err, key)
			file := filepath.Join(dir, fmt.Sprint(programs, ".metal"))
			require.NoError(t, os.WriteFile(file, []byte(msl), 0o644))
			programs++
			g.Go(func() error {
				out, err := exec.Command(driver, file, "", "1", "1").CombinedOutput()
				assert.NoError(t, err, "%s %s: %.2000s", f.ID, key, out)
				return nil
			})
		}
	}
	_ = g.Wait()
	t.Logf("%d programs", programs)
	assert.NotZero(t, programs)
}
