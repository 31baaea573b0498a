package runtime

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ownBackend has devices with an implementation of their own of axpy, for n above 100.
type ownBackend struct{ *nullBackend }

func (b ownBackend) Open(ctx context.Context, i int, cfg *Config) (driver.Device, error) {
	d, err := b.nullBackend.Open(ctx, i, cfg)
	if err != nil {
		return nil, err
	}
	return ownDevice{d.(*nullDevice)}, nil
}

type ownDevice struct{ *nullDevice }

func (ownDevice) Native(u *source.Unit, name string) (driver.Kernel, bool) {
	if name != "axpy" {
		return nil, false
	}
	return ownKernel{}, true
}

type ownKernel struct{}

func (ownKernel) Info() KernelInfo {
	return KernelInfo{Name: "axpy", Implementation: "own", Native: true}
}
func (ownKernel) Takes(l *driver.Launch) bool { return l.Data[l.Args[3].Offset] > 100 }

// notNow has a device that knows why it has nothing of its own.
type notNow struct{ ownDevice }

func (notNow) Native(*source.Unit, string) (driver.Kernel, bool) { return nil, false }
func (notNow) WhyNotNative(*source.Unit, string) error {
	return fmt.Errorf("no room: %w", ErrOutOfMemory)
}

func TestWhyNotNative(t *testing.T) {
	b := &nullBackend{}
	_, d := open(t, b, Config{})
	u := kernel(t, d, "axpy").program.key.unit
	d.core.drv = notNow{ownDevice{d.core.drv.(*nullDevice)}}
	_, err := d.Program(t.Context(), u, ProgramOptions{Implementation: Native})
	assert.ErrorIs(t, err, ErrUnsupported)
	assert.ErrorIs(t, err, ErrOutOfMemory)
	assert.ErrorContains(t, err, "no implementation of its own")
	assert.Equal(t, 1, strings.Count(err.Error(), "no room"), "once: %v", err)
}

// Of a program with only some native kernels, Native gives these.
func TestNativeOfSome(t *testing.T) {
	b := &nullBackend{}
	_, d := open(t, b, Config{Backends: []driver.Backend{ownBackend{b}}})
	u, err := source.Parse(`kernel void axpy(global float *y) {} kernel void other(global float *y) {}`,
		source.Options{Family: "axpy"})
	require.NoError(t, err)
	p, err := d.Program(t.Context(), u, ProgramOptions{Implementation: Native})
	require.NoError(t, err)
	defer p.Close()
	assert.Equal(t, "native", p.Built().From)
	k, err := p.Kernel("axpy")
	require.NoError(t, err)
	assert.True(t, k.Info().Native)
	_, err = p.Kernel("other")
	assert.ErrorIs(t, err, ErrUnsupported)
	assert.ErrorContains(t, err, "kernel other: the device has no implementation of its own")
	_, err = p.Kernel("none")
	assert.ErrorIs(t, err, driver.ErrNoKernel)
}

// A native kernel that is better for some launches runs these, and the record says so; a program
// that asks for only one of the two implementations gets that one.
func TestSelective(t *testing.T) {
	b := &nullBackend{}
	_, d := open(t, b, Config{Backends: []driver.Backend{ownBackend{b}}})
	u,
		err :=
		source.Parse(
			`kernel void axpy(float a, global const float *x, global float *y, int n) { y[get_global_id(0)] += a * x[0]; }`,
			source.Options{Family: "axpy"})
	require.NoError(t, err)
	s, err := d.NewStream()
	require.NoError(t, err)
	defer s.Close()
	x := buffer(t, d, F32, 64)
	defer x.Close()
	for impl, want := range map[Implementation]struct {
		small, large, from string
	}{Fastest: {"null", "own", "text"}, Portable: {"null", "null", "text"}, Native: {"own", "own", "native"}} {
		p, err := d.Program(t.Context(), u, ProgramOptions{Implementation: impl})
		require.NoError(t, err)
		assert.Equal(t, want.from == "native", p.Built().From == "native", p.Built().From)
		k, err := p.Kernel("axpy")
		require.NoError(t, err)
		for n, ran := range map[int]string{100: want.small, 101: want.large} {
			rec, err := s.Run(t.Context(), k, Items(64), float32(1), x, x, n)
			require.NoError(t, err)
			assert.Equal(t, ran, rec.Implementation, "%d of %d", impl, n)
			assert.Equal(t, ran, b.last.Kernel.Info().Implementation)
		}
		info := k.Info()
		assert.Equal(t, impl == Native, info.Native)
		if impl == Fastest {
			assert.Equal(t, "null or own", info.Implementation)
		}
		assert.Zero(t, testing.AllocsPerRun(100, func() {
			if err := s.Launch(k, Items(64), float32(1), x, x, 101); err != nil {
				t.Error(err)
			}
		}))
		require.NoError(t, p.Close())
	}
}
