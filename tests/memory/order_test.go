// Package memory tests the memory pool with real work on devices.
package memory

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

const text = `kernel void stamp(global uint *x, uint tag) { x[get_global_id(0)] = tag; }
kernel void look(global const uint *x, uint tag, global uint *bad, uint spin) {
	uint s = tag;
	for (uint k = 0; k < spin; k++) s = s * 1664525u + 1013904223u;
	if (x[get_global_id(0)] != tag) atomic_inc(bad);
	if (get_global_id(0) == 0) bad[1] = s;
}`

// hasCompiler reports whether a device runs portable programs here.
func hasCompiler(t testing.TB, c driver.Compiler) bool {
	_, err := c.Identity(t.Context())
	if errors.Is(err, runtime.ErrUnsupported) {
		t.Log(err)
		return false
	}
	require.NoError(t, err)
	return true
}

// devices opens every device that runs portable kernels, including simulated ones if they are
// built.
func devices(t testing.TB, test func(t testing.TB, d *runtime.Device)) {
	s, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	list, err := s.Devices(t.Context())
	require.NoError(t, err)
	for _, info := range list {
		d, err := s.Open(t.Context(), info.ID)
		require.NoError(t, err)
		if c, can := d.Driver().(driver.Compiler); can && hasCompiler(t, c) {
			switch t := t.(type) {
			case *testing.T:
				t.Run(info.ID, func(t *testing.T) { test(t, d) })
			case *testing.B:
				t.Run(info.ID, func(b *testing.B) { test(b, d) })
			}
		}
		require.NoError(t, d.Close())
	}
}

// Two streams allocate the same sizes again and again and close buffers while kernels still read
// them. No kernel may read data that the next user of the memory wrote.
func TestNoReuseBeforeTheLastUse(t *testing.T) {
	devices(t, func(tb testing.TB, d *runtime.Device) {
		t := tb.(*testing.T)
		unit, err := source.Parse(text, source.Options{Name: "order.cl"})
		require.NoError(t, err)
		p, err := d.Program(t.Context(), unit)
		require.NoError(t, err)
		stamp, err := p.Kernel("stamp")
		require.NoError(t, err)
		look, err := p.Kernel("look")
		require.NoError(t, err)
		var wg sync.WaitGroup
		for g := range 2 {
			wg.Go(func() { assert.NoError(t, hammer(t.Context(), d, stamp, look, uint32(g))) })
		}
		wg.Wait()
		require.NoError(t, d.Sync(t.Context()))
		st := d.Stats()
		t.Logf("%d buffers, %d from the driver", st.Allocations, st.Memory.DriverAllocs)
		assert.Zero(t, st.Live+st.Deferred)
		assert.Less(t, st.Memory.DriverAllocs, st.Allocations/2, "memory is reused")
		require.NoError(t, p.Close())
	})
}

const rounds = 200

func hammer(ctx context.Context, d *runtime.Device, stamp, look *runtime.Kernel, g uint32) error {
	s, err := d.NewStream()
	if err != nil {
		return err
	}
	defer s.Close()
	bad, err := runtime.Upload(ctx, d, []uint32{0, 0})
	if err != nil {
		return err
	}
	defer bad.Close()
	alloc := []func(runtime.Type, int) (*runtime.Buffer, error){s.Alloc, d.Alloc}
	for i := range uint32(rounds) {
		n := []int{256, 1024, 1000}[i%3]
		x, err := alloc[i/3%2](runtime.U32, n)
		if err != nil {
			return err
		}
		tag := i*2 + g + 1
		if err := s.Launch(stamp, runtime.Items(n), x, tag); err != nil {
			return err
		}
		if err := s.Launch(look, runtime.Items(n), x, tag, bad, uint32(2000)); err != nil {
			return err
		}
		if err := x.Close(); err != nil {
			return err
		}
		if i%16 == 15 { // otherwise only this stream's own memory would be reused
			if err := s.Sync(ctx); err != nil {
				return err
			}
		}
	}
	if err := s.Sync(ctx); err != nil {
		return err
	}
	count := make([]uint32, 2)
	if err := runtime.Read(ctx, bad, count); err != nil {
		return err
	}
	if count[0] != 0 {
		return &wrong{count[0]}
	}
	return nil
}

type wrong struct{ items uint32 }

func (w *wrong) Error() string { return "memory was reused while a kernel read it" }
