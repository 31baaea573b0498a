package conformance

// The device of a row, with all that the row makes on it.

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// device is the device under test with the objects that a check has made on it.
type device struct {
	*runtime.Device
	guarded []*runtime.Buffer // each around one under test; its two ends hold the pattern
	kept    []io.Closer       // what close closes, the last first
	given   bool              // the check has closed the device
}

// keep makes the end of the check close what was made on the device, unless the check does.
func keep[C io.Closer](d *device, c C) C {
	d.kept = append(d.kept, c)
	return c
}

// host is the backend with which every other exchanges copies, and whose faults are sure to be noticed.
const host = "cpu"

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
	d.guarded = append(d.guarded, keep(d, whole))
	must(t, d.Stream().Fill(whole, uint8(bandPattern)))
	must(t, d.Stream().Sync(t.Context()), "other streams use it next")
	middle := d.slice(t, whole, bandBytes, size)
	b := keep(d, call(middle.As(typ)).must(t))
	must(t, middle.Close(), "b does not need it")
	return b
}

// slice returns a view of n elements of a buffer, which is closed at the end of the check.
func (d *device) slice(t *row, b *runtime.Buffer, off, n int) *runtime.Buffer {
	t.Helper()
	return keep(d, call(b.Slice(off, n)).must(t))
}

// stream returns another stream, which is closed at the end of the check.
func (d *device) stream(t *row) *runtime.Stream {
	t.Helper()
	return keep(d, call(d.NewStream()).must(t))
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

// made returns n numbers.
func made[T runtime.Element](n int, at func(i int) T) []T {
	data := make([]T, n)
	for i := range data {
		data[i] = at(i)
	}
	return data
}

// all fails the row if an element of a buffer is not the value.
func all[T runtime.Element](t *row, b *runtime.Buffer, value T, msg ...any) {
	t.Helper()
	mustEqual(t, slices.Repeat([]T{value}, b.Len()), read[T](t, b), msg...)
}

// kernel builds a program and returns one of its kernels.
func (d *device) kernel(t *row, text, name string, defines ...source.Define) *runtime.Kernel {
	t.Helper()
	return call(d.program(t, text, defines...).Kernel(name)).must(t)
}

func (d *device) program(t *row, text string, defines ...source.Define) *runtime.Program {
	t.Helper()
	o := source.Options{Name: t.name + ".cl", Defines: defines, Features: d.Features()}
	unit := call(source.Parse(text, o)).must(t)
	return keep(d, call(d.Program(t.Context(), unit)).must(t))
}

// needPortable skips a row that runs programs if the device has no compiler and compilerRow is
// listed.
func (d *device) needPortable(t *row) {
	t.Helper()
	_, why := d.compiler(t)
	switch {
	case why == "":
	case t.noCompiler != "":
		t.Skipf("%s; %s is listed: %s", why, compilerRow, t.noCompiler)
	default:
		t.unlisted("%s, and %s is not in Exceptions.Unsupported", why, compilerRow)
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
	for _, b := range d.guarded {
		whole := read[uint8](t, b)
		bands := slices.Concat(whole[:bandBytes], whole[len(whole)-bandBytes:])
		bad := slices.IndexFunc(bands, func(x uint8) bool { return x != bandPattern })
		mustEqual(t, -1, bad, "nothing outside a buffer may be written")
	}
	for _, c := range slices.Backward(d.kept) {
		must(t, c.Close())
	}
	must(t, d.Sync(t.Context()))
	d.guarded, d.kept = nil, nil
}
