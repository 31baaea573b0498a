package source

// OpenCL renderings: the text itself, and the text with offsets added to its
// pointer parameters.

import (
	"strconv"

	"github.com/concord-compute/concord/source/internal/preprocess"
	"github.com/concord-compute/concord/source/internal/token"
)

// clHeader stands before every OpenCL text: no fused multiply-add behind the
// program's back, so that all devices round alike.
const clHeader = "#pragma OPENCL FP_CONTRACT OFF\n"

// renderOriginal returns the text as it was written.
func renderOriginal(name, text string) string {
	return clHeader + lineDirective(token.Pos{File: name, Line: 1}) + text
}

// renderExpanded returns the preprocessed text, in which each kernel has its openCLName.
func renderExpanded(m *token.Meter, p *program) string {
	edits := newTokenEdits()
	edits.renameKernels(p)
	return clHeader + preprocess.WriteText(m, edits.apply(p.tokens))
}

// renderOffsets returns the preprocessed text with a number of bytes behind the parameters of
// each kernel for each of its pointers to global and constant memory.
func renderOffsets(m *token.Meter, p *program) string {
	edits := newTokenEdits()
	edits.renameKernels(p)
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
				edits.insert(p.origin[c.e.end], p.tokens, comma+"0ul")
			}
		}
	}
	return clHeader + preprocess.WriteText(m, edits.apply(p.tokens))
}

// openCLName returns the name of a kernel in OpenCL renderings: cc_kernel_NAME where NAME is a
// built-in function.
func openCLName(kernel string) string {
	if isBuiltinName(kernel) {
		return EntryPrefix + kernel
	}
	return kernel
}

func isBuiltinName(name string) bool {
	_, found := lookupBuiltin(name)
	return found || isConversion(name)
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
	before map[int][]token.Token
	rename map[int]string
}

func newTokenEdits() *tokenEdits {
	return &tokenEdits{before: map[int][]token.Token{}, rename: map[int]string{}}
}

// renameKernels gives kernels their openCLName where they are declared and called.
func (t *tokenEdits) renameKernels(p *program) {
	for _, fn := range p.funcs {
		if fn.kernel && isBuiltinName(fn.name) {
			for _, pr := range fn.protos {
				t.rename[p.origin[pr.name]] = openCLName(fn.name)
			}
		}
		for _, c := range fn.calls {
			if c.to.kernel && isBuiltinName(c.to.name) {
				t.rename[p.origin[c.e.tok]] = openCLName(c.to.name)
			}
		}
	}
}

// kernel edits every parameter list of a kernel and the start of its body.
func (t *tokenEdits) kernel(p *program, fn *function) {
	params := offsetParams(fn)
	if len(params) == 0 {
		return
	}
	for _, pr := range fn.protos {
		at := p.origin[pr.close]
		for _, i := range params {
			t.insertAt(at, p.toks[pr.close].Pos, ", ulong cc_o"+strconv.Itoa(i))
			if n := pr.names[i]; n >= 0 && pr.close == fn.close {
				t.rename[p.origin[n]] = "cc_p" + strconv.Itoa(i)
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
			typ.elem.space.String() + " " + bytes + " *)cc_p" + strconv.Itoa(i) + " + cc_o" + strconv.Itoa(i) + ");"
		t.insertAt(p.origin[fn.open]+1, open.Pos, text)
	}
}

func (t *tokenEdits) insert(at int, toks []token.Token, text string) {
	t.insertAt(at, toks[at].Pos, text)
}

// insertAt puts words of our own in front of token at. They are one token to
// the writer, which only copies texts.
func (t *tokenEdits) insertAt(at int, pos token.Pos, text string) {
	t.before[at] = append(t.before[at], token.Token{Kind: token.Ident, Text: text, Pos: pos, Space: true})
}

func (t *tokenEdits) apply(toks []token.Token) []token.Token {
	out := make([]token.Token, 0, len(toks)+len(t.before))
	for i, k := range toks {
		out = append(out, t.before[i]...)
		if name, ok := t.rename[i]; ok {
			k.Text = name
		}
		out = append(out, k)
	}
	return out
}
