package tune

// The search for the best values, one choice after the other.

import (
	"context"
	"maps"
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
// found correct. It tries the values of one choice after the other, beside the best values of the other ones, until a
// round changes nothing, the score reaches most, or the time or the context is over. At last the best values are
// measured again: chance made them look better than they are. It returns those that are better than the defaults; nil
// if there are none.
func search(ctx context.Context, choices []*choice.Choice, most float64, end time.Time,
	trial func(values map[string]int, last bool) choice.Trial) map[string]int {
	best, score := map[string]int{}, 1.0
	over := func() bool { return ctx.Err() != nil || score >= most || !time.Now().Before(end) }
	for range rounds {
		changed := false
		for _, c := range choices {
			for _, v := range c.Values {
				if over() {
					break
				}
				if now, set := best[c.Name]; set && v == now || !set && v == c.Default {
					continue
				}
				values := maps.Clone(best)
				values[c.Name] = v
				if v == c.Default {
					delete(values, c.Name)
				}
				if t := trial(values, false); t.Failed == "" && t.Score > score*better {
					best, score, changed = values, t.Score, true
				}
			}
		}
		if !changed || over() {
			break
		}
	}
	if len(best) == 0 || ctx.Err() != nil {
		return nil
	}
	if t := trial(best, true); t.Failed != "" || t.Score < better {
		return nil
	}
	return best
}
