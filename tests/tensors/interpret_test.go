package tensors

// The interpreter: operations on dense arrays, one element at a time, without anything of package tensor.

import (
	"math"
	"math/bits"
	"slices"

	"github.com/concord-compute/concord/tensor"
)

// array is a dense array of elements.
type array struct {
	typ   tensor.Type
	shape []int
	v     []num
}

func length(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

func newArray(t tensor.Type, shape ...int) *array {
	return &array{t, slices.Clone(shape), make([]num, length(shape))}
}

// each calls f for each index of a shape, in order.
func each(shape []int, f func(n int, index []int)) {
	index := make([]int, len(shape))
	for n := range length(shape) {
		f(n, index)
		for j := len(shape) - 1; j >= 0; j-- {
			if index[j]++; index[j] < shape[j] {
				break
			}
			index[j] = 0
		}
	}
}

func (a *array) offset(index []int) int {
	n := 0
	for j, i := range index {
		n = n*a.shape[j] + i
	}
	return n
}

// from returns an array of a shape whose elements are those of a in other places.
func (a *array) from(shape []int, place func(index []int) []int) *array {
	out := newArray(a.typ, shape...)
	each(shape, func(n int, index []int) { out.v[n] = a.v[a.offset(place(index))] })
	return out
}

func (a *array) cast(t tensor.Type) *array {
	out := newArray(t, a.shape...)
	for i, x := range a.v {
		out.v[i] = cast(a.typ, t, x)
	}
	return out
}

func (a *array) floats() *array {
	if tensor.IsFloat(a.typ) {
		return a
	}
	return a.cast(tensor.F64)
}

func (a *array) expand(shape ...int) *array {
	shift := len(shape) - len(a.shape)
	return a.from(shape, func(index []int) []int {
		in := slices.Clone(index[shift:])
		for j := range in {
			if a.shape[j] == 1 {
				in[j] = 0
			}
		}
		return in
	})
}

func (a *array) reshape(shape ...int) *array { return &array{a.typ, slices.Clone(shape), a.v} }

func (a *array) permute(order ...int) *array {
	shape := make([]int, len(order))
	for j, d := range order {
		shape[j] = a.shape[d]
	}
	return a.from(shape, func(index []int) []int {
		in := make([]int, len(index))
		for j, d := range order {
			in[d] = index[j]
		}
		return in
	})
}

// pick returns the elements of a dimension that have the given numbers.
func (a *array) pick(axis int, numbers []int) *array {
	shape := slices.Clone(a.shape)
	shape[axis] = len(numbers)
	return a.from(shape, func(index []int) []int {
		in := slices.Clone(index)
		in[axis] = numbers[index[axis]]
		return in
	})
}

// selected lists the elements that Python's slices select of n.
func selected(r tensor.Range, n int) []int {
	step := r.Step
	if step == 0 {
		step = 1
	}
	start, stop := r.Start, r.Stop
	if start < 0 {
		start += n
	}
	if stop < 0 {
		stop += n
	}
	var list []int
	if step > 0 {
		for i := max(start, 0); i < n && (r.Stop == tensor.End || i < stop); i += step {
			list = append(list, i)
		}
		return list
	}
	for i := min(start, n-1); i >= 0 && (r.Stop == tensor.End || i > stop); i += step {
		list = append(list, i)
	}
	return list
}

func stretched(shapes ...[]int) []int {
	var out []int
	for _, s := range shapes {
		for len(out) < len(s) {
			out = slices.Insert(out, 0, 1)
		}
		for j, d := range s {
			if k := len(out) - len(s) + j; d != 1 {
				out[k] = d
			}
		}
	}
	return out
}

// unary applies a function of one floating-point number.
func (a *array) unary(f func(x float64) float64, rounds float64) *array {
	a = a.floats()
	out := newArray(a.typ, a.shape...)
	for i, x := range a.v {
		out.v[i] = through(a.typ, rounds, func(x []float64) float64 { return f(x[0]) }, x)
	}
	return out
}

// functions are those of one floating-point number, with the roundings that devices may make.
var functions = map[string]struct {
	f      func(x float64) float64
	rounds float64
}{
	"sqrt": {math.Sqrt, 8}, "exp": {math.Exp, 16}, "log": {math.Log, 16}, "tanh": {math.Tanh, 32}, "sin": {math.Sin, 32},
	"cos": {math.Cos, 32}, "erf": {math.Erf, 40},
	"atan": {math.Atan, 32}, "expm1": {math.Expm1, 24}, "log1p": {math.Log1p, 16}, "floor": {math.Floor, 0},
	"ceil": {math.Ceil, 0}, "trunc": {math.Trunc, 0},
	"round": {math.RoundToEven, 0}, "reciprocal": {func(x float64) float64 { return 1 / x }, 8},
	"sigmoid": {func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, 32},
	"rsqrt":   {func(x float64) float64 { return 1 / math.Sqrt(x) }, 16},
}

// simple are functions of one number of any type, which for integers wrap.
func (a *array) simple(name string) *array {
	out := newArray(a.typ, a.shape...)
	for i, x := range a.v {
		if tensor.IsFloat(a.typ) {
			f := map[string]func(x float64) float64{"neg": func(x float64) float64 { return -x }, "abs": math.Abs,
				"square": func(x float64) float64 { return x * x }, "relu": func(x float64) float64 { return max(x, 0) },
				"sign": func(x float64) float64 {
					if x == 0 {
						return 0
					}
					return math.Copysign(1, x)
				}}[name]
			rounds := 0.0
			if name == "square" {
				rounds = 2
			}
			out.v[i] = through(a.typ, rounds, func(x []float64) float64 { return f(x[0]) }, x)
			if name == "sign" && x.e > 0 && math.Abs(x.f) <= x.e {
				out.v[i] = unknown
			}
			continue
		}
		y := unknown
		if x.known() {
			negative := !unsigned(a.typ) && x.i < 0
			switch name {
			case "neg":
				y = wrapped(a.typ, -x.i)
			case "abs":
				if y = x; negative {
					y = wrapped(a.typ, -x.i)
				}
			case "square":
				y = wrapped(a.typ, x.i*x.i)
			case "relu":
				if y = x; negative {
					y = num{}
				}
			case "sign":
				switch {
				case negative:
					y = num{i: -1}
				case x.i != 0:
					y = num{i: 1}
				default:
					y = num{}
				}
			case "not":
				if y = wrapped(a.typ, ^x.i); a.typ == tensor.Bool {
					y = truth(x.i == 0)
				}
			}
		}
		out.v[i] = y
	}
	return out
}

// binary applies an operation of two operands of one type, after they are stretched.
func binary(name string, a, b *array) *array {
	t := promoted(a.typ, b.typ)
	if (name == "div" || name == "pow") && !tensor.IsFloat(t) {
		t = tensor.F64
	}
	shape := stretched(a.shape, b.shape)
	a, b = a.cast(t).expand(shape...), b.cast(t).expand(shape...)
	out := newArray(t, shape...)
	if compares(name) {
		out.typ = tensor.Bool
	}
	for i := range out.v {
		x, y := a.v[i], b.v[i]
		switch {
		case !x.known() || !y.known():
			out.v[i] = unknown
		case compares(name):
			out.v[i] = compared(name, t, x, y)
		case tensor.IsFloat(t):
			out.v[i] = arithmetic(name, t, x, y)
		default:
			out.v[i] = integers(name, t, x.i, y.i)
		}
	}
	return out
}

func compares(name string) bool {
	return slices.Contains([]string{"eq", "ne", "lt", "le", "gt", "ge"}, name)
}

func compared(name string, t tensor.Type, x, y num) num {
	c := 0
	switch {
	case tensor.IsFloat(t):
		if e := x.e + y.e; e > 0 && math.Abs(x.f-y.f) <= e {
			return unknown
		}
		switch {
		case x.f < y.f:
			c = -1
		case x.f > y.f:
			c = 1
		}
	case unsigned(t):
		switch {
		case uint64(x.i) < uint64(y.i):
			c = -1
		case uint64(x.i) > uint64(y.i):
			c = 1
		}
	case x.i < y.i:
		c = -1
	case x.i > y.i:
		c = 1
	}
	return truth(map[string]bool{"eq": c == 0, "ne": c != 0, "lt": c < 0, "le": c <= 0, "gt": c > 0, "ge": c >= 0}[name])
}

// arithmetic is that of floating-point numbers.
func arithmetic(name string, t tensor.Type, x, y num) num {
	near := y.e > 0 && math.Abs(y.f) <= 2*y.e || y.f == 0 // a divisor that may be 0
	switch name {
	case "add":
		return through(t, 2, func(v []float64) float64 { return v[0] + v[1] }, x, y)
	case "sub":
		return through(t, 2, func(v []float64) float64 { return v[0] - v[1] }, x, y)
	case "mul":
		return through(t, 2, func(v []float64) float64 { return v[0] * v[1] }, x, y)
	case "maximum":
		return through(t, 0, func(v []float64) float64 { return max(v[0], v[1]) }, x, y)
	case "minimum":
		return through(t, 0, func(v []float64) float64 { return min(v[0], v[1]) }, x, y)
	case "div":
		if near {
			return unknown
		}
		return through(t, 8, func(v []float64) float64 { return v[0] / v[1] }, x, y)
	case "quo", "rem":
		if near {
			return unknown
		}
		q := x.f / y.f // has to have one whole part for all that x and y may be, also after it is rounded
		far := (x.e+math.Abs(q)*y.e)/(math.Abs(y.f)-y.e) + 16*formats[t].unit*math.Abs(q) + formats[t].tiny
		if x.e+y.e == 0 && name == "rem" && narrower(q, tensor.BF16) == q {
			far = 0
		}
		if math.Trunc(q-far) != math.Trunc(q+far) || far > 0 && math.Abs(q) <= far {
			return unknown
		}
		if name == "quo" {
			return num{f: math.Trunc(q), e: formats[t].tiny}
		}
		return float(t, math.Mod(x.f, y.f), x.e+math.Abs(math.Trunc(q))*y.e, 4)
	case "pow":
		if x.f-x.e <= 0 {
			return unknown
		}
		return through(t, 64, func(v []float64) float64 { return math.Pow(v[0], v[1]) }, x, y)
	case "copysign":
		if math.Abs(y.f) <= y.e {
			return unknown
		}
		return through(t, 0, func(v []float64) float64 { return math.Copysign(v[0], y.f) }, x)
	}
	panic(name)
}

// integers is the arithmetic of integers and truths.
func integers(name string, t tensor.Type, x, y int64) num {
	if t == tensor.Bool {
		switch name {
		case "add", "or":
			return truth(x|y != 0)
		case "mul", "and":
			return truth(x&y != 0)
		case "xor":
			return truth(x != y)
		}
		panic(name)
	}
	less := x < y
	if unsigned(t) {
		less = uint64(x) < uint64(y)
	}
	n := uint64(8 * t.Size())
	switch name {
	case "add":
		return wrapped(t, x+y)
	case "sub":
		return wrapped(t, x-y)
	case "mul":
		return wrapped(t, x*y)
	case "maximum":
		if less {
			x = y
		}
		return num{i: x}
	case "minimum":
		if less {
			y = x
		}
		return num{i: y}
	case "quo", "rem":
		lo, _ := ends(t)
		switch {
		case y == 0 || signed(t) && x == lo && y == -1: // what the device makes of it
			return unknown
		case unsigned(t):
			q, r := bits.Div64(0, uint64(x), uint64(y))
			if name == "rem" {
				q = r
			}
			return num{i: int64(q)}
		case name == "quo":
			return num{i: x / y}
		}
		return num{i: x % y}
	case "and":
		return num{i: x & y}
	case "or":
		return num{i: x | y}
	case "xor":
		return num{i: x ^ y}
	case "shl":
		return wrapped(t, x<<(uint64(y)%n))
	case "shr":
		if unsigned(t) {
			return num{i: int64(uint64(x) >> (uint64(y) % n))}
		}
		return num{i: x >> (uint64(y) % n)}
	}
	panic(name)
}

func where(c, a, b *array) *array {
	t := promoted(a.typ, b.typ)
	shape := stretched(c.shape, a.shape, b.shape)
	c, a, b = c.expand(shape...), a.cast(t).expand(shape...), b.cast(t).expand(shape...)
	out := newArray(t, shape...)
	for i := range out.v {
		switch {
		case !c.v[i].known():
			out.v[i] = unknown
		case c.v[i].i != 0:
			out.v[i] = a.v[i]
		default:
			out.v[i] = b.v[i]
		}
	}
	return out
}

// reduce reduces axes, all if there are none; kept leaves them with length 1.
func (a *array) reduce(name string, axes []int, kept bool) *array {
	t := a.typ
	if len(axes) == 0 {
		for j := range a.shape {
			axes = append(axes, j)
		}
	}
	switch {
	case name == "all" || name == "any":
		t = tensor.Bool
	case (name == "sum" || name == "prod") && !tensor.IsFloat(t):
		if t = tensor.I64; unsigned(a.typ) {
			t = tensor.U64
		}
	}
	a = a.cast(t)
	full, short := slices.Clone(a.shape), []int{}
	for j, d := range a.shape {
		if slices.Contains(axes, j) {
			full[j] = 1
		} else {
			short = append(short, d)
		}
	}
	groups := make([][]num, length(full))
	target := newArray(t, full...)
	each(a.shape, func(n int, index []int) {
		in := slices.Clone(index)
		for _, j := range axes {
			in[j] = 0
		}
		k := target.offset(in)
		groups[k] = append(groups[k], a.v[n])
	})
	for k, g := range groups {
		target.v[k] = reduced(name, t, g)
	}
	if !kept {
		target.shape = short
	}
	return target
}

func reduced(name string, t tensor.Type, g []num) num {
	var acc num
	if name == "prod" {
		acc = num{f: 1, i: 1}
	}
	if name == "all" {
		acc.i = 1
	}
	size, err, partial := 0.0, 0.0, 1.0 // partial is the largest product that may occur on the way, in any order
	for k, x := range g {
		switch name {
		case "all", "any": // one certain element may decide
			if x.known() && (x.i != 0) == (name == "any") {
				return truth(name == "any")
			}
			if !x.known() {
				acc.e = math.Inf(1)
			}
			continue
		}
		if !x.known() {
			return unknown
		}
		switch {
		case name == "sum" && tensor.IsFloat(t):
			acc.f += x.f
			size, err = size+math.Abs(x.f), err+x.e
		case name == "sum":
			acc.i += x.i
		case name == "prod" && tensor.IsFloat(t):
			err = err*(math.Abs(x.f)+x.e) + math.Abs(acc.f)*x.e
			acc.f *= x.f
			if partial *= max(1, math.Abs(x.f)+x.e); partial > formats[t].most {
				return unknown
			}
		case name == "prod":
			acc.i *= x.i
		case k == 0:
			acc = x
		default:
			if op := map[string]string{"max": "maximum", "min": "minimum"}[name]; tensor.IsFloat(t) {
				acc = arithmetic(op, t, acc, x)
			} else if t == tensor.Bool {
				acc = integers(map[string]string{"max": "or", "min": "and"}[name], t, acc.i, x.i)
			} else {
				acc = integers(op, t, acc.i, x.i)
			}
		}
		if !acc.known() {
			return unknown
		}
	}
	n, how := float64(len(g)), formats[t]
	switch {
	case name == "sum" && tensor.IsFloat(t):
		// Half and bfloat16 are added up in F32; axes that are no neighbours in several sums, of which each may be stored.
		unit := min(how.unit, formats[tensor.F32].unit)
		return float(t, acc.f, err+2*n*unit*size+4*how.unit*size+n*how.tiny, 2)
	case name == "prod" && tensor.IsFloat(t):
		return float(t, acc.f, err+n*how.tiny, 2*n+6)
	}
	return acc
}

// matmul is the product of matrices by NumPy's rules.
func matmul(a, b *array) *array {
	t := promoted(a.typ, b.typ)
	a, b = a.cast(t), b.cast(t)
	row, column := len(a.shape) == 1, len(b.shape) == 1
	if row {
		a = a.reshape(1, a.shape[0])
	}
	if column {
		b = b.reshape(b.shape[0], 1)
	}
	la, lb := len(a.shape)-2, len(b.shape)-2
	m, k, n := a.shape[la], a.shape[la+1], b.shape[lb+1]
	batch := stretched(a.shape[:la], b.shape[:lb])
	a, b = a.expand(append(slices.Clone(batch), m, k)...), b.expand(append(slices.Clone(batch), k, n)...)
	out := newArray(t, append(slices.Clone(batch), m, n)...)
	for z := range length(batch) {
		for i := range m {
			for j := range n {
				var terms []num
				for l := range k {
					x, y := a.v[(z*m+i)*k+l], b.v[(z*k+l)*n+j]
					switch {
					case !x.known() || !y.known():
						terms = append(terms, unknown)
					case tensor.IsFloat(t):
						terms = append(terms, num{f: x.f * y.f, e: math.Abs(x.f)*y.e + math.Abs(y.f)*x.e + x.e*y.e})
					case t == tensor.Bool:
						terms = append(terms, num{i: x.i & y.i})
					default:
						terms = append(terms, num{i: x.i * y.i})
					}
				}
				name := "sum"
				if t == tensor.Bool {
					name = "any"
				}
				y := reduced(name, t, terms)
				if isInteger(t) && y.known() {
					y = wrapped(t, y.i)
				}
				out.v[(z*m+i)*n+j] = y
			}
		}
	}
	shape := slices.Clone(batch)
	if !row {
		shape = append(shape, m)
	}
	if !column {
		shape = append(shape, n)
	}
	return out.reshape(shape...)
}

// softmax is computed by the same steps as the tensor's, so that its error is bounded by theirs.
func (a *array) softmax(axis int, logarithm bool) *array {
	a = a.floats()
	d := binary("sub", a, a.reduce("max", []int{axis}, true))
	e := d.unary(math.Exp, 16)
	s := e.reduce("sum", []int{axis}, true)
	if logarithm {
		return binary("sub", d, s.unary(math.Log, 16))
	}
	return binary("div", e, s)
}

func concat(axis int, as ...*array) *array {
	t, shape := as[0].typ, slices.Clone(as[0].shape)
	shape[axis] = 0
	for _, a := range as {
		t = promoted(t, a.typ)
		shape[axis] += a.shape[axis]
	}
	out := newArray(t, shape...)
	start := 0
	for _, a := range as {
		a = a.cast(t)
		each(a.shape, func(n int, index []int) {
			in := slices.Clone(index)
			in[axis] += start
			out.v[out.offset(in)] = a.v[n]
		})
		start += a.shape[axis]
	}
	return out
}

func (a *array) pad(value num, margins [][2]int) *array {
	shape := slices.Clone(a.shape)
	for j, m := range margins {
		shape[j] += m[0] + m[1]
	}
	out := newArray(a.typ, shape...)
	for i := range out.v {
		out.v[i] = value
	}
	each(a.shape, func(n int, index []int) {
		in := slices.Clone(index)
		for j, m := range margins {
			in[j] += m[0]
		}
		out.v[out.offset(in)] = a.v[n]
	})
	return out
}

func (a *array) cumsum(axis int) *array {
	t := a.typ
	if !tensor.IsFloat(t) {
		if t = tensor.I64; unsigned(a.typ) {
			t = tensor.U64
		}
	}
	a = a.cast(t)
	out := newArray(t, a.shape...)
	each(a.shape, func(n int, index []int) {
		var g []num
		in := slices.Clone(index)
		for i := range index[axis] + 1 {
			in[axis] = i
			g = append(g, a.v[a.offset(in)])
		}
		out.v[n] = reduced("sum", t, g)
	})
	return out
}

// line calls f for the elements of each line along an axis: their places in the array, in order.
func (a *array) line(axis int, f func(places []int)) {
	short := slices.Clone(a.shape)
	short[axis] = min(short[axis], 1)
	each(short, func(_ int, index []int) {
		var places []int
		in := slices.Clone(index)
		for i := range a.shape[axis] {
			in[axis] = i
			places = append(places, a.offset(in))
		}
		f(places)
	})
}

// less reports whether x is less than y, and whether that is certain.
func less(t tensor.Type, x, y num) (is, certain bool) {
	c := unknown
	if x.known() && y.known() {
		c = compared("lt", t, x, y)
	}
	return c.i != 0, c.known()
}

// sort sorts along an axis, and returns the elements or their indices. Elements that may be equal may change places.
func (a *array) sort(axis int, descending, indices bool) *array {
	out := newArray(a.typ, a.shape...)
	if indices {
		out.typ = tensor.I64
	}
	a.line(axis, func(places []int) {
		order := make([]int, len(places))
		certain, err := true, 0.0
		for i := range order {
			order[i] = i
			err = max(err, a.v[places[i]].e)
		}
		slices.SortStableFunc(order, func(i, j int) int {
			x, y := a.v[places[i]], a.v[places[j]]
			if descending {
				x, y = y, x
			}
			before, one := less(a.typ, x, y)
			after, two := less(a.typ, y, x)
			certain = certain && one && two
			switch {
			case before:
				return -1
			case after:
				return 1
			}
			return 0
		})
		for k, i := range order {
			switch x := a.v[places[i]]; {
			case math.IsInf(err, 1) || indices && !certain || !certain && !tensor.IsFloat(a.typ):
				out.v[places[k]] = unknown
			case indices:
				out.v[places[k]] = num{i: int64(i)}
			case certain:
				out.v[places[k]] = x
			default: // the order of what is nearly equal is not the right one, but its numbers are near
				out.v[places[k]] = num{f: x.f, e: 4 * err * float64(len(places))}
			}
		}
	})
	return out
}

// largest returns the index of the first largest element along an axis.
func (a *array) largest(axis int) *array {
	out := newArray(tensor.I64, slices.Delete(slices.Clone(a.shape), axis, axis+1)...)
	n := 0
	a.line(axis, func(places []int) {
		best := 0
		sure := true
		for i := range places {
			if i > 0 {
				is, certain := less(a.typ, a.v[places[best]], a.v[places[i]])
				sure = sure && certain
				if is {
					best = i
				}
			}
		}
		if out.v[n] = unknown; sure {
			out.v[n] = num{i: int64(best)}
		}
		n++
	})
	return out
}

// take returns the elements of an axis that have the indices of an array of one dimension; zeros for those that
// there are not.
func (a *array) take(axis int, index *array) *array {
	shape := slices.Clone(a.shape)
	shape[axis] = len(index.v)
	out := newArray(a.typ, shape...)
	each(shape, func(n int, at []int) {
		in, k := slices.Clone(at), index.v[at[axis]]
		if k.i < 0 {
			k.i += int64(a.shape[axis])
		}
		switch in[axis] = int(k.i); {
		case !k.known():
			out.v[n] = unknown
		case k.i >= 0 && int(k.i) < a.shape[axis]:
			out.v[n] = a.v[a.offset(in)]
		}
	})
	return out
}

// lower returns the elements of the last two dimensions that are not above diagonal k, and zeros.
func (a *array) lower(k int) *array {
	out := newArray(a.typ, a.shape...)
	each(a.shape, func(n int, index []int) {
		if r := len(index) - 2; index[r+1]-index[r] <= k {
			out.v[n] = a.v[n]
		}
	})
	return out
}
