package tests

import (
	"errors"
	"testing"

	_ "github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
	"github.com/stretchr/testify/require"
)

// On Linux a process may have 65530 memory mappings. A launch on many threads must not use them up,
// because Go's allocator ends the process if it gets none.
func TestManyThreadsLeaveMappings(t *testing.T) {
	s, err := runtime.New(runtime.Config{CPUThreads: 48, CacheDir: "off"})
	require.NoError(t, err)
	defer s.Close()
	d, err := s.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	u, err := source.Parse(`kernel void k(global int *p) {
	local int s[1024];
	int l = get_local_id(0);
	s[l] = l;
	barrier(CLK_LOCAL_MEM_FENCE);
	p[get_global_id(0)] = s[1023 - l];
}`, source.Options{Features: d.Features()})
	require.NoError(t, err)
	p, err := d.Program(t.Context(), u)
	if errors.Is(err, runtime.ErrUnsupported) {
		t.Skip(err)
	}
	require.NoError(t, err)
	k, err := p.Kernel("k")
	require.NoError(t, err)
	const n = 1024 * 200
	b, err := d.Alloc(runtime.I32, n)
	require.NoError(t, err)
	for range 3 {
		require.NoError(t, d.Stream().Launch(k, runtime.Items(n).InGroups(1024), b))
		require.NoError(t, d.Stream().Sync(t.Context()))
	}
	heap := make([][]byte, 2000)
	for i := range heap {
		heap[i] = make([]byte, 1<<18)
	}
	out := make([]int32, n)
	require.NoError(t, runtime.Read(t.Context(), b, out))
	require.EqualValues(t, 1023, out[0])
	require.EqualValues(t, 0, out[n-1])
}
