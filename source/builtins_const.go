package source

// constant values of OpenCL C come in two kinds: macros whose value a
// preprocessor has to see (INT_MAX), and names that the renderers translate
// (INFINITY, NULL), since their spelling differs by target.

import "github.com/concord-compute/concord/source/internal/tree"

// builtinConst is a constant that stays a name until it is rendered.
type builtinConst struct {
	Type bType
	Host string // C++ of the host, CUDA and HIP preludes
}

// lookupConst finds a named constant. true and false are C++ keywords too, but
// of type int in OpenCL C.
func lookupConst(name string) (builtinConst, bool) {
	c, ok := builtinConsts[name]
	return c, ok
}

var builtinConsts = map[string]builtinConst{
	"INFINITY":             {bType{Kind: tree.Float, Width: 1}, "CC_INFINITY"},
	"NAN":                  {bType{Kind: tree.Float, Width: 1}, "CC_NAN"},
	"HUGE_VALF":            {bType{Kind: tree.Float, Width: 1}, "CC_INFINITY"},
	"HUGE_VAL":             {bType{Kind: tree.Double, Width: 1}, "CC_HUGE_VAL"},
	"MAXFLOAT":             {bType{Kind: tree.Float, Width: 1}, "CC_MAXFLOAT"},
	"NULL":                 {bType{Kind: tree.Void, Ptr: true}, "CC_NULL"},
	"CLK_LOCAL_MEM_FENCE":  {bType{Kind: tree.UInt, Width: 1}, "CC_LOCAL_MEM_FENCE"},
	"CLK_GLOBAL_MEM_FENCE": {bType{Kind: tree.UInt, Width: 1}, "CC_GLOBAL_MEM_FENCE"},
	"true":                 {bType{Kind: tree.Int, Width: 1}, "1"},
	"false":                {bType{Kind: tree.Int, Width: 1}, "0"},
}
