package driver

// The contract itself: the interfaces that a backend implements, in the order in
// which a program meets them.

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
	// Probe says what the backend found. It never fails and never panics: what
	// is wrong is State and Reason of the result. It allocates no device memory
	// and should return when ctx is done; runtime goes on without it then.
	Probe(ctx context.Context, cfg *Config) Probe
	// Open opens the device with that NativeIndex. The caller owns the Device.
	Open(ctx context.Context, nativeIndex int, cfg *Config) (Device, error)
}

// Device is one processor with its memory, opened.
type Device interface {
	// Info describes the device. It is cheap and the same at every call, except
	// for FreeMemory.
	Info() Info
	// Alloc returns n > 0 bytes, aligned to Info.BaseAlign, contents undefined.
	// ErrOutOfMemory means that the device had no room, ErrTooLarge that n can
	// never fit.
	Alloc(n int64, kind MemoryKind) (Memory, error)
	// Free gives back memory exactly as Alloc returned it. No work that uses it
	// is queued any more.
	Free(m Memory) error
	// NewStream returns an in-order queue, empty and idle.
	NewStream() (Stream, error)
	// Close releases the device. Its streams, modules and memory are closed
	// before; runtime sees to that.
	Close() error
}

// Compiler is the optional interface of devices that build portable programs.
// Compile and Load are separate, so that a cache can hold bytes and a second
// process never compiles.
type Compiler interface {
	// Identity lists everything besides the Unit and its options that decides
	// the bytes Compile returns: architecture, driver and compiler versions,
	// fixed options. It is part of the cache key. Without a compiler it returns
	// an error that matches ErrUnsupported and says what to install.
	Identity(ctx context.Context) ([]string, error)
	// Compile renders and builds a unit. Building can take seconds; ctx stops
	// it. A program that does not build gives a *BuildError with the whole log.
	// A failed Compile changes nothing on the device.
	Compile(ctx context.Context, unit *source.Unit, options []string) (Binary, error)
	// Load makes compiled bytes ready to run. The bytes are those of a Compile
	// for an equal Identity, perhaps in another process; they are only read.
	Load(ctx context.Context, unit *source.Unit, bin Binary) (Module, error)
}

// Natives is the optional interface of devices that have an implementation of
// their own for kernels of the catalog, found by Unit.Family, kernel name and
// definitions: the CPU's SIMD functions, cuBLAS, rocBLAS.
type Natives interface {
	// Native returns the device's own implementation, and whether there is one.
	// The Kernel lives as long as the device.
	Native(unit *source.Unit, kernel string) (Kernel, bool)
}

// Selective is implemented by native Kernels that are better than the portable text
// for some launches only.
type Selective interface {
	Kernel
	// Takes reports whether the native kernel should run a launch, packed as for
	// Stream.Launch; the portable one does otherwise. A program that insists on what
	// is native gets it for every launch, or Launch's ErrUnsupported. It is cheap.
	Takes(l *Launch) bool
}

// NativeHandles is the optional interface of devices that share objects with
// programs that already use the vendor's API.
type NativeHandles interface {
	// Handles returns the vendor's handles of the device: its context and what
	// else names it, by the vendor's word ("context", "device", "platform").
	Handles() map[string]uintptr
	// StreamHandle returns the vendor's queue behind a stream.
	StreamHandle(s Stream) uintptr
	// WrapMemory makes memory that the program owns usable here. Free of the
	// result only drops our own reference.
	WrapMemory(handle uintptr, size int64) (Memory, error)
	// WrapStream makes a queue that the program owns usable as a Stream.
	WrapStream(handle uintptr) (Stream, error)
}

// Binary is a compiled program, as bytes that another process can load.
type Binary struct {
	Code []byte
	Log  string // what the compiler said, warnings included
}

// Module is a program loaded on a device.
type Module interface {
	// Kernel returns an entry point. A name that is not there is an error that
	// matches ErrNoKernel and lists those that are.
	Kernel(name string) (Kernel, error)
	Close() error
}

// Kernel is one entry point of a loaded program, or a native implementation.
type Kernel interface {
	// Info describes the kernel as compiled. It is cheap.
	Info() KernelInfo
}

// KernelInfo is what is known of a compiled kernel. Zero means unknown.
type KernelInfo struct {
	Name           string
	Implementation string // what runs: "c++", "go", "opencl", "avx512"
	Native         bool   // from Natives, not from portable text
	MaxGroup       int    // largest number of items of a group
	GroupMultiple  int    // sizes of groups that use the hardware well are multiples of this
	LocalBytes     int64  // local memory used by the kernel itself
	Registers      int    // per item

	// SpillBytes is private memory per item that is not in registers: what did not
	// fit, and arrays that the program indexes. NVRTC, asked without a device, tells
	// them apart and counts only what did not fit.
	SpillBytes int64
}

// Memory names a range of device memory. Handle is the backend's own: a device
// address, a cl_mem, an id. Offset and Size are bytes; Alloc returns Offset 0.
// Views flatten: a view of a view still has the Handle of the allocation.
type Memory struct {
	Handle uint64
	Offset int64
	Size   int64
	Kind   MemoryKind
}

// MemoryKind says where memory lives and who may touch it.
type MemoryKind uint8

// The kinds of memory.
const (
	OnDevice MemoryKind = iota // the device's own
	Pinned                     // the host's, page-locked, visible to the device
	Unified                    // one address for both
)

// String returns the kind as a word.
func (k MemoryKind) String() string {
	if names := [...]string{"on-device", "pinned", "unified"}; int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("MemoryKind(%d)", k)
}

// ArgKind says what an argument of a launch is.
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

// Launch is one kernel execution, checked and packed. It and all it points to
// belong to the caller again when Stream.Launch returns.
type Launch struct {
	Kernel Kernel
	Dim    int // 1, 2 or 3
	Global [3]int
	Local  [3]int // never 0, divides Global
	Args   []Arg
	Data   []byte // values of ArgValue arguments, each aligned to its size (at most 16)
}

// Stream is an in-order queue of work. Methods that queue return at once; those
// that wait take a context and return its error when it is done first, and the
// queued work goes on.
type Stream interface {
	// Upload copies host memory to the device. src may be changed as soon as it
	// returns; it may have waited for the copy.
	Upload(ctx context.Context, dst Memory, src []byte) error
	// Download copies to host memory and returns when dst is filled.
	Download(ctx context.Context, dst []byte, src Memory) error
	// Copy queues a copy within the device. The ranges have the same size and do
	// not overlap.
	Copy(dst, src Memory) error
	// Fill queues setting dst to copies of pattern: 1, 2, 4 or 8 bytes that
	// divide dst.Size.
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
	// Close waits for the work in flight and releases the stream. Work that a
	// failed stream had refused is dropped.
	Close() error
}

// Event is a point in a stream.
type Event interface {
	// Done reports whether the point was reached. It never waits.
	Done() (bool, error)
	// Wait waits until the point is reached.
	Wait(ctx context.Context) error
	// Elapsed returns the device time from an earlier event of the same device
	// to this one, both reached. ErrTimingDisabled if either was not recorded
	// with timing.
	Elapsed(since Event) (time.Duration, error)
	Close() error
}
