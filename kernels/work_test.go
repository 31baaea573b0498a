package kernels_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	_ "github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/source"
)

// TestWork: the work of every case is known, and moves no more bytes than its buffers have; where cases use
// every element of their buffers, it moves all of them.
func TestWork(t *testing.T) {
	sparse := map[string]string{
		"arith": "an operand may have gaps", "expr": "likewise", "gemm": "likewise", "gemm_bias": "likewise",
		"gemm_i8": "likewise", "gemm_batch": "likewise", "gemv": "likewise",
		"conv2d": "a bias is not always read", "scan": "a row of one part has no sums of parts before",
		"gather": "a table may have rows without an index", "scatter": "likewise", "segment": "likewise",
		"take_along": "likewise",
	}
	features := source.Features{FP64: true, FP16: true, Int64Atomic: true}
	for _, f := range kernels.Families() {
		for _, c := range kernels.Cases(f.ID) {
			u, err := kernels.Unit(f.ID, &features, c.Defines...)
			require.NoError(t, err)
			k, ok := u.Kernel(c.Kernel)
			require.True(t, ok)
			items, _, err := kernels.Geometry(u, c.Kernel, c.Sizes...)
			require.NoError(t, err)
			all := 0.0
			values := make([][]byte, len(c.Args))
			for i := range c.Args {
				a := &c.Args[i]
				size := float64(a.Len) * float64(kernels.SizeOf(a.Type))
				switch a.Dir {
				case kernels.Value:
					if values[i] = a.Bytes; a.Bytes == nil {
						values[i] = kernels.Encode(a.Type, []float64{a.V})
					}
					continue
				case kernels.InOut:
					all += size
				}
				all += size
			}
			operations, bytes := u.Work(k, items, values)
			assert.LessOrEqual(t, bytes, all, c.Name())
			if all < 700 { // these have sizes of 0, and buffers of one element
				continue
			}
			assert.Positive(t, operations+bytes, c.Name())
			if sparse[f.ID] == "" {
				assert.Equal(t, all, bytes, c.Name())
			}
		}
	}
}

// TestWorkOf has the work of some launches, counted by hand.
func TestWorkOf(t *testing.T) {
	f := func(v float64) any { return float32(v) }
	const buffer = "buffer"
	for _, c := range []struct {
		kernel            string
		defs              []source.Define
		args              []any
		operations, bytes float64
	}{
		{"gemm", nil, []any{3, 5, 7, f(1), buffer, 7, buffer, 5, f(0), buffer, 5}, 2 * 3 * 5 * 7, 4 * (3*7 + 7*5 + 3*5)},
		{"gemm", nil, []any{3, 5, 7, f(1), buffer, 70, buffer, 5, f(2), buffer, 9}, 2*3*5*7 + 2*3*5, 4 * (3*7 + 7*5 + 2*3*5)},
		{"gemm", nil, []any{3, 5, 7, f(0), buffer, 7, buffer, 5, f(0), buffer, 5}, 0, 4 * 3 * 5},
		{"gemm", []source.Define{{Name: "T", Value: "f16"}, {Name: "OUT", Value: "f32"}},
			[]any{3, 5, 7, f(1), buffer, 7, buffer, 5, f(0), buffer, 5}, 2 * 3 * 5 * 7, 2*(3*7+7*5) + 4*3*5},
		{"saxpy", nil, []any{f(2), buffer, buffer, uint64(10)}, 20, 120},
		{"gather", nil, []any{buffer, buffer, buffer, 100, 3, 8}, 0, 4 * (3*8 + 3 + 3*8)},
		{"gather", nil, []any{buffer, buffer, buffer, 2, 3, 8}, 0, 4 * (2*8 + 3 + 3*8)},
		{"scatter_add", nil, []any{buffer, buffer, buffer, 100, 3, 8}, 24, 4 * (3*8 + 3 + 2*3*8)},
		{"layer_norm", nil, []any{buffer, buffer, buffer, buffer, 4, 10, f(1e-5)}, 7*40 + 4*4, 4 * (2*40 + 20)},
		{"nearest", []source.Define{{Name: "T", Value: "i8"}, {Name: "METRIC", Value: "ip"}},
			[]any{buffer, buffer, buffer, buffer, 2, 1000, 16, 10, 1}, 2 * 2 * 1000 * 16, 1002*16 + 2*10*8},
		{"saxpy", nil, []any{f(2), buffer, buffer, uint64(0)}, 0, 0},
		// rows of the result overlap: no launch
		{"gemm", nil, []any{3, 5, 7, f(1), buffer, 1, buffer, 5, f(0), buffer, 1}, 0, 0},
	} {
		id := map[string]string{"scatter_add": "scatter", "layer_norm": "norm"}[c.kernel]
		if id == "" {
			id = c.kernel
		}
		u, err := kernels.Unit(id, nil, c.defs...)
		require.NoError(t, err)
		k, ok := u.Kernel(c.kernel)
		require.True(t, ok)
		require.Len(t, c.args, len(k.Params))
		var values [][]byte
		for _, a := range c.args {
			var b []byte
			switch v := a.(type) {
			case int:
				b = binary.NativeEndian.AppendUint32(b, uint32(v))
			case uint64:
				b = binary.NativeEndian.AppendUint64(b, v)
			case float32:
				b = binary.NativeEndian.AppendUint32(b, math.Float32bits(v))
			}
			values = append(values, b)
		}
		operations, bytes := u.Work(k, [3]int{1, 1, 1}, values)
		assert.Equal(t, c.operations, operations, "%s %v", c.kernel, c.args)
		assert.Equal(t, c.bytes, bytes, "%s %v", c.kernel, c.args)
	}
	u, err := source.Parse("kernel void k() {}", source.Options{})
	require.NoError(t, err)
	operations, bytes := u.Work(&u.Kernels()[0], [3]int{1, 1, 1}, nil)
	assert.Zero(t, operations+bytes, "nobody knows it")
}
