package program

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/kernels/expr"
)

// The table has every family, and every kernel has a description with its parameters.
func TestKernelsDescribesAll(t *testing.T) {
	status, table, stderr := apptest.Run("kernels")
	require.Equal(t, app.ExitOK, status, stderr)
	for _, f := range kernels.Families() {
		assert.Contains(t, table, f.ID+" ")
		assert.Contains(t, table, f.Doc+"\n")

		status, text, stderr := apptest.Run("kernels", f.ID)
		require.Equal(t, app.ExitOK, status, stderr)
		assert.Contains(t, text, f.ID+": "+f.Doc)

		status, doc, stderr := apptest.Run("kernels", "--json", f.ID)
		require.Equal(t, app.ExitOK, status, stderr)
		var got struct{ Families []catalogFamily }
		require.NoError(t, json.Unmarshal([]byte(doc), &got))
		require.Len(t, got.Families, 1)
		assert.Equal(t, append([]string{}, f.Types...), got.Families[0].Types, "not null")
		assert.Len(t, got.Families[0].Kernels, len(f.Kernels))
		for _, k := range got.Families[0].Kernels {
			assert.NotEmpty(t, k.Params, k.Name)
			assert.Contains(t, text, "\n"+k.Name+"(")
		}
		assert.Equal(t, f.ID != expr.Family, got.Families[0].Text != "", "the comment of %s", f.ID)
	}
}

// A kernel's name stands for its family, and several names are given in the catalog's order, once each.
func TestKernelsByName(t *testing.T) {
	status, text, stderr := apptest.Run("kernels", "sort_merge", "nearest/nearest_merge", "nearest")
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Regexp(t,
		`(?s)^nearest: .*global const float \*queries, .*Smaller is nearer.*\n\nsort_pairs: .*\nsort_merge\(.*uint width\)\n  with T=f32\n`, text)
	status, _, stderr = apptest.Run("kernels", "nearest/sort_merge")
	assert.Equal(t, app.ExitUsage, status)
	assert.Contains(t, stderr, "nearest/sort_merge: not in the catalog; its families are activation, ")
}
