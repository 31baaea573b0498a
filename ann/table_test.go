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
		if r.IntN(2) == 0 { // of a file
			tab.ids = slices.Clone(added)
			tab.order = tab.byID()
			tab.rank(nil)
		} else {
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
				tab.index(0)
				require.True(t, slices.IsSorted(tab.ids))
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
