package main

import (
	"os"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// settle waits for a thread that runs, though it has used less time than one tick of the clock. Go may take a
// thread's goroutine from it while the machine is busy, and the thread sleeps then: so one of several tries counts.
func TestSettle(t *testing.T) {
	if _, err := os.Stat("/proc/self/task"); err != nil {
		t.Skip("the system does not tell the state of threads")
	}
	for range 5 {
		if settled() {
			return
		}
	}
	assert.Fail(t, "settle returned while a thread was running")
}

// settled reports whether settle waited for a thread that runs for 30 ms.
func settled() bool {
	start, begun, done := time.Now(), make(chan struct{}), make(chan bool, 1)
	go func() {
		goruntime.LockOSThread()
		close(begun)
		for time.Since(start) < 30*time.Millisecond {
		}
		done <- true
	}()
	<-begun
	settle()
	select {
	case <-done:
		return true
	default:
		<-done
		return false
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
	assert.Equal(t, []int{7, 61}, []int{warmed, timed}, "a sample of short calls is 1 ms, after a call")
	timed = 0
	slowAtFirst := func(_, n int) (float64, error) {
		timed += n
		return 5e3 + 2e4/float64(n), nil
	}
	_, err = rounds(0, []contender{{sample: slowAtFirst}})
	require.NoError(t, err)
	assert.Greater(t, timed, 5*150, "a sample is 1 ms of calls that are not the first ones")
}
