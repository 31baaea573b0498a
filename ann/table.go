package ann

// Which rows an index has, and the rows of ids.

import (
	"cmp"
	"slices"
)

// table has the id of each row, the removed rows, and the rows of ids. Making a map of all ids takes longer than
// opening a file in all other respects, so the ids of a file stay in order, and only those that are added later
// come to a map. The zero value is empty. The locks of the index guard it.
type table struct {
	ids    []int64          // by row, also of removed ones
	sorted int              // so many rows, from the first on, are in ascending order of ids
	order  []uint32         // if not nil, the first rows in the order of their ids instead
	tail   map[int64]uint32 // the others
	live   bitset           // the rows that are not removed; nil if none is. A row behind the last is live
	gone   int              // removed rows, which are tombstones
	added  []uint64         // ascending in the order in which rows were added; nil if they are in it
	next   uint64           // the next of added
}

// len returns the number of rows that are not removed.
func (t *table) len() int { return len(t.ids) - t.gone }

// ascending reports whether all rows are in the order of their ids.
func (t *table) ascending() bool { return t.sorted == len(t.ids) }

// row returns the row of an id.
func (t *table) row(id int64) (int, bool) {
	if t.order != nil {
		i, ok := slices.BinarySearchFunc(t.order, id, func(row uint32, id int64) int { return cmp.Compare(t.ids[row], id) })
		if ok && t.live.has(int(t.order[i])) {
			return int(t.order[i]), true
		}
	} else if i, ok := slices.BinarySearch(t.ids[:t.sorted], id); ok && t.live.has(i) {
		return i, true
	}
	row, ok := t.tail[id]
	return int(row), ok
}

// grow adds rows with ids, in an order of these or as they are if it is nil. They are live, and no id leads to
// them yet.
func (t *table) grow(ids []int64, order []int) {
	n := len(t.ids)
	if t.added == nil {
		t.next = uint64(n)
		for i := 0; order != nil && i < n; i++ {
			t.added = append(t.added, uint64(i))
		}
	}
	t.ids = slices.Grow(t.ids, len(ids))
	for i, id := range ids {
		if order != nil {
			t.ids, t.added = append(t.ids, ids[order[i]]), append(t.added, t.next+uint64(order[i]))
			continue
		}
		if t.ids = append(t.ids, id); t.added != nil {
			t.added = append(t.added, t.next+uint64(i))
		}
	}
	t.next += uint64(len(ids))
	for t.live != nil && 64*len(t.live) < len(t.ids) {
		t.live = append(t.live, ^uint64(0))
	}
}

// index lets ids lead to the rows from first on.
func (t *table) index(first int) {
	if t.tail == nil {
		t.tail = make(map[int64]uint32, len(t.ids)-first)
	}
	for i, id := range t.ids[first:] {
		t.tail[id] = uint32(first + i)
	}
}

// remove removes rows.
func (t *table) remove(rows []int) {
	if len(rows) > 0 && t.live == nil {
		t.live = newBitset(len(t.ids))
		for i := range t.live {
			t.live[i] = ^uint64(0)
		}
	}
	for _, row := range rows {
		t.live.put(row, false)
		if at, ok := t.tail[t.ids[row]]; ok && int(at) == row {
			delete(t.tail, t.ids[row])
		}
	}
	t.gone += len(rows)
}

// kept returns the rows that are not removed.
func (t *table) kept() []uint32 {
	rows := make([]uint32, 0, t.len())
	for i := range t.ids {
		if t.live.has(i) {
			rows = append(rows, uint32(i))
		}
	}
	return rows
}

// byID returns the rows that are not removed in the order of their ids.
func (t *table) byID() []uint32 {
	rows := t.kept()
	if !t.ascending() {
		slices.SortFunc(rows, func(a, b uint32) int { return cmp.Compare(t.ids[a], t.ids[b]) })
	}
	return rows
}

// idsOf returns the ids of rows.
func (t *table) idsOf(rows []uint32) []int64 {
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = t.ids[row]
	}
	return ids
}

// pick makes the table one of all rows that are not removed, in another order. No id leads to them yet.
func (t *table) pick(rows []uint32) {
	ranks, added := t.ranks(), make([]uint64, len(rows))
	for i, row := range rows {
		if added[i] = uint64(row); ranks != nil {
			added[i] = uint64(ranks[row])
		}
	}
	if slices.IsSorted(added) {
		added = nil
	}
	*t = table{ids: t.idsOf(rows), tail: t.tail, added: added, next: uint64(len(rows))}
}

// ranks returns for each row how many that are not removed were added before it, nil if these are the rows
// before it.
func (t *table) ranks() []uint32 {
	if t.gone == 0 && slices.IsSorted(t.added) {
		return nil
	}
	rank := make([]uint32, len(t.ids))
	if t.gone == 0 { // then added has the numbers from 0 to next
		for i, n := range t.added {
			rank[i] = uint32(n)
		}
		return rank
	}
	rows := t.kept()
	if t.added != nil {
		slices.SortFunc(rows, func(a, b uint32) int { return cmp.Compare(t.added[a], t.added[b]) })
	}
	for i, row := range rows {
		rank[row] = uint32(i)
	}
	return rank
}

// rank sets what ranks returned.
func (t *table) rank(ranks []uint32) {
	if len(ranks) > 0 {
		t.added = make([]uint64, len(ranks))
	}
	for i, n := range ranks {
		t.added[i] = uint64(n)
	}
	t.next = uint64(len(t.ids))
}

// seen returns the rows as a filter sees them.
func (t *table) seen() *rows { return &rows{table: t, place: t.row} }
