package program

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
	"github.com/concord-compute/concord/runtime"
)

const occupancyText = `
kernel void scale(global float *y) { y[get_global_id(0)] *= 2.0f; }
kernel __attribute__((reqd_work_group_size(16, 16, 1))) void tile(global float *y) {
	local float t[16][17];
	uint i = get_local_id(0), j = get_local_id(1);
	t[j][i] = y[j * 16 + i];
	barrier(CLK_LOCAL_MEM_FENCE);
	y[j * 16 + i] = t[i][j];
}`

// Numbers of a compiler become a table; what the compiler does not report is said.
func TestOccupancyTable(t *testing.T) {
	registers, spilled, local := int64(40), int64(0), int64(1024)
	for _, c := range []struct {
		target string
		kernel compiledKernel
		flags  occupancyFlags
		says   []string
	}{
		{"sm_80", compiledKernel{Registers: &registers, SpillBytes: &spilled, LocalBytes: &local},
			occupancyFlags{groups: []int{256}},
			[]string{"registers 40, spilled 0, local memory 1024", "256    6       48     75 %       registers",
				"to run more: use fewer registers"}},
		{"sm_80", compiledKernel{}, occupancyFlags{local: 100000, groups: []int{256}},
			[]string{"registers ?, spilled ?, local memory 100000", "these are upper limits", "256    1 "}},
		{"SM_80", compiledKernel{required: 96}, occupancyFlags{}, []string{"  96     21 ", "best: 21 groups of 96 items"}},
		{"hipcc:gfx90a", compiledKernel{subgroup: 64, Registers: &registers}, occupancyFlags{},
			[]string{"WAVEFRONTS", "best: 32 groups of 64 items"}},
		{"sm_80", compiledKernel{}, occupancyFlags{local: 1 << 20}, []string{"no group of 32 items can run: its local " +
			"memory does not fit"}},
		{"sm_80", compiledKernel{MaxGroup: 128}, occupancyFlags{}, []string{"256    0       0      0 %        items"}},
	} {
		l, err := limitsFor(&compiled{Target: c.target}, c.kernel)
		require.NoError(t, err)
		c.kernel.Name = "k"
		var out strings.Builder
		writeOccupancy(app.New(&out, &out), &occupied{Subgroup: l.Subgroup, SubgroupSize: l.SubgroupSize,
			Kernels: []occupiedKernel{c.flags.kernel(l, c.kernel)}})
		for _, want := range c.says {
			assert.Contains(t, out.String(), want)
		}
	}
	_, err := limitsFor(&compiled{Target: "sm_35"}, compiledKernel{})
	assert.ErrorIs(t, err, runtime.ErrUnsupported)
}

// On the processor the whole command runs, if there is a C++ compiler; without one it says so.
func TestOccupancyCommand(t *testing.T) {
	cl := apptest.TextFile(t, "k.cl", occupancyText)
	status, stdout, stderr := apptest.Run("occupancy", "--target", "cpu:0", "--json", "--items", "5000", cl)
	if status == app.ExitFailed {
		assert.Contains(t, stderr, "compiler")
		t.Skip("no C++ compiler: ", stderr)
	}
	require.Equal(t, app.ExitOK, status, stderr)
	kernels := apptest.Document(t, stdout)["kernels"].([]any)
	require.Len(t, kernels, 2)
	tile := kernels[1].(map[string]any)
	assert.Equal(t, "tile", tile["name"])
	assert.GreaterOrEqual(t, tile["local_bytes"], 1088.0)
	assert.Nil(t, tile["registers"])
	assert.Len(t, tile["groups"], 1, "it requires one size")
	assert.Equal(t, 256.0, tile["best"].(map[string]any)["group"])
}

// Where a vendor's compiler is installed its registers count; where not, the error says what to install. The
// command runs in a process of its own, as the LLVM of Debian's HIP cannot share one with that of PoCL.
func TestOccupancyArchitectures(t *testing.T) {
	cl := apptest.TextFile(t, "k.cl", occupancyText)
	for _, target := range []string{"sm_90", "gfx90a"} {
		t.Run(target, func(t *testing.T) {
			stdout, err := apptest.Process("occupancy", "--target", target, "--json", cl).Output()
			doc := apptest.Document(t, string(stdout))
			if err != nil {
				assert.Regexp(t, `install|not in this build`, string(stdout))
				t.Skip(doc["error"])
			}
			for _, k := range doc["kernels"].([]any) {
				k := k.(map[string]any)
				assert.NotNil(t, k["best"])
				if target == "gfx90a" {
					assert.Positive(t, k["registers"], "the metadata of a code object always has them")
				}
			}
		})
	}
}
