package gomlx

// Executables, and what they have on each device.

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/pkg/errors"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/tensor"
)

// executable is a compiled main function. Its executions come one at a time.
type executable struct {
	backend  *Backend
	main     *function
	assigned []compute.DeviceNum // what it runs on; none if that is for the caller to say

	mu       sync.Mutex
	finished bool
	team     *team      // of several devices
	replicas []*replica // by rank in the team, or by the number of the device; nil before they are needed
}

// replica is what an executable has on one device.
type replica struct {
	device *device
	scope  *tensor.Scope
	funcs  map[funcKey]*compiled
}

// funcKey names a compiled function: what it is of, and the lengths of dynamic axes.
type funcKey struct {
	of   any // *part or *node
	axes string
}

func newReplica(d *device, within *tensor.Scope) *replica {
	return &replica{device: d, scope: within.Scope(), funcs: map[funcKey]*compiled{}}
}

// Finalize frees what the executable holds.
func (x *executable) Finalize() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.finished && !x.backend.IsFinalized() {
		x.free()
	}
	x.finished = true
}

// free closes the scopes.
func (x *executable) free() {
	for _, r := range x.replicas {
		if r != nil {
			_ = r.scope.Close() // there is nobody to tell of an error
		}
	}
	x.replicas = nil
}

// on returns the replicas for devices. The team of several is locked then.
func (x *executable) on(numbers []compute.DeviceNum) ([]*replica, error) {
	if len(numbers) == 1 {
		d, err := x.backend.device(numbers[0])
		if err != nil {
			return nil, err
		}
		if x.replicas == nil {
			x.replicas = make([]*replica, len(x.backend.devices))
		}
		if x.replicas[d.number] == nil {
			x.replicas[d.number] = newReplica(d, d.scope)
		}
		return x.replicas[d.number : d.number+1], nil
	}
	t, err := x.backend.team(numbers)
	if err != nil || t == x.team {
		return x.replicas, err
	}
	x.free() // what was of a team that has failed
	x.team = t
	for rank, n := range numbers {
		x.replicas = append(x.replicas, newReplica(x.backend.devices[n], t.scopes[rank]))
	}
	return x.replicas, nil
}

// Inputs returns the names and shapes of the parameters.
func (x *executable) Inputs() (names []string, inputShapes []shapes.Shape) {
	for _, p := range x.main.params {
		inputShapes = append(inputShapes, p.shape)
	}
	return slices.Clone(x.main.names), inputShapes
}

// Outputs returns the shapes of the results.
func (x *executable) Outputs() (outputShapes []shapes.Shape) {
	for _, o := range x.main.outputs {
		outputShapes = append(outputShapes, o.shape)
	}
	return outputShapes
}

// Execute queues the computation, and returns its results. Donated inputs are freed as soon as the work that
// reads them is done, or become results. Of a computation for several devices there are inputs and results of the
// first one, then of the second one, and so on.
func (x *executable) Execute(inputs []compute.Buffer, donate []bool, on compute.DeviceNum) ([]compute.Buffer, error) {
	numbers := x.assigned
	if numbers == nil {
		numbers = []compute.DeviceNum{on}
	}
	n := len(x.main.params)
	if len(inputs) != n*len(numbers) {
		return nil, errors.Errorf("%d inputs for %d parameters on %d devices", len(inputs), n, len(numbers))
	}
	if len(donate) != 0 && len(donate) != len(inputs) {
		return nil, errors.Errorf("%d flags of donation for %d inputs", len(donate), len(inputs))
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.finished {
		return nil, errors.Errorf("the executable was finalized")
	}
	replicas, err := x.on(numbers)
	if err != nil {
		return nil, err
	}
	if len(replicas) > 1 {
		defer x.team.mu.Unlock()
	}
	// What is another input too is freed, but never overwritten.
	times := map[compute.Buffer]int{}
	for _, in := range inputs {
		times[in]++
	}
	donated := make([]bool, len(inputs))
	for i, d := range donate {
		donated[i] = d && times[inputs[i]] == 1
	}
	runs, args := make([]*run, len(replicas)), make([][]array, len(replicas))
	for i, replica := range replicas {
		runs[i] = &run{ctx: context.Background(), replica: replica, donated: donated[i*n : (i+1)*n]}
		if args[i], err = x.bind(runs[i], inputs[i*n:(i+1)*n]); err != nil {
			return nil, err
		}
	}
	outs := make([][]owned, len(replicas))
	if len(replicas) == 1 {
		if outs[0], err = x.main.run(runs[0], args[0]); err != nil {
			return nil, err
		}
	} else if err = x.together(runs, args, outs); err != nil {
		return nil, x.undo(err, inputs, donate, outs)
	}
	var results []compute.Buffer
	taken := map[*runtime.Buffer]bool{}
	for i, list := range outs {
		for k, o := range list {
			b := replicas[i].device.newBuffer(o.memory, shapes.Make(x.main.outputs[k].shape.DType, o.shape...))
			results, err = append(results, b), cmp.Or(err, b.tensor.Err())
			taken[o.memory] = true
		}
	}
	for i, d := range donate {
		if !d {
			continue
		}
		if b := inputs[i].(*Buffer); taken[b.memory] {
			b.give()
		} else {
			err = cmp.Or(err, b.Finalize())
		}
	}
	if err != nil {
		for _, b := range results {
			_ = b.Finalize() // the first error says what is wrong
		}
		return nil, errors.WithStack(err)
	}
	return results, nil
}

// together runs the replicas of a team at the same time.
func (x *executable) together(runs []*run, args [][]array, outs [][]owned) error {
	err := x.team.group.Do(context.Background(), func(ctx context.Context, m *cluster.Member) (err error) {
		defer func() {
			if p := recover(); p != nil { // which would end the process in this goroutine
				err = errors.Errorf("panic: %v", p)
			}
		}()
		runs[m.Rank()].ctx = ctx
		outs[m.Rank()], err = x.main.run(runs[m.Rank()], args[m.Rank()])
		return err
	})
	return errors.WithStack(err)
}

// undo frees the results of members that have not failed, and what was donated, which may hold a result by now. Work on
// the inputs comes after what the members have queued.
func (x *executable) undo(err error, inputs []compute.Buffer, donate []bool, outs [][]owned) error {
	given := map[*runtime.Buffer]bool{}
	for i, in := range inputs {
		b := in.(*Buffer)
		given[b.memory] = true
		_ = b.device.stream.WaitFor(context.Background(), b.memory) // a stream that failed says so again
		if len(donate) > 0 && donate[i] {
			_ = b.Finalize()
		}
	}
	for _, list := range outs {
		_ = free(slices.DeleteFunc(list, func(o owned) bool { return given[o.memory] }))
	}
	return err
}

// bind returns the inputs of a replica as tensors.
func (x *executable) bind(r *run, inputs []compute.Buffer) ([]array, error) {
	args := make([]array, len(inputs))
	for i, in := range inputs {
		b, ok := in.(*Buffer)
		if !ok || b.device.backend != x.backend {
			return nil, errors.Errorf("input %d is a buffer of another backend", i)
		}
		if b.device != r.replica.device {
			return nil, errors.Errorf("input %d is on device %d, and the computation on device %d", i, b.device.number,
				r.replica.device.number)
		}
		p := x.main.params[i]
		if b.shape.DType != p.shape.DType {
			return nil, errors.Errorf("input %d is of shape %s, parameter %q of %s", i, b.shape, x.main.names[i], p.shape)
		}
		if p.shape.IsDynamic() {
			if r.axes == nil {
				r.axes = shapes.AxisBindings{}
			}
			if err := r.axes.Extract(p.shape, b.shape); err != nil {
				return nil, errors.WithMessagef(err, "input %d", i)
			}
		} else if !slices.Equal(b.shape.Dimensions, p.shape.Dimensions) {
			return nil, errors.Errorf("input %d is of shape %s, parameter %q of %s", i, b.shape, x.main.names[i], p.shape)
		}
		var err error
		if args[i], err = b.use(); err != nil {
			return nil, errors.WithMessagef(err, "input %d", i)
		}
		if x.team != nil { // whose tensors are others than the device's
			args[i] = r.wrap(owned{b.memory, b.shape.Dimensions, types[b.shape.DType]})
		}
	}
	return args, nil
}
