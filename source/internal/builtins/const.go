package builtins

// The named constants of OpenCL C. Those whose value the preprocessor has to know (INT_MAX) are
// macros, defined in package preprocess. The others are here: names that the renderers translate
// (INFINITY, NULL), since their spelling differs by target.

import "github.com/concord-compute/concord/source/internal/tree"

// Const is a constant that stays a name until it is rendered.
type Const struct {
	Type Type
	Host string // its spelling in the C++ preludes
}

// LookupConst finds a named constant. true and false are C++ keywords too, but
// of type int in OpenCL C.
func LookupConst(name string) (Const, bool) {
	c, ok := builtinConsts[name]
	return c, ok
}

var builtinConsts = map[string]Const{
	"INFINITY":             {Type{Kind: tree.Float, Width: 1}, "CC_INFINITY"},
	"NAN":                  {Type{Kind: tree.Float, Width: 1}, "CC_NAN"},
	"HUGE_VALF":            {Type{Kind: tree.Float, Width: 1}, "CC_INFINITY"},
	"HUGE_VAL":             {Type{Kind: tree.Double, Width: 1}, "CC_HUGE_VAL"},
	"MAXFLOAT":             {Type{Kind: tree.Float, Width: 1}, "CC_MAXFLOAT"},
	"NULL":                 {Type{Kind: tree.Void, Ptr: true}, "CC_NULL"},
	"CLK_LOCAL_MEM_FENCE":  {Type{Kind: tree.UInt, Width: 1}, "CC_LOCAL_MEM_FENCE"},
	"CLK_GLOBAL_MEM_FENCE": {Type{Kind: tree.UInt, Width: 1}, "CC_GLOBAL_MEM_FENCE"},
	"true":                 {Type{Kind: tree.Int, Width: 1}, "1"},
	"false":                {Type{Kind: tree.Int, Width: 1}, "0"},
}
