package runtime

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/mempool"
)

// Memory ahead of need, and what is given back on request.
func TestPreallocate(t *testing.T) {
	b := &nullBackend{name: "other", pooled: true}
	s, d := open(t, b, Config{})
	require.NoError(t, d.Memory().Preallocate(mempool.Spec{Bytes: 1 << 20, Count: 3}, mempool.Spec{Bytes: 100, Count: 1}))
	made := b.allocs.Load()
	assert.Positive(t, made)
	var list []*Buffer
	for range 3 {
		list = append(list, buffer(t, d, U8, 1<<20))
	}
	assert.Equal(t, made, b.allocs.Load(), "without the driver")
	sizes := d.Memory().Sizes()
	require.NotEmpty(t, sizes)
	assert.GreaterOrEqual(t, sizes[0].Gets, int64(3))
	assert.Contains(t, d.Memory().Report(), "prewarm")
	require.NoError(t, list[0].Close())

	assert.GreaterOrEqual(t, d.Stats().Memory.PeakLive, int64(3<<20))
	require.NoError(t, d.Memory().ResetPeak())
	st := d.Stats()
	assert.EqualValues(t, 2<<20, st.Peak)
	assert.EqualValues(t, 2<<20, st.Memory.PeakLive)
	cached := d.Stats().Memory.Cached
	freed, err := d.Memory().Trim(0)
	require.NoError(t, err)
	assert.Equal(t, cached, freed)
	assert.EqualValues(t, 2<<20, d.Stats().Memory.Reserved, "what is live stays")
	require.NoError(t, list[1].Close())

	_, err = d.Memory().Trim(0)
	require.NoError(t, err)
	require.NoError(t, d.Memory().SetLimits(0, 2<<20))
	assert.ErrorIs(t, d.Memory().Preallocate(mempool.Spec{Bytes: 1 << 20, Count: 3}), ErrBudget)
	assert.EqualValues(t, 1<<20, d.Stats().Memory.Reserved, "all or nothing")
	assert.ErrorIs(t, d.Memory().Preallocate(mempool.Spec{Bytes: -1, Count: 1}), ErrInvalidArgument)
	require.NoError(t, d.Close())
	assert.ErrorIs(t, d.Memory().Preallocate(), ErrClosed)
	assert.ErrorIs(t, d.Memory().ResetPeak(), ErrClosed)
	_, err = d.Memory().Trim(0)
	assert.ErrorIs(t, err, ErrClosed)
	require.NoError(t, s.Close())
}

// What Config says of memory that is kept, of limits on the number of allocations.
func TestMemoryMode(t *testing.T) {
	for mode, want := range map[driver.Pooling]mempool.Mode{"": mempool.Whole, driver.PoolSplit: mempool.Split,
		driver.PoolWhole: mempool.Whole, driver.PoolExact: mempool.Exact} {
		_, d := open(t, &nullBackend{name: "other", pooled: true}, Config{MemoryMode: mode})
		assert.Equal(t, want, poolMode(&d.core.info, &d.core.session.cfg))
		require.NoError(t, d.Memory().Record(true))
		assert.Equal(t, want, d.Memory().Trace().Pools[0].Mode, "%q", mode)
		assert.Equal(t, mempool.PassThrough, poolMode(&d.core.info, &Config{MemoryMode: mode, NoMemoryPool: true}))
	}
	_, err := New(Config{MemoryMode: "any"})
	assert.ErrorIs(t, err, ErrInvalidArgument)
	for _, cfg := range []Config{{MemorySoftCount: -1}, {MemoryHardCount: -1}} {
		_, err := New(cfg)
		assert.ErrorIs(t, err, ErrInvalidArgument)
	}
	b := &nullBackend{name: "other", pooled: true}
	_, d := open(t, b, Config{MemorySoftCount: 1, MemoryHardCount: 2})
	x, y := buffer(t, d, U8, 1<<20), buffer(t, d, U8, 1<<20)
	_, err = d.Alloc(U8, 1<<20)
	assert.ErrorIs(t, err, ErrBudget)
	require.NoError(t, x.Close())
	require.NoError(t, y.Close())
	assert.LessOrEqual(t, d.Stats().Memory.Slabs, int64(1))
}

// The kind of pool follows from the Info of the device, for backends of other modules too.
func TestPoolOfAThirdPartysDevice(t *testing.T) {
	for _, c := range []struct {
		change func(*Info)
		want   mempool.Mode
	}{
		{func(*Info) {}, mempool.Whole},
		{func(i *Info) { i.Suballocation = true }, mempool.Split},
		{func(i *Info) { i.Suballocation, i.Kind = true, driver.CPU }, mempool.Exact},
		{func(i *Info) { i.Suballocation, i.Simulated = true, true }, mempool.Exact},
	} {
		b := &nullBackend{name: "abacus", pooled: true, change: c.change}
		_, d := open(t, b, Config{})
		require.NoError(t, d.Memory().Record(true))
		assert.Equal(t, c.want, d.Memory().Trace().Pools[0].Mode)
		x, y := buffer(t, d, U8, 1000), buffer(t, d, U8, 1000)
		same := x.Memory().Handle == y.Memory().Handle
		assert.Equal(t, c.want == mempool.Split, same, "two buffers are parts of one allocation")
	}
}
