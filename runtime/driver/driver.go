package driver

// The contract itself: the interfaces that a backend implements, in the order in which a program
// uses them.

import (
	"context"
	"fmt"
	"time"

	"github.com/concord-compute/concord/source"
)

// Backend is one vendor API.
type Backend interface {
	// Name is the backend's lower-case name: "cuda", "opencl", "cpu". It begins with a letter;
	// letters, digits, - and _ may follow.
	Name() string
	// Probe looks for the backend's devices. It never fails and never panics: State and Reason of
	// the result say what is wrong. It allocates no device memory and should return when ctx is
	// done; runtime does not wait for it any longer then.
	Probe(ctx context.Context, cfg *Config) Probe
	// Open opens the device with that NativeIndex. The caller owns the Device.
	Open(ctx context.Context, nativeIndex int, cfg *Config) (Device, error)
}

// Device is one open processor with its memory.
type Device interface {
	// Info describes the device. It is cheap and the same at every call, except
	// for FreeMemory.
	Info() Info
	// Alloc returns n > 0 bytes, aligned to Info.BaseAlign, contents undefined. ErrOutOfMemory
	// means that the device does not have that much memory free, ErrTooLarge that n can never fit.
	Alloc(n int64, kind MemoryKind) (Memory, error)
	// Free gives back memory exactly as Alloc returned it, when no queued work uses it any more.
	Free(m Memory) error
	// NewStream returns an in-order queue, empty and idle.
	NewStream() (Stream, error)
	// Close releases the device. Package runtime closes its streams, modules and memory before.
	Close() error
}

// Compiler is the optional interface of devices that build portable programs. Compile and Load are
// separate, so that a cache can store compiled bytes and later processes need not compile.
type Compiler interface {
	// Identity lists everything besides the Unit and its options that decides the bytes Compile
	// returns: architecture, driver and compiler versions, fixed options. It is part of the cache
	// key. Without a compiler it returns an error that matches ErrUnsupported and says which
	// software to install.
	Identity(ctx context.Context) ([]string, error)
	// Compile renders and builds a unit. Building can take seconds; ctx stops it. A program that
	// does not build is a *BuildError with the whole log. A failed Compile changes nothing on the
	// device.
	Compile(ctx context.Context, unit *source.Unit, options []string) (Binary, error)
	// Load makes compiled bytes ready to run. The bytes are those of a Compile
	// for an equal Identity, perhaps in another process; they are only read.
	Load(ctx context.Context, unit *source.Unit, bin Binary) (Module, error)
}

// Natives is the optional interface of devices that have implementations of their own for kernels
// of the catalog, found by Unit.Family, kernel name and definitions: the CPU's SIMD functions,
// cuBLAS, rocBLAS.
type Natives interface {
	// Native returns the device's own implementation, and whether there is one.
	// The Kernel is valid as long as the device is open.
	Native(unit *source.Unit, kernel string) (Kernel, bool)
}

// Selective is implemented by native Kernels that are faster than the portable text for some
// launches only.
type Selective interface {
	Kernel
	// Takes reports whether the native kernel should run a launch, packed as for Stream.Launch;
	// otherwise the portable one runs it. A program that asks for native kernels only gets the
	// native one for every launch, or ErrUnsupported from Launch. Takes is cheap.
	Takes(l *Launch) bool
}

// NativeHandles is the optional interface of devices that share objects with
// programs that already use the vendor's API.
type NativeHandles interface {
	// Handles returns the vendor's handles of the device by the vendor's words for them: "context",
	// "device", "platform".
	Handles() map[string]uintptr
	// StreamHandle returns the vendor's queue of a stream.
	StreamHandle(s Stream) uintptr
	// WrapMemory makes memory that the program owns usable on the device. Free of the result drops
	// only the backend's reference.
	WrapMemory(handle uintptr, size int64) (Memory, error)
	// WrapStream makes a queue that the program owns usable as a Stream.
	WrapStream(handle uintptr) (Stream, error)
}

// Binary is a compiled program, as bytes that another process can load.
type Binary struct {
	Code []byte
	Log  string // the compiler's output, warnings included
}

// Module is a program loaded on a device.
type Module interface {
	// Kernel returns an entry point. An unknown name is an error that matches ErrNoKernel and lists
	// the names that exist.
	Kernel(name string) (Kernel, error)
	Close() error
}

// Kernel is one entry point of a loaded program, or a native implementation.
type Kernel interface {
	// Info describes the kernel as compiled. It is cheap.
	Info() KernelInfo
}

// KernelInfo holds the properties of a compiled kernel. A field that is zero is unknown.
type KernelInfo struct {
	Name           string
	Implementation string // the form of the code: "c++", "go", "opencl", "avx512"
	Native         bool   // from Natives, not from portable text
	MaxGroup       int    // largest number of items of a group
	GroupMultiple  int    // a group should have a multiple of this number of items
	LocalBytes     int64  // local memory used by the kernel itself
	Registers      int    // per item

	// SpillBytes is private memory per item that is not in registers: spilled values, and arrays
	// that the program indexes. NVRTC, used without a device, distinguishes the two and reports
	// spilled values only.
	SpillBytes int64
}

// Memory names a range of device memory. Handle is the backend's own: a device address, a cl_mem,
// an id. Offset and Size are bytes; Alloc returns Offset 0. A view of a view still has the Handle
// of the allocation.
type Memory struct {
	Handle uint64
	Offset int64
	Size   int64
	Kind   MemoryKind
}

// MemoryKind says where memory lives and whether the host and the device can access it.
type MemoryKind uint8

// The kinds of memory.
const (
	OnDevice MemoryKind = iota // the device's own memory
	Pinned                     // page-locked host memory that the device can access
	Unified                    // memory with one address for host and device
)

// String returns the kind as a word.
func (k MemoryKind) String() string {
	if names := [...]string{"on-device", "pinned", "unified"}; int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("MemoryKind(%d)", k)
}

// ArgKind is the kind of a launch argument.
type ArgKind uint8

// The kinds of arguments.
const (
	ArgValue  ArgKind = iota // Size bytes at Offset of Launch.Data
	ArgMemory                // Memory
	ArgLocal                 // Size bytes of local memory
)

// Arg is one argument of a launch, in the order of the kernel's parameters.
type Arg struct {
	Kind   ArgKind
	Offset int
	Size   int
	Memory Memory
}

// Launch is one kernel execution, checked and packed. It and everything it points to may be reused
// by the caller when Stream.Launch returns.
type Launch struct {
	Kernel Kernel
	Dim    int // 1, 2 or 3
	Global [3]int
	Local  [3]int // never 0, divides Global
	Args   []Arg
	Data   []byte // values of ArgValue arguments, each aligned to its size (at most 16)
}

// Stream is an in-order queue of work. Methods that queue work return at once. Methods that wait
// take a context; if it is done first they return its error, and the queued work goes on.
type Stream interface {
	// Upload copies host memory to the device. src may be changed as soon as it
	// returns; it may have waited for the copy.
	Upload(ctx context.Context, dst Memory, src []byte) error
	// Download copies to host memory and returns when dst is filled.
	Download(ctx context.Context, dst []byte, src Memory) error
	// Copy queues a copy within the device. The ranges have the same size and do
	// not overlap.
	Copy(dst, src Memory) error
	// Fill queues filling dst with copies of pattern, whose size is 1, 2, 4 or 8 bytes and divides
	// dst.Size.
	Fill(dst Memory, pattern []byte) error
	// Launch queues a kernel.
	Launch(l *Launch) error
	// Record queues an event. Only an event recorded with timing can be timed.
	Record(timing bool) (Event, error)
	// Wait makes later work of this stream wait for an event of this device.
	Wait(e Event) error
	// Sync waits until everything queued so far is done.
	Sync(ctx context.Context) error
	// Err returns the error that made the stream fail, or nil. It never waits.
	Err() error
	// Close waits for the work in flight and releases the stream. Work that was refused because the
	// stream had failed does not run.
	Close() error
}

// Event is a point in a stream.
type Event interface {
	// Done reports whether the point was reached. It never waits.
	Done() (bool, error)
	// Wait waits until the point is reached.
	Wait(ctx context.Context) error
	// Elapsed returns the device time from an earlier event of the same device to this one. Both
	// must have been reached. It is ErrTimingDisabled if either was recorded without timing.
	Elapsed(since Event) (time.Duration, error)
	Close() error
}
