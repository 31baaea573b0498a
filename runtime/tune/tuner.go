package tune

// The tuner: it asks child processes to measure candidates, and collects what they find.

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/concord-compute/concord/runtime/choice"
	"github.com/concord-compute/concord/runtime/profile"
)

const (
	// margin is how many times as fast values have to be that are found at first use, as the program computes at the same
	// time, and how many times as long anything else may take.
	margin = 1.05
	// searchWork are the operations of a candidate's result that is judged whole.
	searchWork = 1 << 24
	// fewPatience is how long a candidate may take for one size where its subject's share of the time is less.
	fewPatience = 10 * time.Second
)

// tuner is one Run, or the tuning of one subject at first use.
type tuner struct {
	opt      Options
	state    *choice.State
	now      func(c *choice.Choice) int // the values with which a search begins
	kept     *choice.Table              // that they are from; nil: they are the defaults
	first    bool                       // at first use: nothing may take longer, and the device's memory is the program's
	refused  string                     // why values that were found last were not taken
	start    time.Time
	roof     profile.Roof
	children *children
	values   map[string]int // those that are better than the defaults
	trials   []choice.Trial

	number, subjects int
	share            time.Duration
}

// measured is a trial with what only the tuner wants to know.
type measured struct {
	choice.Trial
	used []float64 // the time with what is in use, for each of Rates
	took []float64 // seconds of measuring, for each of Rates
	left []string  // points for which there is no memory
}

// tune adds the best values of one subject to those that were found, and reports whether there was time for all of its
// sizes and candidates.
func (t *tuner) tune(ctx context.Context, s *Subject, all []*choice.Choice, end time.Time) (whole bool) {
	if s.measured {
		t.costs(ctx, s, all)
		return ctx.Err() == nil
	}
	sorted := *s
	sorted.Points = slices.SortedStableFunc(slices.Values(s.Points), func(a, b Point) int {
		return cmp.Compare(a.work(), b.work())
	})
	usual := t.trial(ctx, &sorted, request{Seconds: 0.1, Limit: time.Until(end).Seconds() / 4, Work: searchWork})
	t.note(ctx, usual.Trial)
	if usual.Failed != "" || ctx.Err() != nil {
		return ctx.Err() == nil
	}
	sorted.Points = slices.DeleteFunc(sorted.Points, func(p Point) bool { return slices.Contains(usual.left, p.Name) })
	free := slices.DeleteFunc(s.choices(all), func(c *choice.Choice) bool {
		_, taken := t.values[c.Name]
		return taken
	})
	from, candidates := map[string]int{}, 0 // what is in use
	for _, c := range free {
		if v := t.now(c); v != c.Default {
			from[c.Name] = v
		}
		candidates += len(c.Values) - 1
	}
	some := sorted
	some.Points = sorted.Points[:affordable(usual.took, candidates, time.Until(end))]
	over := time.Time{}
	best := search(ctx, free, from, t.most(&some, usual.Rates[:len(some.Points)]), end,
		func(values map[string]int, last bool) choice.Trial {
			var got measured
			if last {
				over = time.Now()
				got = t.last(ctx, &sorted, &some, values)
			} else {
				got = t.trial(ctx, &some, request{Values: values, Seconds: 0.1, Work: searchWork})
			}
			t.note(ctx, got.Trial)
			return got.Trial
		})
	if over.IsZero() {
		over = time.Now()
	}
	maps.Copy(t.values, t.agreed(ctx, s, all, free, from, best))
	return ctx.Err() == nil && len(some.Points) == len(sorted.Points) && (over.Before(end) || candidates == 0)
}

// affordable returns how many of the first points there is time for, if so many candidates are tried with each that
// took so many seconds: one at least.
func affordable(took []float64, candidates int, left time.Duration) int {
	n, sum := 0, 0.0
	for _, t := range took {
		if sum += t; n > 0 && sum*float64(candidates) > left.Seconds() {
			break
		}
		n++
	}
	return n
}

// last measures the best values longer, and at all points. Those that they were not searched with may not take longer.
func (t *tuner) last(ctx context.Context, all, some *Subject, values map[string]int) measured {
	got := t.trial(ctx, all, request{Values: values, Seconds: 0.5})
	got.Final = true
	for _, r := range got.Rates {
		searched := slices.ContainsFunc(some.Points, func(p Point) bool { return p.Name == r.Name })
		if got.Failed == "" && !searched && r.Ns > margin*r.Default {
			got.Failed = fmt.Sprintf("not kept: %s takes %.2f times as long as with the defaults", r.Name, r.Ns/r.Default)
		}
	}
	return got
}

// agreed returns the best values of a subject that were found, or those with which the search began if others, for
// which these were kept, would take longer.
func (t *tuner) agreed(ctx context.Context, s *Subject, all, free []*choice.Choice, from,
	best map[string]int) map[string]int {
	if ctx.Err() != nil || maps.Equal(from, best) {
		return best
	}
	used := map[string]int{}
	for _, c := range all {
		if v := t.now(c); v != c.Default {
			used[c.Name] = v
		}
	}
	maps.Copy(used, t.values)
	then, changed := maps.Clone(used), []string{}
	for _, c := range free {
		delete(then, c.Name)
		was, had := from[c.Name]
		if v, has := best[c.Name]; had != has || was != v {
			changed = append(changed, c.Name)
		}
	}
	maps.Copy(then, best)
	if t.refused = t.chance(best); t.refused == "" {
		for _, o := range Subjects(all) {
			if o.Points = t.guarded(s, &o, changed, all); len(o.Points) > 0 && t.refused == "" {
				t.refused = t.harm(ctx, &o, s, used, then)
			}
		}
	}
	if ctx.Err() != nil {
		return from
	}
	if t.refused == "" {
		return best
	}
	if !t.first {
		t.note(ctx, choice.Trial{Subject: s.Name, Values: best, Version: s.version(all), Failed: "not kept: " + t.refused})
	}
	return from
}

// chance returns why what was found at first use may be chance, or "".
func (t *tuner) chance(best map[string]int) string {
	if last := t.trials[len(t.trials)-1]; t.first && len(best) > 0 && last.Score < margin {
		return fmt.Sprintf("%.2f times as fast as the defaults may be chance", last.Score)
	}
	return ""
}

// guarded returns the points of o that changed values of s may not harm: at first use all of subjects that read the
// choices, and otherwise those for which values were kept and that were not measured now.
func (t *tuner) guarded(s, o *Subject, changed []string, all []*choice.Choice) []Point {
	read := slices.ContainsFunc(o.choices(all), func(c *choice.Choice) bool { return slices.Contains(changed, c.Name) })
	if o.measured || !read {
		return nil
	}
	if t.first {
		return o.Points
	}
	if t.kept == nil || !slices.ContainsFunc(changed, func(n string) bool { _, ok := t.kept.Values[n]; return ok }) {
		return nil
	}
	sizes, known := map[string]bool{}, false
	for i := range t.kept.Trials {
		k := &t.kept.Trials[i]
		if k.Subject == o.Name && k.Version == o.version(all) {
			for _, r := range k.Rates {
				sizes[r.Name] = true
			}
		}
		for _, name := range changed {
			_, tried := k.Values[name]
			known = known || tried
		}
	}
	return slices.DeleteFunc(slices.Clone(o.Points), func(p Point) bool {
		now := o.Name == s.Name && slices.ContainsFunc(s.Points, func(q Point) bool { return q.Name == p.Name })
		return now || known && !sizes[p.Name] // of values without trials nothing says for which sizes they are good
	})
}

// harm returns what is against values at any point of o, beside those in use, or "". At first use the points of s have
// to gain. What is slower once may have met other work of the machine, and is measured again.
func (t *tuner) harm(ctx context.Context, o, s *Subject, used, then map[string]int) (why string) {
	for range 2 {
		got := t.trial(ctx, o, request{Values: then, Used: used, Seconds: 0.5})
		if len(got.left) == len(o.Points) {
			return ""
		}
		if got.Failed != "" {
			return got.Failed
		}
		why = ""
		if got.Slow {
			why = fmt.Sprintf("%s, %s takes far longer than with the defaults", o.Name, got.Rates[len(got.Rates)-1].Name)
		}
		var gains []choice.Rate
		for i, r := range got.Rates {
			gains = append(gains, choice.Rate{Ns: r.Ns, Default: got.used[i]})
			if o.Name != s.Name || !slices.ContainsFunc(s.Points, func(p Point) bool { return p.Name == r.Name }) {
				gains = gains[:len(gains)-1]
				if r.Ns > margin*got.used[i] && why == "" {
					why = fmt.Sprintf("%s, %s takes %.2f times as long as with what is in use", o.Name, r.Name, r.Ns/got.used[i])
				}
			}
		}
		if score := choice.Score(gains); len(gains) > 0 && score < margin && why == "" {
			why = fmt.Sprintf("%.2f times as fast as what is in use may be chance", score)
		}
		if why == "" || ctx.Err() != nil {
			return why
		}
	}
	return why
}

// most returns the score at which the subject is as fast as the device's roof allows; infinite without a roof, or with
// one that the defaults reach: it was measured while the machine was busy.
func (t *tuner) most(s *Subject, usual []choice.Rate) float64 {
	least := make([]choice.Rate, 0, len(usual))
	for _, r := range usual {
		i := slices.IndexFunc(s.Points, func(p Point) bool { return p.Name == r.Name })
		flops := s.Points[i].Flops
		if t.roof.DoubleGFLOPS > 0 && slices.ContainsFunc(s.Points[i].Defines, isDouble) {
			flops *= t.roof.GFLOPS / t.roof.DoubleGFLOPS
		}
		limit, _ := t.roof.Limit(flops, s.Points[i].Bytes)
		if limit <= 0 {
			return infinite
		}
		least = append(least, choice.Rate{Ns: float64(limit.Nanoseconds()) / enough, Default: r.Default})
	}
	if score := choice.Score(least); score > 1 {
		return score
	}
	return infinite
}

// note adds a trial to those that were made, unless ctx has ended it.
func (t *tuner) note(ctx context.Context, got choice.Trial) {
	if ctx.Err() != nil {
		return
	}
	t.trials = append(t.trials, got)
	if t.opt.Progress != nil {
		elapsed := time.Since(t.start)
		t.opt.Progress(Progress{Trial: got, Trials: len(t.trials), Subject: t.number, Subjects: t.subjects,
			Elapsed: elapsed, Remaining: max(0, t.opt.Time-elapsed), Share: t.share})
	}
}

// trial has a child measure values at the points of a subject.
func (t *tuner) trial(ctx context.Context, s *Subject, q request) measured {
	got := measured{Trial: choice.Trial{Subject: s.Name, Values: q.Values, Version: s.version(t.state.Choices())}}
	var a answer
	if a, got.Failed = t.ask(ctx, s, q); got.Failed == "" {
		got.Rates, got.used, got.took, got.left = a.Rates, a.Used, a.Took, a.Left
		if len(a.Rates) == 0 {
			got.Failed = strings.Join(a.Left, ", ") + ": more memory than a quarter of what is free"
			return got
		}
		last := a.Rates[len(a.Rates)-1]
		got.Score = choice.Score(got.Rates)
		got.Slow = len(got.Rates)+len(got.left) < len(s.Points) && last.Ns > drop*last.Default
	}
	return got
}

// costs has a child measure the costs, and takes the values that follow from them.
func (t *tuner) costs(ctx context.Context, s *Subject, all []*choice.Choice) {
	got := choice.Trial{Subject: s.Name, Final: true, Version: s.version(all)}
	var a answer
	if a, got.Failed = t.ask(ctx, s, request{Seconds: 0.2}); got.Failed == "" {
		got.Costs, got.Values = a.Costs, planning(a.Costs, s.choices(all))
	}
	if ctx.Err() != nil {
		return
	}
	maps.Copy(t.values, got.Values)
	t.note(ctx, got)
}

// ask has a child measure a subject, and returns its answer or why there is none.
func (t *tuner) ask(ctx context.Context, s *Subject, q request) (answer, string) {
	q.Subject, q.For, q.Spares = s.Name, t.state.TunedFor(), t.first
	for _, p := range s.Points {
		q.Points = append(q.Points, p.Name)
	}
	patience := t.opt.Patience
	if t.share > 0 {
		patience = min(patience, max(t.share, fewPatience))
	}
	a, failed := t.children.ask(ctx, q, patience)
	const most = 500 // bytes of a reason, which may be the log of a compiler
	if len(failed) > most {
		failed = strings.ToValidUTF8(failed[:most], "") + "…"
	}
	return a, failed
}
