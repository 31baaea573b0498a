package kernels_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
)

// calling is a host that runs references on the calling goroutine.
type calling struct{}

func (calling) Context() context.Context { return context.Background() }
func (calling) Threads() int             { return 1 }
func (calling) Parallel(n, _ int, f func(lo, hi int)) error {
	if n > 0 {
		f(0, n)
	}
	return nil
}

// callOf returns the launch of a case, with its own memory.
func callOf(t *testing.T, dev *runtime.Device, c *kernels.Case) *kernels.Call {
	t.Helper()
	u, err := kernels.Unit(c.Family, dev.Features(), c.Defines...)
	require.NoError(t, err)
	decl, ok := u.Kernel(c.Kernel)
	require.True(t, ok)
	call := &kernels.Call{Unit: u, Kernel: c.Kernel, Params: decl.Params, Host: calling{}}
	grid, group, err := kernels.Geometry(u, c.Kernel, c.Sizes...)
	require.NoError(t, err)
	call.Global, call.Local = grid, group
	for i := range c.Args {
		a := &c.Args[i]
		arg := kernels.Argument{Kind: kernels.BufferArgument}
		switch {
		case a.Bytes != nil:
			arg = kernels.Argument{Bytes: a.Bytes}
		case a.Dir == kernels.Value:
			arg = kernels.Argument{Bytes: kernels.Encode(a.Type, a.Data())}
		case a.Dir == kernels.Out:
			arg.Bytes = make([]byte, a.Len*kernels.SizeOf(a.Type))
		default:
			arg.Bytes = kernels.Encode(a.Type, a.Data())[:a.Len*kernels.SizeOf(a.Type)]
		}
		call.Args = append(call.Args, arg)
	}
	return call
}

// TestRows: of every case of a family with rows, the results of the first, a middle and the last row as a launch of
// their own are those of the whole launch at the places that the rows say.
func TestRows(t *testing.T) {
	session, err := runtime.New(runtime.Config{Validate: -1})
	require.NoError(t, err)
	defer session.Close()
	dev, err := session.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	defer dev.Close()
	divided := map[string]int{}
	for _, f := range kernels.Families() {
		if f.Rows == nil {
			continue
		}
		for i, c := range kernels.Cases(f.ID) {
			large := slices.ContainsFunc(c.Args, func(a kernels.Arg) bool { return a.Len > 1<<15 })
			if large || testing.Short() && i%5 != 0 {
				continue
			}
			call := callOf(t, dev, &c)
			if f.Arguments != nil && !f.Arguments(call) {
				continue
			}
			rows := f.Rows(call)
			if rows.N < 2 {
				continue
			}
			chosen := slices.Compact([]int{0, rows.N / 2, rows.N - 1})
			some := rows.Take(call, chosen)
			require.NoError(t, f.Reference(call))
			require.NoError(t, f.Reference(some))
			divided[f.ID]++
			for _, p := range rows.Parts {
				a := &c.Args[p.Arg]
				if a.Dir != kernels.Out && a.Dir != kernels.InOut {
					continue
				}
				size := kernels.SizeOf(a.Type)
				got := some.Args[p.Arg].Bytes
				want := make([]byte, 0, len(got))
				for at := 0; at < len(got); at += size {
					from := rows.Place(p.Arg, at, chosen)
					want = append(want, call.Args[p.Arg].Bytes[from:from+size]...)
				}
				v := kernels.Judge(a.Type, want, got, within(a.Type, want))
				assert.True(t, v.OK, "%s, argument %d: %v", c.Name(), p.Arg, v)
			}
		}
	}
	for _, f := range kernels.Families() {
		if f.Rows != nil {
			assert.Positive(t, divided[f.ID], f.ID)
		}
	}
}

// within returns bounds for references, which add in an order that may depend on the size.
func within(typ string, want []byte) []float64 {
	if !kernels.IsFloat(typ) {
		return nil
	}
	bounds := kernels.Decode(typ, want)
	for i, x := range bounds {
		if bounds[i] = 2 * kernels.Roundoff(typ) * max(x, -x); !(bounds[i] < 1e300) {
			bounds[i] = 0
		}
	}
	return bounds
}
