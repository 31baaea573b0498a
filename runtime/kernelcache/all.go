package kernelcache

// Several entries at once, for compilers that build many programs faster together than one by one.

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/concord-compute/concord/runtime/driver"
)

// Result is what GetAll returns for one key: the results of Get.
type Result struct {
	Entry Entry
	Hit   Hit
	Err   error
}

// mostTogether is the largest number of entries that are compiled in one call, each with a lock file
// that is open meanwhile.
const mostTogether = 128

// GetAll is Get for several keys, with one result for each. Entries that are nowhere to be found, and that no other
// caller or process compiles, are passed to compile as indices of keys: in one call, or in a few if they are many. It
// returns an entry or an error for each of them. What others compile is waited for afterwards, so that two callers
// never wait for each other. Equal keys are compiled once.
func (c *Cache) GetAll(ctx context.Context, keys []Key,
	compile func(ctx context.Context, missing []int) ([]Entry, []error)) []Result {
	results := make([]Result, len(keys))
	var others []int
	all := make([]int, len(keys))
	for i := range all {
		all[i] = i
	}
	for part := range slices.Chunk(all, mostTogether) {
		others = append(others, c.getPart(ctx, keys, part, compile, results)...)
	}
	for _, i := range others {
		r := &results[i]
		r.Entry, r.Hit, r.Err = c.Get(ctx, keys[i], func(ctx context.Context) (Entry, error) {
			entries, errs := compile(ctx, []int{i})
			if err := uneven(1, entries, errs); err != nil {
				return Entry{}, err
			}
			return entries[0], errs[0]
		})
	}
	return results
}

// getPart gets some of the entries of GetAll, and returns the indices of those that others compile.
func (c *Cache) getPart(ctx context.Context, keys []Key, part []int,
	compile func(context.Context, []int) ([]Entry, []error), results []Result) (others []int) {
	flights := map[int]*flight{} // those that have not landed
	var led []int
	c.mu.Lock()
	for _, i := range part {
		if it := c.memory.get(keys[i]); it != nil {
			results[i] = Result{it.entry, Memory, it.err}
			if it.err != nil {
				c.stats.NegativeHits++
			} else {
				c.stats.MemoryHits++
			}
		} else if c.flights[keys[i]] != nil {
			others = append(others, i)
		} else {
			flights[i] = c.takeOff(keys[i])
			led = append(led, i)
		}
	}
	c.mu.Unlock()
	done := func(i int) {
		f := flights[i]
		delete(flights, i)
		results[i] = Result{f.entry, f.hit, f.err}
		c.land(keys[i], f)
	}
	var unlocks []func()
	defer func() {
		for i := range flights { // compile panicked
			c.land(keys[i], flights[i])
		}
		for _, unlock := range unlocks {
			unlock()
		}
	}()
	var missing []int
	for _, i := range led {
		f := flights[i]
		if f.err = ctx.Err(); f.err != nil || c.search(keys[i], f) {
			done(i)
			continue
		}
		unlock, err := c.lockWithin(ctx, keys[i], 0)
		switch {
		case errors.Is(err, errLate):
			others = append(others, i)
			done(i)
			continue
		case err != nil:
			f.err = fmt.Errorf("kernel cache: waiting for another process: %w", err)
			done(i)
			continue
		}
		unlocks = append(unlocks, unlock)
		if entry, ok := c.load(keys[i]); ok { // another process finished between the search and the lock
			f.found(entry, Disk)
			done(i)
			continue
		}
		missing = append(missing, i)
	}
	if len(missing) == 0 {
		return others
	}
	c.count(func(s *Stats) { s.Misses += int64(len(missing)); s.Compiles += int64(len(missing)) })
	entries, errs := compile(ctx, missing)
	wrong := uneven(len(missing), entries, errs)
	for k, i := range missing {
		if flights[i].err = wrong; wrong == nil {
			c.compiled(ctx, flights[i], entries[k], errs[k])
		}
		done(i)
	}
	for _, i := range missing {
		if results[i].Err == nil {
			c.store(keys[i], results[i].Entry)
		}
	}
	return others
}

// uneven returns an error unless there are n results.
func uneven(n int, entries []Entry, errs []error) error {
	if len(entries) == n && len(errs) == n {
		return nil
	}
	return fmt.Errorf("kernel cache: %d entries and %d errors for %d programs: %w", len(entries), len(errs), n,
		driver.ErrInvalidArgument)
}
