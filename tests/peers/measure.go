package main

// Samples, taken in turn.

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// contender is one implementation of the work of a row.
type contender struct {
	name, setting string
	work          float64 // work of one call, if it differs from the row's
	// makes warm calls, and returns the mean nanoseconds of n more; nil if the contender is missing
	sample func(warm, n int) (float64, error)
	free   func() // may be nil
}

// inProcess returns a contender that is called in this process.
func inProcess(name, setting string, f func() error) contender {
	return contender{name: name, setting: setting, sample: func(warm, n int) (float64, error) {
		return sample(warm, n, f)
	}}
}

// sample makes warm calls and returns the mean time of one of the n that follow.
func sample(warm, n int, f func() error) (float64, error) {
	for range warm {
		if err := f(); err != nil {
			return 0, err
		}
	}
	start := time.Now()
	for range n {
		if err := f(); err != nil {
			return 0, err
		}
	}
	took := time.Since(start)
	return float64(took.Nanoseconds()) / float64(n), nil
}

// settle waits until no other thread of this process runs, because the threads of some libraries
// spin for a while after a call.
func settle() {
	for end := time.Now().Add(time.Second); running() > 1 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

// running returns how many threads of this process run or wait for a processor, the calling one
// among them, or 0 where the system does not say. Their processor time would not do: Linux adds the
// time of a running thread at its clock's ticks, which are up to 10 ms apart.
func running() (n int) {
	list, _ := filepath.Glob("/proc/self/task/*/stat")
	for _, name := range list {
		text, _ := os.ReadFile(name) // empty when the thread has ended
		if i := bytes.LastIndexByte(text, ')'); i >= 0 && bytes.HasPrefix(text[i+1:], []byte(" R")) {
			n++
		}
	}
	return n
}

// batch returns how many calls make a sample of a millisecond, long enough for the clock, and how many are made
// before it: the contenders before have filled the caches with their data, and threads sleep. Single calls would
// tell too little of short ones: the first ones after a pause take several times as long.
func batch(c contender) (n, warm int, err error) {
	const sample = 1e6 // ns
	for n = 1; ; {
		once, err := c.sample(1, n)
		if err != nil {
			return 0, 0, err
		}
		once = max(once, 50)
		if enough := int(sample / once); n >= enough/2 {
			if once < 5e7 {
				warm = 1
			}
			return max(1, enough), warm, nil
		}
		n = min(16*n, int(sample/once))
	}
}

// rounds takes samples of each in turn until the budget is over, and at least five
// rounds. Result [i][r] is nanoseconds of contender i in round r. A peer that fails counts as
// missing from then on and has no samples.
func rounds(budget time.Duration, all []contender) ([][]float64, error) {
	times, batches, warm := make([][]float64, len(all)), make([]int, len(all)), make([]int, len(all))
	leave := func(i int, err error) error {
		if !failed(err) {
			return err
		}
		all[i].sample, all[i].setting, times[i] = nil, err.Error(), nil
		return nil
	}
	for i, c := range all {
		if c.sample == nil {
			continue
		}
		var err error
		if batches[i], warm[i], err = batch(c); err != nil {
			if err := leave(i, err); err != nil {
				return nil, err
			}
		}
	}
	for start := time.Now(); len(times[0]) < 5 || time.Since(start) < budget; {
		for i, c := range all {
			if c.sample == nil {
				continue
			}
			settle()
			ns, err := c.sample(warm[i], batches[i])
			if err == nil {
				times[i] = append(times[i], ns)
			} else if err := leave(i, err); err != nil {
				return nil, err
			}
		}
	}
	return times, nil
}

// ratios returns the speed of ours relative to theirs for each round; by is our work divided by
// theirs.
func ratios(ours, theirs []float64, by float64) []float64 {
	r := make([]float64, len(ours))
	for i := range ours {
		r[i] = by * theirs[i] / ours[i]
	}
	return r
}

func quantile(x []float64, q float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	x = slices.Clone(x)
	slices.Sort(x)
	return x[int(q*float64(len(x)-1)+0.5)]
}
