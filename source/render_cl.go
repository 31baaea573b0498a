package source

// OpenCL renderings: the text itself, and the text with offsets added to its
// pointer parameters.

import (
	"context"
	"slices"
	"strings"
)

// clHeader stands before every OpenCL text: no fused multiply-add behind the
// program's back, so that all devices round alike.
const clHeader = "#pragma OPENCL FP_CONTRACT OFF\n"

// renderOpenCL returns the original text, or the preprocessed one.
func (u *Unit) renderOpenCL(m *meter) string {
	if !u.Expanded() {
		return clHeader + lineDirective(Pos{File: u.name, Line: 1}) + u.text
	}
	edits := newTokenEdits()
	edits.renameKernels(u)
	return clHeader + writeText(edits.apply(u.tokens), m)
}

// Expanded reports whether the OpenCL rendering is the preprocessed text and not the original
// one. It is for programs with includes, which an OpenCL compiler would not find, and for those
// with a kernel whose name is changed (see OpenCLName). The program's definitions are used
// up in it.
func (u *Unit) Expanded() bool {
	return len(u.resolved) > 0 || slices.ContainsFunc(u.kernels, func(k Kernel) bool { return isBuiltinName(k.Name) })
}

// OpenCLName returns the name that a kernel has in OpenCL renderings: its own, or
// cc_kernel_NAME where NAME is a built-in function. OpenCL compilers define the names of those
// as macros, or take the kernel for an overload, and find no kernel of that name.
func (u *Unit) OpenCLName(kernel string) string {
	if isBuiltinName(kernel) {
		return "cc_kernel_" + kernel
	}
	return kernel
}

func isBuiltinName(name string) bool {
	_, found := lookupBuiltin(name)
	return found || isConversion(name)
}

// RenderOffsets is RenderOffsetsContext without an end.
func (u *Unit) RenderOffsets() (string, error) { return u.RenderOffsetsContext(context.Background()) }

// RenderOffsetsContext returns OpenCL text in which every kernel takes, after its own
// parameters, one ulong for each global and constant pointer among them: a
// number of bytes that the kernel adds to that pointer first. It serves views
// that begin where an OpenCL device could not make a buffer begin. Errors, the context and the
// time it takes are as with RenderContext.
func (u *Unit) RenderOffsetsContext(ctx context.Context) (text string, err error) {
	defer settle(&err)
	m := newMeter(ctx)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	p := u.tree
	edits := newTokenEdits()
	edits.renameKernels(u)
	for _, fn := range p.funcs {
		if fn.kernel {
			edits.kernel(p, fn)
		}
		for _, c := range fn.calls {
			if !c.to.kernel {
				continue
			}
			for i := range offsetParams(c.to) {
				comma := ", "
				if i == 0 && len(c.to.typ.params) == 0 {
					comma = ""
				}
				edits.insert(p.origin[c.e.end], u.tokens, comma+"0ul")
			}
		}
	}
	return clHeader + writeText(edits.apply(u.tokens), m), nil
}

// offsetParams returns the indices of the parameters that get an offset.
func offsetParams(fn *function) []int {
	var list []int
	for i, t := range fn.typ.params {
		if t.isPointer() && (t.elem.space == Global || t.elem.space == Constant) {
			list = append(list, i)
		}
	}
	return list
}

// tokenEdits collects changes to a token list.
type tokenEdits struct {
	before map[int][]token
	rename map[int]string
}

func newTokenEdits() *tokenEdits {
	return &tokenEdits{before: map[int][]token{}, rename: map[int]string{}}
}

// renameKernels gives kernels their OpenCLName where they are declared and called.
func (t *tokenEdits) renameKernels(u *Unit) {
	for _, fn := range u.tree.funcs {
		if fn.kernel && isBuiltinName(fn.name) {
			for _, pr := range fn.protos {
				t.rename[u.tree.origin[pr.name]] = u.OpenCLName(fn.name)
			}
		}
		for _, c := range fn.calls {
			if c.to.kernel && isBuiltinName(c.to.name) {
				t.rename[u.tree.origin[c.e.tok]] = u.OpenCLName(c.to.name)
			}
		}
	}
}

// kernel edits every parameter list of a kernel and the start of its body.
func (t *tokenEdits) kernel(p *parser, fn *function) {
	params := offsetParams(fn)
	if len(params) == 0 {
		return
	}
	for _, pr := range fn.protos {
		at := p.origin[pr.close]
		for _, i := range params {
			t.insertAt(at, p.toks[pr.close].pos, ", ulong cc_o"+itoa(i))
			if n := pr.names[i]; n >= 0 && pr.close == fn.close {
				t.rename[p.origin[n]] = "cc_p" + itoa(i)
			}
		}
	}
	if !fn.defined {
		return
	}
	open := p.toks[fn.open]
	for _, i := range params {
		s := fn.params[i]
		if s.name == "" {
			continue
		}
		// restrict would promise that the copy is the only way to the memory.
		typ := s.typ.bare()
		bytes := "char"
		if typ.elem.q&qConst != 0 {
			bytes = "const char"
		}
		if typ.elem.q&qVolatile != 0 {
			bytes = "volatile " + bytes
		}
		text := clDeclare(typ, s.name) + " = (" + clDeclare(typ, "") + ")((" +
			typ.elem.space.String() + " " + bytes + " *)cc_p" + itoa(i) + " + cc_o" + itoa(i) + ");"
		t.insertAt(p.origin[fn.open]+1, open.pos, text)
	}
}

func (t *tokenEdits) insert(at int, toks []token, text string) {
	t.insertAt(at, toks[at].pos, text)
}

// insertAt puts words of our own in front of token at. They are one token to
// the writer, which only copies texts.
func (t *tokenEdits) insertAt(at int, pos Pos, text string) {
	t.before[at] = append(t.before[at], token{kind: tokIdent, text: text, pos: pos, space: true})
}

func (t *tokenEdits) apply(toks []token) []token {
	out := make([]token, 0, len(toks)+len(t.before))
	for i, k := range toks {
		out = append(out, t.before[i]...)
		if name, ok := t.rename[i]; ok {
			k.text = name
		}
		out = append(out, k)
	}
	return out
}

// unrollPragma returns what a #pragma unroll asks for ("" for other pragmas).
func unrollPragma(text string) string {
	words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(text), "#"))
	if len(words) >= 2 && words[0] == "pragma" && words[1] == "unroll" {
		return strings.Join(words[1:], " ")
	}
	return ""
}
