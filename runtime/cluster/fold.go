package cluster

// The kernels that combine elements of two members.

import (
	"sync"

	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// foldKey names a kernel: out = op(a, b), divided by a number if mean; without a type of b it is out = a.
type foldKey struct {
	dev       *runtime.Stream // the own stream of the device, by which devices are told apart
	op        Op
	a, b, out runtime.Type
	mean      bool
}

// folds are the kernels of a group, built when they are first needed.
type folds struct {
	mu   sync.Mutex
	list map[foldKey]*foldKernel
}

type foldKernel struct {
	mu      sync.Mutex // held while it is built
	program *runtime.Program
	kernel  *runtime.Kernel
}

// kernel returns a kernel for the device of the call.
func (f *folds) kernel(c *call, key foldKey) (*runtime.Kernel, error) {
	if key.op == Mean && !key.mean {
		key.op = Sum
	}
	f.mu.Lock()
	if f.list == nil {
		f.list = map[foldKey]*foldKernel{}
	}
	k := f.list[key]
	if k == nil {
		k = new(foldKernel)
		f.list[key] = k
	}
	f.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kernel != nil {
		return k.kernel, nil
	}
	m, err := expr.New(key.expression())
	if err != nil {
		return nil, err
	}
	unit, err := m.Unit(c.m.dev.Features(), 0)
	if err != nil {
		return nil, err
	}
	if k.program, err = c.m.dev.Program(c.ctx, unit); err != nil {
		return nil, err
	}
	k.kernel, err = k.program.Kernel(expr.Kernel)
	return k.kernel, err
}

func (k foldKey) expression() *expr.Expr {
	e := expr.Input(0, k.a)
	if k.b != driver.NoType {
		e = k.op.of(e, expr.Input(1, k.b))
	}
	if k.mean {
		e = e.Div(expr.Param(0, k.out.Computed()))
	}
	return e.Output(k.out)
}

// launch queues a kernel on the stream of the call. b is nil where the key has no type of it.
func (f *folds) launch(c *call, key foldKey, out, a, b *runtime.Buffer) error {
	k, err := f.kernel(c, key)
	if err != nil {
		return err
	}
	n := out.Len()
	args := []any{a}
	if b != nil {
		args = append(args, b)
	}
	args = append(args, out)
	if key.mean {
		var members any = c.size
		switch key.out.Computed() {
		case runtime.F32:
			members = float32(c.size)
		case runtime.F64:
			members = float64(c.size)
		}
		args = append(args, members)
	}
	return c.s.Launch(k, runtime.Items(n), append(args, uint64(n))...)
}
