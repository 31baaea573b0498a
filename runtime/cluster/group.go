package cluster

// Groups: who their members are, and how long they live.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/concord-compute/concord/runtime"
)

// Options are the settings of a group. In a job of several processes all of them have the same. The zero value is the
// default, and the functions [Open], [Of], [Virtual] and [Join] use it.
type Options struct {
	// Timeout is how long a member waits in one step of a collective for another one, which then counts as lost. 0 means
	// 30 s.
	Timeout time.Duration
	// Algorithm is that of all collectives which have it. 0 means the library of the devices' vendor, or else by size.
	Algorithm Algorithm
	// DirectBelow and TreeBelow are numbers of bytes: a collective of fewer is Direct or else, where there is one, Tree,
	// and one of more is a Ring. 0 means 64 KiB and 1 MiB. Two members are always Direct.
	DirectBelow, TreeBelow int64
}

// defaults returns the options with defaults where nothing is set, or [runtime.ErrInvalidArgument].
func (o Options) defaults() (Options, error) {
	if o.Timeout < 0 || o.DirectBelow < 0 || o.TreeBelow < 0 || o.Algorithm > Library {
		return o, fmt.Errorf("cluster: options %+v: %w", o, runtime.ErrInvalidArgument)
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.DirectBelow == 0 {
		o.DirectBelow = 64 << 10
	}
	if o.TreeBelow == 0 {
		o.TreeBelow = 1 << 20
	}
	return o, nil
}

// Group is several members that compute together: those of this process, and those of others in a job. Each member has
// a rank from 0 on, and a device. A Group is safe for concurrent use.
//
// Once a collective has failed while data was on its way, because a member was lost, did not arrive in time or had its
// context ended, the group has failed: every later collective of every member returns the same [*MemberError]. A call
// that all members refuse before anything moves, such as one with other arguments than the others', leaves the group
// as it was.
type Group struct {
	options Options
	size    int
	members []*Member
	owned   []*runtime.Device
	folds   folds
	library *library
	traffic traffic

	failed chan struct{} // closed when there is an error
	mu     sync.Mutex
	err    *MemberError
	closed bool
	calls  sync.WaitGroup // under way
	once   func() error   // is end, once
}

// Open opens the named devices as a group with one member each, in this order, which Close closes. "cuda:*" stands for
// all devices of a backend. If one does not open, those that are open are closed, and the error is that device's. Two
// names of one device are [runtime.ErrInvalidArgument]; see [Virtual].
func Open(ctx context.Context, names ...string) (*Group, error) { return Options{}.Open(ctx, names...) }

// Of makes a group of open devices, one member each, in this order. They stay the caller's, who closes them after the
// group. No device, or one twice, is [runtime.ErrInvalidArgument]; a device that fails is a [*MemberError].
func Of(devs ...*runtime.Device) (*Group, error) { return Options{}.Of(devs...) }

// Virtual makes a group of n members that are one device, each with a stream of its own: for tests and trials without
// several devices. They share the device's memory, its pool and its limits. The device stays the caller's, who closes
// it after the group.
func Virtual(dev *runtime.Device, n int) (*Group, error) { return Options{}.Virtual(dev, n) }

// Join makes the group of a job of size members, each in a process of its own, of which this one has the rank. The
// group owns the link, which its Close closes, also if Join fails; the device stays the caller's, who closes it after
// the group. Join returns when all members have called it.
func Join(ctx context.Context, dev *runtime.Device, rank, size int, link Link) (*Group, error) {
	return Options{}.Join(ctx, dev, rank, size, link)
}

// Open is the function Open with options.
func (o Options) Open(ctx context.Context, names ...string) (*Group, error) {
	var devs []*runtime.Device
	done := false
	defer func() {
		if !done {
			closeAll(devs)
		}
	}()
	list, err := Names(ctx, nil, names...)
	if err != nil {
		return nil, err
	}
	for _, name := range list {
		dev, err := runtime.Open(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("cluster: member %d: %w", len(devs), err)
		}
		devs = append(devs, dev)
		if why := dev.Fallback(); why != nil { // another device, which nobody named
			return nil, fmt.Errorf("cluster: member %d: %w", len(devs)-1, why)
		}
	}
	g, err := o.Of(devs...)
	if err != nil {
		return nil, err
	}
	g.owned, done = devs, true
	return g, nil
}

// Names returns the names of the devices that names stand for: "cuda:*" for all devices of a backend, in their order,
// and any other name for itself. A nil session is the default one. A backend without a device here is
// [runtime.ErrNoDevice], with the reason.
func Names(ctx context.Context, s *runtime.Session, names ...string) (list []string, err error) {
	if s == nil {
		if s, err = runtime.Default(); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		backend, all := strings.CutSuffix(name, ":*")
		if !all {
			list = append(list, name)
			continue
		}
		infos, err := s.Devices(ctx)
		if err != nil {
			return nil, err
		}
		before := len(list)
		for i := range infos {
			if infos[i].Backend == backend {
				list = append(list, infos[i].ID)
			}
		}
		if len(list) == before {
			return nil, fmt.Errorf("cluster: %s: %w", name, missing(ctx, s, backend))
		}
	}
	return list, nil
}

// missing returns why a session lists no device of a name: an error that matches [runtime.ErrNoDevice], or nil if it is
// a device that is in no list and has to be named.
func missing(ctx context.Context, s *runtime.Session, name string) error {
	dev, err := s.Open(ctx, name)
	var is runtime.Info
	if err == nil { // another name of one, or another device in its place
		is = dev.Info()
		err = errors.Join(dev.Fallback(), dev.Close())
	}
	switch {
	case err == nil && is.ByName && is.ID == name:
		return nil
	case err == nil && is.ByName:
		return fmt.Errorf("%w: %s has to be named", runtime.ErrNoDevice, is.ID)
	case err == nil:
		return runtime.ErrNoDevice
	case errors.Is(err, runtime.ErrNoDevice):
		return err
	}
	return fmt.Errorf("%w: %w", runtime.ErrNoDevice, err)
}

// Of is the function Of with options.
func (o Options) Of(devs ...*runtime.Device) (*Group, error) {
	for i, dev := range devs {
		if dev != nil && slices.ContainsFunc(devs[:i], func(other *runtime.Device) bool {
			return other != nil && dev.Stream().RunsOn(other)
		}) {
			return nil, fmt.Errorf("cluster: %s is member twice: %w", dev, runtime.ErrInvalidArgument)
		}
	}
	return o.local(devs)
}

// Virtual is the function Virtual with options.
func (o Options) Virtual(dev *runtime.Device, n int) (*Group, error) {
	if n < 1 {
		return nil, fmt.Errorf("cluster: %d members: %w", n, runtime.ErrInvalidArgument)
	}
	return o.local(slices.Repeat([]*runtime.Device{dev}, n))
}

// local makes a group of members of this process.
func (o Options) local(devs []*runtime.Device) (*Group, error) {
	g, err := newGroup(o, len(devs))
	if err != nil {
		return nil, err
	}
	hub := newHub(g)
	for rank, dev := range devs {
		if err := g.add(rank, dev, &localPort{hub: hub, rank: rank}); err != nil {
			return nil, errors.Join(err, g.Close())
		}
	}
	hub.members = g.members
	g.library.look()
	return g, nil
}

// Join is the function Join with options.
func (o Options) Join(ctx context.Context, dev *runtime.Device, rank, size int, link Link) (*Group, error) {
	if link == nil {
		return nil, fmt.Errorf("cluster: link is nil: %w", runtime.ErrInvalidArgument)
	}
	g, err := newGroup(o, size)
	if err == nil && (rank < 0 || rank >= size) {
		err = fmt.Errorf("cluster: rank %d of %d: %w", rank, size, runtime.ErrInvalidArgument)
	}
	var p *linkPort
	if err == nil {
		p = newLinkPort(g, rank, link)
		err = g.add(rank, dev, p)
	}
	if err != nil {
		return nil, errors.Join(err, link.Close())
	}
	if err = g.members[0].Barrier(ctx, nil); err == nil {
		err = g.library.joinJob(ctx, p)
	}
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

func newGroup(o Options, size int) (*Group, error) {
	o, err := o.defaults()
	if err != nil {
		return nil, err
	}
	if size < 1 {
		return nil, fmt.Errorf("cluster: a group without members: %w", runtime.ErrInvalidArgument)
	}
	g := &Group{options: o, size: size, failed: make(chan struct{})}
	g.library = newLibrary(g)
	g.once = sync.OnceValue(g.end)
	return g, nil
}

// add adds a member, whose device is not the group's.
func (g *Group) add(rank int, dev *runtime.Device, p port) error {
	if dev == nil {
		return fmt.Errorf("cluster: member %d: device is nil: %w", rank, runtime.ErrInvalidArgument)
	}
	s, err := dev.NewStream()
	if err != nil {
		return &MemberError{Rank: rank, Err: err}
	}
	g.members = append(g.members, &Member{group: g, rank: rank, dev: dev, own: s, port: p})
	return nil
}

// Size returns the number of members, in all processes.
func (g *Group) Size() int { return g.size }

// Timeout returns how long a member waits for another one: Options.Timeout, or its default.
func (g *Group) Timeout() time.Duration { return g.options.Timeout }

// Members returns the members of this process, by rank. The caller does not change the list.
func (g *Group) Members() []*Member { return g.members }

// Err returns the error that made the group fail, a [*MemberError], or nil.
func (g *Group) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		return nil
	}
	return g.err
}

// fail makes the group fail, unless it has, and returns why it has. The member to blame counts it once. A device that
// is lost is to blame, whatever others meet that use it. No communicator of the library works any more when it returns.
func (g *Group) fail(err *MemberError) *MemberError {
	if lost := g.lost(); lost != nil {
		err = lost
	}
	g.mu.Lock()
	first := g.err == nil
	if first {
		g.err = err
		close(g.failed)
	}
	err = g.err
	g.mu.Unlock()
	if first {
		for _, m := range g.members {
			if m.rank == err.Rank {
				m.did(err.Err)
			}
			m.port.tell(err)
		}
	}
	g.library.end() // or members would wait on for its kernels
	return err
}

// lost returns the error of the first member of this process whose device is lost, or nil.
func (g *Group) lost() *MemberError {
	for _, m := range g.members {
		if err := m.lost(); err != nil {
			return &MemberError{Rank: m.rank, Err: err}
		}
	}
	return nil
}

// lost returns the error of the member's device if it is lost, or nil.
func (m *Member) lost() error {
	err := m.dev.Enter("cluster")
	if err == nil {
		m.dev.Leave()
	} else if errors.Is(err, runtime.ErrDeviceLost) {
		return err
	}
	return nil
}

// enter begins a call of a member, which calls.Done ends.
func (g *Group) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return fmt.Errorf("cluster: group: %w", runtime.ErrClosed)
	}
	g.calls.Add(1)
	return nil
}

// Do calls f for every member of this process, each in a goroutine of its own, and waits for all. f queues the member's
// work and calls its collectives. When it returns an error, the others' collectives return it, as a [*MemberError] that
// names the member, and so does Do; of several it returns each once. The group has failed then. If f panics, so does Do
// once all have returned. A member that returns nil while others still call collectives is one that does not come: they
// wait for it as long as [Options] say. After Close, Do is [runtime.ErrClosed].
func (g *Group) Do(ctx context.Context, f func(ctx context.Context, m *Member) error) error {
	if g == nil || ctx == nil || f == nil {
		return fmt.Errorf("cluster: group, context or function is nil: %w", runtime.ErrInvalidArgument)
	}
	if err := g.enter(); err != nil {
		return err
	}
	g.calls.Done() // the calls of f count by themselves: Close may end them
	errs, panics := make([]error, len(g.members)), make([]any, len(g.members))
	var wg sync.WaitGroup
	for i, m := range g.members {
		wg.Go(func() {
			returned := false
			defer func() {
				switch panics[i] = recover(); {
				case panics[i] != nil:
					errs[i] = m.Fail(fmt.Errorf("panic: %v", panics[i])) // so that the others end
				case !returned:
					errs[i] = m.Fail(errors.New("its goroutine was ended"))
				}
			}()
			err := f(ctx, m)
			if returned = true; err != nil {
				errs[i] = m.Fail(err)
			}
		})
	}
	wg.Wait()
	for _, p := range panics {
		if p != nil {
			panic(p)
		}
	}
	var all []error
	for _, err := range errs {
		if err != nil && !slices.Contains(all, err) {
			all = append(all, err)
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	return errors.Join(all...)
}

// Close ends the group: calls under way return [runtime.ErrClosed], and it waits for them and for the work of the
// members' own streams. It closes the devices of [Open] and the link of [Join]. Closing twice does nothing.
func (g *Group) Close() error {
	if g == nil {
		return nil
	}
	return g.once()
}

func (g *Group) end() error {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	for _, m := range g.members {
		m.port.leave()
	}
	g.calls.Wait()
	g.library.end()
	var errs []error
	for _, m := range g.members {
		errs = append(errs, m.close())
	}
	return errors.Join(append(errs, g.folds.close(), closeAll(g.owned))...)
}

func closeAll(devs []*runtime.Device) error {
	errs := make([]error, len(devs))
	for i, dev := range devs {
		errs[i] = dev.Close()
	}
	return errors.Join(errs...)
}
