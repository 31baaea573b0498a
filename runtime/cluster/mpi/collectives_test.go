//go:build unix

package mpi

// Collectives of processes, beside those of a group in one process, whose tests check them against plain sums.

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/runtime/cluster"
)

// unclosed is a job that outlives a group.
type unclosed struct{ *Job }

func (unclosed) Close() error { return nil }

// format is how a type of floats is stored.
type format struct{ mantissa, exponent int }

var formats = map[runtime.Type]format{runtime.F16: {10, 5}, runtime.BF16: {7, 8}, runtime.F32: {23, 8},
	runtime.F64: {52, 11}}

func (f format) bias() int { return 1<<(f.exponent-1) - 1 }

// word returns the element at a place, of a type of so many bytes.
func word(b []byte, size, i int) uint64 {
	var w [8]byte
	copy(w[:], b[i*size:(i+1)*size])
	return binary.LittleEndian.Uint64(w[:])
}

// value returns the number that a word is.
func (f format) value(w uint64) float64 {
	e := int(w>>f.mantissa) & (1<<f.exponent - 1)
	m := float64(w&(1<<f.mantissa-1)) / float64(uint64(1)<<f.mantissa)
	if e > 0 {
		m++
	}
	if w>>(f.mantissa+f.exponent)&1 == 1 {
		m = -m
	}
	return math.Ldexp(m, max(e, 1)-f.bias())
}

// elements fills memory with what a member has: of integers any bits, of floats both signs and some magnitudes.
func elements(b []byte, t runtime.Type, rank int) {
	r := rand.NewChaCha8([32]byte{byte(rank), byte(t)})
	_, _ = r.Read(b)
	f, ok := formats[t]
	if !ok {
		return
	}
	for i, size := 0, t.Size(); i < len(b)/size; i++ {
		w := word(b, size, i)
		e := uint64(f.bias()-4) + w>>f.mantissa&7
		w = w&^(uint64(1<<f.exponent-1)<<f.mantissa) | e<<f.mantissa
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], w)
		copy(b[i*size:], word[:size])
	}
}

// arguments are what a member calls a collective with.
type arguments struct {
	ctx      context.Context
	m        *cluster.Member
	op       cluster.Op
	dst, src *runtime.Buffer
}

// task is a collective: what it does, and how many elements it takes and gives for n and k members.
type task struct {
	name     string
	ops      bool // it has one for each operation
	src, dst func(n, k int) int
	do       func(c arguments) error
}

func part(n, _ int) int  { return n }
func whole(n, k int) int { return n * k }

var tasks = []task{
	{"all-reduce", true, part, part, func(c arguments) error { return c.m.AllReduce(c.ctx, nil, c.op, c.dst, c.src) }},
	{"reduce", true, part, part, func(c arguments) error {
		return c.m.Reduce(c.ctx, nil, c.op, c.m.Size()-1, c.dst, c.src)
	}},
	{"reduce-scatter", true, whole, part, func(c arguments) error {
		return c.m.ReduceScatter(c.ctx, nil, c.op, c.dst, c.src)
	}},
	{"broadcast", false, part, part, func(c arguments) error {
		return c.m.Broadcast(c.ctx, nil, c.m.Size()/2, c.dst, c.src)
	}},
	{"all-gather", false, part, whole, func(c arguments) error { return c.m.AllGather(c.ctx, nil, c.dst, c.src) }},
	{"all-to-all", false, whole, whole, func(c arguments) error { return c.m.AllToAll(c.ctx, nil, c.dst, c.src) }},
	{"shift", false, part, part, func(c arguments) error {
		rank, k := c.m.Rank(), c.m.Size()
		return c.m.SendRecv(c.ctx, nil, (rank+1)%k, c.src, (rank+k-1)%k, c.dst)
	}},
	{"send", false, part, part, func(c arguments) error {
		switch other := c.m.Rank() ^ 1; {
		case other >= c.m.Size():
			return nil
		case other > c.m.Rank():
			return c.m.Send(c.ctx, nil, other, c.src)
		default:
			return c.m.Recv(c.ctx, nil, other, c.dst)
		}
	}},
}

// perform has a member do a task, and returns its result.
func (t *task) perform(ctx context.Context, m *cluster.Member, typ runtime.Type, n int, op cluster.Op) ([]byte, error) {
	src, err := m.Device().Alloc(typ, t.src(n, m.Size()))
	if err != nil {
		return nil, err
	}
	defer src.Close()
	dst, err := m.Device().Alloc(typ, t.dst(n, m.Size()))
	if err != nil {
		return nil, err
	}
	defer dst.Close()
	in, err := runtime.HostBytes(src)
	if err != nil {
		return nil, err
	}
	out, err := runtime.HostBytes(dst)
	if err != nil {
		return nil, err
	}
	elements(in, typ, m.Rank())
	clear(out)
	if err := t.do(arguments{ctx, m, op, dst, src}); err != nil {
		return nil, err
	}
	if err := m.Stream().Sync(ctx); err != nil {
		return nil, err
	}
	return bytes.Clone(out), nil
}

var everyType = []runtime.Type{runtime.F32, runtime.F64, runtime.F16, runtime.BF16, runtime.I8, runtime.I16,
	runtime.I32, runtime.I64, runtime.U8, runtime.U16, runtime.U32, runtime.U64}

// collectives has every member compare its results with those of the same member of a group in one process.
func collectives(ctx context.Context) error {
	dev, err := runtime.Open(ctx, "cpu:0")
	if err != nil {
		return err
	}
	j, err := Init(ctx)
	if err != nil {
		return err
	}
	lengths, ops := []int{0, 1, 7, 1009}, []cluster.Op{cluster.Sum, cluster.Mean}
	types := []runtime.Type{runtime.F32, runtime.BF16, runtime.I32}
	if full {
		types = everyType
	}
	if full && j.Size() <= 4 {
		lengths = append(lengths, 2, 31, 4*1009, 20_011)
		ops = append(ops, cluster.Max, cluster.Min, cluster.Product)
	}
	var far, near []*cluster.Group
	for _, by := range []cluster.Algorithm{cluster.BySize, cluster.Direct, cluster.Tree, cluster.Ring} {
		o := cluster.Options{Algorithm: by}
		g, err := o.Join(ctx, dev, j.Rank(), j.Size(), unclosed{j})
		if err != nil {
			return err
		}
		local, err := o.Virtual(dev, j.Size())
		if err != nil {
			return err
		}
		far, near = append(far, g), append(near, local)
	}
	next := 0 // the algorithms take turns
	for _, t := range tasks {
		for _, typ := range types {
			for _, n := range lengths {
				for i, op := range ops {
					if i > 0 && (!t.ops || n > 10_000) {
						continue
					}
					next = (next + 1) % len(far)
					if err := t.compare(ctx, far[next], near[next], typ, n, op); err != nil {
						return fmt.Errorf("%s of %d %v, %v, group %d: %w", t.name, n, typ, op, next, err)
					}
				}
			}
		}
	}
	for i := range far {
		if err := errors.Join(far[i].Close(), near[i].Close()); err != nil {
			return err
		}
	}
	return errors.Join(j.Close(), dev.Close())
}

// compare does a task in both groups.
func (t *task) compare(ctx context.Context, g, near *cluster.Group, typ runtime.Type, n int, op cluster.Op) error {
	own := g.Members()[0]
	got, err := t.perform(ctx, own, typ, n, op)
	if err != nil {
		return err
	}
	var want []byte
	if err := near.Do(ctx, func(ctx context.Context, m *cluster.Member) error {
		result, err := t.perform(ctx, m, typ, n, op)
		if m.Rank() == own.Rank() {
			want = result
		}
		return err
	}); err != nil {
		return err
	}
	if !bytes.Equal(want, got) {
		return fmt.Errorf("member %d has other bits than in one process", own.Rank())
	}
	return nil
}

// long all-reduces 16 Mi floats. The bits of all members have to be the same, so that each checks the bounds of its
// share alone.
func long(ctx context.Context) error {
	dev, err := runtime.Open(ctx, "cpu:0")
	if err != nil {
		return err
	}
	g, err := Group(ctx, dev)
	if err != nil {
		return err
	}
	m, k := g.Members()[0], g.Size()
	for _, typ := range []runtime.Type{runtime.F32, runtime.BF16} {
		const n = 16 << 20
		got, err := tasks[0].perform(ctx, m, typ, n, cluster.Sum)
		if err != nil {
			return err
		}
		parts, f, size := make([][]byte, k), formats[typ], typ.Size()
		for rank := range parts {
			parts[rank] = make([]byte, n*size)
			elements(parts[rank], typ, rank)
		}
		for i := m.Rank(); i < n; i += k {
			var sum, sizes float64
			for _, p := range parts {
				x := f.value(word(p, size, i))
				sum, sizes = sum+x, sizes+math.Abs(x)
			}
			bound := float64(k) * 0x1p-23 * sizes
			if typ == runtime.BF16 {
				bound += 0x1p-8 * math.Abs(sum)
			}
			if x := f.value(word(got, size, i)); !(math.Abs(x-sum) <= bound) {
				return fmt.Errorf("element %d of %v is %v, not %v", i, typ, x, sum)
			}
		}
		if err := alike(ctx, m, sha256.Sum256(got)); err != nil {
			return fmt.Errorf("%v: %w", typ, err)
		}
	}
	return g.Close()
}

// alike has all members compare a checksum.
func alike(ctx context.Context, m *cluster.Member, sum [sha256.Size]byte) error {
	one, err := runtime.Upload(ctx, m.Device(), sum[:])
	if err != nil {
		return err
	}
	defer one.Close()
	all, err := runtime.Alloc[uint8](m.Device(), len(sum)*m.Size())
	if err != nil {
		return err
	}
	defer all.Close()
	if err := m.AllGather(ctx, nil, all, one); err != nil {
		return err
	}
	if err := m.Barrier(ctx, nil); err != nil {
		return err
	}
	got, err := runtime.HostBytes(all)
	if err != nil {
		return err
	}
	if !bytes.Equal(got, bytes.Repeat(sum[:], m.Size())) {
		return errors.New("members have other bits")
	}
	return nil
}
