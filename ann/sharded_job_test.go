package ann

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/runtime/driver"
)

// wires are links of members in one process, which stand for those of several.
type wires [][]chan []byte // by sender and receiver

// wire is the link of one member.
type wire struct {
	wires
	rank int
}

func (w wire) Exchange(ctx context.Context, to int, out []byte, from int, in []byte) error {
	if to >= 0 {
		w.wires[w.rank][to] <- append([]byte(nil), out...)
	}
	if from < 0 {
		return nil
	}
	select {
	case got := <-w.wires[from][w.rank]:
		if copy(in, got) != len(got) || len(got) != len(in) {
			return fmt.Errorf("%d bytes instead of %d", len(got), len(in))
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w wire) Close() error { return nil }

// job is an index in shards of several processes.
type job struct {
	groups []*cluster.Group
	shards []*Sharded
}

// do calls f for each process at once, and returns the errors by rank.
func (j *job) do(f func(rank int) error) []error {
	errs := make([]error, len(j.groups))
	var wg sync.WaitGroup
	for rank := range errs {
		wg.Go(func() { errs[rank] = f(rank) })
	}
	wg.Wait()
	return errs
}

// all calls f for the index of each process at once, and demands that it succeeds.
func (j *job) all(t testing.TB, f func(s *Sharded) error) {
	t.Helper()
	for rank, err := range j.do(func(rank int) error { return f(j.shards[rank]) }) {
		require.NoError(t, err, "rank %d", rank)
	}
}

// ranks joins processes that are goroutines here, with a device each.
func ranks(t testing.TB, timeout time.Duration, devs ...*runtime.Device) *job {
	t.Helper()
	n := len(devs)
	w := make(wires, n)
	for i := range w {
		for range n {
			w[i] = append(w[i], make(chan []byte, 1000))
		}
	}
	j := &job{make([]*cluster.Group, n), make([]*Sharded, n)}
	for rank, err := range j.do(func(rank int) (err error) {
		o := cluster.Options{Timeout: timeout}
		j.groups[rank], err = o.Join(t.Context(), devs[rank], rank, n, wire{w, rank})
		return err
	}) {
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, j.groups[rank].Close()) })
	}
	return j
}

// make makes the index of a job.
func (j *job) make(t testing.TB, f func(g *cluster.Group) (*Sharded, error)) {
	t.Helper()
	for rank, err := range j.do(func(rank int) (err error) {
		j.shards[rank], err = f(j.groups[rank])
		return err
	}) {
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, j.shards[rank].Close()) })
	}
}

func copies(t testing.TB, name string, n int) (list []*runtime.Device) {
	for range n {
		list = append(list, open(t, name))
	}
	return list
}

// namedErrors demands that all errors name a member and are of a kind, or of any if that is nil.
func namedErrors(t testing.TB, errs []error, rank int, kind error) {
	t.Helper()
	for i, err := range errs {
		named, ok := errors.AsType[*cluster.MemberError](err)
		require.True(t, ok, "rank %d: %v", i, err)
		assert.Equal(t, rank, named.Rank, "rank %d: %v", i, err)
		if kind != nil {
			assert.ErrorIs(t, err, kind, "rank %d", i)
		}
	}
}

// TestJobExact compares the shards of several processes with one index: every process has its results.
func TestJobExact(t *testing.T) {
	const dim = 5
	for size, n := range []int{0, 1, 97, 211, 60} {
		if size == 0 {
			continue
		}
		for _, name := range []string{"cpu:0", "opencl:0"} {
			t.Run(fmt.Sprint(size, name), func(t *testing.T) {
				devs := copies(t, "cpu:0", size)
				devs[size-1] = open(t, name)
				j := ranks(t, 0, devs...)
				j.make(t, func(g *cluster.Group) (*Sharded, error) {
					return NewSharded(t.Context(), g, "flat", dim, "l2sq", Options{Precision: INT8Scaled})
				})
				r := rand.New(rand.NewPCG(uint64(size), 3))
				vectors, queries := make([]float32, n*dim), make([]float32, 3*dim)
				for _, x := range [][]float32{vectors, queries} {
					for i := range x {
						x[i] = float32(r.IntN(5) - 2)
					}
				}
				vectors[0] = 127
				ids := numbers(r, n)
				one := flat(t, open(t, "cpu:0"), dim, L2Squared, FlatOptions{Precision: INT8Scaled})
				require.NoError(t, one.Add(t.Context(), ids, vectors))
				j.all(t, func(s *Sharded) error { return s.Add(t.Context(), ids, vectors) })
				j.all(t, func(s *Sharded) error {
					return differ(t.Context(), one, s, ids, queries, dim)
				})
				if n > 20 {
					require.NoError(t, one.Remove(t.Context(), ids[3:20]))
					require.NoError(t, one.Update(t.Context(), ids[1], queries[:dim]))
					j.all(t, func(s *Sharded) error {
						return errors.Join(s.Remove(t.Context(), ids[3:20]), s.Update(t.Context(), ids[1], queries[:dim]))
					})
					ids = append(ids[:3:3], ids[20:]...)
					j.all(t, func(s *Sharded) error {
						return differ(t.Context(), one, s, ids, queries, dim)
					})
				}
				want, err := one.Get(t.Context(), ids[0])
				require.NoError(t, err)
				j.all(t, func(s *Sharded) error {
					got, err := s.Get(t.Context(), ids[0])
					assert.Equal(t, want, got)
					assert.Len(t, s.Shards(), 1)
					assert.Equal(t, len(ids), s.Len())
					return err
				})
				dir := filepath.Join(t.TempDir(), "saved")
				j.all(t, func(s *Sharded) error { return s.Save(t.Context(), dir) })
				j.make(t, func(g *cluster.Group) (*Sharded, error) { return OpenSharded(t.Context(), g, dir) })
				j.all(t, func(s *Sharded) error {
					return differ(t.Context(), one, s, ids, queries, dim)
				})
			})
		}
	}
}

// TestJobManyResults exchanges more results than go at a time.
func TestJobManyResults(t *testing.T) {
	const n = mostGathered / resultBytes / 4
	j := ranks(t, 0, copies(t, "cpu:0", 2)...)
	j.make(t, func(g *cluster.Group) (*Sharded, error) {
		return NewSharded(t.Context(), g, "flat", 1, "manhattan", Options{})
	})
	vectors := make([]float32, n)
	for i := range vectors {
		vectors[i] = float32(i)
	}
	j.all(t, func(s *Sharded) error { return s.Add(t.Context(), counted(n), vectors) })
	j.all(t, func(s *Sharded) error {
		lists, err := s.SearchBatch(t.Context(), []float32{0, 1, 2, 3, 4}, n, nil)
		for q, list := range lists {
			assert.Len(t, list, n)
			assert.Equal(t, int64(q), list[0].ID)
			assert.Equal(t, Result{n - 1, float64(n - 1 - q)}, list[n-1])
		}
		return err
	})
}

// TestJobDiffers has processes that call different things, or one that fails: all return the same error, nothing has
// changed, and the index goes on.
func TestJobDiffers(t *testing.T) {
	ctx := t.Context()
	j := ranks(t, 0, copies(t, "cpu:0", 3)...)
	j.make(t, func(g *cluster.Group) (*Sharded, error) {
		return NewSharded(ctx, g, "ivf", 1, "l2sq", Options{})
	})
	j.all(t, func(s *Sharded) error { return s.Add(ctx, counted(30), make([]float32, 30)) })
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for name, c := range map[string]struct {
		rank int
		kind error
		f    func(s *Sharded, rank int) error
	}{
		"other ids": {2, runtime.ErrInvalidArgument, func(s *Sharded, rank int) error {
			return s.Add(ctx, []int64{int64(50 + rank/2)}, make([]float32, 1))
		}},
		"another call": {1, runtime.ErrInvalidArgument, func(s *Sharded, rank int) error {
			if rank == 1 {
				return s.Remove(ctx, []int64{1})
			}
			_, err := s.Search(ctx, nil, make([]float32, 1), 1, nil)
			return err
		}},
		"an id that is there": {j.shards[0].shardOf(7), runtime.ErrInvalidArgument, func(s *Sharded, _ int) error {
			return s.Add(ctx, append(counted(60)[40:], 7), make([]float32, 21))
		}},
		"no such id": {j.shards[0].shardOf(77), runtime.ErrInvalidArgument, func(s *Sharded, _ int) error {
			return s.Remove(ctx, append(counted(20), 77))
		}},
		"wrong sizes": {0, runtime.ErrDimension, func(s *Sharded, _ int) error {
			return s.Add(ctx, counted(60)[40:], make([]float32, 21))
		}},
		"an ended context": {1, context.Canceled, func(s *Sharded, rank int) error {
			ctx := ctx
			if rank == 1 {
				ctx = ended
			}
			_, err := s.Search(ctx, nil, make([]float32, 1), 1, nil)
			return err
		}},
		"a mask of another length": {0, runtime.ErrDimension, func(s *Sharded, rank int) error {
			_, err := s.SearchBatch(ctx, make([]float32, 1), 1, Mask(make([]bool, 5)))
			return err
		}},
		"wrong weights": {0, driver.ErrInvalidArgument, func(s *Sharded, rank int) error {
			_, err := NewSharded(ctx, j.groups[rank], "flat", 1, "l2sq", Options{Weights: []float64{1}})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			namedErrors(t, j.do(func(rank int) error { return c.f(j.shards[rank], rank) }), c.rank, c.kind)
			j.all(t, func(s *Sharded) error {
				found, err := s.Search(ctx, nil, make([]float32, 1), 100, nil)
				assert.Len(t, found, 30)
				for i, r := range found {
					assert.Equal(t, Result{int64(i), 0}, r)
				}
				return err
			})
		})
	}
}

// TestJobUpdateDiffers has processes that update an id with other vectors, or of which one's context has ended: it
// finds an index that changes although all return an error.
func TestJobUpdateDiffers(t *testing.T) {
	ctx := t.Context()
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for _, kind := range []string{"flat", "ivf", "hnsw"} {
		j := ranks(t, 0, copies(t, "cpu:0", 3)...)
		j.make(t, func(g *cluster.Group) (*Sharded, error) { return NewSharded(ctx, g, kind, 1, "l2sq", Options{}) })
		j.all(t, func(s *Sharded) error { return s.Add(ctx, counted(30), make([]float32, 30)) })
		for id := range int64(6) {
			owner := j.shards[0].shardOf(id)
			other := max(1, (owner+1)%3) // member 0 is what the others are compared with
			namedErrors(t, j.do(func(rank int) error {
				if rank == other {
					return j.shards[rank].Update(ctx, id, []float32{2})
				}
				return j.shards[rank].Update(ctx, id, []float32{1})
			}), other, runtime.ErrInvalidArgument)
			namedErrors(t, j.do(func(rank int) error {
				if rank == (owner+1)%3 {
					return j.shards[rank].Update(ended, id, []float32{1})
				}
				return j.shards[rank].Update(ctx, id, []float32{1})
			}), (owner+1)%3, context.Canceled)
			j.all(t, func(s *Sharded) error {
				got, err := s.Get(ctx, id)
				assert.Equal(t, []float32{0}, got, "%s, id %d", kind, id)
				return err
			})
		}
	}
}

// TestJobFirstError has a member that fails at once while another one works: all return its error, and not that of the
// other, whose work was ended.
func TestJobFirstError(t *testing.T) {
	ctx := t.Context()
	j := ranks(t, 0, copies(t, "cpu:0", 3)...)
	j.make(t, func(g *cluster.Group) (*Sharded, error) { return NewSharded(ctx, g, "flat", 1, "l2sq", Options{}) })
	j.all(t, func(s *Sharded) error { return s.Add(ctx, counted(30), make([]float32, 30)) })
	namedErrors(t, j.do(func(rank int) error {
		f := Predicate(func(int64) bool { return true })
		switch rank {
		case 0:
			f = Predicate(func(int64) bool { time.Sleep(4 * longestBeat); return true })
		case 2:
			f = Mask(make([]bool, 5))
		}
		_, err := j.shards[rank].Search(ctx, nil, make([]float32, 1), 1, f)
		return err
	}), 2, runtime.ErrDimension)
}

// TestJobGoexit has a predicate of one process that panics or ends its goroutine: the call ends in all of them.
func TestJobGoexit(t *testing.T) {
	ctx := t.Context()
	j := ranks(t, 0, copies(t, "cpu:0", 2)...)
	j.make(t, func(g *cluster.Group) (*Sharded, error) { return NewSharded(ctx, g, "flat", 1, "l2sq", Options{}) })
	j.all(t, func(s *Sharded) error { return s.Add(ctx, counted(30), make([]float32, 30)) })
	for _, end := range []func(){func() { panic("planted") }, goruntime.Goexit} {
		errs := make(chan []error, 1)
		go func() {
			errs <- j.do(func(rank int) error {
				_, err := j.shards[rank].Search(ctx, nil, make([]float32, 1), 1, Predicate(func(int64) bool {
					if rank == 1 {
						end()
					}
					return true
				}))
				return err
			})
		}()
		select {
		case errs := <-errs:
			namedErrors(t, errs, 1, nil)
			_, ok := errors.AsType[*PanicError](errs[1])
			assert.True(t, ok, "%v", errs[1])
		case <-time.After(20 * time.Second):
			t.Fatal("the call does not end")
		}
	}
}

// TestJobDirectories has processes that save to different directories: all return the same error.
func TestJobDirectories(t *testing.T) {
	ctx := t.Context()
	j := ranks(t, 0, copies(t, "cpu:0", 2)...)
	j.make(t, func(g *cluster.Group) (*Sharded, error) { return NewSharded(ctx, g, "flat", 1, "l2sq", Options{}) })
	j.all(t, func(s *Sharded) error { return s.Add(ctx, counted(30), make([]float32, 30)) })
	dirs := []string{t.TempDir(), t.TempDir()}
	errs := j.do(func(rank int) error { return j.shards[rank].Save(ctx, dirs[rank]) })
	namedErrors(t, errs, 0, fs.ErrNotExist)
	assert.NoFileExists(t, filepath.Join(dirs[0], mainFile))
}

// TestJobBeat has members that do not wait long: a process that works tells them often enough.
func TestJobBeat(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{0: longestBeat, 2 * time.Second: longestBeat,
		40 * time.Millisecond: 10 * time.Millisecond} {
		g, err := cluster.Options{Timeout: timeout}.Virtual(open(t, "cpu:0"), 1)
		require.NoError(t, err)
		assert.Equal(t, want, (&Sharded{group: g}).beat())
		require.NoError(t, g.Close())
	}
}

// TestJobMemory has devices with little memory beside the vectors, and results that do not fit in it: it finds an
// exchange that needs memory for them there, and so ends the group.
func TestJobMemory(t *testing.T) {
	const n = 30_000
	ctx := t.Context()
	j := ranks(t, 0, narrow(t, "cpu:0", 800_000), narrow(t, "cpu:0", 800_000))
	j.make(t, func(g *cluster.Group) (*Sharded, error) { return NewSharded(ctx, g, "flat", 1, "l2sq", Options{}) })
	j.all(t, func(s *Sharded) error { return s.Add(ctx, counted(n), make([]float32, n)) })
	j.all(t, func(s *Sharded) error {
		found, err := s.Search(ctx, nil, make([]float32, 1), n, nil)
		assert.Len(t, found, n)
		return errors.Join(err, s.group.Err())
	})
}

// TestJobSlow has a step that takes longer than members wait for each other: it finds processes that count as lost
// while they work.
func TestJobSlow(t *testing.T) {
	ctx := t.Context()
	j := ranks(t, 2*time.Second, copies(t, "cpu:0", 2)...)
	j.make(t, func(g *cluster.Group) (*Sharded, error) {
		return NewSharded(ctx, g, "flat", 1, "l2sq", Options{})
	})
	j.all(t, func(s *Sharded) error { return s.Add(ctx, counted(30), make([]float32, 30)) })
	j.all(t, func(s *Sharded) error {
		slow := s == j.shards[1]
		found, err := s.Search(ctx, nil, make([]float32, 1), 100, Predicate(func(id int64) bool {
			if slow {
				time.Sleep(250 * time.Millisecond) // for about 15 of them
			}
			return true
		}))
		assert.Len(t, found, 30)
		return err
	})
}

// TestJobLost has a process that is gone: the others name it, within the time that was set.
func TestJobLost(t *testing.T) {
	const timeout = 2 * time.Second
	ctx := t.Context()
	j := ranks(t, timeout, copies(t, "cpu:0", 3)...)
	j.make(t, func(g *cluster.Group) (*Sharded, error) {
		return NewSharded(ctx, g, "hnsw", 1, "l2sq", Options{})
	})
	j.all(t, func(s *Sharded) error { return s.Add(ctx, counted(30), make([]float32, 30)) })
	begin := time.Now()
	errs := j.do(func(rank int) error {
		if rank == 2 {
			return nil
		}
		return j.shards[rank].Add(ctx, counted(60)[30:], make([]float32, 30))
	})
	for _, err := range errs[:2] {
		_, ok := errors.AsType[*cluster.MemberError](err)
		require.True(t, ok, "%v", err)
		assert.ErrorIs(t, err, driver.ErrTimeout)
	}
	namedErrors(t, errs[:1], 2, driver.ErrTimeout) // which hears from it first
	assert.Less(t, time.Since(begin), 10*time.Second)
	for _, s := range j.shards[:2] {
		_, err := s.Search(ctx, nil, make([]float32, 1), 1, nil)
		assert.ErrorIs(t, err, driver.ErrTimeout)
		assert.Equal(t, 30, s.Len())
		assert.Equal(t, s.parts[0].contents.Info().Len, func() (n int) {
			for _, id := range counted(30) {
				if s.shardOf(id) == s.parts[0].number {
					n++
				}
			}
			return n
		}(), "what was added is removed again")
	}
}
