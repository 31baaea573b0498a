package memory

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/mempool"
	"github.com/concord-compute/concord/source"
)

// Buffers that are parts of shared allocations, as on real GPUs, with real kernels. The test
// includes devices whose pools do not split allocations by default.
func TestSplitPool(t *testing.T) {
	s, err := runtime.New(runtime.Config{Fallback: runtime.Require, MemoryMode: driver.PoolSplit})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	list, err := s.Devices(t.Context())
	require.NoError(t, err)
	for _, info := range list {
		if !strings.HasSuffix(info.ID, ":0") {
			continue
		}
		d, err := s.Open(t.Context(), info.ID)
		require.NoError(t, err)
		if c, can := d.Driver().(driver.Compiler); can && hasCompiler(t, c) {
			t.Run(info.ID, func(t *testing.T) { splitPool(t, d) })
		}
		require.NoError(t, d.Close())
	}
}

func splitPool(t *testing.T, d *runtime.Device) {
	require.NoError(t, d.Memory().Record(true))
	require.Equal(t, mempool.Split, d.Memory().Trace().Pools[0].Mode)
	unit, err := source.Parse(text, source.Options{Name: "order.cl"})
	require.NoError(t, err)
	p, err := d.Program(t.Context(), unit)
	require.NoError(t, err)
	stamp, err := p.Kernel("stamp")
	require.NoError(t, err)
	ctx, sizes := t.Context(), []int{1, 63, 64, 65, 1000, 4096, 100_000}
	buffers := map[uint32]*runtime.Buffer{}
	check := func() {
		for tag, b := range buffers {
			got := make([]uint32, b.Len())
			require.NoError(t, runtime.Read(ctx, b, got))
			for i := range got {
				require.Equal(t, tag, got[i], "element %d of %d", i, b.Len())
			}
		}
	}
	for i := range uint32(60) {
		b, err := d.Alloc(runtime.U32, sizes[int(i)%len(sizes)])
		require.NoError(t, err)
		buffers[i] = b
		switch i % 3 { // kernel, fill and copy each write up to the neighbour's first byte
		case 0:
			require.NoError(t, d.Stream().Launch(stamp, runtime.Items(b.Len()), b, i))
		case 1:
			require.NoError(t, d.Stream().Fill(b, i))
		case 2:
			data := make([]uint32, b.Len())
			for j := range data {
				data[j] = i
			}
			require.NoError(t, runtime.Write(ctx, b, data))
		}
		if i >= 20 && i%2 == 0 { // makes holes, which the next buffers fill
			require.NoError(t, buffers[i-20].Close())
			delete(buffers, i-20)
		}
		if i%20 == 19 {
			check()
		}
	}
	st := d.Stats()
	assert.Less(t, st.Memory.Slabs, st.LiveBuffers, "they share allocations")
	for _, b := range buffers {
		require.NoError(t, b.Close())
	}
	require.NoError(t, p.Close())
	require.NoError(t, d.Sync(ctx))
	assert.Zero(t, d.Stats().Memory.Live)
}
