package nn

// Layers, and what one computation of a network gives to them: parameters, running statistics, seeds.

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/tensor"
)

var (
	// ErrConfig is a setting that makes no sense, or that is not supported.
	ErrConfig = errors.New("nn: configuration")
	// ErrData is data that does not fit the network or the loss.
	ErrData = errors.New("nn: data")
	// ErrNumerical is a loss or a gradient that is not finite.
	ErrNumerical = errors.New("nn: not a finite number")
)

// Layer is a part of a network, or a whole one. It has no state: its parameters belong to the network, under
// the layer's name in it.
type Layer interface {
	// Apply returns the results for examples x, which lie along the first dimension. It may be called with any
	// number of examples, and has to ask for the same parameters at every call.
	Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor
	// String describes the layer in a few words.
	String() string
}

// Pass is one computation of a network, described for given parameters. A Pass is used for one description, by
// one goroutine.
type Pass struct {
	// Training says whether the network is being trained, so that there is dropout, and batches are normalized by
	// their own statistics.
	Training bool
	// Lengths, if it is not nil, is how many steps of each example's sequence count: integers of shape [examples].
	Lengths *tensor.Tensor

	scope  *tensor.Scope
	typ    tensor.Type
	low    Mode           // of products
	seed   *tensor.Tensor // of this computation; nil if nothing may be random
	draws  int
	path   string
	params map[string]*tensor.Tensor
	states map[string]*tensor.Tensor // running statistics
	next   map[string]*tensor.Tensor // their values after this computation
	share  share                     // of a batch of a group of members; zero of a whole one
	cut    *cut                      // between columns and rows that members divide; nil outside of them
	plan   *plan                     // of a network that is being built
	owner  *int                      // the member that has the parameters of the layers, of stages that are built
	err    error
}

// NewPass returns a pass with given parameters and running statistics by their names, all of one scope and of
// one floating type. seed is a U64 tensor of one element, or nil for a pass without random numbers.
func NewPass(values map[string]*tensor.Tensor, seed *tensor.Tensor) *Pass {
	p := &Pass{params: values, states: values, next: map[string]*tensor.Tensor{}, seed: seed, typ: tensor.F32}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		p.typ, p.scope = values[name].Type(), values[name].Scope()
		break
	}
	return p
}

// Err returns the first mistake of a layer, or nil. Mistakes of operations are also those of their results.
func (p *Pass) Err() error { return p.err }

// States returns the running statistics that layers have changed, by their names.
func (p *Pass) States() map[string]*tensor.Tensor { return p.next }

// Type returns the floating type in which the network computes.
func (p *Pass) Type() tensor.Type { return p.typ }

// Mode is the type of the operands of products and convolutions in training. Sums within them, and all else,
// are of the network's type.
type Mode string

// The precisions. With F16 the loss is scaled, so that small gradients are not lost. The factor is 65536 at first,
// doubles after 2000 steps without an infinite gradient, and is halved after a step with one, which changes nothing and
// is not counted.
const (
	Full Mode = "" // the network's type
	F16  Mode = "f16"
	BF16 Mode = "bf16"
	// Auto is BF16 on devices that compute with it, else F16 on those that do so faster than with F32, and else
	// Full. Of a network of F64 it is Full, and in a group whose members' devices would differ.
	Auto Mode = "auto"
)

// on returns the mode that Auto stands for with a network of a type on a device.
func (m Mode) on(info *runtime.Info, t tensor.Type) Mode {
	switch {
	case m != Auto:
		return m
	case t == tensor.F64:
		return Full
	case info.SupportsBF16:
		return BF16
	case info.SupportsFP16 && info.FastFP16:
		return F16
	}
	return Full
}

// divided reports whether the batch is that of several members of a group, of which some may have no rows.
func (p *Pass) divided() bool { return p.share.all > 0 && p.scope.Size() > 1 }

// MatMul returns the product of x and w in the precision of the pass.
func (p *Pass) MatMul(x, w *tensor.Tensor) *tensor.Tensor {
	if p.low == Full {
		return x.MatMul(w)
	}
	return p.lower(x).MatMul(p.lower(w)).Cast(p.typ)
}

// lower returns x in the type of operands of products.
func (p *Pass) lower(x *tensor.Tensor) *tensor.Tensor {
	if p.low == Full {
		return x
	}
	t, _ := tensor.ParseType(string(p.low))
	return x.Cast(t)
}

// Fail notes a mistake of the layer, which matches [ErrConfig], and returns a tensor that the layer may return.
func (p *Pass) Fail(x *tensor.Tensor, format string, args ...any) *tensor.Tensor {
	if p.err == nil {
		name := ""
		if p.path != "" {
			name = "layer " + p.path + ": "
		}
		p.err = fmt.Errorf("%w: %s%s", ErrConfig, name, fmt.Sprintf(format, args...))
	}
	return x
}

// named returns the full name of something of the layer.
func (p *Pass) named(name string) string { return strings.TrimPrefix(p.path+"."+name, ".") }

// Layer applies a layer that is a part of the one that calls, with a name that no other part of it has.
func (p *Pass) Layer(name string, l Layer, x *tensor.Tensor) *tensor.Tensor {
	if l == nil {
		return p.Fail(x, "part %q is nil", name)
	}
	around := p.path
	p.path = p.named(name)
	defer func() { p.path = around }()
	row := -1
	if p.plan != nil {
		row = p.plan.enter(p.path, l)
	}
	open := p.cut
	if open != nil && !open.passes(l) {
		return p.Fail(x, "%v between columns and rows that members divide", l)
	}
	y := l.Apply(p, x)
	if y == nil {
		return p.Fail(x, "%v returns nil", l)
	}
	if p.cut != open && !(*cut)(nil).passes(l) {
		p.Fail(x, "%v ends between columns and rows that members divide", l)
	}
	if err := y.Err(); err != nil && p.err == nil {
		p.err = fmt.Errorf("layer %s, %v: %w", p.path, l, err)
	}
	if row >= 0 && y.Err() == nil {
		p.plan.leave(row, y)
	}
	return y
}

// Param returns a parameter of the layer, of the network's type and the given shape. init gives its first value
// when the network is built.
func (p *Pass) Param(name string, init Init, shape ...int) *tensor.Tensor {
	return p.declared(Param{Name: p.named(name), Shape: slices.Clone(shape)}, init)
}

// declared returns a parameter, or this member's part of it.
func (p *Pass) declared(v Param, init Init) *tensor.Tensor {
	v.Shape = v.shapeAt(p.scope.Rank())
	if p.plan != nil {
		return p.plan.declare(p, &p.plan.params, v, init)
	}
	return p.value(p.params, v.Name, v.Shape)
}

// State returns a running statistic of the layer, which is value when the network is built. SetState gives it
// another value.
func (p *Pass) State(name string, value float64, shape ...int) *tensor.Tensor {
	name = p.named(name)
	if p.plan != nil {
		return p.plan.declare(p, &p.plan.states, Param{Name: name, Shape: slices.Clone(shape)}, Constant(value))
	}
	if t := p.next[name]; t != nil {
		return t
	}
	return p.value(p.states, name, shape)
}

// SetState gives a running statistic of the layer its next value.
func (p *Pass) SetState(name string, t *tensor.Tensor) { p.next[p.named(name)] = t }

func (p *Pass) value(of map[string]*tensor.Tensor, name string, shape []int) *tensor.Tensor {
	t := of[name]
	if t == nil {
		p.Fail(nil, "there is no value %q", name)
		return tensor.Zeros(p.scope, p.typ, shape...)
	}
	if !slices.Equal(t.Shape(), shape) {
		p.Fail(nil, "%q has the shape %v instead of %v", name, t.Shape(), shape)
	}
	return t
}

// Seed returns a seed for random numbers that differ from those of all other calls and of other steps, and
// false in a pass without random numbers. All members of a group get the same one.
func (p *Pass) Seed() (*tensor.Tensor, bool) {
	if p.seed == nil {
		return nil, false
	}
	p.draws++
	return p.seed.Add(uint64(p.draws) << 40), true
}

// plan collects what a network consists of while it is built.
type plan struct {
	params, states []Param
	inits          map[string]Init
	rows           []row
	depth          int
}

// Param is a parameter of a network, or a running statistic: a window of one tensor with all of them.
type Param struct {
	Name  string
	Shape []int
	First int   // the index of its first element among all
	Whole []int // the shape of the parameter of which this member of a group has a part; nil where it has all of it

	axis  int            // that members divide; -1 is none, and one of them has all
	parts []cluster.Part // along it, of all members by their ranks
}

// Len returns the number of elements.
func (p Param) Len() int {
	n := 1
	for _, d := range p.Shape {
		n *= d
	}
	return n
}

// row is a line of Model.Summary.
type row struct {
	path, layer string
	shape       []int
	depth       int
	before      int // parameters declared before the layer, then its own
}

func (l *plan) enter(path string, layer Layer) int {
	l.rows = append(l.rows, row{path: path, layer: layer.String(), depth: l.depth, before: elements(l.params)})
	l.depth++
	return len(l.rows) - 1
}

func (l *plan) leave(i int, y *tensor.Tensor) {
	l.depth--
	l.rows[i].shape = y.Shape()[min(1, y.Rank()):]
	l.rows[i].before = elements(l.params) - l.rows[i].before
}

// elements returns how many elements all have.
func elements(list []Param) int {
	if len(list) == 0 {
		return 0
	}
	last := list[len(list)-1]
	return last.First + last.Len()
}

// declare adds a parameter. It returns a tensor that stands for it.
func (l *plan) declare(p *Pass, list *[]Param, v Param, init Init) *tensor.Tensor {
	t := tensor.Zeros(p.scope, p.typ, v.Shape...)
	if t.Err() != nil || init == nil {
		return p.Fail(t, "%q of shape %v", v.Name, v.Shape)
	}
	if slices.ContainsFunc(slices.Concat(l.params, l.states), func(o Param) bool { return o.Name == v.Name }) {
		return p.Fail(t, "two values have the name %q", v.Name)
	}
	if p.owner != nil {
		v = v.ownedBy(*p.owner, p.scope.Rank(), p.scope.Size())
	}
	v.First = elements(*list)
	*list = append(*list, v)
	l.inits[v.Name] = init
	return t
}
