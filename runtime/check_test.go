package runtime

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

// everyOther checks every other launch, and keeps what it gets.
type everyOther struct {
	launches int
	refuse   bool // all copies
	got      []*driver.Sample
	waited   int
	closed   int
}

func (c *everyOther) Wants(t *driver.Tally) bool { c.launches++; return t.Due() && c.launches%2 == 1 }
func (c *everyOther) Admit(bytes int64) bool     { return !c.refuse }
func (c *everyOther) Check(s *driver.Sample)     { c.got = append(c.got, s) }
func (c *everyOther) Wait()                      { c.waited++ }
func (c *everyOther) Close() error               { c.closed++; return nil }

// Copies are in front of and behind the launch that is checked, also in a graph, and nothing of them is left.
func TestCheck(t *testing.T) {
	onBoth(t, func(t *testing.T, b *nullBackend) {
		s, d := open(t, b, Config{})
		k := kernel(t, d, "axpy")
		x, y := buffer(t, d, F32, 64), buffer(t, d, F32, 64)
		launch := func(x, y *Buffer) error { return d.Stream().Launch(k, Items(64), float32(1), x, y, 64) }
		c := &everyOther{}
		stop := s.Check(c)
		b.heard()
		require.NoError(t, launch(x, y))
		assert.Equal(t, []string{"copy", "copy", "launch", "copy"}, since(b), "two that it reads, one that it stores")
		require.NoError(t, launch(x, y))
		assert.Equal(t, []string{"launch"}, since(b))
		require.Len(t, c.got, 1)
		p := c.got[0]
		require.NoError(t, p.Err)
		assert.Equal(t, "axpy", p.Kernel)
		assert.Equal(t, [3]int{64, 1, 1}, p.Global)
		require.Len(t, p.Args, 4)
		assert.Equal(t, driver.SampleArg{Kind: driver.ArgValue, Value: []byte{0, 0, 0x80, 0x3f}}, p.Args[0])
		assert.Equal(t, driver.SampleArg{Kind: driver.ArgMemory, Type: F32, Region: p.Args[1].Region, Bytes: 256}, p.Args[1])
		assert.True(t, p.Args[2].Written)
		require.NoError(t, p.Read(t.Context()))
		require.Len(t, p.Regions, 2)
		assert.Nil(t, p.Regions[p.Args[1].Region].After)
		assert.Len(t, p.Regions[p.Args[2].Region].After, 256)
		assert.EqualValues(t, 2, d.Stats().LiveBuffers)

		half, err := x.Slice(16, 32) // what overlaps is one region
		require.NoError(t, err)
		require.NoError(t, launch(half, x))
		require.Len(t, c.got, 2)
		p = c.got[1]
		assert.Equal(t, []driver.SampleRegion{{Bytes: 256}}, p.Regions)
		assert.Equal(t, [2]int{64, 128}, [2]int{p.Args[1].Offset, p.Args[1].Bytes})
		p.Close()
		p.Close()
		require.NoError(t, launch(x, y))

		require.ErrorIs(t, launch(x, nil), ErrInvalidArgument)
		require.Len(t, c.got, 3)
		assert.ErrorIs(t, c.got[2].Err, ErrInvalidArgument)
		c.refuse = true
		require.NoError(t, launch(x, y))
		require.NoError(t, launch(x, y))
		assert.Len(t, c.got, 3)
		c.refuse, c.launches = false, 0

		g, err := d.Stream().Capture(work(k, x, y, 1))
		require.NoError(t, err)
		assert.Zero(t, c.launches, "nothing runs yet")
		b.heard()
		require.NoError(t, g.Launch(d.Stream()))
		assert.Equal(t, []string{"fill", "copy", "copy", "copy", "launch", "copy"}, since(b))
		require.NoError(t, g.Launch(d.Stream()))
		assert.Equal(t, []string{"fill", "copy", "launch"}, since(b))
		require.Len(t, c.got, 4)
		require.NoError(t, c.got[3].Read(t.Context()))
		require.NoError(t, g.Close())
		require.NoError(t, half.Close())
		assert.EqualValues(t, 2, d.Stats().LiveBuffers)

		require.NoError(t, launch(x, y))
		require.Len(t, c.got, 5)
		stop()
		stop()
		require.NoError(t, launch(x, y))
		assert.Equal(t, 3, c.launches)
		s.Check(c)
		require.NoError(t, s.Close())
		assert.Equal(t, 1, c.closed)
		assert.Error(t, c.got[4].Read(t.Context()), "after the device")
		c.got[4].Close()
	})
}

// The copies in front of a launch that the driver refuses keep their block until they are done.
func TestCheckRefused(t *testing.T) {
	b := &nullBackend{slow: new(atomic.Bool)}
	b.stream = func(s *nullStream) driver.Stream { return refusing{s} }
	s, d := open(t, b, Config{})
	k := kernel(t, d, "axpy")
	x := buffer(t, d, F32, 64)
	c := &everyOther{}
	s.Check(c)
	b.slow.Store(true)
	require.ErrorIs(t, d.Stream().Launch(k, Items(64), float32(1), x, x, 64), ErrLaunch)
	require.Len(t, c.got, 1)
	require.ErrorIs(t, c.got[0].Err, ErrLaunch)
	assert.Positive(t, d.Stats().Deferred)
	assert.Zero(t, b.frees.Load(), "the copies use it")
	b.slow.Store(false)
	assert.Zero(t, d.Stats().Deferred)
	assert.EqualValues(t, 1, b.frees.Load())
	c.got[0].Close()
}

// refusing is a stream that refuses launches.
type refusing struct{ *nullStream }

func (s refusing) Launch(*driver.Launch) error { return ErrLaunch }

// The checker that another one displaces is closed, one that is stopped is not.
func TestCheckDisplaced(t *testing.T) {
	s, _ := open(t, &nullBackend{}, Config{})
	var list [4]everyOther
	for i := range list[:3] {
		s.Check(&list[i])
	}
	s.Check(&list[2])
	assert.Equal(t, [3]int{1, 1, 0}, [3]int{list[0].closed, list[1].closed, list[2].closed})
	s.Check(nil)
	assert.Equal(t, 1, list[2].closed)
	s.Check(&list[3])()
	s.Check(nil)
	assert.Zero(t, list[3].closed)
}

// A device that is closed waits for checks of it.
func TestCheckBeforeClose(t *testing.T) {
	s, d := open(t, &nullBackend{}, Config{})
	c := &everyOther{}
	s.Check(c)
	require.NoError(t, d.Close())
	assert.Equal(t, 1, c.waited)
	s.Check(nil)
	assert.Equal(t, 1, c.closed)
}

// Config.Validate needs a package that this program does not import.
func TestValidateWithoutItsPackage(t *testing.T) {
	s, err := New(Config{Validate: 5})
	require.NoError(t, err)
	assert.Nil(t, s.checker.Load())
	require.NoError(t, s.Close())
	_, err = New(Config{Validate: 5, Strict: true})
	assert.ErrorIs(t, err, ErrUnsupported)
	assert.ErrorContains(t, err, "runtime/validate")
}
