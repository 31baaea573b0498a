package source

// Unit: a parsed program and what can be asked of it.

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// Parse is ParseContext without an end.
func Parse(text string, opt Options) (*Unit, error) {
	return ParseContext(context.Background(), text, opt)
}

// ParseContext preprocesses, parses and checks a program. The error, if any, is an
// ErrorList: every mistake with its file, line and column, and the name of the
// construct. The Unit owns nothing that has to be released.
//
// It computes in the caller's goroutine, seconds for a program of a million tokens. When ctx
// is done it ends soon with the context's cause; a file system that an include is read from is
// not interrupted.
func ParseContext(ctx context.Context, text string, opt Options) (u *Unit, err error) {
	defer settle(&err)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	m := newMeter(ctx)
	if opt.Name == "" {
		opt.Name = "program.cl"
	}
	features := opt.features()
	opt.Features = &features // the caller may change its own
	pp, err := preprocessFor(m, text, opt)
	if err != nil {
		return nil, err
	}
	tree := parseTokens(pp.tokens, features, m)
	if err := tree.errs.err(); err != nil {
		return nil, err
	}
	opt.Defines = slices.Clone(opt.Defines)
	opt.Includes = slices.Clone(opt.Includes)
	u = &Unit{name: opt.Name, text: text, options: opt, resolved: pp.files, tokens: pp.tokens, tree: tree, byName: map[string]int{}}
	for _, fn := range tree.funcs {
		if fn.kernel && fn.defined {
			u.byName[fn.name] = len(u.kernels)
			u.kernels = append(u.kernels, describeKernel(fn))
		}
	}
	u.hash = u.computeHash()
	return u, nil
}

// describeKernel makes the public description of a kernel.
func describeKernel(fn *function) Kernel {
	k := Kernel{Name: fn.name, ReqdLocal: fn.attrs.reqd, Barrier: fn.barrier, Pos: fn.pos}
	k.LocalBytes = fn.memory
	for _, s := range fn.params {
		k.Params = append(k.Params, describeParam(s))
	}
	return k
}

// localBytes is the local memory that a kernel declares, with that of the kernels it calls,
// whose memory is known already. It is no more than bigSize.
func localBytes(fn *function) int {
	n := 0
	for _, s := range fn.locals {
		size, _ := s.typ.size()
		n = min(alignUp(n, localAlignment(s.typ))+size, bigSize)
	}
	seen := map[*function]bool{}
	for _, c := range fn.calls {
		if c.to.kernel && !seen[c.to] {
			seen[c.to] = true
			n += c.to.memory
		}
		n = min(n, bigSize)
	}
	return n
}

// localAlignment is the alignment of a local variable. Large ones get more than
// their type asks for, as OpenCL devices have it: programs read arrays of float
// as vectors.
func localAlignment(t *ctype) int {
	n, _ := t.size()
	a := t.alignment()
	for a < 128 && 2*a <= n {
		a *= 2
	}
	return a
}

func describeParam(s *symbol) Param {
	q := Param{Name: s.name, Decl: s.typ.String()}
	v := s.typ
	if v.isPointer() {
		q.Pointer, q.Space = true, v.elem.space
		v = v.elem
		q.Const = v.isConst()
	}
	q.Size, _ = v.size()
	if v.isVoid() {
		q.Size = 0
	}
	v = arrayBase(v)
	q.Kind, q.Width = Struct, 1
	if v.kind == tScalar || v.kind == tVector {
		q.Kind, q.Width = v.base, v.width()
	}
	return q
}

// Kernels returns the program's entry points in the order of their definition.
// The slice is the caller's.
func (u *Unit) Kernels() []Kernel { return slices.Clone(u.kernels) }

// Kernel finds an entry point by its name.
func (u *Unit) Kernel(name string) (*Kernel, bool) {
	i, ok := u.byName[name]
	if !ok {
		return nil, false
	}
	k := u.kernels[i]
	return &k, true
}

// Name returns the name of the text in positions.
func (u *Unit) Name() string { return u.name }

// Family returns the family that the program was parsed with, or "".
func (u *Unit) Family() string { return u.options.Family }

// Text returns the text as it was given to Parse.
func (u *Unit) Text() string { return u.text }

// Defines returns the definitions that the program was parsed with, in order.
func (u *Unit) Defines() []Define { return slices.Clone(u.options.Defines) }

// Define returns the value of the last definition of that name, and whether there is one.
func (u *Unit) Define(name string) (value string, ok bool) {
	for _, d := range u.options.Defines {
		if d.Name == name {
			value, ok = d.Value, true
		}
	}
	return value, ok
}

// Includes returns every file that #include read, in order of first use.
func (u *Unit) Includes() []File { return slices.Clone(u.resolved) }

// Features returns what the program was told that the device can do.
func (u *Unit) Features() Features { return *u.options.Features }

// Hash identifies everything that a rendering depends on: the program, and the
// front end itself. It was computed once, by Parse.
func (u *Unit) Hash() [32]byte { return u.hash }

// String names the unit and its kernels, for messages.
func (u *Unit) String() string {
	names := make([]string, len(u.kernels))
	for i, k := range u.kernels {
		names[i] = k.Name
	}
	return fmt.Sprintf("%s (%s)", u.name, strings.Join(names, ", "))
}

// computeHash hashes every input with its length in front, so that no two
// different inputs make the same bytes.
func (u *Unit) computeHash() [32]byte {
	h := sha256.New()
	count := func(n int) {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(n))
		h.Write(b[:])
	}
	put := func(s string) {
		count(len(s))
		h.Write([]byte(s))
	}
	put(revision())
	put(u.name) // it is in the #line of every rendering
	put(u.text)
	count(len(u.options.Defines))
	for _, d := range u.options.Defines {
		put(d.Name)
		put(d.Value)
	}
	count(len(u.resolved))
	for _, f := range u.resolved {
		put(f.Name)
		put(f.Text)
	}
	put(fmt.Sprintf("%+v", *u.options.Features))
	return [32]byte(h.Sum(nil))
}
