package main

// Other kernels that run at the speed of memory, compared with a hand-written loop that reads and
// writes as many bytes.

import (
	"fmt"

	"github.com/concord-compute/concord/source"
)

func defines(kv ...string) (d []source.Define) {
	for i := 0; i < len(kv); i += 2 {
		d = append(d, source.Define{Name: kv[i], Value: kv[i+1]})
	}
	return d
}

// memoryRows returns the rows. Their result is the last buffer, to which the copying loop writes,
// too.
func memoryRows() []streamRow {
	const n, size = streamFloats, 4 * streamFloats
	whole, rows, cols, none := uint64(n), uint32(n/1024), uint32(1024), uint32(0)
	copied := func(b *bench, x [][]byte) { copyLoop(b.threads, x[0], x[len(x)-1]) }
	read := func(b *bench, x [][]byte) { readLoop(b.threads, x[0]) }
	list := []streamRow{
		{"add a row", "arith", "add_broadcast", nil, 2 * size, []any{size, 4096, size, uint32(1), uint32(1), rows, cols,
			none, none, cols, uint32(1), none, none, none, uint32(1)}, copied, "", nil},
		{"cast f32 to bf16", "cast", "cast", defines("FROM", "f32", "TO", "bf16"), size + size/2,
			[]any{size, size / 2, whole},
			func(b *bench, x [][]byte) { narrowLoop(b.threads, x[0], x[1]) }, "", nil},
		{"cast f32 to i32", "cast", "cast", defines("FROM", "f32", "TO", "i32"), 2 * size, []any{size, size, whole}, copied,
			"", nil},
		{"cast i32 to f32", "cast", "cast", defines("FROM", "i32", "TO", "f32"), 2 * size, []any{size, size, whole}, copied,
			"", nil},
		{"add of integers", "arith", "add_scalar", defines("T", "i32"), 2 * size, []any{size, uint32(7), size, whole}, copied,
			"", nil},
		{"sum of columns", "reduce", "reduce_sum", nil, size, []any{size, 4096, uint32(1), rows, cols}, read, "", nil},
		{"max", "reduce", "reduce_max", nil, size, []any{size, 4, uint32(1), uint32(n), uint32(1)}, read, "", nil},
		{"argmax of rows", "reduce", "reduce_argmax", nil, size, []any{size, int(4 * rows), rows, cols, uint32(1)}, read, "",
			nil},
		{"sum of bf16, twice", "reduce", "reduce_sum", defines("T", "bf16"), size,
			[]any{size, 4, uint32(1), uint32(2 * n), uint32(1)}, read, "", nil},
		{"transpose of 8192 by 8192", "transpose", "transpose", nil, 2 * size, []any{size, size, uint32(8192), uint32(8192)},
			copied, "", nil},
		{"softmax of 1024", "softmax", "softmax", nil, 2 * size, []any{size, size, rows, cols}, copied, "", nil},
		{"layer norm of 1024", "norm", "layer_norm", nil, 2 * size, []any{size, 4096, 4096, size, rows, cols, float32(1e-5)},
			copied, "", nil},
		{"topk 10 of 1024", "topk", "topk", nil, size, []any{size, int(40 * rows), int(40 * rows), rows, cols, uint32(10)},
			read, "", nil},
		{"topk 100", "topk", "topk", nil, size, []any{size, 400, 400, uint32(1), uint32(n), uint32(100)}, read, "", nil},
		{"gemv of 8192 by 8192", "gemv", "gemv", nil, size, []any{uint32(8192), uint32(8192), float32(1), size, uint32(8192),
			4 * 8192, float32(0), 4 * 8192}, read, "", nil},
		{"gemv, transposed", "gemv", "gemv", defines("TRANS_A", "1"), size,
			[]any{uint32(8192), uint32(8192), float32(1), size, uint32(8192), 4 * 8192, float32(0), 4 * 8192}, read, "", nil},
		{"gemv of bf16, twice", "gemv", "gemv", defines("T", "bf16"), size,
			[]any{uint32(16384), uint32(8192), float32(1), size, uint32(8192), 2 * 8192, float32(0), 2 * 16384}, read, "", nil},
		{"fill", "fill", "fill", nil, size, []any{size, float32(1), whole}, nil, "", nil},
	}
	for _, f := range []string{"relu", "sigmoid", "tanh_act", "gelu"} {
		list = append(list, streamRow{f, "activation", f, nil, 2 * size, []any{size, size, whole}, copied, "", nil})
	}
	return list
}

func (b *bench) memory() error {
	for _, r := range memoryRows() {
		if err := b.stream(&r); err != nil {
			return fmt.Errorf("%s: %w", r.what, err)
		}
	}
	return nil
}
