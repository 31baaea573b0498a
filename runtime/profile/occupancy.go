package profile

// How many groups run at a time, and the best size of a group.

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"

	"github.com/concord-compute/concord/runtime/driver"
)

// Request is what a kernel needs, as a compiler reports it. Zero fields do not limit anything.
type Request struct {
	Registers int   // of an item; AMD's: vector registers, with accumulation registers where they share a file
	Scalars   int   // scalar registers of a wavefront, which AMD's have
	Local     int64 // bytes of local memory of a group, fixed and of the launch together
	MaxGroup  int   // items of a group that the compiled kernel allows
	Group     int   // items of a group that the kernel requires
	MinGroups int   // groups at a time that the caller would like
}

// Resource is what limits the number of groups.
type Resource string

// The resources, in the order in which one is named if several limit equally.
const (
	NoLimit     Resource = "" // as many as there can be
	ByItems     Resource = "items"
	BySubgroups Resource = "subgroups"
	ByGroups    Resource = "groups"
	ByRegisters Resource = "registers"
	ByLocal     Resource = "local memory"
)

// Residency is what one compute unit runs of a kernel at a time.
type Residency struct {
	Group     int      `json:"group"`           // items of a group
	Groups    int      `json:"resident_groups"` // at a time; 0: such a group cannot run
	Subgroups int      `json:"resident_subgroups"`
	Items     int      `json:"-"`
	Fraction  float64  `json:"fraction"` // of the subgroups, or else the groups, that the compute unit can run at a time
	Limit     Resource `json:"limit,omitempty"`
	Enough    bool     `json:"-"` // at least Request.MinGroups run, and one
	limits    Limits
}

// Occupancy returns how many groups of that many items one compute unit runs at a time. A group that
// is empty, larger than the kernel or the architecture allows, or that needs more registers or local memory
// than there is, gives zeros with the resource that it exceeds.
//
// The rules for NVIDIA's are those of cuda_occupancy.h. Registers are allocated to warps in units, within the
// partition in which a warp runs. A group is refused whose registers would not fit if its warps were spread over all
// partitions. Those for AMD's are LLVM's. A resource that is used up by the groups counts as the limit only if fewer
// groups run than could at most.
func Occupancy(l Limits, r Request, group int) Residency {
	out := Residency{Group: group, limits: l}
	granule := func(n, unit int) int {
		if unit > 1 {
			n = (n + unit - 1) / unit * unit
		}
		return n
	}
	most := math.MaxInt
	limit := func(by Resource, groups int) {
		if groups < most {
			most, out.Limit = groups, by
		}
	}
	if group < 1 || l.MaxGroup > 0 && group > l.MaxGroup || r.MaxGroup > 0 && group > r.MaxGroup || r.Group > 0 &&
		group != r.Group {
		limit(ByItems, 0)
	}
	size := max(l.SubgroupSize, 1)
	each := max((group-1)/size+1, 1) // subgroups of a group
	if l.Items > 0 {
		limit(ByItems, l.Items/max(group, 1))
	}
	if l.Subgroups > 0 {
		limit(BySubgroups, l.Subgroups/each)
	}
	if l.Groups > 0 {
		limit(ByGroups, l.Groups)
	}
	if l.ManyGroups > 0 && each > 1 {
		limit(ByGroups, l.ManyGroups)
	}
	if l.MaxRegisters > 0 && r.Registers > l.MaxRegisters {
		limit(ByRegisters, 0)
	}
	if l.Registers > 0 && r.Registers > 0 {
		one := granule(r.Registers, l.RegisterGranule)
		const spread = 4 // a group's registers are checked as if it took as much of each of four partitions
		if l.GroupRegisters > 0 && one*granule(each, spread) > l.GroupRegisters {
			limit(ByRegisters, 0)
		}
		limit(ByRegisters, l.Registers/one*l.Partitions/each)
	}
	if l.Scalars > 0 && r.Scalars > 0 {
		limit(ByRegisters, l.Scalars/(granule(r.Scalars, l.ScalarGranule)+l.ScalarReserve)*l.Partitions/each)
	}
	if l.LocalGroup > 0 && r.Local > l.LocalGroup {
		limit(ByLocal, 0)
	}
	if one := r.Local + l.LocalReserve; l.Local > 0 && one > 0 {
		unit := max(l.LocalGranule, 1)
		limit(ByLocal, int(l.Local/((one+unit-1)/unit*unit)))
	}
	if most == math.MaxInt { // nothing is known
		most = 0
	}
	out.Groups = most
	out.Subgroups, out.Items = most*each, most*max(group, 0)
	switch {
	case l.Subgroups > 0:
		out.Fraction = float64(out.Subgroups) / float64(l.Subgroups)
	case l.Groups > 0:
		out.Fraction = float64(out.Groups) / float64(l.Groups)
	}
	if out.Fraction > 0.999 {
		out.Limit = NoLimit
	}
	out.Enough = out.Groups > 0 && out.Groups >= r.MinGroups
	return out
}

// Good reports whether at least half of the subgroups run that can.
func (r Residency) Good() bool { return r.Fraction >= 0.5 }

// Excellent reports whether at least three quarters of the subgroups run that can.
func (r Residency) Excellent() bool { return r.Fraction >= 0.75 }

// String returns a line such as "6 groups of 256 items, 48 of 64 warps (75 %), limited by registers".
func (r Residency) String() string {
	if r.Groups == 0 {
		why := map[Resource]string{ByItems: "this kernel cannot have that size on " + r.limits.Target,
			ByRegisters: "its registers do not fit", ByLocal: "its local memory does not fit"}
		return fmt.Sprintf("no group of %d items can run: %s", r.Group, cmp.Or(why[r.Limit], "no limit is known"))
	}
	s := fmt.Sprintf("%d groups of %d items", r.Groups, r.Group)
	if r.Groups == 1 {
		s = fmt.Sprintf("1 group of %d items", r.Group)
	}
	if r.limits.Subgroups > 0 {
		s += fmt.Sprintf(", %d of %d %ss", r.Subgroups, r.limits.Subgroups, r.limits.Subgroup)
	}
	s += fmt.Sprintf(" (%.3g %%)", 100*r.Fraction)
	if r.Limit != NoLimit {
		s += ", limited by " + r.limits.word(r.Limit)
	}
	return s
}

// word is the vendor's word for a resource.
func (l *Limits) word(r Resource) string {
	if r == BySubgroups && l.Subgroup != "" {
		return l.Subgroup + "s"
	}
	return string(r)
}

// Advice says what would let more groups run, or "" if as many run as can.
func (r Residency) Advice() string {
	switch r.Limit {
	case ByItems:
		if r.Groups == 0 {
			return "take another group size"
		}
		return "take a group size that divides the number of items that a compute unit runs"
	case BySubgroups:
		return "take a group size whose subgroups divide those that a compute unit runs"
	case ByGroups:
		return "take larger groups"
	case ByRegisters:
		if r.Groups == 0 {
			return "take smaller groups, or use fewer registers"
		}
		return "use fewer registers: keep fewer values at a time, or allow the compiler fewer"
	case ByLocal:
		return "use less local memory, or share it among more items of larger groups"
	}
	return ""
}

// Choice is the advice of BestGroup.
type Choice struct {
	Residency
	Grid  int     `json:"-"`     // groups that cover the items; 0 if their number was not given
	Score float64 `json:"score"` // 0 to 1
}

// candidates are the group sizes that BestGroup tries.
var candidates = [...]int{32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 384, 448, 512, 640, 768, 896, 1024}

// BestGroup returns the number of items of a group with which a kernel over that many items is likely to run best;
// items 0 stands for a large number. The score is the occupancy, less where there are fewer than four groups for each
// compute unit or where the last group is partly empty. Powers of two and larger groups get a little more; of equal
// scores the smaller group wins. On a CPU, where all sizes that fit are equally occupied, the larger one does. It is
// advice by rule: a measurement decides. A kernel of which no group fits is ErrLaunch.
func BestGroup(l Limits, r Request, items int) (Choice, error) {
	if items < 0 {
		return Choice{}, fmt.Errorf("best group for %d items: %w", items, driver.ErrInvalidArgument)
	}
	tries := candidates[:]
	if r.Group > 0 {
		tries = []int{r.Group}
	} else if 0 < r.MaxGroup && r.MaxGroup < candidates[0] { // a kernel of smaller groups than all of these
		tries = []int{r.MaxGroup}
	}
	var best Choice
	var order float64
	var refused Residency
	for _, group := range tries {
		c := Choice{Residency: Occupancy(l, r, group)}
		if c.Groups == 0 {
			if refused.Group == 0 {
				refused = c.Residency
			}
			continue
		}
		score := c.score(l, items)
		c.Score = min(score, 1)
		if l.Subgroups > 0 {
			score = c.Score
		}
		if best.Groups == 0 || score > order {
			best, order = c, score
		}
	}
	if best.Groups == 0 {
		return Choice{}, fmt.Errorf("%s: %s: %w", l.Target, refused, driver.ErrLaunch)
	}
	return best, nil
}

// score rates a group size, and sets the grid.
func (c *Choice) score(l Limits, items int) float64 {
	score, group := c.Fraction, c.Group
	if lanes := c.Subgroups * l.SubgroupSize; lanes > 0 { // a part of a subgroup takes the room of a whole one
		score *= float64(c.Items) / float64(lanes)
	}
	if items > 0 {
		c.Grid = (items-1)/group + 1
		if few := float64(4 * l.Units); l.Units > 0 && float64(c.Grid) < few {
			score *= max(0.5, float64(c.Grid)/few)
		}
	}
	if bits.OnesCount(uint(group)) == 1 {
		score *= 1.05
	}
	score += min(0.1, float64(group)/1024*0.1)
	if items > 0 {
		score *= 1 - 0.1*float64(items%group)/float64(group)
	}
	return score
}
