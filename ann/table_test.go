package ann

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTable changes a table at random, also one of a file with its ids in an order, and compares it with a list
// of the ids in the order in which they were added.
func TestTable(t *testing.T) {
	r := rand.New(rand.NewPCG(101, 102))
	for range 200 {
		n := r.IntN(150)
		added := numbers(r, n)
		tab := &table{}
		switch r.IntN(3) {
		case 0: // of a file
			tab.ids = slices.Clone(added)
			tab.order = tab.byID()
			tab.rank(nil)
		case 1: // of a file with its rows in the order of ids
			tab.grow(added, nil)
			tab.pick(tab.byID())
			of := &table{ids: tab.ids, sorted: n}
			of.rank(tab.ranks())
			tab = of
		default:
			tab.grow(added, nil)
			tab.index(0)
		}
		for range 12 {
			switch r.IntN(3) {
			case 0:
				var ids []int64
				for range r.IntN(40) {
					if id := int64(r.IntN(4000)); !slices.Contains(added, id) && !slices.Contains(ids, id) {
						ids = append(ids, id)
					}
				}
				order, err := tab.inOrder(ids)
				require.NoError(t, err)
				first := len(tab.ids)
				tab.grow(ids, order)
				tab.index(first)
				added = append(added, ids...)
			case 1:
				var rows []int
				for _, id := range added {
					if row, ok := tab.row(id); r.IntN(3) == 0 {
						require.True(t, ok)
						rows = append(rows, row)
					}
				}
				gone := map[int64]bool{}
				for _, row := range rows {
					gone[tab.ids[row]] = true
				}
				tab.remove(rows)
				added = slices.DeleteFunc(added, func(id int64) bool { return gone[id] })
				for id := range gone {
					_, ok := tab.row(id)
					require.False(t, ok, "a tombstone")
				}
			case 2:
				tab.pick(tab.byID())
				if tab.sorted = 0; r.IntN(2) == 0 {
					tab.sorted, tab.tail = len(tab.ids), nil
				} else {
					tab.index(0)
				}
				require.True(t, slices.IsSorted(tab.ids))
				require.EqualValues(t, len(tab.ids), tab.next, "no rank is left out")
			}
			require.Equal(t, len(added), tab.len())
			ranks := tab.ranks()
			for i, id := range added {
				row, ok := tab.row(id)
				require.True(t, ok)
				require.Equal(t, id, tab.ids[row])
				rank := row
				if ranks != nil {
					rank = int(ranks[row])
				}
				require.Equal(t, i, rank, "vectors that were added before")
			}
			if len(added) > 0 {
				_, err := tab.inOrder(added[:1])
				assert.Error(t, err)
			}
			want := slices.Clone(added)
			slices.Sort(want)
			assert.True(t, slices.Equal(want, tab.idsOf(tab.byID())), "in the order of ids")
		}
	}
}

// TestTableCut cuts the last rows of an index, of which some were removed, and adds others in their places, which
// are live.
func TestTableCut(t *testing.T) {
	ctx := t.Context()
	f := flat(t, open(t, "cpu:0"), 1, L2Squared, FlatOptions{})
	require.NoError(t, f.Add(ctx, counted(200), make([]float32, 200)))
	require.NoError(t, f.Remove(ctx, []int64{3, 190}))
	last := []int64{191, 192, 193, 194, 195, 196, 197, 198, 199}
	for id := int64(100); id < 190; id++ {
		last = append(last, id)
	}
	require.NoError(t, f.Remove(ctx, last))
	require.Len(t, f.ids, 100)
	require.Equal(t, 1, f.gone, "row 190 is cut")
	require.Greater(t, 64*len(f.live), len(f.ids)+64, "longer than the rows")
	more := counted(300)[100:]
	require.NoError(t, f.Add(ctx, more, make([]float32, 200)))
	require.Equal(t, 299, f.Len())
	for _, id := range more {
		row, ok := f.row(id)
		require.True(t, ok, id)
		require.EqualValues(t, id, row)
	}
	_, ok := f.row(3)
	require.False(t, ok)
	require.EqualValues(t, 100, find(t, f, []float32{0}, IDRange(100, 299))[0].ID)
}

// TestTableReplaces removes the old row of an id after the id leads to a new one, as HNSW.Update does: it goes on
// leading there, from a map as from rows in order.
func TestTableReplaces(t *testing.T) {
	for _, sorted := range []int{0, 3} {
		tab := &table{}
		tab.grow([]int64{5, 7, 9}, nil)
		if tab.sorted = sorted; sorted == 0 {
			tab.index(0)
		}
		tab.grow([]int64{7}, nil)
		old, ok := tab.row(7)
		require.True(t, ok)
		require.Equal(t, 1, old)
		tab.index(3)
		tab.remove([]int{old})
		row, ok := tab.row(7)
		require.True(t, ok)
		assert.Equal(t, 3, row)
		assert.Equal(t, 3, tab.len())
		assert.Equal(t, []int64{5, 7, 9}, tab.idsOf([]uint32{0, 3, 2}))
	}
}
