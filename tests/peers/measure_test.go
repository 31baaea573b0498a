package main

import (
	"os"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// settle waits for a thread that runs, though it has used less time than one tick of the clock.
func TestSettle(t *testing.T) {
	if _, err := os.Stat("/proc/self/task"); err != nil {
		t.Skip("the system does not tell the state of threads")
	}
	const spin = 30 * time.Millisecond
	start, begun, done := time.Now(), make(chan struct{}), make(chan time.Duration, 1)
	go func() {
		goruntime.LockOSThread()
		close(begun)
		for time.Since(start) < spin {
		}
		done <- time.Since(start)
	}()
	<-begun
	settle()
	select {
	case <-done:
	default:
		assert.Fail(t, "settle returned while a thread was running")
	}
}

func TestRounds(t *testing.T) {
	var warmed, timed int
	slow := func(warm, n int) (float64, error) { warmed += warm; timed += n; return 1e8, nil }
	times, err := rounds(0, []contender{{sample: slow}})
	require.NoError(t, err)
	assert.Len(t, times[0], 5)
	assert.Equal(t, []int{1, 6}, []int{warmed, timed}, "long calls are made once")
	warmed, timed = 0, 0
	fast := func(warm, n int) (float64, error) { warmed += warm; timed += n; return 1e5, nil }
	_, err = rounds(0, []contender{{sample: fast}})
	require.NoError(t, err)
	assert.Equal(t, []int{6, 51}, []int{warmed, timed}, "a sample of short calls is 1 ms, after a call")
}
