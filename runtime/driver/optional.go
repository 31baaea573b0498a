package driver

// What not every device has: optional interfaces, found by assertion. Generic code
// in runtime stands in where one is absent, or the answer is ErrUnsupported.

import (
	"context"

	"github.com/concord-compute/concord/source"
)

// Priority says which of two streams of a device goes first when both have work.
type Priority int

// The priorities. A device maps them to what it has; Normal is what NewStream
// gives.
const (
	Low    Priority = -1
	Normal Priority = 0
	High   Priority = 1
)

// Describer is implemented by backends of which more is known than the name. Describe
// reaches no driver and returns the same at every call; what it returns is only read.
type Describer interface {
	Describe() Description
}

// Describe returns what a backend says of itself. Without a Title it is the name.
func Describe(b Backend) Description {
	var d Description
	if own, ok := b.(Describer); ok {
		d = own.Describe()
	}
	if d.Title == "" {
		d.Title = b.Name()
	}
	return d
}

// PriorityStreams is implemented by devices whose streams have priorities.
type PriorityStreams interface {
	NewPriorityStream(p Priority) (Stream, error)
}

// HostVisible is implemented by devices with memory that the host can read and
// write in place: Pinned and Unified, on a CPU all of it.
type HostVisible interface {
	// HostBytes returns the memory as the host sees it, and whether it can. It is
	// valid until the memory is freed. Who writes it while the device uses it
	// gets what the device makes of that.
	HostBytes(m Memory) ([]byte, bool)
}

// PinnedCopier is implemented by streams that copy between the device and pinned
// memory without the host waiting. From pinned memory to pinned memory, and where a
// stream has no PinnedCopier, it is Stream.Copy that takes pinned memory.
type PinnedCopier interface {
	// UploadPinned queues a copy. src is Pinned memory and stays unchanged until
	// the stream has passed.
	UploadPinned(dst, src Memory) error
	// DownloadPinned queues a copy to Pinned memory, filled when the stream has
	// passed.
	DownloadPinned(dst, src Memory) error
}

// KnownFailure is implemented by streams whose Err asks the driver.
type KnownFailure interface {
	// KnownErr is Err without asking: what a call has been told so far. It costs
	// nothing, so that it can come before every other call.
	KnownErr() error
}

// NoNative is implemented by devices that know why something native is not there.
type NoNative interface {
	// WhyNotNative returns why Natives.Native says no, or nil if there is nothing to
	// be had for that kernel at all.
	WhyNotNative(unit *source.Unit, kernel string) error
}

// Prefetcher is implemented by streams that move Unified memory ahead of its use.
type Prefetcher interface {
	// Prefetch queues moving m to the device, or to the host.
	Prefetch(m Memory, toHost bool) error
}

// PeerCopier is implemented by devices that copy from each other without Go in
// between.
type PeerCopier interface {
	// CanCopyFrom reports whether CopyFrom works for that device at all, and
	// whether the devices reach each other's memory directly. Without direct
	// access the vendor's driver stages the copy.
	CanCopyFrom(peer Device) (can, direct bool)
	// CopyFrom queues a copy on s, a stream of the receiving device. The caller
	// makes s wait for the work that fills src.
	CopyFrom(s Stream, dst Memory, peer Device, src Memory) error
}

// StreamAllocator is implemented by streams that allocate in stream order.
type StreamAllocator interface {
	// AllocHere returns OnDevice memory that work queued on this stream from now
	// on may use.
	AllocHere(n int64) (Memory, error)
	// FreeHere gives back memory of AllocHere once the work queued so far is done.
	// Device.Free takes it too, when no work uses it any more; the stream may be
	// closed by then.
	FreeHere(m Memory) error
}

// Capturer is implemented by streams whose work can be recorded once and run many
// times.
type Capturer interface {
	// BeginCapture makes the stream record what is queued instead of running it;
	// runtime makes a stream of its own for each capture, and queues launches, copies
	// and fills. ErrUnsupported makes runtime record by itself.
	// Meanwhile Upload, Download, Sync and Record are refused
	// (ErrInvalidArgument), which leaves the capture as it was.
	BeginCapture() error
	// EndCapture returns what was recorded, ready to run. With a graph of an
	// earlier capture it updates that one and returns it: in place where only
	// arguments differ. If it fails the earlier graph is as it was.
	EndCapture(update Graph) (Graph, error)
	// DropCapture forgets what was recorded.
	DropCapture() error
}

// Graph is recorded work of one device.
type Graph interface {
	// Launch queues the whole graph on a stream of the device.
	Launch(s Stream) error
	Close() error
}

// Occupier is implemented by devices that know how kernels fill them.
type Occupier interface {
	// Occupancy returns how many groups of that many items, each with that many
	// bytes of dynamic local memory, run on one multiprocessor at a time.
	Occupancy(k Kernel, group int, local int64) (groups int, err error)
	// SuggestGroup returns the group size that keeps most items running.
	SuggestGroup(k Kernel, local int64) (group int, err error)
}

// CrossCompiler is implemented by backends whose compiler needs no device.
type CrossCompiler interface {
	// Targets lists the architectures that the compiler here knows: "sm_90",
	// "gfx90a". Without a compiler it returns an error that matches ErrUnsupported
	// and says what to install.
	Targets(ctx context.Context, cfg *Config) ([]string, error)
	// TargetFeatures are those of the devices of a target: a unit for CompileFor is
	// parsed with them.
	TargetFeatures(target string) source.Features
	// CompileFor builds a unit for a target. One that is not of Targets is
	// ErrInvalidArgument; a program that does not build gives a *BuildError.
	CompileFor(ctx context.Context, cfg *Config, target string, unit *source.Unit, options []string) (Compiled, error)
}

// Compiled is a program built for a target that need not be here.
type Compiled struct {
	Binary
	Kernels []KernelInfo // in the order of the unit; what the compiler tells of them
}

// Targeter is implemented by Compilers whose binaries run wherever the target is
// the same, whichever compiler made them: a machine without a compiler can then run
// what another one compiled.
type Targeter interface {
	// Target lists everything besides the Unit and its options that decides whether
	// the bytes of a Compile run here and mean the same: system, processor, ABI, and
	// the fixed options that are not a compiler's own. It needs no compiler, and is
	// part of a cache key as Identity is.
	Target() []string
}
