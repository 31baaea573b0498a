package tune

// The search for the best values, one choice after the other.

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/concord-compute/concord/runtime/choice"
)

const (
	// better is how much faster values have to be than the best so far: less is chance.
	better = 1.02
	// enough is the part of a device's roof at which a search ends.
	enough = 0.97
	rounds = 3 // in which every choice is tried at most
)

// search looks for values with which a subject is computed in less time than with the defaults, and which trial has
// found correct. It begins with the values from, and tries those of one choice after the other, beside the best
// values of the other ones, until a round changes nothing, the score reaches most, or the time is over. Then it
// leaves out what is no better than the default, and measures the rest once more: chance made it look better than it
// is. It returns the values that are better than the defaults, nil if there are none. If ctx ends, these are not
// known, and it returns from.
func search(ctx context.Context, choices []*choice.Choice, from map[string]int, most float64, end time.Time,
	trial func(values map[string]int, last bool) choice.Trial) map[string]int {
	s := &climb{trial: trial, best: map[string]int{}, score: 1}
	over := func() bool { return ctx.Err() != nil || s.score >= most || !time.Now().Before(end) }
	if len(from) > 0 && !over() {
		s.try(from, 1)
	}
	for range rounds {
		changed := false
		for _, c := range choices {
			for _, v := range c.Values {
				if now, set := s.best[c.Name]; over() || set && v == now || !set && v == c.Default {
					continue
				}
				values := maps.Clone(s.best)
				values[c.Name] = v
				if v == c.Default {
					delete(values, c.Name)
				}
				changed = s.try(values, better) || changed
			}
		}
		if !changed || over() {
			break
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.best)) {
		if len(s.best) > 1 && ctx.Err() == nil && time.Now().Before(end) {
			values := maps.Clone(s.best)
			delete(values, name)
			s.try(values, 1/better)
		}
	}
	if len(s.best) > 0 && ctx.Err() == nil {
		if t := trial(s.best, true); ctx.Err() == nil && (t.Failed != "" || t.Score < better) {
			if maps.Equal(s.best, from) {
				return nil
			}
			return from // which this says nothing of
		}
	}
	if ctx.Err() != nil {
		return from
	}
	return s.best
}

// climb is a search under way.
type climb struct {
	trial func(values map[string]int, last bool) choice.Trial
	best  map[string]int
	score float64 // of best
}

// try takes values as the best ones if they are so many times as fast, and reports that.
func (s *climb) try(values map[string]int, than float64) bool {
	t := s.trial(values, false)
	if t.Failed != "" || t.Slow || t.Score <= s.score*than {
		return false
	}
	s.best, s.score = values, t.Score
	return true
}
