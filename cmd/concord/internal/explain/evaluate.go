package explain

// The value of an expression.

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"reflect"
	"strconv"
	"strings"
	"unicode"

	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/tensor"
)

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
		if t, err := tensor.ParseType(x.Name); err == nil {
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
