package render

// OpenCL renderings: the text itself, and the text with offsets added to its
// pointer parameters.

import (
	_ "embed"
	"strconv"

	"github.com/concord-compute/concord/source/internal/builtins"
	"github.com/concord-compute/concord/source/internal/preprocess"
	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// clHeader is at the beginning of every OpenCL text. It switches off the contraction of products
// and sums to fma, so that all devices round alike.
const clHeader = "#pragma OPENCL FP_CONTRACT OFF\n"

// clByteDots defines the functions of cl_khr_integer_dot_product for compilers that do not have them.
//
//go:embed prelude/dots.cl
var clByteDots string

// header returns what is in front of a program.
func header(p *tree.Program) string {
	if p.ByteDots {
		return clHeader + clByteDots
	}
	return clHeader
}

// Original returns the text as it was written.
func Original(p *tree.Program, name, text string) string {
	return header(p) + LineDirective(token.Pos{File: name, Line: 1}) + text
}

// Expanded returns the preprocessed text, in which each kernel has its OpenCLName.
func Expanded(m *token.Meter, p *tree.Program) string {
	edits := newTokenEdits()
	edits.renameKernels(p)
	return header(p) + preprocess.WriteText(m, edits.apply(p.Tokens))
}

// Offsets returns the preprocessed text in which each kernel has, after its own parameters, one
// more for each of its pointers to global and constant memory: an offset in bytes.
func Offsets(m *token.Meter, p *tree.Program) string {
	edits := newTokenEdits()
	edits.renameKernels(p)
	for _, fn := range p.Funcs {
		if fn.Kernel {
			edits.kernel(p, fn)
		}
		for _, c := range fn.Calls {
			if !c.To.Kernel {
				continue
			}
			for i := range offsetParams(c.To) {
				comma := ", "
				if i == 0 && len(c.To.Type.Params) == 0 {
					comma = ""
				}
				at := p.Origin[c.E.End]
				edits.insertAt(at, p.Tokens[at].Pos, comma+"0ul")
			}
		}
	}
	return header(p) + preprocess.WriteText(m, edits.apply(p.Tokens))
}

// OpenCLName returns the name of a kernel in OpenCL renderings: cc_kernel_NAME where NAME is a
// built-in function.
func OpenCLName(kernel string) string {
	if isBuiltinName(kernel) {
		return EntryPrefix + kernel
	}
	return kernel
}

func isBuiltinName(name string) bool {
	_, found := builtins.Lookup(name)
	return found || builtins.IsConversion(name)
}

// offsetParams returns the indices of the parameters that get an offset.
func offsetParams(fn *tree.Function) []int {
	var list []int
	for i, t := range fn.Type.Params {
		if t.IsPointer() && (t.Elem.Space == tree.Global || t.Elem.Space == tree.Constant) {
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

// renameKernels replaces kernels' names by their OpenCLName where they are declared and called.
func (t *tokenEdits) renameKernels(p *tree.Program) {
	for _, fn := range p.Funcs {
		if fn.Kernel && isBuiltinName(fn.Name) {
			for _, pr := range fn.Protos {
				t.rename[p.Origin[pr.Name]] = OpenCLName(fn.Name)
			}
		}
		for _, c := range fn.Calls {
			if c.To.Kernel && isBuiltinName(c.To.Name) {
				t.rename[p.Origin[c.E.Tok]] = OpenCLName(c.To.Name)
			}
		}
	}
}

// kernel edits every parameter list of a kernel and the start of its body.
func (t *tokenEdits) kernel(p *tree.Program, fn *tree.Function) {
	params := offsetParams(fn)
	if len(params) == 0 {
		return
	}
	for _, pr := range fn.Protos {
		at := p.Origin[pr.Close]
		for _, i := range params {
			t.insertAt(at, p.Toks[pr.Close].Pos, ", ulong cc_o"+strconv.Itoa(i))
			if n := pr.Names[i]; n >= 0 && pr.Close == fn.Close {
				t.rename[p.Origin[n]] = "cc_p" + strconv.Itoa(i)
			}
		}
	}
	if !fn.Defined {
		return
	}
	open := p.Toks[fn.Open]
	for _, i := range params {
		s := fn.Params[i]
		if s.Name == "" {
			continue
		}
		// Without restrict, which would promise that only the copy accesses the memory.
		typ := s.Type.Bare()
		bytes := "char"
		if typ.Elem.Q&tree.QConst != 0 {
			bytes = "const char"
		}
		if typ.Elem.Q&tree.QVolatile != 0 {
			bytes = "volatile " + bytes
		}
		text := tree.CLDeclare(typ, s.Name) + " = (" + tree.CLDeclare(typ, "") + ")((" +
			typ.Elem.Space.String() + " " + bytes + " *)cc_p" + strconv.Itoa(i) + " + cc_o" + strconv.Itoa(i) + ");"
		t.insertAt(p.Origin[fn.Open]+1, open.Pos, text)
	}
}

// insertAt inserts text in front of token at. It is one token for the writer, which only copies the
// texts of tokens.
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
