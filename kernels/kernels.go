// Package kernels is the catalog of compute kernels. A family is one portable OpenCL C source
// with the kernels in it; preprocessor definitions select the element type and other variants.
// With each kernel come its test cases, which have difficult sizes and values, a float64 reference, and
// a bound of the error with its reason. Package runtime/parity judges devices by them.
//
// # Basics
//
// [Unit] gives a family's program for a set of definitions, ready for
// runtime's Device.Program:
//
//	unit, err := kernels.Unit("gemm", features, source.Define{Name: "T", Value: "f16"})
//
// Its kernels are launched like any other. T is the element type, f32 if it is not defined.
// [Geometry] returns the grid to launch a kernel with. The parameters of the kernels are described in the
// sources, which [Sources] returns: "nearest.cl" begins with what nearest and nearest_merge take. The command
// concord kernels nearest prints that.
//
// A device may have an implementation of its own for a kernel, found by the
// family's ID and the kernel's name. It is judged by the same list of [Case].
//
// Element-wise kernels, reductions, softmax and the normalizations are expressions with names, which package
// kernels/expr defines and registers (see [Outline]). A program that imports neither that package nor package
// cpu does not have them.
//
// # Adding a family
//
// Any package of any module adds families by calling [Register] in an init function.
// There is no list to edit: a program that imports the package has the family, and parity
// judges it. This package registers its own families in the same way.
//
//	//go:embed clamp.cl
//	var text embed.FS
//
//	func init() {
//		kernels.Register(kernels.Family{
//			ID: "clamp", Doc: "numbers moved into a range",
//			Kernels: []string{"clamp"}, Types: []string{"f32", "f64"}, Defines: []string{"T"},
//			Source: text, Arguments: arguments, Reference: reference, Native: native, Cases: cases,
//		})
//	}
//
// The text may include "elem.h" of [Sources], which turns T into types, loads and stores.
// Reference is a [Func], and Native returns one: a function that reads the arguments of one
// launch through a [Call]. [Call.Get] and [Call.Set] are for references, [Elements] and Parallel
// for natives. Bounds are computed with [Roundoff], [Smallest] and [Stored], and [Judge] compares results by them.
// Package runtime/validate judges the launches of running programs, where a family has a Bound.
//
// # Rules for all kernels
//
// Every size is an argument, and the grid may be larger than the size: items beyond the
// size do nothing, and a size of 0 writes nothing. The implementations of cpu:0 itself do not use the grid: one that is
// too small, or has groups of another size, shows only on devices that compile the kernel. A buffer that is written
// must not overlap one that is read, unless the source says that they may be the same. half and bfloat16 are
// formats for storage: such elements are computed in float and rounded once, to nearest even. Integers wrap.
// Devices may flush denormals to zero: the tolerances allow it.
package kernels

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/concord-compute/concord/source"
)

//go:embed *.cl *.h
var sources embed.FS

// Sources returns the source files of this package: "<family>.cl" for each of its families that is not an
// expression (see [Outline]), and the headers that they include. Families of other packages may include the headers,
// too.
func Sources() fs.FS { return sources }

// Family is one source of the catalog, the kernels in it, and the means to judge them.
type Family struct {
	ID      string   // name of the source without ".cl", and Unit.Family of its programs
	Doc     string   // one line that says what the kernels compute
	Kernels []string // names of all entry points; with some definitions the source lacks some of them
	Types   []string // values of T, or of FROM and TO; empty if the types are fixed
	Defines []string // names of the definitions that the source reads

	// Source is the file system that contains the text, "<ID>.cl", and the files that the text
	// includes, except those of [Sources].
	Source fs.FS

	// Text returns the text for given definitions. It takes the place of Source in families whose text
	// depends on more than a preprocessor can express.
	Text func(defs []source.Define) (string, error)

	// Check returns an error if the value of a definition is not valid. It is not called for
	// T, FROM, TO, GROUP and TILE. If Check is nil, all other values have to be 0 or 1.
	Check func(d source.Define) error

	// Tile returns how many rows and columns of results a group of a kernel of the program u computes, if it is not one
	// result: for [Geometry]. rows is 0 if grids of the kernel have one dimension. It may be nil.
	Tile func(u *source.Unit, kernel string) (rows, cols int)

	// Arguments checks the arguments of a launch of any of Kernels before Reference or a
	// native implementation runs, so that these need not check sizes. It ends a launch
	// that reads or writes beyond a buffer, with [Call.Need] or [Call.Fail], and returns false if
	// there is nothing to compute, which ends the launch without an error. If it is nil, Reference
	// and the native implementations check the arguments themselves.
	Arguments func(c *Call) (work bool)

	// Work returns the work of a launch for which Arguments returned true, for profiles. Arithmetic operations and
	// functions of elements count as one each. Bytes that are read or written count once for either. The Call has
	// values and no memory. bytes are those that Arguments needs: what each buffer has at most. A family without
	// Work does no operations on all of these; one without both has no known work.
	Work func(c *Call, bytes float64) (operations, moved float64)

	// Reference computes a launch of any of Kernels in float64 and rounds once. The device
	// cpu:reference runs it, and the results of all other devices are compared with its results.
	Reference Func

	// Bound returns, for a launch for which Arguments returned true, what [Case.Bound] is for a case, and whether it is
	// known: without a known bound, a launch of a program cannot be judged. If it is nil, no launch has one.
	Bound func(c *Call) (bound func(arg int, in [][]float64, ref []float64) []float64, known bool)

	// Rows says how the result of such a launch is divided, so that of a large one some rows can be judged. It may be
	// nil.
	Rows func(c *Call) Rows

	// Native returns the Go implementation of one of Kernels for cpu:0, or nil if there is none
	// for that kernel of the program u. It is called, from any goroutine and more than once, when a program
	// is built and when a kernel is taken from it, but not when the kernel is launched. A kernel
	// for which it returns nil, or of a family without Native, is compiled, as on any other device.
	Native func(u *source.Unit, kernel string) Func

	// Cases returns the cases that parity runs; every kernel needs one. Only the function
	// [Cases] calls it, so that a program that does not judge kernels pays nothing for it.
	Cases func(f *Family) []Case
}

// The element types, in the order of the test cases.
var (
	floatTypes = []string{"f32", "f64", "f16", "bf16"}
	intTypes   = []string{"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"}
	allTypes   = slices.Concat(floatTypes, intTypes)
)

var (
	familiesMu sync.RWMutex
	families   = map[string]*Family{}
)

// Register adds a family to the catalog: [Unit], [Find] and [Families] return it, parity judges
// it, and the CPU runs its references and natives without a compiler. It is meant for init
// functions and may be called from any goroutine. It panics, with a sentence that gives the
// reason, if the family is incomplete or its ID is taken.
func Register(f Family) {
	if why := f.incomplete(); why != "" {
		panic(fmt.Sprintf("kernels: family %q %s", f.ID, why))
	}
	familiesMu.Lock()
	defer familiesMu.Unlock()
	if families[f.ID] != nil {
		panic(fmt.Sprintf("kernels: family %q is registered twice", f.ID))
	}
	families[f.ID] = &f
}

// incomplete returns what a family lacks, as the rest of a sentence, or "" if it is complete.
func (f *Family) incomplete() string {
	switch {
	case f.ID == "" || strings.ContainsAny(f.ID, "/\\ "):
		return "needs an ID that can name a file"
	case len(f.Kernels) == 0 || slices.Contains(f.Kernels, ""):
		return "has no kernel, or one without a name"
	case (f.Source == nil) == (f.Text == nil):
		return "needs a source or a function that writes it, and not both"
	case f.Reference == nil:
		return "has no float64 reference, by which its kernels are judged"
	case f.Cases == nil:
		return "has no cases, without which parity cannot judge its kernels"
	case len(f.Types) > 0 != slices.ContainsFunc(f.Defines, isTypeDefine):
		return "needs both a list of types and a definition (T, or FROM and TO) of a type, or neither"
	}
	if f.Source != nil {
		if _, err := fs.Stat(f.Source, f.ID+".cl"); err != nil {
			return "has no text in its source: " + err.Error()
		}
	}
	for i, k := range f.Kernels {
		if slices.Contains(f.Kernels[:i], k) {
			return "lists kernel " + k + " twice"
		}
	}
	return ""
}

// Families returns every registered family, in the order of their IDs. The caller may change
// the slice, but not the families.
func Families() []*Family {
	familiesMu.RLock()
	defer familiesMu.RUnlock()
	return slices.SortedFunc(maps.Values(families), func(a, b *Family) int { return strings.Compare(a.ID, b.ID) })
}

// Find returns the family with an ID, and whether there is one. The caller must not change it.
func Find(id string) (*Family, bool) {
	familiesMu.RLock()
	defer familiesMu.RUnlock()
	f, ok := families[id]
	return f, ok
}

// Cases returns the cases that parity runs for the family with an ID, or nil if there is no
// such family. Each call builds a new list; the data of an argument is generated by [Arg.Data].
func Cases(id string) []Case {
	f, ok := Find(id)
	if !ok {
		return nil
	}
	return f.Cases(f)
}

// units and generated hold programs by family, features and definitions. units keeps those of families with a
// Source for ever; generated keeps, of those with a Text, the ones that were used last: maxGenerated of at most
// maxGeneratedBytes together.
var (
	units     sync.Map // string -> *unitEntry
	generated struct {
		sync.Mutex
		entries *lru.Cache[string, *unitEntry]
		bytes   int
	}
)

const (
	maxGenerated      = 1024
	maxGeneratedBytes = 768 << 20 // for a thousand small maps, by the estimate of UnitBytes
)

func init() {
	generated.entries = must(lru.NewWithEvict(maxGenerated, func(_ string, e *unitEntry) { generated.bytes -= e.bytes }))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

type unitEntry struct {
	once  sync.Once
	unit  *source.Unit
	err   error
	bytes int // counted in generated
}

// Unit parses the program of the family id for a device with the given features; nil means
// source.Portable. Equal arguments give the same *source.Unit, so that a device compiles it once.
// A definition that is not given has the default of the source, and T, FROM and TO are f32. Of the families
// with a Text, the thousand programs that were used last are kept.
func Unit(id string, features *source.Features, defs ...source.Define) (*source.Unit, error) {
	f, ok := Find(id)
	if !ok {
		if _, outlined := outlines[id]; outlined {
			return nil, fmt.Errorf("kernels: family %q is defined by package kernels/expr, which the program does not import",
				id)
		}
		return nil, fmt.Errorf("kernels: no family %q in the catalog", id)
	}
	if features == nil {
		features = &source.Portable
	}
	defs, err := f.complete(*features, defs)
	if err != nil {
		return nil, fmt.Errorf("kernels: %s: %w", id, err)
	}
	key := fmt.Sprintf("%q %v %q", id, *features, defs)
	e := f.entry(key)
	e.once.Do(func() { e.unit, e.err = f.parse(*features, defs) })
	if f.Text != nil && e.err == nil {
		limitGenerated(key, e)
	}
	return e.unit, e.err
}

// UnitBytes estimates how many bytes of memory a parsed program takes.
func UnitBytes(u *source.Unit) int { return 128 * len(u.Text()) } // as was measured for maps of package expr

// limitGenerated counts the bytes of an entry that has been parsed, and drops those that were used the longest
// time ago while there are too many.
func limitGenerated(key string, e *unitEntry) {
	generated.Lock()
	defer generated.Unlock()
	if had, _ := generated.entries.Peek(key); had != e || e.bytes > 0 {
		return
	}
	e.bytes = UnitBytes(e.unit)
	for generated.bytes += e.bytes; generated.bytes > maxGeneratedBytes && generated.entries.Len() > 1; {
		generated.entries.RemoveOldest()
	}
}

// entry returns the entry of a program of the family in units or generated, and adds it if there is none.
func (f *Family) entry(key string) *unitEntry {
	if f.Text == nil {
		e, _ := units.LoadOrStore(key, new(unitEntry))
		return e.(*unitEntry)
	}
	generated.Lock()
	defer generated.Unlock()
	if e, ok := generated.entries.Get(key); ok {
		return e
	}
	e := new(unitEntry)
	generated.entries.Add(key, e)
	return e
}

func (f *Family) parse(features source.Features, defs []source.Define) (*source.Unit, error) {
	if f.Text != nil {
		text, err := f.Text(defs)
		if err != nil {
			return nil, err
		}
		return source.Parse(text, source.Options{Name: f.ID + ".cl", Defines: defs, Features: &features, Family: f.ID,
			Work: f.work})
	}
	text, err := fs.ReadFile(f.Source, f.ID+".cl")
	if err != nil {
		return nil, err
	}
	u, err := source.Parse(string(text), source.Options{
		Name: f.ID + ".cl", Defines: defs, Includes: []fs.FS{f.Source, sources}, Features: &features, Family: f.ID,
		Work: f.work,
	})
	if err != nil {
		return nil, err
	}
	for _, k := range u.Kernels() {
		if !slices.Contains(f.Kernels, k.Name) {
			return nil, fmt.Errorf("%s: the family does not list kernel %s of its text, which nothing would judge", f.ID, k.Name)
		}
	}
	return u, nil
}

// complete checks definitions, keeps the last of each name, puts them into the order of Defines,
// and adds the types that are absent. Without this check a wrong value would be reported as an
// error somewhere in the expansion of a macro.
func (f *Family) complete(features source.Features, defs []source.Define) ([]source.Define, error) {
	values := map[string]string{}
	for _, name := range f.Defines {
		if isTypeDefine(name) {
			values[name] = "f32"
		}
	}
	for _, d := range defs {
		if !slices.Contains(f.Defines, d.Name) {
			return nil, fmt.Errorf("definition %s is not one of %v", d.Name, f.Defines)
		}
		values[d.Name] = d.Value
	}
	var out []source.Define
	for _, name := range f.Defines {
		v, ok := values[name]
		if !ok {
			continue
		}
		if err := f.checkDefine(features, name, v); err != nil {
			return nil, err
		}
		out = append(out, source.Define{Name: name, Value: v})
	}
	return out, nil
}

func isTypeDefine(name string) bool { return name == "T" || name == "FROM" || name == "TO" }

func (f *Family) checkDefine(features source.Features, name, value string) error {
	n, _ := strconv.Atoi(value)
	switch {
	case isTypeDefine(name):
		if !slices.Contains(f.Types, value) {
			return fmt.Errorf("type %s=%s is not one of %s", name, value, strings.Join(f.Types, " "))
		}
		if value == "f64" && !features.FP64 {
			return fmt.Errorf("%s=f64 needs a device with double precision", name)
		}
	case name == "GROUP":
		if n < 1 || n > 1024 || n&(n-1) != 0 {
			return fmt.Errorf("GROUP=%s is not a power of two up to 1024", value)
		}
	case name == "TILE":
		if n < 1 || n > 32 {
			return fmt.Errorf("TILE=%s is not from 1 to 32", value)
		}
	case f.Check != nil:
		return f.Check(source.Define{Name: name, Value: value})
	default:
		return zeroOrOne(source.Define{Name: name, Value: value})
	}
	return nil
}

// oneOf returns a function for Family.Check: the values of definitions by their names; others are 0 or 1.
func oneOf(values map[string][]string) func(d source.Define) error {
	return func(d source.Define) error {
		if list, ok := values[d.Name]; !ok {
			return zeroOrOne(d)
		} else if !slices.Contains(list, d.Value) {
			return fmt.Errorf("%s=%s is not one of %s; leave it out for the default", d.Name, d.Value,
				strings.Join(list, " "))
		}
		return nil
	}
}

func zeroOrOne(d source.Define) error {
	if d.Value != "0" && d.Value != "1" {
		return fmt.Errorf("%s=%s is not 0 or 1", d.Name, d.Value)
	}
	return nil
}
