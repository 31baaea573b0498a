package conformance

// Occupancy: the limits of a group, and how many groups run at a time.

import (
	"errors"

	"github.com/concord-compute/concord/runtime"
)

const muchLocalText = `kernel void much(global uint *out, local uint *tile, uint n) {
	uint l = get_local_id(0), size = get_local_size(0), seed = get_group_id(0) + 1;
	for (uint i = l; i < n; i += size) tile[i] = i * seed;
	barrier(CLK_LOCAL_MEM_FENCE);
	uint sum = 0;
	for (uint i = l; i < n; i += size) sum += tile[n - 1 - i];
	out[get_global_id(0)] = sum;
}`

// checkMuchLocal uses all the local memory that a group may have, if that is more than 48 KiB,
// above which CUDA requires an opt-in.
func checkMuchLocal(t *row, d *device) {
	const usual = 48 << 10
	info := d.Info()
	most := max(info.LocalMemory, info.LocalMemoryOptIn)
	if most <= usual {
		t.Skipf("%s has %d bytes of local memory for a group", d, most)
	}
	k := d.kernel(t, muchLocalText, "much")
	const groups, group = 3, 32
	out := d.alloc(t, runtime.U32, groups*group)
	for _, size := range []int64{usual, usual + 128, most} {
		n := uint32(min(size, 1<<20) / 4) // more would take long
		must(t, d.Stream().Launch(k, runtime.Items(groups*group).InGroups(group), out, runtime.Local(4*n), n), "%d bytes",
			size)
		sums := make([]uint32, groups)
		for i, x := range read[uint32](t, out) {
			sums[i/group] += x
		}
		for g := range sums {
			equal(t, uint32(g+1)*uint32(uint64(n)*uint64(n-1)/2), sums[g], "%d bytes, group %d", size, g)
		}
	}
	err := d.Stream().Launch(k, runtime.Items(group).InGroups(group), out, runtime.Local(most+128), uint32(1))
	errorIs(t, err, runtime.ErrLaunch, "more than there is")
	must(t, d.Stream().Sync(t.Context()))
}

func checkOccupancy(t *row, d *device) {
	k := d.kernel(t, muchLocalText, "much")
	n, err := k.Occupancy(64, 0)
	if errors.Is(err, runtime.ErrUnsupported) {
		call(k.SuggestGroup(0)).fails(t, runtime.ErrUnsupported)
		t.refused("%s does not tell: %v", d, err)
	}
	must(t, err)
	info := d.Info()
	expect(t, n > 0, "a group of 64 fits anywhere")
	if info.ItemsPerComputeUnit > 0 {
		expect(t, 64*n <= info.ItemsPerComputeUnit, "%d groups of 64, and at most %d items", n, info.ItemsPerComputeUnit)
	}
	fewer := call(k.Occupancy(64, info.LocalMemory)).must(t)
	expect(t, fewer <= n, "groups with more local memory are not more: %d, then %d", n, fewer)
	group := call(k.SuggestGroup(0)).must(t)
	expect(t, group > 0 && group <= info.MaxGroupSize, "%d", group)
	best := call(k.Occupancy(group, 0)).must(t)
	expect(t, best*group >= n*64, "the suggested size keeps as many items running as any other: %d, not %d", best*group,
		n*64)
}
