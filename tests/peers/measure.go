package main

// Samples, taken in turn.

import (
	"math"
	"slices"
	"time"
)

// contender is one implementation of the work of a row.
type contender struct {
	name, setting string
	work          float64                      // work of one call, if it differs from the row's
	sample        func(n int) (float64, error) // mean nanoseconds of one of n consecutive calls; nil if the contender is missing
	free          func()                       // may be nil
}

// inProcess returns a contender that is called in this process.
func inProcess(name, setting string, f func() error) contender {
	return contender{name: name, setting: setting, sample: func(n int) (float64, error) { return sample(n, f) }}
}

// sample returns the mean time of one of n consecutive calls.
func sample(n int, f func() error) (float64, error) {
	start := time.Now()
	for range n {
		if err := f(); err != nil {
			return 0, err
		}
	}
	took := time.Since(start)
	return float64(took.Nanoseconds()) / float64(n), nil
}

// settle waits until no thread of this process runs, because the threads of some libraries spin for
// a while after a call.
func settle() {
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		used, start := cpuTime(), time.Now()
		time.Sleep(time.Millisecond)
		if cpuTime()-used < time.Since(start)/5 {
			return
		}
	}
}

// batch returns the number of calls that make a sample long enough for the clock.
func batch(once float64) int { return max(1, int(1e6/max(once, 50))) }

// rounds takes samples of each in turn until the budget is over, and at least five
// rounds. Result [i][r] is nanoseconds of contender i in round r. A peer that fails counts as
// missing from then on and has no samples.
func rounds(budget time.Duration, all []contender) ([][]float64, error) {
	times, batches := make([][]float64, len(all)), make([]int, len(all))
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
		_, err := c.sample(1) // it warms up
		once := 0.0
		if err == nil {
			once, err = c.sample(1)
		}
		if err != nil {
			if err := leave(i, err); err != nil {
				return nil, err
			}
		}
		batches[i] = batch(once)
	}
	for start := time.Now(); len(times[0]) < 5 || time.Since(start) < budget; {
		for i, c := range all {
			if c.sample == nil {
				continue
			}
			settle()
			var ns float64
			var err error
			if batches[i] > 1 { // threads that fell asleep are woken
				_, err = c.sample(1)
			}
			if err == nil {
				ns, err = c.sample(batches[i])
			}
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
