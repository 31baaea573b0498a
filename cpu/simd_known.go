package cpu

// Expressions that are kernels of the catalog. Over dense memory they run that kernel's vector function, which
// passes over a row several times while it is in the first-level cache; steps of expressions pass over many
// rows at a time.

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/concord-compute/concord/internal/simd"
	"github.com/concord-compute/concord/kernels/expr"
)

// knownMap is a map of one output that a vector function computes for rows.
type knownMap struct {
	name  string
	build func(columns, epsilon float64) *expr.Expr
	norm  bool // it depends on the number of columns and on epsilon
	run   func(l *knownLaunch, c *call, lo, hi int)
}

// knownLaunch is one launch of a known map. Later launches reuse it.
type knownLaunch struct {
	expr.Launch
	*knownOf
	n    int // elements of a row
	part func(c *call, lo, hi int)
}

// knownOf is a program's map and the numbers in it.
type knownOf struct {
	*knownMap
	columns, epsilon float32
}

var knownLaunches = sync.Pool{New: func() any {
	l := new(knownLaunch)
	l.part = func(c *call, lo, hi int) { l.run(l, c, lo, hi) }
	return l
}}

// knownMaps has the maps as networks have them.
var knownMaps = []knownMap{
	{name: "softmax", build: func(_, _ float64) *expr.Expr {
		e := powers()
		return e.Mul(e.Number(1).Div(e.Sum()))
	}, run: (*knownLaunch).softmax},
	{name: "softmax by a quotient", build: func(_, _ float64) *expr.Expr { return powers().Div(powers().Sum()) },
		run: (*knownLaunch).softmax},
	{name: "layer norm", build: func(columns, epsilon float64) *expr.Expr {
		x := expr.Input(0, expr.F32)
		return scaled(x.Sub(mean(x, columns)), columns, epsilon).Mul(expr.Input(1, expr.F32)).Add(expr.Input(2, expr.F32))
	}, norm: true, run: (*knownLaunch).norm},
	{name: "rms norm", build: func(columns, epsilon float64) *expr.Expr {
		return scaled(expr.Input(0, expr.F32), columns, epsilon).Mul(expr.Input(1, expr.F32))
	}, norm: true, run: (*knownLaunch).norm},
}

func powers() *expr.Expr {
	x := expr.Input(0, expr.F32)
	return x.Sub(x.Largest()).Exp()
}

func mean(x *expr.Expr, columns float64) *expr.Expr { return x.Sum().Div(x.Number(columns)) }

func scaled(x *expr.Expr, columns, epsilon float64) *expr.Expr {
	return x.Mul(expr.Apply(expr.Rsqrt, mean(x.Mul(x), columns).Add(x.Number(epsilon))))
}

// text returns the text of the map with those numbers.
func (k *knownMap) text(columns, epsilon float64) string {
	m, err := expr.New(k.build(columns, epsilon))
	if err != nil {
		panic(err) // the maps are constants
	}
	return m.String()
}

// knownTexts are the texts of the maps without numbers, and "" for others.
var knownTexts = sync.OnceValue(func() (list []string) {
	for i := range knownMaps {
		if k := &knownMaps[i]; k.norm {
			list = append(list, "")
		} else {
			list = append(list, k.text(0, 0))
		}
	}
	return list
})

var constants = regexp.MustCompile(`const\.f32\.([0-9a-f]+)`)

// known returns the known map that m is, or nil. The order of a text depends on the numbers in it, so each pair
// of them is tried.
func known(m *expr.Map) *knownOf {
	text := m.String()
	if i := slices.Index(knownTexts(), text); i >= 0 {
		return &knownOf{knownMap: &knownMaps[i]}
	}
	if !strings.Contains(text, "rsqrt.f32") || !m.Reduces() {
		return nil
	}
	var numbers []float32
	for _, found := range constants.FindAllStringSubmatch(text, 3) {
		if bits, err := strconv.ParseUint(found[1], 16, 32); err == nil {
			numbers = append(numbers, math.Float32frombits(uint32(bits)))
		}
	}
	if len(numbers) > 2 {
		return nil
	}
	for i := range knownMaps {
		for _, columns := range numbers {
			for _, epsilon := range numbers {
				if k := &knownMaps[i]; k.norm && text == k.text(float64(columns), float64(epsilon)) {
					return &knownOf{k, columns, epsilon}
				}
			}
		}
	}
	return nil
}

// launch runs a launch if its memory is dense, and reports whether it did.
func (k *knownOf) launch(c *call, m *expr.Map) (done bool, err error) {
	l := knownLaunches.Get().(*knownLaunch)
	defer func() { l.knownOf = nil; knownLaunches.Put(l) }()
	m.Read(&c.Call, &l.Launch)
	l.knownOf, l.n = k, l.Layout.Dims[len(l.Layout.Dims)-1]
	if l.n == 0 || k.norm && k.columns != float32(l.n) {
		return false, nil
	}
	for i := range l.Layout.Operands {
		if !l.dense(i, i > 0 && i+1 < len(l.Layout.Operands)) {
			return false, nil
		}
	}
	return true, c.spread(l.Layout.Len()/l.n, 16*l.n, l.part)
}

// dense reports whether the elements of operand k follow each other in memory, or, if it is one row for all,
// those of that row.
func (l *knownLaunch) dense(k int, row bool) bool {
	step, last := 1, len(l.Layout.Dims)-1
	for j := last; j >= 0; j-- {
		if n := l.Layout.Dims[j]; n != 1 && l.Layout.Operands[k].Steps[j] != step {
			return false
		}
		if step *= l.Layout.Dims[j]; row {
			step = 0
		}
	}
	return true
}

// at returns the address of element i of an operand.
func (l *knownLaunch) at(c *call, k, i int) uint64 {
	return c.at(k) + uint64(4*(l.Layout.Operands[k].First+i))
}

// past returns 1 if the results are so many that they are stored past the caches.
func (l *knownLaunch) past() uint64 {
	return flag(overflows(4*l.Layout.Len()) && 4*l.n >= 1024)
}

func (l *knownLaunch) softmax(c *call, lo, hi int) {
	c.device.simd.run(simd.Softmax, 0, uint64(hi-lo), uint64(l.n), l.at(c, 0, lo*l.n), l.at(c, 1, lo*l.n), l.past())
}

// norm is layer_norm if there is a beta, and rms_norm otherwise.
func (l *knownLaunch) norm(c *call, lo, hi int) {
	out, beta := len(l.Layout.Operands)-1, uint64(0)
	if out == 3 {
		beta = l.at(c, 2, 0)
	}
	c.device.simd.run(simd.Norm, 0, uint64(hi-lo), uint64(l.n), l.at(c, 0, lo*l.n), l.at(c, 1, 0), beta,
		l.at(c, out, lo*l.n), math.Float64bits(float64(l.epsilon)),
		l.past())
}
