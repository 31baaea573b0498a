package parity

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/choice"
)

// TestChooseBuildsWhatIsNamed counts the calls of a family's Cases.
func TestChooseBuildsWhatIsNamed(t *testing.T) {
	saxpy, ok := kernels.Find("saxpy")
	require.True(t, ok)
	f, built := *saxpy, 0
	f.ID = "saxpy_counted"
	f.Cases = func(f *kernels.Family) []kernels.Case {
		built++
		list := saxpy.Cases(saxpy)
		for i := range list {
			list[i].Family = f.ID
		}
		return list
	}
	kernels.Register(f)
	for _, names := range [][]string{{"fill"}, {"fill/fill", "reduce_sum"}} {
		cases, err := choose(names)
		require.NoError(t, err)
		assert.NotEmpty(t, cases)
		for _, c := range cases {
			assert.Contains(t, []string{"fill", "reduce_sum"}, c.Kernel)
		}
	}
	assert.Zero(t, built)
	cases, err := choose([]string{"saxpy"}) // both families have a kernel of that name
	require.NoError(t, err)
	assert.Equal(t, 1, built)
	assert.Len(t, cases, 2*len(kernels.Cases("saxpy")))
	_, err = choose([]string{"fill", "saxpi"})
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	assert.ErrorContains(t, err, "saxpi")
}

// TestBefore: every build and every case is announced, the reference's too, and what a cancelled run has found by then
// is returned.
func TestBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var nexts, lasts []Result
	opt := Options{
		Devices: []string{"cpu:0"}, Kernels: []string{"fill"}, Keep: func(c *kernels.Case) bool { return c.DType == "f32" },
		Forms:    func(device string) bool { return device == "cpu:0" },
		Before:   func(next Result) { nexts = append(nexts, next) },
		Progress: func(_, _ int, last Result) { lasts = append(lasts, last) },
	}
	results, err := Run(ctx, opt)
	require.NoError(t, err)
	require.NotEmpty(t, results)
	assert.Equal(t, results, lasts)
	require.Len(t, nexts, 2*len(results), "native implementations need no program")
	for i, r := range results {
		want := Result{Device: "cpu:0", Kernel: "fill/fill", DType: "f32", Shape: r.Shape}
		assert.Equal(t, want, nexts[2*i+1])
		want.Device = Reference
		assert.Equal(t, want, nexts[2*i])
	}

	opt.Progress = func(int, int, Result) { cancel() }
	some, err := Run(ctx, opt)
	assert.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, results[:1], some)

	nexts = nil
	opt.Forms = func(device string) bool { return device == "cpu:0 (compiled)" }
	opt.Progress = nil
	results, err = Run(t.Context(), opt)
	require.NoError(t, err)
	require.NotEmpty(t, results)
	if results[0].Verdict == Skip {
		t.Skip(results[0].Reason)
	}
	assert.Equal(t, Result{Device: "cpu:0 (compiled)", Kernel: "fill", DType: "f32", Verdict: Build}, nexts[0])

	ctx, cancel = context.WithCancel(t.Context())
	opt.Before = func(Result) { cancel() }
	some, err = Run(ctx, opt)
	assert.ErrorIs(t, err, context.Canceled, "while it builds")
	assert.Empty(t, some)
}

// TestJudged leaves out the cases of one kernel, and those that cast from a type or to a type.
func TestJudged(t *testing.T) {
	for _, f := range kernels.Families() {
		assert.NoError(t, judged(f, kernels.Cases(f.ID)))
	}
	without := func(id string, drop func(c *kernels.Case) bool) error {
		f, ok := kernels.Find(id)
		require.True(t, ok)
		var rest []kernels.Case
		for _, c := range kernels.Cases(id) {
			if !drop(&c) {
				rest = append(rest, c)
			}
		}
		return judged(f, rest)
	}
	for want, err := range map[string]error{
		"family reduce has no case of its kernel reduce_min": without("reduce", func(c *kernels.Case) bool {
			return c.Kernel == "reduce_min"
		}),
		"family fill has no case of T=i16": without("fill", func(c *kernels.Case) bool {
			return c.DType == "i16"
		}),
		"family cast has no case of TO=u64": without("cast", func(c *kernels.Case) bool {
			return c.Defines[1].Value == "u64"
		}),
	} {
		assert.ErrorContains(t, err, want)
		assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	}
}

// What was tuned is what is built, judged and measured: kernels have the tile that was chosen for the device.
func TestChosenTile(t *testing.T) {
	s, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	defer s.Close()
	d, err := s.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	set, err := choice.NewSet(map[string]int{"kernels.gemm.items": 4})
	require.NoError(t, err)
	d.Choices().Try(set)
	k, p, err := Kernel(t.Context(), d, "gemm", "gemm", runtime.ProgramOptions{})
	require.NoError(t, err)
	defer p.Close()
	items, ok := k.Unit().Define("ITEMS")
	assert.True(t, ok)
	assert.Equal(t, "4", items)
	sub := &subject{dev: d}
	u, err := sub.unit(&kernels.Cases("gemm")[0])
	require.NoError(t, err)
	items, _ = u.Define("ITEMS")
	assert.Equal(t, "4", items)
	d.Choices().Try(nil)
	u, err = sub.unit(&kernels.Cases("gemm")[0])
	require.NoError(t, err)
	_, ok = u.Define("ITEMS")
	assert.False(t, ok)
}
