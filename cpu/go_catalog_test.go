package cpu

// Compares the Go kernels of the catalog with the references, in every case.

import (
	"bytes"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/driver"
)

// band is the number of bytes before and after every buffer that a kernel must not change.
const band = 256

// runCase launches a case on a device and returns the bytes of every argument
// afterwards.
func runCase(t testing.TB, d *device, c *kernels.Case) [][]byte {
	t.Helper()
	u, err := kernels.Unit(c.Family, nil, c.Defines...)
	require.NoError(t, err)
	k, ok := d.Native(u, c.Kernel)
	require.True(t, ok, "%s has no %s", d.info.ID, c.Name())
	l := &driver.Launch{Kernel: k, Dim: 3}
	l.Global, l.Local, err = kernels.Geometry(u, c.Kernel, c.Sizes...)
	require.NoError(t, err)
	whole := make([][]byte, len(c.Args))
	for i := range c.Args {
		a := &c.Args[i]
		data := a.Bytes
		if data == nil {
			data = kernels.Encode(a.Type, a.Data())
		}
		if a.Dir == kernels.Value {
			for len(l.Data)%8 != 0 {
				l.Data = append(l.Data, 0)
			}
			l.Args = append(l.Args, driver.Arg{Kind: driver.ArgValue, Offset: len(l.Data), Size: len(data)})
			l.Data = append(l.Data, data...)
			continue
		}
		typ, _ := driver.ParseType(a.Type)
		n := int64(a.Len * typ.Size())
		m, err := d.Alloc(n+2*band, driver.OnDevice)
		require.NoError(t, err)
		defer func() { assert.NoError(t, d.Free(m)) }()
		whole[i], err = d.memory.bytes(m)
		require.NoError(t, err)
		for j := range whole[i] {
			whole[i][j] = 0xa5
		}
		copy(whole[i][band:], data)
		l.Args = append(l.Args, driver.Arg{
			Kind: driver.ArgMemory, Memory: driver.Memory{Handle: m.Handle, Offset: band, Size: n}})
	}
	s, err := d.NewStream()
	require.NoError(t, err)
	require.NoError(t, s.Launch(l), c.Name())
	require.NoError(t, s.Sync(background(t)), c.Name())
	require.NoError(t, s.Close())
	after := make([][]byte, len(c.Args))
	for i, b := range whole {
		if b == nil {
			continue
		}
		for j, v := range b {
			if (j < band || j >= len(b)-band) && v != 0xa5 {
				t.Fatalf("%s: argument %d: byte %d outside the buffer was written", c.Name(), i, j-band)
			}
		}
		after[i] = bytes.Clone(b[band : len(b)-band])
	}
	return after
}

// judge compares every output with the reference's and returns the first difference as an error. Inputs must
// not change, and integers have to be equal even where the case has a bound.
func judge(c *kernels.Case, ref, got [][]byte) error {
	if i, v := c.Judge(ref, got); !v.OK {
		return fmt.Errorf("argument %d: %v, %s", i, v, c.Tolerance)
	}
	for i, a := range c.Args {
		switch {
		case a.Dir == kernels.In && !bytes.Equal(got[i], kernels.Encode(a.Type, c.Args[i].Data())):
			return fmt.Errorf("argument %d was written", i)
		case (a.Dir == kernels.Out || a.Dir == kernels.InOut) && !kernels.IsFloat(a.Type) && !bytes.Equal(ref[i], got[i]):
			return fmt.Errorf("argument %d: bytes differ", i)
		}
	}
	return nil
}

func TestGoAgainstReference(t *testing.T) {
	fast, exact := openIndex(t, fastIndex), openIndex(t, referenceIndex)
	for _, f := range kernels.Families() {
		t.Run(f.ID, func(t *testing.T) {
			start := time.Now()
			cases := kernels.Cases(f.ID)
			for i := range cases {
				c := &cases[i]
				if brief() && i%7 != 0 || !served(t, fast, c) {
					continue
				}
				if err := judge(c, runCase(t, exact, c), runCase(t, fast, c)); err != nil {
					t.Errorf("%s: %v", c.Name(), err)
				}
			}
			t.Logf("%d cases in %v", len(cases), time.Since(start).Round(time.Millisecond))
		})
	}
}

// TestCatalogNeedsNoCompiler counts the families for which the device has an implementation of its own
// for every case, so that they run without a compiler. There must not be fewer than before.
func TestCatalogNeedsNoCompiler(t *testing.T) {
	d := openDevice(t)
	for _, id := range []string{"activation", "arith", "cast", "conv2d", "copy", "fill", "gather", "gemm", "gemm_batch",
		"gemm_bias", "gemm_i8",
		"im2col", "l2_distance", "norm", "reduce", "saxpy", "scan", "scatter", "segment", "softmax", "sort_pairs",
		"take_along", "topk", "transpose"} {
		cases := kernels.Cases(id)
		assert.NotEmpty(t, cases, id)
		for i := range cases {
			assert.True(t, served(t, d, &cases[i]), cases[i].Name())
		}
	}
}

// served reports whether a device has an implementation of its own for a case.
func served(t testing.TB, d *device, c *kernels.Case) bool {
	t.Helper()
	u, err := kernels.Unit(c.Family, nil, c.Defines...)
	require.NoError(t, err)
	_, ok := d.find(u, c.Kernel)
	return ok
}

// TestJudgeSeesMistakes changes one element of each kernel's result by a little more than its
// bound, and expects an error.
func TestJudgeSeesMistakes(t *testing.T) {
	exact := openIndex(t, referenceIndex)
	seen := map[string]bool{}
	for _, f := range kernels.Families() {
		cases := kernels.Cases(f.ID)
		for i := range cases {
			c := &cases[i]
			out := len(c.Args) - 1
			for out >= 0 && c.Args[out].Dir != kernels.Out && c.Args[out].Dir != kernels.InOut {
				out--
			}
			if seen[c.Kernel+c.DType] || out < 0 || c.Args[out].Len < 6 {
				continue
			}
			ref := runCase(t, exact, c)
			typ := c.Args[out].Type
			x := kernels.Decode(typ, ref[out])
			at := len(x) - 2
			v := math.Max(math.Abs(x[at]), 1)
			if x[at] != x[at] || math.IsInf(x[at], 0) {
				continue
			}
			seen[c.Kernel+c.DType] = true
			require.NoError(t, judge(c, ref, ref), c.Name())
			switch typ[0] {
			case 'f', 'b':
				x[at] += v / 16
			default:
				if x[at] = math.Trunc(x[at] / 2); v < 3 {
					x[at] = 5
				}
			}
			got := append([][]byte(nil), ref...)
			got[out] = kernels.Encode(typ, x)
			require.Error(t, judge(c, ref, got), "%s: %v was changed to %v without an error", c.Name(),
				kernels.Decode(typ, ref[out])[at], x[at])
		}
	}
	assert.Greater(t, len(seen), 150)
}
