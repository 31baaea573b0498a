package runtime

// Graphs for devices whose driver has none: a stream that keeps its operations and queues them on
// other streams later.

import (
	"context"
	"slices"

	"github.com/concord-compute/concord/runtime/driver"
)

// recorder is a driver.Stream that records operations, which are already checked and packed.
type recorder struct{ ops []recorded }

// recorded is one operation: a launch if launch is set, a fill if pattern is set, and otherwise a
// copy.
type recorded struct {
	launch   *driver.Launch
	dst, src driver.Memory
	pattern  []byte
}

var (
	_ driver.Stream       = (*recorder)(nil)
	_ driver.Capturer     = (*recorder)(nil)
	_ driver.PinnedCopier = (*recorder)(nil)
)

// Launch keeps a copy of the launch, since l belongs to the caller.
func (r *recorder) Launch(l *driver.Launch) error {
	kept := *l
	kept.Args, kept.Data = slices.Clone(l.Args), slices.Clone(l.Data)
	r.ops = append(r.ops, recorded{launch: &kept})
	return nil
}

func (r *recorder) Copy(dst, src driver.Memory) error {
	r.ops = append(r.ops, recorded{dst: dst, src: src})
	return nil
}

// UploadPinned and DownloadPinned record copies; the kinds of memory decide when they run.
func (r *recorder) UploadPinned(dst, src driver.Memory) error   { return r.Copy(dst, src) }
func (r *recorder) DownloadPinned(dst, src driver.Memory) error { return r.Copy(dst, src) }

func (r *recorder) Fill(dst driver.Memory, pattern []byte) error {
	r.ops = append(r.ops, recorded{dst: dst, pattern: slices.Clone(pattern)})
	return nil
}

// Stream refuses the following calls before they reach the recorder.

func (r *recorder) Upload(context.Context, driver.Memory, []byte) error   { return ErrInvalidArgument }
func (r *recorder) Download(context.Context, []byte, driver.Memory) error { return ErrInvalidArgument }
func (r *recorder) Record(bool) (driver.Event, error)                     { return nil, ErrInvalidArgument }
func (r *recorder) Wait(driver.Event) error                               { return ErrInvalidArgument }
func (r *recorder) Sync(context.Context) error                            { return ErrInvalidArgument }
func (r *recorder) Err() error                                            { return nil }
func (r *recorder) Close() error                                          { return nil }

func (r *recorder) BeginCapture() error { return nil }
func (r *recorder) DropCapture() error  { return nil }

// EndCapture returns the operations as a graph; with update it replaces the operations of that
// graph.
func (r *recorder) EndCapture(update driver.Graph) (driver.Graph, error) {
	g, ok := update.(*softGraph)
	if !ok {
		g = new(softGraph)
	}
	g.ops, r.ops = r.ops, nil
	return g, nil
}

// softGraph is a list of recorded operations. Launching it allocates nothing.
type softGraph struct{ ops []recorded }

func (g *softGraph) Launch(s driver.Stream) error {
	for i := range g.ops {
		if err := g.ops[i].queue(s); err != nil {
			return err
		}
	}
	return nil
}

func (o *recorded) queue(s driver.Stream) error {
	switch {
	case o.launch != nil:
		return s.Launch(o.launch)
	case o.pattern != nil:
		return s.Fill(o.dst, o.pattern)
	}
	return copyOn(s, o.dst, o.src)
}

func (g *softGraph) Close() error { return nil }
