package ann

// Codes of the vectors in lists (product quantization): a search compares these, which are a small part of the
// vectors, and then the vectors of the best.
//
// A code says how a vector differs from the centre of its list, since vectors of a list differ less from it
// than from each other: the same bits say more.

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
)

const (
	mostCode   = 128     // bytes of a code
	bookSample = 1 << 14 // vectors from which the values of codes are made
	mostRefine = 1 << 20
	mostSum    = math.MaxInt16     // of a table's numbers
	mostFar    = math.MaxFloat32   // above which distances are not compared by codes
	perBlock   = kernels.CodeBlock // codes in a block
)

// coder makes codes and compares them, on the CPU, whatever the device of the vectors.
type coder struct {
	dev    *runtime.Device
	ranker kernels.CodeRanker
	bytes  int
	scans  idle[*codeScan]
}

func newCoder(s *runtime.Session, bytes int) (*coder, error) {
	dev, err := s.Open(context.Background(), "cpu:0")
	if err != nil {
		return nil, fmt.Errorf("ann: codes of vectors need the CPU: %w", err)
	}
	r, ok := dev.Driver().(kernels.CodeRanker)
	if !ok {
		return nil, errors.Join(fmt.Errorf("ann: codes of vectors on %v: %w", dev, runtime.ErrUnsupported), dev.Close())
	}
	return &coder{dev: dev, ranker: r, bytes: bytes}, nil
}

func (c *coder) close() error {
	if c == nil {
		return nil
	}
	c.scans.drain((*codeScan).close)
	return c.dev.Close()
}

// alloc returns memory outside of Go's heap.
func (c *coder) alloc(t runtime.Type, n int, tag string) (*runtime.Buffer, []byte, error) {
	buf, err := c.dev.Alloc(t, n)
	if err != nil {
		return nil, nil, err
	}
	buf.SetTag(tag)
	memory, err := runtime.HostBytes(buf)
	if err != nil {
		return nil, nil, errors.Join(err, buf.Close())
	}
	return buf, memory, nil
}

// codeScan has the memory of one thread that makes or compares codes.
type codeScan struct {
	buffers []*runtime.Buffer
	points  []float32 // assigned of them
	codes   []byte
	table   []byte
	found   []uint32
	asked   []float32   // the query as it is compared
	best    []candidate // those that may be among the best, in the order in which they were found
	spare   []candidate
}

func (s *codeScan) close() {
	for _, b := range s.buffers {
		b.Close()
	}
}

func (c *coder) take(dim int) (*codeScan, error) {
	if s, ok := c.scans.take(); ok {
		return s, nil
	}
	s := &codeScan{asked: make([]float32, dim)}
	b := kernels.CodeBook{Bytes: c.bytes}
	longest := codesRun.Values[len(codesRun.Values)-1]
	for _, part := range []struct {
		bytes int
		to    func(memory []byte)
	}{{4 * assigned * dim, func(m []byte) { s.points = elements[float32](m)[:assigned*dim] }},
		{assigned * c.bytes, func(m []byte) { s.codes = m }},
		{b.TableSize(), func(m []byte) { s.table = m }}, {4 * (longest*perBlock + 1), func(m []byte) {
			s.found = elements[uint32](m)
		}}} {
		buf, memory, err := c.alloc(runtime.U8, part.bytes, "codes")
		if err != nil {
			s.close()
			return nil, err
		}
		s.buffers = append(s.buffers, buf)
		part.to(memory)
	}
	return s, nil
}

// codes are those of an index's vectors: for each list those of its rows, in blocks.
type codes struct {
	*coder
	book   kernels.CodeBook
	values *runtime.Buffer // the memory of book
	memory *runtime.Buffer
	blocks []byte     // its contents
	used   int        // blocks that were used
	free   []uint32   // and are not any more
	lists  [][]uint32 // those of each list
}

// newCodes makes codes of no vectors with the values of a book.
func (c *coder) newCodes(dim int, values []float32) (*codes, error) {
	buf, memory, err := c.alloc(runtime.F32, 16*dim, "codes")
	if err != nil {
		return nil, err
	}
	k := &codes{
		coder: c, values: buf, book: kernels.CodeBook{Dim: dim, Bytes: c.bytes, Values: elements[float32](memory)[:16*dim]}}
	copy(k.book.Values, values)
	return k, nil
}

func (c *codes) close() {
	if c == nil {
		return
	}
	c.values.Close()
	if c.memory != nil {
		c.memory.Close()
	}
}

func (c *codes) blockSize() int { return perBlock * c.bytes }

// block returns the memory of a block.
func (c *codes) block(b uint32) []byte { return c.blocks[int(b)*c.blockSize():][:c.blockSize()] }

// reserve makes room for more blocks.
func (c *codes) reserve(more int) error {
	need, have := c.used+max(more-len(c.free), 0), len(c.blocks)/c.blockSize()
	if need <= have {
		return nil
	}
	size := need
	if c.used > 0 {
		size = max(need, have+have/2)
	}
	return c.resize(size)
}

func (c *codes) resize(blocks int) error {
	buf, memory, err := c.alloc(runtime.U8, blocks*c.blockSize(), "codes")
	if err != nil {
		return err
	}
	copy(memory, c.blocks[:min(len(c.blocks), c.used*c.blockSize())])
	if c.memory != nil {
		c.memory.Close()
	}
	c.memory, c.blocks = buf, memory[:blocks*c.blockSize()]
	return nil
}

// hold makes blocks those of lists, of which they have all codes.
func (c *codes) hold(sizes []uint32, blocks []byte) error {
	if err := c.reserve(max(len(blocks)/c.blockSize(), 1)); err != nil {
		return err
	}
	copy(c.blocks, blocks)
	c.lists = make([][]uint32, len(sizes))
	for l, size := range sizes {
		for range (int(size) + perBlock - 1) / perBlock {
			c.lists[l] = append(c.lists[l], uint32(c.used))
			c.used++
		}
	}
	return nil
}

// put sets the code of row i of a list, which may be the next one. There is room.
func (c *codes) put(list uint32, i int, code []byte) {
	if i/perBlock == len(c.lists[list]) {
		b := uint32(c.used)
		if n := len(c.free); n > 0 {
			b, c.free = c.free[n-1], c.free[:n-1]
		} else {
			c.used++
		}
		clear(c.block(b))
		c.lists[list] = append(c.lists[list], b)
	}
	block := c.block(c.lists[list][i/perBlock])
	for j, x := range code {
		block[j*perBlock+i%perBlock] = x
	}
}

// get reads the code of row i of a list.
func (c *codes) get(list uint32, i int, to []byte) {
	block := c.block(c.lists[list][i/perBlock])
	for j := range to {
		to[j] = block[j*perBlock+i%perBlock]
	}
}

// cut leaves the first n codes of a list.
func (c *codes) cut(list uint32, n int) {
	keep := (n + perBlock - 1) / perBlock
	c.free = append(c.free, c.lists[list][keep:]...)
	c.lists[list] = c.lists[list][:keep]
}

// byRow returns the codes of rows, which are in lists.
func (c *codes) byRow(lists [][]uint32, rows int) []byte {
	if c == nil {
		return nil
	}
	all := make([]byte, rows*c.bytes)
	for l, list := range lists {
		for i, row := range list {
			c.get(uint32(l), i, all[int(row)*c.bytes:][:c.bytes])
		}
	}
	return all
}

// lay puts codes of rows, which are in lists, side by side. There is room.
func (c *codes) lay(lists [][]uint32, byRow []byte) {
	c.used, c.free, c.lists = 0, nil, make([][]uint32, len(lists))
	for l, list := range lists {
		for i, row := range list {
			c.put(uint32(l), i, byRow[int(row)*c.bytes:][:c.bytes])
		}
	}
	if 2*c.used < len(c.blocks)/c.blockSize() {
		_ = c.resize(max(c.used, 1)) // without it nothing is lost
	}
}

// parts returns the blocks of one list after the other.
func (c *codes) parts() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, list := range c.lists {
			for _, b := range list {
				if !yield(c.block(b), nil) {
					return
				}
			}
		}
	}
}

// rest sets how a vector differs from the centre of a list.
func (c centres) rest(to, vector []float32, list uint32) {
	for j, m := range c.host[int(list)*len(vector):][:len(vector)] {
		to[j] = vector[j] - m
	}
}

// compared returns a vector as distances from it are coded, in to if it is another one: for cosine with the length 1.
func (x *IVF) compared(to, vector []float32) []float32 {
	if x.coarse.metric.kind != cosine {
		return vector
	}
	length := norm(vector)
	if !(length > 0) {
		return vector
	}
	for j, v := range vector {
		to[j] = float32(float64(v) / length)
	}
	return to
}

// encode returns the codes of vectors in lists.
func (x *IVF) encode(ctx context.Context, c centres, vectors []float32, of []uint32) ([]byte, error) {
	k, dim := c.codes, x.e.dim
	to := make([]byte, len(of)*k.bytes)
	err := divided(ctx, x.e.threads(), (len(of)+assigned-1)/assigned, func(next iter.Seq[int]) error {
		s, err := k.take(dim)
		if err != nil {
			return err
		}
		defer k.scans.give(s)
		for n := range next {
			lo, hi := n*assigned, min((n+1)*assigned, len(of))
			for i := lo; i < hi; i++ {
				c.rest(s.points[(i-lo)*dim:][:dim], x.compared(s.asked, vectors[i*dim:][:dim]), of[i])
			}
			k.ranker.EncodeRows(&k.book, s.points[:(hi-lo)*dim], s.codes[:(hi-lo)*k.bytes])
			copy(to[lo*k.bytes:], s.codes[:(hi-lo)*k.bytes])
		}
		return nil
	})
	return to, err
}

// makeCodes finds the values of codes from a sample of vectors, by k-means in each part of what differs from
// the centres.
func (x *IVF) makeCodes(ctx context.Context, r *rand.Rand, c centres, sample []float32) (*codes, error) {
	dim := x.e.dim
	rows := min(len(sample)/dim, bookSample)
	all := len(sample) / dim
	picked := make([]float32, 0, rows*dim)
	for i := range rows {
		picked = append(picked, sample[i*all/rows*dim:][:dim]...)
	}
	of := make([]uint32, rows)
	if err := x.assign(ctx, c, picked, of); err != nil {
		return nil, err
	}
	k, err := x.coder.newCodes(dim, nil)
	if err != nil {
		return nil, err
	}
	c.codes = k
	b := &k.book
	parts, middle := make([][]float32, 2*b.Bytes), make([][]float32, 2*b.Bytes)
	point, first := make([]float32, dim), r.Perm(rows)
	for i := range rows {
		c.rest(point, x.compared(point, picked[i*dim:][:dim]), of[i])
		for p := range parts {
			parts[p] = append(parts[p], point[b.Part(p):b.Part(p+1)]...)
		}
	}
	for p := range middle {
		width := b.Part(p+1) - b.Part(p)
		for v := range 16 {
			middle[p] = append(middle[p], parts[p][first[v%rows]*width:][:width]...)
		}
	}
	var last []byte
	chosen := make([]uint32, rows)
	for round := 0; ; round++ {
		for p, m := range middle {
			lo, width := b.Part(p), b.Part(p+1)-b.Part(p)
			for v := range 16 {
				for j := range width {
					x := &b.Values[16*(lo+j)+v]
					if *x = m[v*width+j]; *x-*x != 0 { // of differences too large for a float, which nothing is compared by
						*x = 0
					}
				}
			}
		}
		if round == rounds {
			return k, nil
		}
		now, err := x.encode(ctx, c, picked, of)
		if err != nil {
			k.close()
			return nil, err
		}
		if slices.Equal(last, now) {
			return k, nil
		}
		last = now
		for p := range middle {
			for i := range chosen {
				chosen[i] = uint32(now[i*b.Bytes+p/2] >> (p % 2 * 4) & 15)
			}
			move(middle[p], parts[p], chosen, b.Part(p+1)-b.Part(p), x.e.threads())
		}
	}
}

// shortlist appends the rows in lists, of those that are admitted, whose codes are nearest to a query: so many,
// or all if there are fewer. It returns false if they cannot be compared.
func (x *IVF) shortlist(ctx context.Context, rows []uint32, query []float32, lists []uint32, most int,
	a *admitted) ([]uint32, bool, error) {
	k, dim := x.centres.codes, x.e.dim
	s, err := k.take(dim)
	if err != nil {
		return rows, false, err
	}
	defer k.scans.give(s)
	asked, last, bound := x.compared(s.asked, query), near{math.MaxUint64, math.MaxInt64}, false
	s.best = s.best[:0]
	least, longest := x.coder.dev.Choices().Of(codesFirst), x.coder.dev.Choices().Of(codesRun)
	for _, l := range lists {
		if err := ctx.Err(); err != nil {
			return rows, false, err
		}
		list, blocks := x.lists[l], k.lists[l]
		if len(list) == 0 {
			continue
		}
		x.centres.rest(s.points, asked, l)
		base, step := k.ranker.CodeTable(&k.book, s.points[:dim], s.table)
		if !(base < mostFar && step < mostFar) {
			return rows, false, nil
		}
		for b, each := 0, 0; b < len(blocks); b += each {
			limit, run := mostSum, least
			if len(s.best) >= most+max(most, perBlock*least) || !bound && len(s.best) > most {
				last = s.cut(most, x.ids)
				bound = true
			}
			if bound {
				// One more than the largest sum of the best, as rounding may have made that too small; the exact comparison
				// is below.
				if limit = int(min((last.distance()-base)/max(step, 1e-30)+1, mostSum)); limit < 0 {
					break
				}
				run = min(max(least, most/perBlock), longest)
			}
			for each = 1; b+each < len(blocks) && each < run && blocks[b+each] == blocks[b]+uint32(each); each++ {
			}
			found := k.ranker.RankCodes(&k.book, s.table, k.blocks[int(blocks[b])*k.blockSize():][:each*k.blockSize()],
				min(each*perBlock, len(list)-b*perBlock), limit, s.found)
			for _, f := range found {
				row := list[b*perBlock+int(f>>16)]
				if c := candidateOf(base+float32(float32(f&0xffff)*step), row); last.follows(c, x.ids) &&
					(a == nil || a.bits.has(int(row))) {
					s.best = append(s.best, c)
				}
			}
		}
	}
	if len(s.best) > most {
		s.cut(most, x.ids)
	}
	for _, c := range s.best {
		rows = append(rows, c.row())
	}
	return rows, true, nil
}

// cut leaves the n first of the best, in the order that they have, and returns the last of these. Of those at
// equal distances the ones with the smallest ids, which ids has by row, come first.
func (s *codeScan) cut(n int, ids []int64) near {
	s.spare = append(s.spare[:0], s.best...)
	far := lastOf(s.spare, n) >> 32
	s.spare = s.spare[:0] // the ids of those at the distance of the last one
	for _, c := range s.best {
		if c>>32 < far {
			n--
		} else if c>>32 == far {
			s.spare = append(s.spare, candidate(ids[c.row()]))
		}
	}
	last := near{far << 32, int64(lastOf(s.spare, n))}
	s.best = slices.DeleteFunc(s.best, func(c candidate) bool {
		return c>>32 >= far && !last.follows(c, ids) && ids[c.row()] != last.id
	})
	return last
}
