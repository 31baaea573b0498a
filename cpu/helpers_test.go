package cpu

// Functions that the tests of this package share.

import (
	"context"
	"os"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// openDevice opens cpu:0 and closes it at the end of the test.
func openDevice(t testing.TB) *device {
	t.Helper()
	return openIndex(t, fastIndex)
}

func openIndex(t testing.TB, index int) *device {
	t.Helper()
	d, err := backend{}.Open(context.Background(), index, &driver.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	return d.(*device)
}

func openStream(t testing.TB, d *device) *stream {
	t.Helper()
	s, err := d.NewStream()
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() }) // a test with a failing stream checks the error itself
	return s.(*stream)
}

func allocBytes(t testing.TB, d *device, n int64) driver.Memory {
	t.Helper()
	m, err := d.Alloc(n, driver.OnDevice)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Free(m)) })
	return m
}

// goKernel makes a kernel of a function, without registering it.
func goKernel(d *device, name string, f Func, params ...source.Param) *kernel {
	return &kernel{info: driver.KernelInfo{Name: name, Implementation: "go"}, device: d, unit: &source.Unit{},
		params: params, run: plain(f)}
}

// launchOf describes a launch of n items in one group, with buffers as arguments.
func launchOf(k driver.Kernel, n int, buffers ...driver.Memory) *driver.Launch {
	l := &driver.Launch{Kernel: k, Dim: 1, Global: [3]int{n, 1, 1}, Local: [3]int{1, 1, 1}}
	for _, m := range buffers {
		l.Args = append(l.Args, driver.Arg{Kind: driver.ArgMemory, Memory: m})
	}
	return l
}

// pass adds a value to a launch, as runtime packs it.
func pass[T any](l *driver.Launch, v T) {
	size := int(unsafe.Sizeof(v))
	align := min(size, 16)
	for len(l.Data)%align != 0 {
		l.Data = append(l.Data, 0)
	}
	l.Args = append(l.Args, driver.Arg{Kind: driver.ArgValue, Offset: len(l.Data), Size: size})
	l.Data = append(l.Data, unsafe.Slice((*byte)(unsafe.Pointer(&v)), size)...)
}

func bytesOf[T any](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(*new(T))))
}

// background returns a context with a deadline, which ends a test that hangs.
func background(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// gate returns a kernel function that closes started when it runs, and returns when open is closed.
func gate() (f Func, started, open chan struct{}) {
	started, open = make(chan struct{}), make(chan struct{})
	return func(*Call) error {
		close(started)
		<-open
		return nil
	}, started, open
}

// testProgram is this test's own executable.
var testProgram, _ = os.Executable()

// subprocess reports whether this is the process that a test started of itself.
func subprocess(t *testing.T) bool {
	t.Helper()
	return os.Getenv("CPU_TEST_CHILD") != ""
}
