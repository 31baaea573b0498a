package source

// Unit: a parsed program, its properties and its renderings.

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/concord-compute/concord/source/internal/check"
	"github.com/concord-compute/concord/source/internal/preprocess"
	"github.com/concord-compute/concord/source/internal/render"
	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// Parse is ParseContext with a context that is never done.
func Parse(text string, opt Options) (*Unit, error) {
	return ParseContext(context.Background(), text, opt)
}

// ParseContext preprocesses, parses and checks a program. The error, if any, is an
// ErrorList: every mistake with its file, line and column, and the name of the
// construct. The Unit owns nothing that has to be released.
//
// It computes in the caller's goroutine, which takes seconds for a program of a million tokens.
// When ctx is done it returns soon with the context's cause, but it does not interrupt the reading
// of an included file.
func ParseContext(ctx context.Context, text string, opt Options) (u *Unit, err error) {
	defer token.Settle(&err)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	m := token.NewMeter(ctx)
	if opt.Name == "" {
		opt.Name = "program.cl"
	}
	features := opt.features()
	opt.Features = &features // the caller may change its own
	pp, err := preprocess.Expand(m, text, preprocess.Options{Name: opt.Name, Defines: opt.Defines, Includes: opt.Includes,
		Features: features})
	if err != nil {
		return nil, err
	}
	tree, err := check.Parse(m, pp.Tokens, features)
	if err != nil {
		return nil, err
	}
	opt.Defines = slices.Clone(opt.Defines)
	opt.Includes = slices.Clone(opt.Includes)
	opt.Native = maps.Clone(opt.Native)
	u = &Unit{name: opt.Name, text: text, options: opt, resolved: pp.Files, tree: tree, byName: map[string]int{}}
	for _, fn := range tree.Funcs {
		if fn.Kernel && (fn.Defined || len(opt.Native) > 0) {
			u.byName[fn.Name] = len(u.kernels)
			u.kernels = append(u.kernels, describeKernel(fn))
			if !fn.Defined {
				u.declared = append(u.declared, fn.Name)
			}
		}
	}
	if err := u.checkNative(); err != nil {
		return nil, err
	}
	u.hash = u.computeHash()
	return u, nil
}

// describeKernel makes the public description of a kernel.
func describeKernel(fn *tree.Function) Kernel {
	k := Kernel{Name: fn.Name, ReqdLocal: fn.Attrs.Reqd, Barrier: fn.Barrier, Pos: fn.Pos}
	k.LocalBytes = fn.Memory
	for _, s := range fn.Params {
		k.Params = append(k.Params, describeParam(s))
	}
	return k
}

func describeParam(s *tree.Symbol) Param {
	q := Param{Name: s.Name, Decl: s.Type.String()}
	v := s.Type
	if v.IsPointer() {
		q.Pointer, q.Space = true, v.Elem.Space
		v = v.Elem
		q.Const = v.IsConst()
	}
	q.Size, _ = v.Size()
	if v.IsVoid() {
		q.Size = 0
	}
	v = tree.ArrayBase(v)
	q.Kind, q.Width = Struct, 1
	if v.Kind == tree.TScalar || v.Kind == tree.TVector {
		q.Kind, q.Width = v.Base, v.Width()
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

// NameFor returns the name of the text that target t gets: that of the native text for it
// (Options.Native) if there is one, else Name.
func (u *Unit) NameFor(t Target) string {
	if own, ok := u.options.Native[t]; ok {
		return own.Name
	}
	return u.name
}

// Family returns the family that the program was parsed with, or "".
func (u *Unit) Family() string { return u.options.Family }

// Work returns the amount of work of a launch of a kernel of the program by the function that it was parsed with, see
// Options.Work, and 0 and 0 without one.
func (u *Unit) Work(k *Kernel, global [3]int, values [][]byte) (operations, bytes float64) {
	if u.options.Work == nil {
		return 0, 0
	}
	return u.options.Work(u, k, global, values)
}

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

// Features returns the features of a device that the program was parsed for.
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
	for _, t := range slices.Sorted(maps.Keys(u.options.Native)) {
		put(t.String())
		put(u.options.Native[t].Name)
		put(u.options.Native[t].Text)
	}
	return [32]byte(h.Sum(nil))
}

// ErrTarget says that a Target is none of the constants.
var ErrTarget = errors.New("source: no such target")

// ErrUnsupported says that a Unit is correct but uses features that a target does not have. The
// error has an ErrorList with the places.
var ErrUnsupported = errors.New("source: the target cannot do this")

// Render is RenderContext with a context that is never done.
func (u *Unit) Render(t Target) (string, error) {
	return u.RenderContext(context.Background(), t)
}

// RenderContext returns the program in the language of target t: the original text for OpenCL, a complete C++17
// translation unit for Host, CUDA and HIP, and the Metal Shading Language for Metal. For SPIRV it is the bytes of a
// module; see Module. EntryPrefix describes the arguments of entry points. For any other value of t the error wraps
// ErrTarget. If the program uses a feature
// that the target does not have, the error wraps ErrUnsupported and an ErrorList with the places. If the
// rendering would be larger than 64 MiB, the error is an ErrorList with the place where the limit was reached.
//
// It computes in the caller's goroutine, which takes seconds for a program of a million tokens.
// When ctx is done it returns soon with the context's cause. The Unit can be rendered again.
func (u *Unit) RenderContext(ctx context.Context, t Target) (text string, err error) {
	defer token.Settle(&err)
	m := token.NewMeter(ctx)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if own, ok := u.options.Native[t]; ok {
		return u.nativeText(own), nil
	}
	if err := u.portable(t); err != nil {
		return "", err
	}
	switch t {
	case OpenCL:
		if u.Expanded() {
			return render.Expanded(m, u.tree), nil
		}
		return render.Original(u.tree, u.name, u.text), nil
	case Host, CUDA, HIP, Metal:
		text, err := render.CPP(m, u.tree, t, u.fibers())
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrUnsupported, err)
		}
		return text, nil
	case SPIRV:
		module, err := u.Module(ctx)
		if err != nil {
			return "", err
		}
		return string(module.Words), nil
	}
	return "", fmt.Errorf("%w: %s", ErrTarget, t)
}

// fibers reports whether kernels with barriers are to run on fibers on the host.
func (u *Unit) fibers() bool {
	return slices.ContainsFunc(u.options.Defines, func(d Define) bool { return d.Name == fibersDefine })
}

// Loops reports whether a function of the program contains a loop or a label. What a compiler can gain in a kernel
// without them is little beside what it gains in the loop over the items that a rendering may put around it.
func (u *Unit) Loops() bool { return u.tree.Loops }

// Expanded reports whether the OpenCL rendering is the preprocessed text and not the original
// one. It is for programs with includes, which an OpenCL compiler would not find, and for those
// with a kernel whose name is changed (see OpenCLName). The program's definitions are already
// applied in it, so that the OpenCL compiler needs no -D options.
func (u *Unit) Expanded() bool {
	return len(u.resolved) > 0 || slices.ContainsFunc(u.kernels, func(k Kernel) bool {
		return render.OpenCLName(k.Name) != k.Name
	})
}

// OpenCLName returns the name that a kernel has in OpenCL renderings: its own, or
// cc_kernel_NAME where NAME is a built-in function. OpenCL compilers define the names of built-in
// functions as macros, or treat the kernel as an overload, and then find no kernel of that name.
func (u *Unit) OpenCLName(kernel string) string {
	return render.OpenCLName(kernel)
}

// RenderOffsets is RenderOffsetsContext with a context that is never done.
func (u *Unit) RenderOffsets() (string, error) { return u.RenderOffsetsContext(context.Background()) }

// RenderOffsetsContext returns OpenCL text in which every kernel takes, after its own
// parameters, one ulong for each global and constant pointer among them: a
// number of bytes that the kernel adds to that pointer first. It is needed for views of buffers
// at offsets at which an OpenCL device cannot create a sub-buffer. Errors, the context and the
// running time are as with RenderContext.
func (u *Unit) RenderOffsetsContext(ctx context.Context) (text string, err error) {
	defer token.Settle(&err)
	m := token.NewMeter(ctx)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err := u.portable(OpenCL); err != nil {
		return "", err
	}
	return render.Offsets(m, u.tree), nil
}
