package tests

// The rule for options: the zero value of a struct of options is valid and means what its fields say; where zero is
// a value of its own beside the default, the field is a pointer; a field that has no sensible default is required,
// and says so.

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/ann"
	"github.com/concord-compute/concord/nn"
	"github.com/concord-compute/concord/quant"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/runtime/cluster/mpi"
	"github.com/concord-compute/concord/runtime/kernelcache"
	"github.com/concord-compute/concord/runtime/mempool"
	"github.com/concord-compute/concord/runtime/parity"
	"github.com/concord-compute/concord/runtime/tune"
	"github.com/concord-compute/concord/runtime/validate"
	"github.com/concord-compute/concord/source"
	"github.com/concord-compute/concord/tensor"
)

// says finds in the comment of a field what it means where it is not set.
var says = regexp.MustCompile(`(?i)(^|[^.\w])(0|nil|none|false|""|the zero value)(:| is| means| has| lets| leaves)|\brequired\b`)

// option is an exported struct that callers fill in.
type option struct {
	without []string // its exported fields whose comments do not say what happens where they are not set
	needed  bool     // a field is required
}

// passed are the names of last parameters that are options.
var passed = []string{"o", "opts", "options", "c", "cfg", "config"}

// settings have these methods in package nn: layers, losses, optimizers, schedules.
var settings = []string{"Apply", "Of", "Update", "Rate", "Minimize"}

// options returns the exported structs of public packages that are options, by package and name.
func options(files []file) map[string]option {
	structs, marked := map[string]*ast.StructType{}, map[string]bool{}
	like := map[string]string{} // types with the settings of another one of their package
	for _, f := range files {
		if f.test() || !public(f.dir()) {
			continue
		}
		in := f.ast.Name.Name + "."
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok && s.Name.IsExported() {
						if of, ok := s.Type.(*ast.Ident); ok {
							like[in+s.Name.Name] = in + of.Name
						}
						if st, ok := s.Type.(*ast.StructType); ok {
							structs[in+s.Name.Name] = st
							marked[in+s.Name.Name] = marked[in+s.Name.Name] || strings.HasSuffix(s.Name.Name, "Options") ||
								strings.HasSuffix(s.Name.Name, "Config")
						}
					}
				}
			case *ast.FuncDecl:
				if !d.Name.IsExported() {
					continue
				}
				if d.Recv != nil && in == "nn." && slices.Contains(settings, d.Name.Name) {
					if id, ok := d.Recv.List[0].Type.(*ast.Ident); ok {
						marked[in+id.Name] = true
					}
				}
				if list := d.Type.Params.List; len(list) > 0 && len(list[len(list)-1].Names) > 0 {
					last := list[len(list)-1]
					if slices.Contains(passed, last.Names[0].Name) {
						switch t := last.Type.(type) {
						case *ast.Ident:
							marked[in+t.Name] = true
						case *ast.SelectorExpr:
							marked[t.X.(*ast.Ident).Name+"."+t.Sel.Name] = true
						}
					}
				}
			}
		}
	}
	for name, of := range like {
		if st := structs[of]; st != nil {
			structs[name] = st
		}
	}
	found := map[string]option{}
	for name, st := range structs {
		if !marked[name] {
			continue
		}
		o, text := option{}, ""
		for _, f := range st.Fields.List {
			if own := f.Doc.Text() + f.Comment.Text(); own != "" { // else the comment above is of both
				text = own
			}
			truth := fmt.Sprint(f.Type) == "bool" // which says what it does where it is set
			for _, n := range f.Names {
				if n.IsExported() && !truth && !says.MatchString(strings.ReplaceAll(text, "\n", " ")) {
					o.without = append(o.without, n.Name)
				}
			}
			o.needed = o.needed || strings.Contains(text, "required")
		}
		found[name] = o
	}
	return found
}

// unit is a layer, a loss, an optimizer, a schedule or a method of minimization of package nn, with all settings unset.
func unit(t *testing.T, s *tensor.Scope, x any) error {
	ctx := t.Context()
	ones := func(shape ...int) *tensor.Tensor { return tensor.Ones(s, tensor.F32, shape...) }
	minimize := func(f func(context.Context, *nn.Model, nn.Loss, nn.Data, int) ([]float64, error)) error {
		m, err := nn.Build(ctx, s, 1, nn.Spec{Type: tensor.F32, Shape: []int{2}}, nn.Dense{Out: 1})
		if err == nil {
			_, err = f(ctx, m, nn.MSE{}, nn.Data{X: ones(3, 2), Y: ones(3, 1)}, 1)
		}
		return err
	}
	switch x := x.(type) {
	case nn.Layer:
		var errs []error
		for _, shape := range [][]int{{4}, {3, 4}, {2, 3, 3}} {
			_, err := nn.Build(ctx, s, 1, nn.Spec{Type: tensor.F32, Shape: shape}, x)
			if err == nil {
				return nil
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	case nn.Loss:
		y, err := x.Of(ones(2, 3).Mul(0.5), ones(2, 3))
		if err == nil {
			err = tensor.Eval(ctx, y)
		}
		return err
	case nn.Optimizer:
		states := make([]*tensor.Tensor, len(x.States()))
		for i := range states {
			states[i] = tensor.Zeros(s, tensor.F32, 2)
		}
		next, _ := x.Update(ones(2), ones(2), states, ones(1), ones(1))
		return tensor.Eval(ctx, next)
	case nn.Schedule:
		if err := x.Check(); err != nil {
			return err
		}
		if rate := x.Rate(1, 1, []float64{1}); !(rate > 0) {
			return fmt.Errorf("a rate of %v", rate)
		}
		return nil
	case nn.LBFGS:
		return minimize(x.Minimize)
	case nn.Newton:
		return minimize(x.Minimize)
	}
	return fmt.Errorf("%T is none of these", x)
}

// units are all structs of package nn that unit takes.
var units = []any{nn.Dense{}, nn.Embedding{}, nn.Position{}, nn.Dropout{}, nn.Flatten{}, nn.Reshape{},
	nn.Scale{}, nn.Residual{}, nn.Conv{}, nn.MaxPool{}, nn.AvgPool{},
	nn.GlobalMaxPool{}, nn.GlobalAvgPool{}, nn.BatchNorm{}, nn.LayerNorm{}, nn.RMSNorm{}, nn.GroupNorm{},
	nn.PReLU{}, nn.RNN{}, nn.GRU{}, nn.LSTM{}, nn.Attention{},
	nn.Transformer{}, nn.Packed{}, nn.MSE{}, nn.MAE{}, nn.BinaryCrossEntropy{}, nn.SigmoidCrossEntropy{},
	nn.CategoricalCrossEntropy{}, nn.CrossEntropy{}, nn.Huber{},
	nn.Hinge{}, nn.SquaredHinge{}, nn.KLDivergence{}, nn.Poisson{}, nn.CosineSimilarity{}, nn.LogCosh{},
	nn.Quantile{}, nn.SGD{}, nn.Momentum{}, nn.Nesterov{}, nn.Adagrad{},
	nn.Adadelta{}, nn.RMSprop{}, nn.Adam{}, nn.AdaMax{}, nn.Nadam{}, nn.AMSGrad{}, nn.AdaBound{},
	nn.StepDecay{}, nn.Exponential{}, nn.Cosine{},
	nn.Plateau{}, nn.Polynomial{}, nn.Cyclic{}, nn.OneCycle{},
	nn.LBFGS{}, nn.Newton{}}

// TestOptions demands of every exported struct of options that its zero value works, or names what is required, and
// that each field says what it means where it is not set. A struct that is not in the tables here fails.
func TestOptions(t *testing.T) {
	ctx := t.Context()
	dev, err := runtime.Open(ctx, "cpu:0")
	require.NoError(t, err)
	defer dev.Close()
	s := tensor.NewScope(dev)
	defer s.Close()
	image := tensor.Ones(s, tensor.F32, 1, 2, 3, 3)
	filters := tensor.Ones(s, tensor.F32, 2, 2, 2, 2)
	closed := func(c interface{ Close() error }, err error) error {
		if err == nil {
			err = c.Close()
		}
		return err
	}
	uses := map[string]func() error{
		"ann.FlatOptions": func() error { return closed(ann.NewFlat(dev, 4, ann.Euclidean, ann.FlatOptions{})) },
		"ann.HNSWOptions": func() error { return closed(ann.NewHNSW(dev, 4, ann.Euclidean, ann.HNSWOptions{})) },
		"ann.IVFOptions":  func() error { return closed(ann.NewIVF(dev, 4, ann.Euclidean, ann.IVFOptions{})) },
		"ann.Options":     func() error { return closed(ann.New(ctx, "flat", 4, "cosine", ann.Options{})) },
		"cluster.Options": func() error { return closed(cluster.Options{}.Of(dev)) },
		"cluster.TransferOptions": func() error {
			x, err := runtime.Upload(ctx, dev, []float32{1, 2})
			if err != nil {
				return err
			}
			to, failed := x.Slice(0, 1)
			from, err := x.Slice(1, 1)
			p, wrong := cluster.PairOf(dev, dev)
			if err = errors.Join(failed, err, wrong); err == nil {
				err = cluster.TransferOptions{}.Copy(ctx, &p, to, from)
			}
			return errors.Join(err, closed(to, nil), closed(from, nil), x.Close())
		},
		"driver.Config": func() error { return closed(runtime.New(runtime.Config{})) },
		"kernelcache.Options": func() error {
			if kernelcache.Open(kernelcache.Options{}) == nil {
				return errors.New("no cache")
			}
			return nil
		},
		"mempool.Options": func() error { mempool.New(nil, mempool.Options{}); return nil },
		"nn.Config": func() error {
			m, err := nn.Build(ctx, s, 1, nn.Spec{Type: tensor.F32, Shape: []int{2}}, nn.Dense{Out: 1})
			if err != nil {
				return err
			}
			return closed(nn.NewTrainer(m, nn.Config{}))
		},
		"mpi.Options": func() error {
			done, cancel := context.WithCancel(ctx)
			cancel() // a process joins a job once
			if _, err := mpi.Init(done); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("instead of the end of the context: %w", err)
			}
			return nil
		},
		"parity.Options": func() error { // of which the zero value runs everything
			done, cancel := context.WithCancel(ctx)
			cancel()
			if _, err := parity.Run(done, parity.Options{}); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("instead of the end of the context: %w", err)
			}
			return nil
		},
		"quant.QuantizerOptions": func() error { return closed(quant.NewQuantizer(dev, quant.QuantizerOptions{})) },
		"managed.Options":        func() error { return nil }, // the tests of its package begin with the zero value
		"runtime.ProgramOptions": func() error {
			u, err := source.Parse("kernel void one(global float *x) { x[0] = 1; }", source.Options{})
			if err != nil {
				return err
			}
			return closed(dev.Program(ctx, u, runtime.ProgramOptions{}))
		},
		"source.Options": func() error {
			_, err := source.Parse("kernel void one(global float *x) { x[0] = 1; }", source.Options{})
			return err
		},
		"tensor.AttentionOptions": func() error {
			return tensor.Eval(ctx, tensor.Attention(image, image, image, tensor.AttentionOptions{}))
		},
		"tensor.ConvOptions": func() error {
			return tensor.Eval(ctx, tensor.Conv(image, filters, nil, tensor.ConvOptions{}))
		},
		"tensor.ConvTransposeOptions": func() error {
			return tensor.Eval(ctx, tensor.ConvTranspose(image, filters, nil, tensor.ConvTransposeOptions{}))
		},
		"tensor.PoolOptions": func() error { return tensor.Eval(ctx, image.MaxPool([]int{2, 2}, tensor.PoolOptions{})) },
	}
	uses["tune.Options"] = func() error {
		_, err := tune.Run(ctx, dev, tune.Options{})
		return err
	}
	uses["validate.Options"] = func() error { return closed(validate.Start(dev.Session(), validate.Options{})) }
	for _, x := range units {
		uses["nn."+reflect.TypeOf(x).Name()] = func() error { return unit(t, s, x) }
	}
	found := options(load(t, "..").files)
	assert.ElementsMatch(t, slices.Collect(maps.Keys(found)), slices.Collect(maps.Keys(uses)),
		"structs of options, and those that are tested here")
	for name, o := range found {
		assert.Empty(t, o.without, "%s: fields that do not say what they mean where they are not set", name)
		if use := uses[name]; use != nil {
			if err := use(); o.needed {
				assert.Error(t, err, "%s with what is required unset", name)
			} else {
				assert.NoError(t, err, "%s with nothing set", name)
			}
		}
	}
}
