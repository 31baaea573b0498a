// Package spirv writes a program as a SPIR-V module for Vulkan, from its tree, without a compiler.
//
// Pointers to global and constant memory are integers of 64 bits, those to local and private memory are byte offsets of
// 32 bits, so that everything that C does with pointers is arithmetic on integers. Functions of the program stay
// functions. Values are lists of scalars, one for each lane of a vector or member of a struct: only loads and stores
// have vectors. Integers of 8 and 16 bits are computed in 32 bits and kept extended by their sign or by zeros; a half
// is kept as its 16 bits. A bool of the language is an integer, 0 or 1.
//
// Private variables whose address nobody takes are variables of the function, one for each scalar, or arrays of
// such; all others live in one array of words, the arena, in which each function has a fixed place, since there is
// no recursion. Local memory is one array of words, too.
package spirv

import (
	"strings"

	"github.com/concord-compute/concord/source/internal/spirv/module"
	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// id is short for the type of all results.
type id = module.ID

// Module is a program as SPIR-V.
type Module struct {
	Words     []byte   // the module: words of 32 bits, the low byte first
	Constants []byte   // what the unit's constants have in memory, with an alignment of 128 bytes
	Kernels   []Kernel // in the order of their definition
}

// Kernel describes an entry point.
type Kernel struct {
	Name       string // without EntryPrefix
	LocalBytes int    // bytes of local memory that it declares, from offset 0
	ReqdLocal  [3]int // reqd_work_group_size, or zeros
	ArgBytes   int    // bytes of its arguments
	InMemory   bool   // the arguments are in memory and not in push constants
}

// EntryPrefix stands before a kernel's name in the name of its entry point.
const EntryPrefix = "cc_kernel_"

// The numbers of the specialization constants.
const (
	specSize  = 0 // to 2: the group's size
	specLocal = 3 // the number of words of local memory
	specFacts = 4 // what the device computes exactly
)

// The bits of the facts.
const (
	factFma        = 0
	factDivide     = 1
	factSqrt       = 2
	factFma64      = 3
	factDivide64   = 4
	factSqrt64     = 5
	factDenormals  = 6
	privateStart   = 16      // offset of the first private object, so that no address is NULL
	localStart     = 1 << 16 // what pointers to local memory are more than the offset, for the same reason
	pushWords      = 32      // words of push constants
	pushFirstGroup = 8       // words of the numbers of the first group
	pushArguments  = 12      // word of the first argument
	pushConstants  = 4       // words of the address of the constants
	pushBlock      = 6       // words of the address of the arguments, if they are in memory
	pushDimensions = 3
)

// emitter writes one program.
type emitter struct {
	*token.Meter
	tree.Folder
	b         *module.Builder
	p         *tree.Program
	errs      token.ErrorList
	done      map[*tree.Function]*function // finished functions of the program
	library   map[string]*function         // and of the library
	offsets   map[*tree.Symbol]int         // constants, and a kernel's local variables
	constants []byte
	records   map[*tree.Record][]leaf
	texts     map[string]int // offsets of strings among the constants
	called    map[*tree.Function]bool
	arenaSize int
	written   int

	arena, local, push, facts id
	inputs                    map[uint32]id
	size                      [3]id
	localWords                id
	usesArena, usesLocal      bool
}

// Emit writes a program for devices with these features. An error is an ErrorList of constructs that Vulkan cannot
// express, with their places. If the module is too large, or the meter's context is done, it panics as the
// renderings do.
func Emit(m *token.Meter, p *tree.Program) (*Module, error) {
	e := &emitter{Meter: m, b: module.New(), p: p, done: map[*tree.Function]*function{}, library: map[string]*function{},
		offsets: map[*tree.Symbol]int{}, records: map[*tree.Record][]leaf{}, texts: map[string]int{},
		called: map[*tree.Function]bool{}, inputs: map[uint32]id{}, arenaSize: privateStart}
	for _, fn := range p.Funcs {
		for _, c := range fn.Calls {
			e.called[c.To] = true
		}
	}
	if e.ordersMemory() {
		e.b.UseVulkanModel()
	}
	for i := range e.size {
		e.size[i] = e.b.SpecUint(uint32(specSize+i), 1)
		e.b.Name(e.size[i], "size_"+"xyz"[i:i+1])
	}
	e.localWords = e.b.SpecUint(specLocal, 1)
	e.b.Name(e.localWords, "local_words")
	e.facts = e.b.SpecUint(specFacts, 0)
	e.b.Name(e.facts, "facts")
	e.push = e.b.Variable(0, module.PushConstant, e.b.Words(pushWords))
	e.b.Name(e.push, "launch")
	e.local, e.arena = e.b.NewID(), e.b.NewID()
	out := &Module{}
	var entries []entry
	for _, fn := range p.Funcs {
		if fn.Kernel && fn.Defined {
			entries = append(entries, e.kernel(fn))
		}
	}
	if err := e.errs.Err(); err != nil {
		return nil, err
	}
	if e.usesLocal {
		e.b.Variable(e.local, module.Workgroup, e.b.ArrayOf(e.b.Int(32), e.localWords))
		e.b.Name(e.local, "local")
	}
	if e.usesArena {
		e.b.Variable(e.arena, module.Private, e.b.Array(e.b.Int(32), (e.arenaSize+3)/4))
		e.b.Name(e.arena, "private")
	}
	for _, k := range entries {
		e.b.EntryPoint(k.id, EntryPrefix+k.Name, e.size)
		out.Kernels = append(out.Kernels, k.Kernel)
	}
	if e.b.Count() > module.MaxIDs {
		e.refuse(p.Funcs[0].Pos, "limit", "the module needs more than %d ids", module.MaxIDs)
		return nil, e.errs.Err()
	}
	out.Words, out.Constants = e.b.Bytes(), e.constants
	return out, nil
}

// refuse records a construct that cannot be expressed.
func (e *emitter) refuse(pos token.Pos, construct, format string, args ...any) {
	e.errs.Add(pos, construct, format, args...)
}

// ordersMemory reports whether items of a launch exchange data through buffers, which only the Vulkan memory model
// describes: the program has fences of global memory, or atomics.
func (e *emitter) ordersMemory() bool {
	orders := false
	for _, fn := range e.p.Funcs {
		if fn.Defined {
			tree.WalkStmt(fn.Body, func(x *tree.Expr) {
				if x.Op != tree.OpBuiltin {
					return
				}
				name := strings.TrimPrefix(x.Text, "cc_")
				switch {
				case name == "wait_group_events": // another item copied a part
					orders = true
				case name == "barrier" || strings.HasSuffix(name, "mem_fence"):
					v := tree.Fold(x.Args[0])
					orders = orders || !(x.Args[0].Op == tree.OpNamed && x.Args[0].Text == "CC_LOCAL_MEM_FENCE") &&
						!(v.OK && v.Bits&fenceGlobal == 0)
				case strings.HasPrefix(name, "atom"):
					orders = orders || x.Args[0].Type.Elem.Space == tree.Global
				}
			})
		}
	}
	return orders
}

// The flags of fences, CLK_LOCAL_MEM_FENCE and CLK_GLOBAL_MEM_FENCE.
const (
	fenceLocal  = 1
	fenceGlobal = 2
)
