package nn

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/tensor"
)

// everyWay calls a test with a scope on each device, and on the CPU also where every operation is a kernel of its
// own, and with the types of elements.
func everyWay(t *testing.T, f func(t *testing.T, s *tensor.Scope, types ...tensor.Type)) {
	all := []tensor.Type{tensor.F64, tensor.F32, tensor.F16, tensor.BF16}
	t.Run("cpu:0", func(t *testing.T) { f(t, scopeOn(t, "cpu:0"), all...) })
	t.Run("cpu:0 unfused", func(t *testing.T) {
		session, err := runtime.New(runtime.Config{NoFusion: true})
		require.NoError(t, err)
		defer session.Close()
		dev, err := session.Open(t.Context(), "cpu:0")
		require.NoError(t, err)
		defer dev.Close()
		s := tensor.NewScope(dev)
		defer s.Close()
		f(t, s, all...)
	})
	t.Run("cpu:reference", func(t *testing.T) { f(t, scopeOn(t, "cpu:reference"), tensor.F64) })
	t.Run("opencl:0", func(t *testing.T) { f(t, scopeOn(t, "opencl:0"), tensor.F32) })
}

// joint is a function of each element, and its first and second derivative at points: zeros of both signs, where its
// pieces meet, where it is flat or steep, and infinities where it has derivatives there. NaN stands for one that is
// not judged.
type joint struct {
	f    func(x *tensor.Tensor) *tensor.Tensor
	want map[float64][2]float64
}

var (
	infinity = math.Inf(1)
	minus0   = math.Copysign(0, -1)
)

// at has derivatives at both zeros, which are one key of a map.
func at(first, second float64) map[float64][2]float64 {
	return map[float64][2]float64{0: {first, second}}
}

// and adds a point.
func (j joint) and(x, first, second float64) joint {
	j.want[x] = [2]float64{first, second}
	return j
}

func joints() map[string]joint {
	type T = *tensor.Tensor
	e1, sigma := math.Exp(-1), 1/(1+math.Exp(-1))
	power := func(k float64) func(x T) T { return func(x T) T { return x.Pow(k) } }
	of := func(l Loss, target float64) func(x T) T {
		return func(x T) T {
			y, err := l.Of(x, tensor.Full(x.Scope(), x.Type(), target, x.Shape()...))
			if err != nil {
				panic(err)
			}
			return y.Mul(float64(x.Len())) // the mean of elements whose derivatives are independent
		}
	}
	return map[string]joint{
		"relu":       joint{T.Relu, at(0, 0)}.and(1, 1, 0).and(-1, 0, 0).and(infinity, 1, 0).and(-infinity, 0, 0),
		"leaky_relu": joint{activations[LeakyReLU], at(0.01, 0)}.and(1, 1, 0).and(-1, 0.01, 0),
		"elu": joint{activations[ELU], at(1, 1)}.and(1, 1, 0).and(-1, e1, e1).and(infinity, 1, 0).
			and(-infinity, 0, 0),
		"elu 2.5": joint{func(x T) T { return x.ELU(2.5) }, at(2.5, 2.5)}.and(-1, 2.5*e1, 2.5*e1),
		"softplus": joint{T.Softplus, at(0.5, 0.25)}.and(1, sigma, sigma*(1-sigma)).and(-1, 1-sigma,
			sigma*(1-sigma)).and(infinity, 1, 0).and(-infinity, 0, 0),
		"mish":     {T.Mish, at(0.6, 0.64)},
		"swish":    {T.SiLU, at(0.5, 0.5)},
		"gelu":     {T.GELUTanh, at(0.5, math.Sqrt(2/math.Pi))},
		"gelu_erf": {T.GELU, at(0.5, math.Sqrt(2/math.Pi))},
		"sigmoid":  joint{T.Sigmoid, at(0.25, 0)}.and(infinity, 0, 0).and(-infinity, 0, 0),
		"log sigmoid": joint{func(x T) T { return x.Neg().Softplus().Neg() }, at(0.5, -0.25)}.and(infinity, 0, 0).
			and(-infinity, 1, 0),
		"tanh": joint{T.Tanh, at(1, 0)}.and(infinity, 0, 0).and(-infinity, 0, 0),
		"hard_sigmoid": joint{T.HardSigmoid, at(0.5, 0)}.and(1, 0.5, 0).and(-1, 0.5, 0).and(2, 0, 0).and(-infinity,
			0, 0),
		"hard_tanh": joint{T.HardTanh, at(1, 0)}.and(1, 1, 0).and(-1, 1, 0).and(2, 0, 0).and(infinity, 0, 0),
		"linear":    {activations[Linear], at(1, 0)},

		"abs":       joint{T.Abs, at(0, 0)}.and(-1, -1, 0).and(infinity, 1, 0).and(-infinity, -1, 0),
		"sign":      {T.Sign, at(0, 0)},
		"square":    {T.Square, at(0, 2)},
		"copysign":  joint{func(x T) T { return x.CopySign(-1) }, at(0, 0)}.and(1, -1, 0).and(-1, 1, 0),
		"maximum":   joint{func(x T) T { return x.Maximum(0) }, at(0.5, 0)}.and(1, 1, 0).and(-1, 0, 0),
		"minimum":   joint{func(x T) T { return x.Minimum(1) }, at(1, 0)}.and(1, 0.5, 0).and(2, 0, 0),
		"of itself": {func(x T) T { return x.Maximum(x.Mul(-1)).Add(x.Minimum(x.Neg())) }, at(0, 0)},
		"clamp": joint{func(x T) T { return x.Clamp(-1, 2) }, at(1, 0)}.and(-1, 1, 0).and(2, 1, 0).and(3, 0, 0).
			and(infinity, 0, 0),
		"by halves": {func(x T) T { return x.Maximum(0).Add(x.Abs().Neg().Exp().Log1p()) },
			map[float64][2]float64{0: {0.5, math.NaN()}}},
		"pow 0":   joint{power(0), at(0, 0)}.and(2, 0, 0),
		"pow 1":   joint{power(1), at(1, 0)}.and(-1, 1, 0),
		"pow 2":   joint{power(2), at(0, 2)}.and(-1, -2, 2),
		"pow 3":   joint{power(3), at(0, 0)}.and(-1, 3, -6),
		"pow 2.5": joint{power(2.5), at(0, 0)}.and(1, 2.5, 3.75),
		"pow tensor": joint{func(x T) T { return x.Pow(tensor.Full(x.Scope(), x.Type(), 2, x.Shape()...)) }, at(0,
			2)}.and(-1, -2, 2),
		"sqrt":       joint{T.Sqrt, map[float64][2]float64{0: {infinity, -infinity}}}.and(1, 0.5, -0.25),
		"reciprocal": {T.Reciprocal, map[float64][2]float64{1: {-1, 2}, infinity: {0, 0}}},
		"exp":        joint{T.Exp, at(1, 1)}.and(-infinity, 0, 0), "expm1": {T.Expm1, at(1, 1)}, "exp2": {T.Exp2,
			at(math.Ln2, math.Ln2*math.Ln2)},
		"log1p": {T.Log1p, at(1, -1)}, "log": {T.Log, map[float64][2]float64{1: {1, -1}}},
		"sin": {T.Sin, at(1, 0)}, "cos": {T.Cos, at(0, -1)}, "tan": {T.Tan, at(1, 0)}, "sinh": {T.Sinh, at(1, 0)},
		"cosh": {T.Cosh, at(0, 1)},
		"atan": joint{T.Atan, at(1, 0)}.and(infinity, 0, math.NaN()), "atan2": {func(x T) T { return x.Atan2(2) },
			at(0.5, 0)},
		"erf":   joint{T.Erf, at(2/math.Sqrt(math.Pi), 0)}.and(infinity, 0, math.NaN()),
		"floor": {T.Floor, at(0, 0)}, "ceil": {T.Ceil, at(0, 0)}, "round": {T.Round, at(0, 0)}, "trunc": {T.Trunc,
			at(0, 0)},
		"rem": {func(x T) T { return x.Rem(3) }, at(1, 0)},

		"mse": {of(MSE{}, 0), at(0, 2)}, "mae": {of(MAE{}, 0), at(0, 0)},
		"binary_cross_entropy":     joint{of(BinaryCrossEntropy{}, 1), at(0, 0)}.and(0.5, -2, 4),
		"sigmoid_cross_entropy":    joint{of(SigmoidCrossEntropy{}, 0), at(0.5, 0.25)}.and(infinity, 1, 0),
		"sigmoid_cross_entropy, 1": {of(SigmoidCrossEntropy{}, 1), at(-0.5, 0.25)},
		"huber":                    joint{of(Huber{}, 0), at(0, 1)}.and(1, 1, 1).and(-1, -1, 1).and(2, 1, 0),
		"hinge":                    joint{of(Hinge{}, 1), at(-1, 0)}.and(1, 0, 0).and(2, 0, 0),
		"squared_hinge":            joint{of(SquaredHinge{}, 1), at(-2, 2)}.and(1, 0, 0).and(2, 0, 0),
		"kl_divergence":            joint{of(KLDivergence{}, 1), at(0, 0)}.and(1, -1, 1),
		"poisson":                  {of(Poisson{}, 1), map[float64][2]float64{1: {0, 1}}},
		"log_cosh":                 joint{of(LogCosh{}, 0), at(0, 1)}.and(infinity, 1, 0).and(-infinity, -1, 0),
		"quantile q=0.9":           joint{of(Quantile{0.9}, 0), at(-0.9, 0)}.and(1, 0.1, 0).and(-1, -0.9, 0),
	}
}

// TestJoints: the first and second derivative of every function of elements are right where it is composed of pieces,
// or flat, or steep.
func TestJoints(t *testing.T) {
	list := joints()
	for _, a := range Activations() {
		if a != Softmax && a != LogSoftmax && a != SwiGLU { // of rows: TestJointsOfRows
			assert.Contains(t, list, a.String())
		}
	}
	for _, l := range []Loss{MSE{}, MAE{}, BinaryCrossEntropy{}, SigmoidCrossEntropy{}, Huber{}, Hinge{},
		SquaredHinge{}, KLDivergence{}, Poisson{}, LogCosh{}, Quantile{0.9}} {
		name, _, _ := strings.Cut(l.String(), " delta")
		assert.Contains(t, list, name)
	}
	points := []float64{0, minus0, 1, -1, 0.5, 2, 3, infinity, -infinity}
	few := maps.Clone(list) // where each kernel is compiled
	maps.DeleteFunc(few, func(name string, _ joint) bool {
		return !slices.Contains([]string{"softplus", "elu", "maximum", "sigmoid_cross_entropy", "log_cosh"}, name)
	})
	everyWay(t, func(t *testing.T, s *tensor.Scope, types ...tensor.Type) {
		list := list
		if s.Device().Info().Backend != "cpu" {
			list = few
		}
		for _, typ := range types {
			in := s.Scope() // not all results at once
			x := tensor.From(in, points, len(points)).Cast(typ)
			derivatives := map[string][]*tensor.Tensor{}
			var all []*tensor.Tensor
			for name, j := range list {
				d := tensor.Grad(j.f(x).Sum(), x)[0]
				derivatives[name] = []*tensor.Tensor{d, tensor.Grad(d.Sum(), x)[0]}
				all = append(all, derivatives[name]...)
			}
			for part := range slices.Chunk(all, 16) {
				require.NoError(t, tensor.Eval(t.Context(), part...))
			}
			near := map[tensor.Type]float64{tensor.F64: 1e-12, tensor.F32: 2e-6, tensor.F16: 4e-3,
				tensor.BF16: 3e-2}[typ]
			for name, j := range list {
				for order, d := range derivatives[name] {
					got, err := tensor.Read[float64](t.Context(), d.Cast(tensor.F64))
					require.NoError(t, err)
					for k, p := range points {
						want, ok := j.want[p]
						if ok && want[order] == want[order] && !(name == "sqrt" && math.Signbit(p)) { // √-0 is -0
							assert.InDelta(t, want[order], got[k], near*(1+math.Abs(want[order])),
								"%s of %v: derivative %d at %v", name, typ, order+1, p)
						}
					}
				}
			}
			require.NoError(t, in.Close())
		}
	})
}

// hessian returns the gradient of a function of a vector, and its second derivatives, row by row.
func hessian(t *testing.T, f func(x *tensor.Tensor) *tensor.Tensor, x *tensor.Tensor) (g []float64, h [][]float64) {
	d := tensor.Grad(f(x), x)[0]
	all := []*tensor.Tensor{d}
	for i := range x.Len() {
		all = append(all, tensor.Grad(d.Narrow(0, i, 1).Sum(), x)[0])
	}
	require.NoError(t, tensor.Eval(t.Context(), all...))
	for i, y := range all {
		v, err := tensor.Read[float64](t.Context(), y.Cast(tensor.F64))
		require.NoError(t, err)
		if i == 0 {
			g = v
		} else {
			h = append(h, v)
		}
	}
	return g, h
}

// TestJointsOfRows: the gradients and Hessians of functions of rows with equal elements, zeros and infinities.
func TestJointsOfRows(t *testing.T) {
	type T = *tensor.Tensor
	zeros := func(n int) [][]float64 { return make([][]float64, n) }
	first := func(y T) T { return y.Narrow(0, 0, 1).Sum() }
	label := func(l Loss) func(x T) T {
		return func(x T) T {
			y, err := l.Of(x.Reshape(1, -1), tensor.From(x.Scope(), []int32{0}, 1))
			require.NoError(t, err)
			return y
		}
	}
	like := func(l Loss, target ...float64) func(x T) T {
		return func(x T) T {
			y, err := l.Of(x.Reshape(1, -1), tensor.From(x.Scope(), target, 1, len(target)).Cast(x.Type()))
			require.NoError(t, err)
			return y
		}
	}
	of := func(f func(x T, axes ...int) T) func(x T) T { return func(x T) T { return f(x) } }
	norm := func(p float64) func(x T) T { return func(x T) T { return x.Norm(p) } }
	quarter, q := 0.25, 0.1875 // the softmax of four equal elements, and its derivative
	spread := [][]float64{{q, -q / 3, -q / 3, -q / 3}, {-q / 3, q, -q / 3, -q / 3}, {-q / 3, -q / 3, q, -q / 3},
		{-q / 3, -q / 3, -q / 3, q}}
	list := map[string]struct {
		f    func(x T) T
		x    []float64
		g    []float64
		hess [][]float64 // a row that is nil is of zeros
	}{
		"log sum exp": {of(T.LogSumExp), []float64{7, 7, 7, 7}, []float64{quarter, quarter, quarter,
			quarter}, spread},
		"log sum exp, -inf": {of(T.LogSumExp), []float64{0, -infinity, 0}, []float64{0.5, 0, 0.5},
			[][]float64{{0.25, 0, -0.25}, nil, {-0.25, 0, 0.25}}},
		"cross entropy": {label(CrossEntropy{}), []float64{0, 0, minus0, 0}, []float64{quarter - 1, quarter,
			quarter, quarter}, spread},
		"softmax": {func(x T) T { return first(x.Softmax(0)) }, []float64{0, 0}, []float64{0.25, -0.25},
			zeros(2)},
		"log softmax": {func(x T) T { return first(x.LogSoftmax(0)) }, []float64{3, 3}, []float64{0.5,
			-0.5}, [][]float64{{-0.25, 0.25}, {0.25, -0.25}}},
		"swiglu": {func(x T) T { return activations[SwiGLU](x).Sum() }, []float64{0, 2}, []float64{1,
			0}, [][]float64{{1, 0.5}, {0.5, 0}}},
		"categorical": {label(CategoricalCrossEntropy{}), []float64{0.5, 0.5}, []float64{-2, 0},
			[][]float64{{4, 0}, nil}},
		"cosine of zeros": {like(CosineSimilarity{}, 1, 2), []float64{0, 0}, []float64{0, 0}, zeros(2)},
		"cosine of equals": {like(CosineSimilarity{}, 1, 0), []float64{1, 0}, []float64{0, 0}, [][]float64{nil,
			{0, 1}}},
		"norm 2 of zeros":   {norm(2), []float64{0, minus0}, []float64{0, 0}, zeros(2)},
		"norm 3 of zeros":   {norm(3), []float64{0, minus0}, []float64{0, 0}, zeros(2)},
		"norm 1.5 of zeros": {norm(1.5), []float64{0, 0}, []float64{0, 0}, nil},
		"norm 1 of zeros":   {norm(1), []float64{0, minus0}, []float64{0, 0}, zeros(2)},
		"norm of zeros":     {norm(infinity), []float64{0, 0}, []float64{0, 0}, zeros(2)},
		"norm 2": {norm(2), []float64{3, 0, 4}, []float64{0.6, 0, 0.8}, [][]float64{{0.128, 0, -0.096},
			{0, 0.2, 0}, {-0.096, 0, 0.072}}},
		"std of equals": {func(x T) T { return x.Std(1) }, []float64{2, 2, 2}, []float64{0, 0, 0}, zeros(3)},
		"std":           {func(x T) T { return x.Std(0) }, []float64{1, 3}, []float64{-0.5, 0.5}, zeros(2)},
		"max of equals": {of(T.Max), []float64{0, minus0, -1}, []float64{0.5, 0.5, 0}, zeros(3)},
		"min of equals": {of(T.Min), []float64{1, 1, 1, 1}, []float64{quarter, quarter, quarter, quarter},
			zeros(4)},
		"maximum of equals": {func(x T) T { return first(x).Maximum(x.Narrow(0, 1, 1).Sum()) }, []float64{3, 3},
			[]float64{0.5, 0.5}, zeros(2)},
		"clamp by an equal": {func(x T) T { return first(x).Clamp(x.Narrow(0, 1, 1).Sum(), 9) }, []float64{3, 3},
			[]float64{1, 0}, zeros(2)},
		"product, one zero": {of(T.Prod), []float64{0, 2, 3}, []float64{6, 0, 0}, [][]float64{{0, 3, 2}, {3, 0,
			0}, {2, 0, 0}}},
		"product, two zeros": {of(T.Prod), []float64{0, 2, minus0}, []float64{0, 0, 0}, [][]float64{{0, 0, 2}, nil,
			{2, 0, 0}}},
		"product, three": {of(T.Prod), []float64{0, 0, 0}, []float64{0, 0, 0}, zeros(3)},
		"product of powers": {func(x T) T { return x.Pow(2).Prod() }, []float64{0, 3}, []float64{0, 0},
			[][]float64{{18, 0}, nil}},
		"layer norm of equal": {func(x T) T { return first(x.LayerNorm(nil, nil, 1)) }, []float64{5, 5},
			[]float64{0.5, -0.5}, zeros(2)},
	}
	everyWay(t, func(t *testing.T, s *tensor.Scope, types ...tensor.Type) {
		for _, typ := range types {
			near := map[tensor.Type]float64{tensor.F64: 1e-12, tensor.F32: 2e-6}[typ]
			if near == 0 {
				continue
			}
			for name, c := range list {
				if s.Device().Info().Backend != "cpu" && name != "product, one zero" { // where each kernel is compiled
					continue
				}
				in := s.Scope()
				g, h := hessian(t, c.f, tensor.From(in, c.x, len(c.x)).Cast(typ))
				assert.InDeltaSlice(t, c.g, g, 4*near, "%s of %v: gradient", name, typ)
				for i, row := range c.hess {
					if row == nil {
						row = make([]float64, len(c.x))
					}
					assert.InDeltaSlice(t, row, h[i], 40*near, "%s of %v: second derivatives, row %d", name, typ, i)
				}
				require.NoError(t, in.Close())
			}
		}
	})
}

// TestZeroGradients: an optimizer that sees gradients of zero from the first step on leaves parameters as they are.
func TestZeroGradients(t *testing.T) {
	everyWay(t, func(t *testing.T, s *tensor.Scope, types ...tensor.Type) {
		for _, typ := range types {
			if typ != tensor.F64 && typ != tensor.F32 { // parameters have these
				continue
			}
			for _, o := range []Optimizer{SGD{}, Momentum{}, Nesterov{}, Adagrad{}, Adadelta{}, RMSprop{}, Adam{},
				AdaMax{}, Nadam{}, AMSGrad{}, AdaBound{}} {
				in := s.Scope()
				w, g := tensor.From(in, []float64{0, minus0, 1.5}, 3).Cast(typ), tensor.From(in, []float64{0,
					minus0, 0}, 3).Cast(typ)
				var states []*tensor.Tensor
				for range o.States() {
					states = append(states, tensor.Zeros(in, typ, 3))
				}
				next := w
				for step := range 2 {
					next, states = o.Update(next, g, states, tensor.Full(in, typ, 0.1), tensor.Full(in, typ, step+1))
				}
				got, err := tensor.Read[float64](t.Context(), next.Cast(tensor.F64))
				require.NoError(t, err)
				assert.Equal(t, []float64{0, 0, 1.5}, got, "%v of %v", o, typ)
				require.NoError(t, in.Close())
			}
		}
	})
}

// TestLogisticRegressionFromZero: a logistic regression whose weights begin at zero learns, by each step of first and
// of second order.
func TestLogisticRegressionFromZero(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	x := tensor.From(s, []float32{-2, 1, -1, 1, 1, 1, 2, 1}, 4, 2)
	y := tensor.From(s, []float32{0, 0, 1, 1}, 4, 1)
	m, err := Build(t.Context(), s, 1, Spec{Type: tensor.F32, Shape: []int{2}}, Dense{Out: 1, Init: Constant(0)})
	require.NoError(t, err)
	losses, err := LBFGS{}.Minimize(t.Context(), m, SigmoidCrossEntropy{}, Data{X: x, Y: y}, 5)
	require.NoError(t, err)
	assert.InDelta(t, math.Ln2, losses[0], 1e-6)
	assert.Less(t, losses[len(losses)-1], 0.1)
}
