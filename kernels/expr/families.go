package expr

// The definitions of the catalog's kernels that are expressions.

import (
	"fmt"
	"strings"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// families are those families by their IDs.
var families = map[string]*family{}

func init() {
	for _, f := range []*family{saxpyFamily(), arithFamily(), fillFamily(), copyFamily(), castFamily(),
		activationFamily(), reduceFamily(), softmaxFamily(), normFamily()} {
		f.register()
	}
}

// register completes the family's outline with what follows from the expressions, and adds it to the catalog.
func (f *family) register() {
	k, ok := kernels.Outline(f.id)
	if !ok || k.Arguments == nil {
		panic("expr: package kernels has no outline of " + f.id + ", or one that does not check arguments")
	}
	f.defines = k.Defines
	families[f.id] = f
	k.Text = func(defs []source.Define) (string, error) {
		list, err := f.of(among(defs))
		if err != nil {
			return "", err
		}
		return f.text(list), nil
	}
	k.Work = func(c *kernels.Call, _ float64) (operations, moved float64) {
		d, ok := DefinedOf(c.Unit, c.Kernel)
		if !ok {
			return 0, 0
		}
		var l Layout
		d.n.layout(&l, func(i int) int { return int(c.Int(i)) })
		w := d.Map.Work(&l)
		return w.Operations, w.Bytes
	}
	k.Native = func(u *source.Unit, kernel string) kernels.Func {
		d, ok := DefinedOf(u, kernel)
		if !ok {
			return nil
		}
		run := d.Map.native()
		return func(c *kernels.Call) error {
			to := kernels.Call{Host: c.Host}
			d.Arrange(c, &to, nil)
			return run(&to)
		}
	}
	kernels.Register(k)
}

// of returns the kernels for the types that definitions name.
func (f *family) of(define func(name string) (string, bool)) ([]*catalogKernel, error) {
	list := make([]Type, len(f.defines))
	for i, name := range f.defines {
		list[i] = F32
		if name == "INDEX" {
			list[i] = U32
		}
		if v, ok := define(name); ok {
			var err error
			if list[i], err = driver.ParseType(v); err != nil {
				return nil, fmt.Errorf("%s=%s is not a type: %w", name, v, ErrInvalid)
			}
		}
	}
	made, ok := f.made.Load([2]Type(append(list, 0)[:2]))
	if !ok {
		var all []*catalogKernel
		for i := range f.list {
			if n := newCatalogKernel(&f.list[i], list); n != nil {
				all = append(all, n)
			}
		}
		made, _ = f.made.LoadOrStore([2]Type(append(list, 0)[:2]), all)
	}
	return made.([]*catalogKernel), nil
}

// elements are the parameters of a kernel of n elements.
func elements(first ...parameter) (list []parameter, dims []int) {
	return append(first, length("n")), []int{len(first)}
}

func saxpyFamily() *family {
	f := form{kernel: "saxpy", define: func(t []Type) *Expr {
		return Apply(FMA, Input(0, t[0]), Param(0, t[0].Computed()), Input(1, t[0])).Output(t[0])
	}}
	f.params, f.dims = elements(number("a"), in(0, "x"), parameter{role: updates, slot: 1, name: "y"})
	return &family{id: "saxpy", doc: "// y = a·x + y for n elements, rounded once.\n", list: []form{f}}
}

func arithFamily() *family {
	f := &family{id: "arith", doc: `// out = a OP b, element by element: both are arrays of n elements, one of them is a
// scalar, or both are broadcast to a shape of four dimensions. Integers wrap; div exists
// for floating types only. out and a or b may be the same buffer.
//
// Broadcasting: element (i0,i1,i2,i3) of an operand lies at the sum of i·stride, and the
// stride of a dimension that the operand lacks is 0. out is dense.
`}
	for _, op := range []Op{Add, Sub, Mul, Div} {
		name := op.String()
		// apply returns a definition of which operand number scalar, if there is one, is a number.
		apply := func(scalar int) func(t []Type) *Expr {
			return func(t []Type) *Expr {
				if op == Div && !t[0].IsFloat() {
					return nil
				}
				var operands [2]*Expr
				slot := 0
				for k := range operands {
					if k == scalar {
						operands[k] = Param(0, t[0].Computed())
						continue
					}
					operands[k] = Input(slot, t[0])
					slot++
				}
				return Apply(op, operands[0], operands[1]).Output(t[0])
			}
		}
		add := func(kernel string, scalar int, params ...parameter) {
			k := form{kernel: kernel, define: apply(scalar)}
			k.params, k.dims = elements(append(params, out("out"))...)
			f.list = append(f.list, k)
		}
		add(name, -1, in(0, "a"), in(1, "b"))
		add(name+"_scalar", 1, in(0, "a"), number("s"))
		if op == Sub || op == Div {
			add("scalar_"+name, 0, number("s"), in(0, "a"))
		}
		k := form{kernel: name + "_broadcast", define: apply(-1), dims: []int{3, 4, 5, 6},
			params: []parameter{in(0, "a").by(factors{7}, factors{8}, factors{9}, factors{10}),
				in(1, "b").by(factors{11}, factors{12}, factors{13}, factors{14}), out("out")}}
		for _, letter := range []string{"d", "a", "b"} {
			for j := range 4 {
				k.params = append(k.params, short(fmt.Sprint(letter, j)))
			}
		}
		f.list = append(f.list, k)
	}
	return f
}

func fillFamily() *family {
	f := form{kernel: "fill", define: func(t []Type) *Expr { return Param(0, t[0].Computed()).Output(t[0]) }}
	f.params, f.dims = elements(out("out"), number("value"))
	return &family{id: "fill", doc: "// out[i] = value for n elements.\n", list: []form{f}}
}

func copyFamily() *family {
	f := form{kernel: "copy", define: func(t []Type) *Expr { return Input(0, unsignedOf(t[0])) }}
	f.params, f.dims = elements(in(0, "in"), out("out"))
	doc := "// out[i] = in[i] for n elements, bit for bit, including NaN payloads and denormals.\n"
	return &family{id: "copy", doc: doc, list: []form{f}}
}

// unsignedOf returns the unsigned type of the size of t's elements.
func unsignedOf(t Type) Type {
	return map[int]Type{1: U8, 2: U16, 4: U32, 8: U64}[t.Size()]
}

func castFamily() *family {
	f := form{kernel: "cast", define: func(t []Type) *Expr { return Input(0, t[0]).Cast(t[1]).Output(t[1]) }}
	f.params, f.dims = elements(in(0, "in"), out("out").of(1))
	return &family{id: "cast", doc: `// out[i] = in[i] converted from type FROM to type TO, both definitions, with one
// rounding: to a floating type to nearest even, with overflow to infinity; to an integer type toward zero, with
// saturation, and a NaN becomes 0.
`, list: []form{f}}
}

func activationFamily() *family {
	f := &family{id: "activation", doc: "// out[i] = f(in[i]) for n elements. out and in may be the same buffer.\n"}
	for _, a := range []struct {
		kernel string
		of     func(x *Expr) *Expr
	}{
		{"relu", func(x *Expr) *Expr { return x.Number(0).Max(x) }}, // of -0 it is -0
		{"sigmoid", (*Expr).Sigmoid},
		{"tanh_act", (*Expr).Tanh},
		{"gelu", (*Expr).GELU},
		// x/2·(1 + tanh u) = x / (1 + e^-2u) with u = √(2/π)·(x + 0.044715·x³)
		{"gelu_tanh", func(x *Expr) *Expr {
			cubic := x.Number(0.044715).Mul(x).Mul(x).Mul(x)
			return x.Div(x.Number(-1.59576912160573071176).Mul(x.Add(cubic)).Exp().Add(x.Number(1)))
		}},
		{"swish", func(x *Expr) *Expr { return x.Div(x.Neg().Exp().Add(x.Number(1))) }},
	} {
		k := form{kernel: a.kernel, define: func(t []Type) *Expr { return a.of(Input(0, t[0])).Output(t[0]) }}
		k.params, k.dims = elements(in(0, "in"), out("out"))
		f.list = append(f.list, k)
	}
	return f
}

func reduceFamily() *family {
	f := &family{id: "reduce", doc: `// Reductions over the middle axis of an array of outer × axis × inner elements; out
// has outer × inner. Results have the type T: sums and products of integers wrap, and integers have no mean.
// If axis is 0, a sum is 0, a product 1, a mean NaN, a maximum -∞ or the smallest integer, a minimum +∞ or the
// largest, and the index of argmax and argmin 0. A NaN makes max and min NaN. argmax is the index of the first NaN
// if there is one, otherwise of the first of equal maxima; argmin likewise for minima. Indices have the
// integer type INDEX, u32 by default; one that is too large for it keeps its low bits.
//
// reduce_<op>          one group per result: for a long axis
// reduce_<op>_columns  one item per result: for a long inner, where neighbouring
//                      items read neighbouring addresses
`}
	mean := func(x *Expr) *Expr { return x.Sum().Div(x.length()) }
	for _, suffix := range []string{"", "_columns"} {
		for _, r := range []struct {
			name string
			of   func(x *Expr) *Expr
		}{{"sum", (*Expr).Sum}, {"prod", (*Expr).Product}, {"mean", mean}, {"max", (*Expr).Largest},
			{"min", (*Expr).Smallest}, {"argmax", (*Expr).ArgLargest}, {"argmin", (*Expr).ArgSmallest}} {
			k := form{kernel: "reduce_" + r.name + suffix, dims: []int{2, 4, 3}}
			to := out("out").by(factors{4}, factors{}, repeated)
			k.define = func(t []Type) *Expr {
				if r.name == "mean" && !t[0].IsFloat() {
					return nil
				}
				return r.of(Input(0, t[0])).Output(t[0])
			}
			if strings.HasPrefix(r.name, "arg") {
				to = to.of(1)
				k.define = func(t []Type) *Expr { return r.of(Input(0, t[0])).wrapped(t[1]) }
			}
			k.params = []parameter{in(0, "in").by(factors{3, 4}, factors{}, factors{4}), to, short("outer"), short("axis"),
				short("inner")}
			f.list = append(f.list, k)
		}
	}
	return f
}

// wrapped returns the low bits of e, an I64, as an integer type.
func (e *Expr) wrapped(t Type) *Expr {
	if t.Size() == 8 {
		return e.Bits(t)
	}
	low := int64(1)<<(8*t.Size()) - 1
	return Apply(And, e, Int(I64, low)).Cast(unsignedOf(t)).Bits(t)
}

func softmaxFamily() *family {
	return &family{id: "softmax", doc: `// out[r][j] = e^(in[r][j] - m) / Σ e^(in[r][·] - m), where m is the maximum of the
// row, so that nothing overflows. One group per row. A row with a NaN or +∞ becomes NaN, and so does a
// row of only -∞. out and in may be the same buffer.
`, list: []form{{kernel: "softmax", dims: []int{2, 3},
		params: []parameter{in(0, "in"), out("out"), short("rows"), short("n")},
		define: func(t []Type) *Expr { return Input(0, t[0]).Softmax().Output(t[0]) }}}}
}

func normFamily() *family {
	f := &family{id: "norm", doc: `// Normalization of rows, one group per row:
//
//   layer_norm  out[r][j] = (in[r][j] - m) / √(v + epsilon) · gamma[j] + beta[j], where m
//               is the mean of the row and v the mean of (in - m)²
//   rms_norm    out[r][j] = in[r][j] / √(q + epsilon) · gamma[j], q the mean of in²
//
// A NaN makes its row NaN. out and in may be the same buffer.
`}
	normal := func(op Op, t Type) *Expr {
		x := Input(0, t)
		return Apply(op, x, Length().Cast(x.Type()), Param(0, t.Computed())).Mul(Input(1, t))
	}
	sizes := []parameter{out("out"), short("rows"), short("n"), number("epsilon")}
	f.list = []form{
		{kernel: "layer_norm", dims: []int{4, 5},
			params: append([]parameter{in(0, "in"), row(1, "gamma"), row(2, "beta")}, sizes...),
			define: func(t []Type) *Expr { return normal(Normalize, t[0]).Add(Input(2, t[0])).Output(t[0]) }},
		{kernel: "rms_norm", dims: []int{3, 4}, params: append([]parameter{in(0, "in"), row(1, "gamma")}, sizes...),
			define: func(t []Type) *Expr { return normal(RMSNormalize, t[0]).Output(t[0]) }},
	}
	return f
}
