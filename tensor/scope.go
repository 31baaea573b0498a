package tensor

// Scope, which owns what is computed in it, and the engine that computes it.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/source"
)

// Scope owns the memory of the tensors that are made and computed in it, and frees it when it is closed, but for those
// that are kept ([Tensor.Keep]). A scope may have scopes within it, such as one for each step of a loop; the
// result of an operation belongs to the innermost scope of its operands. A Scope is safe for concurrent use.
type Scope struct {
	engine *engine
	parent *Scope
	depth  int

	closed  bool                         // these are guarded by the engine's lock
	buffers map[*runtime.Buffer]struct{} // of computed tensors
	scopes  map[*Scope]struct{}
	funcs   []*Func
	files   []*users // whose tensors may still have to be decoded
}

// engine computes the tensors of a scope and of all scopes within it, on one stream.
type engine struct {
	fuse    bool
	member  *cluster.Member // of a group, or nil
	standby *standby        // of a Runner, or nil
	most    int             // of kept

	mu    sync.Mutex // held while tensors are computed
	*seat            // on the device that computes them
}

// programKey names a program of the catalog: the family and its definitions, or a map and the rank of its operands.
type programKey struct {
	family, definitions string
	rank                int
}

// bytes estimates the memory of a program of that name: 0 of the catalog's, whose units stay in any case.
func (k programKey) bytes(u *source.Unit) int {
	if k.family != expr.Family {
		return 0
	}
	return kernels.UnitBytes(u)
}

type program struct {
	unit    *source.Unit
	program *runtime.Program
	kernels map[string]*runtime.Kernel
}

// keptPrograms is how many programs an engine keeps loaded at most, and keptBytes how many bytes those of maps have
// together, as UnitBytes estimates: those that were used last. A thousand small maps have to fit.
const keptPrograms, keptBytes = 2048, 768 << 20

// NewScope returns a scope for tensors on a device, which the caller keeps open until it has closed the scope.
// In a session with Config.NoFusion (CONCORD_FUSION=0) its tensors are computed operation by operation.
func NewScope(dev *runtime.Device) *Scope {
	e := &engine{fuse: !dev.Session().Config().NoFusion, most: keptBytes, seat: newSeat(dev)}
	return &Scope{engine: e, buffers: map[*runtime.Buffer]struct{}{}, scopes: map[*Scope]struct{}{}}
}

// Scope returns a scope within s, which ends with s at the latest.
func (s *Scope) Scope() *Scope {
	in := &Scope{engine: s.engine, parent: s, depth: s.depth + 1, buffers: map[*runtime.Buffer]struct{}{},
		scopes: map[*Scope]struct{}{}}
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	if in.closed = s.closed; !in.closed {
		s.scopes[in] = struct{}{}
	}
	return in
}

// Device returns the device of the scope's tensors, on a Runner that of the last computation.
func (s *Scope) Device() *runtime.Device {
	if b := s.engine.standby; b != nil {
		return b.now.Load().device
	}
	return s.engine.device
}

// String returns the device's name.
func (s *Scope) String() string { return "scope on " + s.Device().String() }

// Close frees the memory of the scope's tensors and of the scopes within it, as soon as the work that uses it
// is done. These tensors cannot be used any more. Closing twice does nothing.
func (s *Scope) Close() error {
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	return s.close()
}

func (s *Scope) close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	var errs []error
	for in := range s.scopes {
		errs = append(errs, in.close())
	}
	for _, c := range s.funcs {
		errs = append(errs, c.close())
	}
	for b := range s.buffers {
		errs = append(errs, b.Close())
	}
	for _, f := range s.files {
		f.release()
	}
	s.scopes, s.buffers, s.funcs, s.files = nil, nil, nil, nil
	if s.parent != nil {
		delete(s.parent.scopes, s)
		return errors.Join(errs...)
	}
	errs = append(errs, s.engine.seat.close())
	if b := s.engine.standby; b != nil {
		for dev, at := range b.seats {
			if at != s.engine.seat {
				errs = append(errs, at.close())
			}
			delete(b.seats, dev)
		}
		errs = slices.DeleteFunc(errs, func(err error) bool { // of devices with which nothing is left to be closed
			return errors.Is(err, runtime.ErrDeviceLost)
		})
	}
	return errors.Join(errs...)
}

// ready makes the stream, and returns an error if a scope is closed. The engine is locked.
func (s *Scope) ready() error {
	if s.closed {
		return ErrScope
	}
	return s.engine.open()
}

// mapProgram returns the program of a map for operands of a rank.
func (e *engine) mapProgram(ctx context.Context, m *expr.Map, rank int) (*program, error) {
	return e.program(ctx, programKey{expr.Family, m.String(), rank}, func() (*source.Unit, error) {
		return m.Unit(e.device.Features(), rank)
	})
}

// catalog returns the program of a family of the catalog, with definitions such as "T=f32", "TRANS_B=1", and the tile
// that was chosen for the device.
func (e *engine) catalog(ctx context.Context, family string, defines ...string) (*program, error) {
	list := make([]source.Define, 0, len(defines))
	for _, d := range defines {
		name, value, _ := strings.Cut(d, "=")
		list = append(list, source.Define{Name: name, Value: value})
	}
	set, _ := e.device.Choices().InUse() // a tile has several numbers
	list = kernels.Chosen(family, list, set.Of)
	return e.program(ctx, programKey{family: family, definitions: fmt.Sprint(list)}, func() (*source.Unit, error) {
		return kernels.Unit(family, e.device.Features(), list...)
	})
}

func (e *engine) program(ctx context.Context, key programKey, unit func() (*source.Unit, error)) (*program, error) {
	if p, ok := e.programs.Get(key); ok {
		return p, nil
	}
	u, err := unit()
	if err != nil {
		return nil, err
	}
	built, err := e.device.Program(ctx, u)
	if err != nil {
		return nil, err
	}
	p := &program{u, built, map[string]*runtime.Kernel{}}
	e.programs.Add(key, p)
	for e.kept += key.bytes(u); e.kept > e.most && e.programs.Len() > 1; {
		e.programs.RemoveOldest()
	}
	return p, nil
}

// kernel returns a kernel of the program.
func (p *program) kernel(name string) (*runtime.Kernel, error) {
	if k := p.kernels[name]; k != nil {
		return k, nil
	}
	k, err := p.program.Kernel(name)
	if err == nil {
		p.kernels[name] = k
	}
	return k, err
}

// grid returns the grid of a launch for the sizes that kernels.Geometry describes.
func (p *program) grid(name string, sizes ...int) (runtime.Grid, error) {
	items, group, err := kernels.Geometry(p.unit, name, sizes...)
	return runtime.Grid{Items: items, Group: group}, err
}
