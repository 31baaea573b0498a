package cluster

// Units of work on several devices of a Runner at once.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// RunGroup does a unit of work on a group of all devices that were named for the Runner and get work, in their order.
// Where a member fails, the unit is repeated, after the pauses of [Runner.Run], and without that member where Run would
// go on with the next device: on fewer, then on one, and last on the CPU, which is a member only where it was named. A
// unit that fewer members have done than were named is a fallback. With the policy "require" all members have to be
// there, and the first failure that no retry mends is returned.
//
// A member that does not come in time (Options.Timeout) is given up as a device on which an attempt takes longer than
// Failover.Timeout, which itself is for the attempts on one device alone. Where a collective of the vendor's library
// does not end, and all members' work before it is done, nobody is known to be to blame: the collective is ended,
// which counts as a failure of the member that found it, and only a device on which that does not end is given up.
// work gets the group, which ends with the call, and begins anew each time, as that of Run does; it calls g.Do.
func (r *Runner) RunGroup(ctx context.Context, op string, o Options,
	work func(ctx context.Context, g *Group) error) error {
	if err := r.begin(ctx, op, work == nil); err != nil {
		return err
	}
	defer r.units.Done()
	u := &unit{op: op}
	strict, tries := r.session.Config().Fallback == runtime.Require, map[*standby]*tries{}
	for {
		team := r.team(ctx, u)
		switch err := ctx.Err(); {
		case err != nil:
			return errors.Join(append(u.causes, err)...)
		case strict && len(team) < r.chosen:
			return errors.Join(u.causes...)
		case len(team) < 2:
			return r.run(ctx, u, func(ctx context.Context, dev *runtime.Device) error {
				return o.with(ctx, []*runtime.Device{dev}, work)
			})
		}
		var names []string
		for _, d := range team {
			names = append(names, d.name)
		}
		u.move(r, strings.Join(names, ","))
		d, h, err := r.together(ctx, o, team, tries, work)
		for err != nil && d != nil && ctx.Err() == nil && driver.OfDevice(err) {
			if tries[d] == nil {
				tries[d] = newTries()
			}
			again, ended := tries[d].again(ctx, r, err)
			if ended != nil {
				err = errors.Join(err, ended)
				break
			}
			if !again {
				r.failed(d, h, err)
				break
			}
			d, h, err = r.together(ctx, o, team, tries, work)
		}
		u.moved(r, err)
		if err == nil {
			for _, d := range team {
				d.health.did(nil, r.now(), false)
			}
			r.done(u, strings.Join(names, ","))
			return nil
		}
		if d == nil || ctx.Err() != nil || !r.session.MayFallBack(err) {
			return errors.Join(append(u.causes, err)...)
		}
		u.leave(r, d, err)
	}
}

// Named returns the names of the devices of which groups are made, in the order of preference: all but a CPU that comes
// last and was not named.
func (r *Runner) Named() (names []string) {
	for _, d := range r.devices[:r.chosen] {
		names = append(names, d.name)
	}
	return names
}

// team returns the named devices that get work and have not failed in this unit. Others are among the causes.
func (r *Runner) team(ctx context.Context, u *unit) (team []*standby) {
	for _, d := range r.devices[:r.chosen] {
		if slices.Contains(u.out, d) {
			continue
		}
		try, err := r.admit(d)
		if err == nil && try != nil {
			err = r.restore(ctx, d, try)
		}
		if err != nil {
			u.causes, u.out = append(u.causes, d.named(err)), append(u.out, d)
			continue
		}
		team = append(team, d)
	}
	return team
}

// together does a unit once on a group, and returns the device to blame for an error, if it is known, and its handle.
func (r *Runner) together(ctx context.Context, o Options, team []*standby, tries map[*standby]*tries,
	work func(ctx context.Context, g *Group) error) (blamed *standby, h *handle, err error) {
	var handles []*handle
	defer func() {
		for i, h := range handles {
			if closed := h.closed(); closed != nil {
				blamed, err = nil, closed
			}
			r.release(team[i], h, h.state() != nil)
		}
	}()
	var devs []*runtime.Device
	for _, d := range team {
		h, err := r.open(ctx, d)
		if err != nil {
			return d, h, err
		}
		handles, devs = append(handles, h), append(devs, h.dev)
		if t := tries[d]; t != nil && t.trimmed {
			_, _ = h.dev.Memory().Trim(0) // the work finds out whether that was enough
		}
	}
	err = o.with(ctx, devs, work)
	if named, ok := errors.AsType[*MemberError](err); ok && named.Rank >= 0 && named.Rank < len(handles) { // this group's
		return team[named.Rank], handles[named.Rank], err
	}
	for i, h := range handles { // the work has not said who
		if err != nil && errors.Is(h.state(), runtime.ErrDeviceLost) {
			return team[i], h, err
		}
	}
	return nil, nil, err
}

// with calls work with a group of devices. A member that does not come in time is given up at once: the others' work,
// and the end of the group, may wait for what it does.
func (o Options) with(ctx context.Context, devs []*runtime.Device,
	work func(ctx context.Context, g *Group) error) error {
	g, err := o.Of(devs...)
	if err != nil {
		return err
	}
	over, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-g.failed:
		case <-over:
			return
		}
		if why, ok := errors.AsType[*MemberError](g.Err()); ok && !why.unsure && errors.Is(why, driver.ErrTimeout) {
			_ = devs[why.Rank].Abandon(why.Err) // or it was lost before
		}
		for _, m := range g.library.end() { // work that not even this ends
			_ = m.dev.Abandon(fmt.Errorf("its collectives do not end: %w", driver.ErrTimeout))
		}
	}()
	defer func() {
		close(over)
		<-watched
	}()
	err = work(ctx, g)
	if failed := g.Err(); failed != nil && err == nil {
		err = fmt.Errorf("cluster: the work returned no error, and its group has failed: %w", failed)
	}
	closed := g.Close()
	if err == nil {
		err = closed
	}
	if failed, ok := errors.AsType[*MemberError](g.Err()); ok && err != nil && !errors.Is(err, runtime.ErrDeviceLost) &&
		g.members[failed.Rank].lost() != nil { // it was given up
		err = fmt.Errorf("%w: %w", err, runtime.ErrDeviceLost)
	}
	return err
}
