package explain

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
	"github.com/concord-compute/concord/runtime"
)

func TestExplain(t *testing.T) {
	t.Setenv("CONCORD_TUNE", "off")
	status, stdout, stderr := apptest.Run("explain", "x.softmax(-1)", "x=f32[64,32]")
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Contains(t, stdout, "f32[64 32] of x=f32[64,32] on cpu:0\n")
	assert.Contains(t, stdout, "max sub exp sum reciprocal mul")
	assert.Contains(t, stdout, "1 task; operation by operation 6\n")
	assert.Contains(t, stdout, "\ncosts: task 10000, element 2 up to 1 MiB, ")
	assert.Contains(t, stdout, "4096 elements (defaults)\n")

	status, stdout, stderr = apptest.Run("explain", "--json", "--time", "h := (x.matmul(w) + b).relu(); loss := (1 - "+
		"h).square().mean(); grad(loss, w, b)",
		"x=f32[8,4]", "w=f32[4,3]", "b=f32[3]")
	require.Equal(t, app.ExitOK, status, stderr)
	d := apptest.Document(t, stdout)
	assert.Equal(t, []any{"f32[4 3]", "f32[3]"}, d["results"])
	assert.Positive(t, d["seconds"])
	assert.Greater(t, d["tasks_without_fusion"], float64(len(d["tasks"].([]any))))

	status, stdout, stderr = apptest.Run("explain", "--passes", "x.matmul(w).softmax(-1)", "x=f32[8,4]", "w=f32[4,3]")
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Contains(t, stdout, "choose\n")
	assert.Contains(t, stdout, "matmul f32[8 3] in a1[3 1]: computed in memory\n")
	assert.Contains(t, stdout, "1 max sub exp sum reciprocal mul: reads a1 stores a0\n")

	for expression, says := range map[string]string{
		"y + 1":                 "there is no tensor \"y\" (column 1)\n",
		"x.frobnicate()":        "tensors have no method \"frobnicate\" (column 3)\n",
		"x.softmax()":           "softmax takes 1 argument, not 0 (column 3)",
		"x.matmul(x).exp() + x": "concord: matmul: tensor: shapes do not fit: [64 32] by [64 32] (column 3)\n",
		"y := x.exp()\nz := y + x.softmax(7)": "concord: softmax: tensor: shapes do not fit: axis 7 of shape [64 32] (line " +
			"2, column 12)\n",
		"x.exp() * (x + x.t())": "(column 14)\n",
		"grad(x, x)":            "(column 1)\n",
		"x +":                   "is not an expression of Go: at the end, expected operand\n",
		"x + ) y":               "is not an expression of Go: column 5, expected operand, found ')'\n",
		"x[0]":                  "this is no name, number, operator or call (column 1)\n",
		"x.t = x":               "only names are assigned to (column 1)\n",
		"-x":                    "an EXPRESSION that begins with - follows --",
		"for {}":                "column 1 is neither an expression nor an assignment",
		"x.rank()":              "rank does not return tensors",
	} {
		status, _, stderr = apptest.Run("explain", expression, "x=f32[64,32]")
		assert.Equal(t, app.ExitUsage, status, expression)
		assert.Contains(t, stderr, says)
	}
	for _, input := range []string{"x", "x=f33[2]", "x=f32[a]", "1=f32[2]", "x=f32[2", "y=f32[2]", "x=f32[-1]"} {
		status, _, _ = apptest.Run("explain", "x + 1", "y=f32[2]", input)
		assert.Equal(t, app.ExitUsage, status, input)
	}
	status, _, stderr = apptest.Run("explain", "--", "-x", "x=F32[2]")
	assert.Equal(t, app.ExitOK, status, stderr)
}

// Costs that were measured are named so.
func TestExplainCosts(t *testing.T) {
	dev, err := runtime.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	defer dev.Close()
	table := dev.Choices().New(map[string]int{"tensor.task": 20000})
	var text bytes.Buffer
	require.NoError(t, table.Write(&text))
	t.Setenv("CONCORD_TUNE", apptest.TextFile(t, "table.json", text.String()))
	status, stdout, stderr := apptest.Run("explain", "x + 1", "x=f32[9]")
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Contains(t, stdout, "costs: task 20000, ")
	assert.Contains(t, stdout, "(from a table of "+table.Made.Format(time.DateOnly)+")\n")
	status, stdout, stderr = apptest.Run("explain", "--json", "x + 1", "x=f32[9]")
	require.Equal(t, app.ExitOK, status, stderr)
	costs := apptest.Document(t, stdout)["costs"].(map[string]any)
	assert.EqualValues(t, 20000, costs["task"])
	assert.Equal(t, table.Made.Format(time.RFC3339), costs["measured"])
}
