package tune

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

func unwatched(t *testing.T) (*runtime.Session, *runtime.Device) {
	t.Helper()
	s, err := runtime.New(runtime.Config{Validate: -1})
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	dev, err := s.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	t.Cleanup(func() { dev.Close() })
	return s, dev
}

// TestSubjects launches the smallest size of every subject: its arguments are right. If that takes little time, it is
// judged and measured, too: something judges it.
func TestSubjects(t *testing.T) {
	s, dev := unwatched(t)
	measured := 0
	for _, subject := range catalog() {
		names, least := map[string]bool{}, &subject.Points[0]
		for i := range subject.Points {
			p := &subject.Points[i]
			assert.False(t, names[p.Name], "%s: two sizes are named %s", subject.Name, p.Name)
			names[p.Name] = true
			if p.Flops+p.Bytes < least.Flops+least.Bytes {
				least = p
			}
		}
		if least.Portable {
			continue
		}
		m := &measurement{session: s, dev: dev}
		m.free()
		l, err := m.prepare(t.Context(), least)
		if !assert.NoError(t, err, "%s, %s", subject.Name, least.Name) {
			continue
		}
		assert.NoError(t, dev.Stream().Launch(l.usual.kernel, l.usual.grid, l.args...), "%s, %s", subject.Name, least.Name)
		assert.NoError(t, dev.Stream().Sync(t.Context()), "%s, %s", subject.Name, least.Name)
		if least.Flops < 5e7 && least.Bytes < 10e6 {
			r, _, err := m.point(t.Context(), least, nil, nil)
			assert.NoError(t, err, "%s, %s", subject.Name, least.Name)
			assert.Positive(t, r.Ns, "%s, %s", subject.Name, least.Name)
			measured++
		}
		m.free()
	}
	assert.Greater(t, measured, 10)
}

// TestSame plants results that differ from those of the defaults, of a kernel that nothing judges.
func TestSame(t *testing.T) {
	s, dev := unwatched(t)
	m := &measurement{session: s, dev: dev}
	m.free()
	defer m.free()
	p := nearestOf(20, 5000, 16, 3)
	l, err := m.prepare(t.Context(), &p)
	require.NoError(t, err)
	launch := func() error {
		err := dev.Stream().Launch(l.usual.kernel, l.usual.grid, l.args...)
		return errors.Join(err, dev.Stream().Sync(t.Context()))
	}
	assert.ErrorIs(t, m.judge(launch, 1<<28), errUnjudged)
	assert.NoError(t, m.same(t.Context(), l, launch, launch))
	assert.ErrorContains(t, m.same(t.Context(), l, launch, func() error { return nil }), "not that of the defaults")
	places := l.args[3].(*runtime.Buffer)
	assert.ErrorContains(t, m.same(t.Context(), l, launch, func() error {
		last, err := places.Slice(places.Len()-1, 1)
		if err != nil {
			return err
		}
		defer last.Close()
		return errors.Join(launch(), dev.Stream().Fill(last, uint32(5001)))
	}), "got 5001")
	broken := errors.New("broken")
	assert.ErrorIs(t, m.same(t.Context(), l, launch, func() error { return broken }), broken)
	assert.ErrorIs(t, m.same(t.Context(), l, func() error { return broken }, launch), broken)
}

// TestNumbers holds what buffers of points have.
func TestNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		buffer      Buffer
		least, most float64
	}{
		{Buffer{Type: runtime.F32, Len: 1000}, -1, 1}, {Buffer{Type: runtime.I8, Len: 1000, Least: -100, Most: 20}, -100, 20},
		{Buffer{Type: runtime.U32, Len: 1000, Least: 5, Most: 5}, 5, 5},
		{Buffer{Type: runtime.U32, Len: 1000, Most: 7, Sorted: true}, 0, 7},
	} {
		list := c.buffer.numbers(r)
		require.Len(t, list, c.buffer.Len)
		assert.InDelta(t, c.least, slices.Min(list), (c.most-c.least)/50)
		assert.InDelta(t, c.most, slices.Max(list), (c.most-c.least)/50)
		assert.Equal(t, c.buffer.Sorted || c.least == c.most, slices.IsSorted(list))
	}
}
