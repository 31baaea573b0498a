package parity

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/parity"
	"github.com/concord-compute/concord/source"
)

// TestVectorAddAnywhere adds parts of arrays that begin at any element, by every width: vectors need no more than the
// alignment of an element, and nothing outside of the part is written.
func TestVectorAddAnywhere(t *testing.T) {
	const room = 80
	s, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	require.NoError(t, err)
	defer s.Close()
	for _, device := range []string{"cpu:0", "opencl:0"} {
		dev, err := s.Open(t.Context(), device)
		if err != nil {
			t.Logf("%s is not here: %v", device, err)
			continue
		}
		x := make([]float32, room)
		for i := range x {
			x[i] = float32(i*i) / 4
		}
		for _, width := range []int{1, 2, 4, 8, 16} {
			k, _, err := parity.Kernel(t.Context(), dev, "vector_add", "vector_add",
				runtime.ProgramOptions{Implementation: runtime.Portable}, source.Define{Name: "WIDTH", Value: fmt.Sprint(width)})
			if errors.Is(err, runtime.ErrUnsupported) {
				t.Skip(err) // no compiler
			}
			require.NoError(t, err)
			for _, at := range [][3]int{{0, 0, 0}, {1, 2, 3}, {7, 1, 0}, {3, 3, 3}, {5, 16, 1}} {
				for _, n := range []int{1, 15, 16, 17, 47} {
					var whole, part [3]*runtime.Buffer
					for i := range whole {
						whole[i], err = runtime.Upload(t.Context(), dev, x)
						require.NoError(t, err)
						part[i], err = whole[i].Slice(at[i], n)
						require.NoError(t, err)
					}
					items, group, err := kernels.Geometry(k.Unit(), k.Name(), n)
					require.NoError(t, err)
					require.NoError(t, dev.Stream().Launch(k, runtime.Grid{Items: items, Group: group}, part[0], part[1], part[2],
						uint64(n)))
					got := make([]float32, room)
					require.NoError(t, runtime.Read(t.Context(), whole[2], got))
					for i := range got {
						want := x[i]
						if j := i - at[2]; j >= 0 && j < n {
							want = x[at[0]+j] + x[at[1]+j]
						}
						require.Equal(t, want, got[i], "%s: element %d of %d at %v, width %d", device, i, n, at, width)
					}
					for i := range whole {
						assert.NoError(t, part[i].Close())
						assert.NoError(t, whole[i].Close())
					}
				}
			}
		}
		assert.NoError(t, dev.Close())
	}
}
