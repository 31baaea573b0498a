package cuda

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/internal/cgo"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// BenchmarkLaunch measures a launch with four arguments through the driver: NVIDIA's if there is a
// GPU, else the simulated one, which takes most of the time.
func BenchmarkLaunch(b *testing.B) {
	if table() == nil {
		b.Skip(missing)
	}
	ctx, cfg := context.Background(), &driver.Config{SimDir: os.Getenv("CONCORD_SIM_DIR")}
	if cfg.SimDir == "" {
		cfg.SimDir = filepath.Join("..", cgo.SimDir)
	}
	var d driver.Device
	var err error
	for _, name := range []string{"cuda", "sim-cuda"} {
		for _, backend := range driver.Backends() {
			if d == nil && backend.Name() == name {
				if d, err = backend.Open(ctx, 0, cfg); err != nil {
					d = nil
				}
			}
		}
	}
	if d == nil {
		b.Skip(err)
	}
	defer d.Close()
	features := d.Info().Features
	u,
		err :=
		source.Parse(
			`kernel void k(global float *x, global float *y, float a, int n) { if (get_global_id(0) < n) y[0] = a * x[0]; }`,
			source.Options{Features: &features})
	require.NoError(b, err)
	bin, err := d.(driver.Compiler).Compile(ctx, u, nil)
	require.NoError(b, err)
	m, err := d.(driver.Compiler).Load(ctx, u, bin)
	require.NoError(b, err)
	defer m.Close()
	k, err := m.Kernel("k")
	require.NoError(b, err)
	s, err := d.NewStream()
	require.NoError(b, err)
	defer s.Close()
	mem, err := d.Alloc(256, driver.OnDevice)
	require.NoError(b, err)
	defer d.Free(mem)
	l := driver.Launch{Kernel: k, Dim: 1, Global: [3]int{1, 1, 1}, Local: [3]int{1, 1, 1}, Data: make([]byte, 16),
		Args: []driver.Arg{
			{Kind: driver.ArgMemory, Memory: mem}, {Kind: driver.ArgMemory, Memory: mem},
			{Kind: driver.ArgValue, Size: 4}, {Kind: driver.ArgValue, Offset: 8, Size: 4}}}
	b.ReportAllocs()
	b.Run(d.Info().Backend, func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if i%512 == 511 { // keeps the queue short
				b.StopTimer()
				require.NoError(b, s.Sync(ctx))
				b.StartTimer()
			}
			if err := s.Launch(&l); err != nil {
				b.Fatal(err)
			}
		}
	})
}
