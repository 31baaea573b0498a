package ann

// IVF: vectors in lists, of which a search reads some. Here are its vectors, ids and changes; ivf_train.go
// makes the lists.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/concord-compute/concord/runtime"
)

// IVF is an index that keeps vectors in lists, each of those around a centre (an inverted file), and compares a
// query with the vectors of the lists whose centres are nearest to it. More lists, and fewer probes, make
// searches faster, and find fewer of the nearest. The centres are found by k-means for the squared distance, or
// for [Cosine] and [Angular] for the direction; with another metric than these and [Euclidean], more probes may
// be needed.
//
// There is one list, so that searches compare with all vectors, until the Add after which there are 16 vectors
// or more for each list of the options. That Add makes the lists, which takes some time, of the vectors that
// there are then. Where the options leave the number of lists to the index, that is from 4096 vectors on, and
// again whenever there are 16 times as many. [IVF.Train] makes them anew at any time. The same calls with the
// same seed make the same lists.
//
// With IVFOptions.Codes the index also keeps a code for each vector (kind pq, product quantization), in the
// memory of the host whatever the device. A search compares the codes in its lists, dozens of times as many in
// the same time as vectors, and then the vectors of the nearest codes, IVFOptions.Refine for each result.
// Results have their true distances, and more of them compared find more of the nearest. Codes are compared by
// the squared distance, or for [Cosine] and [Angular] the direction. [IVF.Exact] compares all vectors. Where a
// query or a distance from it is not finite, the vectors in the lists are compared as without codes.
//
// Vectors are in the memory of the device, which stays open while the index is; the session has to be closed
// after the index. Searches run while Add assigns vectors to lists, and wait while it stores them. The memory
// of removed vectors is freed by [IVF.Compact], which Add calls when they are more than the others; it needs
// memory for both copies for a moment.
type IVF struct {
	storage // whose locks guard what follows, too
	o       IVFOptions
	coarse  *engine  // compares with centres
	coder   *coder   // nil without codes
	works   works    // of coarse
	inList  []uint32 // the list of a row
	centres centres
	lists   [][]uint32 // the rows of each
	trained int        // vectors when the lists were made
	grouped bool       // rows are in the order of their lists, and none is removed
	share   float64    // of a shard: its part of the vectors of the whole index; else 0
}

// IVFOptions are what [NewIVF] takes. The zero value has the defaults; a negative number is
// [runtime.ErrInvalidArgument].
type IVFOptions struct {
	Lists int `json:"lists"` // 0 is about 4·√n for n vectors; Info tells how many there are
	// lists that a search without a filter reads, if it finds k vectors in them; 0 is 16. With all lists results
	// are exact, but for Codes
	Probes int    `json:"probes"`
	Seed   uint64 `json:"seed"` // of the vectors that k-means begins with; 0 is a seed like others
	// bytes of a code for each vector, at most 128 and half of the dimension; 0 is none
	Codes int `json:"codes,omitempty"`
	// with Codes: vectors that are compared for each result, those of the nearest codes; 0 is 20
	Refine    int       `json:"refine,omitempty"`
	Precision Precision `json:"-"` // of the stored vectors; 0 is FP32
	MaxDim    int       `json:"-"` // the largest dimension; 0 is 4096
	MaxRows   int       `json:"-"` // the largest number of vectors; 0 is no limit
}

const (
	leastInList, mostInSample = 16, 256 // vectors for each list from which lists are made
	leastListed               = 4096    // vectors from which lists are made if their number is not set
	mostLists                 = 1 << 24
)

// Check returns what [NewIVF] would say of the options, without a device.
func (o IVFOptions) Check() error {
	return cmp.Or(within("Lists", o.Lists, 0, mostLists), within("Probes", o.Probes, 0, math.MaxInt),
		within("Codes", o.Codes, 0, mostCode), within("Refine", o.Refine, 0, mostRefine))
}

// centres are those of lists, side by side in a device's memory and in the host's. The zero value is one list
// of everything.
type centres struct {
	buf   *runtime.Buffer
	host  []float32
	n     int
	codes *codes // nil without them
}

func (c centres) close() {
	if c.buf != nil {
		c.buf.Close()
	}
	c.codes.close()
}

// NewIVF makes an empty index on a device. The errors are those of [NewFlat].
func NewIVF(dev *runtime.Device, dim int, m Metric, o IVFOptions) (*IVF, error) {
	if err := errors.Join(o.Check(), (Options{Precision: o.Precision, MaxDim: o.MaxDim, MaxRows: o.MaxRows}).check(
		dim)); err != nil {
		return nil, err
	}
	if 2*o.Codes > dim {
		return nil, fmt.Errorf("ann: codes of %d bytes for vectors of %d components, of which each byte needs two: %w",
			o.Codes, dim, runtime.ErrInvalidArgument)
	}
	if o.Probes, o.MaxDim = cmp.Or(o.Probes, 16), 0; o.Codes > 0 {
		o.Refine = cmp.Or(o.Refine, 20)
	}
	e, err := newEngine(dev, dim, m, o.Precision)
	if err != nil {
		return nil, err
	}
	by := L2Squared
	if m.onNearest() == "cosine" {
		by = Cosine
	}
	coarse, err := newEngine(dev, dim, by, FP32)
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	x := &IVF{o: o, coarse: coarse, lists: make([][]uint32, 1)}
	x.storage = storage{kind: o.kind(), kindPart: x, maxRows: o.MaxRows, e: e, stores: []*store{newStore(e)}}
	if o.Codes > 0 {
		if x.coder, err = newCoder(dev.Session(), o.Codes); err != nil {
			return nil, errors.Join(err, x.Close())
		}
	}
	return x, nil
}

// Close implements [Index]. It waits for searches and changes that run.
func (x *IVF) Close() error { return x.close() }

// free implements contents.
func (x *IVF) free() error {
	x.works.close()
	x.centres.close()
	return errors.Join(x.coder.close(), x.coarse.close())
}

// store returns the only store.
func (x *IVF) store() *store { return x.stores[0] }

// Info implements [Index]. IVF.Lists is the number of lists that there are.
func (x *IVF) Info() Info {
	x.mu.RLock()
	defer x.mu.RUnlock()
	i, o := x.info(), x.o
	o.Lists = len(x.lists)
	i.IVF = &o
	return i
}

// kind returns the name of an index with these options.
func (o IVFOptions) kind() string {
	if o.Codes > 0 {
		return "pq"
	}
	return "ivf"
}

// Len returns the number of vectors.
func (x *IVF) Len() int { return x.count() }

// SetProbes changes the number of lists that searches read, as IVFOptions.Probes sets it. One below 1 is
// [runtime.ErrInvalidArgument].
func (x *IVF) SetProbes(n int) error {
	if err := within("Probes", n, 1, math.MaxInt); err != nil {
		return err
	}
	return x.set(&x.o.Probes, n)
}

// SetRefine changes the number of vectors that searches compare for each result, as IVFOptions.Refine sets it.
// One below 1 is [runtime.ErrInvalidArgument], and [runtime.ErrUnsupported] that the index has no codes.
func (x *IVF) SetRefine(n int) error {
	if err := within("Refine", n, 1, mostRefine); err != nil {
		return err
	}
	if x.coder == nil {
		return fmt.Errorf("ann: vectors that are compared after codes, of an index without codes: %w", runtime.ErrUnsupported)
	}
	return x.set(&x.o.Refine, n)
}

func (x *IVF) set(option *int, n int) error {
	return x.write(context.Background(), func() error {
		x.mu.Lock()
		defer x.mu.Unlock()
		*option = n
		return nil
	})
}

// Get returns a vector as it is stored, in numbers. An id that the index does not have is [runtime.ErrInvalidArgument].
func (x *IVF) Get(ctx context.Context, id int64) ([]float32, error) { return x.get(ctx, id) }

// Add implements [Index]. With [INT8Scaled], a component above the scale of the first vectors is
// [runtime.ErrInvalidArgument]. Vectors that are added in one call lie side by side in each list; after many
// small calls, [IVF.Compact] makes searches faster.
func (x *IVF) Add(ctx context.Context, ids []int64, vectors []float32) error {
	return x.change(ctx, func() error { return x.metered(func() error { return x.add(ctx, ids, vectors) }) })
}

func (x *IVF) add(ctx context.Context, ids []int64, vectors []float32) error {
	if _, err := x.checkAdd(ids, vectors); err != nil || len(ids) == 0 {
		return err
	}
	total := x.table.len() + len(ids)
	code, err := x.e.codeFor(vectors, x.scaled)
	if err != nil {
		return err
	}
	if x.gone > x.table.len() {
		if err := x.compact(ctx); err != nil {
			return err
		}
	}
	if err := x.roomFor(len(ids), math.MaxUint32-1); err != nil {
		return err
	}
	first := len(x.ids)
	c, old, of := x.centres, placed{of: x.inList}, make([]uint32, len(ids))
	made := x.due(total)
	x.work.expect(len(ids))
	if made > 0 {
		if c, old, err = x.divide(ctx, made, vectors); err != nil {
			return crowded(err)
		}
	}
	var coded []byte
	if err = x.assign(ctx, c, vectors, of); err == nil && c.codes != nil {
		coded, err = x.encode(ctx, c, vectors, of)
	}
	if err == nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		_, order := byList(of, max(c.n, 1))
		if err = x.store().reserve(ctx, first, first+len(ids)); err == nil && c.codes != nil {
			err = c.codes.reserve((len(ids)+len(old.codes)/x.o.Codes)/perBlock + c.n)
		}
		if err == nil {
			err = x.store().put(ctx, code, first, vectors, order)
		}
		if err == nil {
			x.e.code, x.scaled = code, true
			x.take(ids, of, order, coded, made == 0)
			if made > 0 {
				old.of = append(old.of, x.inList[first:]...)
				for i := 0; i < len(order) && coded != nil; i++ {
					old.codes = append(old.codes, coded[order[i]*x.o.Codes:][:x.o.Codes]...)
				}
				x.regroup(c, old, total)
			}
			return nil
		}
	}
	if made > 0 {
		c.close()
	}
	return crowded(err)
}

// crowded says more of an error that is that the device has no room.
func crowded(err error) error {
	if !short(err) || errors.Is(err, runtime.ErrTooLarge) {
		return err
	}
	return fmt.Errorf("ann: vectors may stay in the host's memory, but centres and codes of lists have to be on the "+
		"device, with some vectors at a time; fewer lists or a higher limit help: %w", err)
}

// placed says for each row which list it is in and, with codes, its code.
type placed struct {
	of    []uint32
	codes []byte
}

// take adds ids, whose rows have been stored in an order, with their lists and codes.
func (x *IVF) take(ids []int64, of []uint32, order []int, coded []byte, listed bool) {
	first := len(x.ids)
	x.grow(ids, order)
	x.index(first)
	for i, v := range order {
		x.inList = append(x.inList, of[v])
		if listed {
			x.enlist(of[v], uint32(first+i), coded, v)
		}
	}
	x.grouped = first == 0
	x.state++
}

// enlist adds a row to a list, with code i of those in coded. There is room for the code.
func (x *IVF) enlist(list, row uint32, coded []byte, i int) {
	if c := x.centres.codes; c != nil {
		c.put(list, len(x.lists[list]), coded[i*c.bytes:][:c.bytes])
	}
	x.lists[list] = append(x.lists[list], row)
}

// keep leaves those rows in a list for which f returns true.
func (x *IVF) keep(list uint32, f func(row uint32) bool) {
	c, n := x.centres.codes, 0
	var code [mostCode]byte
	for i, row := range x.lists[list] {
		if !f(row) {
			continue
		}
		if c != nil && n != i {
			c.get(list, i, code[:c.bytes])
			c.put(list, n, code[:c.bytes])
		}
		x.lists[list][n] = row
		n++
	}
	x.lists[list] = x.lists[list][:n]
	if c != nil {
		c.cut(list, n)
	}
}

// byList returns the places of elements in the order of their lists, of n, and where each list begins in it.
func byList(of []uint32, n int) (starts, order []int) {
	starts, order = make([]int, n+1), make([]int, len(of))
	for _, l := range of {
		starts[l+1]++
	}
	for l := range n {
		starts[l+1] += starts[l]
	}
	at := slices.Clone(starts)
	for i, l := range of {
		order[at[l]] = i
		at[l]++
	}
	return starts, order
}

// regroup puts all rows into the lists of centres, which were made of so many vectors.
func (x *IVF) regroup(c centres, to placed, vectors int) {
	if c.buf != x.centres.buf {
		x.centres.close()
	}
	x.centres, x.trained, x.inList = c, vectors, to.of
	starts, order := byList(to.of, max(c.n, 1))
	all, lists := make([]uint32, 0, x.table.len()), make([][]uint32, max(c.n, 1))
	for l := range lists {
		begin := len(all)
		for _, row := range order[starts[l]:starts[l+1]] {
			if x.live.has(row) {
				all = append(all, uint32(row))
			}
		}
		lists[l] = all[begin:len(all):len(all)]
	}
	x.lists = lists
	if c.codes != nil {
		c.codes.lay(lists, to.codes)
	}
}

// Remove implements [Index].
func (x *IVF) Remove(ctx context.Context, ids []int64) error {
	return x.change(ctx, func() error {
		rows, err := x.checkRemove(ctx, ids)
		if err != nil || len(rows) == 0 {
			return err
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		x.remove(rows)
		touched := map[uint32]bool{}
		for _, row := range rows {
			touched[x.inList[row]] = true
		}
		for l := range touched {
			x.keep(l, func(row uint32) bool { return x.live.has(int(row)) })
		}
		x.grouped = false
		x.state++
		return nil
	})
}

// Update replaces the vector of an id. An id that the index does not have is [runtime.ErrInvalidArgument].
func (x *IVF) Update(ctx context.Context, id int64, vector []float32) error {
	return x.change(ctx, func() error { return x.update(ctx, id, vector) })
}

func (x *IVF) update(ctx context.Context, id int64, vector []float32) error {
	at, code, err := x.checkUpdate(id, vector)
	if err != nil {
		return err
	}
	row, to, coded := uint32(at), [1]uint32{}, []byte(nil)
	if err := x.assign(ctx, x.centres, vector, to[:]); err != nil {
		return err
	}
	c := x.centres.codes
	if c != nil {
		if coded, err = x.encode(ctx, x.centres, vector, to[:]); err != nil {
			return err
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	err = x.store().reserve(ctx, len(x.ids), len(x.ids))
	if err == nil && c != nil {
		err = c.reserve(1)
	}
	if err == nil {
		err = x.store().put(ctx, code, at, vector, nil)
	}
	if err != nil {
		return err
	}
	if from := x.inList[row]; from != to[0] {
		x.keep(from, func(r uint32) bool { return r != row })
		x.enlist(to[0], row, coded, 0)
		x.inList[row], x.grouped = to[0], false
	} else if c != nil {
		c.put(from, slices.Index(x.lists[from], row), coded)
	}
	return nil
}

// Compact frees the memory of removed vectors, and puts those of a list side by side.
func (x *IVF) Compact(ctx context.Context) error {
	return x.change(ctx, func() error { return x.compact(ctx) })
}

// compact is Compact where the caller holds writeLock.
func (x *IVF) compact(ctx context.Context) error {
	if x.grouped || len(x.ids) == 0 {
		return ctx.Err()
	}
	rows := slices.Concat(x.lists...)
	x.mu.Lock()
	defer x.mu.Unlock()
	c, err := x.store().choose(ctx, len(x.ids), rows)
	if err != nil {
		return err
	}
	x.store().commit(ctx, c, len(rows))
	to := placed{of: make([]uint32, len(rows))}
	coded, size := x.centres.codes.byRow(x.lists, len(x.ids)), x.o.Codes
	for i, row := range rows {
		to.of[i] = x.inList[row]
		if coded != nil {
			to.codes = append(to.codes, coded[int(row)*size:][:size]...)
		}
	}
	x.pick(rows)
	x.index(0)
	x.grouped = true
	x.state++
	x.regroup(x.centres, to, x.trained)
	return nil
}

// Train makes the lists anew of the vectors that there are: as many as the options say, or about 4·√n. It takes
// some time, in which searches use the old lists. An index with fewer vectors than lists has as many lists as
// vectors.
func (x *IVF) Train(ctx context.Context) error {
	return x.change(ctx, func() error {
		n := x.table.len()
		c, to, err := x.divide(ctx, cmp.Or(x.o.Lists, x.usualLists(n)), nil)
		if err != nil {
			return crowded(err)
		}
		if c.codes != nil {
			if err := c.codes.reserve(n/perBlock + c.n); err != nil {
				c.close()
				return err
			}
		}
		x.mu.Lock()
		x.regroup(c, to, n)
		x.grouped = false
		x.mu.Unlock()
		return x.compact(ctx)
	})
}
