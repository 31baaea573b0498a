// Package kernels is the catalog: portable OpenCL C sources, one per family, that
// definitions specialize, and for each kernel what parity needs to judge it: the
// shapes that hurt and the error it may make, with the reason.
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
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/concord-compute/concord/source"
)

//go:embed *.cl *.h
var sources embed.FS

// Sources returns the texts of the catalog: "<family>.cl" and what they include.
func Sources() fs.FS { return sources }

// Family is one source of the catalog and the kernels in it.
type Family struct {
	ID      string   // name of the source, and Unit.Family of its programs
	Doc     string   // one line: what the kernels compute
	Kernels []string // entry points; which of them a definition leaves out is in the source
	Types   []string // values that T takes, or FROM and TO of cast; empty: types are fixed
	Defines []string // names of the definitions it knows

	cases func(f *Family) []Case
}

// The types in the order in which they are tried.
var (
	floatTypes = []string{"f32", "f64", "f16", "bf16"}
	intTypes   = []string{"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"}
	allTypes   = slices.Concat(floatTypes, intTypes)
)

var families = []*Family{
	saxpyFamily, arithFamily, fillFamily, copyFamily, castFamily, reduceFamily, transposeFamily,
	gemmFamily, gemmBatchFamily, gemmBiasFamily, l2Family, topkFamily, softmaxFamily, activationFamily,
	normFamily, gatherFamily, scatterFamily,
	conv2dFamily, im2colFamily, gemmI8Family,
}

// Families returns every family. The list is the caller's, the families are not.
func Families() []*Family { return slices.Clone(families) }

// Find returns the family with that ID.
func Find(id string) (*Family, bool) {
	i := slices.IndexFunc(families, func(f *Family) bool { return f.ID == id })
	if i < 0 {
		return nil, false
	}
	return families[i], true
}

// Cases returns what parity has to run for a family; nil when there is none of
// that ID. The list is built anew at every call; its data only when asked for.
func Cases(id string) []Case {
	f, ok := Find(id)
	if !ok {
		return nil
	}
	return f.cases(f)
}

// units remembers every program by family, features and definitions.
var units sync.Map // string -> *unitEntry

type unitEntry struct {
	once sync.Once
	unit *source.Unit
	err  error
}

// Unit returns the program of a family for a device with those features; nil means
// source.Portable. The same arguments give the same *source.Unit, so that a device compiles it once.
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
	v, _ := units.LoadOrStore(fmt.Sprintf("%q %v %q", id, *features, defs), new(unitEntry))
	e := v.(*unitEntry)
	e.once.Do(func() { e.unit, e.err = f.parse(*features, defs) })
	return e.unit, e.err
}

func (f *Family) parse(features source.Features, defs []source.Define) (*source.Unit, error) {
	text, err := sources.ReadFile(f.ID + ".cl")
	if err != nil {
		return nil, err
	}
	return source.Parse(string(text), source.Options{
		Name: f.ID + ".cl", Defines: defs, Includes: []fs.FS{sources}, Features: &features, Family: f.ID,
	})
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
	case name == "ACT":
		var all []string
		for _, a := range Activations {
			all = append(all, a.Act)
		}
		if !slices.Contains(all, value) {
			return fmt.Errorf("ACT=%s is not one of %s", value, strings.Join(all, " "))
		}
	case value != "0" && value != "1":
		return fmt.Errorf("%s=%s is not 0 or 1", name, value)
	}
	return nil
}
