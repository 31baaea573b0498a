package validate

// The judgement of one launch by the float64 reference.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

const (
	mostWork = 1 << 16 // operations for which all rows are judged, about a millisecond; a result with more is divided
	tooMuch  = 1 << 21 // operations of a result that cannot be divided for which it is not judged
	mostRows = 4096
	someRows = 4
)

var (
	errForeign  = errors.New("not a kernel of the catalog")
	errUnjudged = errors.New("nothing judges it")
	errLarge    = errors.New("too much work for a check")
)

// Result is the verdict on one launch: that on the first output that is wrong, or else on the one that is nearest to
// its bound.
type Result struct {
	Reference string          // what it was compared with: "the float64 reference", or a device
	Rows      []int           // that were judged, ascending; nil if all were
	Arg       int             // the position of the output
	Verdict   kernels.Verdict // At is the worst element's place in the buffer
	First     int             // the place of the first wrong element, or -1
}

// String says what is wrong.
func (r Result) String() string {
	text := fmt.Sprintf("argument %d differs from %s: the worst is %v", r.Arg, r.Reference, r.Verdict)
	if r.Verdict.OK {
		text = fmt.Sprintf("equal to %s within the bounds; the nearest to one is of argument %d, %v", r.Reference, r.Arg,
			r.Verdict)
	} else if r.First >= 0 {
		text += fmt.Sprintf(", the first element %d", r.First)
	}
	if r.Rows != nil {
		text += fmt.Sprintf(" (of %d rows)", len(r.Rows))
	}
	return text
}

// host runs references on the calling goroutine.
type host struct{ ctx context.Context }

func (h host) Context() context.Context { return h.ctx }
func (h host) Threads() int             { return 1 }
func (h host) Parallel(n, _ int, f func(lo, hi int)) error {
	if err := h.ctx.Err(); err != nil || n <= 0 {
		return err
	}
	f(0, n)
	return h.ctx.Err()
}

// newCall returns a launch as a Go kernel gets it, with the memory of regions.
func newCall(ctx context.Context, s *driver.Sample, decl *source.Kernel, memory [][]byte) *kernels.Call {
	c := &kernels.Call{Unit: s.Unit, Kernel: s.Kernel, Params: decl.Params, Dim: s.Dim, Global: s.Global, Local: s.Local,
		Host: host{ctx}}
	for i := range s.Args {
		a := &s.Args[i]
		arg := kernels.Argument{Bytes: a.Value}
		switch a.Kind {
		case driver.ArgLocal:
			arg = kernels.Argument{Kind: kernels.LocalArgument, Size: a.Local}
		case driver.ArgMemory:
			arg = kernels.Argument{Kind: kernels.BufferArgument}
			if a.Bytes > 0 {
				arg.Bytes = memory[a.Region][a.Offset : a.Offset+a.Bytes]
			}
		}
		c.Args = append(c.Args, arg)
	}
	return c
}

// regions returns the memory of a sample before the launch, or after it.
func regions(s *driver.Sample, after bool) [][]byte {
	list := make([][]byte, len(s.Regions))
	for i, r := range s.Regions {
		if list[i] = r.Before; after && r.After != nil {
			list[i] = r.After
		}
	}
	return list
}

// outputs returns the positions of the buffers that a launch may change.
func outputs(s *driver.Sample) (list []int) {
	for i := range s.Args {
		if a := &s.Args[i]; a.Kind == driver.ArgMemory && a.Written && a.Bytes > 0 {
			list = append(list, i)
		}
	}
	return list
}

// reference judges a launch of a kernel of the catalog by its float64 reference.
// A result that takes more operations than most is divided.
func reference(ctx context.Context, s *driver.Sample, seed uint64, most float64) (r Result, err error) {
	family, ok := kernels.Find(s.Unit.Family())
	decl, there := s.Unit.Kernel(s.Kernel)
	if !ok || !there || !slices.Contains(family.Kernels, s.Kernel) {
		return r, errForeign
	}
	defer func() {
		switch why := recover().(type) {
		case nil:
		case kernels.ArgumentError:
			err = fmt.Errorf("the reference refuses the arguments: %w", why)
		default:
			err = fmt.Errorf("the reference panicked: %v", why)
		}
	}()
	r = Result{Reference: "the float64 reference", Arg: -1, First: -1, Verdict: kernels.Verdict{OK: true}}
	before := newCall(ctx, s, decl, regions(s, false))
	after := newCall(ctx, s, decl, regions(s, true))
	works := family.Arguments == nil || family.Arguments(before)
	var bound func(arg int, in [][]float64, ref []float64) []float64
	var cut divided
	want := before
	if works {
		if family.Bound == nil {
			return r, fmt.Errorf("%w: no bound is known for all arguments", errUnjudged)
		}
		before, after, cut = divide(family, decl, before, after, rand.New(rand.NewPCG(seed, 0)), most)
		if work(family, decl, before) > limit(most) {
			return r, errLarge
		}
		var known bool
		if bound, known = family.Bound(before); !known {
			return r, fmt.Errorf("%w: no bound is known for these arguments", errUnjudged)
		}
		if cut == nil { // its buffers may overlap
			want = newCall(ctx, s, decl, copied(s))
		} else {
			want = new(*before)
			want.Args = slices.Clone(before.Args)
			for _, i := range outputs(s) {
				want.Args[i].Bytes = slices.Clone(before.Args[i].Bytes)
			}
		}
		if err := family.Reference(want); err != nil {
			return r, err
		}
	}
	var in [][]float64
	if bound != nil {
		in = inputs(s, before)
	}
	if len(cut) > 0 {
		r.Rows = cut[0].chosen
	}
	for _, i := range outputs(s) {
		typ := elementOf(s, i)
		n := len(want.Args[i].Bytes) / kernels.SizeOf(typ) * kernels.SizeOf(typ)
		ref, got := want.Args[i].Bytes[:n], after.Args[i].Bytes[:n]
		var allowed []float64
		if bound != nil {
			allowed = bound(i, in, kernels.Decode(typ, ref))
		}
		for j, b := range allowed {
			if b != b { // of inputs that are not numbers
				allowed[j] = math.Inf(1)
			}
		}
		if done := r.output(i, typ, ref, got, allowed); done {
			r.Verdict.At, r.First = cut.place(i, r.Verdict.At, typ), cut.place(i, r.First, typ)
			break
		}
	}
	return r, nil
}

// output judges an output, and reports whether it is wrong.
func (r *Result) output(arg int, typ string, want, got []byte, bound []float64) bool {
	v := kernels.Judge(typ, want, got, bound)
	if !v.OK {
		r.Arg, r.Verdict, r.First = arg, v, first(typ, want, got, bound)
		return true
	}
	if r.Arg < 0 || share(v) > share(r.Verdict) {
		r.Arg, r.Verdict = arg, v
	}
	return false
}

// share returns the part of its bound that an error is: 0 without an error, whose bound may be 0, too.
func share(v kernels.Verdict) float64 {
	if v.MaxError == 0 {
		return 0
	}
	return v.MaxError / v.Tolerance
}

// first returns the first element that exceeds its bound, of a result that is wrong.
func first(typ string, want, got []byte, bound []float64) int {
	size := kernels.SizeOf(typ)
	lo, hi := 0, len(want)/size // the elements before lo are right, and not all before hi
	for hi-lo > 1 {
		mid := (lo + hi) / 2
		var some []float64
		if bound != nil {
			some = bound[lo:mid]
		}
		if kernels.Judge(typ, want[lo*size:mid*size], got[lo*size:mid*size], some).OK {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// inputs returns the numbers of the arguments before a launch, as bounds take them.
func inputs(s *driver.Sample, c *kernels.Call) [][]float64 {
	in := make([][]float64, len(c.Args))
	for i := range c.Args {
		p := &c.Params[i]
		switch {
		case c.Args[i].Kind == kernels.BufferArgument && len(c.Args[i].Bytes) > 0:
			in[i] = kernels.Decode(elementOf(s, i), c.Args[i].Bytes)
		case c.Args[i].Kind == kernels.ValueArgument && p.Kind != source.Struct && p.Width == 1:
			in[i] = []float64{c.Float(i)}
		}
	}
	return in
}

// elementOf returns the element type of a buffer. One of 16 bits may be passed as integers where the program has
// bfloat16.
func elementOf(s *driver.Sample, i int) string {
	t := s.Args[i].Type.String()
	if t != "u16" {
		return t
	}
	for _, d := range s.Unit.Defines() {
		if d.Value == "bf16" && s.Unit.Family() != "" {
			return d.Value
		}
	}
	return t
}

// copied returns the memory of a sample before the launch, with copies of what the launch may change.
func copied(s *driver.Sample) [][]byte {
	list := regions(s, false)
	for i, r := range s.Regions {
		if r.After != nil {
			list[i] = slices.Clone(r.Before)
		}
	}
	return list
}

// divided is how a large result was divided: first by rows, and these again.
type divided []struct {
	rows   kernels.Rows
	chosen []int
}

// place returns the element of a buffer of the whole launch that is element at in the part.
func (list divided) place(arg, at int, typ string) int {
	if at < 0 {
		return at
	}
	b := at * kernels.SizeOf(typ)
	for _, d := range slices.Backward(list) {
		b = d.rows.Place(arg, b, d.chosen)
	}
	return b / kernels.SizeOf(typ)
}

// interpreted is how much longer the reference of an expression takes, which evaluates one operation after the other.
const interpreted = 16

// work estimates the operations of a launch of the catalog.
func work(f *kernels.Family, decl *source.Kernel, c *kernels.Call) float64 {
	values := make([][]byte, len(c.Args))
	bytes := 0.0
	for i := range c.Args {
		if a := &c.Args[i]; a.Kind == kernels.ValueArgument {
			values[i] = a.Bytes
		} else {
			bytes += float64(len(a.Bytes))
		}
	}
	operations, moved := c.Unit.Work(decl, c.Global, values)
	if operations+moved == 0 {
		moved = bytes
	}
	if f.Text != nil {
		return interpreted * (operations + moved/4)
	}
	return max(operations, moved/4)
}

// limit returns the operations from which on a result, or its rows, are too large to be judged.
func limit(most float64) float64 { return max(tooMuch, 2*most) }

// divide takes random rows of a launch with much work, and of what it stored.
func divide(f *kernels.Family, decl *source.Kernel, before, after *kernels.Call, r *rand.Rand,
	most float64) (*kernels.Call, *kernels.Call, divided) {
	var list divided
	for f.Rows != nil && len(list) < 4 {
		all := work(f, decl, before)
		if enough := most * float64(1+7*min(len(list), 1)); all <= enough { // few rows are better whole
			break
		}
		rows := f.Rows(before)
		if rows.Rest && all <= limit(most) {
			break
		}
		n := max(int(most/all*float64(rows.N)), someRows)
		if n = min(n, mostRows); n >= rows.N {
			if all <= limit(most) || rows.N < 2 {
				break
			}
			n = 1
		}
		chosen := choose(rows.N, n, r)
		some := rows.Take(before, chosen)
		if n > 1 && work(f, decl, some) > limit(most) && f.Rows(some).N <= n { // these are not divided further
			chosen = choose(rows.N, 1, r)
			some = rows.Take(before, chosen)
		}
		before, after = some, rows.Take(after, chosen)
		list = append(list, struct {
			rows   kernels.Rows
			chosen []int
		}{rows, chosen})
	}
	return before, after, list
}

// choose returns n different numbers below all, in ascending order. Of several the last one is among them: there are
// the remainders of tiles.
func choose(all, n int, r *rand.Rand) []int {
	if n == 1 {
		return []int{r.IntN(all)}
	}
	taken := map[int]bool{all - 1: true}
	list := []int{all - 1}
	for len(list) < n {
		if i := r.IntN(all); !taken[i] {
			taken[i] = true
			list = append(list, i)
		}
	}
	slices.Sort(list)
	return list
}

// grid returns the grid of a launch.
func grid(s *driver.Sample) (g runtime.Grid) {
	copy(g.Items[:s.Dim], s.Global[:])
	copy(g.Group[:s.Dim], s.Local[:])
	return g
}
