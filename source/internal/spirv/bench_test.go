package spirv_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/source"
)

// BenchmarkModule measures what a small kernel's first launch waits for besides the front end and the driver.
func BenchmarkModule(b *testing.B) {
	for name, text := range map[string]string{
		"saxpy": "kernel void k(float a, global float *x, global float *y) { int i = get_global_id(0); y[i] += a * x[i]; }",
		"tanh":  "kernel void k(global float *y) { int i = get_global_id(0); y[i] = tanh(y[i]) / exp(y[i]) + sqrt(y[i]); }",
	} {
		u, err := source.Parse(text, source.Options{Features: &vulkanFeatures})
		require.NoError(b, err)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := u.Module(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
