package ann

// Moving: an index on the first device of a Runner that can, with a copy in the memory of the host.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/runtime/driver"
)

// Moving is an index of kind flat, gpu, ivf or pq that survives its device: what [New], [Open] and [Read] return where
// Options.Runner is set. Each call is a unit of work of the Runner. If the device fails or is lost, the index is made
// again from the host's copy, by the next attempt or on the next device, as the policy allows, and the call is done
// there, once: a search returns one result, and vectors are added once or, where the call returns an error, not at all.
//
// The copy is the file that was opened, which has to stay as Open says, or else the index as WriteTo writes it; and
// what has changed since. So the index is in memory twice if it is not of a file. Once the changes take more memory
// than the index did, they become part of the copy, which then is in memory; that Add, Remove or Update takes longer.
//
// With several goroutines on devices of which one fails now and then, each move makes the index anew. Searches run side
// by side. They wait for changes, and for the index to be made. A wait for changes is not part of an attempt, which
// Failover.Timeout limits. Close it before the Runner.
type Moving struct {
	runner   *cluster.Runner
	empty    func(dev *runtime.Device) (contents, error)
	progress func(Progress)
	close    func() // ends the mapping of the file

	// turn is held around the units of the Runner, by all but changes as readers: a device is given up for what it does
	// in an attempt, and not for what that waits for.
	turn sync.RWMutex

	mu     sync.RWMutex // searches are readers
	start  *image       // the copy, without changes; nil: an empty index
	mapped bool         // start is the file
	kept   int          // bytes of start
	edits  []edit       // since then
	bytes  int          // of them
	on     *runtime.Device
	ix     contents // there; nil before the first call, and after a failure
	last   Info
	closed bool
}

// edit is a change: an Add has ids and vectors, a Remove ids, an Update one id and its vector.
type edit struct {
	update  bool
	ids     []int64
	vectors []float32
}

func (e edit) apply(ctx context.Context, ix contents) error {
	switch {
	case e.update:
		return Update(ctx, ix, e.ids[0], e.vectors)
	case e.vectors != nil:
		return ix.Add(ctx, e.ids, e.vectors)
	}
	return ix.Remove(ctx, e.ids)
}

// moving makes an index, of an image unless that is nil. release ends the image's file; if it is nil there is none.
func (o Options) moving(ctx context.Context, kind string, dim int, metric Metric, m *image,
	release func()) (*Moving, error) {
	x := &Moving{runner: o.Runner, start: m, mapped: release != nil, close: func() {}, progress: o.Progress}
	o.Progress = nil // until the index is made, which is no Add of the program's
	if release != nil {
		x.close = release
	}
	var err error
	switch {
	case o.Device != "" || o.Session != nil || o.Weights != nil:
		err = fmt.Errorf("ann: a device, a session or weights beside a runner: %w", runtime.ErrInvalidArgument)
	case !kinds[kind].device:
		err = fmt.Errorf("ann: a runner for an index of kind %s, which is on the CPU: %w", kind, runtime.ErrUnsupported)
	default:
		if x.empty = func(dev *runtime.Device) (contents, error) {
			return o.on([]*runtime.Device{dev}, kind, dim, metric)
		}; m != nil {
			x.kept = len(m.vectors)
		}
		err = x.with(ctx, "open", func(context.Context, contents) error { return nil })
	}
	if err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

// with has the Runner call f with the index. The context is that of f.
func (x *Moving) with(ctx context.Context, op string, f func(ctx context.Context, ix contents) error) error {
	if err := reading(ctx, &x.turn); err != nil {
		return err
	}
	defer x.turn.RUnlock()
	return x.runner.Run(ctx, "ann "+op, func(ctx context.Context, dev *runtime.Device) error {
		for {
			if err := reading(ctx, &x.mu); err != nil {
				return err
			}
			if ix := x.ix; ix != nil && x.on == dev && !x.closed {
				err := func() error {
					defer x.mu.RUnlock()
					return f(ctx, ix)
				}()
				if driver.OfDevice(err) {
					x.mu.Lock()
					defer x.mu.Unlock()
					if x.ix == ix {
						x.drop()
					}
				}
				return err
			}
			x.mu.RUnlock()
			if err := x.alone(ctx, dev, func(contents) error { return nil }); err != nil {
				return err
			}
		}
	})
}

// alone makes the index on a device if it is not there, and calls f without any other call meanwhile.
func (x *Moving) alone(ctx context.Context, dev *runtime.Device, f func(ix contents) error) (err error) {
	if err := locked(ctx, &x.mu, x.mu.TryLock); err != nil {
		return err
	}
	defer x.mu.Unlock()
	if x.closed {
		return fmt.Errorf("ann: %w", runtime.ErrClosed)
	}
	whole := false
	defer func() { // also if a function of the program ends the goroutine
		if !whole || driver.OfDevice(err) {
			x.drop()
		}
	}()
	if x.ix == nil || x.on != dev {
		x.drop()
		if x.ix, err = x.made(ctx, dev); err != nil {
			return err
		}
		x.on, x.last = dev, x.ix.Info()
	}
	err = f(x.ix)
	whole = true
	return err
}

// drop closes the index, which will be made again. What it says is why it failed.
func (x *Moving) drop() {
	if x.ix != nil {
		_ = x.ix.Close()
	}
	x.ix, x.on = nil, nil
}

// made makes the index of the copy.
func (x *Moving) made(ctx context.Context, dev *runtime.Device) (ix contents, err error) {
	if x.start == nil {
		ix, err = x.empty(dev)
	} else {
		var keep func() // which Close ends
		if x.mapped {
			keep = func() {}
		}
		ix, err = x.start.made(ctx, Options{}, keep, func(o Options) (contents, error) {
			return o.on([]*runtime.Device{dev}, x.start.Kind, x.start.Dim, x.start.metric)
		})
	}
	if err != nil {
		return nil, err
	}
	for _, e := range x.edits {
		if err := e.apply(ctx, ix); err != nil {
			return nil, errors.Join(err, ix.Close())
		}
	}
	ix.base().progress = x.progress
	return ix, nil
}

// change changes the index and the copy.
func (x *Moving) change(ctx context.Context, op string, e edit) error {
	if err := locked(ctx, &x.turn, x.turn.TryLock); err != nil {
		return err
	}
	defer x.turn.Unlock()
	return x.runner.Run(ctx, "ann "+op, func(ctx context.Context, dev *runtime.Device) error {
		return x.alone(ctx, dev, func(ix contents) error {
			if err := e.apply(ctx, ix); err != nil || len(e.ids) == 0 {
				return err
			}
			x.last = ix.Info()
			e.ids = slices.Clone(e.ids)
			x.edits = append(x.edits, e)
			if x.bytes += 8*len(e.ids) + 4*len(e.vectors); x.bytes > x.kept {
				x.copied(ix)
			}
			return nil
		})
	})
}

// copied makes the index, with its changes, the copy. If that fails these stay as they are.
func (x *Moving) copied(ix contents) {
	var b bytes.Buffer
	if _, err := ix.WriteTo(&b); err != nil {
		return
	}
	if m, err := readImage(b.Bytes()); err == nil {
		x.start, x.mapped, x.kept, x.edits, x.bytes = m, false, b.Len(), nil, 0
	}
}

// Add implements [Index].
func (x *Moving) Add(ctx context.Context, ids []int64, vectors []float32) error {
	return x.change(ctx, "add", edit{ids: ids, vectors: append([]float32{}, vectors...)}) // not nil
}

// Remove implements [Index].
func (x *Moving) Remove(ctx context.Context, ids []int64) error {
	return x.change(ctx, "remove", edit{ids: ids})
}

// Update replaces the vector of an id. An id that the index does not have is [runtime.ErrInvalidArgument].
func (x *Moving) Update(ctx context.Context, id int64, vector []float32) error {
	return x.change(ctx, "update", edit{true, []int64{id}, slices.Clone(vector)})
}

// Search implements [Index].
func (x *Moving) Search(ctx context.Context, dst []Result, query []float32, k int, filter *Filter) ([]Result, error) {
	all := dst
	err := x.with(ctx, "search", func(ctx context.Context, ix contents) (err error) {
		all, err = ix.Search(ctx, dst, query, k, filter)
		return err
	})
	return all, err
}

// SearchBatch implements [Index].
func (x *Moving) SearchBatch(ctx context.Context, queries []float32, k int, filter *Filter) ([][]Result, error) {
	var lists [][]Result
	err := x.with(ctx, "search", func(ctx context.Context, ix contents) (err error) {
		lists, err = ix.SearchBatch(ctx, queries, k, filter)
		return err
	})
	return lists, err
}

// Exact appends what Search would find that compares the query with every vector that the filter admits.
func (x *Moving) Exact(ctx context.Context, dst []Result, query []float32, k int, filter *Filter) ([]Result, error) {
	all := dst
	err := x.with(ctx, "exact search", func(ctx context.Context, ix contents) error {
		found, err := Exact(ctx, ix, query, k, filter)
		if err == nil {
			all = append(dst, found...)
		}
		return err
	})
	return all, err
}

// Get returns a vector as it is stored, in numbers. An id that the index does not have is [runtime.ErrInvalidArgument].
func (x *Moving) Get(ctx context.Context, id int64) (vector []float32, err error) {
	err = x.with(ctx, "get", func(ctx context.Context, ix contents) (err error) {
		vector, err = ix.base().get(ctx, id)
		return err
	})
	return vector, err
}

// Compact frees the memory of removed vectors, as Compact of the index's kind does.
func (x *Moving) Compact(ctx context.Context) error {
	return x.with(ctx, "compact", func(ctx context.Context, ix contents) error { return ix.Compact(ctx) })
}

// WriteTo implements [Index]. The file is in the host's memory before it is written.
func (x *Moving) WriteTo(to io.Writer) (int64, error) {
	var b bytes.Buffer
	err := x.with(context.Background(), "write", func(_ context.Context, ix contents) error {
		b.Reset()
		_, err := ix.WriteTo(&b)
		return err
	})
	if err != nil {
		return 0, err
	}
	return b.WriteTo(to)
}

// Info implements [Index]. Device is that of the last call, and empty if it has failed. Fallback says why that is not
// the first of the Runner.
func (x *Moving) Info() Info {
	x.mu.RLock()
	defer x.mu.RUnlock()
	i := x.last
	if x.ix == nil {
		i.Device, i.DeviceMemory = "", 0
		return i
	}
	i = x.ix.Info()
	if d := x.runner.Devices()[0]; i.Device != d.Name && d.LastError != nil {
		i.Fallback = fmt.Sprintf("%s has failed: %v", d.Name, d.LastError)
	}
	return i
}

// Close implements [Index].
func (x *Moving) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil
	}
	x.closed = true
	var err error
	if x.ix != nil {
		if err = x.ix.Close(); errors.Is(err, runtime.ErrDeviceLost) { // with which nothing is left to be closed
			err = nil
		}
	}
	x.ix, x.on, x.edits, x.start = nil, nil, nil, nil
	x.close()
	return err
}
