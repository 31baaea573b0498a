package runtime

// Graphs for devices whose driver has none: a stream that keeps what it is given,
// and gives it to other streams again.

import (
	"context"
	"slices"

	"github.com/concord-compute/concord/runtime/driver"
)

// recorder is a driver.Stream that records. What it is given is checked and packed.
type recorder struct{ ops []recorded }

// recorded is one operation: a launch, else a fill if there is a pattern, else a
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

// Launch keeps a copy of a launch: l is the caller's again afterwards.
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

// UploadPinned and DownloadPinned are copies; which kind is seen when they run.
func (r *recorder) UploadPinned(dst, src driver.Memory) error   { return r.Copy(dst, src) }
func (r *recorder) DownloadPinned(dst, src driver.Memory) error { return r.Copy(dst, src) }

func (r *recorder) Fill(dst driver.Memory, pattern []byte) error {
	r.ops = append(r.ops, recorded{dst: dst, pattern: slices.Clone(pattern)})
	return nil
}

// What follows is refused before it comes here.

func (r *recorder) Upload(context.Context, driver.Memory, []byte) error   { return ErrInvalidArgument }
func (r *recorder) Download(context.Context, []byte, driver.Memory) error { return ErrInvalidArgument }
func (r *recorder) Record(bool) (driver.Event, error)                     { return nil, ErrInvalidArgument }
func (r *recorder) Wait(driver.Event) error                               { return ErrInvalidArgument }
func (r *recorder) Sync(context.Context) error                            { return ErrInvalidArgument }
func (r *recorder) Err() error                                            { return nil }
func (r *recorder) Close() error                                          { return nil }

func (r *recorder) BeginCapture() error { return nil }
func (r *recorder) DropCapture() error  { return nil }

// EndCapture returns the operations as a graph; an earlier one gets them instead
// of its own.
func (r *recorder) EndCapture(update driver.Graph) (driver.Graph, error) {
	g, ok := update.(*softGraph)
	if !ok {
		g = new(softGraph)
	}
	g.ops, r.ops = r.ops, nil
	return g, nil
}

// softGraph is recorded operations. Launching allocates nothing.
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
