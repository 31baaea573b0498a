package runtime

// The shape of a launch.

import (
	"cmp"
	"fmt"
	"math"
)

// Grid is the shape of a launch: the number of items, and the number of items in a group, in each
// dimension. It counts items, as OpenCL does: 1,000 items in groups of 100 are 10 groups. The items
// of each dimension are a multiple of the group's. Dimensions after the first that are 0 do not
// exist. If the group size is left out, the runtime chooses one.
type Grid struct {
	Items [3]int
	Group [3]int

	flops, bytes float64 // of Does

	tooMany int // dimensions that Items or InGroups was called with, if more than three
}

// Items returns a grid of one, two or three dimensions. Every launch refuses a grid of more.
func Items(n ...int) Grid {
	var g Grid
	copy(g.Items[:], n)
	if len(n) > len(g.Items) {
		g.tooMany = len(n)
	}
	return g
}

// InGroups returns the grid with a group size: Items(1024, 1024).InGroups(16, 16).
func (g Grid) InGroups(n ...int) Grid {
	g.Group = [3]int{}
	copy(g.Group[:], n)
	if len(n) > len(g.Group) {
		g.tooMany = len(n)
	}
	return g
}

// Does returns the grid with the work of a launch, for observers of the session: operations, and bytes read
// and written, each counted once. It changes nothing else. Without it, or with 0 and 0, the work is that which
// the program's family knows (source.Options.Work), as those of the catalog do, or unknown.
func (g Grid) Does(flops, bytes float64) Grid {
	g.flops, g.bytes = flops, bytes
	return g
}

// Cover returns a one-dimensional grid of whole groups with at least n items, for kernels that
// check their bounds. If there is no such grid, every launch refuses the result.
func Cover(n, group int) Grid {
	if n <= 0 || group <= 0 || n > math.MaxInt-group {
		return Items(n).InGroups(cmp.Or(group, -1))
	}
	return Items((n + group - 1) / group * group).InGroups(group)
}

// String returns items and group size: "1024x1024 in 16x16".
func (g Grid) String() string {
	if g.tooMany > 0 {
		return fmt.Sprintf("of %d dimensions", g.tooMany)
	}
	s := dims(g.Items)
	if g.Group != [3]int{} {
		s += " in " + dims(g.Group)
	}
	return s
}

func dims(d [3]int) string {
	switch {
	case d[2] != 0:
		return fmt.Sprintf("%dx%dx%d", d[0], d[1], d[2])
	case d[1] != 0:
		return fmt.Sprintf("%dx%d", d[0], d[1])
	}
	return fmt.Sprint(d[0])
}

// maxGroups is the limit on groups per dimension where a device states none. It is CUDA's limit
// along x, and keeps the number of groups in the range of an int of the kernel.
const maxGroups = math.MaxInt32

// resolve checks a grid against a kernel and its device, and fills in the missing dimensions and
// the group size.
func (g Grid) resolve(k *Kernel) (dim int, items, group [3]int, err error) {
	items, group = g.Items, g.Group
	if g.tooMany > 0 {
		return 0, items, group, fmt.Errorf("grid %v, at most 3: %w", g, ErrInvalidArgument)
	}
	dim = 3
	for dim > 1 && items[dim-1] == 0 && group[dim-1] == 0 {
		dim--
	}
	most := k.program.device.info.MaxItems
	for i := range items {
		if i >= dim {
			items[i] = 1
		}
		switch {
		case items[i] <= 0:
			return 0, items, group, fmt.Errorf("grid %v: %d items in dimension %d, at least 1: %w", g, items[i], i,
				ErrInvalidArgument)
		case group[i] < 0:
			return 0, items, group, fmt.Errorf("grid %v: group of %d in dimension %d, at least 1: %w", g, group[i], i,
				ErrInvalidArgument)
		case most > 0 && items[i] > most:
			return 0, items, group, fmt.Errorf("grid %v: %d items in dimension %d, at most %d: %w", g, items[i], i, most,
				ErrTooLarge)
		}
	}
	if items[0] > math.MaxInt/items[1] || items[0]*items[1] > math.MaxInt/items[2] {
		return 0, items, group, fmt.Errorf("grid %v: more than %d items: %w", g, math.MaxInt, ErrTooLarge)
	}
	if group == [3]int{} {
		group = k.pickGroup(dim, items)
	}
	for i := dim; i < 3; i++ {
		group[i] = 1
	}
	return dim, items, group, k.checkGroup(g, items, group)
}

// checkGroup returns an error for a group size that the kernel cannot run with.
func (k *Kernel) checkGroup(g Grid, items, group [3]int) error {
	info := &k.program.device.info
	for i := range items {
		if group[i] == 0 || items[i]%group[i] != 0 {
			return fmt.Errorf("grid %v: %d items in dimension %d are no multiple of the group's %d: %w", g, items[i], i,
				group[i], ErrInvalidArgument)
		}
		limit := groupsAlong(info, i)
		if n := items[i] / group[i]; n > limit {
			return fmt.Errorf("grid %v: %d groups in dimension %d, at most %d: %w", g, n, i, limit, ErrTooLarge)
		}
		if most := info.MaxGroupSizes[i]; most > 0 && group[i] > most {
			return fmt.Errorf("grid %v: group of %d in dimension %d, at most %d: %w", g, group[i], i, most, ErrTooLarge)
		}
	}
	if n, most := countGroups(items, group), info.MaxGroupCount; most > 0 && n > most {
		return fmt.Errorf("grid %v: %d groups of %s, at most %d: %w", g, n, dims(group), most, ErrTooLarge)
	}
	if most := k.maxGroup(); most > 0 && (group[0] > most || group[0]*group[1] > most ||
		group[0]*group[1]*group[2] > most) {
		return fmt.Errorf("grid %v: groups larger than the %d items that %s allows: %w", g, most, k.decl.Name, ErrTooLarge)
	}
	if want := k.decl.ReqdLocal; want != [3]int{} && group != want && !k.info.Native {
		return fmt.Errorf("grid %v: %s requires groups of %v: %w", g, k.decl.Name, want, ErrInvalidArgument)
	}
	return nil
}

// countGroups returns the number of groups of a grid, which is never more than its items.
func countGroups(items, group [3]int) int {
	return (items[0] / group[0]) * (items[1] / group[1]) * (items[2] / group[2])
}

// maxGroup is the largest group size of the kernel, or 0 if it is unknown.
func (k *Kernel) maxGroup() int {
	if k.info.MaxGroup > 0 {
		return k.info.MaxGroup
	}
	return k.program.device.info.MaxGroupSize
}

// preferredGroup is the limit on the group size that pickGroup chooses: enough items to keep any
// device busy, and few enough for every device.
const preferredGroup = 256

// pickGroup chooses a group size that divides the items: the size that the kernel requires, or else
// the largest divisor of the first dimension up to 256, and then divisors of the others within the
// room that is left. A dimension in which that would give more groups than the device allows gets
// larger groups first; if the total would be too large, all groups get larger.
func (k *Kernel) pickGroup(dim int, items [3]int) (group [3]int) {
	if k.decl.ReqdLocal != [3]int{} {
		return k.decl.ReqdLocal
	}
	room, most := preferredGroup, k.maxGroup()
	if most > 0 {
		room = min(room, most)
	}
	count := k.program.device.info.MaxGroupCount
	for {
		group = k.groupWithin(room, dim, items)
		if count <= 0 || room >= most || countGroups(items, group) <= count {
			return group
		}
		room = min(2*room, most)
	}
}

// groupWithin is pickGroup with at most room items per group, unless the limits require more.
func (k *Kernel) groupWithin(room, dim int, items [3]int) (group [3]int) {
	info := &k.program.device.info
	var most, need [3]int // items of a group along each dimension
	all := 1
	for i := range items {
		if most[i] = info.MaxGroupSizes[i]; most[i] <= 0 {
			most[i] = max(preferredGroup, k.maxGroup())
		}
		need[i] = smallestDivisor(items[i], (items[i]-1)/groupsAlong(info, i)+1, most[i])
		all *= need[i]
	}
	room = max(room, all) // too many groups are worse than large ones; checkGroup refuses impossible sizes
	group = [3]int{1, 1, 1}
	for i := range dim {
		all /= need[i] // the items that the later dimensions need
		group[i] = largestDivisor(items[i], min(room/all, most[i]))
		room /= group[i]
	}
	return group
}

// groupsAlong returns the largest number of groups of a launch along a dimension.
func groupsAlong(info *Info, i int) int {
	if limit := info.MaxGroups[i]; limit > 0 {
		return limit
	}
	return maxGroups
}

// smallestDivisor returns the smallest divisor of n from least to most, or 1.
func smallestDivisor(n, least, most int) int {
	for d := least; d <= min(n, most); d++ {
		if n%d == 0 {
			return d
		}
	}
	return 1
}

func largestDivisor(n, most int) int {
	for d := min(n, most); d > 1; d-- {
		if n%d == 0 {
			return d
		}
	}
	return 1
}
