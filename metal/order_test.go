//go:build cgo && linux && metal && simmetal

package metal

// The order between command buffers. The simulated device stops in its kernels or copies until the
// test lets it continue, so that work that fails to wait always runs too early, and a wait that
// never ends always shows.

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/tests/sim"
	"github.com/concord-compute/concord/tests/sim/control"
)

// Commands for control: the kind of work in which the device stops.
const (
	kernels = "slow-kernel:600000"
	copies  = "slow-copy:600000"
)

const orderText = `
kernel void put(global uint *to, uint value) { to[0] = value; }
kernel void tell(global uint *to, global uint *also, uint value) { to[0] = value; also[0] = value; }
kernel void take(global uint *to, global const uint *from) { to[0] = from[0]; }`

// orderly is a device whose work a test holds up.
type orderly struct {
	*testing.T
	device          driver.Device
	put, tell, take driver.Kernel
	sim             *control.Library
}

func ordered(t *testing.T, ordinal int) *orderly {
	d := openAt(t, ordinal)
	m := sim.Load(t, d, orderText)
	t.Cleanup(func() { assert.NoError(t, m.Close()) })
	o := &orderly{T: t, device: d}
	for name, k := range map[string]*driver.Kernel{"put": &o.put, "tell": &o.tell, "take": &o.take} {
		var err error
		*k, err = m.Kernel(name)
		require.NoError(t, err)
	}
	var err error
	o.sim, err = control.Open("../build/sim/libSimMetal.so")
	require.NoError(t, err)
	return o
}

// hold sets the kind of work in which the device stops.
func (o *orderly) hold(what string) {
	o.Helper()
	require.NoError(o, o.sim.Control(what))
}

// stream makes a stream. The device continues when the test ends, even if it fails.
func (o *orderly) stream() driver.Stream {
	s, err := o.device.NewStream()
	require.NoError(o, err)
	o.Cleanup(func() {
		o.hold("")
		_ = s.Close()
	})
	return s
}

// memory returns memory for one number, 0 at first, and the host's view of it, if there is one.
func (o *orderly) memory(kind driver.MemoryKind) (driver.Memory, []byte) {
	m, err := o.device.Alloc(4, kind)
	require.NoError(o, err)
	o.Cleanup(func() { assert.NoError(o, o.device.Free(m)) })
	s := o.stream()
	require.NoError(o, s.Upload(context.Background(), m, make([]byte, 4)))
	require.NoError(o, s.Sync(context.Background()))
	host, _ := o.device.(driver.HostVisible).HostBytes(m)
	return m, host
}

// launch launches a kernel with memory arguments, followed by a value unless it is 0.
func (o *orderly) launch(s driver.Stream, k driver.Kernel, value uint32, list ...driver.Memory) {
	o.Helper()
	l := driver.Launch{Kernel: k, Dim: 1, Global: [3]int{1, 1, 1}, Local: [3]int{1, 1, 1}}
	for _, m := range list {
		l.Args = append(l.Args, driver.Arg{Kind: driver.ArgMemory, Memory: m})
	}
	if value != 0 {
		l.Args = append(l.Args, driver.Arg{Kind: driver.ArgValue, Size: 4})
		l.Data = binary.LittleEndian.AppendUint32(nil, value)
	}
	require.NoError(o, s.Launch(&l))
}

func (o *orderly) record(s driver.Stream, timing bool) driver.Event {
	o.Helper()
	e, err := s.Record(timing)
	require.NoError(o, err)
	o.Cleanup(func() { assert.NoError(o, e.Close()) })
	return e
}

// soon checks that f returns.
func (o *orderly) soon(f func() error) error {
	o.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	return o.back(done)
}

func (o *orderly) back(done <-chan error) error {
	o.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(30 * time.Second):
		o.Fatal("it waits for ever")
		return nil
	}
}

// after checks that f does not return before the device continues.
func (o *orderly) after(f func() error) {
	o.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		o.Fatalf("it did not wait (%v)", err)
	case <-time.After(20 * time.Millisecond):
	}
	o.hold("")
	require.NoError(o, o.back(done))
}

func number(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

func both(t *testing.T, f func(o *orderly)) {
	for ordinal, name := range []string{"unified", "discrete"} {
		t.Run(name, func(t *testing.T) { f(ordered(t, ordinal)) })
	}
}

// Waiting for a stream includes work that is not committed yet: the second of two launches, while
// the device runs the first.
func TestOrderHost(t *testing.T) {
	ctx := context.Background()
	polled := func(e driver.Event) error {
		for {
			if done, err := e.Done(); done || err != nil {
				return err
			}
			time.Sleep(time.Millisecond)
		}
	}
	for name, wait := range map[string]func(o *orderly, s driver.Stream, m driver.Memory) func() error{
		"sync": func(_ *orderly, s driver.Stream, _ driver.Memory) func() error {
			return func() error { return s.Sync(ctx) }
		},
		"close": func(_ *orderly, s driver.Stream, _ driver.Memory) func() error { return s.Close },
		"event": func(o *orderly, s driver.Stream, _ driver.Memory) func() error {
			e := o.record(s, false)
			return func() error { return e.Wait(ctx) }
		},
		"timed event": func(o *orderly, s driver.Stream, _ driver.Memory) func() error {
			e := o.record(s, true)
			return func() error { return e.Wait(ctx) }
		},
		"polled event": func(o *orderly, s driver.Stream, _ driver.Memory) func() error {
			e := o.record(s, false)
			return func() error { return polled(e) }
		},
		"download": func(_ *orderly, s driver.Stream, m driver.Memory) func() error {
			return func() error {
				b := make([]byte, 4)
				if err := s.Download(ctx, b, m); err != nil || number(b) == 2 {
					return err
				}
				return fmt.Errorf("the download brought %d", number(b))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(o *orderly) {
				s := o.stream()
				m, _ := o.memory(driver.OnDevice)
				pinned, host := o.memory(driver.Pinned)
				o.hold(kernels)
				o.launch(s, o.put, 1, pinned)
				o.launch(s, o.tell, 2, pinned, m)
				o.after(wait(o, s, m))
				assert.EqualValues(o, 2, number(host))
			})
		})
	}
}

// Work that a stream queues after a wait runs after the event, whether or not the event's command
// buffer was committed when the wait was queued.
func TestOrderWait(t *testing.T) {
	for _, timing := range []bool{false, true} {
		for launches := range uint32(3) {
			for _, busy := range []bool{false, true} {
				t.Run(fmt.Sprintf("timing %v, %d launches, busy %v", timing, launches+1, busy), func(t *testing.T) {
					both(t, func(o *orderly) {
						p, q := o.stream(), o.stream()
						a, _ := o.memory(driver.OnDevice)
						b, _ := o.memory(driver.OnDevice)
						c, host := o.memory(driver.Pinned)
						o.hold(kernels)
						if busy {
							o.launch(q, o.put, 9, c)
						}
						for i := range launches + 1 {
							o.launch(p, o.put, i+1, a)
						}
						require.NoError(o, q.Wait(o.record(p, timing)))
						require.NoError(o, q.Copy(b, a))
						require.NoError(o, q.Copy(c, b))
						o.after(func() error { return q.Sync(context.Background()) })
						assert.Equal(o, launches+1, number(host))
					})
				})
			}
		}
	}
}

// A wait is work: an event after a wait alone is reached only after the awaited event.
func TestOrderChain(t *testing.T) {
	both(t, func(o *orderly) {
		p, q, r := o.stream(), o.stream(), o.stream()
		a, _ := o.memory(driver.OnDevice)
		b, host := o.memory(driver.Pinned)
		o.hold(kernels)
		o.launch(p, o.put, 1, a)
		require.NoError(o, q.Wait(o.record(p, false)))
		passed := o.record(q, false)
		require.NoError(o, r.Wait(passed))
		require.NoError(o, r.Copy(b, a))
		done, err := passed.Done()
		require.NoError(o, err)
		assert.False(o, done)
		o.after(func() error { return r.Sync(context.Background()) })
		assert.EqualValues(o, 1, number(host))
		require.NoError(o, passed.Wait(context.Background()))
	})
}

// Work that was queued before a wait does not wait.
func TestOrderBefore(t *testing.T) {
	both(t, func(o *orderly) {
		p, q := o.stream(), o.stream()
		a, _ := o.memory(driver.OnDevice)
		b, _ := o.memory(driver.OnDevice)
		c, host := o.memory(driver.Pinned)
		o.hold(kernels + "," + copies)
		o.launch(p, o.put, 1, a)
		first := o.record(p, false)
		require.NoError(o, q.Copy(b, c))         // keeps the device busy
		require.NoError(o, q.Fill(c, []byte{5})) // so that this is not committed
		before := o.record(q, false)
		require.NoError(o, q.Wait(first))
		require.NoError(o, q.Copy(c, a))
		o.hold(kernels)
		require.NoError(o, o.soon(func() error { return before.Wait(context.Background()) }))
		assert.EqualValues(o, 0x05050505, number(host))
		o.after(func() error { return q.Sync(context.Background()) })
		assert.EqualValues(o, 1, number(host))
	})
}

// A copy from the host does not overtake a kernel that reads the memory that the copy changes.
func TestOrderUpload(t *testing.T) {
	both(t, func(o *orderly) {
		s := o.stream()
		a, _ := o.memory(driver.OnDevice)
		b, host := o.memory(driver.Pinned)
		ctx := context.Background()
		require.NoError(o, s.Upload(ctx, a, []byte{1, 0, 0, 0}))
		require.NoError(o, s.Sync(ctx))
		o.hold(kernels)
		o.launch(s, o.take, 0, b, a)
		require.NoError(o, s.Upload(ctx, a, []byte{2, 0, 0, 0}))
		o.after(func() error { return s.Sync(ctx) })
		assert.EqualValues(o, 1, number(host))
		o.launch(s, o.take, 0, b, a)
		require.NoError(o, s.Sync(ctx))
		assert.EqualValues(o, 2, number(host))
	})
}

// Data in the stream's staging memory is not overwritten before it was copied.
func TestOrderStaging(t *testing.T) {
	o := ordered(t, 1)
	s := o.stream()
	m, err := o.device.Alloc(12<<20, driver.OnDevice)
	require.NoError(t, err)
	defer o.device.Free(m)
	want, got := make([]byte, m.Size), make([]byte, m.Size)
	for i := range want {
		want[i] = byte(i>>20 + i)
	}
	o.hold("slow-copy:10")
	require.NoError(t, s.Upload(context.Background(), m, want))
	require.NoError(t, s.Download(context.Background(), got, m))
	assert.True(t, bytes.Equal(want, got))
}

// Managed memory that a queued command buffer writes is not copied from the host again.
func TestOrderManaged(t *testing.T) {
	o := ordered(t, 1)
	s := o.stream()
	m, seen := o.memory(driver.Unified)
	flag, raised := o.memory(driver.Pinned)
	out, host := o.memory(driver.Pinned)
	o.hold(kernels + "," + copies)
	o.launch(s, o.put, 9, out)      // one command buffer
	o.launch(s, o.tell, 1, m, flag) // and another one, with the copy, in which the device stops
	require.NoError(t, s.Copy(out, flag))
	_, err := o.record(s, false).Done()
	require.NoError(t, err)
	o.hold(copies)
	require.Eventually(t, func() bool { return number(raised) != 0 }, time.Minute, time.Millisecond)
	assert.Zero(t, number(seen), "the host does not see it before the batch has ended")
	o.launch(s, o.take, 0, out, m)
	o.after(func() error { return s.Sync(context.Background()) })
	assert.EqualValues(t, 1, number(host))
	assert.EqualValues(t, 1, number(seen))
}

// Work that is held back until the device is idle is committed when it is, without a further call.
func TestOrderHandedOver(t *testing.T) {
	both(t, func(o *orderly) {
		s := o.stream()
		m, host := o.memory(driver.Pinned)
		o.hold(kernels)
		o.launch(s, o.put, 1, m)
		o.launch(s, o.put, 2, m)
		o.hold("")
		require.Eventually(o, func() bool { return number(host) == 2 }, 30*time.Second, time.Millisecond)
	})
}

// Work that waits for failing work ends, and fails, too.
func TestOrderFailure(t *testing.T) {
	both(t, func(o *orderly) {
		p, q := o.stream(), o.stream()
		a, _ := o.memory(driver.OnDevice)
		b, _ := o.memory(driver.OnDevice)
		o.hold(copies)
		require.NoError(o, p.Copy(b, a))
		o.launch(p, o.put, 1, a)
		require.NoError(o, q.Wait(o.record(p, false)))
		require.NoError(o, q.Fill(b, []byte{7}))
		o.hold("launch-late:1")
		err := o.soon(func() error { return q.Sync(context.Background()) })
		assert.ErrorIs(o, err, driver.ErrLaunch)
		assert.ErrorIs(o, p.Sync(context.Background()), driver.ErrLaunch)
	})
}
