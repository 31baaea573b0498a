package cluster

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

// trial is a collective of T on all members of a job, with the results of each.
type trial[T number] struct {
	ctx     context.Context
	groups  []*Group
	inPlace bool
	size, n int // members, elements of a part
}

// run uploads what each member has, has f queue a collective, and returns dst of each. Two runs have to give the same
// bits, and src has to stay as it was.
func (c *trial[T]) run(t *testing.T, has func(rank int) []T, room int, at func(rank int) (dst, src Part),
	f func(m *Member, s *runtime.Stream, dst, src *runtime.Buffer) error) [][]T {
	t.Helper()
	var first [][]T
	for range 2 {
		all := make([][]T, c.size)
		errs := do(c.groups, func(m *Member) (err error) {
			all[m.Rank()], err = c.member(m, has(m.Rank()), room, at, f)
			return err
		})
		for rank, err := range errs {
			require.NoError(t, err, "member %d", rank)
		}
		if first == nil {
			first = all
		}
		require.True(t, slices.EqualFunc(first, all, equal[T]), "another run gives other bits")
	}
	return first
}

func (c *trial[T]) member(m *Member, data []T, room int, at func(rank int) (dst, src Part),
	f func(m *Member, s *runtime.Stream, dst, src *runtime.Buffer) error) ([]T, error) {
	s, err := m.Device().NewStream()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var dst, src *runtime.Buffer
	if c.inPlace {
		all, err := runtime.Alloc[T](m.Device(), max(room, len(data)))
		if err != nil {
			return nil, err
		}
		defer all.Close()
		d, from := at(m.Rank())
		if dst, err = all.Slice(d.First, d.Count); err != nil {
			return nil, err
		}
		defer dst.Close()
		if src, err = all.Slice(from.First, from.Count); err != nil {
			return nil, err
		}
	} else {
		if src, err = runtime.Alloc[T](m.Device(), len(data)); err != nil {
			return nil, err
		}
		if dst, err = runtime.Alloc[T](m.Device(), room); err != nil {
			return nil, err
		}
		defer dst.Close()
		if err = s.Write(c.ctx, dst, 0, bytesOf(make([]T, room))); err != nil { // which not all collectives do
			return nil, err
		}
	}
	defer src.Close()
	if err := s.Write(c.ctx, src, 0, bytesOf(data)); err != nil {
		return nil, err
	}
	if err := f(m, s, dst, src); err != nil {
		return nil, err
	}
	got := make([]T, room)
	if err := s.Read(c.ctx, dst, 0, bytesOf(got)); err != nil {
		return nil, err
	}
	if !c.inPlace {
		after := make([]T, len(data))
		if err := s.Read(c.ctx, src, 0, bytesOf(after)); err != nil {
			return nil, err
		}
		if !equal(after, data) {
			return nil, fmt.Errorf("src has changed")
		}
	}
	return got, nil
}

// equal reports whether all bits are equal.
func equal[T number](a, b []T) bool { return string(bytesOf(a)) == string(bytesOf(b)) }

// all checks all collectives of n elements of a part.
func (c *trial[T]) all(t *testing.T, ops ...Op) {
	t.Helper()
	made := map[int][][]T{} // by length and rank
	for _, n := range []int{c.n, c.n * c.size} {
		made[n] = nil
		for rank := range c.size {
			made[n] = append(made[n], numbers[T](uint64(n), rank, n))
		}
	}
	has := func(n int) func(rank int) []T {
		return func(rank int) []T { return made[n][rank] }
	}
	together := func(n int) func(rank int) (Part, Part) {
		return func(int) (Part, Part) { return Part{0, n}, Part{0, n} }
	}
	column := func(n, i int) (xs []T) {
		for rank := range c.size {
			xs = append(xs, has(n)(rank)[i])
		}
		return xs
	}
	n, whole := c.n, c.n*c.size
	for i, op := range ops {
		root := (i + 1) % c.size
		got := c.run(t, has(n), n, together(n), func(m *Member, s *runtime.Stream, dst, src *runtime.Buffer) error {
			return m.AllReduce(c.ctx, s, op, dst, src)
		})
		c.check(t, op, got[0], func(j int) []T { return column(n, j) }, "all-reduce")
		for rank := range got {
			require.True(t, equal(got[0], got[rank]), "%v at member %d", op, rank)
		}
		got = c.run(t, has(n), n, together(n), func(m *Member, s *runtime.Stream, dst, src *runtime.Buffer) error {
			return m.Reduce(c.ctx, s, op, root, dst, src)
		})
		c.check(t, op, got[root], func(j int) []T { return column(n, j) }, "reduce")
		got = c.run(t, has(whole), n, func(rank int) (Part, Part) { return Part{rank * n, n}, Part{0, whole} },
			func(m *Member, s *runtime.Stream, dst, src *runtime.Buffer) error {
				return m.ReduceScatter(c.ctx, s, op, dst, src)
			})
		for rank := range got {
			c.check(t, op, got[rank], func(j int) []T { return column(whole, rank*n+j) }, "reduce-scatter")
		}
	}
	root := c.size / 2
	got := c.run(t, has(n), n, together(n), func(m *Member, s *runtime.Stream, dst, src *runtime.Buffer) error {
		return m.Broadcast(c.ctx, s, root, dst, src)
	})
	for rank := range got {
		require.True(t, equal(has(n)(root), got[rank]), "broadcast to %d", rank)
	}
	got = c.run(t, has(n), whole, func(rank int) (Part, Part) { return Part{0, whole}, Part{rank * n, n} },
		func(m *Member, s *runtime.Stream, dst, src *runtime.Buffer) error {
			return m.AllGather(c.ctx, s, dst, src)
		})
	for rank := range got {
		for from := range c.size {
			require.True(t, equal(has(n)(from), got[rank][from*n:(from+1)*n]), "all-gather from %d to %d", from, rank)
		}
	}
	got = c.run(t, has(whole), whole, together(whole),
		func(m *Member, s *runtime.Stream, dst, src *runtime.Buffer) error {
			return m.AllToAll(c.ctx, s, dst, src)
		})
	for rank := range got {
		for from := range c.size {
			require.True(t, equal(has(whole)(from)[rank*n:(rank+1)*n], got[rank][from*n:(from+1)*n]),
				"all-to-all from %d to %d", from, rank)
		}
	}
	if c.inPlace {
		return // buffers of a transfer are disjoint
	}
	got = c.run(t, has(n), n, together(n), func(m *Member, s *runtime.Stream, dst, src *runtime.Buffer) error {
		if err := m.Barrier(c.ctx, s); err != nil {
			return err
		}
		next, last := (m.Rank()+1)%c.size, (m.Rank()+c.size-1)%c.size
		return m.SendRecv(c.ctx, s, next, src, last, dst)
	})
	for rank := range got {
		require.True(t, equal(has(n)((rank+c.size-1)%c.size), got[rank]), "shift to %d", rank)
	}
}

// check compares a result with what the members have.
func (c *trial[T]) check(t *testing.T, op Op, got []T, of func(i int) []T, what string) {
	t.Helper()
	for i := range got {
		if i > 3000 && i%101 > 0 { // of many, some
			continue
		}
		require.NoError(t, combined(op, of(i), got[i]), "%s, element %d of %d, %d members", what, i, c.n, c.size)
	}
}

var everyOp = []Op{Sum, Mean, Max, Min, Product}

// exercise checks everything with all types on the members of a job.
func exercise(t *testing.T, groups []*Group, lengths []int) {
	t.Helper()
	for _, inPlace := range []bool{false, true} {
		for _, n := range lengths {
			each(t, groups, n, inPlace)
		}
	}
}

func each(t *testing.T, groups []*Group, n int, inPlace bool) {
	t.Helper()
	ctx, size := deadline(t), groups[0].Size()
	(&trial[float32]{ctx, groups, inPlace, size, n}).all(t, everyOp...)
	(&trial[runtime.BFloat16]{ctx, groups, inPlace, size, n}).all(t, everyOp...)
	(&trial[int32]{ctx, groups, inPlace, size, n}).all(t, everyOp...)
	if n > 10_000 {
		return
	}
	(&trial[runtime.Float16]{ctx, groups, inPlace, size, n}).all(t, Sum, Mean, Max)
	(&trial[float64]{ctx, groups, inPlace, size, n}).all(t, Sum, Mean, Product)
	(&trial[int64]{ctx, groups, inPlace, size, n}).all(t, Sum, Mean, Min)
	if n < 100 {
		(&trial[int8]{ctx, groups, inPlace, size, n}).all(t, Sum, Mean)
		(&trial[uint16]{ctx, groups, inPlace, size, n}).all(t, Sum, Max)
		(&trial[uint64]{ctx, groups, inPlace, size, n}).all(t, Sum, Product)
	}
}

var algorithms = []Algorithm{BySize, Direct, Tree, Ring}

// TestVirtual checks all collectives among members of one device: it finds parts that are sent to the wrong member,
// gaps between parts, and kernels that round twice.
func TestVirtual(t *testing.T) {
	lengths := []int{0, 1, 7, 1009}
	if !testing.Short() {
		lengths = append(lengths, 2, 3, 5, 31, 64, 100_000)
	}
	for size := 1; size <= 8; size++ {
		for _, by := range algorithms {
			if testing.Short() && (size == 4 || size > 5 && (size < 8 || by == BySize)) {
				continue
			}
			t.Run(fmt.Sprintf("%d/%v", size, by), func(t *testing.T) {
				g := virtual(t, size, Options{Algorithm: by})
				exercise(t, []*Group{g}, lengths)
				if size > 1 {
					assert.Positive(t, g.Stats().Shared)
				}
				assert.Equal(t, Stats{Shared: g.Stats().Shared}, g.Stats())
				assert.Equal(t, Healthy, g.Members()[0].Health().State)
			})
		}
	}
}

// TestDevices checks collectives among devices that share no memory: those of one driver copy from each other without
// the host.
func TestDevices(t *testing.T) {
	for _, c := range []struct {
		names   []string
		host    bool // payload passes the host
		lengths []int
	}{
		{[]string{"cpu:0", "cpu:0", "cpu:0"}, false, []int{1, 13, 1000}},
		{[]string{"cpu:0", "opencl:0"}, true, []int{2, 1001}},
		{[]string{"opencl:0", "cpu:0", "cpu:0"}, true, []int{5}},
		{[]string{"sim-cuda:0", "sim-cuda:1"}, false, []int{301}},
		{[]string{"sim-cuda:0", "cpu:0", "sim-rocm:0"}, true, []int{17}},
	} {
		t.Run(fmt.Sprint(c.names), func(t *testing.T) {
			var devs []*runtime.Device
			if c.names[0] == "sim-cuda:0" && c.names[1] == "sim-cuda:1" { // of one driver
				devs = append(devs, open(t, c.names[0]))
				other, err := devs[0].Session().Open(t.Context(), c.names[1])
				require.NoError(t, err)
				devs = append(devs, other)
			} else {
				devs = named(t, c.names...)
			}
			for _, by := range algorithms[1:] {
				g, err := Options{Algorithm: by}.Of(devs...)
				group(t, g, err)
				if devs[0].Info().Backend == "cpu" && devs[1].Info().Backend == "cpu" {
					exercise(t, []*Group{g}, c.lengths)
				} else { // which compile every kernel
					ctx := deadline(t)
					for _, n := range c.lengths {
						(&trial[float32]{ctx, []*Group{g}, false, len(devs), n}).all(t, Sum, Mean)
						(&trial[runtime.BFloat16]{ctx, []*Group{g}, true, len(devs), n}).all(t, Sum)
						(&trial[int64]{ctx, []*Group{g}, true, len(devs), n}).all(t, Max)
					}
				}
				got := g.Stats()
				assert.Zero(t, got.Shared)
				assert.Zero(t, got.Link)
				assert.Equal(t, c.host, got.Host > 0, "%+v", got)
				if !c.host {
					assert.Positive(t, got.Direct)
				}
			}
		})
	}
}

// TestNaN has a NaN at one member: it is in the result, also of the largest and the smallest.
func TestNaN(t *testing.T) {
	for _, by := range algorithms[1:] {
		g := virtual(t, 3, Options{Algorithm: by})
		for _, op := range everyOp {
			errs := do([]*Group{g}, func(m *Member) error {
				x := []float32{1, 2, float32(m.Rank())}
				if m.Rank() == 1 {
					x[0] = of[float32](nan)
				}
				b, err := runtime.Upload(t.Context(), m.Device(), x)
				if err != nil {
					return err
				}
				defer b.Close()
				if err = m.AllReduce(t.Context(), nil, op, b, b); err == nil {
					err = runtime.Read(t.Context(), b, x)
				}
				if !math.IsNaN(float(x[0])) || math.IsNaN(float(x[1])) || math.IsNaN(float(x[2])) {
					return fmt.Errorf("%v: %v", op, x)
				}
				return err
			})
			assert.Equal(t, make([]error, 3), errs)
		}
	}
}
