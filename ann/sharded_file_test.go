package ann

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
)

// TestShardedFile saves shards and opens them with groups of other sizes: it finds shards that are left out or twice,
// and what a file does not keep.
func TestShardedFile(t *testing.T) {
	const dim = 6
	ctx := t.Context()
	r := rand.New(rand.NewPCG(5, 9))
	for i, c := range []struct {
		kind string
		n    int
		o    Options
	}{{"flat", 100, Options{Precision: INT8Scaled, Weights: []float64{1, 2, 0.5}}}, {"flat", 1, Options{}},
		{"brute", 0, Options{}}, {"ivf", 500, Options{IVF: IVFOptions{Lists: 9, Probes: 9}, MaxRows: 501}},
		{"pq", 500, Options{IVF: IVFOptions{Lists: 9}}}, {"hnsw", 300, Options{HNSW: HNSWOptions{Codes: true, M: 5}}}} {
		t.Run(fmt.Sprint(i, c.kind), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "index")
			ids, vectors, queries := numbers(r, c.n), random(r, c.n, dim), random(r, 6, dim)
			s := sharded(t, virtual(t, 3), c.kind, dim, Euclidean, c.o)
			require.NoError(t, s.Add(ctx, ids, vectors))
			if c.n > 10 {
				require.NoError(t, s.Remove(ctx, ids[:9]))
				ids = ids[9:]
			}
			for save, members := range []int{1, 2, 3, 5} {
				if save%2 == 0 {
					require.NoError(t, s.Save(ctx, dir))
				} else {
					require.NoError(t, Save(ctx, dir, s))
				}
				files, err := os.ReadDir(dir)
				require.NoError(t, err)
				require.Len(t, files, 4, "earlier ones are removed")
				again, err := OpenSharded(ctx, virtual(t, members), dir)
				require.NoError(t, err)
				require.Len(t, again.Shards(), 3)
				require.NoError(t, differ(ctx, s, again, ids, queries, dim), "opened")
				want, got := s.Info(), again.Info()
				want.DeviceMemory, got.DeviceMemory = 0, 0
				require.Equal(t, want, got)
				if c.o.MaxRows > 0 {
					require.ErrorIs(t, again.Add(ctx, counted(12), make([]float32, 12*dim)), runtime.ErrBudget)
				}
				for _, ix := range []Index{s, again} { // a file's memory is copied before
					require.NoError(t, ix.Add(ctx, []int64{3}, queries[:dim]))
				}
				require.NoError(t, differ(ctx, s, again, append(slices.Clone(ids), 3), queries, dim), "changed")
				require.NoError(t, again.Close())
				require.NoError(t, s.Remove(ctx, []int64{3}))
			}
		})
	}
}

// TestShardedDamaged has files that are damaged, missing or of another index: nothing opens, and the error names the
// member.
func TestShardedDamaged(t *testing.T) {
	ctx := t.Context()
	g := virtual(t, 2)
	dir := t.TempDir()
	_, err := OpenSharded(ctx, g, dir)
	assert.ErrorIs(t, err, os.ErrNotExist)
	s := sharded(t, g, "flat", 3, L2Squared, Options{})
	require.NoError(t, s.Add(ctx, counted(50), make([]float32, 150)))
	require.NoError(t, s.Save(ctx, dir))
	opens := func(want error, rank int) {
		t.Helper()
		again, err := OpenSharded(ctx, g, dir)
		require.ErrorIs(t, err, want)
		assert.Nil(t, again)
		if named, ok := errors.AsType[*cluster.MemberError](err); rank >= 0 && assert.True(t, ok, "%v", err) {
			assert.Equal(t, rank, named.Rank)
		}
	}
	main, second := filepath.Join(dir, mainFile), shardPath(dir, 1, 1)
	for _, name := range []string{main, second} {
		whole, err := os.ReadFile(name)
		require.NoError(t, err)
		rank := -1
		if name == second {
			rank = 1
		}
		for at := 0; at < len(whole); at += 97 {
			damaged := slices.Clone(whole)
			damaged[at] ^= 4
			require.NoError(t, os.WriteFile(name, damaged, 0o666))
			again, err := OpenSharded(ctx, g, dir)
			if err == nil { // of a section that is checked at its first use, or fills a block
				_, err = again.Search(ctx, nil, make([]float32, 3), 50, nil)
				require.NoError(t, again.Close())
			}
			if err != nil {
				require.True(t, errors.Is(err, runtime.ErrCorrupt) || errors.Is(err, runtime.ErrFormat) ||
					errors.Is(err, runtime.ErrUnsupported), "%v", err)
			}
		}
		require.NoError(t, os.WriteFile(name, whole[:len(whole)-64], 0o666))
		opens(runtime.ErrCorrupt, rank)
		require.NoError(t, os.WriteFile(name, whole, 0o666))
	}
	// a shard of an index with fewer vectors
	other := flat(t, open(t, "cpu:0"), 3, L2Squared, FlatOptions{})
	require.NoError(t, other.Add(ctx, []int64{1}, make([]float32, 3)))
	require.NoError(t, Save(ctx, second, other))
	opens(runtime.ErrCorrupt, 1)
	require.NoError(t, os.Remove(second))
	opens(os.ErrNotExist, 1)
	require.NoError(t, Save(ctx, main, other))
	opens(runtime.ErrFormat, -1)
	_, err = Open(ctx, dir, Options{})
	assert.Error(t, err)
}

// TestShardedSaveFails has saves that fail, before and after shards were written: the old index stays.
func TestShardedSaveFails(t *testing.T) {
	ctx := t.Context()
	g := virtual(t, 2)
	dir := t.TempDir()
	s := sharded(t, g, "flat", 3, L2Squared, Options{})
	require.NoError(t, s.Add(ctx, counted(50), make([]float32, 150)))
	require.NoError(t, s.Save(ctx, dir))
	require.NoError(t, s.Add(ctx, counted(60)[50:], make([]float32, 30)))
	ended, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, s.Save(ended, dir), context.Canceled)
	require.NoError(t, os.Mkdir(shardPath(dir, 1, 2), 0o777)) // in the way of the second shard
	err := s.Save(ctx, dir)
	named, ok := errors.AsType[*cluster.MemberError](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, 1, named.Rank)
	assert.NoFileExists(t, shardPath(dir, 0, 2))
	again, err := OpenSharded(ctx, g, dir)
	require.NoError(t, err)
	assert.Equal(t, 50, again.Len())
	require.NoError(t, again.Close())
	require.NoError(t, s.Save(ctx, dir)) // which has removed the empty directory
	again, err = OpenSharded(ctx, g, dir)
	require.NoError(t, err)
	assert.Equal(t, 60, again.Len())
	require.NoError(t, again.Close())
}
