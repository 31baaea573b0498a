//go:build cgo && unix

package cgo

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/tests/sim/null"
)

// Work is timed without waiting for the device: neither the first operation nor those beside a call that reads the
// clock while the device does nothing.
func TestTimeDoesNotWait(t *testing.T) {
	d := openNull(t, vendor())
	s := newStream(t, d)
	null.Hold(true)
	defer null.Hold(false)
	var op uint64
	timed := func() {
		done := make(chan error, 1)
		go func() { op++; done <- s.Time(op) }()
		select {
		case err := <-done:
			require.NoError(t, err)
		case <-time.After(5 * time.Second):
			null.Hold(false)
			require.NoError(t, <-done)
			t.Fatal("it waited")
		}
		require.NoError(t, s.Time(0))
	}
	timed()
	assert.Empty(t, s.Spans(nil))
	var read atomic.Bool
	clock := make(chan error, 1)
	go func() {
		_, _, err := s.Clock()
		read.Store(true)
		clock <- err
	}()
	require.Eventually(t, func() bool { return null.Calls("event_wait") > 0 }, 5*time.Second, time.Millisecond)
	timed()
	assert.False(t, read.Load())
	null.Hold(false)
	require.NoError(t, <-clock)
	timed()
	spans := s.Spans(nil)
	require.Len(t, spans, 3)
	device, host, err := s.Clock()
	require.NoError(t, err)
	assert.Positive(t, host)
	assert.LessOrEqual(t, host, driver.Now())
	for i, span := range spans { // the null device's clock goes on by 1,000 at each event
		assert.EqualValues(t, i+1, span.Op)
		assert.EqualValues(t, 1000, span.End-span.Start)
	}
	assert.Less(t, spans[0].Start, device)
	assert.Greater(t, spans[2].Start, device, "it was read before")
}

// A reading of the clock that took long says little, and is not the one that counts.
func TestClockTriesAgain(t *testing.T) {
	d := openNull(t, vendor())
	s := newStream(t, d)
	null.Hold(true)
	defer null.Hold(false)
	host := make(chan int64, 1)
	go func() {
		_, at, err := s.Clock()
		assert.NoError(t, err)
		host <- at
	}()
	require.Eventually(t, func() bool { return null.Calls("event_wait") > 0 }, 5*time.Second, time.Millisecond)
	time.Sleep(10 * time.Millisecond)
	released := driver.Now()
	null.Hold(false)
	assert.GreaterOrEqual(t, <-host, released)
	assert.Less(t, null.Live()["event"], 3, "those that do not count are closed")
}
