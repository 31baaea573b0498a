package runtime

// The null driver with every optional interface.

import (
	"errors"
	"fmt"

	"github.com/concord-compute/concord/runtime/driver"
)

type fullDevice struct{ *nullDevice }

func (d *fullDevice) NewStream() (driver.Stream, error) { return d.NewPriorityStream(driver.Normal) }
func (d *fullDevice) NewPriorityStream(p driver.Priority) (driver.Stream, error) {
	d.b.note(fmt.Sprintf("stream %d", p))
	return &fullStream{nullStream: nullStream{b: d.b}}, nil
}

// HostBytes has no view of the device's own memory.
func (d *fullDevice) HostBytes(m driver.Memory) ([]byte, bool) {
	if m.Kind == driver.OnDevice {
		return nil, false
	}
	return make([]byte, m.Size), true
}

func (d *fullDevice) CanCopyFrom(peer driver.Device) (can, direct bool) {
	_, ok := peer.(*fullDevice)
	return ok, false
}

func (d *fullDevice) CopyFrom(driver.Stream, driver.Memory, driver.Device, driver.Memory) error {
	d.b.note("copy from peer")
	return nil
}

func (d *fullDevice) Occupancy(_ driver.Kernel, group int, local int64) (int, error) {
	return 2048 / group, nil
}
func (d *fullDevice) SuggestGroup(driver.Kernel, int64) (int, error) { return 512, nil }

// fullStream records while it is in capture mode.
type fullStream struct {
	nullStream
	capturing bool
	graph     fullGraph
}

var (
	_ driver.PriorityStreams = (*fullDevice)(nil)
	_ driver.HostVisible     = (*fullDevice)(nil)
	_ driver.PeerCopier      = (*fullDevice)(nil)
	_ driver.Occupier        = (*fullDevice)(nil)
	_ driver.PinnedCopier    = (*fullStream)(nil)
	_ driver.Prefetcher      = (*fullStream)(nil)
	_ driver.Capturer        = (*fullStream)(nil)
	_ driver.StreamAllocator = (*fullStream)(nil)
)

func (s *fullStream) note(call string) error {
	if s.capturing && s.b.recordErr != nil {
		return s.b.recordErr()
	}
	if s.capturing {
		s.graph.calls = append(s.graph.calls, call)
		return nil
	}
	s.b.note(call)
	return s.err
}

func (s *fullStream) Copy(_, _ driver.Memory) error           { return s.note("copy") }
func (s *fullStream) Fill(driver.Memory, []byte) error        { return s.note("fill") }
func (s *fullStream) Launch(*driver.Launch) error             { return s.note("launch") }
func (s *fullStream) UploadPinned(_, _ driver.Memory) error   { return s.note("upload pinned") }
func (s *fullStream) DownloadPinned(_, _ driver.Memory) error { return s.note("download pinned") }
func (s *fullStream) Prefetch(_ driver.Memory, toHost bool) error {
	return s.note(fmt.Sprintf("prefetch %v", toHost))
}

func (s *fullStream) AllocHere(n int64) (driver.Memory, error) {
	if s.b.allocHereErr != nil {
		return driver.Memory{}, s.b.allocHereErr
	}
	s.b.note("alloc here")
	return driver.Memory{Handle: s.b.handle.Add(1) << 32, Size: n}, nil
}
func (s *fullStream) FreeHere(driver.Memory) error {
	if s.b.freeHereErr != nil {
		return s.b.freeHereErr
	}
	return s.note("free here")
}
func (s *fullStream) Wait(driver.Event) error { return s.note("wait") }

func (s *fullStream) BeginCapture() error {
	if s.b.captureErr != nil {
		return s.b.captureErr
	}
	s.capturing = true
	return nil
}

func (s *fullStream) DropCapture() error {
	s.b.note("drop capture")
	s.capturing = false
	return nil
}

func (s *fullStream) EndCapture(update driver.Graph) (driver.Graph, error) {
	if !s.capturing {
		return nil, errors.New("no capture")
	}
	s.capturing = false
	if g, ok := update.(*fullGraph); ok {
		s.b.note("update")
		g.calls = s.graph.calls
		return g, nil
	}
	s.graph.b = s.b
	return &s.graph, nil
}

type fullGraph struct {
	b     *nullBackend
	calls []string
}

func (g *fullGraph) Launch(driver.Stream) error {
	for _, c := range g.calls {
		g.b.note("graph: " + c)
	}
	return nil
}

func (g *fullGraph) Close() error { g.b.note("close graph"); return nil }
