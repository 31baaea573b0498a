package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// wires are links of members in one process, which stand for those of several.
type wires struct {
	boxes [][]chan []byte // by sender and receiver

	mu     sync.Mutex
	broken *MemberError
	gone   chan struct{} // closed when broken
}

// wire is the link of one member. breaks adds Break.
type wire struct {
	*wires
	rank   int
	closed bool
}

type breaks struct{ *wire }

func newWires(size int) *wires {
	w := &wires{boxes: make([][]chan []byte, size), gone: make(chan struct{})}
	for i := range w.boxes {
		for range size {
			w.boxes[i] = append(w.boxes[i], make(chan []byte, 1000))
		}
	}
	return w
}

func (w *wire) Exchange(ctx context.Context, to int, out []byte, from int, in []byte) error {
	if to < 0 && len(out) > 0 || from < 0 && len(in) > 0 {
		return fmt.Errorf("bytes for nobody: %w", runtime.ErrInvalidArgument)
	}
	if to >= 0 {
		w.boxes[w.rank][to] <- append([]byte(nil), out...)
	}
	if from < 0 {
		return nil
	}
	select {
	case got := <-w.boxes[from][w.rank]:
		if copy(in, got) != len(got) || len(got) != len(in) {
			return &MemberError{Rank: from, Err: fmt.Errorf("%d bytes instead of %d", len(got), len(in))}
		}
		return nil
	case <-w.gone:
		return w.broken
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *wire) Close() error {
	w.closed = true
	return nil
}

func (b breaks) Break(err *MemberError) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken == nil {
		b.broken = err
		close(b.gone)
	}
}

// joined returns groups of one member each, that links connect.
func joined(t testing.TB, o Options, devs ...*runtime.Device) []*Group {
	t.Helper()
	w := newWires(len(devs))
	groups, errs := make([]*Group, len(devs)), make([]error, len(devs))
	var wg sync.WaitGroup
	for i, dev := range devs {
		wg.Go(func() { groups[i], errs[i] = o.Join(deadline(t), dev, i, len(devs), breaks{&wire{wires: w, rank: i}}) })
	}
	wg.Wait()
	for i, g := range groups {
		group(t, g, errs[i])
	}
	return groups
}

// TestJoin checks all collectives of jobs of 1 to 8 processes: it finds messages whose lengths do not agree, and parts
// that are read before they are there.
func TestJoin(t *testing.T) {
	for size := 1; size <= 8; size++ {
		for _, by := range algorithms[1:] {
			if testing.Short() && size > 3 && (size != 5 || by != Ring) {
				continue
			}
			t.Run(fmt.Sprintf("%d/%v", size, by), func(t *testing.T) {
				dev := open(t, "cpu:0")
				devs := make([]*runtime.Device, size)
				for i := range devs {
					devs[i] = dev
				}
				groups := joined(t, Options{Algorithm: by}, devs...)
				exercise(t, groups, []int{0, 1, 5, 97})
				assert.Equal(t, Stats{Link: groups[0].Stats().Link}, groups[0].Stats())
				assert.Equal(t, size > 1, groups[0].Stats().Link > 0)
			})
		}
	}
}

// TestJoinPieces has transfers of several messages, whose lengths and numbers differ among members.
func TestJoinPieces(t *testing.T) {
	const piece = linkPiece / 4
	for _, names := range [][]string{{"cpu:0", "cpu:0", "cpu:0"}, {"cpu:0", "opencl:0"}, {"opencl:0", "sim-cuda:0"}} {
		t.Run(fmt.Sprint(names), func(t *testing.T) {
			devs := named(t, names...)
			for _, by := range algorithms[1:] {
				groups := joined(t, Options{Algorithm: by}, devs...)
				lengths := []int{len(devs)*2*piece + 1, 3*piece + 1000}
				if names[1] != "cpu:0" {
					lengths = []int{2*piece + 1}
				}
				for _, n := range lengths {
					c := &trial[float32]{deadline(t), groups, by == Ring, len(devs), n}
					got := c.run(t, func(rank int) []float32 { return numbers[float32](5, rank, n) }, n,
						func(int) (Part, Part) { return Part{0, n}, Part{0, n} },
						func(m *Member, s *runtime.Stream, dst, src *runtime.Buffer) error {
							return m.AllReduce(c.ctx, s, Sum, dst, src)
						})
					data := make([][]float32, len(devs))
					for rank := range data {
						data[rank] = numbers[float32](5, rank, n)
					}
					c.check(t, Sum, got[0], func(i int) (xs []float32) {
						for rank := range data {
							xs = append(xs, data[rank][i])
						}
						return xs
					}, "all-reduce")
					for rank := range got {
						require.True(t, equal(got[0], got[rank]))
					}
				}
			}
		})
	}
}

// TestJoinDevices checks collectives of processes on devices whose memory the host does not see.
func TestJoinDevices(t *testing.T) {
	for _, names := range [][]string{{"opencl:0", "cpu:0", "opencl:0"}, {"sim-cuda:0", "cpu:0"}} {
		t.Run(fmt.Sprint(names), func(t *testing.T) {
			groups := joined(t, Options{}, named(t, names...)...)
			(&trial[float32]{deadline(t), groups, false, len(names), 301}).all(t, Sum, Mean)
			(&trial[runtime.BFloat16]{deadline(t), groups, true, len(names), 64}).all(t, Sum)
		})
	}
}

func TestJoinRefused(t *testing.T) {
	dev := open(t, "cpu:0")
	for _, size := range []int{2, 3, 5} {
		devs := make([]*runtime.Device, size)
		for i := range devs {
			devs[i] = dev
		}
		refuses(t, joined(t, Options{}, devs...))
	}
	refusesTransfer(t, joined(t, Options{}, dev, dev))
}

// TestJoinFails has one member fail, or not come: the others name it.
func TestJoinFails(t *testing.T) {
	dev := open(t, "cpu:0")
	groups := joined(t, Options{Timeout: soon}, dev, dev, dev, dev)
	errs := do(groups, func(m *Member) error {
		if m.Rank() == 1 {
			return m.Fail(fmt.Errorf("no data: %w", runtime.ErrDeviceLost))
		}
		return queued(deadline(t), m, 1000)
	})
	agreed(t, errs, 1, runtime.ErrDeviceLost)
	agreed(t, do(groups, func(m *Member) error { return m.Barrier(deadline(t), nil) }), 1, runtime.ErrDeviceLost)

	groups = joined(t, Options{Timeout: soon}, dev, dev)
	start := time.Now()
	err := groups[0].Members()[0].Barrier(deadline(t), nil)
	agreed(t, []error{err}, 1, driver.ErrTimeout)
	assert.Less(t, time.Since(start), 10*soon)

	// A stream that has failed before is an error of all, with its text.
	groups = joined(t, Options{}, dev, dev, dev)
	misbehave(t, groups[2].Members()[0], groups[2].Members()[0].Stream(), func() error { return fmt.Errorf("planted") })
	errs = do(groups, func(m *Member) error {
		_ = m.Stream().Sync(t.Context())
		return queued(deadline(t), m, 1000)
	})
	agreed(t, errs, 2, runtime.ErrLaunch)
	assert.Contains(t, errs[0].Error(), "planted")
	require.NoError(t, groups[2].Members()[0].Stream().Reset())
	for _, err := range do(groups, func(m *Member) error { return queued(deadline(t), m, 1000) }) {
		require.NoError(t, err)
	}
}

// TestJoinClosed closes the link whatever happens, and ends a member that waits.
func TestJoinClosed(t *testing.T) {
	dev := open(t, "cpu:0")
	link := &wire{wires: newWires(2)}
	_, err := Join(t.Context(), dev, 2, 2, link)
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	assert.True(t, link.closed)
	link = &wire{wires: newWires(2)}
	_, err = Options{Timeout: soon}.Join(t.Context(), dev, 0, 2, link)
	agreed(t, []error{err}, 1, driver.ErrTimeout)
	assert.True(t, link.closed)

	groups := joined(t, Options{}, dev, dev)
	waits := make(chan error)
	go func() { waits <- groups[0].Members()[0].Barrier(context.Background(), nil) }()
	time.Sleep(20 * time.Millisecond)
	require.NoError(t, groups[0].Close())
	assert.ErrorIs(t, <-waits, runtime.ErrClosed)
}

// TestRemoteError finds errors that lose their kind or their text between processes, and numbers that end the program.
func TestRemoteError(t *testing.T) {
	for _, kind := range []error{runtime.ErrDeviceLost, driver.ErrTimeout, runtime.ErrInvalidArgument, context.Canceled} {
		n := KindOf(fmt.Errorf("there: %w", kind))
		require.Positive(t, n)
		require.Less(t, n, 256)
		err := RemoteError(n, "there")
		require.ErrorIs(t, err, kind)
		require.EqualError(t, err, "there")
	}
	for _, n := range []int{KindOf(errors.New("another one")), KindOf(nil), -1, 255} {
		require.NoError(t, errors.Unwrap(RemoteError(n, "there")), n)
	}
}
