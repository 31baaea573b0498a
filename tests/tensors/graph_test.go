package tensors

// Random graphs: what a graph is, how it is made, built of tensors and interpreted, and how a failing one
// becomes small.

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/tensor"
)

// node is one operation of a graph. Which fields it uses depends on the operation.
type node struct {
	op      string
	args    []int
	typ     tensor.Type
	shape   []int
	ints    []int // axes, an order, lengths
	ranges  []tensor.Range
	margins [][2]int
	value   any   // a number of Go as the last operand
	data    []num // of a leaf
}

// graph lists nodes, of which each has the ones before it as operands, those that are asked for, and those that
// are computed before them.
type graph struct {
	nodes []node
	roots []int
	first []int
}

func (n node) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s(", n.op)
	for i, a := range n.args {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "x%d", a)
	}
	b.WriteByte(')')
	if n.typ != 0 {
		fmt.Fprintf(&b, " %v", n.typ)
	}
	if n.shape != nil {
		fmt.Fprintf(&b, " shape %v", n.shape)
	}
	if n.ints != nil {
		fmt.Fprintf(&b, " %v", n.ints)
	}
	if n.ranges != nil {
		fmt.Fprintf(&b, " ranges %v", n.ranges)
	}
	if n.margins != nil {
		fmt.Fprintf(&b, " margins %v", n.margins)
	}
	if n.value != nil {
		fmt.Fprintf(&b, " %T(%v)", n.value, n.value)
	}
	if len(n.data) > 0 {
		b.WriteString(" of")
		for i, x := range n.data {
			if i == 24 {
				b.WriteString(" ...")
				break
			}
			if tensor.IsFloat(n.typ) {
				fmt.Fprintf(&b, " %v", x.f)
			} else {
				fmt.Fprintf(&b, " %d", x.i)
			}
		}
	}
	return b.String()
}

// print returns the graph with the type and the shape of each node.
func (g *graph) print(values []*array) string {
	var b strings.Builder
	for i, n := range g.nodes {
		fmt.Fprintf(&b, "x%d = %v  // %v%v\n", i, n, values[i].typ, values[i].shape)
	}
	fmt.Fprintf(&b, "roots %v, computed first %v", g.roots, g.first)
	return b.String()
}

// constant returns a number of Go as an element.
func constant(t tensor.Type, value any) num {
	f := 0.0
	switch v := value.(type) {
	case float64:
		f = v
	case int:
		f = float64(v)
	case bool:
		return truth(v)
	}
	if tensor.IsFloat(t) {
		return num{f: f}
	}
	if t == tensor.Bool {
		return truth(f != 0)
	}
	return num{i: int64(f)}
}

// weak returns a number of Go as an array of no dimensions, and the operand that goes with it.
func weak(a *array, value any) (*array, *array) {
	t := a.typ
	switch value.(type) {
	case float64:
		if !tensor.IsFloat(t) {
			t = tensor.F64
		}
	case int:
		if t == tensor.Bool {
			t = tensor.I64
		}
	}
	return a.cast(t), &array{t, nil, []num{constant(t, value)}}
}

// interpret returns the value of a node for those of its operands.
func (n *node) interpret(in []*array) *array {
	switch n.op {
	case "leaf":
		return &array{n.typ, n.shape, n.data}
	case "full":
		out := newArray(n.typ, n.shape...)
		for i := range out.v {
			out.v[i] = constant(n.typ, n.value)
		}
		return out
	case "iota":
		out := newArray(tensor.I64, n.shape...)
		for i := range out.v {
			out.v[i].i = int64(i)
		}
		return out.cast(n.typ)
	case "neg", "abs", "square", "relu", "sign", "not":
		return in[0].simple(n.op)
	case "stop", "copy", "checkpoint":
		return in[0]
	case "cast":
		return in[0].cast(n.typ)
	case "where":
		if n.value == nil {
			return where(in[0], in[1], in[2])
		}
		a, b := weak(in[1], n.value)
		if n.ints[0] == 1 {
			a, b = b, a
		}
		return where(in[0], a, b)
	case "reshape", "unsqueeze", "squeeze":
		return in[0].reshape(n.shape...)
	case "permute":
		return in[0].permute(n.ints...)
	case "slice":
		a := in[0]
		for j, r := range n.ranges {
			a = a.pick(j, selected(r, a.shape[j]))
		}
		return a
	case "flip":
		a := in[0]
		for _, j := range n.ints {
			var list []int
			for i := range a.shape[j] {
				list = append(list, a.shape[j]-1-i)
			}
			a = a.pick(j, list)
		}
		return a
	case "index":
		a := in[0].pick(n.ints[0], n.ints[1:])
		return a.reshape(slices.Delete(slices.Clone(a.shape), n.ints[0], n.ints[0]+1)...)
	case "split":
		axis, k, lengths := n.ints[0], n.ints[1], n.ints[2:]
		var list []int
		for i := range lengths[k] {
			list = append(list, sum(lengths[:k])+i)
		}
		return in[0].pick(axis, list)
	case "expand":
		return in[0].expand(n.shape...)
	case "concat":
		return concat(n.ints[0], in...)
	case "stack":
		list := make([]*array, len(in))
		for i, a := range in {
			list[i] = a.reshape(slices.Insert(slices.Clone(a.shape), n.ints[0], 1)...)
		}
		return concat(n.ints[0], list...)
	case "pad":
		return in[0].pad(constant(in[0].typ, n.value), n.margins)
	case "sum", "prod", "max", "min", "all", "any":
		return in[0].reduce(n.op, n.ints, false)
	case "sum keep", "prod keep", "max keep", "min keep", "all keep", "any keep":
		return in[0].reduce(n.op[:len(n.op)-5], n.ints, true)
	case "mean":
		return in[0].floats().mean(n.ints, false)
	case "variance":
		a := in[0].floats()
		d := binary("sub", a, a.mean(n.ints, true))
		return d.simple("square").mean(n.ints, false)
	case "softmax":
		return in[0].softmax(n.ints[0], false)
	case "logsoftmax":
		return in[0].softmax(n.ints[0], true)
	case "matmul":
		return matmul(in[0], in[1])
	case "cumsum":
		return in[0].cumsum(n.ints[0])
	case "sort":
		return in[0].sort(n.ints[0], n.ints[1] == 1, n.ints[2] == 1)
	case "argmax":
		return in[0].largest(n.ints[0])
	case "take":
		return in[0].take(n.ints[0], in[1])
	case "roll":
		d := in[0].shape[n.ints[0]]
		list := make([]int, d)
		for i := range list {
			list[i] = ((i-n.ints[1])%d + d) % d
		}
		return in[0].pick(n.ints[0], list)
	case "tril":
		return in[0].lower(n.ints[0])
	}
	if f, ok := functions[n.op]; ok {
		return in[0].unary(f.f, f.rounds)
	}
	if n.value != nil {
		a, b := weak(in[0], n.value)
		return binary(n.op, a, b)
	}
	return binary(n.op, in[0], in[1])
}

func sum(list []int) int {
	n := 0
	for _, x := range list {
		n += x
	}
	return n
}

func (a *array) mean(axes []int, kept bool) *array {
	s := a.reduce("sum", axes, kept)
	n := float64(length(a.shape)) / float64(length(s.shape))
	return binary("div", s, &array{s.typ, nil, []num{{f: n}}})
}

// interpret returns the values of all nodes.
func (g *graph) interpret() []*array {
	var list []*array
	for i := range g.nodes {
		list = append(list, g.nodes[i].interpret(pick(list, g.nodes[i].args)))
	}
	return list
}

func pick[T any](list []T, numbers []int) []T {
	var out []T
	for _, i := range numbers {
		out = append(out, list[i])
	}
	return out
}

// leaf returns a tensor of data.
func leaf(s *tensor.Scope, n *node) *tensor.Tensor {
	switch n.typ {
	case tensor.F32:
		return put(s, n, func(x num) float32 { return float32(x.f) })
	case tensor.F64:
		return put(s, n, func(x num) float64 { return x.f })
	case tensor.F16:
		return put(s, n, func(x num) runtime.Float16 { return runtime.ToFloat16(x.f) })
	case tensor.BF16:
		return put(s, n, func(x num) runtime.BFloat16 { return runtime.ToBFloat16(x.f) })
	case tensor.I8:
		return put(s, n, func(x num) int8 { return int8(x.i) })
	case tensor.I16:
		return put(s, n, func(x num) int16 { return int16(x.i) })
	case tensor.I32:
		return put(s, n, func(x num) int32 { return int32(x.i) })
	case tensor.I64:
		return put(s, n, func(x num) int64 { return x.i })
	case tensor.U8:
		return put(s, n, func(x num) uint8 { return uint8(x.i) })
	case tensor.U16:
		return put(s, n, func(x num) uint16 { return uint16(x.i) })
	case tensor.U32:
		return put(s, n, func(x num) uint32 { return uint32(x.i) })
	case tensor.U64:
		return put(s, n, func(x num) uint64 { return uint64(x.i) })
	}
	return put(s, n, func(x num) bool { return x.i != 0 })
}

func put[T tensor.Element](s *tensor.Scope, n *node, as func(x num) T) *tensor.Tensor {
	data := make([]T, len(n.data))
	for i, x := range n.data {
		data[i] = as(x)
	}
	return tensor.From(s, data, append([]int{}, n.shape...)...)
}

var unaries = map[string]func(t *tensor.Tensor) *tensor.Tensor{
	"sqrt": (*tensor.Tensor).Sqrt, "exp": (*tensor.Tensor).Exp, "log": (*tensor.Tensor).Log, "tanh": (*tensor.Tensor).Tanh,
	"sin": (*tensor.Tensor).Sin,
	"cos": (*tensor.Tensor).Cos, "erf": (*tensor.Tensor).Erf, "atan": (*tensor.Tensor).Atan,
	"expm1": (*tensor.Tensor).Expm1, "log1p": (*tensor.Tensor).Log1p,
	"floor": (*tensor.Tensor).Floor, "ceil": (*tensor.Tensor).Ceil, "trunc": (*tensor.Tensor).Trunc,
	"round":      (*tensor.Tensor).Round,
	"reciprocal": (*tensor.Tensor).Reciprocal, "sigmoid": (*tensor.Tensor).Sigmoid, "rsqrt": (*tensor.Tensor).Rsqrt,
	"neg": (*tensor.Tensor).Neg,
	"abs": (*tensor.Tensor).Abs, "square": (*tensor.Tensor).Square, "relu": (*tensor.Tensor).Relu,
	"sign": (*tensor.Tensor).Sign, "not": (*tensor.Tensor).Not,
	"stop": (*tensor.Tensor).StopGradient, "copy": (*tensor.Tensor).Copy,
	"checkpoint": func(t *tensor.Tensor) *tensor.Tensor {
		return tensor.Checkpoint(func(args ...*tensor.Tensor) *tensor.Tensor { return args[0].Neg().Neg() }, t)
	},
}

var binaries = map[string]func(t *tensor.Tensor, x any) *tensor.Tensor{
	"add": (*tensor.Tensor).Add, "sub": (*tensor.Tensor).Sub, "mul": (*tensor.Tensor).Mul, "div": (*tensor.Tensor).Div,
	"quo": (*tensor.Tensor).Quo,
	"rem": (*tensor.Tensor).Rem, "pow": (*tensor.Tensor).Pow, "maximum": (*tensor.Tensor).Maximum,
	"minimum":  (*tensor.Tensor).Minimum,
	"copysign": (*tensor.Tensor).CopySign, "and": (*tensor.Tensor).And, "or": (*tensor.Tensor).Or,
	"xor": (*tensor.Tensor).Xor, "shl": (*tensor.Tensor).Shl,
	"shr": (*tensor.Tensor).Shr, "eq": (*tensor.Tensor).Eq, "ne": (*tensor.Tensor).Ne, "lt": (*tensor.Tensor).Lt,
	"le": (*tensor.Tensor).Le,
	"gt": (*tensor.Tensor).Gt, "ge": (*tensor.Tensor).Ge,
}

var reductions = map[string]func(t *tensor.Tensor, axes ...int) *tensor.Tensor{
	"sum": (*tensor.Tensor).Sum, "prod": (*tensor.Tensor).Prod, "max": (*tensor.Tensor).Max, "min": (*tensor.Tensor).Min,
	"all": (*tensor.Tensor).All,
	"any": (*tensor.Tensor).Any, "mean": (*tensor.Tensor).Mean,
	"variance": func(t *tensor.Tensor, axes ...int) *tensor.Tensor { return t.Var(0, axes...) },
}

// build returns the tensor of a node.
func (n *node) build(s *tensor.Scope, in []*tensor.Tensor) *tensor.Tensor {
	switch n.op {
	case "leaf":
		return leaf(s, n)
	case "full":
		return tensor.Full(s, n.typ, n.value, n.shape...)
	case "iota":
		return tensor.Iota(s, n.typ, n.shape...)
	case "cast":
		return in[0].Cast(n.typ)
	case "where":
		switch {
		case n.value == nil:
			return tensor.Where(in[0], in[1], in[2])
		case n.ints[0] == 1:
			return tensor.Where(in[0], n.value, in[1])
		}
		return tensor.Where(in[0], in[1], n.value)
	case "reshape":
		return in[0].Reshape(n.shape...)
	case "unsqueeze":
		return in[0].Unsqueeze(n.ints[0])
	case "squeeze":
		return in[0].Squeeze(n.ints...)
	case "permute":
		return in[0].Permute(n.ints...)
	case "slice":
		return in[0].Slice(n.ranges...)
	case "flip":
		return in[0].Flip(n.ints...)
	case "index":
		return in[0].Index(n.ints[0], n.ints[1])
	case "split":
		return in[0].Split(n.ints[0], n.ints[2:]...)[n.ints[1]]
	case "expand":
		return in[0].Expand(n.shape...)
	case "concat":
		return tensor.Concat(n.ints[0], in...)
	case "stack":
		return tensor.Stack(n.ints[0], in...)
	case "pad":
		return in[0].Pad(n.value, n.margins...)
	case "softmax":
		return in[0].Softmax(n.ints[0])
	case "logsoftmax":
		return in[0].LogSoftmax(n.ints[0])
	case "matmul":
		return in[0].MatMul(in[1])
	case "cumsum":
		return in[0].CumSum(n.ints[0])
	case "sort":
		values, indices := in[0].Sort(n.ints[0], n.ints[1] == 1)
		if n.ints[2] == 1 {
			return indices
		}
		return values
	case "argmax":
		return in[0].ArgMax(n.ints[0])
	case "take":
		return in[0].Take(n.ints[0], in[1])
	case "roll":
		return in[0].Roll(n.ints[0], n.ints[1])
	case "tril":
		return in[0].Tril(n.ints[0])
	}
	if f, ok := unaries[n.op]; ok {
		return f(in[0])
	}
	if name, keep := strings.CutSuffix(n.op, " keep"); keep {
		return in[0].KeepDims(reductions[name](in[0], n.ints...), n.ints...)
	}
	if f, ok := reductions[n.op]; ok {
		return f(in[0], n.ints...)
	}
	if n.value != nil {
		return binaries[n.op](in[0], n.value)
	}
	return binaries[n.op](in[0], in[1])
}

// build returns the tensors of all nodes, with given ones for the leaves if there are any.
func (g *graph) build(s *tensor.Scope, leaves []*tensor.Tensor) []*tensor.Tensor {
	var list []*tensor.Tensor
	for i := range g.nodes {
		if n := &g.nodes[i]; n.op == "leaf" && leaves != nil {
			list, leaves = append(list, leaves[0]), leaves[1:]
		} else {
			list = append(list, n.build(s, pick(list, n.args)))
		}
	}
	return list
}

// maker makes random graphs.
type maker struct {
	*rand.Rand
	types  []tensor.Type
	smooth bool // for gradients: functions with derivatives in most places, of F64
	big    bool
	graph
	values []*array
}

var allTypes = []tensor.Type{tensor.F32, tensor.F64, tensor.F16, tensor.BF16, tensor.I8, tensor.I16, tensor.I32,
	tensor.I64, tensor.U8, tensor.U16, tensor.U32,
	tensor.U64, tensor.Bool}

// mostElements is the size of the largest arrays.
var mostElements = count("ELEMENTS", 3000)

// random returns a graph of at most that many operations.
func random(r *rand.Rand, operations int, smooth bool) (*graph, []*array) {
	m := &maker{Rand: r, smooth: smooth, types: []tensor.Type{tensor.F32}, big: r.IntN(6) == 0}
	switch {
	case smooth:
		m.types = []tensor.Type{tensor.F64}
	case r.IntN(2) == 0:
		m.types = []tensor.Type{tensor.F64, tensor.I32, tensor.Bool, allTypes[r.IntN(len(allTypes))]}
	case r.IntN(3) == 0:
		m.types = allTypes
	}
	m.leaf(m.typ(), m.shape())
	for made, tries := 0, 0; made < 1+r.IntN(operations) && tries < 20*operations; tries++ {
		if n, ok := m.operation(); ok {
			if m.add(n); n.op != "leaf" {
				made++
			}
		}
	}
	m.roots = []int{len(m.nodes) - 1}
	for range r.IntN(4) * r.IntN(2) {
		m.roots = append(m.roots, r.IntN(len(m.nodes)))
	}
	for range r.IntN(3) * r.IntN(2) {
		m.first = append(m.first, r.IntN(len(m.nodes)))
	}
	if smooth {
		m.roots, m.first = m.roots[:1], nil
	}
	return &m.graph, m.values
}

func (m *maker) typ() tensor.Type { return m.types[m.IntN(len(m.types))] }

// real is 1 if all results have to be floating-point numbers.
func (m *maker) real() int {
	if m.smooth {
		return 1
	}
	return 0
}

func (m *maker) add(n node) int {
	v := n.interpret(pick(m.values, n.args))
	m.nodes, m.values = append(m.nodes, n), append(m.values, v)
	return len(m.nodes) - 1
}

func (m *maker) length() int {
	switch k := m.IntN(40); {
	case k == 0 && !m.smooth:
		return 0
	case k < 6:
		return 1
	case k < 9 && m.big:
		return 10 + m.IntN(mostElements/20)
	case k < 36:
		return 2 + m.IntN(4)
	}
	return 6 + m.IntN(4)
}

func (m *maker) shape() []int {
	most := 4
	if m.IntN(10) == 0 {
		most = 7
	}
	shape := []int{}
	for range m.IntN(most) {
		d := m.length()
		if length(shape)*d > mostElements {
			d = 1
		}
		shape = append(shape, d)
	}
	return shape
}

// leaf adds data.
func (m *maker) leaf(t tensor.Type, shape []int) int {
	n := node{op: "leaf", typ: t, shape: slices.Clone(shape)}
	wide := m.IntN(6) == 0
	for range length(shape) {
		n.data = append(n.data, m.element(t, wide))
	}
	return m.add(n)
}

func (m *maker) element(t tensor.Type, wide bool) num {
	switch t {
	case tensor.F64:
		return num{f: m.Float64()*4 - 2}
	case tensor.F32:
		return num{f: float64(m.Float32()*4 - 2)}
	case tensor.F16:
		return num{f: float64(m.IntN(1024)-512) / 256}
	case tensor.BF16:
		return num{f: float64(m.IntN(128)-64) / 32}
	case tensor.Bool:
		return truth(m.IntN(2) == 0)
	}
	x := int64(m.IntN(12))
	if signed(t) {
		x -= 4
	}
	if wide {
		x = int64(m.Uint64())
	}
	return wrapped(t, x)
}

// number returns a number of Go that goes with a type.
func (m *maker) number(t tensor.Type) any {
	switch {
	case m.IntN(3) == 0 && t != tensor.Bool || tensor.IsFloat(t):
		return float64(m.IntN(17)-8) / 4
	case t == tensor.Bool && m.IntN(2) == 0:
		return m.IntN(2) == 0
	case signed(t) || t == tensor.Bool:
		return m.IntN(12) - 5
	}
	return m.IntN(12)
}

// stretchable returns a node whose shape stretches with a's, at best of the same type: one that there is, or new data.
func (m *maker) stretchable(a int) int {
	shape := m.values[a].shape
	for range 4 {
		b := m.IntN(len(m.nodes))
		if fit(shape, m.values[b].shape) && length(stretched(shape, m.values[b].shape)) <= mostElements {
			return b
		}
	}
	if m.IntN(4) == 0 {
		return a
	}
	out := slices.Clone(shape)
	for j := range out {
		if m.IntN(4) == 0 {
			out[j] = 1
		}
	}
	return m.leaf(m.typ(), out[m.IntN(len(out)/2+1):])
}

func fit(a, b []int) bool {
	for j := 1; j <= min(len(a), len(b)); j++ {
		x, y := a[len(a)-j], b[len(b)-j]
		if x != y && x != 1 && y != 1 {
			return false
		}
	}
	return true
}

// operation returns a random operation on what there is. It reports false if the one that it tried does not fit.
func (m *maker) operation() (node, bool) {
	a := m.IntN(len(m.nodes))
	if m.IntN(2) == 0 {
		a = len(m.nodes) - 1
	}
	v := m.values[a]
	rank, isFloat := len(v.shape), tensor.IsFloat(v.typ)
	one := func(op string) (node, bool) { return node{op: op, args: []int{a}}, true }
	axis := func() int { return m.IntN(rank) }
	if m.smooth && !isFloat { // a condition
		return node{}, false
	}
	switch m.IntN(27) {
	case 0, 1: // functions of one number
		smooth := []string{"exp", "tanh", "sin", "cos", "erf", "atan", "expm1", "sigmoid"}
		if m.smooth {
			smooth = append(smooth, "neg", "square", "checkpoint", "relu", "abs", "reciprocal", "log1p")
		}
		if op := smooth[m.IntN(len(smooth))]; m.smooth || v.typ != tensor.Bool && m.IntN(2) == 0 {
			return one(op)
		}
		all := []string{"neg", "abs", "square", "relu", "sign", "stop", "copy", "floor", "ceil", "trunc", "round",
			"reciprocal", "sqrt", "log", "log1p", "rsqrt", "not", "checkpoint"}
		op := all[m.IntN(len(all))]
		switch {
		case op == "not" && isFloat, op == "checkpoint" && !isFloat,
			v.typ == tensor.Bool && !slices.Contains([]string{"not", "copy", "stop"}, op), unsigned(v.typ) && op == "neg":
			return node{}, false
		case slices.Contains([]string{"sqrt", "log", "log1p", "rsqrt"}, op) && m.IntN(4) > 0 && isFloat:
			// of positive numbers
			a = m.add(node{op: "square", args: []int{a}})
			if op != "sqrt" {
				a = m.add(node{op: "add", args: []int{a}, value: 0.25})
			}
		}
		return one(op)
	case 2, 3, 4, 5, 6: // of two numbers
		ops := []string{"add", "sub", "mul", "add", "mul", "div", "maximum", "minimum"}
		if !m.smooth {
			ops = append(ops, "quo", "rem", "pow", "copysign", "and", "or", "xor", "shl", "shr", "eq", "ne", "lt", "le", "gt",
				"ge")
		}
		op, t := ops[m.IntN(len(ops))], v.typ
		n := node{op: op, args: []int{a}}
		if m.IntN(4) == 0 {
			n.value = m.number(t)
			if x, _ := weak(&array{typ: t}, n.value); x.typ != t {
				t = x.typ
			}
		} else {
			n.args = append(n.args, m.stretchable(a))
			if m.IntN(4) == 0 {
				slices.Reverse(n.args)
			}
			t = promoted(m.values[n.args[0]].typ, m.values[n.args[1]].typ)
		}
		switch op {
		case "and", "or", "xor":
			return n, !tensor.IsFloat(t)
		case "shl", "shr":
			return n, isInteger(t)
		case "copysign":
			return n, tensor.IsFloat(t)
		case "sub", "maximum", "minimum", "quo", "rem":
			return n, t != tensor.Bool
		}
		return n, true
	case 7:
		if m.smooth {
			return node{}, false
		}
		to := allTypes[m.IntN(len(allTypes))]
		return node{op: "cast", args: []int{a}, typ: to}, to != v.typ
	case 8:
		shape := v.shape
		c := m.IntN(len(m.nodes))
		if m.values[c].typ != tensor.Bool || !fit(shape, m.values[c].shape) ||
			length(stretched(shape, m.values[c].shape)) > mostElements {
			c = m.leaf(tensor.Bool, shape)
		}
		if m.IntN(3) == 0 {
			return node{op: "where", args: []int{c, a}, value: m.number(v.typ), ints: []int{m.IntN(2)}}, true
		}
		b := m.stretchable(a)
		all := stretched(m.values[c].shape, shape)
		return node{op: "where", args: []int{c, a, b}}, fit(m.values[b].shape, all) &&
			length(stretched(all, m.values[b].shape)) <= mostElements
	case 9, 10:
		return node{op: "reshape", args: []int{a}, shape: m.factors(length(v.shape))}, true
	case 11, 12:
		return node{op: "permute", args: []int{a}, ints: m.Perm(rank)}, rank > 1
	case 13, 14:
		n := node{op: "slice", args: []int{a}}
		for j := range 1 + m.IntN(max(rank, 1)) {
			if j < rank {
				n.ranges = append(n.ranges, m.span(v.shape[j]))
			}
		}
		return n, rank > 0
	case 15:
		if rank == 0 {
			return node{}, false
		}
		switch j := axis(); m.IntN(3) {
		case 0:
			return node{op: "flip", args: []int{a}, ints: []int{j}}, true
		case 1:
			if v.shape[j] > 0 {
				return node{op: "index", args: []int{a}, ints: []int{j, m.IntN(v.shape[j])}}, true
			}
		case 2:
			cut := m.IntN(v.shape[j] + 1)
			return node{op: "split", args: []int{a}, ints: []int{j, m.IntN(2), cut, v.shape[j] - cut}}, true
		}
		return node{}, false
	case 16:
		if m.IntN(2) == 0 {
			j := m.IntN(rank + 1)
			return node{op: "unsqueeze", args: []int{a}, ints: []int{j}, shape: slices.Insert(slices.Clone(v.shape), j, 1)},
				rank < 7
		}
		n := node{op: "squeeze", args: []int{a}, shape: []int{}}
		for j, d := range v.shape {
			if d == 1 && m.IntN(2) == 0 {
				n.ints = append(n.ints, j)
			} else {
				n.shape = append(n.shape, d)
			}
		}
		return n, len(n.ints) > 0
	case 17:
		shape := slices.Clone(v.shape)
		for j := range shape {
			if shape[j] == 1 {
				shape[j] = m.length()
			}
		}
		for len(shape) < 6 && m.IntN(3) == 0 {
			shape = slices.Insert(shape, 0, m.length())
		}
		return node{op: "expand", args: []int{a}, shape: shape}, !slices.Equal(shape, v.shape) &&
			length(shape) <= mostElements
	case 18:
		if rank == 0 || rank == 8 {
			return node{}, false
		}
		j := axis()
		n := node{op: "concat", args: []int{a}, ints: []int{j}}
		if m.IntN(3) == 0 {
			n.op = "stack"
			n.args = append(n.args, a)
			for b, w := range m.values {
				if slices.Equal(w.shape, v.shape) && w.typ == v.typ && m.IntN(2) == 0 {
					n.args = append(n.args, b)
					break
				}
			}
			return n, length(v.shape)*len(n.args) <= mostElements && rank < 7
		}
		for b, w := range m.values {
			if len(w.shape) == rank && m.IntN(2) == 0 && len(n.args) < 4 {
				x, y := slices.Clone(v.shape), slices.Clone(w.shape)
				if x[j], y[j] = 0, 0; slices.Equal(x, y) {
					n.args = append(n.args, b)
				}
			}
		}
		if len(n.args) == 1 {
			shape := slices.Clone(v.shape)
			shape[j] = m.length()
			n.args = append(n.args, m.leaf(m.typ(), shape))
		}
		total := 0
		for _, b := range n.args {
			total += length(m.values[b].shape)
		}
		m.Shuffle(len(n.args), func(x, y int) { n.args[x], n.args[y] = n.args[y], n.args[x] })
		return n, total <= mostElements
	case 19:
		n := node{op: "pad", args: []int{a}, value: 0}
		if m.IntN(2) == 0 {
			n.value = 1
		}
		shape := slices.Clone(v.shape)
		for j := range 1 + m.IntN(max(rank, 1)) {
			if j < rank {
				n.margins = append(n.margins, [2]int{m.IntN(3), m.IntN(3)})
				shape[j] += n.margins[j][0] + n.margins[j][1]
			}
		}
		return n, rank > 0 && length(shape) <= mostElements
	case 20, 21, 22:
		ops := []string{"sum", "mean", "sum keep", "variance", "prod", "max", "min", "prod keep", "max keep", "min keep"}
		if !m.smooth {
			ops = append(ops, "all", "any", "all keep", "any keep")
		}
		n := node{op: ops[m.IntN(len(ops))], args: []int{a}}
		for j := range v.shape {
			if m.IntN(2) == 0 {
				n.ints = append(n.ints, j)
			}
		}
		if (strings.HasPrefix(n.op, "max") || strings.HasPrefix(n.op, "min") || n.op == "mean" || n.op == "variance") &&
			length(v.shape) == 0 {
			return node{}, false
		}
		if m.smooth && n.ints == nil && rank > 0 {
			return node{}, false // no sum of all, which leaves nothing to do
		}
		return n, true
	case 23:
		if rank == 0 || length(v.shape) == 0 {
			return node{}, false
		}
		return node{op: []string{"softmax", "logsoftmax"}[m.IntN(2)], args: []int{a}, ints: []int{axis()}}, true
	case 24:
		return m.product(a)
	case 26:
		if rank == 0 || length(v.shape) == 0 {
			return node{}, false
		}
		switch j := axis(); m.IntN(5) {
		case 0:
			return node{op: "sort", args: []int{a}, ints: []int{j, m.IntN(2), m.IntN(2) * (1 - m.real())}}, v.typ != tensor.Bool
		case 1:
			return node{op: "argmax", args: []int{a}, ints: []int{j}}, !m.smooth
		case 2:
			n := node{op: "leaf", typ: tensor.I32, shape: []int{m.length()}}
			if length(v.shape)/v.shape[j]*n.shape[0] > mostElements {
				return node{}, false
			}
			for range n.shape[0] {
				n.data = append(n.data, num{i: int64(m.IntN(2*v.shape[j]+2) - v.shape[j] - 1)})
			}
			return node{op: "take", args: []int{a, m.add(n)}, ints: []int{j}}, true
		case 3:
			return node{op: "roll", args: []int{a}, ints: []int{j, m.IntN(9) - 4}}, true
		}
		return node{op: "tril", args: []int{a}, ints: []int{m.IntN(5) - 2}}, rank > 1
	case 25:
		if m.smooth {
			if rank == 0 {
				return node{}, false
			}
			return node{op: "cumsum", args: []int{a}, ints: []int{axis()}}, true
		}
		switch m.IntN(4) {
		case 0:
			t := m.typ()
			return node{op: "full", typ: t, shape: m.shape(), value: m.IntN(2)}, true
		case 1:
			if t := m.typ(); t != tensor.Bool {
				return node{op: "iota", typ: t, shape: m.shape()}, true
			}
		case 2:
			if rank > 0 {
				return node{op: "cumsum", args: []int{a}, ints: []int{axis()}}, true
			}
		case 3:
			m.leaf(m.typ(), m.shape())
		}
	}
	return node{}, false
}

// product returns a product of matrices, of which the second is new data that fits, transposed or sliced.
func (m *maker) product(a int) (node, bool) {
	v := m.values[a]
	if len(v.shape) == 0 {
		return node{}, false
	}
	k := v.shape[len(v.shape)-1]
	for range 3 { // one that there is
		b := m.IntN(len(m.nodes))
		w := m.values[b]
		if len(w.shape) < 2 || w.shape[len(w.shape)-2] != k {
			continue
		}
		batch := 1
		if len(v.shape) > 2 {
			if !fit(v.shape[:len(v.shape)-2], w.shape[:len(w.shape)-2]) {
				continue
			}
			batch = length(stretched(v.shape[:len(v.shape)-2], w.shape[:len(w.shape)-2]))
		} else {
			batch = length(w.shape[:len(w.shape)-2])
		}
		rows := 1
		if len(v.shape) > 1 {
			rows = v.shape[len(v.shape)-2]
		}
		if batch*rows*w.shape[len(w.shape)-1] <= mostElements && batch*k*max(rows, w.shape[len(w.shape)-1]) <= mostElements {
			return node{op: "matmul", args: []int{a, b}}, true
		}
	}
	n := m.length()
	if length(v.shape)/max(k, 1)*n > mostElements || k*n > mostElements {
		return node{}, false
	}
	var b int
	switch m.IntN(5) {
	case 0:
		b = m.leaf(m.typ(), []int{k})
	case 1:
		b = m.add(node{op: "permute", args: []int{m.leaf(m.typ(), []int{n, k})}, ints: []int{1, 0}})
	case 2:
		b = m.add(node{op: "slice", args: []int{m.leaf(m.typ(), []int{k + 2, 2*n + 1})},
			ranges: []tensor.Range{{Start: 1, Stop: k + 1, Step: 1}, {Start: m.IntN(2), Stop: 2 * n, Step: 2}}})
	case 3:
		shape := append(slices.Clone(v.shape[:max(len(v.shape)-2, 0)]), k, n)
		for j := range len(shape) - 2 {
			if m.IntN(2) == 0 {
				shape[j] = 1
			}
		}
		if length(shape) > mostElements {
			return node{}, false
		}
		b = m.leaf(m.typ(), shape)
	default:
		b = m.leaf(m.typ(), []int{k, n})
	}
	return node{op: "matmul", args: []int{a, b}}, true
}

// factors returns a shape of n elements.
func (m *maker) factors(n int) []int {
	shape := []int{}
	if n == 0 {
		for range m.IntN(4) {
			shape = append(shape, m.IntN(4))
		}
		return slices.Insert(shape, m.IntN(len(shape)+1), 0)
	}
	for n > 1 && len(shape) < 5 {
		var divisors []int
		for d := 2; d <= n; d++ {
			if n%d == 0 {
				divisors = append(divisors, d)
			}
		}
		d := divisors[m.IntN(len(divisors))]
		shape = append(shape, d)
		n /= d
	}
	if n > 1 {
		shape = append(shape, n)
	}
	for len(shape) < 6 && m.IntN(4) == 0 {
		shape = slices.Insert(shape, m.IntN(len(shape)+1), 1)
	}
	return shape
}

// span returns a part of a dimension.
func (m *maker) span(n int) tensor.Range {
	switch m.IntN(6) {
	case 0:
		return tensor.All
	case 1:
		return tensor.Range{Start: m.IntN(2*n+3) - n - 1, Stop: m.IntN(2*n+3) - n - 1, Step: m.IntN(7) - 3}
	case 2:
		return tensor.Range{Start: tensor.End, Stop: tensor.End, Step: -1 - m.IntN(3)}
	case 3:
		return tensor.Range{Start: -1, Stop: tensor.End, Step: -1}
	}
	start := m.IntN(n/2 + 1)
	return tensor.Range{Start: start, Stop: start + 1 + m.IntN(n+1), Step: 1 + m.IntN(2)}
}

// shrink returns a smaller graph that still fails: with fewer roots, and with data in place of operations.
func shrink(g *graph, fails func(g *graph) bool) *graph {
	for again := true; again; {
		again = false
		for i := 0; i < len(g.roots) && len(g.roots) > 1; i++ {
			if c := (&graph{g.nodes, slices.Delete(slices.Clone(g.roots), i, i+1), g.first}).pruned(); fails(c) {
				g, again, i = c, true, -1
			}
		}
		for i := 0; i < len(g.first); i++ {
			if c := (&graph{g.nodes, g.roots, slices.Delete(slices.Clone(g.first), i, i+1)}).pruned(); fails(c) {
				g, again, i = c, true, -1
			}
		}
		values := g.interpret()
		for i := range g.nodes {
			n := g.nodes[i]
			if n.op == "leaf" || slices.ContainsFunc(values[i].v, func(x num) bool { return !x.known() }) {
				continue
			}
			c := &graph{slices.Clone(g.nodes), g.roots, g.first}
			c.nodes[i] = node{op: "leaf", typ: values[i].typ, shape: values[i].shape, data: exact(values[i])}
			if c = c.pruned(); fails(c) {
				g, again = c, true
				break
			}
		}
	}
	return g
}

// exact returns an array's elements as data, rounded so that half and bfloat16 hold them.
func exact(a *array) []num {
	list := make([]num, len(a.v))
	for i, x := range a.v {
		list[i] = num{f: x.f, i: x.i}
		switch a.typ {
		case tensor.F32:
			list[i].f = float64(float32(x.f))
		case tensor.F16:
			list[i].f = runtime.ToFloat16(x.f).Float64()
		case tensor.BF16:
			list[i].f = runtime.ToBFloat16(x.f).Float64()
		}
	}
	return list
}

// pruned returns the graph without nodes that no root needs.
func (g *graph) pruned() *graph {
	need := make([]bool, len(g.nodes))
	for _, r := range slices.Concat(g.roots, g.first) {
		need[r] = true
	}
	for i := range slices.Backward(g.nodes) {
		if need[i] {
			for _, a := range g.nodes[i].args {
				need[a] = true
			}
		}
	}
	out, number := &graph{}, make([]int, len(g.nodes))
	for i, n := range g.nodes {
		if need[i] {
			number[i] = len(out.nodes)
			n.args = pick(number, n.args)
			out.nodes = append(out.nodes, n)
		}
	}
	out.roots, out.first = pick(number, g.roots), pick(number, g.first)
	return out
}
