package tensor

// Tensor, how it is described, and its errors.

import (
	"errors"
	"fmt"
	"path"
	goruntime "runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/concord-compute/concord/kernels/expr"
)

// The kinds of mistakes. The errors that wrap them say what was given, and where in the program.
var (
	ErrShape  = errors.New("tensor: shapes do not fit")
	ErrType   = errors.New("tensor: element type does not fit")
	ErrDevice = errors.New("tensor: tensors of different devices")
	ErrScope  = errors.New("tensor: scope is closed")
)

// MaxRank is the largest number of dimensions.
const MaxRank = 8

// Tensor is an array of elements of one type with up to eight dimensions. It is immutable: operations return
// new tensors, which describe how they are computed; [Eval] and [Read] compute them. A mistake, such as shapes
// that do not fit, stays with the tensor and all that are made of it; Err, Eval and Read return it.
//
// A Tensor is safe for concurrent use. It belongs to a [Scope] and ends with it.
type Tensor struct {
	scope *Scope
	typ   Type
	shape []int
	op    operation // how it is computed; nil if it is data alone
	args  []*Tensor
	err   error
	title string // the operation that the program asked for, if that is several, of which op is the last; or ""
	data  *array // what has been computed, or nil; guarded by the engine's lock
	// a number that is larger than those of all tensors that were made of others before; 0 of Full, Iota and data
	born uint64
}

// births is the largest of the numbers in the order in which tensors were made of others.
var births atomic.Uint64

// operation is how a tensor is computed from its args: one of *mapOp, *viewOp, *reduceOp, *joinOp, *callOp and *partOp.
type operation interface {
	fmt.Stringer
	kind() kind
	// grad returns for each of t's args the gradient that it gets if t gets g, or nil for none.
	grad(t, g *Tensor) []*Tensor
}

// Type returns the type of the elements.
func (t *Tensor) Type() Type { return t.typ }

// Shape returns the lengths of the dimensions, outermost first. Without dimensions it is empty, not nil, which From
// tells apart.
func (t *Tensor) Shape() []int { return append([]int{}, t.shape...) }

// Dim returns the length of a dimension; negative ones count from the end. It is 0 for one that does not exist.
func (t *Tensor) Dim(axis int) int {
	if axis < 0 {
		axis += len(t.shape)
	}
	if axis < 0 || axis >= len(t.shape) {
		return 0
	}
	return t.shape[axis]
}

// Rank returns the number of dimensions.
func (t *Tensor) Rank() int { return len(t.shape) }

// Len returns the number of elements.
func (t *Tensor) Len() int { return count(t.shape) }

// Scope returns the scope to which the tensor belongs.
func (t *Tensor) Scope() *Scope { return t.scope }

// Err returns the first mistake in the description of t, or nil.
func (t *Tensor) Err() error { return t.err }

func count(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// Error is a mistake in the description of a tensor.
type Error struct {
	Op    string // the operation
	Place string // file and line of the call in the program
	Err   error  // wraps ErrShape, ErrType, ErrDevice, ErrScope or an error of another package
}

// Error returns the operation, what is wrong, and the place.
func (e *Error) Error() string { return e.Op + ": " + e.Err.Error() + " (" + e.Place + ")" }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// fail returns a tensor with a mistake. The place is the nearest caller outside this package.
func fail(s *Scope, op string, err error) *Tensor {
	return &Tensor{scope: s, err: &Error{op, caller(), err}}
}

// called gives the result of several operations the name of the one that the program asked for: in String, and
// in a mistake that of does not have.
func (t *Tensor) called(name string, of *Tensor) *Tensor {
	if e, ok := t.err.(*Error); ok && of.err == nil {
		return &Tensor{scope: t.scope, err: &Error{name, e.Place, e.Err}}
	}
	t.title = name
	return t
}

// completing gives t, which is new, the named operation of kernels/expr that it is the last part of.
func (t *Tensor) completing(op expr.Op) *Tensor {
	if t.err == nil {
		t.op.(*mapOp).completes = op
	}
	return t
}

func failf(s *Scope, op string, kind error, format string, args ...any) *Tensor {
	return fail(s, op, fmt.Errorf("%w: "+format, append([]any{kind}, args...)...))
}

const packagePath = "github.com/concord-compute/concord/tensor."

func caller() string {
	var pcs [32]uintptr
	frames := goruntime.CallersFrames(pcs[:goruntime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, packagePath) || strings.HasSuffix(f.File, "_test.go") {
			return fmt.Sprintf("%s:%d", path.Join(path.Base(path.Dir(f.File)), path.Base(f.File)), f.Line)
		}
		if !more {
			return "unknown place"
		}
	}
}

// check returns a tensor with the first mistake of ts: their own, tensors of other engines, or closed scopes;
// nil if there is none.
func check(op string, ts ...*Tensor) *Tensor {
	for _, t := range ts {
		switch {
		case t == nil:
			return failf(nil, op, ErrType, "a tensor is nil")
		case t.err != nil:
			return &Tensor{scope: t.scope, err: t.err}
		case t.scope.engine != ts[0].scope.engine:
			return failf(t.scope, op, ErrDevice, "%v and %v", ts[0].scope, t.scope)
		}
	}
	return nil
}

// present returns those of ts that are not nil, such as an option that is given.
func present(ts ...*Tensor) []*Tensor {
	return slices.DeleteFunc(ts, func(t *Tensor) bool { return t == nil })
}

// inner returns the scope of the result of an operation on ts: the innermost of theirs.
func inner(ts ...*Tensor) *Scope {
	s := ts[0].scope
	for _, t := range ts[1:] {
		if t.scope.depth > s.depth {
			s = t.scope
		}
	}
	return s
}

// made returns a new tensor that is computed by op from args, which are not empty and have no mistakes.
func made(op operation, t Type, shape []int, args ...*Tensor) *Tensor {
	return &Tensor{scope: inner(args...), typ: t, shape: shape, op: op, args: args, born: births.Add(1)}
}

// axis returns a dimension counted from the front.
func (t *Tensor) axis(axis int) (int, bool) {
	if axis < 0 {
		axis += len(t.shape)
	}
	return axis, axis >= 0 && axis < len(t.shape)
}

// axes returns dimensions counted from the front, in ascending order; all if there are none.
func (t *Tensor) axes(axes []int) ([]int, error) {
	if len(axes) == 0 {
		return counts(0, len(t.shape)), nil
	}
	var list []int
	for _, a := range axes {
		i, ok := t.axis(a)
		if !ok {
			return nil, fmt.Errorf("%w: axis %d of shape %v", ErrShape, a, t.shape)
		}
		if slices.Contains(list, i) {
			return nil, fmt.Errorf("%w: axis %d twice", ErrShape, a)
		}
		list = append(list, i)
	}
	slices.Sort(list)
	return list, nil
}

// checkShape refuses shapes that no tensor has.
func checkShape(shape []int) error {
	if len(shape) > MaxRank {
		return fmt.Errorf("%w: %d dimensions, there can be %d", ErrShape, len(shape), MaxRank)
	}
	n := 1
	for _, d := range shape {
		if d < 0 {
			return fmt.Errorf("%w: a dimension of length %d", ErrShape, d)
		}
		if d > 0 && n > (1<<48)/d {
			return fmt.Errorf("%w: %v has more than 2^48 elements", ErrShape, shape)
		}
		n *= max(d, 1)
	}
	return nil
}

// mapOp computes each element from the elements of its args at the same place, all of which have its shape.
type mapOp struct {
	name      string
	what      kind
	e         *expr.Expr // of the types in which args are computed, to that of the result
	completes expr.Op    // the named operation whose last step this is, for a kernel that computes all steps of it; or 0
}

func (o *mapOp) String() string { return o.name }

// grad uses the derivatives of the expression, which are expressions of the args and g.
func (o *mapOp) grad(t, g *Tensor) []*Tensor {
	list := make([]*Tensor, len(t.args))
	if !IsFloat(t.typ) {
		return list
	}
	dy := expr.Input(len(t.args), t.typ)
	for i, a := range t.args {
		if !IsFloat(a.typ) {
			continue
		}
		d := expr.Gradient(o.e, dy, expr.Input(i, a.typ))[0]
		if d == dy && a.typ == t.typ { // as of a sum
			list[i] = g
			continue
		}
		// Derivatives that need the result read it, since what follows often has it stored, as products have; but a
		// kernel reads only so many operands.
		if len(t.args)+2 <= mostInputs {
			d = d.Substitute(o.e, expr.Input(len(t.args)+1, t.typ))
		}
		list[i] = apply(o.name+"'", d, a.typ, t.shape, append(slices.Clone(t.args), g, t)...)
	}
	return list
}

// apply returns the map of e, leaving out args that e does not use.
func apply(name string, e *expr.Expr, t Type, shape []int, args ...*Tensor) *Tensor {
	var used []*Tensor
	with := make([]*expr.Expr, len(args))
	for i, a := range args {
		if e.Uses(i) {
			with[i] = expr.Input(len(used), a.typ)
			used = append(used, a)
		}
	}
	e = e.Replace(with...)
	if e.Type() != t.Computed() && e.Err() == nil {
		e = e.Cast(t.Computed())
	}
	if err := e.Err(); err != nil {
		return fail(args[0].scope, name, err)
	}
	x := made(&mapOp{name: name, e: e}, t, shape, args...)
	x.args = used
	return x
}
