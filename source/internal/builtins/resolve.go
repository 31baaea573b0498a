package builtins

// Overload resolution among the forms of a built-in, by the rules of OpenCL's compilers,
// which are those of C++: a form is the best one if every argument converts to it at least as well
// as to any other form, and one argument better. If no form is the best one, the call is ambiguous.

import (
	"slices"
	"strconv"
	"strings"

	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// Overload is one concrete form of a built-in.
type Overload struct {
	form   *Form
	g      Type
	hint   Type   // for the slots whose type depends on an argument
	params []Type // pointers have no address space here
}

// The ranks of conversions, best first.
type rank int

const (
	exact     rank = iota
	promotion      // small integers to int, float to double
	converted      // between all other scalars
	splat          // from a scalar to lanes
)

// Resolve chooses the overload for arguments of these types, on a device with these
// scalar types. If there is no best one, it returns the overloads for which no other one is better;
// the list is empty if no overload accepts the arguments.
func (b *Func) Resolve(args []Type, feats *token.Features) (Call, []*Overload) {
	var best []*Overload
	var ranks [][]rank
	for _, o := range b.overloads() {
		r, ok := o.match(b, args, feats)
		if !ok || slices.ContainsFunc(ranks, func(s []rank) bool { return better(s, r) }) {
			continue
		}
		kept := 0
		for i := range best {
			if !better(r, ranks[i]) {
				best[kept], ranks[kept] = best[i], ranks[i]
				kept++
			}
		}
		best, ranks = append(best[:kept], o), append(ranks[:kept], r)
	}
	if len(best) != 1 {
		return Call{}, best
	}
	return best[0].call(b, args), best
}

// better reports whether no argument converts worse with a than with b, and at least one converts
// better.
func better(a, b []rank) bool {
	less := false
	for i := range a {
		if a[i] > b[i] {
			return false
		}
		less = less || a[i] < b[i]
	}
	return less
}

// overloads returns all concrete forms, without duplicates.
func (b *Func) overloads() []*Overload {
	b.once.Do(func() {
		for i := range b.Forms {
			for _, o := range b.Forms[i].overloads() {
				if !slices.ContainsFunc(b.all, func(p *Overload) bool { return slices.Equal(p.params, o.params) }) {
					b.all = append(b.all, o)
				}
			}
		}
	})
	return b.all
}

// overloads returns the concrete forms of a family.
func (f *Form) overloads() (list []*Overload) {
	add := func(g, hint Type) {
		o := &Overload{form: f, g: g, hint: hint}
		for _, p := range f.Params {
			o.params = append(o.params, p.Of(g, hint))
		}
		list = append(list, o)
	}
	if f.Class == nil {
		add(Type{}, Type{})
		return list
	}
	for k := tree.Bool; k <= tree.Double; k++ {
		for _, w := range []int{1, 2, 3, 4, 8, 16} {
			if g := (Type{Kind: k, Width: w}); f.Class.Has(g) {
				for _, hint := range f.hints(k) {
					add(g, hint)
				}
			}
		}
	}
	return list
}

// hints returns the argument types that a slot's type can depend on.
func (f *Form) hints(k tree.Kind) []Type {
	for _, p := range f.Params {
		switch p.Sym {
		case 'S':
			return []Type{{Kind: tree.SignedOf(k), Width: 1}, {Kind: unsignedOf(k), Width: 1}}
		case 'V':
			var masks []Type
			for w, has := range f.Class.widths {
				if has {
					masks = append(masks, Type{Kind: unsignedOf(k), Width: w})
				}
			}
			return masks
		}
	}
	return []Type{{}}
}

// match ranks the conversions of the arguments. It returns false if one is not possible.
func (o *Overload) match(b *Func, args []Type, feats *token.Features) ([]rank, bool) {
	if len(args) < len(o.params) || len(args) > len(o.params) && !b.Variadic {
		return nil, false
	}
	missing := func(t Type) bool {
		return !t.Ptr && (t.Kind == tree.Double && !feats.FP64 || t.Kind == tree.Half && !feats.FP16)
	}
	var ranks []rank
	for i, want := range o.params {
		if missing(want) || missing(o.form.Result.Of(o.g, o.hint)) {
			return nil, false
		}
		r, ok := convertible(args[i], want, o.form.Params[i].Sym)
		if !ok {
			return nil, false
		}
		if ranks == nil {
			ranks = make([]rank, 0, len(o.params))
		}
		ranks = append(ranks, r)
	}
	return ranks, true
}

// convertible ranks one conversion.
func convertible(arg, want Type, sym byte) (rank, bool) {
	switch {
	case sym == 'e' || arg.Event:
		return exact, (sym == 'e') == (arg.Event || isInt(arg.Kind)) && want.Ptr == arg.Ptr
	case !arg.Known() || want.Ptr != arg.Ptr:
		return exact, false
	case want.Ptr && arg.Kind == tree.Void:
		return converted, true
	case want.Ptr:
		same := arg.Kind == want.Kind && arg.Lanes() == want.Lanes()
		return exact, same || sym == 'p' && arg.Kind == tree.UChar && arg.Lanes() == 1
	case arg.Kind == tree.Struct || arg.None:
		return exact, false
	case arg.Lanes() > 1:
		return exact, arg.Kind == want.Kind && arg.Lanes() == want.Lanes() // vectors never convert
	case want.Lanes() > 1:
		return splat, true
	case arg.Kind == want.Kind:
		return exact, true
	case arg.Kind < tree.Int && want.Kind == tree.Int, arg.Kind == tree.Float && want.Kind == tree.Double:
		return promotion, true
	}
	return converted, true
}

// call returns the call of an overload with these arguments.
func (o *Overload) call(b *Func, args []Type) Call {
	c := Call{Func: b, Name: "cc_" + b.Name, Result: o.form.Result.Of(o.g, o.hint)}
	for i, want := range o.params {
		if want.Ptr {
			want.Space, want.Const = args[i].Space, want.Const || args[i].Const
		}
		c.Params = append(c.Params, want)
	}
	c.Params = append(c.Params, args[len(o.params):]...)
	return c
}

// describe writes an overload as a declaration.
func (o *Overload) describe(name string) string {
	var params []string
	for _, p := range o.params {
		params = append(params, p.Tree().String())
	}
	return o.form.Result.Of(o.g, o.hint).Tree().String() + " " + name + "(" + strings.Join(params, ", ") + ")"
}

// Candidates lists the first few overloads that an ambiguous call fits.
func Candidates(b *Func, fitting []*Overload) string {
	const most = 5
	var list []string
	for _, o := range fitting[:min(len(fitting), most)] {
		list = append(list, o.describe(b.Name))
	}
	if more := len(fitting) - most; more > 0 {
		list = append(list, strconv.Itoa(more)+" more")
	}
	return strings.Join(list, "; ")
}
