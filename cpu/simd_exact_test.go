package cpu

// Compares the vector kernels that do not round with the reference, on memory between guard pages:
// every bit has to be the same.

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/source"
)

// exactTrial calls a kernel on about n elements of a type.
type exactTrial struct {
	family, kernel string
	types          []string
	args           func(f *fence, typ string, n int) []any
	global         [3]int
}

var (
	someTypes  = []string{"f32", "f64", "f16", "bf16", "i8", "u16", "i32", "u64"}
	floatTypes = someTypes[:4]
	intTypes   = someTypes[4:]
	castTypes  = []string{"f32", "f64", "f16", "bf16", "i8", "i16", "i32", "u8", "u16", "u32"}
)

// anything returns n elements of a type: numbers of a floating type, random bits of an integer.
func (f *fence) anything(typ string, n int) []byte {
	if kernels.IsFloat(typ) {
		return f.numbers(typ, n)
	}
	b := f.bytes(n * kernels.SizeOf(typ))
	for i := range b {
		b[i] = byte(f.r.Uint32())
	}
	return b
}

func scalarOf(typ string, v int) any {
	switch typ {
	case "f64":
		return float64(v) + 0.25
	case "f32", "f16", "bf16":
		return float32(v) + 0.25
	case "i64", "u64":
		return uint64(v)
	}
	return uint32(v)
}

func exactTrials() (list []exactTrial) {
	one := [3]int{1, 1, 1}
	list = []exactTrial{
		{"fill", "fill", someTypes, func(f *fence, typ string, n int) []any {
			return []any{f.anything(typ, n), scalarOf(typ, 77), uint64(n)}
		}, one},
		{"copy", "copy", someTypes, func(f *fence, typ string, n int) []any {
			return []any{f.anything(typ, n), f.anything(typ, n), uint64(n)}
		}, one},
		{"activation", "relu", floatTypes, mapArgs, one},
		{"transpose", "transpose", someTypes, func(f *fence, typ string, n int) []any {
			rows := 1 + f.r.IntN(max(n/3, 1))
			if n == 0 {
				rows = 0
			}
			cols := n / max(rows, 1) / 2
			return []any{f.anything(typ, 2*rows*cols), f.anything(typ, 2*rows*cols), uint32(rows), uint32(cols)}
		}, [3]int{1, 1, 2}},
		{"topk", "topk", floatTypes, func(f *fence, typ string, n int) []any {
			rows, cols := split3(n)
			k := f.r.IntN(min(cols, 60) + 1)
			return []any{f.numbers(typ, rows*cols), f.numbers(typ, rows*k), f.bytes(4 * rows * k), uint32(rows), uint32(cols),
				uint32(k)}
		}, one},
		{"gather", "gather", someTypes, func(f *fence, typ string, n int) []any {
			rows, cols := split3(n)
			return []any{f.anything(typ, rows*cols), f.indices(n, rows), f.anything(typ, n*cols), uint32(rows), uint32(n),
				uint32(cols)}
		}, one},
		{"scatter", "scatter_add", []string{"i32", "u32"}, func(f *fence, typ string, n int) []any {
			cols := n / 3
			return []any{f.anything(typ, 5*cols), f.indices(5, 3), f.anything(typ, 3*cols), uint32(3), uint32(5), uint32(cols)}
		}, one},
	}
	for _, op := range []string{"max", "min", "argmax", "argmin", "sum", "prod"} {
		types := slices.Concat(someTypes, []string{"u8", "i16", "u32", "i64"})
		if op == "sum" || op == "prod" {
			types = types[len(floatTypes):]
		}
		for _, name := range []string{op, op + "_columns"} {
			list = append(list, exactTrial{"reduce", "reduce_" + name, types, func(f *fence, typ string, n int) []any {
				args := rowArgs(f, typ, n)
				if len(name) > len(op) {
					args = columnArgs(f, typ, n)
				}
				if op[0] == 'a' {
					args[1] = f.bytes(4 * int(args[2].(uint32)*args[4].(uint32)))
				}
				return args
			}, one})
		}
	}
	for _, op := range []string{"add", "sub", "mul"} {
		list = append(list, exactTrial{"arith", op, intTypes, func(f *fence, typ string, n int) []any {
			return []any{f.anything(typ, n), f.anything(typ, n), f.anything(typ, n), uint64(n)}
		}, one}, exactTrial{"arith", op + "_scalar", intTypes, func(f *fence, typ string, n int) []any {
			return []any{f.anything(typ, n), scalarOf(typ, 40), f.anything(typ, n), uint64(n)}
		}, one}, exactTrial{"arith", op + "_broadcast", someTypes, broadcastArgs, one})
	}
	return append(list, exactTrial{"arith", "scalar_sub", intTypes, func(f *fence, typ string, n int) []any {
		return []any{scalarOf(typ, 40), f.anything(typ, n), f.anything(typ, n), uint64(n)}
	}, one})
}

// indices returns n indices of rows, some of them beyond the last row.
func (f *fence) indices(n, rows int) []byte {
	b := f.bytes(4 * n)
	for i := range n {
		b[4*i], b[4*i+1], b[4*i+2], b[4*i+3] = byte(f.r.IntN(rows+2)), 0, 0, 0
	}
	return b
}

// broadcastArgs returns the arguments for a shape of about n elements and operands that lack some of
// its dimensions or have them in another order.
func broadcastArgs(f *fence, typ string, n int) []any {
	d := [4]int{1 + f.r.IntN(2), 1 + f.r.IntN(3), 1 + f.r.IntN(4), 0}
	d[3] = n / (d[0] * d[1] * d[2])
	args := []any{nil, nil, f.anything(typ, d[0]*d[1]*d[2]*d[3])}
	for _, v := range d {
		args = append(args, uint32(v))
	}
	for k := range 2 {
		order, next := [4]int{3, 2, 1, 0}, 1
		if f.r.IntN(3) == 0 {
			order = [4]int{0, 3, 1, 2}
		}
		var strides [4]int
		for _, j := range order {
			if f.r.IntN(3) > 0 {
				strides[j] = next
				next *= max(d[j], 1)
			}
		}
		args[k] = f.anything(typ, next)
		for _, s := range strides {
			args = append(args, uint32(s))
		}
	}
	return args
}

func (s *exactTrial) run(t *testing.T, d, exact *device, f *fence, typ string, defines []source.Define, n int) {
	t.Helper()
	args := s.args(f, typ, n)
	same := make([]any, len(args))
	for i, a := range args {
		if b, ok := a.([]byte); ok {
			c := f.bytes(len(b))
			copy(c, b)
			a = c
		}
		same[i] = a
	}
	require.NoError(t, invoke(t, d, s.family, s.kernel, defines, s.global, args...), "%s %s n=%d", s.kernel, typ, n)
	require.NoError(t, invoke(t, exact, s.family, s.kernel, defines, s.global, same...))
	for i := range args {
		if b, ok := args[i].([]byte); ok && string(b) != string(same[i].([]byte)) {
			at := 0
			for b[at] == same[i].([]byte)[at] {
				at++
			}
			require.Fail(t, "differs", "%s %s n=%d %v: argument %d at byte %d", s.kernel, typ, n, args[3:], i, at)
		}
	}
	f.free()
}

func TestExactStreams(t *testing.T) {
	exact := openIndex(t, referenceIndex)
	eachSet(t, func(t *testing.T, d *device) {
		f := newFence(t, 10)
		for _, s := range exactTrials() {
			family, _ := kernels.Find(s.family)
			require.NotNil(t, family, s.family)
			for i, typ := range s.types {
				defines := []source.Define{{Name: "T", Value: typ}}
				for n := range 71 {
					if testing.Short() && (n+i)%2 != 0 {
						continue
					}
					s.run(t, d, exact, f, typ, defines, n)
				}
				s.run(t, d, exact, f, typ, defines, 1000+f.r.IntN(3000))
				if s.family != "gather" && !brief() {
					s.run(t, d, exact, f, typ, defines, 70000+f.r.IntN(9000))
				}
			}
		}
	})
}

// TestPlacesInLongRows has rows of which several threads compute the place of one result: with NaNs, and with
// many equal elements.
func TestPlacesInLongRows(t *testing.T) {
	exact := openIndex(t, referenceIndex)
	eachSet(t, func(t *testing.T, d *device) {
		d.threads = max(d.threads, 3)
		f := newFence(t, 13)
		for i, typ := range slices.Concat(someTypes, []string{"u8", "i16", "u32", "i64"}) {
			for k, op := range []string{"argmax", "argmin"} {
				rows, n, index := 1+(i+k)%2, 4*topkPart.Default+i*7, []string{"u32", "i64", "i32"}[i%3]
				in := f.anything(typ, rows*n)
				if i%2 == 0 {
					clear(in[len(in)/3:])
				}
				sizes := sizesAfter(nil, 2, uint32(n), uint32(1))
				sizes[0] = uint32(rows)
				var got [2][]byte
				for k, d := range []*device{d, exact} {
					got[k] = f.bytes(rows * kernels.SizeOf(index))
					require.NoError(t, invoke(t, d, "reduce", "reduce_"+op, define("T", typ, "INDEX", index), [3]int{1, 1, 1},
						append([]any{in, got[k]}, sizes...)...))
				}
				require.Equal(t, got[1], got[0], "%s of %d %s", op, n, typ)
				f.free()
			}
		}
	})
}

// TestReductionsOfColumns reduces the middle axis of arrays of all lengths, to indices of every size. Long axes are
// divided into parts.
func TestReductionsOfColumns(t *testing.T) {
	exact := openIndex(t, referenceIndex)
	eachSet(t, func(t *testing.T, d *device) {
		f := newFence(t, 12)
		for _, typ := range slices.Concat(someTypes, []string{"u8", "i16", "u32", "i64"}) {
			for i, op := range []string{"max", "min_columns", "argmax", "argmin_columns", "sum", "prod_columns"} {
				if kernels.IsFloat(typ) && i > 3 {
					continue
				}
				for n := 1; n < 2000; n += 1 + n/2 {
					inner := 1 + f.r.IntN(3) + f.r.IntN(2)*n%40
					index := []string{"i8", "u16", "u32", "i64"}[n%4]
					in, size := f.anything(typ, 2*n*inner), kernels.SizeOf(typ)
					if i == 2 || i == 3 {
						size = kernels.SizeOf(index)
					}
					var got [2][]byte
					for k, d := range []*device{d, exact} {
						got[k] = f.bytes(2 * inner * size)
						require.NoError(t, invoke(t, d, "reduce", "reduce_"+op, define("T", typ, "INDEX", index), [3]int{1, 1, 1},
							sizesAfter([]any{in, got[k]}, 2, uint32(n), uint32(inner))...))
					}
					require.Equal(t, got[1], got[0], "%s %s of %d×%d", op, typ, n, inner)
					f.free()
				}
			}
		}
	})
}

// TestCasts converts numbers in and out of the range of every type, in buffers of all lengths.
func TestCasts(t *testing.T) {
	exact := openIndex(t, referenceIndex)
	eachSet(t, func(t *testing.T, d *device) {
		f := newFence(t, 11)
		for _, from := range castTypes {
			for _, to := range castTypes {
				s := exactTrial{"cast", "cast", nil, func(f *fence, typ string, n int) []any {
					in := f.anything(from, n)
					if kernels.IsFloat(from) {
						x := kernels.Decode(from, in)
						for i := range x {
							x[i] *= []float64{1, 100, 300, 7e4, 3e9, 1e12}[f.r.IntN(6)]
						}
						copy(in, kernels.Encode(from, x))
					}
					return []any{in, f.anything(to, n), uint64(n)}
				}, [3]int{1, 1, 1}}
				defines := []source.Define{{Name: "FROM", Value: from}, {Name: "TO", Value: to}}
				for n := range 71 {
					s.run(t, d, exact, f, fmt.Sprintf("%s to %s", from, to), defines, n)
				}
				s.run(t, d, exact, f, from, defines, 2000+f.r.IntN(500))
			}
		}
	})
}
