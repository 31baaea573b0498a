package driver

// Optional interfaces, found by type assertion. Where one is absent, generic code in runtime
// replaces it, or the operation is ErrUnsupported.

import (
	"context"

	"github.com/concord-compute/concord/runtime/choice"
	"github.com/concord-compute/concord/source"
)

// Priority says which of two streams of a device goes first when both have work.
type Priority int

// The priorities. A device maps them to its own; NewStream uses Normal.
const (
	Low    Priority = -1
	Normal Priority = 0
	High   Priority = 1
)

// Describer is implemented by backends that have more than a name. Describe touches no driver and
// returns the same at every call; the caller does not change the result.
type Describer interface {
	Describe() Description
}

// Describe returns a backend's description. If the backend states no Title, it is the name.
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

// LibraryLister is implemented by devices that run on libraries of a vendor.
type LibraryLister interface {
	// Libraries lists the libraries that are open for the device, with those that it has opened since, such as
	// the vendor's BLAS. It may be called from any goroutine. After Close it lists only those that the backend
	// has opened.
	Libraries() []Library
}

// PriorityStreams is implemented by devices whose streams have priorities.
type PriorityStreams interface {
	NewPriorityStream(p Priority) (Stream, error)
}

// HostVisible is implemented by devices with memory that the host can read and
// write in place: Pinned and Unified, on a CPU all of it.
type HostVisible interface {
	// HostBytes returns the memory as the host sees it, and whether the host can access it. The
	// slice is valid until the memory is freed. Writing it while the device uses it has undefined
	// results.
	HostBytes(m Memory) ([]byte, bool)
}

// Abandoner is implemented by devices that can stop their work without a wait.
type Abandoner interface {
	// Abandon makes work that is queued or runs end soon. It does not wait, and frees nothing. Calls
	// under way may go on; no other follows.
	Abandon()
}

// HostWrapper is implemented by devices that use memory of the host in place. For the vendor's memory
// see NativeHandles.
type HostWrapper interface {
	// WrapHost makes memory that the program owns, outside Go's heap, usable on the device. Free of
	// the result makes the device forget the memory, which stays the program's. If writable is true and the
	// device finds that the memory cannot be written, the error is ErrInvalidArgument.
	WrapHost(memory []byte, writable bool) (Memory, error)
}

// PinnedCopier is implemented by streams that copy between the device and pinned memory without a
// wait of the host. Copies between two pinned ranges, and all copies of pinned memory on streams
// that do not implement it, go through Stream.Copy.
type PinnedCopier interface {
	// UploadPinned queues a copy. src is Pinned memory and must stay unchanged until the copy is
	// done.
	UploadPinned(dst, src Memory) error
	// DownloadPinned queues a copy to Pinned memory, which holds the data when the copy is done.
	DownloadPinned(dst, src Memory) error
}

// Rerecorder is implemented by streams that record an event again without making a new one.
type Rerecorder interface {
	// Rerecord moves an event of Record of this device, which is open, to the present end of the
	// queue. Work that waits for its earlier point still waits for that one.
	Rerecord(e Event) error
}

// KnownFailure is implemented by streams whose Err calls the driver.
type KnownFailure interface {
	// KnownErr is Err without a call to the driver: the error of an earlier call, if any. It is
	// cheap enough to come before every other call.
	KnownErr() error
}

// NoNative is implemented by devices that can say why a native implementation is missing.
type NoNative interface {
	// WhyNotNative returns why Natives.Native returns false, or nil if the device never has a
	// native implementation of that kernel.
	WhyNotNative(unit *source.Unit, kernel string) error
}

// Prefetcher is implemented by streams that move Unified memory ahead of its use.
type Prefetcher interface {
	// Prefetch queues moving m to the device, or to the host.
	Prefetch(m Memory, toHost bool) error
}

// PeerCopier is implemented by devices that copy from each other without passing the data through
// Go.
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
	// AllocHere returns OnDevice memory that later work on this stream may use.
	AllocHere(n int64) (Memory, error)
	// FreeHere gives back memory of AllocHere once the work queued so far is done. Device.Free must
	// accept that memory too, when no work uses it any more; the stream may be closed by then.
	FreeHere(m Memory) error
}

// Capturer is implemented by streams whose work can be recorded once and run many
// times.
type Capturer interface {
	// BeginCapture makes the stream record the following operations instead of running them.
	// Package runtime has separate streams for captures, and queues launches, copies and fills,
	// one right after the other. If it returns ErrUnsupported, runtime queues these at each launch.
	// During the capture Upload, Download, Sync and Record are refused (ErrInvalidArgument), and
	// the capture goes on.
	BeginCapture() error
	// EndCapture returns the recording, ready to run. Given a graph of an earlier capture it
	// updates and returns that graph, in place if only arguments differ. If it fails the earlier
	// graph is unchanged.
	EndCapture(update Graph) (Graph, error)
	// DropCapture ends the capture and drops the recording.
	DropCapture() error
}

// Graph is recorded work of one device.
type Graph interface {
	// Launch queues the whole graph on a stream of the device.
	Launch(s Stream) error
	Close() error
}

// MultiplyAdder is implemented by devices that measure their peak rate of multiply-adds themselves. Elsewhere a
// compiled kernel measures it.
type MultiplyAdder interface {
	// MultiplyAdds returns the floating-point operations of single precision per nanosecond in
	// registers, on the whole device, of which a multiply-add is two. It blocks for some milliseconds. ok is
	// false if the device cannot measure that.
	MultiplyAdds() (gflops float64, ok bool)
}

// Occupier is implemented by devices that can compute the occupancy of kernels.
type Occupier interface {
	// Occupancy returns how many groups of that many items, each with that many
	// bytes of dynamic local memory, run on one compute unit at a time.
	Occupancy(k Kernel, group int, local int64) (groups int, err error)
	// SuggestGroup returns the group size that keeps most items running.
	SuggestGroup(k Kernel, local int64) (group int, err error)
}

// Marker is implemented by backends whose vendor's profilers can show named parts of a program.
type Marker interface {
	// Mark begins a part of that name and returns the function that ends it, once, on any goroutine. It returns nil if
	// the vendor's library for this is not installed. It is safe for concurrent use, and parts may overlap.
	Mark(name string) (end func())
}

// CrossCompiler is implemented by backends whose compiler needs no device.
type CrossCompiler interface {
	// Targets lists the architectures that the installed compiler knows: "sm_90", "gfx90a". Without
	// a compiler it returns an error that matches ErrUnsupported and says which software to
	// install.
	Targets(ctx context.Context, cfg *Config) ([]string, error)
	// TargetFeatures returns the features of a target's devices. Units for CompileFor are parsed
	// with them.
	TargetFeatures(target string) source.Features
	// CompileFor builds a unit for a target. A target that Targets does not list is
	// ErrInvalidArgument; a program that does not build is a *BuildError.
	CompileFor(ctx context.Context, cfg *Config, target string, unit *source.Unit, options []string) (Compiled, error)
}

// Compiled is a program built for a target. The machine need not have a device of that target.
type Compiled struct {
	Binary
	Kernels []KernelInfo // in the order of the unit, as far as the compiler describes them
}

// BatchCompiler is implemented by Compilers that build several units in less time than one by one.
type BatchCompiler interface {
	Compiler
	// CompileAll is Compile for several units with the same options. It returns a binary or an error
	// for each; the log of a binary may be that of units that were built together. A unit that does
	// not build leaves the results of the others as they are.
	CompileAll(ctx context.Context, units []*source.Unit, options []string) ([]Binary, []error)
}

// Targeter is implemented by Compilers whose binaries run wherever the target is the same,
// regardless of the compiler that made them: a machine without a compiler can then run binaries of
// another one.
type Targeter interface {
	// Target lists everything besides the Unit and its options that decides whether the bytes of a Compile run here
	// with the same results. That is system, processor, ABI, and the fixed options that are not specific to a
	// compiler. It needs no compiler, and is part of a cache key like Identity.
	Target() []string
}

// Tunable is implemented by devices on which some numbers were chosen by measuring.
type Tunable interface {
	// Choices returns the choices that the device reads, the same at every call.
	Choices() []*choice.Choice
	// Choose gives the device other values, nil the defaults, for all work that begins after it returns. It may be
	// called from any goroutine, while work runs.
	Choose(s *choice.Set)
	// TunedFor names what the best values depend on, apart from the driver: a processor's family, instructions, caches
	// and threads, or a card's model. It is one line, the same at every call and in every process.
	TunedFor() string
}

// PipelineKeeper is implemented by devices whose drivers compile a kernel further when it is first launched, and let
// the result be kept for later processes.
type PipelineKeeper interface {
	// PipelinesName is the name of the file in which the result is kept, which is another one for other devices and
	// drivers. It is "" if there is none. It may be called from any goroutine.
	PipelinesName() string
	// UsePipelines gives the device, before its first launch, what Pipelines returned in an earlier process. The error is
	// ErrFormat if the data are of another device or driver. The caller keeps the data.
	UsePipelines(data []byte) error
	// Pipelines returns what was compiled so far, with what UsePipelines gave, or nothing if that is all. It may be called
	// from any goroutine.
	Pipelines() ([]byte, error)
}
