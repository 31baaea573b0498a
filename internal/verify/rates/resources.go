package rates

// Which kernels a job runs, and what they take.

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/profile"
)

// ranks are the kernels that one run launched, the one that took the most time first.
type ranks []ranked

// ranked is one of them: all launches of a name and an implementation, as the longest one was.
type ranked struct {
	profile.Event
	total, launches int64
}

// observe runs the work once and returns what ran.
func (b *bench) observe(ctx context.Context, w *work, p *place) (ranks, error) {
	var seen profile.Recording
	stop := b.dev.Session().Observe(&seen)
	defer stop()
	run := w.run
	if w.plain != nil {
		run = w.plain
	}
	if err := run(ctx); err != nil {
		return nil, err
	}
	if err := p.sync(ctx); err != nil {
		return nil, err
	}
	stop()
	events, _ := seen.Events()
	return ranking(events, b.dev.String()), nil
}

// ranking sums up the launches of a device, also those of a graph whose driver tells of them.
func ranking(events []profile.Event, device string) (list ranks) {
	for _, e := range events {
		if e.Kind != profile.Launch && e.Kind != profile.Node || e.Device != device || e.Err != nil {
			continue
		}
		i := slices.IndexFunc(list, func(k ranked) bool { return k.Name == e.Name && k.Detail == e.Detail })
		if i < 0 {
			i, list = len(list), append(list, ranked{Event: e})
		}
		k := &list[i]
		k.total += e.Duration().Nanoseconds()
		k.launches++
		if e.Duration() > k.Duration() {
			k.Event = e
		}
	}
	slices.SortStableFunc(list, func(a, b ranked) int { return cmp.Compare(b.total, a.total) })
	return list
}

// String names the kernels that took at least a tenth of the time, at most three, with implementations and shares.
func (list ranks) String() string {
	var all int64
	for i := range list {
		all += list[i].total
	}
	var parts []string
	for i := range list[:min(len(list), 3)] {
		k := &list[i]
		text := strings.TrimSpace(k.Name + " " + k.Detail)
		if len(list) > 1 && all > 0 {
			share := 100 * k.total / all
			if i > 0 && share < 10 {
				break
			}
			text += fmt.Sprintf(" %d %%", share)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// resources describes the kernel that took the most time, as far as its driver does, or returns "".
func (list ranks) resources(info runtime.Info) string {
	if len(list) == 0 || list[0].Registers == 0 {
		return ""
	}
	k := &list[0]
	group := max(k.Group[0], 1) * max(k.Group[1], 1) * max(k.Group[2], 1)
	text := fmt.Sprintf("%s: %d registers, %d bytes spilled, %d bytes of shared memory",
		k.Name, k.Registers, k.SpillBytes, k.LocalBytes)
	limits, err := profile.DeviceLimits(info)
	if err != nil { // an architecture that is not known
		return fmt.Sprintf("%s, groups of %d items", text, group)
	}
	r := profile.Occupancy(limits, profile.Request{Registers: k.Registers, Local: k.LocalBytes}, group)
	return fmt.Sprintf("%s, on a %s %s", text, limits.Unit, r)
}
