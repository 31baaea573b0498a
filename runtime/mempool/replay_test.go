package mempool

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

// logUniform returns a size from 64 B to 256 MiB, with all orders of magnitude equally likely.
func logUniform(r *rand.Rand) int64 {
	return int64(math.Exp(math.Log(64) + r.Float64()*math.Log(256<<20/64)))
}

// Very many operations of random sizes: reserved memory stays close to the peak of live memory, and
// nearly every get is served without the driver.
func TestReplayRandom(t *testing.T) {
	ops := 200_000
	if os.Getenv("MEMPOOL_FULL") != "" { // make test-memory
		ops = 1_000_000
	}
	for _, tc := range []struct {
		name string
		live func(i int) int // the number of blocks that should be live
	}{
		{"few", func(int) int { return 30 }},
		{"steady", func(int) int { return 400 }},
		{"waves", func(i int) int { return 50 + int(300*(1+math.Sin(float64(i)/20000))) }},
		{"phases", func(i int) int { return 20 + 300*(i/50000%2) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			src := &fakeSource{}
			p := New(src, Options{SoftLimit: 1 << 40})
			m := &ledger{ranges: map[uint64][]Block{}}
			for i := range ops {
				if n := tc.live(i); len(m.live) > 0 && r.IntN(2*n) < len(m.live) {
					b := m.take(r.IntN(len(m.live)))
					require.NoError(t, p.Put(b.ID, nil, 0))
				} else {
					b, err := p.Get(logUniform(r), driver.OnDevice, nil)
					require.NoError(t, err)
					m.add(t, b)
				}
				m.check(t, src, p)
			}
			s := p.Stats()
			ratio := float64(s.PeakReserved) / float64(s.PeakLive)
			t.Logf("peak live %s, reserved %.3f of it, hits %.4f, driver %d, internal %.4f", driver.FormatBytes(s.PeakLive),
				ratio, s.Efficiency(), s.DriverAllocs, s.Internal())
			assert.LessOrEqual(t, ratio, 1.35)
			assert.GreaterOrEqual(t, 1-float64(src.allocs)/float64(m.gets), 0.95, "as the driver counts")
			assert.Equal(t, src.held, s.Reserved)
			for _, b := range m.live {
				require.NoError(t, p.Put(b.ID, nil, 0))
			}
			require.NoError(t, p.Close())
			assert.Zero(t, src.held)
			assert.NoError(t, src.wrong)
		})
	}
}

// ledger is the model for a pool over many operations: the ranges of live blocks, which must not
// overlap, and sums.
type ledger struct {
	live        []Block
	ranges      map[uint64][]Block // by allocation, in the order of their offsets
	held, asked int64
	gets, puts  int64
	most        int64
}

// size returns the bytes that a pool in mode Split holds for a block.
func size(b Block) int64 { return roundUp(b.Memory.Size, 256) }

func (m *ledger) add(t *testing.T, b Block) {
	list := m.ranges[b.Memory.Handle]
	i, _ := slices.BinarySearchFunc(list, b.Memory.Offset, func(x Block, off int64) int {
		return cmp.Compare(x.Memory.Offset, off)
	})
	if i > 0 && list[i-1].Memory.Offset+size(list[i-1]) > b.Memory.Offset || i < len(list) && b.Memory.Offset+
		size(b) > list[i].Memory.Offset {
		require.Fail(t, "overlap", "%+v", b)
	}
	m.ranges[b.Memory.Handle] = slices.Insert(list, i, b)
	m.live = append(m.live, b)
	m.held += size(b)
	m.asked += b.Memory.Size
	m.gets++
	m.most = max(m.most, m.held)
}

func (m *ledger) take(j int) Block {
	b := m.live[j]
	m.live[j] = m.live[len(m.live)-1]
	m.live = m.live[:len(m.live)-1]
	m.ranges[b.Memory.Handle] = slices.DeleteFunc(m.ranges[b.Memory.Handle], func(x Block) bool { return x.ID == b.ID })
	m.held -= size(b)
	m.asked -= b.Memory.Size
	m.puts++
	return b
}

func (m *ledger) check(t *testing.T, src *fakeSource, p *Pool) {
	s := p.Counters()
	want := s
	want.Live, want.Requested, want.Reserved, want.Cached = m.held, m.asked, src.held, src.held-m.held
	want.LiveBlocks, want.Allocations, want.Deallocations, want.PeakLive = int64(len(m.live)), m.gets, m.puts, m.most
	want.PeakReserved, want.DriverAllocs, want.DriverFrees, want.Slabs = src.most, src.allocs, src.frees,
		src.allocs-src.frees
	want.Hits = m.gets - s.Misses
	if s != want {
		require.Equal(t, want, s)
	}
}

// backed is a driver with real memory.
type backed struct {
	fakeSource
	bytes map[uint64][]byte
}

func (s *backed) Alloc(n int64, kind driver.MemoryKind) (driver.Memory, error) {
	m, err := s.fakeSource.Alloc(n, kind)
	s.bytes[m.Handle] = make([]byte, n)
	return m, err
}

func (s *backed) Free(m driver.Memory) error {
	delete(s.bytes, m.Handle)
	return s.fakeSource.Free(m)
}

// Patterns at both ends of every block are unchanged when the block is put back.
func TestPatternsAtBlockEnds(t *testing.T) {
	for _, mode := range []Mode{Split, Whole, Exact} {
		r := rand.New(rand.NewPCG(7, 8))
		src := &backed{bytes: map[uint64][]byte{}}
		p := New(src, Options{Mode: mode, SoftLimit: 48 << 20})
		var live []Block
		ends := func(b Block) (first, last []byte) {
			from := src.bytes[b.Memory.Handle][b.Memory.Offset:]
			return from[:8], from[b.Memory.Size-8 : b.Memory.Size]
		}
		for i := range 60_000 {
			if len(live) > 0 && r.IntN(2*(20+i/20000*80)) < len(live) {
				j := r.IntN(len(live))
				first, last := ends(live[j])
				for _, end := range [][]byte{first, last} {
					require.Equal(t, uint64(live[j].ID), binary.LittleEndian.Uint64(end), mode)
				}
				require.NoError(t, p.Put(live[j].ID, nil, 0))
				live[j] = live[len(live)-1]
				live = live[:len(live)-1]
				continue
			}
			b, err := p.Get(64+int64(math.Exp2(r.Float64()*20)), driver.OnDevice, nil)
			require.NoError(t, err)
			first, last := ends(b)
			binary.LittleEndian.PutUint64(first, uint64(b.ID))
			binary.LittleEndian.PutUint64(last, uint64(b.ID))
			live = append(live, b)
		}
		for _, b := range live {
			require.NoError(t, p.Put(b.ID, nil, 0))
		}
		require.NoError(t, p.Close())
		assert.Zero(t, src.held)
	}
}
