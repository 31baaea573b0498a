package source

// Overload resolution among the forms of a built-in, by the rules of OpenCL's compilers,
// which are those of C++: the form whose every argument converts at least as well as to
// any other form, and one better. Where none is best, the call is ambiguous.

import (
	"slices"
	"strconv"
	"strings"

	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// overload is one concrete form of a built-in.
type overload struct {
	form   *form
	g      bType
	hint   bType   // for the slots that keep something of an argument
	params []bType // in no address space
}

// How well an argument converts, best first.
type rank int

const (
	exact     rank = iota
	promotion      // small integers to int, float to double
	converted      // between all other scalars
	splat          // from a scalar to lanes
)

// resolve chooses the overload for arguments of these types, on a device with these
// scalar types. Unless one is best, it returns all that no other is better than: none if
// nothing takes the arguments.
func (b *builtin) resolve(args []bType, feats *token.Features) (builtinCall, []*overload) {
	var best []*overload
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
		return builtinCall{}, best
	}
	return best[0].call(b, args), best
}

// better tells whether no argument converts worse by a than by b, and one better.
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
func (b *builtin) overloads() []*overload {
	b.once.Do(func() {
		for i := range b.forms {
			for _, o := range b.forms[i].overloads() {
				if !slices.ContainsFunc(b.all, func(p *overload) bool { return slices.Equal(p.params, o.params) }) {
					b.all = append(b.all, o)
				}
			}
		}
	})
	return b.all
}

// overloads returns the concrete forms of a family.
func (f *form) overloads() (list []*overload) {
	add := func(g, hint bType) {
		o := &overload{form: f, g: g, hint: hint}
		for _, p := range f.params {
			o.params = append(o.params, p.of(g, hint))
		}
		list = append(list, o)
	}
	if f.class == nil {
		add(bType{}, bType{})
		return list
	}
	for k := tree.Bool; k <= tree.Double; k++ {
		for _, w := range []int{1, 2, 3, 4, 8, 16} {
			if g := (bType{Kind: k, Width: w}); f.class.has(g) {
				for _, hint := range f.hints(k) {
					add(g, hint)
				}
			}
		}
	}
	return list
}

// hints are the arguments that a slot can keep something of.
func (f *form) hints(k tree.Kind) []bType {
	for _, p := range f.params {
		switch p.sym {
		case 'S':
			return []bType{{Kind: bIntKind(bBytes(k), true), Width: 1}, {Kind: bIntKind(bBytes(k), false), Width: 1}}
		case 'V':
			var masks []bType
			for w, has := range f.class.widths {
				if has {
					masks = append(masks, bType{Kind: bIntKind(bBytes(k), false), Width: w})
				}
			}
			return masks
		}
	}
	return []bType{{}}
}

// match ranks the conversions of the arguments, if there are any.
func (o *overload) match(b *builtin, args []bType, feats *token.Features) ([]rank, bool) {
	if len(args) < len(o.params) || len(args) > len(o.params) && !b.Variadic {
		return nil, false
	}
	missing := func(t bType) bool {
		return !t.Ptr && (t.Kind == tree.Double && !feats.FP64 || t.Kind == tree.Half && !feats.FP16)
	}
	var ranks []rank
	for i, want := range o.params {
		if missing(want) || missing(o.form.result.of(o.g, o.hint)) {
			return nil, false
		}
		r, ok := convertible(args[i], want, o.form.params[i].sym)
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
func convertible(arg, want bType, sym byte) (rank, bool) {
	switch {
	case sym == 'e' || arg.Event:
		return exact, (sym == 'e') == (arg.Event || bIsInt(arg.Kind)) && want.Ptr == arg.Ptr
	case !arg.known() || want.Ptr != arg.Ptr:
		return exact, false
	case want.Ptr && arg.Kind == tree.Void:
		return converted, true
	case want.Ptr:
		same := arg.Kind == want.Kind && arg.width() == want.width()
		return exact, same || sym == 'p' && arg.Kind == tree.UChar && arg.width() == 1
	case arg.Kind == tree.Struct || arg.None:
		return exact, false
	case arg.width() > 1:
		return exact, arg.Kind == want.Kind && arg.width() == want.width() // vectors never convert
	case want.width() > 1:
		return splat, true
	case arg.Kind == want.Kind:
		return exact, true
	case arg.Kind < tree.Int && want.Kind == tree.Int, arg.Kind == tree.Float && want.Kind == tree.Double:
		return promotion, true
	}
	return converted, true
}

// call makes the call of an overload.
func (o *overload) call(b *builtin, args []bType) builtinCall {
	c := builtinCall{Func: b, Name: "cc_" + b.Name, Result: o.form.result.of(o.g, o.hint)}
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
func (o *overload) describe(name string) string {
	var params []string
	for _, p := range o.params {
		params = append(params, p.ctype().String())
	}
	return o.form.result.of(o.g, o.hint).ctype().String() + " " + name + "(" + strings.Join(params, ", ") + ")"
}

// candidates lists what an ambiguous call fits, the first few of it.
func candidates(b *builtin, fitting []*overload) string {
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
