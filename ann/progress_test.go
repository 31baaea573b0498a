package ann

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

// TestProgress is told how far an Add is, and ends it from there: the index, in shards or not, is as it was before, and
// another Add has what one has that was not ended.
func TestProgress(t *testing.T) {
	const dim, before, n = 8, 100, 1500
	ctx := t.Context()
	r := rand.New(rand.NewPCG(3, 4))
	vectors, queries := random(r, n, dim), random(r, 4, dim)
	ids := counted(n)
	for _, shards := range []bool{false, true} {
		for kind, o := range map[string]Options{"flat": {}, "ivf": {IVF: IVFOptions{Lists: 8, Probes: 8}},
			"pq": {IVF: IVFOptions{Lists: 8, Probes: 8}}, "hnsw": {HNSW: HNSWOptions{Seed: 1, Threads: 1}}} {
			var told []Progress
			act := func() {}
			o.Progress = func(p Progress) { told = append(told, p); act() }
			made := func() Index {
				if shards {
					return sharded(t, virtual(t, 3), kind, dim, L2Squared, o)
				}
				ix, err := New(ctx, kind, dim, "l2sq", o)
				require.NoError(t, err)
				t.Cleanup(func() { assert.NoError(t, ix.Close()) })
				return ix
			}
			ix := made()
			require.NoError(t, ix.Add(ctx, ids[:before], vectors[:before*dim]))
			old, err := ix.SearchBatch(ctx, queries, 5, nil)
			require.NoError(t, err)
			short, cancel := context.WithCancel(ctx)
			act = cancel
			err = ix.Add(short, ids[before:], vectors[before*dim:])
			if kind != "flat" { // which may be done by then
				require.ErrorIs(t, err, context.Canceled, "%s, shards %v", kind, shards)
			}
			if err != nil {
				panics := errors.New("planted")
				act = func() { panic(panics) }
				require.ErrorIs(t, ix.Add(ctx, ids[before:], vectors[before*dim:]), panics)
				act = func() {}
				require.Equal(t, before, ix.Info().Len, kind)
				got, err := ix.SearchBatch(ctx, queries, 5, nil)
				require.NoError(t, err)
				assert.Equal(t, old, got, "%s, shards %v", kind, shards)
				require.ErrorIs(t, ix.Remove(ctx, ids[before:before+1]), runtime.ErrInvalidArgument)
				told = nil
				require.NoError(t, ix.Add(ctx, ids[before:], vectors[before*dim:]))
			}
			require.Equal(t, n, ix.Info().Len)
			last := told[len(told)-1]
			assert.Equal(t, last.Of, last.Done, "%s, shards %v", kind, shards)
			assert.GreaterOrEqual(t, last.Of, int64(n-before))
			assert.Zero(t, last.Remaining)
			for _, p := range told {
				assert.LessOrEqual(t, p.Done, p.Of)
				assert.GreaterOrEqual(t, p.Remaining, p.Elapsed*0)
			}
			if kind == "flat" || kind == "ivf" { // of which all lists are searched
				fresh := made()
				require.NoError(t, fresh.Add(ctx, ids, vectors))
				require.NoError(t, differ(ctx, fresh, ix, ids, queries, dim))
			}
		}
	}
}
