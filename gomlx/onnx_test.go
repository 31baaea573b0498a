package gomlx_test

// The operators of ONNX on Concord, beside GoMLX's Go backend: the tests of nodes in Debian's libonnx-testdata,
// of which ONNX-GoMLX makes graphs. GOMLX_ALL=1 runs all of them, which takes a minute or more, on every
// device.

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/onnx-gomlx/onnx/parser"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/concord-compute/concord/gomlx"
)

// onnxData has a directory for each test of a node: model.onnx, and the inputs as input_0.pb and so on.
const onnxData = "/usr/share/libonnx-testdata/data/node"

// onnxTypes are the numbers of ONNX's types.
var onnxTypes = map[uint64]dtypes.DType{1: dtypes.Float32, 2: dtypes.Uint8, 3: dtypes.Int8, 4: dtypes.Uint16,
	5: dtypes.Int16, 6: dtypes.Int32, 7: dtypes.Int64, 9: dtypes.Bool, 10: dtypes.Float16, 11: dtypes.Float64,
	12: dtypes.Uint32, 13: dtypes.Uint64, 16: dtypes.BFloat16}

// onnxTensor reads a TensorProto, whose elements are raw.
func onnxTensor(raw []byte) (any, error) {
	var dims []int
	var dtype dtypes.DType
	var data []byte
	for len(raw) > 0 {
		field, kind, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		raw = raw[n:]
		var v uint64
		var b []byte
		switch kind {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(raw)
		case protowire.BytesType:
			b, n = protowire.ConsumeBytes(raw)
		default:
			n = protowire.ConsumeFieldValue(field, kind, raw)
		}
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		raw = raw[n:]
		switch field {
		case 1:
			if kind == protowire.VarintType {
				dims = append(dims, int(v))
			}
			for len(b) > 0 { // packed
				if v, n = protowire.ConsumeVarint(b); n < 0 {
					return nil, protowire.ParseError(n)
				}
				dims, b = append(dims, int(v)), b[n:]
			}
		case 2:
			dtype = onnxTypes[v]
		case 9:
			data = b
		}
	}
	shape := shapes.Make(dtype, dims...)
	if dtype == dtypes.InvalidDType || len(data) != shape.Size()*int(dtype.Memory()) {
		return nil, fmt.Errorf("%d bytes for %s", len(data), shape)
	}
	t := tensors.FromShape(shape)
	if err := t.MutableBytes(func(to []byte) { copy(to, data) }); err != nil {
		return nil, err
	}
	return t.Value(), nil
}

// onnxCase is a test of a node.
type onnxCase struct {
	model  []byte
	inputs []any
}

func readONNX(dir string) (c onnxCase, err error) {
	if c.model, err = os.ReadFile(filepath.Join(dir, "model.onnx")); err != nil {
		return c, err
	}
	for {
		raw, err := os.ReadFile(filepath.Join(dir, "test_data_set_0", fmt.Sprintf("input_%d.pb", len(c.inputs))))
		if os.IsNotExist(err) {
			return c, nil
		}
		if err != nil {
			return c, err
		}
		x, err := onnxTensor(raw)
		if err != nil {
			return c, err
		}
		c.inputs = append(c.inputs, x)
	}
}

// run executes the model, with those inputs as constants that constant names.
func (c onnxCase) run(b compute.Backend, constant func(x *tensors.Tensor) bool) (out []*tensors.Tensor, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	m, err := parser.Parse(c.model)
	if err != nil {
		return nil, err
	}
	names, _ := m.Inputs()
	if len(names) < len(c.inputs) {
		return nil, fmt.Errorf("%d inputs of %d", len(c.inputs), len(names))
	}
	constants := map[string]any{}
	var passed []string
	var values []any
	for i, x := range c.inputs {
		if t := tensors.MustFromAnyValue(x); constant(t) {
			constants[names[i]] = t
		} else {
			passed, values = append(passed, names[i]), append(values, x)
		}
	}
	store := model.NewStore()
	m = m.WithInputsAsConstants(constants)
	if err := m.VariablesToScope(store.RootScope()); err != nil {
		return nil, err
	}
	exec, err := model.NewExec(b, store, func(scope *model.Scope, g *Graph, x []*Node) []*Node {
		nodes := map[string]*Node{}
		for i, n := range passed {
			nodes[n] = x[i]
		}
		return m.CallGraph(scope, g, nodes)
	})
	if err != nil {
		return nil, err
	}
	defer exec.Finalize()
	return exec.Call(values...)
}

// Operators that draw random numbers have other ones on each backend.
var onnxRandom = regexp.MustCompile("bernoulli|dropout|random|multinomial")

func TestONNX(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(onnxData, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(dirs) == 0 {
		t.Skipf("no %s; Debian has it in libonnx-testdata", onnxData)
	}
	plain, err := compute.NewWithConfig("go")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Finalize()
	// GoMLX wants numbers that make shapes as constants; some cases have it all the same for other inputs.
	ways := []func(x *tensors.Tensor) bool{
		func(*tensors.Tensor) bool { return false },
		func(x *tensors.Tensor) bool { return x.DType().IsInt() && x.Rank() < 2 },
		func(x *tensors.Tensor) bool { return x.Rank() < 2 },
	}
	onDevices(t, func(t *testing.T, b *gomlx.Backend) {
		step := 5
		switch {
		case os.Getenv("GOMLX_ALL") != "":
			step = 1
		case !strings.Contains(t.Name(), "cpu"):
			step = 60 // since each compiles programs
		}
		ran, unread := 0, 0
		for i := 0; i < len(dirs); i += step {
			name := filepath.Base(dirs[i])
			c, err := readONNX(dirs[i])
			if err != nil {
				unread++
				continue
			}
			for _, constant := range ways {
				want, err := c.run(plain, constant)
				if err != nil {
					continue // GoMLX does not have it
				}
				ran++
				got, err := c.run(b, constant)
				if err != nil {
					t.Errorf("%s: %v", name, err)
				} else if !onnxRandom.MatchString(name) {
					for j := range want {
						if what := differ(want[j], got[j]); what != "" {
							t.Errorf("%s: result %d: %s", name, j, what)
						}
					}
				}
				break
			}
		}
		t.Logf("%d tests of %d, and %d with sequences or texts", ran, (len(dirs)+step-1)/step, unread)
		if ran < len(dirs)/step/3 { // GoMLX has half of the operators
			t.Errorf("only %d tests ran", ran)
		}
	})
}

// differ says how results differ by more than rounding, or "".
func differ(want, got *tensors.Tensor) string {
	if !want.Shape().Equal(got.Shape()) {
		return fmt.Sprintf("shape %s, not %s", got.Shape(), want.Shape())
	}
	what := ""
	want.MustConstFlatData(func(w any) {
		got.MustConstFlatData(func(g any) {
			a, b := reflect.ValueOf(w), reflect.ValueOf(g)
			for i := range a.Len() {
				x, y := number(a.Index(i)), number(b.Index(i))
				if tolerance := 1e-4 * (1 + math.Abs(x)); x != y && !(math.Abs(x-y) <= tolerance) && !(x != x && y != y) {
					what = fmt.Sprintf("element %d is %v, not %v", i, y, x)
					return
				}
			}
		})
	})
	return what
}

// number returns an element of a tensor.
func number(v reflect.Value) float64 {
	switch x := v.Interface().(type) {
	case interface{ Float64() float64 }: // half and bfloat16
		return x.Float64()
	case bool:
		if x {
			return 1
		}
		return 0
	}
	return v.Convert(reflect.TypeFor[float64]()).Float()
}
