package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/mempool"
)

// Unused memory is given back without a call, but only while the device is open.
func TestUpkeep(t *testing.T) {
	b := &nullBackend{pooled: true}
	s, d := open(t, b, Config{MemoryIdle: time.Millisecond})
	x := buffer(t, d, F32, 1000)
	require.NoError(t, x.Close())
	require.Eventually(t, func() bool { return b.frees.Load() == b.allocs.Load() }, 10*time.Second, time.Millisecond)
	buffer(t, d, F32, 1000)
	require.NoError(t, s.Close())
	d.core.memory.mu.Lock()
	assert.False(t, d.core.memory.upkeep.Stop(), "nothing is left to fire")
	d.core.memory.mu.Unlock()

	_, d = open(t, &nullBackend{pooled: true}, Config{MemoryIdle: -1})
	assert.Nil(t, d.core.memory.upkeep)
	_, d = open(t, &nullBackend{}, Config{})
	assert.Nil(t, d.core.memory.upkeep, "without a pool there is nothing to look after")
}

func TestWatchMemory(t *testing.T) {
	_, d := open(t, &nullBackend{pooled: true, name: "other"}, Config{MemoryEmergency: true})
	require.NoError(t, d.Memory().SetLimits(100<<10, 0))
	var told []string
	require.NoError(t, d.Memory().Watch(mempool.Thresholds{Warn: 0.5}, func(p mempool.Pressure) {
		told = append(told, p.String())
		_ = d.Stats()
		_, err := d.Memory().Trim(0)
		assert.NoError(t, err)
	}))
	x := buffer(t, d, U8, 60<<10)
	require.NoError(t, x.Close())
	buffer(t, d, U8, 4<<10)
	x = buffer(t, d, U8, 90<<10)
	assert.Equal(t, []string{"warn: 64.0 KiB of 100.0 KiB", "warn no more: 0 B of 100.0 KiB"}, told[:2])
	assert.Zero(t, d.Stats().Memory.Cached, "critical: what is kept went")
	assert.ErrorIs(t, d.Memory().Watch(mempool.Thresholds{Warn: 2}, nil), ErrInvalidArgument)
	require.NoError(t, d.Memory().Watch(mempool.Thresholds{}, nil))
	require.NoError(t, x.Close())
	assert.Contains(t, d.Memory().Report(), "memory of other:0")
	used, total, known := mempool.SystemMemory()
	assert.Equal(t, known, total > 0)
	assert.LessOrEqual(t, used, total)
}

// What new buffers hold, and what is left of closed ones.
func TestMemoryFill(t *testing.T) {
	for _, fill := range []driver.Filling{driver.FillZero, driver.FillPattern} {
		b := &nullBackend{pooled: true, told: true, slow: new(atomic.Bool)}
		_, d := open(t, b, Config{MemoryFill: fill})
		x := buffer(t, d, F32, 10)
		assert.Equal(t, []string{"fill"}, b.heard())
		b.slow.Store(true)
		require.NoError(t, x.Close())
		if fill == driver.FillPattern {
			assert.Equal(t, []string{"fill"}, b.heard())
			assert.Positive(t, d.Stats().Deferred, "the memory waits for that")
		} else {
			assert.Empty(t, b.heard())
		}
		b.slow.Store(false)
		y, err := d.Stream().Alloc(F32, 10)
		require.NoError(t, err)
		assert.Equal(t, []string{"fill"}, b.heard())
		require.NoError(t, y.Close())
		require.NoError(t, d.Sync(t.Context()))
		assert.Zero(t, d.Stats().Memory.Live)
	}
	b := &nullBackend{pooled: true, syncErr: errors.New("broken")}
	_, d := open(t, b, Config{MemoryFill: driver.FillZero})
	_, err := d.Alloc(F32, 10)
	assert.ErrorIs(t, err, b.syncErr)
	b.syncErr = nil
	assert.Zero(t, d.Stats().Memory.Live)
	_, err = New(Config{MemoryFill: "water"})
	assert.ErrorIs(t, err, ErrInvalidArgument)
}

func TestTraceMemory(t *testing.T) {
	_, d := open(t, &nullBackend{pooled: true}, Config{})
	assert.Nil(t, d.Memory().Trace())
	x := buffer(t, d, F32, 10)
	require.NoError(t, d.Memory().Record(true))
	require.NoError(t, d.Memory().Record(true))
	require.NoError(t, x.Close())
	trace := d.Memory().Trace()
	require.Len(t, trace.Events, 3) // the slab, the buffer, its end
	assert.Equal(t, "cuda:0", trace.Events[2].Device)
	assert.Equal(t, mempool.Free, trace.Events[2].Kind)
	require.NoError(t, d.Memory().Record(false))
	assert.Nil(t, d.Memory().Trace())
}

// Two devices of two sessions write one file, each time that one is closed.
func TestMemoryTraceFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "program.trace")
	read := func() *mempool.Trace {
		f, err := os.Open(file)
		require.NoError(t, err)
		defer f.Close()
		trace, err := mempool.ReadTrace(f)
		require.NoError(t, err)
		return trace
	}
	s, d := open(t, &nullBackend{pooled: true}, Config{MemoryTrace: file})
	other, e := open(t, &nullBackend{pooled: true}, Config{MemoryTrace: file})
	buffer(t, d, F32, 10)
	buffer(t, e, F32, 10)
	assert.NoFileExists(t, file)
	require.NoError(t, s.Close())
	assert.Equal(t, []string{"cuda:0", "cuda:0#2"}, read().Devices())
	require.NoError(t, other.Close())
	trace := read()
	var frees int
	for _, e := range trace.Events {
		if e.Kind == mempool.Free {
			frees++
		}
	}
	assert.Equal(t, 2, frees)
	s, d = open(t, &nullBackend{pooled: true}, Config{MemoryTrace: file})
	require.NoError(t, d.Memory().Record(true))
	require.NoError(t, d.Memory().Record(false))
	buffer(t, d, F32, 20)
	require.NoError(t, s.Close())
	assert.True(t, slices.ContainsFunc(read().Events, func(e mempool.Event) bool { return e.Bytes == 80 }),
		"recorded to the end")
	s, _ = open(t, &nullBackend{}, Config{MemoryTrace: filepath.Join(file, "nowhere")})
	assert.NoError(t, s.Close(), "a trace that cannot be written is logged")
}
