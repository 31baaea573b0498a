package ann

// Sharded: an index in shards, each on the device of a member of a group. Here are its vectors and changes;
// sharded_search.go has its searches, sharded_file.go its files, and sharded_job.go what processes tell each other.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
)

// Sharded is an index of any kind whose vectors are divided among the members of a group: each has an index of its
// part on its device, a shard. The shards are built and searched at the same time, and what they find is merged. With
// shards of kind flat the results are those of one index with all vectors, but that those of equal distance come in the
// order of their ids also where one index compares numbers that still differ, as for [Angular] some do. Of other kinds
// each shard is searched with the options of the whole, so that about as many of the nearest are found as in one
// index, or more.
//
// Which shard has a vector follows from its id alone, by a hash, so that the shards have about as many vectors each,
// whatever the ids, or as many as Options.Weights say. A base larger than the memory of one device is in that of
// several.
//
// In a job of several processes all of them make the same calls but Info, Len, Shards and Close, with the same
// arguments and in the same order, and all have the same results. Each process keeps only the vectors of its own
// members, and the ids of all. Where the calls or the arguments differ, all calls return an error that names a member,
// and nothing has changed; filters are not compared. A process whose context is done returns an error in all of them.
//
// A failure of a shard is a [*cluster.MemberError] with its member, and the whole call has failed. A process that is
// lost is one within cluster.Options.Timeout, however long the call takes otherwise, and so are all calls that
// follow. An Add that fails removes again what it had added, which takes memory until Compact. To go on with fewer
// members, open the files of the index with another group.
//
// In one process searches run side by side, and wait for a change that runs; in a job they run one at a time. The group
// and its devices stay open while the index is.
type Sharded struct {
	group   *cluster.Group
	job     bool // the members are in several processes
	parts   []*part
	ends    []uint64 // the largest hash of each shard
	kind    string
	dim     int
	metric  Metric
	maxRows int
	weights []float64
	tell    func(Progress)
	saving  sync.Mutex
	sent    *runtime.Buffer // of a job: what gather sends at a time
	got     *runtime.Buffer // of a job: what all processes send at a time

	mu     sync.RWMutex // searches of one process are readers
	order  []int64      // the ids in the order in which they were added
	state  uint64       // changes with the vectors
	code   coding
	scaled bool  // the scale of INT8Scaled is fixed
	failed error // an Add that could not be undone
	closed bool
}

// part is a shard of this process.
type part struct {
	contents
	number, rank int
}

// NewSharded makes an empty index with a shard for each member of a group. kind, dim, metric and the options are those
// of [New], but for Device, Session and Runner, which are not set: kind hnsw is for members whose memory the host sees,
// such as cpu:0. MaxRows is for all shards together, and all other options are those of each shard; where
// IVFOptions.Lists is 0, a shard has about as many lists as one index with all vectors would have. All processes of a
// job call it.
func NewSharded(ctx context.Context, g *cluster.Group, kind string, dim int, metric string,
	o Options) (*Sharded, error) {
	s, err := newSharded(ctx, g)
	if err != nil {
		return nil, err
	}
	plain := o // what has to be the same in all processes
	plain.Progress = nil
	return s.made(ctx, fingerprint("new", []byte(fmt.Sprint(kind, dim, metric, plain))), func(ctx context.Context) error {
		kind, m, o, err := o.parsed(kind, dim, metric)
		switch {
		case err != nil:
			return err
		case o.Device != "" || o.Session != nil || o.Runner != nil:
			return fmt.Errorf("ann: a device, a session or a runner beside a group: %w", runtime.ErrInvalidArgument)
		case o.Weights != nil && len(o.Weights) != g.Size():
			return fmt.Errorf("ann: weights %v for %d members: %w", o.Weights, g.Size(), runtime.ErrInvalidArgument)
		}
		weights := o.Weights
		s.kind, s.dim, s.metric, s.maxRows, s.code = kind, dim, m, o.MaxRows, o.Precision.scaleOf(nil)
		if kind == "ivf" && o.IVF.Codes > 0 {
			s.kind = "pq"
		}
		s.tell = o.Progress
		o.MaxRows, o.Weights, o.Progress = 0, nil, nil
		return s.divide(ctx, g.Size(), weights, func(dev *runtime.Device, _ int) (contents, error) {
			return o.on([]*runtime.Device{dev}, kind, dim, m)
		})
	})
}

func newSharded(ctx context.Context, g *cluster.Group) (*Sharded, error) {
	if err := checkContext(ctx); err != nil {
		return nil, err
	}
	if g == nil {
		return nil, fmt.Errorf("ann: group is nil: %w", runtime.ErrInvalidArgument)
	}
	s := &Sharded{group: g, job: len(g.Members()) < g.Size()}
	if s.job {
		m := g.Members()[0]
		var err error
		if s.sent, err = m.Device().Alloc(runtime.U8, gathered); err == nil {
			s.got, err = m.Device().Alloc(runtime.U8, gathered*m.Size())
		}
		if err != nil { // it could not even tell the others
			return nil, errors.Join(m.Fail(err), s.Close())
		}
	}
	return s, nil
}

// made makes what a new index has, in all processes or in none.
func (s *Sharded) made(ctx context.Context, call uint64, f func(ctx context.Context) error) (*Sharded,
	error) {
	err := s.agree(ctx, call, f)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// divide makes the shards of this process: shard i belongs to member i modulo their number.
func (s *Sharded) divide(ctx context.Context, shards int, weights []float64,
	shard func(dev *runtime.Device, number int) (contents, error)) error {
	s.weights = slices.Clone(weights)
	if weights == nil {
		weights = slices.Repeat([]float64{1}, shards)
	}
	if slices.ContainsFunc(weights, func(w float64) bool { return !(w > 0) || math.IsInf(w, 0) }) {
		return fmt.Errorf("ann: weights %v: %w", weights, runtime.ErrInvalidArgument)
	}
	all, sum, largest := 0.0, 0.0, slices.Max(weights)
	for _, w := range weights {
		all += w / largest // their sum may be infinite
	}
	for _, w := range weights {
		sum += w / largest
		end := uint64(math.MaxUint64)
		if share := math.Ldexp(sum/all, 64); share < 1<<64 && len(s.ends) < shards-1 {
			end = uint64(share)
		}
		s.ends = append(s.ends, end)
	}
	devices := map[int]*runtime.Device{}
	for _, m := range s.group.Members() {
		devices[m.Rank()] = m.Device()
	}
	for i := range shards {
		if rank := i % s.group.Size(); devices[rank] != nil {
			s.parts = append(s.parts, &part{number: i, rank: rank})
		}
	}
	made := make([]contents, len(s.parts))
	err := s.each(ctx, func(ctx context.Context, i int, p *part) (err error) {
		c, err := shard(devices[p.rank], p.number)
		if err != nil {
			return err
		}
		if x, ok := c.(*IVF); ok {
			x.share = weights[p.number] / largest / all
		}
		made[i] = c
		return nil
	})
	for i, p := range s.parts {
		p.contents = made[i]
	}
	return err
}

// shardOf returns the shard that has an id.
func (s *Sharded) shardOf(id int64) int {
	h := uint64(id) // the finalizer of splitmix64
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	h ^= h >> 31
	i, _ := slices.BinarySearch(s.ends, h)
	return i
}

// each calls f for all shards of this process at once. The first error ends the others, and names the member.
func (s *Sharded) each(ctx context.Context, f func(ctx context.Context, i int, p *part) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var once sync.Once
	var first error
	err := sideBySide(len(s.parts), func(i int) error {
		err := f(ctx, i, s.parts[i])
		if err != nil {
			once.Do(func() {
				first = &cluster.MemberError{Rank: s.parts[i].rank, Err: err}
				cancel()
			})
		}
		return err
	})
	return cmp.Or(first, err)
}

// change makes a change in all processes, which step makes in this one, and counts it if all have.
func (s *Sharded) change(ctx context.Context, call uint64, step func(ctx context.Context) error) error {
	err := s.agree(ctx, call, step)
	if err == nil {
		s.state++
	}
	return err
}

// Add implements [Index]: each shard adds its vectors, all at once, from a copy, so that the memory of the host has
// them twice meanwhile. The errors are also those of the shards' kind. An id that is there already is found before
// anything has changed. An Add that fails later, for lack of memory or as ctx is done, removes again what shards have
// added; but lists that those of kinds ivf and pq have made for it stay, as after [IVF.Train].
func (s *Sharded) Add(ctx context.Context, ids []int64, vectors []float32) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	var code coding
	own, rows := make([][]int64, len(s.parts)), make([][]float32, len(s.parts))
	call := s.fingerprint("add", bytesOf(ids), bytesOf(vectors))
	err := s.agree(ctx, call, func(ctx context.Context) (err error) {
		if code, err = s.checkAdd(ids, vectors); err != nil {
			return err
		}
		return s.each(ctx, func(ctx context.Context, i int, p *part) error {
			own[i], rows[i] = s.ofPart(p, ids, vectors)
			return p.ready(ctx, func() error {
				_, err := p.base().inOrder(own[i])
				return err
			})
		})
	})
	if err != nil {
		return err
	}
	added, work := make([]bool, len(s.parts)), newMeter(s.tell)
	err = s.change(ctx, call, func(ctx context.Context) (err error) {
		return s.each(ctx, func(ctx context.Context, i int, p *part) error {
			if !s.scaled {
				p.base().fixScale(code)
			}
			p.base().measure(work)
			defer p.base().measure(nil)
			err := p.Add(ctx, own[i], rows[i])
			added[i] = err == nil
			return err
		})
	})
	if err != nil {
		undone := s.each(context.WithoutCancel(ctx), func(ctx context.Context, i int, p *part) error {
			if !added[i] || len(own[i]) == 0 {
				return nil
			}
			return p.Remove(ctx, own[i])
		})
		if undone != nil {
			s.failed = fmt.Errorf("ann: an Add that failed could not be undone: %w", undone)
		}
		return err
	}
	if s.order = append(s.order, ids...); len(ids) > 0 {
		s.code, s.scaled = code, true
	}
	return nil
}

// checkAdd checks the arguments of Add, but whether ids are there already, and returns the coding for the vectors.
func (s *Sharded) checkAdd(ids []int64, vectors []float32) (coding, error) {
	if err := checkRows(len(ids), len(vectors), s.dim); err != nil {
		return coding{}, err
	}
	if _, err := (&table{}).inOrder(ids); err != nil {
		return coding{}, err
	}
	if total := len(s.order) + len(ids); s.maxRows > 0 && total > s.maxRows {
		return coding{}, fmt.Errorf("ann: %d vectors are more than MaxRows, which is %d: %w", total, s.maxRows,
			runtime.ErrBudget)
	}
	return (&engine{dim: s.dim, code: s.code}).codeFor(vectors, s.scaled)
}

// ofPart returns what belongs to a shard.
func (s *Sharded) ofPart(p *part, ids []int64, vectors []float32) (own []int64, rows []float32) {
	if len(s.ends) == 1 {
		return ids, vectors
	}
	share := len(ids)/len(s.ends) + bits.Len(uint(len(ids))) // or more
	own, rows = make([]int64, 0, share), make([]float32, 0, share*s.dim)
	for i, id := range ids {
		if s.shardOf(id) == p.number {
			own, rows = append(own, id), append(rows, vectors[i*s.dim:(i+1)*s.dim]...)
		}
	}
	return own, rows
}

// Remove implements [Index].
func (s *Sharded) Remove(ctx context.Context, ids []int64) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	own := make([][]int64, len(s.parts))
	call := s.fingerprint("remove", bytesOf(ids))
	err := s.agree(ctx, call, func(ctx context.Context) error {
		return s.each(ctx, func(ctx context.Context, i int, p *part) error {
			for _, id := range ids {
				if s.shardOf(id) == p.number {
					own[i] = append(own[i], id)
				}
			}
			return p.ready(ctx, func() error {
				_, err := p.base().checkRemove(ctx, own[i])
				return err
			})
		})
	})
	if err != nil {
		return err
	}
	err = s.change(context.WithoutCancel(ctx), call, func(ctx context.Context) error {
		return s.each(ctx, func(ctx context.Context, i int, p *part) error { return p.Remove(ctx, own[i]) })
	})
	if err != nil { // which was checked: a device or a process is lost
		s.failed = fmt.Errorf("ann: a Remove has failed: %w", err)
		return err
	}
	s.forget(ids)
	return nil
}

// forget drops ids from the order.
func (s *Sharded) forget(ids []int64) {
	gone := make(map[int64]struct{}, len(ids))
	for _, id := range ids {
		gone[id] = struct{}{}
	}
	s.order = slices.DeleteFunc(s.order, func(id int64) bool {
		_, ok := gone[id]
		return ok
	})
}

// Update replaces the vector of an id. An id that the index does not have is [runtime.ErrInvalidArgument].
func (s *Sharded) Update(ctx context.Context, id int64, vector []float32) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	call := s.fingerprint("update", bytesOf([]int64{id}), bytesOf(vector))
	err := s.agree(ctx, call, func(ctx context.Context) error {
		return s.owner(ctx, id, func(p *part) error {
			return p.ready(ctx, func() error {
				_, _, err := p.base().checkUpdate(id, vector)
				return err
			})
		})
	})
	if err == nil { // all call the same, and nobody's context ends what the owner does
		err = s.change(context.WithoutCancel(ctx), call, func(ctx context.Context) error {
			return s.owner(ctx, id, func(p *part) error { return Update(ctx, p.contents, id, vector) })
		})
	}
	if err == nil && s.kind == "hnsw" { // which adds it
		s.forget([]int64{id})
		s.order = append(s.order, id)
	}
	return err
}

// owner calls f for the shard that has an id, if it is one of this process.
func (s *Sharded) owner(ctx context.Context, id int64, f func(p *part) error) error {
	return s.each(ctx, func(_ context.Context, _ int, p *part) error {
		if s.shardOf(id) == p.number {
			return f(p)
		}
		return nil
	})
}

// Get returns a vector as it is stored, in numbers. An id that the index does not have is [runtime.ErrInvalidArgument].
func (s *Sharded) Get(ctx context.Context, id int64) (vector []float32, err error) {
	unlock, err := s.reading(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	err = s.agree(ctx, s.fingerprint("get", bytesOf([]int64{id})), func(ctx context.Context) error {
		return s.owner(ctx, id, func(p *part) (err error) {
			vector, err = p.base().get(ctx, id)
			return err
		})
	})
	if err != nil || !s.job {
		return vector, err
	}
	own := make([]float32, s.dim)
	copy(own, vector)
	all, err := s.gather(ctx, bytesOf(own))
	if err != nil {
		return nil, err
	}
	rank := s.shardOf(id) % s.group.Size()
	return elements[float32](all)[rank*s.dim:][:s.dim], nil
}

// Compact frees the memory of removed vectors, as Compact of the shards' kind does.
func (s *Sharded) Compact(ctx context.Context) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	return s.change(ctx, s.fingerprint("compact"), func(ctx context.Context) error {
		return s.each(ctx, func(ctx context.Context, _ int, p *part) error { return p.Compact(ctx) })
	})
}

// Len returns the number of vectors in all shards.
func (s *Sharded) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.order)
}

// Shards returns the shards of this process, for what only their kind has, such as [IVF.SetProbes] and [IVF.Train].
// Their vectors are changed by the whole index alone, which also closes them.
func (s *Sharded) Shards() []Index {
	list := make([]Index, len(s.parts))
	for i, p := range s.parts {
		list[i] = p.contents
	}
	return list
}

// Info implements [Index]: Len is that of all shards, and Device and DeviceMemory are of those of this process. What
// else a kind has is that of the first of them.
func (s *Sharded) Info() Info {
	s.mu.RLock()
	defer s.mu.RUnlock()
	i := Info{Kind: s.kind, Metric: s.metric.String(), Dim: s.dim, Precision: s.code.String()}
	for n, p := range s.parts {
		one := p.contents.Info()
		if n == 0 {
			i = one
			continue
		}
		if i.Device += "," + one.Device; i.DeviceMemory >= 0 {
			i.DeviceMemory = max(i.DeviceMemory+one.DeviceMemory, -1)
		}
		i.Streams = i.Streams || one.Streams
	}
	i.Len, i.Shards = len(s.order), len(s.ends)
	return i
}

// WriteTo implements [Index]: it is [runtime.ErrUnsupported], since the files of this index are several. See Save.
func (s *Sharded) WriteTo(io.Writer) (int64, error) {
	return 0, fmt.Errorf("ann: an index in shards as one file: %w", runtime.ErrUnsupported)
}

// Close implements [Index]. It waits for calls that run, and closes the shards of this process.
func (s *Sharded) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	var errs []error
	for _, p := range s.parts {
		if p.contents != nil {
			errs = append(errs, p.Close())
		}
	}
	for _, b := range []*runtime.Buffer{s.sent, s.got} {
		if b != nil {
			errs = append(errs, b.Close())
		}
	}
	return errors.Join(errs...)
}
