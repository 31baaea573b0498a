// Package golden has results and gradients of operations on arrays that PyTorch computed in float64, and judges by them
// what packages tensor and nn compute on a device: operations, formulas of several, layers, losses, optimizers.
// golden.py, which writes the data, lists the operations with their inputs and attributes.
package golden

import (
	"compress/gzip"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"strconv"
)

//go:embed testdata/*.json.gz
var files embed.FS

// Case is one call of an operation.
type Case struct {
	Op      string  `json:"op"`
	Name    string  `json:"name"` // Op/variant, which no other case has
	Attrs   Attrs   `json:"attrs"`
	Inputs  []Array `json:"inputs"`
	Outputs []Array `json:"outputs"`
	// for each output, nil for those that are not of f64; none in a case without gradients
	Cotangents []*Array `json:"cotangents"`
	Grads      []*Array `json:"grads"` // of Σ cotangent·output by each input, nil for those that are not of f64
	Only       string   `json:"only"`  // "f64" if the case makes no sense in float32
	Formula    bool     `json:"-"`     // the operation is computed by several others; Name is formula/Op/variant then
}

// Array is an array of any number of dimensions.
type Array struct {
	Shape []int   `json:"shape"`
	Type  string  `json:"type"` // f64, i64 or bool
	Data  Numbers `json:"data"` // in order, the last dimension fastest; bools are 0 and 1
}

// Numbers are elements. In the files the strings "nan", "inf" and "-inf" stand for what JSON lacks.
type Numbers []float64

// UnmarshalJSON reads a list of numbers and such strings.
func (n *Numbers) UnmarshalJSON(text []byte) error {
	var list []number
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	*n = make(Numbers, len(list))
	for i, x := range list {
		(*n)[i] = float64(x)
	}
	return nil
}

type number float64

// UnmarshalJSON reads a number or a string that stands for one.
func (n *number) UnmarshalJSON(text []byte) error {
	s := string(text)
	switch s {
	case `"nan"`, `"inf"`, `"-inf"`:
		s = s[1 : len(s)-1]
	}
	x, err := strconv.ParseFloat(s, 64)
	*n = number(x)
	return err
}

// Attrs is what an operation takes besides arrays. Its methods panic if an attribute has another
// type or is missing.
type Attrs map[string]json.RawMessage

// Null reports whether an attribute is null, which stands for what the operation does by default.
func (a Attrs) Null(name string) bool {
	text, ok := a[name]
	if !ok {
		panic("golden: no attribute " + name)
	}
	return string(text) == "null"
}

// attr returns an attribute that is no null.
func attr[V any](a Attrs, name string) (v V) {
	if err := json.Unmarshal(a[name], &v); err != nil || a.Null(name) {
		panic(fmt.Sprintf("golden: the attribute %s is %s: %v", name, a[name], err))
	}
	return v
}

// Bool returns an attribute that is true or false.
func (a Attrs) Bool(name string) bool { return attr[bool](a, name) }

// String returns an attribute that is a string.
func (a Attrs) String(name string) string { return attr[string](a, name) }

// Float returns an attribute that is a number, or a string that stands for one.
func (a Attrs) Float(name string) float64 { return float64(attr[number](a, name)) }

// Int returns an attribute that is a whole number.
func (a Attrs) Int(name string) int { return attr[int](a, name) }

// Ints returns an attribute that is a list of whole numbers, nil for null.
func (a Attrs) Ints(name string) []int {
	if a.Null(name) {
		return nil
	}
	return attr[[]int](a, name)
}

// Strings returns an attribute that is a list of strings.
func (a Attrs) Strings(name string) []string { return attr[[]string](a, name) }

// Rows returns an attribute that is a list of lists of whole numbers, nil where one is null.
func (a Attrs) Rows(name string) [][]*int { return attr[[][]*int](a, name) }

// Load returns all cases, in the order of the files' names and of the cases in them. Behind a case whose operation is
// also a formula of others stands the same case as a formula. Each call reads the files anew, and its cases are the
// caller's.
func Load() ([]Case, error) {
	names, err := fs.Glob(files, "testdata/*.json.gz")
	if err != nil {
		return nil, err
	}
	var all []Case
	for _, name := range names {
		list, err := load(name)
		if err != nil {
			return nil, fmt.Errorf("golden: %s: %w", name, err)
		}
		for _, c := range list {
			if _, known := operations[c.Op]; !known {
				return nil, fmt.Errorf("golden: %s: nothing computes %s", name, c.Op)
			}
			all = append(all, c)
			if formulas[c.Op] != nil {
				c.Name, c.Formula = "formula/"+c.Name, true
				all = append(all, c)
			}
		}
	}
	return all, nil
}

// Sample returns a part of the cases that has each operation: of every so many of an operation one, the third, and its
// last one if it has fewer.
func Sample(cases []Case, every int) []Case {
	total, count := map[string]int{}, map[string]int{}
	for _, c := range cases {
		if !c.Formula {
			total[c.Op]++
		}
	}
	var some []Case
	for _, c := range cases {
		if !c.Formula {
			count[c.Op]++
		}
		if count[c.Op]%every == min(3, total[c.Op])%every {
			some = append(some, c)
		}
	}
	return some
}

func load(name string) (list []Case, err error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	err = json.NewDecoder(z).Decode(&list)
	return list, err
}

// F64 and F32 are the bounds with which Check judges what was computed in float64 and in float32.
const (
	F64 = 1e-10
	F32 = 1e-5
)

// Check returns an error unless got equals want up to rounding: each element may differ by
// bound·(|want| + rms), where rms is the root of the mean square of want's finite elements. So what
// is left of large numbers that cancel is judged by their size; a bound of 0 demands equality. NaN
// equals NaN, an infinity only itself, and both zeros are equal. The error names the element that is
// furthest off.
func Check(got, want []float64, bound float64) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d elements instead of %d", len(got), len(want))
	}
	rms := rootMeanSquare(want)
	worst, at := 1.0, -1
	for i, w := range want {
		off := 0.0
		switch g := got[i]; {
		case g == w || math.IsNaN(g) && math.IsNaN(w):
		case math.IsNaN(g) || math.IsInf(g, 0) || math.IsNaN(w) || math.IsInf(w, 0):
			off = math.Inf(1)
		default:
			off = math.Abs(g-w) / (bound * (math.Abs(w) + rms)) // w and rms are not both 0, or this is +∞
		}
		if off > worst {
			worst, at = off, i
		}
	}
	if at < 0 {
		return nil
	}
	return fmt.Errorf("element %d is %v instead of %v, %.3g times the bound", at, got[at], want[at], worst)
}

// rootMeanSquare is that of the finite elements, computed in parts of the largest one, whose square
// may not be finite.
func rootMeanSquare(x []float64) float64 {
	largest, n := 0.0, 0
	for _, v := range x {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			largest, n = max(largest, math.Abs(v)), n+1
		}
	}
	if largest == 0 {
		return 0
	}
	sum := 0.0
	for _, v := range x {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			sum += v / largest * (v / largest)
		}
	}
	return largest * math.Sqrt(sum/float64(n))
}
