package loops

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/source/internal/check"
	"github.com/concord-compute/concord/source/internal/preprocess"
	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// Parsed returns the tree of a program.
func Parsed(t *testing.T, text string) *tree.Program {
	t.Helper()
	m, features := token.NewMeter(t.Context()), token.Features{FP64: true}
	pp, err := preprocess.Expand(m, text, preprocess.Options{Features: features})
	require.NoError(t, err)
	p, err := check.Parse(m, pp.Tokens, features)
	require.NoError(t, err)
	return p
}

// TestGuards: conditions that become bounds of the loop over the items.
func TestGuards(t *testing.T) {
	for body, want := range map[string][]Limit{
		"size_t i = get_global_id(0); if (i < m) x[i] = 1;":                {{ItemID{true, 0}, "<", nil}},
		"int i = get_global_id(0); if (n > i) x[i] = 1;":                   {{ItemID{true, 0}, "<", nil}},
		"int i = get_global_id(1); if (i >= n) return; x[i] = 1;":          {{ItemID{true, 1}, "<", nil}},
		"int i = get_global_id(0); if (i > 0 && x[i] && i <= n) x[i] = 1;": {{ItemID{true, 0}, ">", nil}},
		"if (get_local_id(2) == 0) x[0] = 1;":                              {{ItemID{false, 2}, "==", nil}},
		"int i = get_global_id(0); if (i < 1 || i >= n - 1) return; x[i] = 1;": {
			{ItemID{true, 0}, ">=", nil}, {ItemID{true, 0}, "<", nil}},
		"int i = get_global_id(0); if (i < n) x[i] = 1; x[0] = 2;":                nil,
		"int i = get_global_id(0); if (i < n) x[i] = 1; else x[0] = 2;":           nil,
		"int i = get_global_id(0); x[i] = 2; if (i < n) x[i] = 1;":                nil,
		"short i = get_global_id(0); if (i < n) x[i] = 1;":                        nil,
		"int i = get_global_id(0); if (i < x[0]) x[i] = 1;":                       nil,
		"int i = get_global_id(0); if (i < 100 / n) x[i] = 1;":                    nil,
		"int i = get_global_id(0); if (i != n) x[i] = 1;":                         nil,
		"int i = get_global_id(0); if (i < n || n == 7) x[i] = 1;":                nil,
		"int i = get_global_id(0); i++; if (i < n) x[i] = 1;":                     nil,
		"float i = get_global_id(0); if (i < n) x[0] = 1;":                        nil,
		"int i = get_global_id(0), k = n / 2; if (i < k) x[i] = 1;":               {{ItemID{true, 0}, "<", nil}},
		"int i = get_global_id(0); if (i >= n || x[i] == 0) return; x[i] = 1;":    {{ItemID{true, 0}, "<", nil}},
		"int i = get_global_id(0); if (i != 5) return; x[i] = 1;":                 {{ItemID{true, 0}, "==", nil}},
		"n = min(n, 5); int i = get_global_id(0); if (i < n) x[i] = 1;":           nil,
		"int i = get_global_id(0); if (i < n) { if (i < 3) x[i] = 1; x[i] += 2;}": {{ItemID{true, 0}, "<", nil}},
	} {
		p := Parsed(t, "kernel void k(global int *x, int n, ulong m) { "+body+" }")
		f := newFission(p.Funcs[0], token.NewMeter(t.Context()), map[*tree.Function]bool{})
		require.NotNil(t, f)
		require.Len(t, f.regions, 1)
		got := f.Guards(f.regions[0])
		for i := range got {
			got[i].U = nil
		}
		assert.Equal(t, want, got, body)
	}
}
