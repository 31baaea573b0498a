package floats

import (
	"context"

	"github.com/concord-compute/concord/runtime"
)

var elements = map[string]runtime.Type{"float": runtime.F32, "double": runtime.F64, "half": runtime.F16}

// write fills b with values in the format.
func write(ctx context.Context, b *runtime.Buffer, f *format, v []float64) error {
	switch f.scalar {
	case "float":
		return writeAs(ctx, b, v, func(x float64) float32 { return float32(x) })
	case "half":
		return writeAs(ctx, b, v, runtime.ToFloat16)
	}
	return runtime.Write(ctx, b, v)
}

func writeAs[T runtime.Element](ctx context.Context, b *runtime.Buffer, v []float64, to func(float64) T) error {
	data := make([]T, len(v))
	for i, x := range v {
		data[i] = to(x)
	}
	return runtime.Write(ctx, b, data)
}

// read returns what b holds.
func read(ctx context.Context, b *runtime.Buffer, f *format) ([]float64, error) {
	switch f.scalar {
	case "float":
		return readAs(ctx, b, func(x float32) float64 { return float64(x) })
	case "half":
		return readAs(ctx, b, runtime.Float16.Float64)
	}
	return readAs(ctx, b, func(x float64) float64 { return x })
}

func readAs[T runtime.Element](ctx context.Context, b *runtime.Buffer, from func(T) float64) ([]float64, error) {
	data := make([]T, b.Len())
	err := runtime.Read(ctx, b, data)
	v := make([]float64, len(data))
	for i, x := range data {
		v[i] = from(x)
	}
	return v, err
}
