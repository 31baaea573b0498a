package program

// concord occupancy: how many groups of a kernel a compute unit runs at a time.

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/runtime/profile"
)

// occupied is the document of occupancy.
type occupied struct {
	Target       string           `json:"target"`
	File         string           `json:"file"`
	Unit         string           `json:"unit"` // the vendor's words for a compute unit and a subgroup
	Subgroup     string           `json:"subgroup"`
	SubgroupSize int              `json:"subgroup_size"`
	Kernels      []occupiedKernel `json:"kernels"`
}

// occupiedKernel is one kernel with its residency for each group size.
type occupiedKernel struct {
	Name       string              `json:"name"`
	Registers  *int64              `json:"registers"` // null where the compiler does not report them
	LocalBytes int64               `json:"local_bytes"`
	SpillBytes *int64              `json:"spill_bytes"`
	Groups     []profile.Residency `json:"groups"`
	Best       *profile.Choice     `json:"best"` // null if no group can run
}

// occupancyFlags are the flags of occupancy.
type occupancyFlags struct {
	target  string
	program programFlags
	groups  []int
	local   int64
	items   int
}

// usualGroups are the group sizes that are shown if none is named.
var usualGroups = []int{32, 64, 128, 256, 512, 1024}

// Occupancy returns the command occupancy.
func Occupancy(a *app.App) *cobra.Command {
	var f occupancyFlags
	cmd := &cobra.Command{
		Use:   "occupancy --target T FILE",
		Short: "Compute how many groups of each kernel a compute unit runs at a time",
		Long: `Occupancy compiles FILE with the real compiler of a target, as compile does, and computes from
the registers and the local memory of each kernel how many groups of which size a compute unit runs at
a time, what limits them, and which size is likely to be best. No device is needed for an architecture
such as sm_90 or gfx90a, only the vendor's compiler. Registers that the compiler does not report are
a question mark, and the numbers then an upper limit. FILE may be x.cu or x.hip beside x.cl, as
for compile.

--group chooses the rows of the table; the best size is chosen among all sizes. A kernel that requires a
group size is shown with that size.`,
		Example: `  concord occupancy --target sm_90 saxpy.cl
  concord occupancy --target gfx90a --group 64,256 --items 1000000 saxpy.cl
  concord occupancy --target cpu:0 --json saxpy.cl`,
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&f.target, "target", "", "`target`: an architecture such as sm_90 or gfx90a, host, or a "+
		"device such as opencl:0")
	_ = cmd.MarkFlagRequired("target") // the flag exists
	cmd.Flags().IntSliceVar(&f.groups, "group", nil, "group `sizes` in items, separated by commas")
	cmd.Flags().Int64Var(&f.local, "local", 0, "`bytes` of local memory that a launch passes, besides the kernel's own")
	cmd.Flags().IntVar(&f.items, "items", 0, "`number` of items of the launch, for the best group; 0: a large number")
	f.program.add(cmd)
	return a.RunnableJSON(cmd, func(ctx context.Context, args []string) error { return occupancy(ctx, a, &f, args[0]) })
}

func occupancy(ctx context.Context, a *app.App, f *occupancyFlags, file string) error {
	if f.local < 0 || f.items < 0 {
		return app.Usagef("--local and --items are not negative")
	}
	for _, g := range f.groups {
		if g < 1 {
			return app.Usagef("--group %d: a group has at least one item", g)
		}
	}
	c, err := compile(ctx, a, f.target, &f.program, file)
	if err != nil {
		return err
	}
	out := &occupied{Target: c.Target, File: c.File, Kernels: []occupiedKernel{}}
	for _, k := range c.Kernels {
		l, err := limitsFor(c, k)
		if err != nil {
			return err
		}
		out.Unit, out.Subgroup, out.SubgroupSize = l.Unit, l.Subgroup, l.SubgroupSize
		out.Kernels = append(out.Kernels, f.kernel(l, k))
	}
	return a.Show(out, func() { writeOccupancy(a, out) })
}

// limitsFor returns the limits of what a kernel was compiled for.
func limitsFor(c *compiled, k compiledKernel) (profile.Limits, error) {
	if c.info != nil {
		return profile.DeviceLimits(*c.info)
	}
	target := strings.ToLower(strings.TrimPrefix(strings.ToLower(c.Target), "hipcc:"))
	l, err := profile.LimitsOf(target, k.subgroup)
	if err != nil {
		return l, fmt.Errorf("--target %s: %w", c.Target, err)
	}
	return l, nil
}

// kernel computes the residency of a kernel for each group size.
func (f *occupancyFlags) kernel(l profile.Limits, k compiledKernel) occupiedKernel {
	out := occupiedKernel{Name: k.Name, Registers: k.Registers, SpillBytes: k.SpillBytes, Groups: []profile.Residency{}}
	r := profile.Request{Local: f.local, MaxGroup: k.MaxGroup, Group: k.required}
	if k.LocalBytes != nil {
		r.Local += *k.LocalBytes
	}
	out.LocalBytes = r.Local
	if k.Registers != nil {
		r.Registers = int(*k.Registers)
	}
	groups := f.groups
	switch {
	case len(groups) > 0:
	case k.required > 0:
		groups = []int{k.required}
	default:
		groups = usualGroups
	}
	for _, g := range groups {
		out.Groups = append(out.Groups, profile.Occupancy(l, r, g))
	}
	if best, err := profile.BestGroup(l, r, f.items); err == nil { // else the table shows why none can run
		out.Best = &best
	}
	return out
}

func writeOccupancy(a *app.App, o *occupied) {
	a.Printf("%s for %s\n", o.File, o.Target)
	for _, k := range o.Kernels {
		a.Printf("\n%s  (registers %s, spilled %s, local memory %d)\n", a.Paint(ui.Bold, k.Name),
			orUnknown(k.Registers), orUnknown(k.SpillBytes), k.LocalBytes)
		t := ui.NewTable("GROUP", "GROUPS", strings.ToUpper(o.Subgroup)+"S", "OCCUPANCY", "LIMIT")
		for _, g := range k.Groups {
			t.Add(fmt.Sprint(g.Group), fmt.Sprint(g.Groups), fmt.Sprint(g.Subgroups), fmt.Sprintf("%.3g %%", 100*g.Fraction),
				cmp.Or(string(g.Limit), "-"))
		}
		t.Write(a.Stdout, "  ")
		switch {
		case k.Best == nil:
			a.Printf("  %s\n", k.Groups[0])
		default:
			a.Printf("  best: %s\n", k.Best.Residency)
			if advice := k.Best.Advice(); advice != "" {
				a.Printf("  to run more: %s\n", advice)
			}
		}
		if k.Registers == nil && o.SubgroupSize > 1 {
			a.Printf("  the compiler here does not report registers: these are upper limits\n")
		}
	}
}
