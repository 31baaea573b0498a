// Package conformance is the suite that every backend passes, ours or a third
// party's. A backend's own test is a few lines:
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, func(t *testing.T) *runtime.Device {
//			return conformance.Open(t, "opencl:0")
//		})
//	}
//
// # Basics
//
// Each subtest opens the device anew, checks one rule, closes what it opened, and
// then demands that nothing is live. Buffers are taken from the middle of larger
// ones whose ends are filled with a pattern, so that a stray write is found.
//
// # Caveats
//
// A subtest skips only for what is not here: a device without double precision,
// one that runs no portable programs. What does not work fails.
package conformance

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
	"github.com/stretchr/testify/require"
)

// OpenFunc opens the device under test. It skips the test if the device is not
// here, and fails it for every other reason.
type OpenFunc func(t *testing.T) *runtime.Device

// Run runs the whole suite.
func Run(t *testing.T, open OpenFunc) {
	for _, c := range slices.Concat(memoryChecks, kindChecks, managedChecks, streamChecks, kernelChecks, graphChecks, acrossChecks, errorChecks, limitChecks, lifetimeChecks) {
		t.Run(c.name, func(t *testing.T) {
			d := &device{Device: open(t)}
			if c.portable {
				d.needPortable(t)
			}
			c.check(t, d)
			d.end(t)
		})
	}
}

// check is one rule.
type check struct {
	name     string
	portable bool // it runs portable programs
	check    func(t *testing.T, d *device)
}

// Open opens a device of the default configuration by name. It skips the test
// with the reason if the device is not here, unless CONCORD_REQUIRE names its
// backend.
func Open(t *testing.T, name string) *runtime.Device {
	t.Helper()
	s, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return OpenIn(t, s, name)
}

// OpenIn is Open in a session of the caller's.
func OpenIn(t *testing.T, s *runtime.Session, name string) *runtime.Device {
	t.Helper()
	d, err := s.Open(t.Context(), name)
	backend, _, _ := strings.Cut(name, ":")
	absent := errors.Is(err, runtime.ErrNoDevice) || driver.IsSimulated(backend) && errors.Is(err, runtime.ErrUnknownBackend)
	if absent && !slices.Contains(s.Config().Required, backend) {
		t.Skipf("%s is not here: %v", name, err)
	}
	require.NoError(t, err, "opening %s", name)
	return d
}

// device is the device under test with what a check has made on it.
type device struct {
	*runtime.Device
	bands    []band
	programs []*runtime.Program
	buffers  []*runtime.Buffer
	arrays   []runtime.Array
	given    bool // the check has closed the device
}

// band is a buffer around one under test: both ends hold the pattern.
type band struct {
	whole       *runtime.Buffer
	front, back int // bytes
}

const (
	bandBytes   = 4096 // a multiple of any alignment a device asks for, so that views are as aligned as allocations
	bandPattern = 0xa5
)

// alloc returns a buffer of n elements between two guard bands.
func (d *device) alloc(t *testing.T, typ runtime.Type, n int) *runtime.Buffer {
	t.Helper()
	return d.allocKind(t, runtime.OnDevice, typ, n)
}

// allocKind is alloc in memory of a kind, or nil where the device has none of it.
func (d *device) allocKind(t *testing.T, kind runtime.MemoryKind, typ runtime.Type, n int) *runtime.Buffer {
	t.Helper()
	size := n * typ.Size()
	whole, err := d.AllocKind(kind, runtime.U8, bandBytes+size+bandBytes)
	if kind != runtime.OnDevice && errors.Is(err, runtime.ErrUnsupported) {
		return nil
	}
	require.NoError(t, err)
	require.NoError(t, runtime.Fill(d.Stream(), whole, uint8(bandPattern)))
	require.NoError(t, d.Stream().Sync(t.Context()), "other streams use it next")
	middle, err := whole.Slice(bandBytes, size)
	require.NoError(t, err)
	view, err := middle.As(typ)
	require.NoError(t, err)
	require.NoError(t, middle.Close())
	d.bands = append(d.bands, band{whole, bandBytes, bandBytes})
	d.buffers = append(d.buffers, whole, view)
	return view
}

// upload returns a guarded buffer with data.
func upload[T runtime.Element](t *testing.T, d *device, data []T) *runtime.Buffer {
	t.Helper()
	b := d.alloc(t, runtime.TypeOf[T](), len(data))
	require.NoError(t, runtime.Write(t.Context(), b, data))
	require.NoError(t, d.Stream().Sync(t.Context()), "other streams may use it next")
	return b
}

// read returns the contents of a buffer.
func read[T runtime.Element](t *testing.T, b *runtime.Buffer) []T {
	t.Helper()
	out := make([]T, b.Len())
	require.NoError(t, runtime.Read(t.Context(), b, out))
	return out
}

// kernel builds a program and returns one of its kernels.
func (d *device) kernel(t *testing.T, text, name string, defines ...source.Define) *runtime.Kernel {
	t.Helper()
	p := d.program(t, text, defines...)
	k, err := p.Kernel(name)
	require.NoError(t, err)
	return k
}

func (d *device) program(t *testing.T, text string, defines ...source.Define) *runtime.Program {
	t.Helper()
	unit, err := source.Parse(text, source.Options{Name: t.Name() + ".cl", Defines: defines, Features: d.Features()})
	require.NoError(t, err)
	p, err := d.Program(t.Context(), unit)
	require.NoError(t, err)
	d.programs = append(d.programs, p)
	return p
}

func (d *device) needPortable(t *testing.T) {
	t.Helper()
	c, ok := d.Driver().(driver.Compiler)
	if !ok {
		t.Skipf("%s runs no portable programs", d)
	}
	_, err := c.Identity(t.Context())
	if notHere(err) {
		t.Skipf("%s runs no portable programs here: %v", d, err)
	}
	require.NoError(t, err)
}

// notHere reports whether an error says that something is not here. What is here
// and does not work is a failure.
func notHere(err error) bool {
	return errors.Is(err, runtime.ErrUnsupported) || errors.Is(err, runtime.ErrNoDevice)
}

// end checks the guard bands, closes everything, and demands that nothing is
// left.
func (d *device) end(t *testing.T) {
	if t.Failed() || t.Skipped() || d.given {
		return
	}
	d.close(t)
	st := d.Stats()
	require.Zero(t, st.Live, "bytes live at the end")
	require.Zero(t, st.Deferred, "bytes waiting to be freed at the end")
	require.Equal(t, st.Allocations, st.Frees, "every allocation is freed once")
	require.NoError(t, d.Close())
}

// close checks the guard bands and closes what was made on the device.
func (d *device) close(t *testing.T) {
	t.Helper()
	for _, b := range d.bands {
		whole := make([]uint8, b.whole.Len())
		err := runtime.Read(t.Context(), b.whole, whole)
		if errors.Is(err, runtime.ErrClosed) {
			continue // closed by the check
		}
		require.NoError(t, err)
		front, back := whole[:b.front], whole[len(whole)-b.back:]
		bad := slices.IndexFunc(slices.Concat(front, back), func(x uint8) bool { return x != bandPattern })
		require.Equal(t, -1, bad, "nothing outside a buffer may be written")
	}
	for _, b := range d.buffers {
		require.NoError(t, b.Close())
	}
	for _, a := range d.arrays {
		require.NoError(t, a.Close())
	}
	for _, p := range d.programs {
		require.NoError(t, p.Close())
	}
	require.NoError(t, d.Sync(t.Context()))
	d.bands, d.buffers, d.arrays, d.programs = nil, nil, nil, nil
}
