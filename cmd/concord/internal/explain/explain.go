// Package explain shows how an expression of tensors is planned, and which kernels compute it.
package explain

// concord explain: the kernels that compute an expression of tensors.

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/tensor"
)

// explained is the document of explain.
type explained struct {
	Device  string        `json:"device"`
	Results []string      `json:"results"`
	Tasks   []tensor.Task `json:"tasks"`
	Apart   int           `json:"tasks_without_fusion"`
	Costs   tensor.Costs  `json:"costs"` // by which the plan was decided
	Fused   *app.Number   `json:"seconds,omitempty"`
	Unfused *app.Number   `json:"seconds_without_fusion,omitempty"`
	Passes  []tensor.Pass `json:"passes,omitempty"`
}

// Command returns the command explain.
func Command(a *app.App) *cobra.Command {
	var device string
	var timed, passes bool
	cmd := &cobra.Command{
		Use:   "explain EXPRESSION NAME=TYPE[SHAPE]...",
		Short: "Show the kernels that compute an expression of tensors",
		Long: `Explain plans the computation of an expression, and prints its kernels: the operations that each
computes, what it reads and what it stores.

An EXPRESSION is one of Go: the methods of package tensor on the named tensors, in any case, the operators
+ - * /, numbers, and the functions where, concat, stack and grad. Assignments, separated by semicolons,
give names to parts. With --time it is computed on random numbers, also operation by operation.
With --passes explain also prints what each pass of the planner decides: the numbered graph, the strides,
what is stored and why, the tasks, their order, those that are fused, and the memory between them.
The line costs has those by which the plan was decided, in the time in which the device adds two numbers
in registers: the defaults, or what concord tune costs has measured.`,
		Example: `  concord explain 'x.softmax(-1)' 'x=f32[4096,1024]'
  concord explain 'h := (x.matmul(w) + b).relu(); loss := h.square().mean(); grad(loss, w, b)' \
      'x=f32[128,784]' 'w=f32[784,512]' 'b=f32[512]'
  concord explain --time 'x.gelu() * y' 'x=f32[1000000]' 'y=f32[1000000]'`,
		Args: cobra.MinimumNArgs(1),
	}
	cmd.Flags().StringVar(&device, "device", "cpu:0", "the device for which to plan")
	cmd.Flags().BoolVar(&passes, "passes", false, "print what each pass of the planner decides")
	cmd.Flags().BoolVar(&timed, "time", false, "compute the expression, and report the times with and without fusion")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fmt.Errorf("%w; an EXPRESSION that begins with - follows --, as in concord explain -- '-x' 'x=f32[9]'", err)
	})
	return a.RunnableJSON(cmd, func(ctx context.Context, args []string) error {
		return explain(ctx, a, device, timed, passes, args[0], args[1:])
	})
}

func explain(ctx context.Context, a *app.App, device string, timed, passes bool, text string, inputs []string) error {
	if _, err := a.Open(app.Exactly); err != nil {
		return err
	}
	dev, err := a.Session.Open(ctx, device)
	if err != nil {
		return err
	}
	defer dev.Close()
	fused, err := newFormula(ctx, dev, text, inputs)
	if err != nil {
		return err
	}
	defer fused.scope.Close()
	// Another session computes operation by operation.
	cfg := app.Exactly
	cfg.NoFusion = true
	plain, err := runtime.New(cfg)
	if err != nil {
		return err
	}
	defer plain.Close()
	other, err := plain.Open(ctx, device)
	if err != nil {
		return err
	}
	defer other.Close()
	apart, err := newFormula(ctx, other, text, inputs)
	if err != nil {
		return err
	}
	defer apart.scope.Close()

	d := explained{Device: dev.String()}
	for _, r := range fused.results {
		d.Results = append(d.Results, tensor.Spec{Type: r.Type(), Shape: r.Shape()}.String())
	}
	p, err := tensor.Explain(fused.results...)
	if err != nil {
		return err
	}
	q, err := tensor.Explain(apart.results...)
	if err != nil {
		return err
	}
	d.Tasks, d.Apart, d.Costs = p.Tasks, len(q.Tasks), p.Costs
	if passes {
		if d.Passes, err = tensor.ExplainPasses(fused.results...); err != nil {
			return err
		}
	}
	if timed {
		took, tookApart, err := inTurn(ctx, fused, apart)
		if err != nil {
			return err
		}
		d.Fused, d.Unfused = new(app.Number(took.Seconds())), new(app.Number(tookApart.Seconds()))
	}
	return a.Show(d, func() {
		for _, p := range d.Passes {
			a.Printf("%s\n%s\n", a.Paint(ui.Bold, p.Name), p.Text)
		}
		a.Printf("%s of %s on %s\n%v", strings.Join(d.Results, ", "), strings.Join(inputs, " "), d.Device, p)
		a.Printf("%s; operation by operation %d\n", ui.Quantity(len(d.Tasks), "task"), d.Apart)
		a.Printf("costs: %v\n", p.Costs)
		if timed {
			a.Printf("%s; operation by operation %s, %.2f times as long\n", rounded(float64(*d.Fused)),
				rounded(float64(*d.Unfused)), float64(*d.Unfused / *d.Fused))
		}
	})
}

func rounded(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(100 * time.Nanosecond).String()
}

// inTurn returns the median times of calls of two formulas, which are measured in turn.
func inTurn(ctx context.Context, a, b *formula) (time.Duration, time.Duration, error) {
	var times [2][]time.Duration
	for begin := time.Now(); len(times[0]) < 5 || time.Since(begin) < time.Second && len(times[0]) < 1000; {
		for i, f := range []*formula{a, b} {
			start := time.Now()
			if err := f.compute(ctx); err != nil {
				return 0, 0, err
			}
			times[i] = append(times[i], time.Since(start))
		}
	}
	for i := range times {
		times[i] = times[i][1:] // the first call compiles
		slices.Sort(times[i])
	}
	return times[0][len(times[0])/2], times[1][len(times[1])/2], nil
}

// formula is an expression with tensors for its names.
type formula struct {
	scope   *tensor.Scope
	text    string
	names   []string
	args    []*tensor.Tensor
	results []*tensor.Tensor
	call    *tensor.Func
}

func newFormula(ctx context.Context, dev *runtime.Device, text string, inputs []string) (f *formula, err error) {
	s := tensor.NewScope(dev)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	f = &formula{scope: s, text: text}
	for i, in := range inputs {
		name, t, err := argumentTensor(f.scope, in, uint64(i))
		if err != nil {
			return nil, app.UsageError(err)
		}
		if slices.Contains(f.names, name) {
			return nil, app.Usagef("%q: there is another %s", in, name)
		}
		f.names, f.args = append(f.names, name), append(f.args, t)
	}
	if err := tensor.Eval(ctx, f.args...); err != nil {
		return nil, err
	}
	if f.results, err = f.eval(f.args); err != nil {
		return nil, app.UsageError(err)
	}
	f.call = tensor.Compile(f.scope, func(args ...*tensor.Tensor) []*tensor.Tensor {
		results, err := f.eval(args)
		if err != nil {
			panic("concord: an expression that was right is wrong: " + err.Error())
		}
		return results
	})
	return f, nil
}

// compute calls the compiled formula, and waits.
func (f *formula) compute(ctx context.Context) error {
	out, err := f.call.Call(ctx, f.args...)
	if err != nil {
		return err
	}
	return out[0].Sync(ctx)
}

// argumentTensor returns the tensor of an argument such as x=f32[2,3].
func argumentTensor(s *tensor.Scope, text string, seed uint64) (name string, t *tensor.Tensor, err error) {
	name, spec, ok := strings.Cut(text, "=")
	kind, dims, shaped := strings.Cut(strings.TrimSpace(spec), "[")
	if !ok || !token.IsIdentifier(name) || shaped != strings.HasSuffix(dims, "]") {
		return "", nil, fmt.Errorf("%q is not NAME=TYPE[SHAPE], such as x=f32[2,3]", text)
	}
	typ, err := tensor.ParseType(strings.ToLower(kind))
	if err != nil {
		return "", nil, fmt.Errorf("%q: there is no element type %q", text, kind)
	}
	var shape []int
	for _, d := range strings.FieldsFunc(strings.TrimSuffix(dims, "]"), func(r rune) bool {
		return r == ',' || r == 'x' || r == ' '
	}) {
		n, err := strconv.Atoi(d)
		if err != nil || n < 0 {
			return "", nil, fmt.Errorf("%q: %q is not the length of a dimension", text, d)
		}
		shape = append(shape, n)
	}
	if tensor.IsFloat(typ) {
		t = tensor.Uniform(s, typ, seed, 0.1, 1, shape...)
	} else {
		t = tensor.Iota(s, tensor.I64, shape...).Rem(7).Cast(typ)
	}
	return name, t, t.Err()
}

// eval returns the tensors of the last statement.
func (f *formula) eval(args []*tensor.Tensor) (results []*tensor.Tensor, err error) {
	const before = "package p; func f() {"
	file, err := parser.ParseFile(token.NewFileSet(), "", before+f.text+"\n}", parser.SkipObjectResolution)
	if err != nil {
		if list, ok := errors.AsType[scanner.ErrorList](err); ok {
			// What is found behind the text is not the user's.
			says, _, _ := strings.Cut(list[0].Msg, ", found '}'")
			err = fmt.Errorf("%s, %s", placeIn(f.text, list[0].Pos.Offset-len(before)), says)
		}
		return nil, fmt.Errorf("%q is not an expression of Go: %w", f.text, err)
	}
	known := map[string]*tensor.Tensor{}
	for i, n := range f.names {
		known[n] = args[i]
	}
	e := evaluator{known, func(x ast.Node) string {
		at := x.Pos()
		switch x := x.(type) {
		case *ast.BinaryExpr:
			at = x.OpPos
		case *ast.CallExpr:
			if f, ok := x.Fun.(*ast.SelectorExpr); ok {
				at = f.Sel.Pos()
			}
		}
		return placeIn(f.text, int(at-file.FileStart)-len(before))
	}}
	for _, s := range file.Decls[0].(*ast.FuncDecl).Body.List {
		switch s := s.(type) {
		case *ast.ExprStmt:
			results, err = e.all(s.X)
		case *ast.AssignStmt:
			results, err = e.assign(s)
		default:
			err = fmt.Errorf("%s is neither an expression nor an assignment", e.place(s))
		}
		if err != nil {
			return nil, err
		}
	}
	if len(results) == 0 {
		return nil, fmt.Errorf("%q has no result", f.text)
	}
	return results, nil
}

// placeIn returns the line and the column of an offset in a text, in words for a message.
func placeIn(text string, offset int) string {
	if offset >= len(text) {
		return "at the end"
	}
	offset = max(offset, 0)
	line, column := 1+strings.Count(text[:offset], "\n"),
		1+utf8.RuneCountInString(text[strings.LastIndexByte(text[:offset], '\n')+1:offset])
	if strings.Contains(text, "\n") {
		return fmt.Sprintf("line %d, column %d", line, column)
	}
	return fmt.Sprintf("column %d", column)
}
