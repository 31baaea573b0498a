package ann

// The lists of an IVF index: k-means, and the centre that is nearest to each vector.

import (
	"context"
	"iter"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/concord-compute/concord/runtime"
)

const rounds, assigned = 10, 256 // of k-means, and vectors of one launch

// due returns how many lists have to be made for so many vectors, 0 if none.
func (x *IVF) due(total int) int {
	switch {
	case x.o.Lists > 0 && x.centres.buf == nil && total/leastInList >= x.o.Lists && total/2 >= x.trained:
		// some centres were looked for before, among NaN alone
		return x.o.Lists
	case x.o.Lists == 0 && x.whole(total) >= leastListed && total/16 >= x.trained:
		return x.usualLists(total)
	}
	return 0
}

// whole returns about how many vectors the whole index has of which this is a shard with n.
func (x *IVF) whole(n int) int {
	if x.share == 0 {
		return n
	}
	return int(min(math.Round(float64(n)/x.share), math.MaxUint32))
}

// usualLists returns how many lists there are for n vectors. A shard has as many as the whole index would have, if
// there are enough vectors: then as many probes find as many of the nearest, in less time.
func (x *IVF) usualLists(n int) int {
	all := usualLists(x.whole(n))
	if x.share > 0 {
		all = min(all, n/leastInList)
	}
	return max(1, all)
}

func usualLists(n int) int { return max(1, int(4*math.Sqrt(float64(n)))) }

// divide makes centres for n lists, and the values of codes, of the vectors that are stored and more of them,
// and returns the lists and codes of the stored rows.
func (x *IVF) divide(ctx context.Context, n int, more []float32) (c centres, to placed, err error) {
	r := rand.New(rand.NewPCG(x.o.Seed, 0))
	sample, err := x.sample(ctx, r, n*mostInSample, more)
	if err != nil {
		return c, to, err
	}
	if c, err = x.means(ctx, r, n, sample); err != nil {
		return c, to, err
	}
	if x.coder != nil && c.n > 0 {
		c.codes, err = x.makeCodes(ctx, r, c, sample)
	}
	if err == nil {
		to.of = make([]uint32, len(x.ids), len(x.ids)+len(more)/x.e.dim)
		x.work.expect(len(x.ids))
		err = x.stored(ctx, func(first int, vectors []float32) error {
			of := to.of[first:][:len(vectors)/x.e.dim]
			if err := x.assign(ctx, c, vectors, of); err != nil || c.codes == nil {
				return err
			}
			codes, err := x.encode(ctx, c, vectors, of)
			to.codes = append(to.codes, codes...)
			return err
		})
	}
	if err != nil {
		c.close()
	}
	return c, to, err
}

// stored calls f for all rows, a number of them at a time, as numbers.
func (x *IVF) stored(ctx context.Context, f func(first int, vectors []float32) error) error {
	each := max(1, (4<<20)/(4*x.e.dim))
	bytes, vectors := make([]byte, x.store().size(each)), make([]float32, each*x.e.dim)
	for lo := 0; lo < len(x.ids); lo += each {
		n := min(each, len(x.ids)-lo)
		if err := x.store().read(ctx, int64(x.store().size(lo)), bytes[:x.store().size(n)]); err != nil {
			return err
		}
		x.e.code.decode(vectors[:n*x.e.dim], bytes[:x.store().size(n)])
		if err := f(lo, vectors[:n*x.e.dim]); err != nil {
			return err
		}
	}
	return nil
}

// sample returns at most so many of the stored vectors and others: finite ones, and for cosine of length 1.
func (x *IVF) sample(ctx context.Context, r *rand.Rand, most int, more []float32) (sample []float32, err error) {
	dim, rows := x.e.dim, len(x.ids)
	from := make([]uint32, 0, rows+len(more)/dim)
	for i := range cap(from) {
		if i >= rows || x.live.has(i) {
			from = append(from, uint32(i))
		}
	}
	chosen := newBitset(cap(from))
	for i := range min(most, len(from)) {
		j := i + r.IntN(len(from)-i)
		from[i], from[j] = from[j], from[i]
		chosen.put(int(from[i]), true)
	}
	sample = make([]float32, 0, min(most, len(from))*dim)
	take := func(first int, vectors []float32) error {
		for i := range len(vectors) / dim {
			if !chosen.has(first + i) {
				continue
			}
			v := vectors[i*dim : (i+1)*dim]
			if length := norm(v); length-length != 0 { // it has components that are NaN or infinite
				continue
			}
			sample = append(sample, v...)
			x.compared(sample[len(sample)-dim:], v)
		}
		return ctx.Err()
	}
	if err := x.stored(ctx, take); err != nil {
		return nil, err
	}
	return sample, take(rows, more)
}

// means finds centres of at most n lists by k-means, from a sample of vectors.
func (x *IVF) means(ctx context.Context, r *rand.Rand, n int, sample []float32) (c centres, err error) {
	dim := x.e.dim
	rows := len(sample) / dim
	n = min(n, rows)
	if n == 0 {
		return c, nil
	}
	middle, of := make([]float32, 0, n*dim), make([]uint32, rows)
	for _, i := range r.Perm(rows)[:n] {
		middle = append(middle, sample[i*dim:(i+1)*dim]...)
	}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	x.work.expect(rounds * rows)
	c, err = x.newCentres(ctx, middle)
	for round := 0; ; round++ {
		if err != nil || round == rounds {
			return c, err
		}
		last := slices.Clone(of)
		if err = x.assign(ctx, c, sample, of); err != nil {
			return c, err
		}
		if round > 0 && slices.Equal(last, of) {
			x.work.did((rounds - 1 - round) * rows) // which is not needed
			return c, nil
		}
		move(middle, sample, of, dim, x.e.threads())
		err = c.bring(ctx, x.coarse)
	}
}

// newCentres returns centres on the device, also after an error.
func (x *IVF) newCentres(ctx context.Context, host []float32) (c centres, err error) {
	if c.buf, err = x.coarse.dev.Alloc(runtime.F32, len(host)); err != nil {
		return c, err
	}
	c.buf.SetTag("centres")
	c.host, c.n = host, len(host)/x.e.dim
	return c, c.bring(ctx, x.coarse)
}

// bring brings the centres to the device.
func (c centres) bring(ctx context.Context, e *engine) error {
	return upload(ctx, e.dev.Stream(), c.buf, 0, bytesOf(c.host))
}

// move makes each centre the mean of its vectors, in sums whose order does not depend on the threads. A centre
// without vectors takes half of the largest list: both move a little to opposite sides.
func move(middle, sample []float32, of []uint32, dim, threads int) {
	n := len(middle) / dim
	starts, order := byList(of, n)
	_ = divided(context.Background(), threads, n, func(next iter.Seq[int]) error {
		sum := make([]float64, dim)
		for l := range next {
			list := order[starts[l]:starts[l+1]]
			if len(list) == 0 {
				continue
			}
			clear(sum)
			for _, i := range list {
				for j, v := range sample[i*dim:][:dim] {
					sum[j] += float64(v)
				}
			}
			for j, s := range sum {
				middle[l*dim+j] = float32(s / float64(len(list)))
			}
		}
		return nil
	})
	sizes := make([]int, n)
	for l := range sizes {
		sizes[l] = starts[l+1] - starts[l]
	}
	for l, size := range sizes {
		if size > 0 {
			continue
		}
		large := 0
		for i, s := range sizes {
			if s > sizes[large] {
				large = i
			}
		}
		sizes[l], sizes[large] = sizes[large]/2, sizes[large]-sizes[large]/2
		for j := range dim {
			v, by := middle[large*dim+j], float32(1./1024)
			if j%2 == 1 {
				by = -by
			}
			middle[l*dim+j], middle[large*dim+j] = v*(1+by), v*(1-by)
		}
	}
}

// assign sets the lists of vectors: those of the nearest centres.
func (x *IVF) assign(ctx context.Context, c centres, vectors []float32, to []uint32) error {
	dim := x.e.dim
	to = to[:len(vectors)/dim]
	if c.buf == nil {
		clear(to)
		x.work.did(len(to))
		return ctx.Err()
	}
	threads := 2 // one copies while the other waits for the device
	if x.coarse.host {
		threads = x.coarse.threads() // the CPU computes a launch for so few centres on one thread
	}
	return divided(ctx, max(threads, 1), (len(to)+assigned-1)/assigned, func(next iter.Seq[int]) (err error) {
		var nearest []uint32
		for i := range next {
			lo, hi := i*assigned, min((i+1)*assigned, len(to))
			if nearest, err = x.nearest(ctx, nearest[:0], c, vectors[lo*dim:hi*dim], 1); err != nil {
				return err
			}
			for i, at := range nearest {
				to[lo+i] = min(at, uint32(c.n-1))
			}
			x.work.did(hi - lo)
		}
		return nil
	})
}
