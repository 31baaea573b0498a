// Package explain shows how an expression of tensors is planned, and which kernels compute it.
package explain

// concord explain: the kernels that compute an expression of tensors.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
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
what is stored and why, the tasks, their order, those that are fused, and the memory between them.`,
		Example: `  concord explain 'x.softmax(-1)' 'x=f32[4096,1024]'
  concord explain 'h := (x.matmul(w) + b).relu(); loss := h.square().mean(); grad(loss, w, b)' \
      'x=f32[128,784]' 'w=f32[784,512]' 'b=f32[512]'
  concord explain --time 'x.gelu() * y' 'x=f32[1000000]' 'y=f32[1000000]'`,
		Args: cobra.MinimumNArgs(1),
	}
	cmd.Flags().StringVar(&device, "device", "cpu:0", "the device for which to plan")
	cmd.Flags().BoolVar(&passes, "passes", false, "print what each pass of the planner decides")
	cmd.Flags().BoolVar(&timed, "time", false, "compute the expression, and report the times with and without fusion")
	a.JSONFlag(cmd)
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fmt.Errorf("%w; an EXPRESSION that begins with - follows --, as in concord explain -- '-x' 'x=f32[9]'", err)
	})
	cmd.RunE = a.Do(func(ctx context.Context, args []string) error {
		return explain(ctx, a, device, timed, passes, args[0], args[1:])
	})
	return cmd
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
	d.Tasks, d.Apart = p.Tasks, len(q.Tasks)
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
		f, u := app.Number(took.Seconds()), app.Number(tookApart.Seconds())
		d.Fused, d.Unfused = &f, &u
	}
	if a.JSON {
		return a.Print(d)
	}
	for _, p := range d.Passes {
		fmt.Fprintf(a.Stdout, "%s\n%s\n", a.Paint(ui.Bold, p.Name), p.Text)
	}
	fmt.Fprintf(a.Stdout, "%s of %s on %s\n%v", strings.Join(d.Results, ", "), strings.Join(inputs, " "), d.Device, p)
	fmt.Fprintf(a.Stdout, "%s; operation by operation %d\n", ui.Quantity(len(d.Tasks), "task"), d.Apart)
	if timed {
		fmt.Fprintf(a.Stdout, "%s; operation by operation %s, %.2f times as long\n", rounded(float64(*d.Fused)),
			rounded(float64(*d.Unfused)), float64(*d.Unfused / *d.Fused))
	}
	return nil
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
	typ, ok := tensor.ParseType(strings.ToLower(kind))
	if !ok {
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

// evaluator computes expressions of tensors with names.
type evaluator struct {
	names map[string]*tensor.Tensor
	place func(ast.Node) string // in the user's text
}

func (e evaluator) assign(s *ast.AssignStmt) ([]*tensor.Tensor, error) {
	if len(s.Rhs) != 1 {
		return nil, fmt.Errorf("an assignment has one expression")
	}
	list, err := e.all(s.Rhs[0])
	if err != nil {
		return nil, err
	}
	if len(list) != len(s.Lhs) {
		return nil, fmt.Errorf("%d names for %d tensors", len(s.Lhs), len(list))
	}
	for i, l := range s.Lhs {
		id, ok := l.(*ast.Ident)
		if !ok {
			return nil, fmt.Errorf("only names are assigned to (%s)", e.place(l))
		}
		e.names[id.Name] = list[i]
	}
	return list, nil
}

// all returns the tensors of an expression, of which there may be several.
func (e evaluator) all(x ast.Expr) ([]*tensor.Tensor, error) {
	v, err := e.value(x)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case *tensor.Tensor:
		return []*tensor.Tensor{v}, nil
	case []*tensor.Tensor:
		return v, nil
	}
	return nil, fmt.Errorf("%v is not a tensor", v)
}

// one returns the tensor of an expression.
func (e evaluator) one(x ast.Expr) (*tensor.Tensor, error) {
	list, err := e.all(x)
	if err == nil && len(list) != 1 {
		err = fmt.Errorf("%d tensors where one is expected", len(list))
	}
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// mistake is an error with its place.
type mistake struct{ error }

func (m mistake) Unwrap() error { return m.error }

// value returns a tensor, several, or a number. An error has the place of the innermost expression that is wrong.
func (e evaluator) value(x ast.Expr) (any, error) {
	v, err := e.plainValue(x)
	if err == nil {
		ts, _ := v.([]*tensor.Tensor)
		if t, ok := v.(*tensor.Tensor); ok {
			ts = []*tensor.Tensor{t}
		}
		for _, t := range ts {
			err = cmp.Or(err, t.Err())
		}
	}
	if err == nil {
		return v, nil
	}
	if _, ok := errors.AsType[mistake](err); !ok {
		if t, ok := errors.AsType[*tensor.Error](err); ok {
			err = &tensor.Error{Op: t.Op, Place: e.place(x), Err: t.Err} // instead of the place in this program
		} else {
			err = fmt.Errorf("%w (%s)", err, e.place(x))
		}
		err = mistake{err}
	}
	return nil, err
}

func (e evaluator) plainValue(x ast.Expr) (any, error) {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return e.value(x.X)
	case *ast.Ident:
		if t := e.names[x.Name]; t != nil {
			return t, nil
		}
		if x.Name == "true" || x.Name == "false" {
			return x.Name == "true", nil
		}
		if t, ok := tensor.ParseType(x.Name); ok {
			return t, nil
		}
		return nil, fmt.Errorf("there is no tensor %q", x.Name)
	case *ast.BasicLit:
		if n, err := strconv.Atoi(x.Value); err == nil {
			return n, nil
		}
		if n, err := strconv.ParseFloat(x.Value, 64); err == nil {
			return n, nil
		}
		if s, err := strconv.Unquote(x.Value); err == nil {
			return s, nil
		}
		return nil, fmt.Errorf("%s is not a number", x.Value)
	case *ast.UnaryExpr:
		return e.unary(x)
	case *ast.BinaryExpr:
		return e.binary(x)
	case *ast.CallExpr:
		return e.call(x)
	}
	return nil, errors.New("this is no name, number, operator or call")
}

func (e evaluator) unary(x *ast.UnaryExpr) (any, error) {
	v, err := e.value(x.X)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case int:
		if x.Op == token.SUB {
			return -v, nil
		}
	case float64:
		if x.Op == token.SUB {
			return -v, nil
		}
	case *tensor.Tensor:
		switch x.Op {
		case token.SUB:
			return v.Neg(), nil
		case token.NOT, token.XOR:
			return v.Not(), nil
		}
	}
	return nil, fmt.Errorf("%v of %v", x.Op, v)
}

// operators are the methods that operators stand for.
var operators = map[token.Token]string{token.ADD: "Add", token.SUB: "Sub", token.MUL: "Mul", token.QUO: "Div",
	token.REM: "Rem", token.AND: "And",
	token.OR: "Or", token.XOR: "Xor", token.LAND: "And", token.LOR: "Or", token.EQL: "Eq", token.NEQ: "Ne",
	token.LSS: "Lt", token.LEQ: "Le",
	token.GTR: "Gt", token.GEQ: "Ge", token.SHL: "Shl", token.SHR: "Shr"}

func (e evaluator) binary(x *ast.BinaryExpr) (any, error) {
	left, err := e.value(x.X)
	if err != nil {
		return nil, err
	}
	right, err := e.value(x.Y)
	if err != nil {
		return nil, err
	}
	t, ok := left.(*tensor.Tensor)
	if !ok {
		u, is := right.(*tensor.Tensor)
		if !is {
			return nil, fmt.Errorf("%v between two numbers", x.Op)
		}
		t = tensor.Full(u.Scope(), u.Type(), left, u.Shape()...)
	}
	return e.method(t, operators[x.Op], []any{right})
}

func (e evaluator) call(x *ast.CallExpr) (any, error) {
	var args []any
	for _, a := range x.Args {
		v, err := e.value(a)
		if err != nil {
			return nil, err
		}
		args = append(args, v)
	}
	switch f := x.Fun.(type) {
	case *ast.SelectorExpr:
		t, err := e.one(f.X)
		if err != nil {
			return nil, err
		}
		return e.method(t, f.Sel.Name, args)
	case *ast.Ident:
		functions := map[string]any{"where": tensor.Where, "concat": tensor.Concat, "stack": tensor.Stack,
			"grad": tensor.Grad}
		if fn := functions[f.Name]; fn != nil {
			return invoke(f.Name, reflect.ValueOf(fn), args)
		}
		return nil, fmt.Errorf("there is no function %q", f.Name)
	}
	return nil, fmt.Errorf("%T cannot be called", x.Fun)
}

// method calls a method of a tensor, whose name may be written in any case, with or without underscores.
func (e evaluator) method(t *tensor.Tensor, name string, args []any) (any, error) {
	plain := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r == '_' {
				return -1
			}
			return unicode.ToLower(r)
		}, s)
	}
	v := reflect.ValueOf(t)
	for i := range v.NumMethod() {
		if m := v.Type().Method(i); plain(m.Name) == plain(name) {
			return invoke(name, v.Method(i), args)
		}
	}
	return nil, fmt.Errorf("tensors have no method %q", name)
}

// invoke calls a function with arguments that it can take, and returns its one result.
func invoke(name string, f reflect.Value, args []any) (any, error) {
	t := f.Type()
	if n := t.NumIn(); len(args) < n && !(t.IsVariadic() && len(args) == n-1) || len(args) > n && !t.IsVariadic() {
		return nil, fmt.Errorf("%s takes %s, not %d", name, ui.Quantity(n, "argument"), len(args))
	}
	var in []reflect.Value
	for i, a := range args {
		want := t.In(min(i, t.NumIn()-1))
		if t.IsVariadic() && i >= t.NumIn()-1 {
			want = want.Elem()
		}
		v := reflect.ValueOf(a)
		switch number := want.Kind() == reflect.Float64 || want.Kind() == reflect.Int; {
		case v.Type().AssignableTo(want):
		case number && (v.Kind() == reflect.Int || v.Kind() == reflect.Float64 && want.Kind() == reflect.Float64):
			v = v.Convert(want)
		default:
			return nil, fmt.Errorf("argument %d of %s is a %v, not a %v", i+1, name, want, v.Type())
		}
		in = append(in, v)
	}
	out := f.Call(in)
	if len(out) == 1 {
		switch r := out[0].Interface().(type) {
		case *tensor.Tensor, []*tensor.Tensor:
			return r, nil
		}
	}
	if len(out) == 2 {
		a, ok := out[0].Interface().(*tensor.Tensor)
		b, too := out[1].Interface().(*tensor.Tensor)
		if ok && too {
			return []*tensor.Tensor{a, b}, nil
		}
	}
	return nil, fmt.Errorf("%s does not return tensors", name)
}
