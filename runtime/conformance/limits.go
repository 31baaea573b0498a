package conformance

// Limits: sizes beyond a device's limits are refused before its driver is called, with the
// requested number and the limit in the error.

import (
	"context"
	"fmt"
	"math"

	"github.com/concord-compute/concord/runtime"
)

var limitChecks = []Row{
	{"limit/grid", true, checkGridLimits},
	{"limit/local_memory", true, checkLocalLimits},
	{"limit/nil_context", true, checkNilContext},
}

const lastText = `kernel void last(global uint *out) {
	if (get_global_id(0) + 1 == get_global_size(0) && get_global_id(1) + 1 == get_global_size(1)
		&& get_global_id(2) + 1 == get_global_size(2))
		out[0] += get_num_groups(0) * get_num_groups(1) * get_num_groups(2);
}`

func checkGridLimits(t *row, d *device) {
	k, out := d.kernel(t, lastText, "last"), upload(t, d, []uint32{0})
	info := d.Info()
	refused := func(g runtime.Grid, named int) {
		t.Helper()
		err := d.Stream().Launch(k, g, out)
		errorIs(t, err, runtime.ErrTooLarge, "%v", g)
		errorSays(t, err, fmt.Sprint(named), "the error contains the limit")
	}
	along := func(i, items int) (g runtime.Grid) {
		g = runtime.Items(1, 1, 1).InGroups(1, 1, 1)
		g.Items[i] = items
		return g
	}
	for i, most := range info.MaxGroups {
		if most <= 0 {
			most = math.MaxInt32 // the limit of the runtime
		}
		refused(along(i, most+1), most)
	}
	if most := info.MaxItems; most > 0 {
		for i := range 3 {
			refused(along(i, most+1), most)
		}
	}
	if most := info.MaxGroupCount; most > 0 {
		need(t, most < 1<<32, "MaxGroupCount is %d: 2^32 and more cannot be tried", most)
		refused(runtime.Items(1<<16, most>>16+1).InGroups(1, 1), most)
		errorIs(t, d.Stream().Launch(k, runtime.Items(1<<31, 1<<31), out), runtime.ErrTooLarge, "no group is large enough")
	}
	for what, g := range map[string]runtime.Grid{
		"no items": runtime.Items(0), "a hole": runtime.Items(4, 0, 4), "negative": runtime.Items(4, -1),
		"least": runtime.Items(math.MinInt), "four dimensions": runtime.Items(1, 1, 1, 1),
		"four dimensions of a group": runtime.Items(4).InGroups(1, 1, 1, 1), "no cover": runtime.Cover(0, 0),
	} {
		errorIs(t, d.Stream().Launch(k, g, out), runtime.ErrInvalidArgument, what)
	}
	must(t, d.Stream().Err())
	must(t, d.Stream().Launch(k, runtime.Items(1<<16, 3).InGroups(1, 1), out))
	equal(t, []uint32{3 << 16}, read[uint32](t, out), "no refused launch has run, and all of many groups have")
}

func checkLocalLimits(t *row, d *device) {
	k := d.kernel(t, localArgText, "sums")
	in, out := upload(t, d, []int32{7}), upload(t, d, []int32{1, 2})
	launch := func(a, b runtime.Local) error {
		return d.Stream().Launch(k, runtime.Items(1), in, out, a, b)
	}
	for _, n := range []runtime.Local{1 << 40, math.MaxInt} {
		for _, err := range []error{launch(n, 4), launch(4, n), launch(n, n)} {
			errorIs(t, err, runtime.ErrLaunch)
			errorSays(t, err, "of local memory, the device has")
		}
	}
	for _, n := range []runtime.Local{0, -1, 3, math.MinInt} {
		errorIs(t, launch(n, 4), runtime.ErrInvalidArgument, "%d bytes for ints", n)
	}
	equal(t, []int32{1, 2}, read[int32](t, out))
	must(t, launch(4, 4))
	equal(t, []int32{7, -7}, read[int32](t, out), "the next good launch works")
}

func checkNilContext(t *row, d *device) {
	p := d.program(t, lastText)
	k := call(p.Kernel("last")).must(t)
	out := upload(t, d, []uint32{5})
	var none context.Context
	for what, call := range map[string]func() error{
		"program": func() error { _, err := d.Program(none, p.Unit()); return err },
		"run":     func() error { _, err := d.Run(none, k, runtime.Items(1), out); return err },
		"sync":    func() error { return d.Sync(none) },
		"write":   func() error { return runtime.Write(none, out, []uint32{6}) },
		"read":    func() error { return runtime.Read(none, out, make([]uint32, 1)) },
	} {
		err := call()
		errorIs(t, err, runtime.ErrInvalidArgument, what)
		errorSays(t, err, what+": context is nil")
	}
	equal(t, []uint32{5}, read[uint32](t, out), "nothing was done")
}
