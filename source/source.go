package source

import (
	"io/fs"

	"github.com/concord-compute/concord/source/internal/preprocess"
	"github.com/concord-compute/concord/source/internal/render"
	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// Options are the inputs of Parse besides the text. The zero value parses a
// self-contained program for a device with the features of Portable.
type Options struct {
	Name    string   // name of the text in positions; "" means "program.cl"
	Defines []Define // in order; later ones win; nil means none
	// Includes are searched in order by #include; never the machine's own directories. A name that leads above the
	// root of a file system, such as "../x.h", is refused unless that has a method OpenAbove(name string) (fs.File,
	// error), which gets the cleaned name. Nil means none.
	Includes []fs.FS
	Features *Features // what the device can do; nil means Portable

	// Native has texts in the languages of targets beside the portable one: CUDA, HIP or Metal. There
	// they take the place of the rendering; all other targets get the portable text. Kernels that are only
	// declared in the portable text, "kernel void saxpy(float a, global float *x);", then are kernels of the Unit,
	// which targets without a text of their own refuse. Every kernel of the Unit has to be in each text,
	// by its name NAME or as cc_kernel_NAME, and with the parameters that EntryPrefix describes: in CUDA and
	// HIP as extern "C" __global__. Its parameters are not compared with those of the portable text, by which
	// launches are checked: where they differ, the kernel reads wrong values or addresses. The Defines are macros
	// there too. Nil means none.
	Native map[Target]File

	// Family names the family of kernels that the program belongs to ("gemm"); "" means none.
	// Devices with native kernels are asked for those of the family.
	Family string

	// Work returns the amount of work of a launch of a kernel k of the Unit u, for profiles: operations, and bytes
	// that are read and written; 0 and 0 if that is not known. global is the number of items, and values has the
	// bytes of each argument that is a value, nil for the others. It must not keep them. Nil means that the work is
	// not known. It is called from any goroutine and is not part of the hash.
	Work func(u *Unit, k *Kernel, global [3]int, values [][]byte) (operations, bytes float64)
}

func (o *Options) features() Features {
	if o.Features == nil {
		return Portable
	}
	return *o.Features
}

// Define is one -D: a Name and its Value. With an empty Value the name is defined as nothing; the
// command's -D NAME defines it as 1, as compilers do.
type Define = preprocess.Define

// File is one text that took part in a program, with its Name and Text.
type File = preprocess.File

// Features says what the device that a program is compiled for can do. It determines the extension
// macros (cl_khr_fp64 ...) during preprocessing, and a program that uses an absent feature is
// refused with a position. Its fields are
//
//	FP64        bool // double and its built-ins (cl_khr_fp64)
//	FP16        bool // arithmetic on half (cl_khr_fp16); storage always works
//	Int64Atomic bool // cl_khr_int64_base_atomics and _extended_
//	FastFMA     bool // fma is as fast as a product: FP_FAST_FMAF is defined, and FP_FAST_FMA with FP64
//	Subgroups   bool // cl_khr_subgroups and its shuffles; every item of a sub-group has to reach each call
type Features = token.Features

// Portable is the set of features that Parse assumes if Options.Features is nil.
var Portable = Features{FP64: true, Int64Atomic: true}

// MetalFeatures is what every device of Metal 2.2 and newer has: half, and no double and
// no 64-bit atomics. fma is an instruction.
var MetalFeatures = Features{FP16: true, FastFMA: true}

// fibersDefine is a definition that makes kernels with barriers run on fibers on the host, so that
// the two ways of running them can be compared.
const fibersDefine = "CONCORD_HOST_FIBERS"

// Unit is one program, preprocessed, parsed and checked, for one set of
// definitions, includes and features. It is immutable and safe for concurrent
// use. Units are compared by pointer: the runtime keeps one loaded program per
// device for each *Unit.
type Unit struct {
	name     string
	text     string
	options  Options
	kernels  []Kernel
	byName   map[string]int // index of each kernel
	declared []string       // kernels without a portable body
	resolved []File         // every include that was read, in order of first use
	hash     [32]byte
	tree     *tree.Program
}

// Kernel is one entry point of a program.
type Kernel struct {
	Name       string
	Params     []Param
	ReqdLocal  [3]int // reqd_work_group_size, or zeros
	Barrier    bool   // the kernel, or a function that it calls, has a barrier
	LocalBytes int    // bytes of local memory declared in its body, as far as known
	Pos        Pos
}

// Param describes one parameter of a kernel to its callers.
type Param struct {
	Name    string
	Pointer bool   // true: a buffer (Global, Constant) or local memory (Local)
	Space   Space  // address space that a pointer points to; Private for values
	Kind    Kind   // element kind of a pointer, kind of a value
	Width   int    // vector width of the element or value: 1, 2, 3, 4, 8 or 16
	Size    int    // bytes of the element or value in memory; 0 when unknown (an incomplete struct)
	Const   bool   // the kernel cannot write through it
	Decl    string // the type as written, for messages: "global const float4 *"
}

// Kind is a scalar type of OpenCL C; String gives its name there.
type Kind = tree.Kind

// The scalar kinds. Struct stands for a struct or union passed by value.
const (
	Void   = tree.Void
	Bool   = tree.Bool
	Char   = tree.Char
	UChar  = tree.UChar
	Short  = tree.Short
	UShort = tree.UShort
	Int    = tree.Int
	UInt   = tree.UInt
	Long   = tree.Long
	ULong  = tree.ULong
	Half   = tree.Half
	Float  = tree.Float
	Double = tree.Double
	Struct = tree.Struct
)

// Space is an OpenCL address space; String spells it as OpenCL C does.
type Space = tree.Space

// The address spaces of OpenCL C 1.2.
const (
	Private  = tree.Private
	Global   = tree.Global
	Constant = tree.Constant
	Local    = tree.Local
)

// Pos is a place in the text that the user wrote. File is as it was named to Parse or in an #include; Line and
// Col (in bytes) count from 1. Text that a macro expands to has the place of the macro's use. String gives
// "file:line:col".
type Pos = token.Pos

// Error is one mistake in the text of a program: its place (Pos), a message (Msg), and the
// Construct that is wrong ("#include", "macro MAX", "swizzle"), which programs can compare.
type Error = token.Error

// ErrorList is every mistake found in a program, in the order of discovery, as a slice of
// *Error. It is never empty when returned as an error; errors.As finds the first *Error of it.
type ErrorList = token.ErrorList

// Target is a language that a Unit can be rendered in; String gives its name in lower case.
type Target = render.Target

// The targets of Render.
const (
	OpenCL = render.OpenCL
	Host   = render.Host
	CUDA   = render.CUDA
	HIP    = render.HIP
	Metal  = render.Metal
	SPIRV  = render.SPIRV
)

// EntryPrefix stands before a kernel's name in CUDA, HIP and Metal renderings: the entry point of
// the kernel NAME is cc_kernel_NAME.
//
// In CUDA and HIP it is an extern "C" __global__ function with the kernel's parameters in order:
//   - a pointer to global or constant memory is a device pointer of 8 bytes;
//   - a pointer to local memory is an unsigned int: the offset in bytes, a multiple of 128, at
//     which the memory of this argument begins in the launch's dynamic shared memory;
//   - a value is passed as it is, with OpenCL's size and alignment.
//
// The grid is given in groups (blocks). Global offsets are not supported: get_global_offset
// returns 0. get_work_dim returns the number of dimensions up to and including the last one that
// has more than one item.
//
// In Metal it is a kernel void function. Buffers and blocks of threadgroup memory are numbered
// separately, both from 0, in the order of the kernel's parameters:
//   - a pointer to global memory is device T *p [[buffer(i)]];
//   - a pointer to constant memory is constant T *p [[buffer(i)]]. The offset at which such a buffer is bound
//     has to be a multiple of 256 on Macs with AMD or Intel GPUs, and of 4 on Apple's. For a pointer to global
//     memory the alignment of T is enough;
//   - a value (scalar, vector, struct) is constant T &p [[buffer(i)]], with OpenCL's
//     size and alignment;
//   - a pointer to local memory is threadgroup T *p [[threadgroup(j)]], and the launch sets its
//     length to a multiple of 16 bytes.
//
// Metal has 31 buffer indices. If a kernel has more pointers and values than that, its P pointers
// are the buffers 0 to P-1, and buffer P holds a struct with all its values, in order and with
// OpenCL's alignment. Rendering fails if P+1 is more than 31. Local memory that the kernel
// declares in its body is declared in the entry point. A launch consists of whole threadgroups;
// get_global_offset and get_work_dim are as in CUDA. A required group size
// (reqd_work_group_size) becomes max_total_threads_per_threadgroup, which limits only the number
// of items: the launch has to use exactly the required size.
//
// In SPIR-V it is an entry point for GLCompute without descriptors. Specialization constants have 32 bits:
//   - 0 to 2 are the size of the group;
//   - 3 is the number of words of local memory;
//   - 4 has bits for what the device computes exactly. 1: Fma of GLSL.std.450 rounds once. 2: quotients of floats are
//     correctly rounded. 4: square roots are. 8, 16 and 32: the same for doubles. 64: denormal floats are kept. What is
//     not known is 0, and computed by other means.
//
// Push constants are 32 words:
//   - 0 to 2: the global size;
//   - 3: the number of dimensions;
//   - 4 and 5: the address of the module's constants;
//   - 6 and 7: the address of the arguments if they are in memory;
//   - 8 to 10: the number of the first group;
//   - from 12 on: the arguments in order.
//
// The arguments are:
//   - a pointer to global or constant memory is an address of 8 bytes, at a multiple of 8;
//   - a pointer to local memory is an offset in bytes of 4 bytes, at a multiple of 4;
//   - a value has OpenCL's size, rounded up to 4, at a multiple of 4.
//
// If they have more than 80 bytes, all are in memory instead, in the same order from offset 0 of a block whose
// address is a multiple of 16. A launch consists of whole groups. Local memory that the kernel declares begins at
// offset 0.
const EntryPrefix = render.EntryPrefix
