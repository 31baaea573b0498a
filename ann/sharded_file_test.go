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

// shardFileOf returns the file of a shard in a directory of one save.
func shardFileOf(t testing.TB, dir string, number int) string {
	t.Helper()
	m, err := readMain(dir)
	require.NoError(t, err)
	return shardPath(dir, number, m.Save)
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
	main, second := filepath.Join(dir, mainFile), shardFileOf(t, dir, 1)
	for _, name := range []string{main, second} {
		whole, err := os.ReadFile(name)
		require.NoError(t, err)
		rank := -1
		if name == second {
			rank = 1
		}
		var unnoticed []byte
		for at := range whole {
			damaged := slices.Clone(whole)
			damaged[at] ^= 4
			require.NoError(t, os.WriteFile(name, damaged, 0o666))
			again, err := OpenSharded(ctx, g, dir)
			if err == nil { // of a section that is checked at its first use, or fills a block
				_, err = again.Search(ctx, nil, make([]float32, 3), 50, nil)
				require.NoError(t, again.Close())
			}
			if err == nil {
				unnoticed = append(unnoticed, whole[at])
				continue
			}
			require.True(t, errors.Is(err, runtime.ErrCorrupt) || errors.Is(err, runtime.ErrFormat) ||
				errors.Is(err, runtime.ErrUnsupported), "%v", err)
		}
		// vectors, which a search does not compare with their checksum, and what fills blocks: all are zeros here
		assert.False(t, slices.ContainsFunc(unnoticed, func(b byte) bool { return b != 0 }), name)
		t.Logf("%s: %d of %d bytes", name, len(unnoticed), len(whole))
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
	dir, other := t.TempDir(), t.TempDir()
	s := sharded(t, g, "flat", 3, L2Squared, Options{})
	require.NoError(t, s.Add(ctx, counted(60), make([]float32, 180)))
	require.NoError(t, s.Save(ctx, other))
	damaged := shardFileOf(t, other, 1)
	whole, err := os.ReadFile(damaged)
	require.NoError(t, err)
	require.NoError(t, s.Remove(ctx, counted(60)[50:]))
	require.NoError(t, s.Save(ctx, dir))
	before, err := os.ReadDir(dir)
	require.NoError(t, err)
	opens := func(n int) {
		t.Helper()
		again, err := OpenSharded(ctx, g, dir)
		require.NoError(t, err)
		assert.Equal(t, n, again.Len())
		require.NoError(t, again.Close())
		after, err := os.ReadDir(dir)
		require.NoError(t, err)
		assert.Len(t, after, len(before))
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, s.Save(ended, dir), context.Canceled)
	opens(50)
	at := len(whole) / 2
	for at < len(whole) { // a vector, which is read only when the file is copied
		flipped := slices.Clone(whole)
		flipped[at] ^= 4
		require.NoError(t, os.WriteFile(damaged, flipped, 0o666))
		if from, err := OpenSharded(ctx, g, other); err == nil {
			if err := from.Save(ctx, dir); err != nil {
				named, ok := errors.AsType[*cluster.MemberError](err)
				require.True(t, ok, "%v", err)
				assert.Equal(t, 1, named.Rank)
				require.ErrorIs(t, err, runtime.ErrCorrupt)
				require.NoError(t, from.Close())
				opens(50)
				break
			}
			require.NoError(t, from.Close())
			require.NoError(t, s.Save(ctx, dir))
		}
		at++
	}
	require.Less(t, at, len(whole), "no save has failed")
	require.NoError(t, s.Add(ctx, counted(60)[50:], make([]float32, 30)))
	require.NoError(t, s.Save(ctx, dir))
	opens(60)
}

// TestShardedDirectory has directories whose names are patterns, and one with a file that is no index: Save removes
// nothing of others, and does not replace what it cannot read.
func TestShardedDirectory(t *testing.T) {
	ctx := t.Context()
	g := virtual(t, 2)
	parent := t.TempDir()
	s := sharded(t, g, "flat", 3, L2Squared, Options{})
	require.NoError(t, s.Add(ctx, counted(50), make([]float32, 150)))
	for range 2 {
		for _, name := range []string{"run1", "run2", "run[12]"} {
			require.NoError(t, s.Save(ctx, filepath.Join(parent, name)))
		}
	}
	for _, name := range []string{"run1", "run2", "run[12]"} {
		again, err := OpenSharded(ctx, g, filepath.Join(parent, name))
		require.NoError(t, err)
		require.NoError(t, again.Close())
	}
	path := filepath.Join(parent, "run1", mainFile)
	for _, text := range []string{"another file", ""} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
		require.Error(t, s.Save(ctx, filepath.Join(parent, "run1")))
		left, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, text, string(left))
	}
}

// TestShardedMixed has shards of another save, under the names of this one: ids or scales differ, which opening finds.
func TestShardedMixed(t *testing.T) {
	ctx := t.Context()
	g := virtual(t, 2)
	for _, kind := range []string{"flat", "ivf", "hnsw"} {
		one, other := t.TempDir(), t.TempDir()
		ids := counted(40)
		if kind == "hnsw" {
			ids = append(slices.Clone(ids[20:]), ids[:20]...)
		}
		s := sharded(t, g, kind, 1, L2Squared, Options{})
		require.NoError(t, s.Add(ctx, ids, make([]float32, 40)))
		require.NoError(t, s.Save(ctx, one))
		id := int64(40) // of the second shard, like the one for which it is there
		for s.shardOf(id) != 1 {
			id++
		}
		gone := slices.IndexFunc(ids, func(id int64) bool { return s.shardOf(id) == 1 })
		require.NoError(t, s.Remove(ctx, ids[gone:gone+1]))
		require.NoError(t, s.Add(ctx, []int64{id}, make([]float32, 1)))
		require.NoError(t, s.Save(ctx, other))
		mixed, err := os.ReadFile(shardFileOf(t, other, 1))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(shardFileOf(t, one, 1), mixed, 0o666))
		_, err = OpenSharded(ctx, g, one)
		require.ErrorIs(t, err, runtime.ErrCorrupt, kind)
		named, ok := errors.AsType[*cluster.MemberError](err)
		require.True(t, ok, "%v", err)
		assert.Equal(t, 1, named.Rank)
		// without its name, a file of another save is not found
		main, err := os.ReadFile(filepath.Join(other, mainFile))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(one, mainFile), main, 0o666))
		_, err = OpenSharded(ctx, g, one)
		require.ErrorIs(t, err, os.ErrNotExist, kind)
	}
	var saved []string
	for scale := range 2 {
		dir := t.TempDir()
		s := sharded(t, g, "flat", 1, L2Squared, Options{Precision: INT8Scaled})
		vectors := slices.Repeat([]float32{float32(1 + scale)}, 40)
		require.NoError(t, s.Add(ctx, counted(40), vectors))
		require.NoError(t, s.Save(ctx, dir))
		saved = append(saved, dir)
	}
	other, err := os.ReadFile(shardFileOf(t, saved[1], 1))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(shardFileOf(t, saved[0], 1), other, 0o666))
	_, err = OpenSharded(ctx, g, saved[0])
	require.ErrorIs(t, err, runtime.ErrCorrupt)
}
