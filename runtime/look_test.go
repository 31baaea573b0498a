package runtime

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// gated is a backend whose probes wait until they are let go; it counts them.
func gated(name string) (b *nullBackend, probes *atomic.Int64, began chan struct{}, letGo chan struct{}) {
	probes, began, letGo = new(atomic.Int64), make(chan struct{}, 100), make(chan struct{})
	b = &nullBackend{name: name, devices: 1}
	b.probe = func(context.Context) Probe {
		probes.Add(1)
		began <- struct{}{}
		<-letGo
		return Probe{State: driver.Available, Devices: []Info{b.info(0)}}
	}
	return b, probes, began, letGo
}

func TestDiscoveryIsOneFlight(t *testing.T) {
	for _, fresh := range []bool{false, true} {
		b, probes, began, letGo := gated("cuda")
		s := session(t, Config{NoProbeCache: fresh, ProbeTimeout: time.Minute}, b, cpuBackend())
		var started, wg sync.WaitGroup
		for i := range 64 {
			started.Add(1)
			wg.Go(func() {
				started.Done()
				if i%2 == 0 {
					_, err := s.Discover(t.Context())
					assert.NoError(t, err)
					return
				}
				d, err := s.Open(t.Context(), []string{"auto", "cuda:0", "0"}[i%3])
				if assert.NoError(t, err) {
					assert.Equal(t, "cuda:0", d.String())
				}
			})
		}
		<-began
		started.Wait()
		time.Sleep(20 * time.Millisecond) // so that most wait for the look by now
		require.EqualValues(t, 1, probes.Load(), "all share it")
		close(letGo)
		wg.Wait()
		if !fresh {
			assert.EqualValues(t, 1, probes.Load())
		}
	}
}

func TestDiscoveryOutlivesItsFirstCaller(t *testing.T) {
	b, probes, began, letGo := gated("cuda")
	s := session(t, Config{ProbeTimeout: time.Minute}, b, cpuBackend())
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := s.Discover(ctx)
		left <- err
	}()
	<-began
	stayed := make(chan error)
	go func() {
		_, err := s.Discover(t.Context())
		stayed <- err
	}()
	cancel()
	require.ErrorIs(t, <-left, context.Canceled, "it need not wait for the driver")
	close(letGo)
	require.NoError(t, <-stayed, "nor does it end the look of the others")
	_, err := s.Discover(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 1, probes.Load(), "what it found is kept")
}

// fourBackends returns backends of every name, and what was probed.
func fourBackends() (list []driver.Backend, probed func() []string) {
	var mu sync.Mutex
	var names []string
	for _, name := range []string{"cuda", "rocm", "opencl", "cpu"} {
		b := &nullBackend{name: name, devices: 1}
		if name == "cpu" {
			b.kind = driver.CPU
		}
		b.probe = func(context.Context) Probe {
			mu.Lock()
			defer mu.Unlock()
			names = append(names, name)
			return Probe{State: driver.Available, Devices: []Info{b.info(0)}}
		}
		list = append(list, b)
	}
	return list, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return names
	}
}

func TestOpenByNameLeavesOtherDriversAlone(t *testing.T) {
	for name, want := range map[string][]string{
		"cpu": {"cpu"}, " CPU:0": {"cpu"}, "opencl:0": {"opencl"}, "hip": {"rocm"}, "opencl:7": {"opencl"}, "metal:0": nil,
		"vulkan:0": nil,
	} {
		list, probed := fourBackends()
		s := session(t, Config{}, list...)
		_, _ = s.Open(t.Context(), name)
		assert.Equal(t, want, probed(), name)
	}
	list, probed := fourBackends()
	s := session(t, Config{Device: "opencl"}, list...)
	_, err := s.Open(t.Context(), "auto")
	require.NoError(t, err)
	assert.Equal(t, []string{"opencl"}, probed(), "what auto stands for")

	list, probed = fourBackends()
	s = session(t, Config{}, list...)
	_, err = s.Open(t.Context(), "auto")
	require.NoError(t, err)
	assert.Len(t, probed(), 4)
}

func TestIndexIsKnownOnceAllIsListed(t *testing.T) {
	list, _ := fourBackends()
	s := session(t, Config{}, list...)
	d, err := s.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	assert.Equal(t, -1, d.Info().Index, "nobody has looked at the others")
	_, err = s.Devices(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 3, d.Info().Index)
	again, err := s.Open(t.Context(), "opencl:0")
	require.NoError(t, err)
	assert.Equal(t, 2, again.Info().Index)
}

// A device that is opened by its name and fails is replaced as one of the list is.
func TestFallbackLooksForStandIns(t *testing.T) {
	list, probed := fourBackends()
	list[0].(*nullBackend).openErr = fmt.Errorf("busy: %w", ErrOutOfMemory)
	s := session(t, Config{}, list...)
	d, err := s.Open(t.Context(), "cuda:0")
	require.NoError(t, err)
	assert.Equal(t, "rocm:0", d.String(), "the next GPU")
	assert.Equal(t, 1, d.Info().Index)
	assert.Len(t, probed(), 4)

	list, probed = fourBackends()
	list[0].(*nullBackend).openErr = fmt.Errorf("busy: %w", ErrOutOfMemory)
	s = session(t, Config{Fallback: Require}, list...)
	_, err = s.Open(t.Context(), "cuda:0")
	require.ErrorIs(t, err, ErrOutOfMemory)
	assert.Equal(t, []string{"cuda"}, probed(), "nothing may stand in")
}

// hangingBackend has devices that do not open.
type hangingBackend struct {
	*nullBackend
	began chan struct{}
	never chan struct{}
}

func (b *hangingBackend) Open(context.Context, int, *Config) (driver.Device, error) {
	b.began <- struct{}{}
	<-b.never
	return nil, ErrNoDevice
}

func TestOpenBehindOneThatHangs(t *testing.T) {
	b := &hangingBackend{&nullBackend{name: "cuda", devices: 1}, make(chan struct{}, 1), make(chan struct{})}
	s := session(t, Config{Fallback: Require, ProbeTimeout: 100 * time.Millisecond}, b)
	hung := make(chan error)
	go func() {
		_, err := s.Open(context.Background(), "cuda:0")
		hung <- err
	}()
	select {
	case <-b.began:
	case err := <-hung:
		require.NoError(t, err, "it did not come to opening the device")
	}
	_, err := s.Open(context.Background(), "cuda:0")
	require.ErrorIs(t, err, driver.ErrTimeout)
	assert.ErrorContains(t, err, "another call has been opening it for more than 1.2s")
	close(b.never)
	require.ErrorIs(t, <-hung, ErrNoDevice)
}
