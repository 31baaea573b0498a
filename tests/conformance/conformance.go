// Package conformance is the suite that every backend passes, one of Concord's own or one of
// another module. It imports only the standard library and Concord's own packages and their
// dependencies.
//
// # The test of a backend
//
// A backend that registers itself as "hostdev" is tested by one file in its own module:
//
//	package hostdev_test
//
//	import (
//		"testing"
//
//		_ "github.com/concord-compute/concord/cpu" // across/cpu copies from and to cpu:0
//		"github.com/concord-compute/concord/runtime"
//		"github.com/concord-compute/concord/tests/conformance"
//
//		_ "example.org/hostdev"
//	)
//
//	func TestConformance(t *testing.T) {
//		open := func(t *testing.T) *runtime.Device { return conformance.Open(t, "hostdev:0") }
//		conformance.Run(t, open, conformance.Exceptions{
//			Unsupported: map[string]string{"kinds/prefetch": "the hardware has no unified memory"},
//			Failing:     map[string]string{"stream/times": "hostdev 1.2 returns the time of the host"},
//		})
//	}
//
// Begin with empty Exceptions. Each failure names its row, such as TestConformance/kinds/prefetch.
// Implement the feature that the row tests, or list the row with the reason why the backend does
// not have it. A backend that does not compile programs lists "kernel/compiler" alone, which
// includes every row that needs a program.
//
// If the device is missing all rows are skipped. With CONCORD_REQUIRE=hostdev in the environment
// they fail, so that tests on a machine that should have the device cannot pass without it.
//
// # The rows
//
// Each row opens the device, checks one rule, closes everything that it opened, and then fails
// unless all memory was freed. Buffers are taken from the middle of larger ones whose ends are
// filled with a pattern, so that a stray write is found.
//
// Without being listed, a row is skipped only if the device's [driver.Info] shows that it cannot
// run: the device has too little memory, or the backend has no other device. If a call returns
// ErrUnsupported and Info does not say why, the row has to be listed. A row that fails has to be
// listed, too; see [Exceptions].
package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/config"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// OpenFunc opens the device under test, for one row. It skips the test if the machine does not have
// the device, and fails it for any other reason. The suite fails if the device is present for some
// rows and missing for others. The suite closes the device.
type OpenFunc func(t *testing.T) *runtime.Device

// Run runs the whole suite, each row as a subtest. It fails t for every row that neither passes
// nor is listed in except, and for every row that is listed and passes.
func Run(t *testing.T, open OpenFunc, except Exceptions) {
	t.Helper()
	except.check(t)
	var p presence
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			r := &row{undecided: t, test: t, unsupported: except.Unsupported[c.name],
				failing: except.Failing[c.name], noCompiler: except.Unsupported[compilerRow]}
			r.run(c, open, &p)
		})
	}
}

var checks = slices.Concat(infoChecks, memoryChecks, kindChecks, managedChecks, streamChecks, kernelChecks,
	graphChecks, acrossChecks, errorChecks, limitChecks, lifetimeChecks)

// check is the test of one rule.
type check struct {
	name     string
	portable bool // it runs portable programs
	check    func(t *row, d *device)
}

// Open opens a device of the default configuration by name. It skips the test
// with the reason if the machine does not have the device, unless CONCORD_REQUIRE names its
// backend. It fails the test if CONCORD_REQUIRE names a backend that this program does not have.
func Open(t *testing.T, name string) *runtime.Device {
	t.Helper()
	s, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("closing the session of %s: %v", name, err)
		}
	})
	return OpenIn(t, s, name)
}

// OpenIn opens a device like Open, in a session that the caller made and closes.
func OpenIn(t *testing.T, s *runtime.Session, name string) *runtime.Device {
	t.Helper()
	backend, _, _ := strings.Cut(name, ":")
	required, err := config.Requires(s.Config(), backend)
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.Open(t.Context(), name)
	absent := errors.Is(err, runtime.ErrNoDevice) || driver.IsSimulated(backend) && errors.Is(err, runtime.ErrUnknownBackend)
	if absent && strings.HasSuffix(name, ":0") && available(t, s, backend) {
		t.Fatalf("%s is available, but its first device does not open as %s (is that the Info.ID, and is Info.Backend %s?): %v",
			backend, name, backend, err)
	}
	if absent && !required {
		t.Skipf("this machine has no %s: %v", name, err)
	}
	if err != nil {
		t.Fatalf("opening %s: %v", name, err)
	}
	return d
}

// available reports whether a backend says that it can be used.
func available(t *testing.T, s *runtime.Session, backend string) bool {
	probes, err := s.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(probes, func(p runtime.Probe) bool { return p.Backend == backend && p.State == driver.Available })
}

// device is the device under test with the objects that a check has made on it.
type device struct {
	*runtime.Device
	bands    []band
	programs []*runtime.Program
	buffers  []*runtime.Buffer
	arrays   []runtime.Array
	given    bool // the check has closed the device
}

// band is a buffer around one under test; its two ends hold the pattern.
type band struct {
	whole       *runtime.Buffer
	front, back int // bytes
}

const (
	bandBytes   = 4096 // a multiple of every device's alignment, so that views are as aligned as allocations
	bandPattern = 0xa5
)

// alloc returns a buffer of n elements between two guard bands.
func (d *device) alloc(t *row, typ runtime.Type, n int) *runtime.Buffer {
	t.Helper()
	return d.allocKind(t, runtime.OnDevice, typ, n)
}

// allocKind is alloc for memory of a kind. It returns nil if the device has no such memory.
func (d *device) allocKind(t *row, kind runtime.MemoryKind, typ runtime.Type, n int) *runtime.Buffer {
	t.Helper()
	size := n * typ.Size()
	whole, err := d.AllocKind(kind, runtime.U8, bandBytes+size+bandBytes)
	if kind != runtime.OnDevice && errors.Is(err, runtime.ErrUnsupported) {
		return nil
	}
	must(t, err)
	must(t, d.Stream().Fill(whole, uint8(bandPattern)))
	must(t, d.Stream().Sync(t.Context()), "other streams use it next")
	middle, err := whole.Slice(bandBytes, size)
	must(t, err)
	view, err := middle.As(typ)
	must(t, err)
	must(t, middle.Close())
	d.bands = append(d.bands, band{whole, bandBytes, bandBytes})
	d.buffers = append(d.buffers, whole, view)
	return view
}

// upload returns a guarded buffer with data.
func upload[T runtime.Element](t *row, d *device, data []T) *runtime.Buffer {
	t.Helper()
	b := d.alloc(t, runtime.TypeOf[T](), len(data))
	must(t, runtime.Write(t.Context(), b, data))
	must(t, d.Stream().Sync(t.Context()), "other streams may use it next")
	return b
}

// read returns the contents of a buffer.
func read[T runtime.Element](t *row, b *runtime.Buffer) []T {
	t.Helper()
	out := make([]T, b.Len())
	must(t, runtime.Read(t.Context(), b, out))
	return out
}

// kernel builds a program and returns one of its kernels.
func (d *device) kernel(t *row, text, name string, defines ...source.Define) *runtime.Kernel {
	t.Helper()
	p := d.program(t, text, defines...)
	k, err := p.Kernel(name)
	must(t, err)
	return k
}

func (d *device) program(t *row, text string, defines ...source.Define) *runtime.Program {
	t.Helper()
	unit, err := source.Parse(text, source.Options{Name: t.Name() + ".cl", Defines: defines, Features: d.Features()})
	must(t, err)
	p, err := d.Program(t.Context(), unit)
	must(t, err)
	d.programs = append(d.programs, p)
	return p
}

// needPortable skips a row that runs programs if the device has no compiler and compilerRow is
// listed.
func (d *device) needPortable(t *row) {
	t.Helper()
	_, why := d.compiler(t)
	switch {
	case why == "":
	case t.noCompiler != "":
		t.skip("%s; %s is listed: %s", why, compilerRow, t.noCompiler)
	default:
		t.test.Fatalf("%s, and %s is not in Exceptions.Unsupported", why, compilerRow)
	}
}

// compiler returns the result of Compiler.Identity, or the reason why the device does not compile
// programs.
func (d *device) compiler(t *row) (identity []string, why string) {
	t.Helper()
	c, ok := d.Driver().(driver.Compiler)
	if !ok {
		return nil, fmt.Sprintf("%s is not a driver.Compiler", d)
	}
	identity, err := c.Identity(t.Context())
	if notHere(err) {
		return nil, fmt.Sprintf("%s does not compile programs on this machine: %v", d, err)
	}
	must(t, err)
	return identity, ""
}

// notHere reports whether an error means that the machine does not have a device or backend, as
// opposed to one that exists and does not work.
func notHere(err error) bool {
	return errors.Is(err, runtime.ErrUnsupported) || errors.Is(err, runtime.ErrNoDevice)
}

// end checks the guard bands, closes everything, and checks that all memory was freed.
func (d *device) end(t *row) {
	if t.failed.Load() || d.given {
		return
	}
	d.close(t)
	st := d.Stats()
	mustEqual(t, 0, st.Live, "bytes live at the end")
	mustEqual(t, 0, st.Deferred, "bytes waiting to be freed at the end")
	mustEqual(t, st.Allocations, st.Frees, "every allocation is freed once")
	must(t, d.Close())
}

// close checks the guard bands and closes the objects that were made on the device.
func (d *device) close(t *row) {
	t.Helper()
	for _, b := range d.bands {
		whole := make([]uint8, b.whole.Len())
		err := runtime.Read(t.Context(), b.whole, whole)
		if errors.Is(err, runtime.ErrClosed) {
			continue // closed by the check
		}
		must(t, err)
		front, back := whole[:b.front], whole[len(whole)-b.back:]
		bad := slices.IndexFunc(slices.Concat(front, back), func(x uint8) bool { return x != bandPattern })
		mustEqual(t, -1, bad, "nothing outside a buffer may be written")
	}
	for _, b := range d.buffers {
		must(t, b.Close())
	}
	for _, a := range d.arrays {
		must(t, a.Close())
	}
	for _, p := range d.programs {
		must(t, p.Close())
	}
	must(t, d.Sync(t.Context()))
	d.bands, d.buffers, d.arrays, d.programs = nil, nil, nil, nil
}
