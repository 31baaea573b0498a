package rates

// What the host pays: launches one by one, as a graph, and transfers.

import (
	"context"
	"fmt"
	"time"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/parity"
)

// inGraph is the number of launches of a graph.
const inGraph = 100

// launches are of a kernel with next to no work. ready makes of one launch what is measured.
func launches(sizes) (list []job) {
	all := map[string]any{"n": inGraph}
	for _, l := range []struct {
		name, call string
		args       map[string]any
		ready      func(p *place, w *work) (*work, error)
	}{
		{"launch queued", "launch_queued", nil, func(p *place, w *work) (*work, error) {
			w.sample = func(ctx context.Context, n int) (float64, error) { return p.queued(ctx, w, n) }
			return w, nil
		}},
		{"launch and wait", "launch_and_wait", nil, func(_ *place, w *work) (*work, error) {
			return &work{run: func(ctx context.Context) error {
				if err := w.run(ctx); err != nil {
					return err
				}
				return w.stream.Sync(ctx)
			}}, nil
		}},
		{fmt.Sprintf("%d launches", inGraph), "launches", all, func(_ *place, w *work) (*work, error) {
			return &work{stream: w.stream, run: func(ctx context.Context) error { return repeat(ctx, w, inGraph) }}, nil
		}},
		{fmt.Sprintf("graph of %d launches", inGraph), "graph", all, func(p *place, w *work) (*work, error) {
			stream := w.stream
			g, err := stream.Capture(func(s *runtime.Stream) error {
				w.stream = s
				return repeat(context.Background(), w, inGraph)
			})
			if err != nil {
				return nil, err
			}
			p.keep(g)
			return &work{stream: stream, run: func(context.Context) error { return g.Launch(stream) }}, nil
		}},
	} {
		list = append(list, job{area: "launches", name: l.name, unit: micros, count: 1, roof: noRoof,
			call: l.call, args: l.args,
			setUp: func(ctx context.Context, p *place) (*work, error) {
				w, err := p.small(ctx)
				if err != nil {
					return nil, err
				}
				return l.ready(p, w)
			}})
	}
	return list
}

// small is a launch with next to no work, on the work's stream.
func (p *place) small(ctx context.Context) (*work, error) {
	k, err := p.kernel(ctx, "saxpy", "saxpy", runtime.Fastest)
	if err != nil {
		return nil, err
	}
	grid, err := parity.Grid(k, 1)
	if err != nil {
		return nil, err
	}
	b, err := p.buffers(ctx, runtime.F32, 1, 1)
	w := &work{stream: p.dev.Stream()}
	w.run = func(context.Context) error { return w.stream.Launch(k, grid, float32(0), b[0], b[1], uint64(1)) }
	return w, err
}

// repeat runs work n times.
func repeat(ctx context.Context, w *work, n int) error {
	for range n {
		if err := w.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// queued returns the host's nanoseconds for queueing a run. The queue is emptied now and then, outside of the time, so
// that it does not fill up.
func (p *place) queued(ctx context.Context, w *work, n int) (float64, error) {
	const room = 200
	var took time.Duration
	for left := n; left > 0; left -= room {
		start := time.Now()
		err := repeat(ctx, w, min(left, room))
		took += time.Since(start)
		if err == nil {
			err = w.stream.Sync(ctx)
		}
		if err != nil {
			return 0, err
		}
	}
	return float64(took.Nanoseconds()) / float64(n), nil
}

func transfers(s sizes) (list []job) {
	n := s.transfer
	for _, t := range []struct {
		name       string
		down, host bool
	}{
		{"upload", false, false}, {"download", true, false}, {"upload pinned", false, true}, {"download pinned", true, true},
	} {
		list = append(list, job{area: "transfers", name: t.name + " of " + size(n), unit: gigabytes,
			bytes: float64(n), roof: noRoof,
			call: "transfer", args: map[string]any{"n": n, "down": t.down, "pinned": t.host},
			setUp: func(ctx context.Context, p *place) (*work, error) {
				if t.host {
					return p.pinned(ctx, n, t.down)
				}
				return p.transfer(ctx, n, t.down)
			}})
	}
	return list
}

// transfer copies between the device and memory of Go.
func (p *place) transfer(ctx context.Context, n int, down bool) (*work, error) {
	b, err := p.buffer(ctx, runtime.U8, n)
	if err != nil {
		return nil, err
	}
	stream, data := p.dev.Stream(), make([]byte, n)
	for i := range data {
		data[i] = byte(i)
	}
	return &work{run: func(ctx context.Context) error {
		if down {
			return stream.Read(ctx, b, 0, data)
		}
		if err := stream.Write(ctx, b, 0, data); err != nil {
			return err
		}
		return stream.Sync(ctx) // a write may return before the device has it
	}}, nil
}

// pinned copies between the device and memory that is pinned for it.
func (p *place) pinned(ctx context.Context, n int, down bool) (*work, error) {
	host, err := p.dev.AllocKind(runtime.Pinned, runtime.U8, n)
	if err != nil {
		return nil, err
	}
	p.keep(host)
	if err := p.fill(ctx, host); err != nil {
		return nil, err
	}
	b, err := p.buffer(ctx, runtime.U8, n)
	if err != nil {
		return nil, err
	}
	from, to := host, b
	if down {
		from, to = b, host
	}
	stream := p.dev.Stream()
	return &work{stream: stream, run: func(context.Context) error { return stream.Copy(to, from) }}, nil
}
