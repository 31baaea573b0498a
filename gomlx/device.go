package gomlx

// The devices of a backend, and teams of them on which one computation runs.

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/pkg/errors"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/tensor"
)

// device is a device of a backend.
type device struct {
	backend *Backend
	number  compute.DeviceNum
	dev     *runtime.Device
	scope   *tensor.Scope
	stream  *runtime.Stream // of the scope
	shared  bool            // the host addresses the device's memory
}

// open opens the next device of the backend, which closes it.
func (b *Backend) open(ctx context.Context, name string) error {
	dev, err := runtime.Open(ctx, name)
	if err != nil {
		return err
	}
	d := &device{backend: b, number: compute.DeviceNum(len(b.devices)), dev: dev, scope: tensor.NewScope(dev)}
	b.devices = append(b.devices, d)
	if d.stream, err = d.scope.Stream(); err != nil {
		return err
	}
	probe, err := runtime.Alloc[uint8](dev, 1)
	if err != nil {
		return err
	}
	_, err = runtime.HostBytes(probe)
	d.shared = err == nil
	return probe.Close()
}

// String returns the name of the device, and the vendor's name for it.
func (d *device) String() string { return fmt.Sprintf("%v (%s)", d.dev, d.dev.Info().Name) }

// newBuffer returns a buffer of memory, which it owns.
func (d *device) newBuffer(memory *runtime.Buffer, shape shapes.Shape) *Buffer {
	return &Buffer{device: d, shape: shape, memory: memory, tensor: tensor.Wrap(d.scope, memory, types[shape.DType],
		shape.Dimensions...)}
}

// alloc returns a buffer with undefined contents, for work on the stream, or, if idle is set, with memory that
// no work uses.
func (d *device) alloc(shape shapes.Shape, idle bool) (*Buffer, error) {
	t, err := typeOf(shape.DType)
	if err != nil {
		return nil, err
	}
	if shape.IsDynamic() {
		return nil, errors.Errorf("a buffer of the dynamic shape %s", shape)
	}
	if shape.Rank() > tensor.MaxRank {
		return nil, errors.Wrapf(compute.ErrNotImplemented, "shape %s of more than %d dimensions", shape, tensor.MaxRank)
	}
	allocate := d.stream.Alloc
	if idle {
		allocate = d.dev.Alloc
	}
	memory, err := allocate(t.Stored(), shape.Size())
	if err != nil {
		return nil, errors.WithStack(err)
	}
	return d.newBuffer(memory, shape), nil
}

// team is devices that are members of a group, in the order of their ranks.
type team struct {
	group  *cluster.Group
	scopes []*tensor.Scope // of the members

	mu     sync.Mutex // held by an execution: members make the calls of one after those of another
	closed bool
}

// patience is how long a member of a team waits for another one, which may have to trace and to compile first. One that
// fails tells the others at once.
const patience = 10 * time.Minute

// team returns the team of some devices, locked for an execution, which unlocks it. The backend closes it. A team that
// has failed is replaced, so that what follows is not lost with it.
func (b *Backend) team(numbers []compute.DeviceNum) (*team, error) {
	key := fmt.Sprint(numbers)
	for {
		t, err := b.kept(key, numbers)
		if err != nil {
			return nil, err
		}
		t.mu.Lock()
		if !t.closed && t.group.Err() == nil {
			return t, nil
		}
		_ = t.close() // its error has been told
		t.mu.Unlock()
		b.mu.Lock()
		if b.teams[key] == t {
			delete(b.teams, key)
		}
		b.mu.Unlock()
	}
}

// kept returns the team of some devices that there is, or a new one.
func (b *Backend) kept(key string, numbers []compute.DeviceNum) (*team, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.finished {
		return nil, errors.Errorf("the backend %s was finalized", b)
	}
	if t := b.teams[key]; t != nil {
		return t, nil
	}
	var devs []*runtime.Device
	for _, n := range numbers {
		d, err := b.device(n)
		if err != nil {
			return nil, err
		}
		devs = append(devs, d.dev)
	}
	t, err := new(team), error(nil)
	o := cluster.Options{Timeout: patience}
	if devs[1].Stream().RunsOn(devs[0]) {
		t.group, err = o.Virtual(devs[0], len(devs))
	} else {
		t.group, err = o.Of(devs...)
	}
	if err != nil {
		return nil, errors.WithStack(err)
	}
	for _, m := range t.group.Members() {
		t.scopes = append(t.scopes, tensor.NewMemberScope(m))
	}
	b.teams[key] = t
	return t, nil
}

// close closes the scopes and the group. Closing twice does nothing.
func (t *team) close() error {
	if t.closed {
		return nil
	}
	t.closed = true
	var err error
	for _, s := range t.scopes {
		err = cmp.Or(err, s.Close())
	}
	return cmp.Or(err, t.group.Close())
}
