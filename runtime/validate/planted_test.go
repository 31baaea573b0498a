package validate

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	_ "github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// planted is the cpu backend with a fault: behind each launch it overwrites the memory that spoil names.
type planted struct {
	driver.Backend
	name  string
	spoil func(l *driver.Launch) (driver.Memory, bool)
	uses  *uses
}

// uses counts how often devices were opened and closed.
type uses struct{ opened, closed atomic.Int64 }

func (b planted) Name() string { return b.name }

func (b planted) Probe(ctx context.Context, cfg *driver.Config) driver.Probe {
	p := b.Backend.Probe(ctx, cfg)
	p.Devices = slices.Clone(p.Devices)
	for i := range p.Devices {
		p.Devices[i] = b.named(p.Devices[i])
	}
	return p
}

func (b planted) named(i driver.Info) driver.Info {
	i.ID, i.Backend = b.name+strings.TrimPrefix(i.ID, i.Backend), b.name
	return i
}

func (b planted) Describe() driver.Description { return driver.Describe(b.Backend) }

func (b planted) Open(ctx context.Context, i int, cfg *driver.Config) (driver.Device, error) {
	d, err := b.Backend.Open(ctx, i, cfg)
	if err != nil {
		return nil, err
	}
	b.uses.opened.Add(1)
	return &plantedDevice{d, d.(driver.Compiler), d.(driver.Natives), b}, nil
}

type plantedDevice struct {
	driver.Device
	driver.Compiler
	driver.Natives
	b planted
}

func (d *plantedDevice) Info() driver.Info { return d.b.named(d.Device.Info()) }

func (d *plantedDevice) Close() error {
	d.b.uses.closed.Add(1)
	return d.Device.Close()
}

func (d *plantedDevice) NewStream() (driver.Stream, error) {
	s, err := d.Device.NewStream()
	return &plantedStream{s, d.b}, err
}

type plantedStream struct {
	driver.Stream
	b planted
}

func (s *plantedStream) Launch(l *driver.Launch) error {
	if err := s.Stream.Launch(l); err != nil {
		return err
	}
	if m, wrong := s.b.spoil(l); wrong {
		return s.Fill(m, []byte{0, 0, 0x80, 0x45}) // 4096 in float32
	}
	return nil
}

// element is one float32 of the memory of an argument.
func element(l *driver.Launch, arg, at int) driver.Memory {
	m := l.Args[arg].Memory
	m.Offset, m.Size = m.Offset+int64(4*at), 4
	return m
}

// wrong returns a session whose cpu device has a wrong element, at, in argument arg of each launch of a kernel, or none
// if the kernel is "".
func wrong(t testing.TB, kernel string, arg, at int) *runtime.Session {
	t.Helper()
	spoil := func(l *driver.Launch) (driver.Memory, bool) {
		if kernel == "" || l.Kernel.Info().Name != kernel || l.Args[arg].Memory.Size < int64(4*at+4) {
			return driver.Memory{}, false
		}
		return element(l, arg, at), true
	}
	return spoiled(t, "cpu", spoil)
}

// wrongAll is wrong with whole buffers that are wrong.
func wrongAll(t testing.TB, kernel string, arg int) *runtime.Session {
	t.Helper()
	return spoiled(t, "cpu", func(l *driver.Launch) (driver.Memory, bool) {
		if l.Kernel.Info().Name != kernel {
			return driver.Memory{}, false
		}
		return l.Args[arg].Memory, true
	})
}

// spoiled returns a session with the cpu backend under a name.
func spoiled(t testing.TB, name string, spoil func(l *driver.Launch) (driver.Memory, bool)) *runtime.Session {
	t.Helper()
	all := driver.Backends()
	cpu := all[slices.IndexFunc(all, func(b driver.Backend) bool { return b.Name() == "cpu" })]
	s, err := runtime.New(runtime.Config{Validate: -1, Backends: []driver.Backend{planted{cpu, name, spoil, &uses{}}}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func opened(t testing.TB, s *runtime.Session, name string) *runtime.Device {
	t.Helper()
	d, err := s.Open(t.Context(), name)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}
