// Package kernels is the catalog: portable OpenCL C sources, one per family, that
// definitions specialize, and for each kernel what parity needs to judge it: the
// shapes that hurt, the error it may make, with the reason, and a float64 reference.
//
// # Basics
//
// [Unit] gives a family's program for a set of definitions, ready for
// runtime's Device.Program:
//
//	unit, err := kernels.Unit("gemm", features, source.Define{Name: "T", Value: "f16"})
//
// Its kernels are launched like any other. T is the element type: f32 when absent.
// The functions whose names end in Grid say how large a grid a kernel wants; its
// parameters are described in the source, which [Sources] shows.
//
// A device may have an implementation of its own for a kernel, found by the
// family's ID and the kernel's name. It is bound by the same [Case] list.
//
// # Adding a family
//
// Any package of any module adds families by calling [Register] in an init function.
// There is no list to edit: a program that imports the package has the family, and parity
// judges it. The families of this package are made the same way.
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
// Reference and what Native returns are a [Func]: it reads the arguments of one launch
// through a [Call]. Family.Arguments is called before either, so that no implementation
// checks sizes. [Call.Get] and [Call.Set] are for references, [Elements] and Parallel
// for natives. [Roundoff], [Smallest] and [Stored] are what bounds are made of.
//
// # What all kernels keep to
//
// Every size is an argument and every grid may be larger than it: items beyond the
// size do nothing, and a size of 0 writes nothing. half and bfloat16 are storage;
// they are computed in float and rounded once, to nearest even. Integers wrap.
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

// Sources returns the texts that this package brings: "<family>.cl", and what they include,
// which any family may include too.
func Sources() fs.FS { return sources }

// Family is one source of the catalog, the kernels in it, and how they are judged.
type Family struct {
	ID      string   // name of the source, and Unit.Family of its programs
	Doc     string   // one line: what the kernels compute
	Kernels []string // entry points; which of them a definition leaves out is in the source
	Types   []string // values that T takes, or FROM and TO of cast; empty: types are fixed
	Defines []string // names of the definitions it knows

	// Source has the text, "<ID>.cl", and what it includes beside [Sources]. A family whose text depends on its
	// definitions has Text instead, which returns it; its programs are not kept for ever (see [Unit]).
	Source fs.FS
	Text   func(defs []source.Define) (string, error)

	// Check says what is wrong with the value of a definition that is not one of T, FROM,
	// TO, GROUP and TILE. nil: the value has to be 0 or 1.
	Check func(d source.Define) error

	// Arguments checks the arguments of a launch of any of Kernels before Reference or a
	// native implementation runs, which therefore check no sizes themselves. It ends a launch
	// that reads or writes beyond a buffer, with [Call.Need] or [Call.Fail], and returns false if
	// there is nothing to compute: then the launch is over. nil: Reference and Native check
	// the arguments themselves.
	Arguments func(c *Call) (work bool)

	// Reference computes a launch of any of Kernels in float64 and rounds once. It is what
	// cpu:reference runs, and what everything else is judged by.
	Reference Func

	// Native returns what cpu:0 runs for one of Kernels, nil for a program that it does not
	// serve. It is called when a program's kernel is made, not when it is launched. A
	// family without it is compiled on the CPU as on any other device.
	Native func(u *source.Unit, kernel string) Func

	// Cases lists what parity has to run. Every kernel needs a case. It is called by
	// [Cases] alone, so that a program that does not judge kernels pays nothing for it.
	Cases func(f *Family) []Case
}

// The types in the order in which they are tried.
var (
	floatTypes = []string{"f32", "f64", "f16", "bf16"}
	intTypes   = []string{"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"}
	allTypes   = slices.Concat(floatTypes, intTypes)
)

var (
	familiesMu sync.RWMutex
	families   = map[string]*Family{}
)

// Register adds a family to the catalog: to what [Unit], [Find] and [Families] return, to
// what parity runs, and to what the CPU runs without a compiler. It is meant for init
// functions. It panics, with a sentence that gives the reason, if the family is incomplete
// or its ID is taken.
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

// incomplete says what a family lacks, or "".
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
		return "has no cases, without which nothing is judged"
	case len(f.Types) > 0 != slices.ContainsFunc(f.Defines, isTypeDefine):
		return "needs both a list of types and a definition (T, or FROM and TO) that takes them, or neither"
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

// Families returns every family that was registered, in the order of their IDs. The list
// is the caller's, the families are not.
func Families() []*Family {
	familiesMu.RLock()
	defer familiesMu.RUnlock()
	return slices.SortedFunc(maps.Values(families), func(a, b *Family) int { return strings.Compare(a.ID, b.ID) })
}

// Find returns the family with that ID.
func Find(id string) (*Family, bool) {
	familiesMu.RLock()
	defer familiesMu.RUnlock()
	f, ok := families[id]
	return f, ok
}

// Cases returns what parity has to run for a family; nil when there is none of
// that ID. The list is built anew at every call; its data only when asked for.
func Cases(id string) []Case {
	f, ok := Find(id)
	if !ok {
		return nil
	}
	return f.Cases(f)
}

// units remembers programs by family, features and definitions: those of texts that are files for ever, of the others
// the maxGenerated that were used last, of some kilobytes each.
var (
	units     sync.Map // string -> *unitEntry
	generated = must(lru.New[string, *unitEntry](maxGenerated))
)

const maxGenerated = 1024

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

type unitEntry struct {
	once sync.Once
	unit *source.Unit
	err  error
}

// Unit returns the program of a family for a device with those features; nil means
// source.Portable. The same arguments give the same *source.Unit, so that a device compiles it once; of families with a
// Text, as long as it is among the last thousand that were asked for.
// Definitions that are absent have the defaults of the source; T is f32.
func Unit(id string, features *source.Features, defs ...source.Define) (*source.Unit, error) {
	f, ok := Find(id)
	if !ok {
		return nil, fmt.Errorf("kernels: no family %q in the catalog", id)
	}
	if features == nil {
		features = &source.Portable
	}
	defs, err := f.complete(*features, defs)
	if err != nil {
		return nil, fmt.Errorf("kernels: %s: %w", id, err)
	}
	e := f.entry(fmt.Sprintf("%q %v %q", id, *features, defs))
	e.once.Do(func() { e.unit, e.err = f.parse(*features, defs) })
	return e.unit, e.err
}

// entry returns where a program of the family is remembered.
func (f *Family) entry(key string) *unitEntry {
	if f.Text == nil {
		e, _ := units.LoadOrStore(key, new(unitEntry))
		return e.(*unitEntry)
	}
	if e, ok := generated.Get(key); ok {
		return e
	}
	e := new(unitEntry)
	if had, ok, _ := generated.PeekOrAdd(key, e); ok {
		return had
	}
	return e
}

func (f *Family) parse(features source.Features, defs []source.Define) (*source.Unit, error) {
	if f.Text != nil {
		text, err := f.Text(defs)
		if err != nil {
			return nil, err
		}
		return source.Parse(text, source.Options{Name: f.ID + ".cl", Defines: defs, Features: &features, Family: f.ID})
	}
	text, err := fs.ReadFile(f.Source, f.ID+".cl")
	if err != nil {
		return nil, err
	}
	u, err := source.Parse(string(text), source.Options{
		Name: f.ID + ".cl", Defines: defs, Includes: []fs.FS{f.Source, sources}, Features: &features, Family: f.ID,
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

// complete checks definitions, keeps the last of each name, sorts them, and adds
// the types that are absent. A wrong one would otherwise be an error somewhere in
// the expansion of a macro.
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

func zeroOrOne(d source.Define) error {
	if d.Value != "0" && d.Value != "1" {
		return fmt.Errorf("%s=%s is not 0 or 1", d.Name, d.Value)
	}
	return nil
}
